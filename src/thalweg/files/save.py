"""Saves whatever a file can hold so that it can be loaded again, exactly as it is."""

from __future__ import annotations

import json
import os
import secrets
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from thalweg.errors import Defect, InvalidInput
from thalweg.files.load import read_back
from thalweg.model import Application, Network, Plan, Workload

_TEXT_ENDINGS = (".yaml", ".yml", ".json")
_TABLE_ENDINGS = (".csv", ".parquet")
_OTHER_ENDINGS: dict[type, str] = {
    Network: ", or none for a folder",
    Workload: ", or in .csv or .parquet for a table",
}


def save(value: Application | Network | Plan | Workload, path: str | os.PathLike[str]) -> None:
    """Save to a `.yaml`, `.yml` or `.json` file; a network also to a folder of Parquet files.

    A workload can also be a table, in a `.csv` or `.parquet` file; it is then called like the
    file. The ending of the name says which; a name without one is a folder. The file is there
    completely or not at all: it is written beside its place, read back, and then moved there.
    Whatever was in the file before is replaced.

    Raises:
        InvalidInput: where the value or the place does not allow it.
    """
    target = _place(path)
    ending = target.suffix.lower()
    if isinstance(value, Network) and (not ending or target.is_dir()):
        from thalweg.files.parquet import save_network_folder

        save_network_folder(value, target)
        return
    if isinstance(value, Workload) and ending in _TABLE_ENDINGS:
        _replace_file(target, _table(value, target))
        return
    _require_ending(target, _OTHER_ENDINGS.get(type(value), ""))
    data, read = _plain(value)
    text = _json(data) if ending == ".json" else _yaml(data)
    read_back(text, os.fspath(path), read)
    _replace_file(target, text.encode("utf-8"))


def require_place(path: str | os.PathLike[str]) -> None:
    """Raise `InvalidInput` unless a plan or an application can be saved under this name."""
    target = _place(path)
    _require_ending(target)
    if target.is_dir():
        _refuse(target, "a folder", "a regular file, or none yet")


def _require_ending(target: Path, also: str = "") -> None:
    if target.suffix.lower() not in _TEXT_ENDINGS:
        rule = f"a file name that ends in .yaml, .yml or .json{also}"
        _refuse(target, target.suffix or None, rule, "the ending says how it is written")


def _plain(value: object) -> tuple[dict[str, Any], Callable[[object], object]]:
    """The value as plain data, and what reads it."""
    if isinstance(value, Application):
        from thalweg.files.application_reader import read_application
        from thalweg.files.application_writer import application_data

        return application_data(value), read_application
    if isinstance(value, Network):
        from thalweg.files.network_reader import read_network
        from thalweg.files.network_writer import network_data

        return network_data(value), read_network
    if isinstance(value, Plan):
        from thalweg.files.plan_reader import read_plan

        return value.to_dict(), read_plan
    if isinstance(value, Workload):
        from thalweg.files.workload_reader import read_workload
        from thalweg.files.workload_writer import workload_data

        return workload_data(value), read_workload
    wanted = "an Application, Network, Plan or Workload"
    raise TypeError(f"cannot save {type(value).__name__}: give {wanted}")


def _table(workload: Workload, target: Path) -> bytes:
    from thalweg.files.workload_table import is_csv, parse_workload_table
    from thalweg.files.workload_writer import workload_csv, workload_parquet

    contents = (workload_csv if is_csv(target) else workload_parquet)(workload)
    parse_workload_table(contents, target)
    return contents


def _json(data: dict[str, Any]) -> str:
    return json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _yaml(data: dict[str, Any]) -> str:
    from thalweg.files.yaml_writer import write_yaml

    return write_yaml(data)


def _place(path: str | os.PathLike[str]) -> Path:
    """Where to write: behind symbolic links, in a folder that is there."""
    try:
        target = Path(os.path.realpath(path))
        folder_is_there = target.parent.is_dir()
    except (OSError, ValueError) as error:
        raise InvalidInput(
            [Defect(path="", value=str(error), rule="a name that a file can have")]
        ) from None
    if not target.name:
        _refuse(target, "the root folder", "the name of a file")
    if not folder_is_there:
        _refuse(target, None, "an existing folder to write into", f"make {target.parent} first")
    return target


def _replace_file(target: Path, content: bytes) -> None:
    try:
        if target.exists() and not stat.S_ISREG(target.stat().st_mode):
            kind = "a folder" if target.is_dir() else "a pipe, socket or device"
            _refuse(target, kind, "a regular file, or none yet")
        beside = target.with_name(f".{target.name[:100]}.{secrets.token_hex(4)}.tmp")
        try:
            with beside.open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(target)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        _refuse(target, (error.strerror or str(error)).lower(), "a place that can be written")


def _refuse(target: Path, value: object, rule: str, hint: str = "") -> NoReturn:
    raise InvalidInput(
        [Defect(file=os.fspath(target), path="", value=value, rule=rule, hint=hint)]
    ) from None
