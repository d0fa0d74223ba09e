"""Cuts that move under load, on sites that really run: every row once, every aggregate exact."""

from __future__ import annotations

import random
import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest

from spark.taxi_run import (
    Meters,
    coordinate,
    deployment,
    legal_cuts,
    results,
    run_in_one_place,
    running_sites,
    wait_for,
)
from thalweg.spark.deployment.coordinator import Coordinator
from thalweg.spark.deployment.hand_over import StartEpoch, Step
from thalweg.spark.deployment.journal import Journal
from thalweg.spark.deployment.logs import open_logs
from thalweg.spark.log import Log
from thalweg.spark.query.carry import carry_file

pytestmark = pytest.mark.jvm
FOGS = ("fog-1", "fog-2")
TAXI = "thalweg.spark.examples.taxi:taxi_demand"


@pytest.mark.parametrize("moves", [pytest.param(20, marks=pytest.mark.slow)])
def test_cuts_that_move_under_load_lose_and_double_nothing(tmp_path: Path, moves: int) -> None:
    pytest.importorskip("pyspark")
    from thalweg.spark.pipeline import load_pipeline
    from thalweg.spark.session import open_session

    rng = random.Random(4)  # noqa: S311
    cuts = legal_cuts(TAXI)
    meters = Meters(tmp_path / "log", FOGS)
    spec = deployment(tmp_path, TAXI, FOGS)
    names = (*FOGS, "cloud")
    with running_sites(tmp_path, names) as sites, coordinate(spec, sites) as coordinator:
        coordinator.go_to({fog: rng.choice(cuts) for fog in FOGS})
        moved = 0
        while moved < moves:
            meters.send(2)
            fog = rng.choice(FOGS)
            taken = coordinator.go_to({fog: rng.choice(cuts)})
            moved += bool(taken)
            time.sleep(rng.choice([0.0, 0.5]))
        meters.send(2)
        meters.end()
        pipeline = load_pipeline(TAXI)
        with open_session("local[1]", "expected") as session:
            expected = run_in_one_place(session, pipeline, meters.table)
        assert all(rows.total() for rows in expected.values())
        wait_for(lambda: results(spec.log, expected) == expected or sites.next_event())
        coordinator.stop()
    assert results(spec.log, expected) == expected


class Died(Exception):
    """The coordinator died here."""


def die_before_the_next_epoch(step: Step) -> None:
    if isinstance(step, StartEpoch) and step.epoch == 1:
        raise Died


@pytest.mark.slow
def test_open_windows_that_a_power_cut_takes_are_made_again_from_the_log(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    from thalweg.spark.pipeline import load_pipeline
    from thalweg.spark.session import open_session

    fog, pipeline = "fog-1", load_pipeline(TAXI)
    windowed = [cut for cut in legal_cuts(TAXI) if set(pipeline.openings) & set(cut)]
    before = min(windowed, key=len)
    after = max((cut for cut in windowed if set(before) < set(cut)), key=len)
    meters = Meters(tmp_path / "log", (fog,))
    spec = replace(deployment(tmp_path, TAXI, (fog,)), durable=True)
    open_logs(spec)
    with running_sites(tmp_path, (fog, "cloud")) as sites:
        with (
            pytest.raises(Died),
            Coordinator(
                spec, sites, Log(spec.log), on_step=die_before_the_next_epoch
            ) as coordinator,
        ):
            coordinator.go_to({fog: before})
            meters.send(4)
            wait_for(lambda: sites[fog].newest_ms(f"{fog}@0"))
            coordinator.go_to({fog: after})
        # All dies; what was written without waiting for the disk is gone, or has no bytes.
        sites.restart(fog)
        for left in (tmp_path / "checkpoints").glob(f"{fog}@1*"):
            shutil.rmtree(left) if left.is_dir() else left.unlink()
        kept = Journal(spec.journal).state((fog,)).sites[fog].kept
        assert kept and all(file.rows for file in kept.values())
        for edge in kept:
            carry_file(spec.carried(fog, 0), edge).write_bytes(b"")
        with coordinate(spec, sites) as coordinator:
            assert set(coordinator.state.cuts[fog]) == set(after)
            meters.send(2)
            meters.end()
            with open_session("local[1]", "expected") as session:
                expected = run_in_one_place(session, pipeline, meters.table)
            wait_for(lambda: results(spec.log, expected) == expected or sites.next_event())
            coordinator.stop()
    assert results(spec.log, expected) == expected
