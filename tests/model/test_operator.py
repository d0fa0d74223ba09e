from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import FrozenInstanceError, replace
from typing import Any

import pytest

from thalweg.errors import InvalidInput
from thalweg.model import CountWindow, Operator, Pin, TimeWindow
from thalweg.model.columns import operator_columns


def defects_of(make: Callable[[], Any]) -> dict[str, str]:
    """Path → rule of everything that is wrong."""
    with pytest.raises(InvalidInput) as refused:
        make()
    return {defect.path: defect.rule for defect in refused.value.defects}


def source(**changes: Any) -> Operator:
    fields = {"name": "s", "kind": "source", "rate": 1.0, "event_size": 1.0}
    return Operator(**{**fields, "pin": Pin(tier="edge"), **changes})


def test_an_operator_is_frozen_and_takes_keywords_only() -> None:
    with pytest.raises(FrozenInstanceError):
        Operator(name="a").name = "b"  # type: ignore[misc]
    with pytest.raises(TypeError):
        Operator("a")  # type: ignore[misc]


@pytest.mark.parametrize(
    "name", ["", "a/b", "..", "a..b", ".a", "-a", "a b", "x" * 65, None, 7, "é"]
)
def test_what_is_not_a_name_is_refused(name: object) -> None:
    assert "name" in defects_of(lambda: Operator(name=name))  # type: ignore[arg-type]


NO_AMOUNT = [-1.0, -1e-300, math.nan, math.inf, -math.inf, True, "5", None, 10**400, 1e19, [1]]


@pytest.mark.parametrize("bad", NO_AMOUNT)
@pytest.mark.parametrize(
    "field",
    [
        "selectivity",
        "compression",
        "memory_factor",
        "cpu_per_event",
        "cpu_per_byte",
        "memory",
        "state",
    ],
)
def test_figures_are_finite_numbers_from_zero_on(field: str, bad: object) -> None:
    assert list(defects_of(lambda: Operator(name="a", **{field: bad}))) == [field]


@pytest.mark.parametrize("bad", [*NO_AMOUNT, 1e16])
@pytest.mark.parametrize("field", ["rate", "event_size"])
def test_a_source_says_how_often_and_how_large(field: str, bad: object) -> None:
    assert list(defects_of(lambda: source(**{field: bad}))) == [field]


def test_events_have_a_size_but_may_come_at_no_rate() -> None:
    assert "event_size" in defects_of(lambda: source(event_size=0))
    assert source(rate=0).rate == 0


def test_a_source_needs_a_pin_and_others_have_no_birth() -> None:
    assert list(defects_of(lambda: source(pin=None))) == ["pin"]
    for kind in ("transform", "sink"):
        found = defects_of(
            lambda kind=kind: Operator(name="a", kind=kind, rate=1.0, event_size=2.0)
        )
        assert list(found) == ["rate", "event_size"]


@pytest.mark.parametrize("kind", ["Source", "", None, [], 3])
def test_kinds_are_three(kind: object) -> None:
    assert "kind" in defects_of(lambda: Operator(name="a", kind=kind))  # type: ignore[arg-type]


def test_a_slip_in_the_kind_gets_a_hint() -> None:
    with pytest.raises(InvalidInput, match='did you mean "transform"'):
        Operator(name="a", kind="transfrom")  # type: ignore[arg-type]


@pytest.mark.parametrize("replicable", [1, 0, "yes", None])
def test_replicable_is_true_or_false(replicable: object) -> None:
    found = defects_of(lambda: Operator(name="a", replicable=replicable))  # type: ignore[arg-type]
    assert list(found) == ["replicable"]


def test_windows_and_pins_are_values_of_their_types() -> None:
    found = defects_of(lambda: Operator(name="a", window=5, pin="edge"))  # type: ignore[arg-type]
    assert list(found) == ["window", "pin"]


def test_everything_wrong_with_an_operator_is_said_at_once() -> None:
    found = defects_of(
        lambda: Operator(
            name="a/b", kind="source", selectivity=-1, state=math.nan, replicable=2, rate=-1
        )  # type: ignore[arg-type]
    )
    assert set(found) == {"name", "selectivity", "state", "replicable", "rate", "event_size", "pin"}


@pytest.mark.parametrize("events", [0, -1, 1.5, True, "3", None, 10**12 + 1, math.nan, math.inf])
def test_a_count_window_has_a_whole_number_of_events(events: object) -> None:
    assert list(defects_of(lambda: CountWindow(events))) == ["events"]  # type: ignore[arg-type]


def test_a_window_of_time_is_read_with_units_and_tumbles_without_a_slide() -> None:
    assert TimeWindow("1 min", "500 ms") == TimeWindow(60, 0.5)
    assert TimeWindow(3).slide == 3.0
    assert replace(TimeWindow(3), slide=1.0) == TimeWindow(3, 1)
    with pytest.raises(FrozenInstanceError):
        TimeWindow(3).length = 4.0  # type: ignore[misc]


@pytest.mark.parametrize(
    ("length", "slide", "paths"),
    [
        (0, None, ["length"]),
        (-1, None, ["length"]),
        (math.nan, None, ["length"]),
        (math.inf, None, ["length"]),
        (True, None, ["length"]),
        (None, None, ["length"]),
        (10**400, None, ["length"]),
        (1e10, None, ["length"]),
        ("5", None, ["length"]),
        ("5 MB", "6", ["length", "slide"]),
        (1, 0, ["slide"]),
        (1, 1.5, ["slide"]),
        (1, math.nan, ["slide"]),
        (1, 5e-324, ["slide"]),
        (0, 0, ["length", "slide"]),
    ],
)
def test_no_other_window_of_time_is_one(length: Any, slide: Any, paths: list[str]) -> None:
    assert list(defects_of(lambda: TimeWindow(length, slide))) == paths


def test_a_pin_names_exactly_one_place() -> None:
    assert defects_of(Pin) == {"": "exactly one of node, site and tier"}
    assert "" in defects_of(lambda: Pin(site="a", tier="edge"))
    assert [str(p) for p in (Pin(node="a/b"), Pin(site="a"), Pin(tier="fog"))] == [
        "node a/b",
        "site a",
        "tier fog",
    ]


@pytest.mark.parametrize("node", ["", "/", "a/", "/a", "a/b/c", "../x", 5, "a//b"])
def test_a_pinned_node_is_a_site_and_a_name(node: object) -> None:
    assert set(defects_of(lambda: Pin(node=node))) == {"node"}  # type: ignore[arg-type]


@pytest.mark.parametrize("tier", ["Edge", "clouds", 2, []])
def test_tiers_are_three(tier: object) -> None:
    assert list(defects_of(lambda: Pin(tier=tier))) == ["tier"]  # type: ignore[arg-type]


def test_columns_hold_every_figure_of_every_operator_in_order() -> None:
    operators = [
        source(name="s", event_size=80.0),
        Operator(
            name="t", selectivity=0.5, compression=2.0, cpu_per_event=3.0, cpu_per_byte=4.0,
            memory=5.0, memory_factor=6.0, state=7.0, replicable=True, window=CountWindow(8),
        ),
        Operator(name="u", kind="sink", window=TimeWindow(9, 3)),
    ]  # fmt: skip
    columns = operator_columns(operators)
    assert columns.is_source.tolist() == [True, False, False]
    assert columns.is_transform.tolist() == [False, True, False]
    assert columns.is_sink.tolist() == [False, False, True]
    for name in (
        "replicable", "selectivity", "compression", "cpu_per_event", "cpu_per_byte", "memory",
        "memory_factor", "state",
    ):  # fmt: skip
        assert getattr(columns, name).tolist() == [getattr(o, name) for o in operators]
    assert columns.event_size.tolist() == [80.0, 0.0, 0.0]
    assert columns.window_events.tolist() == [0.0, 8.0, 0.0]
    assert columns.window_length_s.tolist() == [0.0, 0.0, 9.0]
    assert columns.window_slide_s.tolist() == [0.0, 0.0, 3.0]
    with pytest.raises(ValueError, match="read-only"):
        columns.memory[0] = 1.0
