"""The pieces of a study side by side on Spark."""

from __future__ import annotations

import json
import pickle
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from zlib import compress, decompress

import pyarrow as pa

from thalweg.errors import ThalwegError
from thalweg.spark.sweep import sweep
from thalweg.study.planned import Row
from thalweg.study.unit import Question, run_unit

if TYPE_CHECKING:
    from thalweg.model import Problem
    from thalweg.study.run import Unit

_COLUMNS = pa.schema([("rows", pa.string())])


class PieceFailed(ThalwegError):
    """A piece of a study raised instead of ending."""


def run_on_spark(
    question: Question,
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
    packed = (question, [(unit.case.name, unit.seed, unit.steps) for unit in units], problems)
    with TemporaryDirectory(prefix="thalweg-study-") as folder:
        found = sweep(
            [{"unit": number} for number in range(len(units))],
            run_point,
            into=Path(folder) / "sweep",
            columns=_COLUMNS,
            name="study",
            settings={"packed": _pack(packed)},
            master=on,
            on_progress=on_progress,
        )
        if found.failures:
            raise PieceFailed(str(found.failures[0]))
        texts = found.table["rows"].to_pylist()
    return [row for text in texts for row in json.loads(text)]


def run_point(point: Mapping[str, Any]) -> list[dict[str, object]]:
    """The rows of the piece that a point names."""
    question, units, problems = _unpack(str(point["packed"]))
    number = int(point["unit"])
    case, seed, steps = units[number]
    rows = run_unit(question, problems[number], steps, case=case, seed=seed)
    return [{"rows": json.dumps(rows)}]


_Packed = tuple[Question, list[tuple[str, int | None, Any]], "list[Problem]"]


def _pack(packed: _Packed) -> str:
    return b64encode(compress(pickle.dumps(packed), level=1)).decode()


@lru_cache(maxsize=1)
def _unpack(text: str) -> _Packed:
    packed = decompress(b64decode(text))
    # Packed by this very driver, so it is as trusted as the driver.
    found: _Packed = pickle.loads(packed)  # noqa: S301  # nosec B301
    return found
