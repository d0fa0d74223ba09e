"""A study: its rows are what single plans say, and its seeds draw what they are said to."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import thalweg as tw
from thalweg.estimate.evaluate import evaluate
from thalweg.estimate.latency import Latencies, walk_paths, window_time_s
from thalweg.model import Problem
from thalweg.model.application import Limits
from thalweg.scenarios import cloud_edge, fog_cloud, random_application, taxi_demand, taxi_fares
from thalweg.spark.sweep import IN_PROCESS
from thalweg.study.draws import draw_rates
from thalweg.study.families import PLACEMENT, SCHEDULING, family_of
from thalweg.study.planned import count_moved

NAMES = ("aels", "cloud-only", "tcep")
APP, NET = taxi_fares(), fog_cloud(3)
EDGE = cloud_edge(2, 2, 3, seed=1)
PLACED = random_application("stats", EDGE, seed=6)


def draw(seed):
    network = cloud_edge(2, 2, 3, seed=seed)
    return random_application("etl", network, seed=seed), network


def without_time(rows):
    return [{name: value for name, value in row.items() if name != "seconds"} for row in rows]


def require_same(row, plan):
    assert row["feasible"] == plan.feasible
    assert row["objective"] == plan.objective
    assert row["candidates"] == plan.candidates
    for name in (
        "aggregate_latency_s",
        "worst_latency_s",
        "response_time_s",
        "uplink_bps",
        "usage",
    ):
        assert row[name] == getattr(plan.estimate, name)


def test_a_row_is_what_a_plan_of_its_own_says():
    found = tw.study(APP, NET, NAMES, seeds=3, vary={"rates": [1, 2]}, spread=0.25)
    assert len(found.rows) == 3 * 2 * len(NAMES)
    declared = Problem(application=APP, network=NET)
    for row in found.rows:
        drawn = draw_rates(declared, row["seed"], 0.25)
        rates = {pair: rate * row["rates"] for pair, rate in drawn.items()}
        require_same(row, tw.plan(APP, NET, row["strategy"], rates=rates))
        assert row["seconds"] > 0


def test_a_single_seed_is_as_declared_and_a_comparison_the_same_study():
    found = tw.study(PLACED, EDGE, NAMES)
    compared = tw.compare(PLACED, EDGE, NAMES)
    assert without_time(found.rows) == without_time(compared.study.rows)
    assert [row["seed"] for row in found.rows] == [None] * len(NAMES)
    for row, plan in zip(found.rows, compared.plans, strict=True):
        require_same(row, tw.plan(PLACED, EDGE, row["strategy"]))
        assert (row["objective"], row["strategy"]) == (plan.objective, plan.strategy)
    assert set(found.best()) == {plan.strategy for plan in compared.all_best}
    told = compared.to_dict()
    assert [each["strategy"] for each in told["strategies"]] == list(NAMES)
    assert told["best"] == compared.best.strategy


def test_draws_keep_the_mean_and_stay_within_the_spread():
    problem = Problem(application=APP, network=fog_cloud(50))
    declared = problem.birth_rates
    factors = [
        drawn[pair] / rate
        for seed in range(20)
        for drawn in [draw_rates(problem, seed, 0.4)]
        for pair, rate in declared.items()
        if rate > 0
    ]
    assert min(factors) >= 0.6
    assert max(factors) <= 1.4
    # 1,000 uniform draws: the mean's standard error is 0.4 / √3 / √1000 < 0.008.
    assert np.mean(factors) == pytest.approx(1.0, abs=0.04)
    assert np.std(factors) == pytest.approx(0.4 / math.sqrt(3), rel=0.1)
    assert draw_rates(problem, 3, 0.0) == declared


def test_a_function_of_a_seed_draws_the_whole_problem():
    found = tw.study(problems=draw, strategies=["aels"], seeds=[4, 9])
    assert [row["seed"] for row in found.rows] == [4, 9]
    assert found.cases == ("draw",)
    for row in found.rows:
        require_same(row, tw.plan(*draw(row["seed"]), "aels"))
    both = tw.study(problems={"drawn": draw, "fixed": (PLACED, EDGE)}, strategies="aels", seeds=2)
    assert [(row["case"], row["seed"]) for row in both.rows] == [
        ("drawn", 0), ("drawn", 1), ("fixed", 0), ("fixed", 1),
    ]  # fmt: skip


def test_networks_of_one_name_are_told_apart():
    found = tw.study(APP, [NET, fog_cloud(4)], ["cloud-only"])
    assert found.cases == (NET.name, f"{NET.name} (2)")
    assert [table.title.split(":")[0] for table in found.tables()] == [
        f"{APP.name} on {NET.name}", f"{NET.name} (2)",
    ]  # fmt: skip


def test_swept_links_and_options_are_combined():
    vary = {"option.restarts": [0, 2], "bandwidth": [1, 2], "latency": (1, 0.5)}
    found = tw.study(PLACED, EDGE, ["aels", "aels+improve"], vary=vary)
    assert len(found.rows) == 2 * 2 * 2 * 2
    assert [list(row)[4:7] for row in found.rows[:1]] == [list(vary)]
    for row in found.rows:
        network = replace(
            EDGE,
            wan=EDGE.wan.scaled(latency=row["latency"], bandwidth=row["bandwidth"]),
            node_lan_latency_s=EDGE.node_lan_latency_s * row["latency"],
            node_lan_bandwidth_bps=EDGE.node_lan_bandwidth_bps * row["bandwidth"],
            node_lan_available_bps=EDGE.node_lan_available_bps * row["bandwidth"],
        )
        own = {"restarts": row["option.restarts"]} if "improve" in row["strategy"] else {}
        require_same(row, tw.plan(PLACED, network, row["strategy"], **own))


def test_moves_are_counted_from_the_value_before_or_from_what_runs():
    values = [1, 3, 12]
    found = tw.study(APP, NET, ["trcs"], vary={"rates": values})
    declared = Problem(application=APP, network=NET).birth_rates
    plans = [
        tw.plan(APP, NET, "trcs", rates={pair: k * rate for pair, rate in declared.items()})
        for k in values
    ]
    wanted = [None] + [
        len({i.operator for i in set(a.placement) ^ set(b.placement)}) for a, b in pairwise(plans)
    ]
    assert [row["moved"] for row in found.rows] == wanted
    assert any(wanted[1:])
    running = tw.plan(APP, NET, "cloud-only")
    found = tw.study(APP, NET, ["cloud-only", "tsoo"], current=running)
    assert found.rows[0]["moved"] == 0
    plan = tw.plan(APP, NET, "tsoo")
    assert found.rows[1]["moved"] == count_moved(running.placement, plan.placement)


def test_windows_are_told_apart_from_the_rest_of_the_latency():
    app, net = tw.scenarios.small_taxi(), tw.scenarios.small_city()
    problem = Problem(application=app, network=net)
    for row in tw.study(app, net, ["cloud-only", "aels-rp"]).rows:
        found = evaluate(problem, tw.plan(app, net, row["strategy"]).placement)
        service_s = found.latencies.service_s - window_time_s(found.deployment, found.rates)
        paths = walk_paths(found.deployment, Latencies(service_s, found.latencies.communication_s))
        assert row["latency_without_windows_s"] == pytest.approx(sum(p.latency_s for p in paths))
        assert row["latency_without_windows_s"] < row["aggregate_latency_s"]


def test_strategies_that_cannot_take_a_problem_are_listed_with_the_reason():
    found = tw.study(PLACED, EDGE, ["tsoo", "cloud-only"], seeds=2)
    refused = [row for row in found.rows if row["strategy"] == "tsoo"]
    assert [row["feasible"] for row in refused] == [None, None]
    assert "a source born in fog sites" in found.refusals["tsoo"]
    assert "tsoo: no plan" in str(found)
    assert {row["strategy"] for row in found.ranks} <= {"cloud-only"}
    with pytest.raises(tw.InvalidInput, match="a source born in fog sites"):
        tw.study(PLACED, EDGE, ["tsoo"])
    mixed = tw.study(problems=[(PLACED, EDGE), (APP, NET)], strategies=["tsoo", "aels"])
    assert mixed.refusals["tsoo"].startswith("stats-0 on ")


def test_simulated_figures_are_those_of_a_simulation():
    found = tw.study(PLACED, EDGE, ["cloud-only"], seeds=[5], spread=0.2, simulate_s=0.5)
    (row,) = found.rows
    rates = draw_rates(Problem(application=PLACED, network=EDGE), 5, 0.2)
    plan = tw.plan(PLACED, EDGE, "cloud-only", rates=rates)
    wanted = tw.simulate(PLACED, EDGE, plan, seconds=0.5, seed=5, rates=rates)
    assert row["simulated_latency_s"] == wanted.latency_s > 0
    assert row["simulated_p99_s"] == wanted.rows("applications")[0]["latency_p99_s"]


def test_what_is_too_large_to_simulate_is_noted_and_the_rest_stands():
    found = tw.study(PLACED, EDGE, ["cloud-only"], simulate_s=1e9)
    (row,) = found.rows
    assert row["note"].startswith("not simulated: ")
    assert row["feasible"]
    assert row["simulated_latency_s"] is None


def test_the_family_decides_what_is_tried_and_what_is_best():
    city = Problem(application=tw.scenarios.small_taxi(), network=tw.scenarios.small_city())
    assert family_of(Problem(application=APP, network=NET)) is SCHEDULING
    assert family_of(city) is PLACEMENT, "a sink runs below the cloud"
    free = replace(APP, limits=Limits())
    assert family_of(Problem(application=free, network=NET)) is PLACEMENT
    found = tw.study(APP, NET)
    assert found.strategies == SCHEDULING.strategies
    usage = {row["strategy"]: row["usage"] for row in found.rows if row["feasible"]}
    least = min(usage.values())
    assert set(found.best()) == {n for n, u in usage.items() if u == pytest.approx(least, 1e-9)}
    assert tw.study(PLACED, EDGE).strategies == PLACEMENT.strategies


def test_everything_wrong_is_told_at_once():
    with pytest.raises(tw.InvalidInput) as refused:
        tw.study(
            PLACED, [EDGE, EDGE], ["aels", "alse"], seeds=0, vary={"rate": [1], "latency": [0]},
            spread=2, baseline="tcep", current="x", simulate_s=-1, on="cluster-7", restarts=3,
        )  # fmt: skip
    told = str(refused.value)
    for part in (
        "networks", "alse", "seeds", "rates, bandwidth, latency", "vary.latency", "spread",
        "baseline", "current", "simulate_s", "on: ", "restarts",
    ):  # fmt: skip
        assert part in told, part


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ({}, "application"),
        ({"problems": []}, "at least one"),
        ({"problems": 3}, "problems"),
        ({"problems": [EDGE]}, "an application and a network"),
        ({"problems": {"a": (EDGE, PLACED)}}, "problems[a].application"),
        ({"problems": draw, "application": PLACED}, "or an application and networks"),
        ({"problems": draw, "seeds": [1, 1]}, "each once"),
        ({"problems": draw, "strategies": 3}, "a list of names"),
        ({"problems": draw, "vary": {"option.restarts": [1]}, "restarts": 2}, "swept or given"),
        ({"problems": draw, "vary": {"rates": 3}}, "a list of at least one value"),
        ({"problems": draw, "vary": [1]}, "a mapping"),
        ({"application": PLACED, "networks": None}, "network"),
    ],
)
def test_bad_input_is_refused_with_what_is_wrong(arguments, part):
    with pytest.raises(tw.InvalidInput) as refused:
        tw.study(**{"strategies": ["aels+improve"], **arguments})
    assert part in str(refused.value)


def test_pieces_in_a_sweep_give_the_same_rows():
    heard = []
    arguments = {"strategies": ["aels", "cloud-only"], "seeds": 2, "vary": {"rates": [1, 2]}}
    problems = {"drawn": draw, "fogs": (taxi_demand(), NET)}
    swept = tw.study(
        problems=problems, on=IN_PROCESS, on_progress=lambda *told: heard.append(told), **arguments
    )
    plain = tw.study(problems=problems, **arguments)
    assert without_time(swept.rows) == without_time(plain.rows)
    assert heard[-1] == (4, 4)


def test_a_piece_that_raises_is_told():
    def fail(seed):
        raise RuntimeError("no more figures")

    with pytest.raises(RuntimeError, match="no more figures"):
        tw.study(problems=fail, strategies="aels")


@pytest.mark.jvm
def test_a_study_on_spark_gives_the_same_rows():
    pytest.importorskip("pyspark")
    arguments = {"strategies": ["aels", "cloud-only"], "seeds": 2, "vary": {"rates": [1, 2]}}
    found = tw.study(PLACED, EDGE, on="local[2]", **arguments)
    assert without_time(found.rows) == without_time(tw.study(PLACED, EDGE, **arguments).rows)
