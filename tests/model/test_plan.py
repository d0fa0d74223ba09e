from __future__ import annotations

import builtins
import json
import math
from dataclasses import FrozenInstanceError, asdict, fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generators.problems import random_placement, random_problem
from thalweg.errors import InvalidInput, MissingExtra
from thalweg.estimate.evaluate import make_plan
from thalweg.model import Estimate, Instance, Placement, Plan, Reason, Violation

ESTIMATE = Estimate(
    aggregate_latency_s=1.5,
    worst_latency_s=0.75,
    path_count=2.0,
    response_time_s=0.5,
    uplink_bps=800.0,
    usage=0.25,
    delay_product_bits=40.0,
)
LACK = Violation(
    constraint="cpu",
    place="fog/a",
    resource="cpu",
    need=3.0,
    have=2.0,
    unit="instr/s",
    operators=("clean", "count@fog"),
)


def plan(instances: Any = None, **changes: Any) -> Plan:
    given: dict[str, Any] = {
        "application": "taxi",
        "network": "city",
        "strategy": "by-hand",
        "placement": Placement.of(
            instances or {"rides": "fog/a", "clean": "fog/a", "store": "cloud"}
        ),
        "hosts": {"fog/a": ("fog", "fog"), "fog/b": ("fog", "fog"), "cloud": ("cloud", "cloud")},
        "objective_name": "aggregate_latency_s",
        "objective": 1.5,
        "estimate": ESTIMATE,
    }
    return Plan(**{**given, **changes})


def test_a_plan_is_frozen_and_time_is_no_part_of_it() -> None:
    with pytest.raises(FrozenInstanceError):
        plan().objective = 0.0  # type: ignore[misc]
    assert plan(seconds=1.0) == plan(seconds=2.0)
    assert plan() != plan(objective=2.0)
    assert plan() != plan({"rides": "fog/a", "clean": "fog/b", "store": "cloud"})


def test_a_plan_that_violates_something_costs_without_bound() -> None:
    assert (plan().feasible, plan().cost) == (True, 1.5)
    broken = plan(violations=(LACK,))
    assert (broken.feasible, broken.cost, broken.objective) == (False, math.inf, 1.5)
    assert plan().aggregate_latency == 1.5


def test_a_violation_says_what_lacks_where_for_whom() -> None:
    assert LACK.excess == 1.0
    assert str(LACK) == "cpu: fog/a: needs 3 IPS of cpu, has 2 IPS (clean, count@fog)"
    pin = replace(LACK, constraint="pin", resource="must run in tier cloud", unit="")
    assert str(pin) == "pin: fog/a: must run in tier cloud (clean, count@fog)"


def test_a_plan_prints_as_a_table_with_its_figures() -> None:
    shown = plan(
        reasons=(Reason(operator="clean", why="near"),),
        violations=(LACK,),
        seconds=0.002,
    )
    assert str(shown).splitlines() == [
        "taxi on city by by-hand: aggregate latency 1.5 s, NOT FEASIBLE",
        "operator  where  tier   why",
        "rides     fog/a  fog",
        "clean     fog/a  fog    near",
        "store     cloud  cloud",
        "cpu: fog/a: needs 3 IPS of cpu, has 2 IPS (clean, count@fog)",
        "",
        "figure             by-hand",
        "aggregate latency  1.5 s",
        "worst latency      750 ms",
        "instances          3 on 2 nodes",
        "feasible           no: cpu",
        "time to plan       2 ms",
    ]


def test_instances_of_one_operator_share_a_row_and_each_reason_is_given_once() -> None:
    sites = [f"s{k}" for k in range(500)]
    instances = [Instance(operator="rides", node=f"{site}/n", origin=site) for site in sites]
    instances += [Instance(operator=name, node="cloud") for name in ("clean", "count", "store")]
    shown = plan(
        instances,
        hosts={**{f"{site}/n": (site, "edge") for site in sites}, "cloud": ("cloud", "cloud")},
        reasons=(
            Reason(operator="rides", why="born there"),
            Reason(operator="clean", why="near"),
            Reason(operator="count", why="pinned"),
            Reason(operator="store", why="near"),
        ),
    )
    assert shown.table() == (
        ["operator", "where", "tier", "why"],
        [
            ["rides × 500", "500 nodes in 500 sites", "edge", "born there"],
            ["clean", "cloud", "cloud", "near"],
            ["count", "cloud", "cloud", "pinned"],
            ["store", "cloud", "cloud", "as for clean"],
        ],
    )
    _, every = shown.table(all_rows=True)
    assert len(every) == 503
    assert every[7] == ["rides", "s7/n", "s7", "s7", "born there"]
    assert every[-1] == ["store", "cloud", "cloud", "", "near"]


def test_replicas_are_shown_together_and_on_request_with_their_origin() -> None:
    shown = plan(
        [
            Instance(operator="a", node="fog/a", origin="fog"),
            Instance(operator="a", node="cloud"),
        ]
    )
    assert shown.table()[1] == [["a × 2", "cloud, fog", "cloud, fog", ""]]
    assert shown.table(all_rows=True) == (
        ["operator", "node", "site", "origin", "why"],
        [["a", "cloud", "cloud", "", ""], ["a", "fog/a", "fog", "fog", ""]],
    )


def test_a_plan_explains_itself() -> None:
    reasons = (
        Reason(
            operator="clean",
            why="least added latency",
            cost=0.125,
            cost_name="added latency [s]",
            considered=3,
            runner_up="fog/b",
            runner_up_cost=0.5,
        ),
    )
    told = plan(reasons=reasons)
    assert told.explain().splitlines() == [
        "rides runs on fog/a",
        "  no reason was recorded",
        "clean runs on fog/a",
        "  least added latency: added latency 125 ms",
        "  considered 3 nodes",
        "  next best: fog/b at 500 ms",
        "store runs on cloud",
        "  no reason was recorded",
        "feasible: every constraint is met",
    ]
    assert told.explain("clean").splitlines()[0] == "clean runs on fog/a"
    with pytest.raises(InvalidInput, match="did you mean"):
        told.explain("claen")
    broken = plan(violations=(LACK, LACK))
    assert "not feasible, 2 constraints are violated:" in broken.explain()
    assert broken.explain().splitlines()[-1] == f"  {LACK}"


def test_many_nodes_are_not_all_listed() -> None:
    many = plan(
        [Instance(operator="a", node=f"fog/{k}", origin=f"s{k}") for k in range(6)],
        hosts={f"fog/{k}": ("fog", "fog") for k in range(6)},
    )
    first = many.explain().splitlines()[0]
    assert first == "a runs on fog/0, fog/1, fog/2, fog/3 and 2 more"


def strict_json(text: str) -> Any:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    return json.loads(text, parse_constant=refuse)


def test_json_holds_everything_and_no_infinity() -> None:
    infinite = replace(ESTIMATE, aggregate_latency_s=math.inf)
    lack = replace(LACK, need=math.inf)
    written = plan(
        estimate=infinite,
        objective=math.inf,
        violations=(lack,),
        reasons=(Reason(operator="clean", why="far", cost=math.inf),),
        gap=0.125,
        candidates=7,
        seconds=0.5,
    )
    read = strict_json(written.to_json())
    assert read["thalweg"] == 1
    assert (read["application"], read["network"], read["strategy"]) == ("taxi", "city", "by-hand")
    assert (read["feasible"], read["objective"], read["gap"]) == (False, "inf", 0.125)
    assert (read["candidates"], read["seconds"]) == (7, 0.5)
    assert read["estimate"] == {**asdict(ESTIMATE), "aggregate_latency_s": "inf"}
    assert read["violations"] == [
        {**asdict(lack), "need": "inf", "operators": ["clean", "count@fog"]}
    ]
    assert read["reasons"][0]["cost"] == "inf"
    assert read["placement"][1] == {
        "operator": "clean",
        "node": "fog/a",
        "site": "fog",
        "tier": "fog",
        "why": "far",
    }


@given(st.integers(0, 2**32 - 1))
def test_every_plan_is_json_and_prints(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = random_problem(rng)
    made = make_plan(problem, random_placement(rng, problem), strategy="random")
    read = strict_json(made.to_json())
    rows = [(r["operator"], r["node"], r.get("origin")) for r in read["placement"]]
    assert rows == [(i.operator, i.node, i.origin) for i in made.placement]
    assert len(read["violations"]) == len(made.violations)
    shown = str(made)
    # A line is wider only where a single word is.
    assert all(len(line) <= 100 or " " not in line.strip() for line in shown.splitlines())
    assert all(operator.name in shown for operator in problem.application.operators)
    assert made.explain()
    assert not made.diff(made)


def test_pandas_gets_a_row_for_each_instance() -> None:
    frame = plan(
        [
            Instance(operator="a", node="fog/a", origin="fog"),
            Instance(operator="a", node="cloud"),
        ],
        reasons=(Reason(operator="a", why="so"),),
    ).to_pandas()
    assert frame.columns.tolist() == ["operator", "node", "site", "tier", "origin", "why"]
    assert frame["node"].tolist() == ["cloud", "fog/a"]
    assert frame["origin"].isna().tolist() == [True, False]
    assert frame["why"].tolist() == ["so", "so"]


def test_without_pandas_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = builtins.__import__

    def no_pandas(name: str, *rest: Any, **more: Any) -> Any:
        if name == "pandas":
            raise ImportError(name)
        return usual(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", no_pandas)
    with pytest.raises(MissingExtra, match=r"thalweg\[pandas\]"):
        plan().to_pandas()


def test_a_difference_lists_moves_starts_stops_and_estimates() -> None:
    older = plan(
        [
            Instance(operator="rides", node="fog/a", origin="fog"),
            Instance(operator="clean", node="fog/a", origin="fog"),
            Instance(operator="clean", node="cloud"),
            Instance(operator="store", node="cloud"),
        ]
    )
    newer = plan(
        [
            Instance(operator="rides", node="fog/a", origin="fog"),
            Instance(operator="clean", node="fog/b", origin="fog"),
            Instance(operator="store", node="cloud"),
            Instance(operator="store", node="fog/b", origin="fog"),
        ],
        estimate=replace(ESTIMATE, usage=0.5, worst_latency_s=math.inf),
    )
    found = older.diff(newer)
    assert found
    assert [asdict(move) for move in found.moved] == [
        {"operator": "clean", "origin": "fog", "before": "fog/a", "after": "fog/b"}
    ]
    assert found.started == (Instance(operator="store", node="fog/b", origin="fog"),)
    assert found.stopped == (Instance(operator="clean", node="cloud"),)
    assert found.estimates == {"worst_latency_s": (0.75, math.inf), "usage": (0.25, 0.5)}
    assert strict_json(json.dumps(found.to_dict(), allow_nan=False))["estimates"] == {
        "worst_latency_s": {"before": 0.75, "after": "inf"},
        "usage": {"before": 0.25, "after": 0.5},
    }
    assert str(found).splitlines() == [
        "change    what           before  after",
        "move      clean for fog  fog/a   fog/b",
        "start     store for fog          fog/b",
        "stop      clean          cloud",
        "estimate  worst latency  750 ms  ∞",
        "estimate  usage          25 %    50 %",
    ]


def test_equal_plans_have_no_difference() -> None:
    same = plan().diff(plan(seconds=9.0))
    assert not same
    assert str(same) == "no difference"


@given(st.integers(0, 2**32 - 1))
def test_applying_a_difference_to_the_older_plan_gives_the_newer(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = random_problem(rng)
    older = make_plan(problem, random_placement(rng, problem), strategy="random")
    newer = make_plan(problem, random_placement(rng, problem), strategy="random")
    found = older.diff(newer)
    running = {(i.operator, i.origin): i.node for i in older.placement}
    for move in found.moved:
        assert running[move.operator, move.origin] == move.before != move.after
        running[move.operator, move.origin] = move.after
    for stopped in found.stopped:
        assert running.pop((stopped.operator, stopped.origin)) == stopped.node
    for started in found.started:
        assert (started.operator, started.origin) not in running
        running[started.operator, started.origin] = started.node
    assert running == {(i.operator, i.origin): i.node for i in newer.placement}
    for field in fields(Estimate):
        pair = getattr(older.estimate, field.name), getattr(newer.estimate, field.name)
        assert found.estimates.get(field.name, (pair[0], pair[0])) == pair
