"""Replays against plain loops that do the same with the parts, one step after the other."""

from __future__ import annotations

import json
import math
from importlib import import_module

import numpy as np
import pyarrow.parquet as pq
import pytest

import thalweg as tw
from thalweg.adapt import LastValue, SeasonalNaive, Trigger, TriggerState, decide, replay
from thalweg.adapt.observation import Observation
from thalweg.errors import InvalidInput
from thalweg.estimate.evaluate import make_plan
from thalweg.model import Limits, Placement
from thalweg.model.workload import Workload
from thalweg.scenarios import fog_cloud, taxi_fares
from thalweg.scheduling.rewrite import count_changes

# The package has a function of the same name, which `import thalweg.strategy` would give.
registry = import_module("thalweg.strategy")
FOGS = 3
APP = taxi_fares(
    limits=Limits(response_time_s=1.0, uplink_bps=300e6, usage=math.inf),
)
NET = fog_cloud(FOGS)
SITES = [f"fog-{k}" for k in range(FOGS)]
LOW, HIGH = 3_000.0, 75_000.0
"""Events/s of each fog: sent raw, 3 × HIGH is above the limit of the uplink, 3 × LOW is not."""


def workload(levels, step_s=1800.0):
    return Workload.of(
        {k * step_s: {("rides", site): level for site in SITES} for k, level in enumerate(levels)}
    )


def problem(rates):
    return tw.Problem(application=APP, network=NET, rates=rates)


@pytest.fixture(autouse=True)
def shy(monkeypatch):
    """`shy` uses the fog only when it must; `stubborn` never does."""
    registry.strategies()  # Loads all, so that they are not loaded into the copy.
    monkeypatch.setattr(registry, "_registered", dict(registry._registered))

    @registry.strategy("shy", "all in the cloud while that holds")
    def shy(problem, current=None):
        in_cloud = stubborn(problem)
        return in_cloud if in_cloud.feasible else registry.find_strategy("ru-min-cut")(problem)

    @registry.strategy("stubborn", "all in the cloud")
    def stubborn(problem, current=None):
        births, columns = problem.births, problem.application.columns
        others = np.flatnonzero(~columns.is_source)
        cloud = problem.network.node_index("cloud")
        placement = Placement.from_indices(
            problem,
            operator=np.concatenate([births.operator, others]),
            node=np.concatenate([births.node, np.full(others.size, cloud)]),
            origin=np.concatenate([births.site, np.full(others.size, -1)]),
        )
        return make_plan(problem, placement, strategy="stubborn", objective_name="usage")


def test_without_a_trigger_every_step_is_planned_anew():
    load = workload([LOW, HIGH, HIGH, LOW])
    found = replay(APP, NET, load, "shy")
    running = None
    for (time_s, rates), step in zip(load, found.steps, strict=True):
        plan = registry.find_strategy("shy")(problem(rates))
        changes = count_changes(APP, running, plan.placement)
        assert step.time_s == time_s
        assert step.adapted
        assert step.reason == (
            "first deployment" if running is None else "planned anew at every step"
        )
        assert step.after.usage == plan.estimate.usage
        assert step.after.violations == plan.violations
        assert (step.started, step.stopped) == (changes.started, changes.stopped)
        running = plan.placement
    assert [step.started + step.stopped > 0 for step in found.steps] == [True, True, False, True]
    assert [step.violated for step in found.steps] == [False, True, False, False]


@pytest.mark.parametrize("strategy", ["shy", "atsoo-both-ways"])
@pytest.mark.parametrize("trigger", [Trigger(), Trigger(usage_most=0.002, rest_s=4000.0)])
def test_a_trigger_keeps_or_adapts_as_a_plain_loop_over_the_steps_does(strategy, trigger):
    rng = np.random.default_rng(1)
    load = workload(rng.choice([LOW, 30_000.0, HIGH, 5 * HIGH], size=30).tolist())
    found = replay(APP, NET, load, strategy, trigger=trigger)
    limits = Limits(response_time_s=1.0, uplink_bps=300e6, usage=trigger.usage_most or math.inf)
    state, running = TriggerState(), None
    adapted = 0
    for (time_s, rates), step in zip(load, found.steps, strict=True):
        posed = problem(rates)
        must = running is None
        if running is not None:
            plan = make_plan(posed, running, strategy="x", objective_name="usage")
            seen = Observation.of(plan, time_s, limits, inputs=tuple(rates.values()))
            decision, state = decide(trigger, state, seen)
            assert step.before == seen
            assert step.reason == decision.reason
            must = decision.adapt
        assert step.adapted == must
        if must:
            adapted += 1
            running = registry.find_strategy(strategy)(posed, running).placement
        after = make_plan(posed, running, strategy="x", objective_name="usage")
        assert step.after == Observation.of(after, time_s, limits, inputs=tuple(rates.values()))
    assert 1 < adapted < len(load)


class Prophet:
    """Knows what comes."""

    def __init__(self, load):
        self.rows = load.rate
        self.seen = []

    def forecast(self, history, ahead_steps):
        self.seen.append(history.copy())
        step = len(history)
        ahead = self.rows[step : step + ahead_steps]
        missing = ahead_steps - len(ahead)
        return np.concatenate([ahead, np.repeat(self.rows[-1:], missing, axis=0)])


def test_who_knows_what_comes_is_never_late():
    load = workload([LOW] * 4 + [HIGH] * 3 + [LOW] * 2)
    late = replay(APP, NET, load, "shy", trigger=Trigger())
    early = replay(APP, NET, load, "shy", trigger=Trigger(), forecaster=Prophet(load))
    assert [k for k, step in enumerate(late.steps) if step.violated] == [4]
    assert not any(step.violated for step in early.steps)
    assert [k for k, step in enumerate(early.steps) if step.ahead] == [3]
    assert "expected in 30 min" in early.steps[3].reason
    assert early.summary()["adaptations_ahead"] == 1


def test_looking_further_ahead_adapts_earlier_and_tells_when():
    load = workload([LOW] * 4 + [HIGH] * 3)
    found = replay(
        APP, NET, load, "shy", trigger=Trigger(), forecaster=Prophet(load), ahead_steps=3
    )
    assert [k for k, step in enumerate(found.steps) if step.ahead] == [1]
    assert "expected in 1.5 h" in found.steps[1].reason


def test_a_short_peak_within_the_horizon_is_not_overlooked():
    load = workload([LOW, HIGH, LOW, LOW])
    there = registry.find_strategy("shy")(problem(dict(load.rates_at(0.0)))).placement
    found = replay(
        APP,
        NET,
        load,
        "shy",
        trigger=Trigger(),
        forecaster=Prophet(load),
        ahead_steps=3,
        current=there,
    )
    assert found.steps[0].ahead
    assert "expected in 30 min" in found.steps[0].reason
    assert not any(step.violated for step in found.steps)


def test_a_forecaster_sees_the_past_and_the_present_only():
    load = workload([LOW, 2 * LOW, HIGH])
    prophet = Prophet(load)
    replay(APP, NET, load, "shy", trigger=Trigger(), forecaster=prophet)
    assert [len(history) for history in prophet.seen] == [1, 2, 3]
    assert all((history == load.rate[: len(history)]).all() for history in prophet.seen)


def test_whoever_adapts_plans_for_what_comes_too():
    load = workload([LOW, HIGH])
    found = replay(APP, NET, load, "shy", forecaster=Prophet(load))
    assert any(found.steps[0].cuts.values())
    assert not any(replay(APP, NET, load, "shy").steps[0].cuts.values())


def test_where_nothing_holds_ahead_the_deployment_that_holds_now_is_kept():
    load = workload([LOW, LOW, HIGH])
    found = replay(APP, NET, load, "stubborn", trigger=Trigger(), forecaster=Prophet(load))
    assert [step.ahead for step in found.steps] == [False, True, False]
    assert [step.started for step in found.steps[1:]] == [0, 0]
    assert found.steps[2].violated


def test_of_what_holds_now_the_least_bad_ahead_is_taken():
    # At 5 times HIGH nothing holds; what is planned for it breaks less than what runs.
    far = 5 * HIGH
    load = workload([LOW, LOW, far])
    posed = problem({("rides", site): far for site in SITES})
    runs, planned = (registry.find_strategy(name)(posed) for name in ("stubborn", "shy"))
    assert 0 < len(planned.violations) < len(runs.violations)
    found = replay(APP, NET, load, "shy", trigger=Trigger(), forecaster=Prophet(load))
    assert found.steps[1].ahead
    assert not found.steps[1].after.broken
    assert found.steps[1].after.deployed == planned.placement.fingerprint
    assert found.steps[2].before.violations == planned.violations


@pytest.fixture
def asked(monkeypatch):
    """The rates that `curious`, which is shy, is asked about."""
    told = []

    @registry.strategy("curious", "shy, and remembers")
    def curious(problem, current=None):
        told.append(problem.births.rate.tolist())
        return registry.find_strategy("shy")(problem)

    return told


def test_plans_are_for_the_larger_of_present_and_expected_rates_site_by_site(asked):
    rows = np.array([[9.0, 1.0, 5.0], [1.0, 8.0, 5.0], [2.0, 3.0, 7.0], [99.0, 99.0, 99.0]]) * 1e3
    load = Workload(
        time_s=np.arange(4.0), births=tuple(("rides", site) for site in SITES), rate=rows
    )
    replay(APP, NET, load, "curious", forecaster=Prophet(load), ahead_steps=2)
    assert asked[0] == [9e3, 8e3, 7e3]
    assert len(asked) == 4


def test_who_cannot_plan_for_what_comes_plans_for_the_present(asked):
    far = 5 * HIGH
    load = workload([LOW, far])
    wide = registry.find_strategy("shy")(problem({("rides", site): far for site in SITES}))
    narrow = registry.find_strategy("shy")(problem(dict(load.rates_at(0.0))))
    assert not wide.feasible
    at_present = problem(dict(load.rates_at(0.0)))
    assert make_plan(at_present, wide.placement, strategy="x").feasible
    found = replay(APP, NET, load, "curious", forecaster=Prophet(load))
    assert asked[:2] == [[far] * FOGS, [LOW] * FOGS]
    assert (
        found.steps[0].after.deployed == narrow.placement.fingerprint != wide.placement.fingerprint
    )


def test_cuts_name_the_operators_of_every_fog():
    found = replay(APP, NET, workload([LOW, HIGH]), "shy")
    assert found.steps[0].cuts == dict.fromkeys(SITES, ())
    plan = registry.find_strategy("shy")(problem({("rides", s): HIGH for s in SITES}))
    names = [o.name for o in APP.operators]
    for site in SITES:
        here = {i.operator for i in plan.placement if i.node == site} - {"rides"}
        assert here
        assert found.steps[1].cuts[site] == tuple(sorted(here, key=names.index))


def test_what_ran_before_is_where_a_replay_starts():
    load = workload([LOW])
    there = registry.find_strategy("shy")(problem(dict(load.rates_at(0.0)))).placement
    found = replay(APP, NET, load, "shy", trigger=Trigger(), current=there).steps[0]
    assert not found.adapted
    assert found.started == found.stopped == 0
    assert found.before == found.after


def test_the_same_replay_twice_is_the_same():
    load = workload([LOW, HIGH, LOW, HIGH])
    a, b = (
        replay(APP, NET, load, "atsoo-both-ways", trigger=Trigger(), forecaster=SeasonalNaive(2))
        for _ in range(2)
    )
    assert a == b


def test_options_reach_the_strategy(monkeypatch):
    @registry.strategy("asks", "takes an option")
    def asks(problem, current=None, *, weight=0.0):
        taken.append(weight)
        return registry.find_strategy("shy")(problem)

    taken = []
    replay(APP, NET, workload([LOW]), "asks", options={"weight": 2.0})
    assert taken == [2.0]


@pytest.mark.parametrize("strategy", ["shy", "atsoo-both-ways", "tsoo-both-ways"])
@pytest.mark.parametrize("forecaster", [None, LastValue(drift=True)])
def test_rates_that_nothing_can_serve_are_recorded_not_raised(strategy, forecaster):
    load = workload([0.0, 1e15, 0.0, LOW])
    found = replay(
        APP, NET, load, strategy, trigger=Trigger(), forecaster=forecaster, ahead_steps=2
    )
    assert found.steps[1].violated
    assert not found.steps[-1].after.broken
    json.dumps(found.to_dict(), allow_nan=False)
    assert "nan" not in str(found)


def test_the_record_sums_up_and_is_saved(tmp_path):
    load = workload([LOW, HIGH, HIGH, LOW])
    found = replay(APP, NET, load, "shy", trigger=Trigger())
    summary = found.summary()
    assert summary["steps"] == 4
    assert summary["adaptations"] == summary["changes"] == 2
    assert summary["steps_violated"] == 1
    assert summary["steps_violated_after"] == 0
    assert summary["started"] == sum(step.started for step in found.steps) > 0
    plain = found.to_dict()
    assert plain["summary"]["steps"] == 4
    assert json.loads(json.dumps(plain, allow_nan=False))["steps"] == plain["steps"]
    assert plain["steps"][1]["violations_before"] != []
    assert plain["steps"][1]["violations_after"] == []
    pq.write_table(found.to_arrow(), tmp_path / "found.parquet")
    back = pq.read_table(tmp_path / "found.parquet")
    assert back.schema.metadata[b"strategy"] == b"shy"
    rows = back.to_pylist()
    assert [row["reason"] for row in rows] == [step.reason for step in found.steps]
    assert dict(rows[1]["cuts"]) == plain["steps"][1]["cuts"]
    assert rows[0]["usage_limit"] == math.inf


def test_the_table_marks_figures_above_their_limit():
    found = replay(APP, NET, workload([LOW, HIGH]), "stubborn", trigger=Trigger(usage_most=0.0))
    names, rows = found.table()
    assert names == [
        "time", "usage", "uplink", "response", "violated", "started", "stopped", "reason"
    ]  # fmt: skip
    assert rows[0][0] == "0 s"
    assert rows[0][1].endswith(" % !")
    assert not rows[0][2].endswith(" !")
    assert rows[1][2].endswith(" !")
    assert rows[0][4] == "0"
    assert rows[1][4] == str(len(found.steps[1].after.broken)) != "0"
    shown = str(found)
    assert shown.startswith(found.headline)
    assert " ".join(shown.split()).endswith(found.outcome)


def test_only_steps_that_change_something_are_rows():
    load = workload([LOW, LOW, HIGH, HIGH, HIGH, LOW, LOW])
    found = replay(APP, NET, load, "shy", trigger=Trigger())
    steps, (_, rows) = found.steps, found.table()
    moved = [step.time_s for step in steps if step.started or step.stopped]
    # The violation that the second rate brings is removed at once; nothing else happens.
    assert moved == [steps[0].time_s, steps[2].time_s]
    assert [row[0] for row in rows] == [f"{int(time_s) // 3600:02}:00" for time_s in moved]
    assert rows[1][4].endswith(" → 0")
    assert len(found.table(all_steps=True)[1]) == len(load)


def test_a_violation_that_lasts_is_a_row_where_it_begins_and_where_it_ends():
    load = workload([LOW, HIGH, HIGH, LOW, LOW])
    found = replay(APP, NET, load, "stubborn", trigger=Trigger())
    violated = [bool(step.after.broken) for step in found.steps]
    assert violated == [False, True, True, False, False]
    times = [row[0] for row in found.table()[1]]
    _, every = found.table(all_steps=True)
    assert every[1][0] in times
    assert every[3][0] in times
    assert every[4][0] not in times


def test_means_are_over_the_steps():
    found = replay(APP, NET, workload([LOW, HIGH]), "stubborn", trigger=Trigger())
    low, high = (step.after for step in found.steps)
    summary = found.summary()
    assert summary["uplink_mean_bps"] == pytest.approx((low.uplink_bps + high.uplink_bps) / 2)
    assert summary["usage_mean"] == pytest.approx((low.usage + high.usage) / 2)


def test_every_problem_of_a_call_is_told_at_once():
    load = Workload.of({0.0: {("rides", "fog-9"): 1.0}})
    with pytest.raises(InvalidInput) as caught:
        replay(APP, NET, load, "shyy", ahead_steps=0)
    paths = [defect.path for defect in caught.value.defects]
    assert paths == ["strategy", "ahead_steps", "births[0].site"]
    with pytest.raises(InvalidInput) as caught:
        replay(APP, NET, workload([1.0]), "shy", options={"speed": 1})
    assert [defect.path for defect in caught.value.defects] == ["speed"]
