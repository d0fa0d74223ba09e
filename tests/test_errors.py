from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.errors import (
    Defect,
    Defects,
    InvalidInput,
    MissingExtra,
    StrategyError,
    ThalwegError,
    join_path,
    nearest,
    show_value,
)


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ({}, 'rate: got "x", need a number'),
        ({"path": ""}, 'got "x", need a number'),
        ({"hint": "write one"}, 'rate: got "x", need a number. Hint: write one.'),
        ({"hint": "a?"}, 'rate: got "x", need a number. Hint: a?'),
        ({"file": "a.yaml"}, 'a.yaml: rate: got "x", need a number'),
        ({"file": "a.yaml", "line": 3}, 'a.yaml:3: rate: got "x", need a number'),
        ({"file": "a.yaml", "path": ""}, 'a.yaml: got "x", need a number'),
    ],
)
def test_a_defect_says_where_what_and_what_to_do(parts: dict[str, Any], text: str) -> None:
    assert str(Defect(**{"path": "rate", "value": "x", "rule": "a number", **parts})) == text


def test_every_error_is_one_of_thalweg_s() -> None:
    for error in (InvalidInput, MissingExtra, StrategyError):
        assert issubclass(error, ThalwegError)


def test_an_error_lists_all_its_defects_and_learns_their_file() -> None:
    first = Defect(path="a", value=1, rule="x")
    second = Defect(path="b", value=2, rule="y", file="other.yaml")
    error = InvalidInput([first, second])
    assert error.defects == (first, second)
    assert str(error) == f"{first}\n{second}"
    placed = error.in_file("city.yaml", {"a": 7}.get)
    assert [(d.file, d.line) for d in placed.defects] == [("city.yaml", 7), ("other.yaml", None)]
    assert [d.line for d in error.in_file("city.yaml").defects] == [None, None]


def test_defects_are_collected_and_raised_together() -> None:
    found = Defects()
    assert not found
    found.raise_if_any()
    found.require(True, "a", 1, "fine")
    assert not found
    found.require(False, "a", 1, "not fine", "mend it")
    found.add("b", 2, "worse")
    assert found
    with pytest.raises(InvalidInput) as raised:
        found.raise_if_any()
    assert [(d.path, d.hint) for d in raised.value.defects] == [("a", "mend it"), ("b", "")]


def test_the_defects_of_a_part_are_put_under_its_path() -> None:
    found = Defects()

    def part() -> int:
        raise InvalidInput([Defect(path="rate", value=1, rule="x")])

    assert found.attempt("operators[3]", part) is None
    assert found.attempt("", part) is None
    assert found.attempt("fine", lambda: 7) == 7
    with pytest.raises(InvalidInput) as raised:
        found.raise_if_any()
    assert [d.path for d in raised.value.defects] == ["operators[3].rate", "rate"]


def test_other_errors_of_a_part_are_not_swallowed() -> None:
    def part() -> int:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Defects().attempt("x", part)


@pytest.mark.parametrize(
    ("prefix", "path", "joined"),
    [("a", "b", "a.b"), ("a", "[3].b", "a[3].b"), ("", "b", "b"), ("a", "", "a"), ("", "", "")],
)
def test_paths_are_joined(prefix: str, path: str, joined: str) -> None:
    assert join_path(prefix, path) == joined


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("5 ms", '"5 ms"'),
        ('a"b', '"a\\"b"'),
        ("é", '"é"'),
        ("a\nb\x1b[31m", '"a\\nb\\u001b[31m"'),
        (None, "nothing"),
        (True, "true"),
        (False, "false"),
        (5, "5"),
        (0.1, "0.1"),
        (math.nan, "nan"),
        ({"a": 1, "b": 2}, "a mapping with 2 fields"),
        (10**100, "a whole number of more than 80 digits"),
        (-(10**100), "a whole number of more than 80 digits"),
    ],
)
def test_values_are_shown_as_they_were_written(value: Any, shown: str) -> None:
    assert show_value(value) == shown


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=200),
    lambda inner: st.lists(inner, max_size=12) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=20,
)


@given(anything)
def test_whatever_is_shown_is_short_and_harmless(value: Any) -> None:
    shown = show_value(value)
    assert len(shown) <= 90
    assert shown.isprintable()


def test_a_number_too_long_to_print_is_shown() -> None:
    assert show_value(10**5000) == "a whole number of more than 80 digits"
    assert len(show_value([10**5000])) <= 90


def test_the_nearest_word_is_hinted_at_or_all_if_few() -> None:
    assert nearest("selectivty", ["rate", "selectivity"]) == 'did you mean "selectivity"?'
    assert nearest("zzz", ["rate", "size"]) == "known: rate, size"
    assert nearest("zzz", [f"word-{k}" for k in range(13)]) == ""
    assert nearest("x", []) == ""
    assert nearest("x" * 100_000, ["xx"]) in ('did you mean "xx"?', "known: xx")
