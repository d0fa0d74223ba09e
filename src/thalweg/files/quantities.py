"""Fields that hold quantities with their units: one, a pair, a list or a matrix of them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from thalweg.errors import Defect, Defects, InvalidInput, join_path
from thalweg.files.fields import FieldKind, refuse
from thalweg.files.outline import MOST_DEFECTS
from thalweg.units import (
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
)

UNLIMITED = "unlimited"
"""How a capacity without a bound is written; no other quantity may be infinite."""

MOST_COORDINATES = 16

_NUMBER_PATTERN = r"[+]?[0-9][0-9_]*(\.[0-9]*)?([eE][+-]?[0-9]+)?"

# Of the units that are read, those that people use for links and sources.
_WRITTEN = {
    dimension.noun: replace(dimension, units={u: dimension.units[u] for u in units})
    for dimension, units in (
        (BANDWIDTH, ("bps", "kbps", "Mbps", "Gbps", "Tbps")),
        (EVENT_RATE, ("events/s", "events/min", "events/h")),
    )
}

Matrix = npt.NDArray[np.float64]


def quantity(dimension: Dimension) -> FieldKind:
    """A quantity >= 0."""
    schema = _schema(dimension, "", [dimension.example])
    return FieldKind(lambda value: parse_quantity(value, dimension), dimension.rule, schema)


def capacity(dimension: Dimension) -> FieldKind:
    """A quantity >= 0, or "unlimited"."""
    rule = f'{dimension.rule}, or "{UNLIMITED}"'

    def read(value: object) -> float:
        if isinstance(value, str) and value.strip() == UNLIMITED:
            return math.inf
        try:
            return parse_quantity(value, dimension)
        except InvalidInput as error:
            raise InvalidInput(replace(d, rule=rule) for d in error.defects) from None

    schema = _schema(dimension, f"{UNLIMITED}|", [dimension.example, UNLIMITED])
    return FieldKind(read, rule, schema)


def signed(dimension: Dimension) -> FieldKind:
    """A quantity that may lie on either side of 0."""
    rule = f'{dimension.noun} with its unit, such as "-{dimension.example}"'

    def read(value: object) -> float:
        negative = isinstance(value, str) and value.strip().startswith("-")
        size = value.strip()[1:] if negative and isinstance(value, str) else value
        if negative and str(size)[:1] in ("+", "-"):
            refuse(value, rule, "write a number, a space and a unit")
        try:
            amount = parse_quantity(size, dimension)
        except InvalidInput as error:
            raise InvalidInput(replace(d, value=value, rule=rule) for d in error.defects) from None
        return -amount if negative else amount

    schema = _schema(dimension, "", [dimension.example, f"-{dimension.example}"], sign="-?")
    return FieldKind(read, rule, schema)


def pair_or_one(kind: FieldKind, meaning: str) -> FieldKind:
    """One value for both, or a list of two."""
    rule = f"{kind.rule}, or a list of two: {meaning}"

    def read(value: object) -> tuple[Any, Any]:
        if not isinstance(value, list):
            one = kind.read(value)
            return one, one
        if len(value) != 2:
            refuse(value, rule)
        first, second = _read_each(value, kind.read)
        return first, second

    schema = dict(kind.schema)
    two = {"type": "array", "items": schema, "minItems": 2, "maxItems": 2}
    return FieldKind(read, rule, {"anyOf": [schema, two]})


def several(kind: FieldKind, noun: str, most: int) -> FieldKind:
    """A list of values, at least one."""
    rule = f"a list of 1 to {most} {noun}"

    def read(value: object) -> tuple[Any, ...]:
        if not isinstance(value, list) or not 1 <= len(value) <= most:
            refuse(value, rule)
        return tuple(_read_each(value, kind.read))

    schema = {"type": "array", "items": dict(kind.schema), "minItems": 1, "maxItems": most}
    return FieldKind(read, rule, schema)


def matrix(kind: FieldKind, noun: str) -> FieldKind:
    """A square matrix as a list of rows."""
    rule = f"a square matrix of {noun}: one row, and in it one value, for each site"

    def read(value: object) -> Matrix:
        if not isinstance(value, list) or not any(isinstance(row, list) for row in value):
            refuse(value, rule)
        size = len(value)
        defects = Defects()
        for position, row in enumerate(value):
            if not isinstance(row, list):
                defects.add(f"[{position}]", row, f"a list of {size} {noun}")
            elif len(row) != size:
                hint = f"there are {size} rows, so each has {size} values"
                defects.add(f"[{position}]", f"a row of {len(row)}", f"{size} {noun}", hint)
        defects.raise_if_any()
        return np.array(_read_each(value, lambda row: _read_each(row, kind.read)), dtype=float)

    rows = {"type": "array", "items": dict(kind.schema), "minItems": 1}
    return FieldKind(read, rule, {"type": "array", "items": rows, "minItems": 1})


def matrix_or_one(kind: FieldKind, noun: str) -> FieldKind:
    """A square matrix, or one value for every entry of it."""
    whole_matrix = matrix(kind, noun)
    rule = f"{kind.rule}, or {whole_matrix.rule}"

    def read(value: object) -> Matrix | float:
        found: Matrix | float = (whole_matrix if isinstance(value, list) else kind).read(value)
        return found

    return FieldKind(read, rule, {"anyOf": [dict(kind.schema), dict(whole_matrix.schema)]})


def write_quantity(value: float, dimension: Dimension) -> str:
    """The text that reads back as exactly this value; ∞ is "unlimited".

    >>> write_quantity(2e8, BANDWIDTH), write_quantity(3000, EVENT_RATE)
    ('200 Mbps', '3000 events/s')
    """
    if value == math.inf:
        return UNLIMITED
    return format_quantity(float(value), _WRITTEN.get(dimension.noun, dimension))


def write_signed(value: float, dimension: Dimension) -> str:
    """The text that reads back as exactly this value, with its sign (also that of −0)."""
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    return f"{sign}{format_quantity(abs(float(value)), dimension)}"


def _read_each(values: list[Any], read: Callable[[Any], Any]) -> list[Any]:
    """What each value is read as; stops where there are more defects than anyone reads."""
    found: list[Any] = []
    wrong: list[Defect] = []
    for position, value in enumerate(values):
        try:
            found.append(read(value))
        except InvalidInput as error:
            path = f"[{position}]"
            wrong += [replace(d, path=join_path(path, d.path)) for d in error.defects]
            if len(wrong) > MOST_DEFECTS:
                break
    if wrong:
        raise InvalidInput(wrong)
    return found


def _schema(dimension: Dimension, word: str, examples: list[str], sign: str = "") -> dict[str, Any]:
    units = "|".join(re.escape(unit) for unit in dimension.units)
    number = _NUMBER_PATTERN if not sign else f"{sign}{_NUMBER_PATTERN.removeprefix('[+]?')}"
    return {
        "type": "string",
        "pattern": rf"^\s*({word}{number}\s?({units}))\s*$",
        "examples": examples,
    }


Duration = Annotated[float, quantity(DURATION)]
Size = Annotated[float, quantity(SIZE)]
Bandwidth = Annotated[float, quantity(BANDWIDTH)]
EventRate = Annotated[float, quantity(EVENT_RATE)]
Work = Annotated[float, quantity(WORK)]
WorkPerByte = Annotated[float, quantity(WORK_PER_BYTE)]

CpuCapacity = Annotated[float, capacity(CPU_SPEED)]
MemoryCapacity = Annotated[float, capacity(SIZE)]
LinkCapacity = Annotated[float, capacity(BANDWIDTH)]
LinkCapacities = Annotated[
    tuple[float, float], pair_or_one(capacity(BANDWIDTH), "from a to b, and from b to a")
]

SignedLength = Annotated[float, signed(LENGTH)]
Position = Annotated[tuple[float, ...], several(signed(DURATION), "durations", MOST_COORDINATES)]
DurationMatrix = Annotated[Matrix, matrix(quantity(DURATION), "durations")]
CapacityMatrix = Annotated[Matrix | float, matrix_or_one(capacity(BANDWIDTH), "bandwidths")]
