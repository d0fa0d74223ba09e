"""Cuts that move under load, on sites that really run: every row once, every aggregate exact."""

from __future__ import annotations

import random
import time
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
