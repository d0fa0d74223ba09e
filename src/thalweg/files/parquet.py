"""Networks as folders of Parquet files: for networks that are too large to be text.

`network.json` says what the folder holds: name, shape (`mesh`, `links`, `tree` or `coordinates`)
and how many rows the tables have. `sites.parquet` and `nodes.parquet` hold the sites and nodes. A
table named after the shape holds what joins the sites: a matrix row by row, a row for each link, a
row for each site with its way up, or a row for each site with its coordinates (and `taken.parquet`
what is in use between two of them). `thalweg.files.tables` has the columns of all tables.
"""

from __future__ import annotations

import os
import secrets
import shutil
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

from thalweg.errors import Defect, Defects, InvalidInput
from thalweg.files.folder_contents import FILE, read_contents
from thalweg.files.folder_tables import expected_tables, put_together, take_apart
from thalweg.files.parquet_table import read_table, write_table
from thalweg.files.tables import (
    LINKS,
    MESH,
    NODES,
    SITES,
    TAKEN,
    TREE,
    Values,
    check_values,
    coordinates_table,
)
from thalweg.model import Network

_KNOWN_FILES = frozenset(
    (FILE, *(t.file for t in (SITES, NODES, MESH, LINKS, TREE, TAKEN, coordinates_table(0))))
)


def load_network_folder(path: str | os.PathLike[str]) -> Network:
    """The network in a folder.

    Raises:
        InvalidInput: for whatever is wrong with any of its files.
    """
    folder = Path(path)
    contents = read_contents(folder)
    defects = Defects()
    tables: dict[str, dict[str, Values]] = {}
    for table, rows in expected_tables(contents):
        try:
            tables[table.file] = read_table(folder, table, rows, contents.site_count)
        except InvalidInput as error:
            defects.absorb(error)
    defects.raise_if_any()
    try:
        return put_together(contents, tables)
    except InvalidInput as error:
        raise _within(folder, error) from None


def save_network_folder(network: Network, path: str | os.PathLike[str]) -> None:
    """Save a network to a folder that is not there yet, is empty, or holds a network already.

    The folder is written beside its place and then moved there, so it is complete whenever it is
    there; a network that was there before is moved away first.

    Raises:
        InvalidInput: where the network or the place does not allow it.
    """
    target = Path(path)
    contents, tables = take_apart(network)
    expected = [table for table, _ in expected_tables(contents)]
    defects = Defects()
    for table in expected:
        columns = [c for c in (*table.columns, *table.optional) if c.name in tables[table.file]]
        found = Defects()
        check_values(found, columns, tables[table.file], contents.site_count)
        try:
            found.raise_if_any()
        except InvalidInput as error:
            defects.absorb(error.in_file(table.file))
    defects.raise_if_any()
    put_together(contents, tables)
    try:
        _require_place(target)
        beside = target.with_name(f".{target.name[:100]}.{secrets.token_hex(4)}.tmp")
        try:
            beside.mkdir()
            (beside / FILE).write_text(contents.to_json(), encoding="utf-8")
            for table in expected:
                write_table(beside, table, tables[table.file])
            _move(beside, target)
        finally:
            shutil.rmtree(beside, ignore_errors=True)
    except OSError as error:
        _refuse(target, (error.strerror or str(error)).lower(), "a place that can be written")


def _require_place(target: Path) -> None:
    if not target.exists():
        return
    if not target.is_dir():
        _refuse(target, "a file", "a folder, or nothing yet")
    held = sorted(entry.name for entry in target.iterdir())
    strange = [name for name in held if name not in _KNOWN_FILES]
    if held and (strange or FILE not in held):
        value = f"a folder with {strange[0] if strange else held[0]}"
        _refuse(target, value, "an empty folder, or one that holds a network")


def _move(beside: Path, target: Path) -> None:
    if not target.exists():
        beside.rename(target)
        return
    old = target.with_name(f".{target.name[:100]}.{secrets.token_hex(4)}.old")
    target.rename(old)
    try:
        beside.rename(target)
    except OSError:
        old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _within(folder: Path, error: InvalidInput) -> InvalidInput:
    """The same defects, each with the folder in front of its file."""
    return InvalidInput(
        replace(defect, file=os.fspath(folder / defect.file)) for defect in error.defects
    )


def _refuse(target: Path, value: object, rule: str, hint: str = "") -> NoReturn:
    raise InvalidInput(
        [Defect(file=os.fspath(target), path="", value=value, rule=rule, hint=hint)]
    ) from None
