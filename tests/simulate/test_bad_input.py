"""What makes no run is refused before anything runs, and all of it is told together."""

from __future__ import annotations

import math

import pytest

import thalweg as tw
from generators.small import chain_problem, place
from thalweg.errors import InvalidInput
from thalweg.model import Instance, Operator, Placement
from thalweg.model.workload import Workload
from thalweg.simulate import Control, PlanChange, RateChange, SpeedChange, prepare

CPU = {"cpu_ips": 1e9}
HOSTS = {"t": "f1/n", "z": "dc/n"}


def make(**figures):
    given = {"rate": 10.0, "event_size": 100.0, "fogs": 1, "fog": CPU, "cloud": CPU}
    return chain_problem(Operator(name="t", cpu_per_event=1e6), **{**given, **figures})


PROBLEM = make()
APP, NET = PROBLEM.application, PROBLEM.network
PLACED = place(PROBLEM, HOSTS)


def refused(*, app=APP, net=NET, plan=PLACED, **options):
    """The paths of all that is wrong, and the text."""
    with pytest.raises(InvalidInput) as error:
        prepare(app, net, plan, **options)
    return [defect.path for defect in error.value.defects], str(error.value)


def test_what_is_right_is_prepared():
    experiment = prepare(APP, NET, PLACED)
    assert experiment.setting.seconds == 60.0
    assert experiment.setting.warm_s == 6.0


@pytest.mark.parametrize(
    "seconds", [0, 0.0, -1.0, math.nan, math.inf, -math.inf, 1e10, "60", None, True]
)
def test_seconds_that_are_no_duration_are_refused(seconds):
    paths, told = refused(seconds=seconds)
    assert paths == ["seconds"]
    assert "a duration > 0 s" in told


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("replications", [0, -1, 1.5, "3", True, 10**9, None]),
        ("seed", [-1, 0.5, "1", True, 2**63, None]),
        ("most_events", [0, -5, 2.5, 10**10, None]),
    ],
)
def test_what_is_no_whole_number_in_its_range_is_refused(name, values):
    for value in values:
        paths, told = refused(**{name: value})
        assert paths == [name], value
        assert "a whole number from" in told


@pytest.mark.parametrize("warm_up_s", [60.0, 61.0, -1.0, math.nan, math.inf, "1 s"])
def test_a_warm_up_that_is_not_within_the_run_is_refused(warm_up_s):
    paths, _ = refused(warm_up_s=warm_up_s)
    assert paths == ["warm_up_s"]


def test_all_of_that_is_told_together():
    paths, _ = refused(seconds=-1, replications=0, seed=-1, most_events=0)
    assert paths == ["seconds", "replications", "seed", "most_events"]
    paths, _ = refused(warm_up_s=99.0, replications=0, plan=[PLACED, PLACED])
    assert paths == ["warm_up_s", "replications", "plan"]


def test_a_plan_for_something_else_is_refused():
    other = make(fogs=2)
    renamed = tw.model.Application(name="else", operators=APP.operators, streams=APP.streams)
    found = tw.plan(renamed, NET, "cloud-only")
    paths, told = refused(plan=found)
    assert paths == ["plan.application"]
    assert '"app"' in told
    elsewhere = tw.model.build_network(
        "elsewhere",
        [
            tw.model.Site(
                name="dc",
                tier="cloud",
                nodes=(tw.model.Node(name="n", cpu_ips=1e9, memory_bytes=1e12),),
            ),
            tw.model.Site(
                name="f1",
                tier="fog",
                nodes=(tw.model.Node(name="n", cpu_ips=1e9, memory_bytes=1e12),),
            ),
        ],
        [tw.model.Link(a="f1", b="dc", latency_s=0.1, bandwidth_bps=1e6)],
    )
    paths, _ = refused(plan=tw.plan(APP, elsewhere, "cloud-only"))
    assert paths == ["plan.network"]
    paths, _ = refused(plan=tw.plan(renamed, elsewhere, "cloud-only"))
    assert paths == ["plan.application", "plan.network"]
    assert other.network.site_count == 3


def placed(*instances):
    return Placement.of(
        Instance(operator=operator, node=node, origin=origin)
        for operator, node, origin in instances
    )


@pytest.mark.parametrize(
    ("instances", "told"),
    [
        ([("s", "f1/n", "f1"), ("t", "f9/n", None), ("z", "dc/n", None)], "f9/n"),
        ([("s", "f1/n", "f1"), ("t", "dc/n", None)], "z"),
        ([("s", "f1/n", "f1"), ("z", "dc/n", None)], "t"),
        ([("t", "f1/n", None), ("z", "dc/n", None)], "s"),
        (
            [("s", "f1/n", "f1"), ("t", "dc/n", None), ("z", "dc/n", None), ("u", "dc/n", None)],
            "u",
        ),
        ([("s", "f1/n", "f9"), ("t", "dc/n", None), ("z", "dc/n", None)], "f9"),
    ],
)
def test_a_placement_that_does_not_fit_is_refused(instances, told):
    _, text = refused(plan=placed(*instances))
    assert told in text


def test_every_application_needs_a_plan_and_a_name():
    paths, told = refused(app=[APP], plan=[PLACED, PLACED])
    assert paths == ["plan"]
    assert "2 plans" in told
    assert refused(app=[], plan=[])[0] == ["plan"]
    assert refused(app=[APP, APP], plan=[PLACED, PLACED])[0] == ["application"]
    assert refused(app=[APP, APP], plan=[PLACED])[0] == ["plan", "application"]


@pytest.mark.parametrize(
    "rates", [{("s", "nowhere"): 1.0}, {("t", "f1"): 1.0}, {("s", "f1"): -1.0}, {"s": 1.0}]
)
def test_rates_of_nobody_are_refused(rates):
    _, told = refused(rates=rates)
    assert "rates" in told


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (SpeedChange(at_s=60.0, node="f1/n"), ".at_s"),
        (RateChange(at_s=61.0, rates={}), ".at_s"),
        (PlanChange(at_s=1e6, plan=PLACED), ".at_s"),
        (SpeedChange(at_s=1.0, node="f7/n"), ".node"),
        (SpeedChange(at_s=1.0, link=("f1", "f7")), ".link"),
        (SpeedChange(at_s=1.0, link=("f1", "f1")), ".link"),
        (RateChange(at_s=1.0, rates={}, application="nobody"), ".application"),
        (PlanChange(at_s=1.0, plan=PLACED, application="nobody"), ".application"),
        ("tomorrow", ""),
    ],
)
def test_a_change_that_cannot_be_is_refused(change, path):
    paths, _ = refused(changes=[SpeedChange(at_s=1.0, node="f1/n"), change])
    assert paths == [f"changes[1]{path}"]


def test_changes_to_plans_and_rates_that_do_not_fit_are_refused():
    lacking = placed(("s", "f1/n", "f1"), ("t", "dc/n", None))
    paths, told = refused(
        changes=[
            PlanChange(at_s=1.0, plan=lacking),
            RateChange(at_s=2.0, rates={("s", "f7"): 1.0}),
            SpeedChange(at_s=3.0, node="f7/n"),
            SpeedChange(at_s=99.0, link=("f1", "dc")),
        ]
    )
    assert {path.partition("]")[0] for path in paths} == {f"changes[{k}" for k in range(4)}
    assert "f7" in told


def test_a_link_that_is_several_is_refused():
    far = make(fogs=2)
    with pytest.raises(InvalidInput, match="two sites that one link joins"):
        prepare(
            far.application,
            far.network,
            place(far, HOSTS),
            changes=[SpeedChange(at_s=1.0, link=("f1", "f2"))],
        )


@pytest.mark.parametrize(
    "make_change",
    [
        lambda: SpeedChange(at_s=-1.0, node="f1/n"),
        lambda: SpeedChange(at_s=math.nan, node="f1/n"),
        lambda: SpeedChange(at_s=1.0),
        lambda: SpeedChange(at_s=1.0, node="f1/n", link=("f1", "dc")),
        lambda: SpeedChange(at_s=1.0, node="f1/n", speed=-0.5),
        lambda: SpeedChange(at_s=1.0, node="f1/n", speed=math.nan),
        lambda: SpeedChange(at_s=1.0, node="f1/n", speed=0.5, loses=True),
        lambda: RateChange(at_s=1.0, rates={("s", "f1"): -1.0}),
        lambda: RateChange(at_s=1.0, rates={("s", "f1"): math.inf}),
        lambda: PlanChange(at_s=1.0, plan="plan.json"),
    ],
)
def test_a_change_that_makes_no_sense_is_refused_at_once(make_change):
    with pytest.raises(InvalidInput):
        make_change()


def test_a_workload_for_somebody_else_is_refused():
    load = Workload.of({0.0: {("s", "f7"): 5.0}, 10.0: {("s", "f7"): 6.0}})
    _, told = refused(workload=load)
    assert "f7" in told


def test_a_strategy_and_options_that_do_not_exist_are_refused():
    paths, told = refused(control=Control(strategy="atso"))
    assert all(path.startswith("control") for path in paths)
    assert 'did you mean "atsoo"?' in told
    _, told = refused(control=Control(options={"speed": 3}))
    assert "speed" in told


def test_a_physics_of_another_kind_is_refused():
    assert refused(physics="fast")[0] == ["physics"]


def test_changes_workload_control_and_size_are_told_together():
    paths, _ = refused(
        changes=[SpeedChange(at_s=99.0, node="f7/n")],
        control=Control(strategy="atso"),
        rates={("s", "f1"): 1e14},
    )
    assert "changes[0].at_s" in paths
    assert "changes[0].node" in paths
    assert "seconds" in paths
    assert any(path.startswith("control") for path in paths)


def test_a_run_that_nobody_would_live_to_see_is_refused():
    paths, told = refused(rates={("s", "f1"): 1e12})
    assert paths == ["seconds"]
    assert "hops" in told
    assert refused(seconds=1e9, replications=1000)[0] == ["seconds"]


@pytest.mark.parametrize("way", ["changes", "workload"])
def test_a_run_that_gets_too_large_on_the_way_is_refused(way):
    rates = {("s", "f1"): 1e14}
    if way == "changes":
        options = {"changes": [RateChange(at_s=1.0, rates=rates)]}
    else:
        options = {"workload": Workload.of({0.0: {("s", "f1"): 5.0}, 1.0: rates})}
    paths, _ = refused(**options)
    assert "seconds" in paths


def test_a_warm_up_that_is_true_or_false_is_refused():
    assert refused(warm_up_s=True)[0] == ["warm_up_s"]


def test_an_interval_that_is_a_text_is_refused():
    with pytest.raises(InvalidInput, match="interval_s"):
        Control(interval_s="10 s")


def test_looks_without_number_are_refused():
    """10¹⁴ looks in 60 s."""
    with pytest.raises(InvalidInput, match=r"interval_s.*0\.001 s"):
        Control(interval_s=6e-13)
