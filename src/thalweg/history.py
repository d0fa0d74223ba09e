"""Was every event counted once? What came out of a sink against what should have.

A history is what a sink got, publication after publication, in the order in which readers saw it.
Against the rows that were to come it shows what is lost, what came twice, what has another value
than it should, what nobody asked for, and what came after it was promised that no such row would.

The checker is slow and obvious on purpose: it shares no code with anything that it checks.

>>> import pyarrow as pa
>>> wanted = Expectation(rows=pa.table({"ride": [1, 2, 3], "fare": [5, 6, 7]}), key=("ride",))
>>> came = [Publication(rows=pa.table({"ride": [1, 2], "fare": [5, 9]})),
...         Publication(rows=pa.table({"ride": [1], "fare": [5]}))]
>>> print(check_history(wanted, came))
3 rows came of 3: 1 lost, 1 duplicated, 1 wrong
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from math import isclose, isnan
from typing import Any

import pyarrow as pa

from thalweg.errors import Defects, nearest

FAULTS = ("lost", "duplicated", "wrong", "unknown", "late")
_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """The rows that a sink should get, each once.

    `key` are the columns that tell one row from another; rows that are the same in all columns may
    be there several times, and should then come as often. `due` is the column that says when a row
    happened, or a window, which has happened at its end; with it, what came too late is found.
    `tolerance` is how far floating-point numbers may be off, as a part of their value.
    """

    rows: pa.Table
    key: tuple[str, ...]
    due: str | None = None
    tolerance: float = 0.0

    def __post_init__(self) -> None:
        defects = Defects()
        names = self.rows.column_names
        # A table without rows need not have columns either.
        for column in self.key if self.rows.num_rows else ():
            hint = nearest(column, names)
            defects.require(column in names, "key", column, "a column of the rows", hint)
        defects.require(bool(self.key), "key", self.key, "at least one column")
        if self.due is not None and self.rows.num_rows:
            hint = nearest(self.due, names)
            defects.require(self.due in names, "due", self.due, "a column of the rows", hint)
        good = 0.0 <= self.tolerance < 1.0
        defects.require(good, "tolerance", self.tolerance, "a number from 0 to 1")
        known: dict[Hashable, Any] = {}
        for row in () if defects else self.rows.to_pylist():
            if not _same(known.setdefault(_key_of(row, self.key), row), row, 0.0):
                defects.add("rows", _show(row), "rows that differ have keys that differ")
                break
        defects.raise_if_any()


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """Rows that a sink got at once, and what was promised together with them."""

    rows: pa.Table
    complete_ms: int | None = None
    """No row that happened before this time will follow [ms since 1970]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How a history differs from what should have been.

    - `lost`: rows that should have come and did not.
    - `duplicated`: rows too many of a key that should have come once.
    - `wrong`: keys that came with other values.
    - `unknown`: rows of a key that should not have come at all.
    - `late`: rows that came after it was promised that none so old would.
    """

    expected: int
    found: int
    lost: int = 0
    duplicated: int = 0
    wrong: int = 0
    unknown: int = 0
    late: int = 0
    examples: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """A few rows of each fault."""

    @property
    def is_right(self) -> bool:
        """Whether every row came once, in time, as it should."""
        return not any(getattr(self, fault) for fault in FAULTS)

    def __str__(self) -> str:
        faults = [f"{getattr(self, f):,} {f}" for f in FAULTS if getattr(self, f)]
        told = f"{self.found:,} rows came of {self.expected:,}"
        return f"{told}: {', '.join(faults)}" if faults else f"{told}: each once, as it should be"

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        names = ("expected", "found", *FAULTS)
        shown = {fault: list(rows) for fault, rows in self.examples.items()}
        return {**{name: getattr(self, name) for name in names}, "examples": shown}


def check_history(
    expectation: Expectation,
    publications: Iterable[Publication],
    *,
    upto_ms: int | None = None,
) -> Verdict:
    """What is wrong with a history; with `upto_ms`, rows that happen later may be still to come."""
    key, due = expectation.key, expectation.due
    rows = expectation.rows.to_pylist()
    wanted = {_key_of(row, key): row for row in rows}
    counts = Counter(_key_of(row, key) for row in rows)
    seen: Counter[Hashable] = Counter()
    faults: dict[str, list[str]] = {fault: [] for fault in FAULTS}
    promised_ms: int | None = None
    for publication in publications:
        for row in publication.rows.to_pylist():
            this = _key_of(row, key)
            seen[this] += 1
            # Of what is not due yet, others may know more than who expects it.
            is_due = upto_ms is None or due is None or _happened_us(row[due]) < upto_ms * 1000
            if this not in wanted:
                if is_due:
                    faults["unknown"].append(_show(row))
            elif seen[this] > counts[this]:
                faults["duplicated"].append(_show(row))
            elif is_due and not _same(row, wanted[this], expectation.tolerance):
                faults["wrong"].append(f"{_show(row)}, not {_show(wanted[this])}")
            if (
                due is not None
                and promised_ms is not None
                and _happened_us(row[due]) < (promised_ms * 1000)
            ):
                faults["late"].append(_show(row))
        if publication.complete_ms is not None:
            promised_ms = max(publication.complete_ms, promised_ms or publication.complete_ms)
    for this, row in wanted.items():
        is_due = upto_ms is None or due is None or _happened_us(row[due]) < upto_ms * 1000
        if is_due and seen[this] < counts[this]:
            faults["lost"] += [_show(row)] * (counts[this] - seen[this])
    return Verdict(
        expected=len(rows),
        found=seen.total(),
        **{fault: len(found) for fault, found in faults.items()},
        examples={fault: tuple(found[:_SHOWN]) for fault, found in faults.items() if found},
    )


def _key_of(row: Mapping[str, Any], key: tuple[str, ...]) -> Hashable:
    return tuple(_hashable(row[column]) for column in key)


def _hashable(value: Any) -> Hashable:
    """A value that can be looked up: structures as pairs, lists as tuples, no number twice."""
    if isinstance(value, Mapping):
        return tuple((name, _hashable(inner)) for name, inner in sorted(value.items()))
    if isinstance(value, (list, tuple)):
        return tuple(map(_hashable, value))
    if isinstance(value, float) and isnan(value):
        # It is not equal to itself; a key has to be.
        return "nan"
    if isinstance(value, datetime):
        return _micros(value)
    return value  # type: ignore[no-any-return]


def _same(row: Any, wanted: Any, tolerance: float) -> bool:
    if isinstance(row, Mapping) and isinstance(wanted, Mapping):
        names = row.keys() == wanted.keys()
        return names and all(_same(row[name], wanted[name], tolerance) for name in row)
    if isinstance(row, list) and isinstance(wanted, list):
        pairs = zip(row, wanted, strict=False)
        return len(row) == len(wanted) and all(_same(a, b, tolerance) for a, b in pairs)
    if isinstance(row, float) and isinstance(wanted, float):
        both_nan = isnan(row) and isnan(wanted)
        return both_nan or isclose(row, wanted, rel_tol=tolerance, abs_tol=0.0)
    return bool(_hashable(row) == _hashable(wanted))


def _happened_us(value: Any) -> int:
    """When a row happened; a window does not contain its end, so that is a moment before."""
    if isinstance(value, Mapping):
        return _micros(value["end"]) - 1
    return _micros(value)


def _micros(value: datetime) -> int:
    """Microseconds since 1970, exact; a time without a zone is in UTC."""
    aware = value if value.tzinfo else value.replace(tzinfo=UTC)
    passed = aware - datetime(1970, 1, 1, tzinfo=UTC)
    return (passed.days * 86_400 + passed.seconds) * 1_000_000 + passed.microseconds


def _show(row: Mapping[str, Any]) -> str:
    """A row in a few words: "ride 7, fare 5"."""
    return ", ".join(f"{name} {_show_value(value)}" for name, value in row.items())


def _show_value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "–".join(_show_value(inner) for inner in value.values())
    return value.isoformat() if isinstance(value, (datetime, date)) else str(value)
