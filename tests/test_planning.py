from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

import thalweg as tw
from generators.small import chain_problem, place
from thalweg.errors import InvalidInput, StrategyError
from thalweg.model import Limits, Operator, Placement, Plan, Problem
from thalweg.placement.cloud_only import cloud_only
from thalweg.planning import DEFAULT_STRATEGY, plan
from thalweg.strategy import strategy

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


def test_the_default_strategy_answers(problem: Problem) -> None:
    made = plan(problem.application, problem.network)
    assert made == cloud_only(problem)
    assert DEFAULT_STRATEGY in tw.strategies()
    assert tw.plan(problem.application, problem.network, strategy="cloud-only") == made


def test_rates_reach_the_strategy(problem: Problem) -> None:
    app, net = problem.application, problem.network
    assert plan(app, net).feasible
    # f1 alone: 20/s · 80 bit, and f2's 400 bit/s.
    more = plan(app, net, rates={("s", "f1"): 20.0})
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
