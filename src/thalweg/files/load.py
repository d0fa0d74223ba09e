"""Loads what files hold; whatever is wrong with a file is told all at once."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from thalweg.errors import Defect, InvalidInput
from thalweg.model import Application, Network, Plan, Workload

if TYPE_CHECKING:
    from thalweg.model.changes import Change

Loaded = TypeVar("Loaded")


def load_application(path: str | os.PathLike[str]) -> Application:
    """The application in a `.yaml`, `.yml` or `.json` file.

    Raises:
        InvalidInput: with every rule that the file breaks, by file, line and path.
    """
    from thalweg.files.application_reader import read_application

    return _load(path, read_application)


def load_network(path: str | os.PathLike[str]) -> Network:
    """The network in a `.yaml`, `.yml` or `.json` file, or in a folder of Parquet files.

    Raises:
        InvalidInput: with every rule that the file breaks, by file, line and path.
    """
    if _is_folder(path):
        from thalweg.files.parquet import load_network_folder

        return load_network_folder(path)
    from thalweg.files.network_reader import read_network

    return _load(path, read_network)


def load_plan(path: str | os.PathLike[str]) -> Plan:
    """The plan in a `.yaml`, `.yml` or `.json` file.

    Raises:
        InvalidInput: with every rule that the file breaks, by file, line and path.
    """
    from thalweg.files.plan_reader import read_plan

    return _load(path, read_plan)


def load_workload(path: str | os.PathLike[str]) -> Workload:
    """The workload in a `.yaml`, `.yml`, `.json`, `.csv` or `.parquet` file.

    Raises:
        InvalidInput: with every rule that the file breaks, by file, line and path.
    """
    if _is_table(path):
        from thalweg.files.workload_table import load_workload_table

        return load_workload_table(path)
    from thalweg.files.workload_reader import read_workload

    return _load(path, read_workload)


def load_changes(path: str | os.PathLike[str]) -> tuple[Change, ...]:
    """What changes during a run, from a `.yaml`, `.yml` or `.json` file and the plans beside it.

    Raises:
        InvalidInput: with every rule that the files break, by file, line and path.
    """
    from thalweg.files.changes_reader import read_changes

    folder = Path(os.fspath(path)).parent
    return _load(path, partial(read_changes, folder=folder, load_plan=load_plan))


def load_any(path: str | os.PathLike[str]) -> Application | Network | Plan | Workload:
    """What a file or a folder holds, found out by looking at it.

    Raises:
        InvalidInput: with every rule that the file breaks, by file, line and path.
    """
    if _is_folder(path):
        return load_network(path)
    return load_workload(path) if _is_table(path) else _load(path, _read_any)


def find_lines(error: InvalidInput, path: str | os.PathLike[str]) -> InvalidInput:
    """The problems of what was loaded from a file, with the file and the lines they come from."""
    from thalweg.files.text import read_document

    try:
        document = read_document(path)
    except InvalidInput:  # A folder, or a file that has changed since.
        return error.in_file(os.fspath(path))
    return error.in_file(document.file, document.line_of)


def read_back(text: str, name: str, read: Callable[[object], Loaded]) -> Loaded:
    """What a file of this name with this text would be loaded as."""
    from thalweg.files.text import parse_document

    is_json = name.lower().endswith(".json")
    document = parse_document(text, file=name, format="json" if is_json else "yaml")
    return _read(document.data, document.file, document.line_of, read)


def _load(path: str | os.PathLike[str], read: Callable[[object], Loaded]) -> Loaded:
    from thalweg.files.text import read_document

    document = read_document(path)
    return _read(document.data, document.file, document.line_of, read)


def _read_any(data: object) -> Application | Network | Plan | Workload:
    from thalweg.files.kinds import find_kind

    kind = find_kind(data)
    if kind == "application":
        from thalweg.files.application_reader import read_application

        return read_application(data)
    if kind == "network":
        from thalweg.files.network_reader import read_network

        return read_network(data)
    if kind == "workload":
        from thalweg.files.workload_reader import read_workload

        return read_workload(data)
    from thalweg.files.plan_reader import read_plan

    return read_plan(data)


def _read(
    data: object,
    file: str,
    line_of: Callable[[str], int | None],
    read: Callable[[object], Loaded],
) -> Loaded:
    try:
        return read(data)
    except InvalidInput as error:
        found = error
    raise InvalidInput(_in_order(found.in_file(file, line_of).defects, file)) from None


def _in_order(defects: tuple[Defect, ...], file: str) -> list[Defect]:
    """The defects from the top of the file to its end, and no more of them than anyone reads.

    Those of files that it names come after its own.
    """
    from thalweg.files.outline import MOST_DEFECTS

    ordered = sorted(defects, key=lambda d: (d.file != file, d.file, d.line or 0))
    if len(ordered) <= MOST_DEFECTS:
        return ordered
    more = Defect(
        file=file,
        path="",
        value=f"more than {MOST_DEFECTS} problems",
        rule="a file without them",
        hint="mend these first, then check the file again",
    )
    return [*ordered[:MOST_DEFECTS], more]


def _is_table(path: str | os.PathLike[str]) -> bool:
    return os.fspath(path).lower().endswith((".csv", ".parquet"))


def _is_folder(path: str | os.PathLike[str]) -> bool:
    try:
        return Path(path).is_dir()
    except (OSError, ValueError):
        return False
