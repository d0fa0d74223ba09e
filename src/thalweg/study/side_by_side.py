"""The pieces of a study side by side on Spark."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from thalweg.errors import ThalwegError
from thalweg.spark.sweep import sweep
from thalweg.spark.sweep.packing import pack, unpack
from thalweg.study.planned import Row
from thalweg.study.unit import Settings, run_unit

if TYPE_CHECKING:
    from thalweg.study.run import Unit

_COLUMNS = pa.schema([("rows", pa.string())])


class PieceFailed(ThalwegError):
    """A piece of a study raised instead of ending."""


def run_on_spark(
    settings: Settings,
    units: Sequence[Unit],
    spread: float,
    *,
    on: str,
    on_progress: Callable[[int, int], None] | None = None,
) -> list[Row]:
    """The rows of all pieces, each a task of its own, in the order of the pieces.

    Problems are made here and sent along: a function that draws them need not be known elsewhere.
    """
    problems = [unit.case.at(unit.seed, spread) for unit in units]
    packed = (settings, [(unit.case.name, unit.seed, unit.steps) for unit in units], problems)
    with TemporaryDirectory(prefix="thalweg-study-") as folder:
        found = sweep(
            [{"unit": number} for number in range(len(units))],
            run_point,
            into=Path(folder) / "sweep",
            columns=_COLUMNS,
            name="study",
            settings={"packed": pack(packed)},
            master=on,
            on_progress=on_progress,
        )
        if found.failures:
            raise PieceFailed(str(found.failures[0]))
        texts = found.table["rows"].to_pylist()
    return [row for text in texts for row in json.loads(text)]


def run_point(point: Mapping[str, Any]) -> list[dict[str, object]]:
    """The rows of the piece that a point names."""
    settings, units, problems = unpack(str(point["packed"]))
    number = int(point["unit"])
    case, seed, steps = units[number]
    rows = run_unit(settings, problems[number], steps, case=case, seed=seed)
    return [{"rows": json.dumps(rows)}]
