from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.errors import InvalidInput
from thalweg.units import (
    ALL_DIMENSIONS,
    BANDWIDTH,
    CPU_SPEED,
    DURATION,
    EVENT_RATE,
    LENGTH,
    SIZE,
    WORK,
    WORK_PER_BYTE,
    Dimension,
    format_quantity,
    parse_quantity,
    show_quantity,
)

dimensions = pytest.mark.parametrize("dimension", ALL_DIMENSIONS, ids=lambda d: d.noun)


@dimensions
@given(data=st.data())
def test_what_is_written_is_read_back_exactly(dimension: Dimension, data: st.DataObject) -> None:
    value = data.draw(st.floats(0, dimension.largest))
    assert parse_quantity(format_quantity(value, dimension), dimension) == value


@dimensions
@given(number=st.integers(0, 10**6), data=st.data())
def test_round_numbers_in_any_unit_are_read_back_exactly_and_briefly(
    dimension: Dimension, number: int, data: st.DataObject
) -> None:
    unit = data.draw(st.sampled_from(sorted(dimension.units)))
    text = f"{number} {unit}"
    if number * dimension.units[unit] > dimension.largest:
        return
    value = parse_quantity(text, dimension)
    assert value == number * dimension.units[unit]
    written = format_quantity(value, dimension)
    assert parse_quantity(written, dimension) == value
    assert len(written) <= max(len(text), len(f"{number} {dimension.base}"), len("0 events/s"))


@pytest.mark.parametrize(
    ("text", "dimension", "value"),
    [
        ("5 ms", DURATION, 0.005),
        ("5ms", DURATION, 0.005),
        (" 2 min ", DURATION, 120.0),
        ("1.5 h", DURATION, 5400.0),
        ("250 µs", DURATION, 250e-6),
        ("250 us", DURATION, 250e-6),
        ("1e3 ns", DURATION, 1e3 * 1e-9),
        ("1 d", DURATION, 86400.0),
        ("1 KiB", SIZE, 1024.0),
        ("1 kB", SIZE, 1000.0),
        ("2 GiB", SIZE, 2.0**31),
        ("100 Mbps", BANDWIDTH, 1e8),
        ("1 MB/s", BANDWIDTH, 8e6),
        ("1_000 events/s", EVENT_RATE, 1000.0),
        ("60 /min", EVENT_RATE, 1.0),
        ("4.74 MIPS", CPU_SPEED, 4.74e6),
        ("3 kinstr", WORK, 3000.0),
        ("2 Minstr/MB", WORK_PER_BYTE, 2.0),
        ("1.5 km", LENGTH, 1500.0),
        ("0 s", DURATION, 0.0),
        ("+5 s", DURATION, 5.0),
        ("-0 s", DURATION, 0.0),
    ],
)
def test_quantities_are_read(text: str, dimension: Dimension, value: float) -> None:
    assert parse_quantity(text, dimension) == value


def hint_of(text: Any, dimension: Dimension) -> str:
    with pytest.raises(InvalidInput) as refused:
        parse_quantity(text, dimension, path="here")
    (defect,) = refused.value.defects
    assert (defect.path, defect.value, defect.rule) == ("here", text, dimension.rule)
    return defect.hint


@pytest.mark.parametrize(
    "text",
    ["", " ", "ms", "5", "5 parsecs", "five ms", "-5 ms", "nan ms", "inf s", "1e999 s", "5 ms ms",
     "5,0 ms", "0x10 s", "1e s", ".5 s", "--5 s", "5  ms", "٣ s", "5 MS", "1" * 200 + " s",
     "1e400 s", "1 s\x00", "5 s 3 ms", "1e9999999 s", "1/2 s"],
)  # fmt: skip
def test_other_texts_are_refused(text: str) -> None:
    hint_of(text, DURATION)


@pytest.mark.parametrize(
    "value", [5, 0, 2.5, -1, True, False, None, [], ["5 ms"], {}, ("5 ms",), math.nan, math.inf]
)
def test_a_bare_number_is_refused_like_anything_without_a_unit(value: Any) -> None:
    hint_of(value, DURATION)


@pytest.mark.parametrize(
    ("text", "dimension", "part"),
    [
        (5, DURATION, 'write the unit, e.g. "5 s"'),
        (2.0, SIZE, 'write the unit, e.g. "2 B"'),
        ("5", DURATION, "write the unit, one of s, ms"),
        ("100 MB", BANDWIDTH, '"MB" is a unit of a size; did you mean "MB/s"?'),
        ("5 ms", SIZE, '"ms" is a unit of a duration'),
        ("5 mbps", BANDWIDTH, 'units are case-sensitive: did you mean "Mbps"?'),
        ("5 parsecs", LENGTH, "known units: m, km"),
        ("-1 s", DURATION, "negative and infinite quantities have no meaning here"),
        ("1e300 s", DURATION, "is surely a slip"),
    ],
)
def test_the_hint_says_what_to_do(text: Any, dimension: Dimension, part: str) -> None:
    assert part in hint_of(text, dimension)


@given(st.text(max_size=120), st.sampled_from(ALL_DIMENSIONS))
def test_no_text_raises_anything_else(text: str, dimension: Dimension) -> None:
    try:
        value = parse_quantity(text, dimension)
    except InvalidInput:
        return
    assert 0 <= value <= dimension.largest


numeric_texts = st.text("0123456789_.eE+- ", max_size=20)


@given(numeric_texts, st.sampled_from(sorted(DURATION.units)))
def test_no_number_raises_anything_else(number: str, unit: str) -> None:
    try:
        value = parse_quantity(f"{number} {unit}", DURATION)
    except InvalidInput:
        return
    assert 0 <= value <= DURATION.largest


@pytest.mark.parametrize("text", ["1__0 s", "1_ s", "1_.5 s", "1_e3 s"])
def test_underscores_stand_between_digits_only(text: str) -> None:
    hint_of(text, DURATION)


def test_a_number_too_long_to_print_is_refused_like_any_other() -> None:
    with pytest.raises(InvalidInput):
        parse_quantity(10**5000, DURATION)


@dimensions
def test_numbers_of_numpy_are_written_like_any_other(dimension: Dimension) -> None:
    assert format_quantity(np.float64(math.pi), dimension) == format_quantity(math.pi, dimension)


@dimensions
def test_the_example_and_the_largest_are_quantities(dimension: Dimension) -> None:
    assert parse_quantity(dimension.example, dimension) >= 0
    assert dimension.units[dimension.base] == 1.0
    largest = format_quantity(dimension.largest, dimension)
    assert parse_quantity(largest, dimension) == dimension.largest
    hint_of(format_quantity(dimension.largest * 1.01, dimension), dimension)


@pytest.mark.parametrize(
    ("value", "dimension", "shown"),
    [
        (0.0123456, DURATION, "12.3 ms"),
        (0.0, DURATION, "0 s"),
        (90.0, DURATION, "90 s"),
        (5e-10, DURATION, "0.5 ns"),
        (1234567.0, SIZE, "1.23 MB"),
        (1.5e9, BANDWIDTH, "1.5 Gbps"),
        (math.inf, DURATION, "∞"),
        (5e18, CPU_SPEED, "5,000,000 TIPS"),
    ],
)
def test_quantities_are_shown_with_three_digits(
    value: float, dimension: Dimension, shown: str
) -> None:
    assert show_quantity(value, dimension) == shown


def test_just_below_a_thousand_is_shown_without_an_exponent() -> None:
    assert "e" not in show_quantity(0.9999, DURATION).removesuffix("ms")
