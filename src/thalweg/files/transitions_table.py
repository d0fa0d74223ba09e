"""How often vehicles went from leaf to leaf, as a table: checked, saved and read again."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from thalweg.errors import Defect, Defects, InvalidInput
from thalweg.files.vehicle_table import Columns, Field, Whole, natural_order, read_columns
from thalweg.files.workload_csv import MOST_ROWS_TOLD, show_file
from thalweg.model.figures import freeze
from thalweg.model.graph import Floats, Index

NONE = -1
"""In place of a leaf: before the first and after the last one of a trip."""
_FIELDS = (
    Field(("previous",), "text"),
    Field(("leaf",), "text"),
    Field(("next",), "text"),
    Field(("count",)),
    Field(("stay_s",)),
    Field(("spread_s",)),
)
_MOST_COUNT = 2.0**53
Change = tuple[str, str, str]
Figures = tuple[int, float, float]


@dataclass(frozen=True, eq=False, kw_only=True)
class TransitionTable:
    """How often vehicles went from `previous` over `leaf` to `next`, and how long they stayed.

    Places are positions in `leaves`, or `NONE`: a trip that begins or ends there.

    >>> table = TransitionTable.of_rows(
    ...     {("", "a", "b"): (3, 20.0, 4.0), ("a", "b", ""): (1, 5.0, 0.0)}
    ... )
    >>> table
    <TransitionTable: 4 stays in 2 leaves>
    >>> table.rows()[("", "a", "b")]
    (3, 20.0, 4.0)
    """

    leaves: tuple[str, ...]
    previous: Index
    leaf: Index
    next: Index
    count: npt.NDArray[np.int64]
    stay_s: Floats
    """The mean, from the arrival in the leaf to that in the next one, or to the end of the trip."""
    spread_s: Floats
    """The standard deviation of these stays; 0 where there was but one."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "leaves", tuple(self.leaves))
        defects = Defects()
        named = all(self.leaves) and len(set(self.leaves)) == len(self.leaves)
        defects.require(
            named, "leaves", "an empty name or one twice", "each leaf once, by its name"
        )
        for name, least in (("previous", NONE), ("leaf", 0), ("next", NONE)):
            places = getattr(self, name)
            good = places.shape == self.leaf.shape and places.ndim == 1
            good = good and bool(((places >= least) & (places < len(self.leaves))).all())
            defects.require(good, name, "no such leaf", f"places {least}…{len(self.leaves) - 1}")
        for name, most in (("count", _MOST_COUNT), ("stay_s", np.inf)):
            figures = getattr(self, name)
            good = figures.shape == self.leaf.shape
            good = good and bool(((figures > 0) & (figures < most)).all())
            defects.require(good, name, figures.shape, "a finite number > 0 for each row")
        good = self.spread_s.shape == self.leaf.shape
        good = good and bool(((self.spread_s >= 0) & (self.spread_s < np.inf)).all())
        defects.require(good, "spread_s", self.spread_s.shape, "a finite number >= 0 for each row")
        defects.raise_if_any()
        stays = self.leaf[(self.leaf == self.next) | (self.leaf == self.previous)]
        defects.require(
            stays.size == 0, "next", "the leaf itself", "another leaf", "join the stays"
        )
        rows = np.unique(np.stack([self.previous, self.leaf, self.next]), axis=1).shape[1]
        defects.require(rows == self.leaf.size, "leaf", "a row twice", "each change once")
        defects.raise_if_any()
        freeze(self)

    def __repr__(self) -> str:
        stays, leaves = int(self.count.sum()), len(self.leaves)
        return f"<{type(self).__name__}: {stays} stays in {leaves} leaves>"

    @classmethod
    def of_rows(cls, rows: Mapping[Change, Figures]) -> Self:
        """From (count, mean stay, its spread) by (previous, leaf, next).

        "" stands for none, where a trip begins or ends. Leaves are ordered as people count,
        rows by leaf, previous and next.
        """
        names = sorted({name for change in rows for name in change} - {""})
        leaves = tuple(names[k] for k in natural_order(names))
        place = {name: k for k, name in enumerate(leaves)} | {"": NONE}
        found = sorted(
            (place[leaf], place[previous], place[after], *figures)
            for (previous, leaf, after), figures in rows.items()
        )
        columns = zip(*found, strict=True) if found else [()] * 6
        leaf, previous, after, count, stay_s, spread_s = columns
        return cls(
            leaves=leaves,
            previous=np.array(previous, dtype=np.int32),
            leaf=np.array(leaf, dtype=np.int32),
            next=np.array(after, dtype=np.int32),
            count=np.array(count, dtype=np.int64),
            stay_s=np.array(stay_s, dtype=float),
            spread_s=np.array(spread_s, dtype=float),
        )

    def rows(self) -> dict[Change, Figures]:
        """(count, mean stay, its spread) by the names of (previous, leaf, next)."""
        names = (*self.leaves, "")
        places = (self.previous.tolist(), self.leaf.tolist(), self.next.tolist())
        figures = (self.count.tolist(), self.stay_s.tolist(), self.spread_s.tolist())
        changes = ((names[a], names[b], names[c]) for a, b, c in zip(*places, strict=True))
        return dict(zip(changes, zip(*figures, strict=True), strict=True))


def save_transitions(table: TransitionTable, path: str | os.PathLike[str]) -> None:
    """Save to a `.parquet` file: previous, leaf, next ("" for none), count, stay_s and spread_s.

    The file is complete whenever it is there.
    """
    target = Path(path)
    names = (*table.leaves, "")
    columns: dict[str, pa.Array] = {
        name: pa.array([names[k] for k in getattr(table, name)], pa.string())
        for name in ("previous", "leaf", "next")
    }
    columns["count"] = pa.array(table.count.tolist(), pa.int64())
    for figure in ("stay_s", "spread_s"):
        columns[figure] = pa.array(getattr(table, figure).tolist(), pa.float64())
    beside = target.with_name(f".{target.name[:100]}.{os.getpid()}.tmp")
    try:
        if target.suffix != ".parquet":
            _refuse(target, target.suffix or None, "a file name that ends in .parquet")
        pq.write_table(pa.table(columns), beside, write_page_checksum=True)
        beside.replace(target)
    except OSError as error:
        _refuse(target, (error.strerror or str(error)).lower(), "a place that can be written")
    finally:
        beside.unlink(missing_ok=True)


def load_transitions(path: str | os.PathLike[str]) -> TransitionTable:
    """The table in a `.parquet` or `.csv` file, with rows in any order.

    Raises:
        InvalidInput: with every problem, for at most a few rows each.
    """
    file = show_file(os.fspath(path))
    columns = read_columns(path, _FIELDS)
    try:
        return _table(columns)
    except InvalidInput as error:
        raise error.in_file(file) from None


def _table(columns: Columns) -> TransitionTable:
    count, stay_s, spread_s = (columns.numbers[name] for name in ("count", "stay_s", "spread_s"))
    codes = {name: columns.texts[name] for name in ("previous", "leaf", "next")}
    texts = {name: np.array(words, dtype=object)[code] for name, (code, words) in codes.items()}
    defects = Defects()
    whole = (count > 0) & (count < _MOST_COUNT) & (count == np.floor(count))
    _tell(defects, "count", count, np.flatnonzero(~whole), "a whole number > 0")
    good = np.isfinite(stay_s) & (stay_s > 0)
    _tell(defects, "stay_s", stay_s, np.flatnonzero(~good), "a finite number > 0")
    good = np.isfinite(spread_s) & (spread_s >= 0)
    _tell(defects, "spread_s", spread_s, np.flatnonzero(~good), "a finite number >= 0")
    leaf = texts["leaf"]
    _tell(defects, "leaf", leaf, np.flatnonzero(leaf == ""), "the name of a leaf")
    same = (leaf != "") & ((leaf == texts["next"]) | (leaf == texts["previous"]))
    _tell(defects, "leaf", leaf, np.flatnonzero(same), "another leaf before and after")
    changes = list(zip(texts["previous"], leaf, texts["next"], strict=True))
    first = {change: row for row, change in reversed(list(enumerate(changes)))}
    again = [row for row, change in enumerate(changes) if first[change] != row]
    _tell(defects, "leaf", leaf, np.array(again, dtype=np.int64), "each change once")
    defects.raise_if_any()
    whole_count = count.astype(np.int64).tolist()
    figures = zip(whole_count, stay_s.tolist(), spread_s.tolist(), strict=True)
    return TransitionTable.of_rows(dict(zip(changes, figures, strict=True)))


def _tell(
    defects: Defects, column: str, values: npt.NDArray[np.generic], bad: Whole, rule: str
) -> None:
    for row in bad[:MOST_ROWS_TOLD].tolist():
        defects.add(f"{column} of row {row}", values.tolist()[row], rule)
    if bad.size > MOST_ROWS_TOLD:
        defects.add(
            column, f"{bad.size} bad rows, the first {MOST_ROWS_TOLD} above", "none of them"
        )


def _refuse(target: Path, value: object, rule: str) -> None:
    raise InvalidInput([Defect(file=show_file(str(target)), path="", value=value, rule=rule)])
