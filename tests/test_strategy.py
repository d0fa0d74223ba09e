from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from importlib.metadata import EntryPoint, EntryPoints
from typing import Any

import pytest

from generators.small import chain_problem
from thalweg.errors import InvalidInput, StrategyError
from thalweg.model import Operator, Placement, Plan, Problem
from thalweg.placement.cloud_only import cloud_only
from thalweg.strategy import (
    broken_strategies,
    find_strategy,
    require_options,
    strategies,
    strategy,
)

# The package has a function of the same name, which `import thalweg.strategy` would give.
registry = import_module("thalweg.strategy")


@pytest.fixture
def problem() -> Problem:
    return chain_problem(Operator(name="t"), rate=1.0, event_size=1.0)


@pytest.fixture(autouse=True)
def own_register(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whatever a test registers is gone after it; the built-in strategies are there."""
    strategies()
    monkeypatch.setattr(registry, "_registered", dict(registry._registered))
    monkeypatch.setattr(registry, "_broken", dict(registry._broken))
    yield
    registry._load_entry_points.cache_clear()


def plug_in(monkeypatch: pytest.MonkeyPatch, **points: str) -> None:
    """Pretend that installed packages offer these entry points."""
    group = registry.ENTRY_POINT_GROUP
    listed = [
        EntryPoint(name=name.replace("_", "-"), value=value, group=group)
        for name, value in points.items()
    ]

    def offered(**selection: Any) -> EntryPoints:
        return EntryPoints(listed).select(**selection)

    monkeypatch.setattr("importlib.metadata.entry_points", offered)
    registry._load_entry_points.cache_clear()


# What the entry points below load.


def plain(problem: Problem, current: Placement | None = None) -> Plan:
    """Everything in the cloud, once more.

    More about it.
    """
    return cloud_only(problem, current)


def undocumented(problem: Problem, current: Placement | None = None) -> Plan:
    return cloud_only(problem, current)


NUMBER = 5


def test_the_first_strategy_is_registered_with_its_description() -> None:
    known = strategies()
    assert known["cloud-only"] == "every movable operator on the cloud that adds least latency"
    assert list(known) == sorted(known)
    assert find_strategy("cloud-only").__wrapped__ is cloud_only


def test_an_unknown_name_gets_a_hint() -> None:
    with pytest.raises(InvalidInput, match='did you mean "cloud-only"') as refused:
        find_strategy("cluod-only")
    (defect,) = refused.value.defects
    assert (defect.path, defect.value) == ("strategy", "cluod-only")


@pytest.mark.parametrize("name", ["", "+", "cloud-only+", "cloud-only++cloud-only", None, 7])
def test_what_is_no_name_is_refused(name: Any) -> None:
    with pytest.raises(InvalidInput, match="the name of a strategy"):
        find_strategy(name)


def test_every_unknown_part_of_a_chain_is_named() -> None:
    with pytest.raises(InvalidInput) as refused:
        find_strategy("x+cloud-only+y")
    assert [defect.value for defect in refused.value.defects] == ["x", "y"]


def test_a_chain_hands_each_placement_to_the_next_and_each_option_to_its_owner(
    problem: Problem,
) -> None:
    calls: list[tuple[str, Placement | None, Any]] = []

    @strategy("first", "starts")
    def first(problem: Problem, current: Placement | None = None, *, depth: int = 1) -> Plan:
        calls.append(("first", current, depth))
        return cloud_only(problem)

    @strategy("second", "goes on")
    def second(problem: Problem, current: Placement | None = None, *, limit: float = 2.0) -> Plan:
        calls.append(("second", current, limit))
        return cloud_only(problem)

    running = Placement.of({"t": "dc/n"})
    plan = find_strategy("first+second")(problem, running, depth=5)
    assert calls == [("first", running, 5), ("second", cloud_only(problem).placement, 2.0)]
    assert plan.strategy == "first+second"
    assert plan.candidates == 2 * cloud_only(problem).candidates
    require_options("first+second", {"depth": 3, "limit": 1.0})
    with pytest.raises(InvalidInput) as refused:
        require_options("first+second", {"detph": 3, "width": 1})
    assert [defect.path for defect in refused.value.defects] == ["detph", "width"]
    assert 'did you mean "depth"' in str(refused.value)
    with pytest.raises(InvalidInput):
        require_options("first", {"limit": 1.0})


def test_a_function_can_be_registered_again_by_its_own_module_only() -> None:
    @strategy("mine", "one")
    def one(problem: Problem, current: Placement | None = None) -> Plan:
        return cloud_only(problem, current)

    @strategy("mine", "two")
    def two(problem: Problem, current: Placement | None = None) -> Plan:
        return cloud_only(problem, current)

    assert strategies()["mine"] == "two"
    assert find_strategy("mine").__wrapped__ is two
    with pytest.raises(StrategyError, match=r"registered by thalweg\.placement\.cloud_only and"):
        strategy("cloud-only", "another")(one)


@pytest.mark.parametrize("name", ["", "a+b", "a b", "../x", "a/b"])
def test_a_strategy_has_a_name(name: str) -> None:
    with pytest.raises(StrategyError, match="cannot name a strategy"):
        strategy(name, "no")(plain)


def test_entry_points_add_strategies(monkeypatch: pytest.MonkeyPatch, problem: Problem) -> None:
    here = plain.__module__
    monkeypatch.setitem(__import__("sys").modules, here, __import__("sys").modules[here])
    plug_in(monkeypatch, plugged=f"{here}:plain", bare=f"{here}:undocumented")
    known = strategies()
    assert known["plugged"] == "Everything in the cloud, once more."
    assert known["bare"] == f"{here}:undocumented"
    assert find_strategy("plugged")(problem).placement == cloud_only(problem).placement
    assert broken_strategies() == {}


def test_an_entry_point_to_what_is_registered_already_adds_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plug_in(monkeypatch, again="thalweg.placement.cloud_only:cloud_only")
    assert "again" not in strategies()
    assert broken_strategies() == {}


def test_a_broken_plug_in_is_reported_and_takes_nobody_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here = plain.__module__
    plug_in(
        monkeypatch,
        a_missing="no_such_package.at_all:function",
        b_nameless=f"{here}:no_such_function",
        c_number=f"{here}:NUMBER",
        cloud_only=f"{here}:undocumented",
        z_good=f"{here}:plain",
    )
    known = strategies()
    assert "z-good" in known
    assert known["cloud-only"] == "every movable operator on the cloud that adds least latency"
    broken = broken_strategies()
    assert sorted(broken) == ["a-missing", "b-nameless", "c-number", "cloud-only"]
    assert "no_such_package" in broken["a-missing"]
    assert "AttributeError" in broken["b-nameless"]
    assert "is int, not a function" in broken["c-number"]
    assert "registered by" in broken["cloud-only"]
    with pytest.raises(InvalidInput, match="its entry point cannot be loaded: ModuleNotFoundError"):
        find_strategy("a-missing")


def test_options_are_keyword_only_parameters() -> None:
    def function(problem: Problem, current: Placement | None = None, *, a: int = 1, b: int) -> Plan:
        return cloud_only(problem, current)

    registered = registry.RegisteredStrategy("x", "y", function, "z")
    assert registered.options == ("a", "b")
    assert registry.RegisteredStrategy("x", "y", cloud_only, "z").options == ()


@pytest.mark.parametrize(
    ("name", "same"),
    [
        ("aels-rp-la", "aels-rp-la-free"),
        ("atsoo", "atsoo-both-ways"),
        ("tcep", "tcep-best-fit"),
        ("tsoo", "tsoo-both-ways"),
    ],
)
def test_plans_of_a_function_with_two_names_carry_the_one_that_was_asked_for(
    problem: Problem, name: str, same: str
) -> None:
    one, other = find_strategy(name)(problem), find_strategy(same)(problem)
    assert (one.strategy, other.strategy) == (name, same)
    assert one == replace(other, strategy=name)
    assert strategies()[name] != strategies()[same]
    chained = find_strategy(f"{same}+improve")(problem, restarts=0)
    assert chained.strategy == f"{same}+improve"
