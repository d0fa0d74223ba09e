from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from typing import Any

import pytest

import thalweg as tw
from generators.small import chain_problem, place
from thalweg.errors import InvalidInput, StrategyError
from thalweg.model import (
    Limits,
    Link,
    Node,
    Operator,
    Placement,
    Plan,
    Problem,
    Site,
    build_network,
)
from thalweg.placement.cloud_only import cloud_only
from thalweg.planning import (
    PLACEMENT_STRATEGY,
    SCHEDULING_STRATEGY,
    family_strategy,
    plan,
    plan_all,
)
from thalweg.strategy import strategy
from thalweg.testing import conformance_problems

# The package has a function of the same name, which `import thalweg.strategy` would give.
registry = import_module("thalweg.strategy")


@pytest.fixture
def problem() -> Problem:
    return chain_problem(
        Operator(name="t"), rate=10.0, event_size=10.0, limits=Limits(uplink_bps=1000.0)
    )


@pytest.fixture(autouse=True)
def own_register(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    tw.strategies()
    monkeypatch.setattr(registry, "_registered", dict(registry._registered))
    yield


FARES, FOGS = tw.scenarios.taxi_fares(), tw.scenarios.fog_cloud(3)


def pinned(application: tw.Application, operator: str, pin: tw.Pin | None) -> tw.Application:
    operators = [replace(o, pin=pin) if o.name == operator else o for o in application.operators]
    return replace(application, operators=operators)


@pytest.mark.parametrize(
    ("application", "network", "family"),
    [
        pytest.param(FARES, FOGS, SCHEDULING_STRATEGY, id="limits, and cuts"),
        pytest.param(replace(FARES, limits=None), FOGS, PLACEMENT_STRATEGY, id="no limits"),
        pytest.param(
            replace(FARES, limits=Limits(usage=0.9)), FOGS, SCHEDULING_STRATEGY, id="one limit"
        ),
        pytest.param(
            pinned(FARES, "clean", tw.Pin(tier="fog")), FOGS, PLACEMENT_STRATEGY, id="a pin between"
        ),
        pytest.param(
            pinned(FARES, "fare-board", tw.Pin(site="fog-1")),
            FOGS,
            PLACEMENT_STRATEGY,
            id="a sink elsewhere",
        ),
        pytest.param(
            tw.scenarios.small_taxi(),
            tw.scenarios.small_city(),
            PLACEMENT_STRATEGY,
            id="the example of init",
        ),
    ],
)
def test_each_family_has_a_default(
    application: tw.Application, network: tw.Network, family: str
) -> None:
    problem = Problem(application=application, network=network)
    assert family_strategy(problem) == family
    made = plan(application, network)
    assert made.strategy == family
    assert made == plan(application, network, family)
    assert tw.check(made, application, network) == list(made.violations)
    assert plan_all([application], network) == [made]


def test_options_are_held_against_the_strategy_that_plans_by_default() -> None:
    assert plan(FARES, FOGS, compute_weight=0.9).strategy == SCHEDULING_STRATEGY
    with pytest.raises(InvalidInput, match=f"need an option of {SCHEDULING_STRATEGY}"):
        plan(FARES, FOGS, depth=3)
    with pytest.raises(InvalidInput, match=f"need an option of {PLACEMENT_STRATEGY}"):
        plan(replace(FARES, limits=None), FOGS, compute_weight=0.9)


def test_the_default_of_placement_needs_no_cloud() -> None:
    here = Node(name="n", cpu_ips=1e9, memory_bytes=1e9)
    network = build_network(
        "edge",
        [Site(name=name, tier="edge", nodes=(here,)) for name in "ab"],
        [Link(a="a", b="b", latency_s=0.01, bandwidth_bps=1e9)],
    )
    application = tw.Application(
        name="count",
        operators=[
            Operator(name="s", kind="source", rate=1.0, event_size=8.0, pin=tw.Pin(tier="edge")),
            Operator(name="t", cpu_per_event=1e3),
            Operator(name="z", kind="sink"),
        ],
        streams=[tw.Stream(source="s", target="t"), tw.Stream(source="t", target="z")],
    )
    made = plan(application, network)
    assert made.strategy == PLACEMENT_STRATEGY
    assert made.feasible


def test_rates_reach_the_strategy(problem: Problem) -> None:
    app, net = problem.application, problem.network
    assert plan(app, net, "cloud-only").feasible
    # f1 alone: 20/s · 80 bit, and f2's 400 bit/s.
    more = plan(app, net, "cloud-only", rates={("s", "f1"): 20.0})
    assert [(v.constraint, v.need) for v in more.violations] == [("uplink", 2000.0)]
    with pytest.raises(InvalidInput, match="a source and one of its sites"):
        plan(app, net, rates={("s", "dc"): 20.0})


def test_what_runs_now_and_options_reach_the_strategy(problem: Problem) -> None:
    seen: list[Any] = []

    @strategy("curious", "remembers what it is given")
    def curious(problem: Problem, current: Placement | None = None, *, depth: int = 1) -> Plan:
        seen.append((current, depth))
        return cloud_only(problem)

    app, net = problem.application, problem.network
    running = place(problem, {"t": "f1/n", "z": "dc/n"})
    first = plan(app, net, "curious")
    plan(app, net, "curious", current=running, depth=4)
    plan(app, net, "curious", current=first)
    assert seen == [(None, 1), (running, 4), (first.placement, 1)]


def test_an_unknown_option_or_strategy_is_refused(problem: Problem) -> None:
    app, net = problem.application, problem.network
    with pytest.raises(InvalidInput, match="depth: got 3, need an option of cloud-only"):
        plan(app, net, "cloud-only", depth=3)
    with pytest.raises(InvalidInput, match="the name of a strategy"):
        plan(app, net, "clod")


def test_a_strategy_that_returns_no_plan_is_at_fault(problem: Problem) -> None:
    @strategy("forgetful", "returns nothing")
    def forgetful(problem: Problem, current: Placement | None = None) -> Any:
        return None

    with pytest.raises(StrategyError, match="forgetful returned NoneType, not a Plan"):
        plan(problem.application, problem.network, "forgetful")


def test_a_pin_to_nowhere_is_refused_before_planning(problem: Problem) -> None:
    other = chain_problem(
        Operator(name="t"), rate=1.0, event_size=1.0, sink={"pin": tw.Pin(site="dc")}
    )
    net = problem.network.with_available()
    renamed = type(net)(**{**vars_of(net), "site_names": ("f1", "f2", "elsewhere")})
    with pytest.raises(InvalidInput, match=r"operators\[2\]\.pin\.site"):
        plan(other.application, renamed)


def vars_of(network: Any) -> dict[str, Any]:
    """The fields of a network."""
    return {name: getattr(network, name) for name in network.__dataclass_fields__}


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda app, net: tw.plan(net, app), "are application and network swapped?"),
        (lambda app, net: tw.plan(None, None), "a value of the class Network"),
        (lambda app, net: tw.plan(app, net, current=3), "a Plan, a Placement or None"),
        (lambda app, net: tw.plan(app, net, rates=5), r"events/s for \(source, site\) pairs"),
        (lambda app, net: tw.plan(app, net, rates={"rides": 1.0}), r"\(source, site\) pairs"),
        (lambda app, net: tw.check(None, app, net), "a Plan or a Placement"),
        (lambda app, net: tw.check(tw.plan(app, net), net, app), "swapped"),
        (lambda app, net: tw.plan(app, net).diff(3), "a Plan"),
    ],
)
def test_wrong_arguments_are_told_like_any_other_bad_input(call, told) -> None:
    with pytest.raises(tw.InvalidInput, match=told):
        call(tw.scenarios.small_taxi(), tw.scenarios.small_city())


def test_the_default_of_a_family_takes_every_problem_of_it() -> None:
    found = [plan(p.application, p.network).strategy for p in conformance_problems()]
    assert set(found) == {PLACEMENT_STRATEGY, SCHEDULING_STRATEGY}
