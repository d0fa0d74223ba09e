from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from thalweg.errors import InvalidInput
from thalweg.experiments.claims import claims_table
from thalweg.experiments.migcep import run as migcep_run
from thalweg.experiments.migcep.messages import count_messages
from thalweg.experiments.migcep.reproduce import INSTANCES, reproduce
from thalweg.experiments.migcep.results import Results
from thalweg.experiments.migcep.run import (
    COLUMNS,
    GREEDY,
    MIGCEP,
    OURS,
    STATIC,
    TOGETHER,
    UNCERTAIN,
    list_points,
    uncertain,
)
from thalweg.experiments.migcep.setting import (
    brokers_of,
    connections_of,
    draw_instances,
    predictor_of,
    require_data,
    with_changing_events,
)
from thalweg.migration.approaches import drive_migcep
from thalweg.migration.policies import policy
from thalweg.migration.settings import Settings
from thalweg.spark.sweep import IN_PROCESS

FEW_VEHICLES = 60
FEW = dict.fromkeys(INSTANCES, 2)


def small_city(**options: Any) -> Any:
    given = {"event_bytes": 250.0, "state_bytes": 10_000, "instances": 5, "repetition": 0}
    connections = connections_of("quad", "", FEW_VEHICLES)
    return draw_instances(connections, brokers_of("quad"), **(given | options))


def test_points_are_those_of_the_paper() -> None:
    points = list_points(5, INSTANCES)
    assert len({json.dumps(point, sort_keys=True) for point in points}) == len(points)
    figures = [point["figure"] for point in points]
    assert {name: figures.count(name) for name in figures} == {
        "9a-d": 2 * 2 * 7 * 5,
        "9e": 5 * 5,
        "9f": 5 * 3 * 5,
        "10ab": 7 * 5,
        "10c": 5 * 5,
        "10c-constant": 5,
        "messages": 2 * 7 * 5,
    }
    # Steps of any length look equally far ahead.
    looks = {p["step_s"] * p["horizon"] for p in points if p["figure"] == "9e"}  # type: ignore[operator]
    assert len(looks) == 1


def test_sizes_change_nothing_else_and_repetitions_do() -> None:
    one, other = small_city(), small_city(event_bytes=50.0, state_bytes=60_000)
    assert np.array_equal(one.vehicles, other.vehicles)
    assert np.array_equal(one.start, other.start)
    assert not np.array_equal(one.vehicles, small_city(repetition=1).vehicles)


def test_nothing_is_learned_from_the_vehicles_that_take_part() -> None:
    assert (small_city(unseen=True, instances=20).vehicles % 2 == 1).all()
    assert (small_city(instances=20).vehicles % 2 == 0).any()


def test_without_state_friends_moves_for_nothing() -> None:
    def state(city: Any) -> dict[str, float]:
        return {operator.name: operator.state_bytes for operator in city.graph.operators}

    kept, none = state(small_city()), state(small_city(stateless=True))
    assert none == {"distance": kept["distance"], "friends": 0.0}
    assert kept["friends"] > 0


@pytest.mark.parametrize("interval_s", [1.25, 20.0])
def test_events_change_their_size_every_so_often(interval_s: float) -> None:
    city = with_changing_events(small_city(event_bytes=150.0), interval_s, 0)
    assert city.factor is not None
    events = city.factor * 150.0
    position, distance, friends = range(3)
    assert (events[:, friends] == 150.0).all()
    assert np.array_equal(events[:, position], events[:, distance])
    assert 50.0 <= events.min() < 70.0 and 230.0 < events.max() <= 250.0
    first = city.life[:, 0]
    assert (events[np.arange(city.instances), position, first] == 150.0).all()
    for sizes, begins in zip(events[:, position], first, strict=True):
        changes = set((np.flatnonzero(np.diff(sizes)) + 1).tolist()) - {begins, begins + 1}
        expected = {int(np.ceil(k * interval_s)) for k in range(1, city.ticks)}
        assert changes <= expected
        assert len(changes) > 0.9 * city.ticks / max(interval_s, 1.0) - 3


def test_a_certain_way_leaves_policies_nothing_to_do() -> None:
    city = small_city(unseen=True)
    navigation = predictor_of("navigation", "quad", "", FEW_VEHICLES)
    names = ("weighted-sum", "naive", "temporal")
    drives = [drive_migcep(city, navigation, policy(n), Settings(horizon=100)) for n in names]
    assert len({drive.total for drive in drives}) == 1


def test_messages_are_few_and_repeat() -> None:
    city = small_city(instances=8)
    first, after = count_messages(city, 30, np.random.default_rng(1))
    assert (first >= 3 + 4).all()  # One neighbour hears of a plan, one broker or more is asked.
    assert first.max() < 200
    assert after.mean() < first.mean()
    again = count_messages(city, 30, np.random.default_rng(1))
    assert np.array_equal(first, again[0]) and np.array_equal(after, again[1])


def test_a_folder_without_the_tables_is_refused_with_all_that_lacks(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as caught:
        require_data(tmp_path)
    assert all(n in str(caught.value) for n in ("fcd_compact", "planned_routes", "edges"))
    with pytest.raises(InvalidInput, match="repetitions"):
        reproduce(tmp_path, repetitions=0, master=IN_PROCESS)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A reproduction with a few sizes, instances and vehicles."""
    pytest.importorskip("matplotlib")
    into = tmp_path_factory.mktemp("migcep")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(migcep_run, "STATES", (0, 60_000))
        patch.setattr(migcep_run, "STEPS_S", (1, 4))
        patch.setattr(migcep_run, "HORIZONS", (10, 100))
        patch.setattr(migcep_run, "CHANGES_S", (1.25, 20.0))
        options: dict[str, Any] = {
            "master": IN_PROCESS,
            "repetitions": 1,
            "instances": FEW,
            "vehicles": FEW_VEHICLES,
        }
        yield reproduce(into, **options), options


def test_every_approach_runs_and_none_beats_the_optimum(small: Any) -> None:
    found, _ = small
    assert found.failures == ()
    table = pa.parquet.read_table(found.into / "results.parquet")
    assert table.num_rows == found.rows
    assert set(COLUMNS.names) <= set(table.column_names)
    rows = Results.of(table)
    for figure, names in (
        ("9a-d", {STATIC, GREEDY, MIGCEP, TOGETHER, OURS}),
        (
            "10ab",
            {STATIC, GREEDY, MIGCEP, TOGETHER, OURS, *(uncertain(*both) for both in UNCERTAIN)},
        ),
    ):
        here = rows.of_figure(figure)
        assert set(here.strategies) == names
        for name in names:
            assert (here.ratios(name, OURS) >= 1 - 1e-9).all()
    assert not rows.pick(strategy=STATIC).values("moving_bytes").any()
    assert rows.of_figure("messages").values("first_messages").all()


def test_figures_and_claims_are_written(small: Any) -> None:
    found, _ = small
    assert {path.name for path in found.files} == {
        "results.parquet",
        "fig9.png",
        "fig10.png",
        "claims.json",
    }
    assert all(path.stat().st_size > 0 for path in found.files)
    _, rows = claims_table(found.claims)
    # What disagrees has a reason, and nothing else has.
    assert all(
        (claim.agrees is False) == bool(row[4])
        for claim, row in zip(found.claims, rows, strict=True)
    )
    assert "generated" in found.claims[-1].measured
    json.dumps(found.to_dict(), allow_nan=False)


def test_a_second_reproduction_repeats_nothing_and_says_the_same(small: Any) -> None:
    found, options = small
    again = reproduce(found.into, **options)
    assert again.resumed == again.points == found.points
    assert again.claims == found.claims
