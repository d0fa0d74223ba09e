"""Quantities written with their units: the only place that reads or writes "5 ms"."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from thalweg.errors import Defect, InvalidInput

# Bounded repetition: no text can make this pattern slow.
_QUANTITY = re.compile(
    r"([+-]?[0-9]{1,60}(?:_[0-9]{1,60}){0,20}(?:\.[0-9]{0,60})?(?:[eE][+-]?[0-9]{1,4})?)\s?(.*)"
)
_LONGEST_QUANTITY = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Dimension:
    """A kind of quantity: its units, and the range that makes sense for it."""

    noun: str
    base: str
    units: Mapping[str, float]
    example: str
    largest: float

    @property
    def rule(self) -> str:
        """The sentence that says what is needed."""
        return f'{self.noun} >= 0 with its unit, such as "{self.example}"'


DURATION = Dimension(
    noun="a duration",
    base="s",
    units={
        "s": 1.0,
        "ms": 1e-3,
        "us": 1e-6,
        "µs": 1e-6,
        "ns": 1e-9,
        "min": 60.0,
        "h": 3600.0,
        "d": 86400.0,
    },
    example="5 ms",
    largest=3.2e9,  # a century
)
SIZE = Dimension(
    noun="a size",
    base="B",
    units={
        "B": 1.0,
        "kB": 1e3,
        "MB": 1e6,
        "GB": 1e9,
        "TB": 1e12,
        "PB": 1e15,
        "KiB": 2.0**10,
        "MiB": 2.0**20,
        "GiB": 2.0**30,
        "TiB": 2.0**40,
        "PiB": 2.0**50,
    },
    example="2 GiB",
    largest=1e18,
)
BANDWIDTH = Dimension(
    noun="a bandwidth",
    base="bps",
    units={
        "bps": 1.0,
        "kbps": 1e3,
        "Mbps": 1e6,
        "Gbps": 1e9,
        "Tbps": 1e12,
        "B/s": 8.0,
        "kB/s": 8e3,
        "MB/s": 8e6,
        "GB/s": 8e9,
        "TB/s": 8e12,
    },
    example="100 Mbps",
    largest=1e18,
)
EVENT_RATE = Dimension(
    noun="an event rate",
    base="events/s",
    units={
        "events/s": 1.0,
        "/s": 1.0,
        "kevents/s": 1e3,
        "Mevents/s": 1e6,
        "events/min": 1 / 60,
        "/min": 1 / 60,
        "events/h": 1 / 3600,
        "/h": 1 / 3600,
    },
    example="1000 events/s",
    largest=1e15,
)
CPU_SPEED = Dimension(
    noun="a CPU speed",
    base="IPS",
    units={"IPS": 1.0, "kIPS": 1e3, "MIPS": 1e6, "GIPS": 1e9, "TIPS": 1e12},
    example="4.74 MIPS",
    largest=1e18,
)
WORK = Dimension(
    noun="a number of instructions",
    base="instr",
    units={"instr": 1.0, "kinstr": 1e3, "Minstr": 1e6, "Ginstr": 1e9},
    example="5000 instr",
    largest=1e18,
)
WORK_PER_BYTE = Dimension(
    noun="a number of instructions per byte",
    base="instr/B",
    units={"instr/B": 1.0, "kinstr/B": 1e3, "Minstr/MB": 1.0},
    example="1.2 instr/B",
    largest=1e12,
)
LENGTH = Dimension(
    noun="a length",
    base="m",
    units={"m": 1.0, "km": 1e3},
    example="250 m",
    largest=1e9,
)

ALL_DIMENSIONS = (
    DURATION,
    SIZE,
    BANDWIDTH,
    EVENT_RATE,
    CPU_SPEED,
    WORK,
    WORK_PER_BYTE,
    LENGTH,
)


def parse_quantity(text: object, dimension: Dimension, *, path: str = "") -> float:
    """The quantity in base units; raises `InvalidInput` for anything but a number and a unit.

    >>> parse_quantity("5 ms", DURATION), parse_quantity("2 KiB", SIZE)
    (0.005, 2048.0)
    >>> parse_quantity("100 MB", BANDWIDTH, path="links[0].bandwidth")
    Traceback (most recent call last):
    thalweg.errors.InvalidInput: links[0].bandwidth: got "100 MB", need a bandwidth >= 0 with its unit, such as "100 Mbps". Hint: "MB" is a unit of a size; did you mean "MB/s"?
    """  # noqa: E501

    def wrong(hint: str) -> InvalidInput:
        return InvalidInput([Defect(path=path, value=text, rule=dimension.rule, hint=hint)])

    if isinstance(text, (bool, type(None), dict, list, tuple)):
        raise wrong("")
    if isinstance(text, (int, float)):
        raise wrong(f'write the unit, e.g. "{show_number(text)} {dimension.base}"')
    match = _QUANTITY.fullmatch(str(text).strip()) if len(str(text)) <= _LONGEST_QUANTITY else None
    if match is None:
        raise wrong("write a number, a space and a unit")
    number, unit = float(match[1]), match[2]
    if unit not in dimension.units:
        raise wrong(_unit_hint(unit, dimension))
    value = number * dimension.units[unit]
    if value < 0 or not math.isfinite(value):
        raise wrong("negative and infinite quantities have no meaning here")
    if value > dimension.largest:
        raise wrong(f"more than {show_quantity(dimension.largest, dimension)} is surely a slip")
    return value


def format_quantity(value: float, dimension: Dimension) -> str:
    """The shortest text that `parse_quantity` reads back as exactly this value.

    >>> format_quantity(0.005, DURATION), format_quantity(2.0**30, SIZE), format_quantity(0, SIZE)
    ('5 ms', '1 GiB', '0 B')
    """
    best = f"{show_number(value)} {dimension.base}"
    if not math.isfinite(value) or value == 0:
        return best
    for unit, factor in dimension.units.items():
        number = show_number(float(f"{value / factor:.12g}"))
        if len(text := f"{number} {unit}") < len(best) and float(number) * factor == value:
            best = text
    return best


def show_quantity(value: float, dimension: Dimension) -> str:
    """The value with three digits and a fitting unit, for people (not for reading back).

    >>> show_quantity(0.0123456, DURATION), show_quantity(1.5e9, BANDWIDTH)
    ('12.3 ms', '1.5 Gbps')
    >>> show_quantity(1e-15, DURATION)
    '< 0.001 ns'
    """
    if not math.isfinite(value):
        return "∞" if value > 0 else str(value)
    shown = sorted((factor, unit) for unit, factor in dimension.units.items() if unit in _SHOWN)
    fitting = [(f, u) for f, u in shown if _three_digits(value / f) >= 1]
    factor, unit = fitting[-1] if fitting else shown[0]
    if value == 0:
        factor, unit = 1.0, dimension.base
    number = value / factor
    if 0 < abs(number) < 1e-3:
        return f"< 0.001 {unit}"
    text = f"{number:.3g}" if abs(_three_digits(number)) < 1000 else f"{number:,.0f}"
    return f"{text} {unit}"


def show_share(value: float) -> str:
    """A share of one as a percentage with three digits, for people.

    >>> show_share(0.1234), show_share(0.0), show_share(1e-9), show_share(1.0)
    ('12.3 %', '0 %', '< 0.001 %', '100 %')
    """
    if not math.isfinite(value):
        return "∞" if value > 0 else str(value)
    percent = 100.0 * value
    if percent != 0 and abs(percent) < 0.001:
        return "< 0.001 %"
    return f"{percent:.3g} %" if _three_digits(percent) < 1000 else f"{percent:,.0f} %"


def _three_digits(value: float) -> float:
    """The value as it will be shown: 0.9996 is as good as 1."""
    return float(f"{abs(value):.3g}")


# fmt: off
_SHOWN = frozenset({
    "s", "ms", "µs", "ns", "B", "kB", "MB", "GB",
    "TB", "PB", "bps", "kbps", "Mbps", "Gbps", "Tbps", "events/s",
    "kevents/s", "Mevents/s", "IPS", "kIPS", "MIPS", "GIPS", "TIPS", "instr",
    "kinstr", "Minstr", "Ginstr", "instr/B", "m", "km",
})
# fmt: on


def show_number(value: float) -> str:
    """The shortest text of a number: whole numbers without a point."""
    if isinstance(value, int):
        return str(value) if abs(value) < 10**60 else "…"
    number = float(value)
    return str(int(number)) if number.is_integer() and abs(number) < 1e16 else repr(number)


def _unit_hint(unit: str, dimension: Dimension) -> str:
    known = ", ".join(dimension.units)
    if not unit:
        return f"write the unit, one of {known}"
    for other in ALL_DIMENSIONS:
        if other is not dimension and unit in other.units:
            per_second = f"{unit}/s"
            meant = f'; did you mean "{per_second}"?' if per_second in dimension.units else ""
            return f'"{unit}" is a unit of {other.noun}{meant}'
    for candidate in dimension.units:
        if candidate.lower() == unit.lower():
            return f'units are case-sensitive: did you mean "{candidate}"?'
    if any(character.isdigit() or character == "_" for character in unit):
        return "write one number such as 1000 or 2.5, a space and one unit"
    if unit.endswith("Hz") and dimension is CPU_SPEED:
        return f'"{unit}" is a clock rate; write how many instructions it does in a second'
    return f"known units: {known}"
