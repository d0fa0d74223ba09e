"""A study in a file: its rows as CSV or Parquet, all of it as JSON."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thalweg.errors import Defect, InvalidInput

if TYPE_CHECKING:
    import pyarrow as pa

    from thalweg.study.result import Study

ENDINGS = (".csv", ".parquet", ".json")
_TEXTS = (
    "case", "application", "network", "strategy", "violations", "objective_name", "refusal", "note",
)  # fmt: skip
_WHOLE = ("seed", "moved", "candidates")


def save_study(study: Study, path: str | os.PathLike[str]) -> None:
    """Write the study; the ending of the file's name says how."""
    place = Path(path)
    ending = place.suffix.lower()
    if ending == ".json":
        text = json.dumps(study.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)
        place.write_text(text + "\n", encoding="utf-8")
    elif ending == ".csv":
        from pyarrow.csv import write_csv

        write_csv(to_arrow(study), place)
    elif ending == ".parquet":
        from pyarrow.parquet import write_table

        write_table(to_arrow(study), place)
    else:
        rule = f"a file name that ends in {' or '.join(ENDINGS)}"
        raise InvalidInput([Defect(path="path", value=place.name, rule=rule)])


def to_arrow(study: Study) -> pa.Table:
    """The rows as a table, each column of one type, whatever the rows have."""
    import pyarrow as pa

    columns = {}
    for name in study.rows[0]:
        values = [row[name] for row in study.rows]
        columns[name] = pa.array(_alike(name, values), type=_type_of(name, values))
    return pa.table(columns)


def _type_of(name: str, values: list[Any]) -> pa.DataType:
    import pyarrow as pa

    if name in _TEXTS or any(isinstance(value, str) for value in values):
        return pa.string()
    if name == "feasible" or all(isinstance(value, bool) for value in values):
        return pa.bool_()
    return pa.int64() if name in _WHOLE else pa.float64()


def _alike(name: str, values: list[Any]) -> list[Any]:
    """The values of a swept option as text where any of them is; others as they are."""
    if name in _TEXTS or not any(isinstance(value, str) for value in values):
        return values
    return [None if value is None else str(value) for value in values]
