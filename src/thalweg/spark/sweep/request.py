"""What a caller wants swept, checked as a whole before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TypeAlias, cast

import pyarrow as pa
import pyarrow.parquet as pq

import thalweg
from thalweg.errors import Defects
from thalweg.spark.session import MASTER_FORMS, is_master
from thalweg.spark.sweep.points import (
    Points,
    check_values,
    jsonable,
    parameter_names,
    plain,
    read_points,
)
from thalweg.spark.sweep.tasks import Run

IN_PROCESS = "in-process"

OnProgress: TypeAlias = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepRequest:
    """The arguments of a sweep, all of them usable."""

    points: Points
    run: Run
    into: Path
    columns: pa.Schema
    name: str
    settings: Mapping[str, object]
    master: str | None
    config: Mapping[str, str]
    points_per_task: int | None
    on_progress: OnProgress

    @property
    def identity(self) -> dict[str, object]:
        """What has to be the same for the parts of one sweep to belong together."""
        return {
            "name": self.name,
            "run": f"{self.run.__module__}.{self.run.__qualname__}",
            "parameters": sorted(self.points.table.column_names),
            "settings": {key: jsonable(value) for key, value in sorted(self.settings.items())},
            "columns": [f"{column.name}: {column.type}" for column in self.columns],
            "thalweg": thalweg.__version__,
        }


def check_request(
    *,
    points: object,
    run: object,
    into: object,
    columns: object,
    name: object,
    settings: object,
    master: object,
    config: object,
    points_per_task: object,
    on_progress: object,
) -> SweepRequest:
    """The request that these arguments make.

    Raises:
        InvalidInput: with all that is wrong with them.
    """
    found = Defects()
    points = list(points) if isinstance(points, Iterator) else points
    checked = read_points(points, found)
    constants = _check_settings(settings, found)
    _check_run(run, found)
    _check_columns(columns, found)
    _check_names(parameter_names(points), constants, columns, found)
    found.require(isinstance(into, (str, Path)) and into != "", "into", into, "a folder")
    found.require(name is None or (isinstance(name, str) and name != ""), "name", name, "a text")
    known = master is None or master == IN_PROCESS or is_master(master)
    found.require(known, "master", master, f"{MASTER_FORMS}, or {IN_PROCESS}")
    found.require(
        config is None or _maps_texts(config), "config", config, "a mapping of texts to texts"
    )
    counted = points_per_task is None or (type(points_per_task) is int and points_per_task >= 1)
    found.require(counted, "points_per_task", points_per_task, "a whole number >= 1")
    told = on_progress is None or callable(on_progress)
    found.require(told, "on_progress", on_progress, "a function of two numbers")
    found.raise_if_any()
    function = cast("Run", run)
    return SweepRequest(
        points=cast("Points", checked),
        run=function,
        into=Path(cast("str | Path", into)),
        columns=cast("pa.Schema", columns).remove_metadata(),
        name=cast("str | None", name) or function.__name__,
        settings=constants,
        master=cast("str | None", master),
        config=cast("Mapping[str, str] | None", config) or {},
        points_per_task=cast("int | None", points_per_task),
        on_progress=cast("OnProgress | None", on_progress) or _tell_nobody,
    )


def _check_run(run: object, found: Defects) -> None:
    name = getattr(run, "__qualname__", "")
    of_module = callable(run) and getattr(run, "__module__", None) and name.isidentifier()
    # A function within another has no name by which a resumed sweep could know it again.
    found.require(bool(of_module), "run", run, "a function defined at the top of a module")


def _check_columns(columns: object, found: Defects) -> None:
    if not isinstance(columns, pa.Schema) or not columns.names:
        found.add("columns", columns, "a pyarrow schema of at least one column")
    elif len(set(columns.names)) < len(columns.names):
        found.add("columns", columns.names, "columns of different names")
    else:
        try:
            pq.write_table(columns.empty_table(), BytesIO())
        except (pa.ArrowException, OSError) as error:
            found.add("columns", str(columns), f"types that Parquet has ({error})")


def _check_settings(settings: object, found: Defects) -> dict[str, object]:
    if settings is None:
        return {}
    if not isinstance(settings, Mapping) or not all(isinstance(key, str) for key in settings):
        found.add("settings", settings, "a mapping of names to values")
        return {}
    constants = {key: plain(value) for key, value in settings.items()}
    check_values(constants, "settings", found)
    return constants


def _check_names(
    parameters: Sequence[str], settings: Mapping[str, object], columns: object, found: Defects
) -> None:
    """No name may mean two things: parameters, settings and columns are apart."""
    results = columns.names if isinstance(columns, pa.Schema) else []
    rule = "names that no parameter has"
    for name in parameters:
        found.require(name not in settings, "settings", name, rule)
        hint = "the parameters are added to the result; leave them out here"
        found.require(name not in results, "columns", name, rule, hint)


def _maps_texts(config: object) -> bool:
    if not isinstance(config, Mapping):
        return False
    return all(isinstance(text, str) for item in config.items() for text in item)


def _tell_nobody(done: int, total: int) -> None:
    """The progress of a sweep that nobody watches."""
