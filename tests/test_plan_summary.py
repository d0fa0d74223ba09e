"""A plan's figures beside those of `cloud-only`, against plain sums over its paths."""

from __future__ import annotations

import itertools

import pytest

import thalweg as tw
from thalweg.estimate.evaluate import evaluate
from thalweg.estimate.latency import walk_paths
from thalweg.model import Limits, Operator, Pin, Problem, Stream
from thalweg.model.plan_figures import show_change
from thalweg.plan_summary import summarise
from thalweg.scenarios import cloud_edge, fog_cloud, small_city, small_taxi, taxi_fares


def problem_of(app, net):
    return Problem(application=app, network=net)


def cells(summary):
    names, rows = summary.table()
    return names, {row[0].strip(): row[1:] for row in rows}


def test_figures_of_an_application_with_limits_are_those_that_are_limited():
    problem = problem_of(taxi_fares(), fog_cloud(3))
    plan = tw.plan(problem.application, problem.network, "atsoo")
    names, rows = cells(summarise(plan, problem))
    assert names == ["figure", "atsoo", "cloud-only", "change", "limit"]
    assert list(rows) == [
        "uplink", "response time", "usage", "instances", "feasible", "time to plan"
    ]  # fmt: skip
    cloud = tw.plan(problem.application, problem.network, "cloud-only")
    saved = 100.0 * (1.0 - plan.estimate.uplink_bps / cloud.estimate.uplink_bps)
    assert rows["uplink"][2] == f"-{saved:.1f} %"
    assert rows["uplink"][3] == "1 Gbps"
    assert rows["feasible"] == ["yes", "yes", "", ""]


def test_figures_of_an_application_without_limits_are_its_latencies():
    app = tw.Application(
        name="free", operators=small_taxi().operators, streams=small_taxi().streams
    )
    problem = problem_of(app, small_city())
    plan = tw.plan(app, small_city(), "aels-rp")
    names, rows = cells(summarise(plan, problem))
    assert names == ["figure", "aels-rp", "cloud-only", "change"]
    assert list(rows)[:3] == ["aggregate latency", "without windows", "worst latency"]
    assert "usage" not in rows


@pytest.mark.parametrize("strategy", ["cloud-only", "aels-rp", "tcep"])
def test_the_wait_for_windows_is_what_latencies_without_them_leave_out(strategy):
    problem = problem_of(small_taxi(), small_city())
    plan = tw.plan(problem.application, problem.network, strategy)
    found = summarise(plan, problem).found
    known = evaluate(problem, plan.placement)
    rates = known.rates.events_in
    fill_s = {}
    for at, name in enumerate(known.deployment.instance_name(k) for k in range(rates.size)):
        window = problem.application.operator(name.partition("@")[0]).window
        count = getattr(window, "events", None)
        slide_s = getattr(window, "slide", 0.0)
        fill_s[name] = slide_s + (count / float(rates[at]) if count and rates[at] else 0.0)
    paths = itertools.islice(walk_paths(known.deployment, known.latencies), 10_000)
    waited_s = sum(fill_s[name] for path in paths for name in path.instances)
    assert waited_s > 0
    assert found.window_s == pytest.approx(waited_s)
    assert found.without_windows_s == pytest.approx(plan.aggregate_latency - waited_s)


def test_cloud_only_has_nothing_beside_it():
    problem = problem_of(small_taxi(), small_city())
    plan = tw.plan(problem.application, problem.network, "cloud-only")
    summary = summarise(plan, problem)
    assert (summary.baseline, summary.refusal) == (None, "")
    assert summary.table()[0][:2] == ["figure", "cloud-only"]


def test_where_cloud_only_is_refused_the_summary_says_why():
    network = cloud_edge(0, 2, 3, seed=1)
    app = tw.Application(
        name="near",
        operators=[
            Operator(name="rides", kind="source", rate=10.0, event_size=80.0, pin=Pin(tier="edge")),
            Operator(name="count", cpu_per_event=2000.0),
            Operator(name="show", kind="sink", pin=Pin(tier="edge")),
        ],
        streams=[Stream(source="rides", target="count"), Stream(source="count", target="show")],
    )
    problem = problem_of(app, network)
    summary = summarise(tw.plan(app, network, "aels"), problem)
    assert summary.baseline is None
    assert summary.refusal.startswith("no figures of cloud-only: ")
    assert "at least one cloud" in summary.refusal
    assert summary.table()[0] == ["figure", "aels"]


def test_a_limit_that_is_broken_is_named():
    app = taxi_fares(limits=Limits(response_time_s=0.001))
    problem = problem_of(app, fog_cloud(3))
    plan = tw.plan(app, problem.network, "atsoo")
    _, rows = cells(summarise(plan, problem))
    assert rows["feasible"][0] == "no: response-time"
    assert rows["response time"][3] == "1 ms"


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        (2.0, 1.0, "-50.0 %"),
        (1.0, 1.001, "+0.10 %"),
        (1.0, 1.00001, "same"),
        (float("inf"), float("inf"), "same"),
        (float("inf"), 1.0, ""),
        (1.0, float("inf"), ""),
        (0.0, 1.0, ""),
        (0.0, 0.0, "same"),
        (1.0, 2500.0, "× 2,500"),
    ],
)
def test_changes_are_relative_to_the_first(before, after, shown):
    assert show_change(before, after) == shown
