"""Stored results of any kind: the tables of a folder, its pictures, and what its manifest says."""

from __future__ import annotations

import json
import math
import re
from contextlib import suppress
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

from thalweg.errors import Defect, InvalidInput
from thalweg.web.stored_table import open_stored, require_small
from thalweg.web.subject import Plain, Subject, UnknownName

_MOST_ROWS = 200
_MOST_TABLES = 60
_MOST_TEXTS = 20
_MOST_COLUMNS = 60
_MOST_LETTERS = 300
_MOST_TEXT_BYTES = 200_000
_IMAGES = (".png", ".jpg", ".jpeg")
_TEXTS = ("manifest.json", "report.json", "claims.json", "summary.json")


class ResultsSubject(Subject):
    """The Parquet tables and pictures below a folder, or a single table."""

    kind = "results"
    views: tuple[str, ...] = ("results",)

    def __init__(self, place: Path, title: str | None = None) -> None:
        super().__init__(title or place.name or str(place.absolute().name))
        self._folder = place if place.is_dir() else place.parent
        found = sorted(place.rglob("*"), key=_in_order) if place.is_dir() else [place]
        found = [file for file in found if self._is_own(file)]
        self._tables = [file for file in found if file.suffix == ".parquet"][:_MOST_TABLES]
        self._images = {
            file.relative_to(self._folder).as_posix(): file
            for file in found
            if file.suffix.lower() in _IMAGES
        }
        self._texts = [file for file in found if file.name in _TEXTS][:_MOST_TEXTS]
        if not (self._tables or self._images or self._texts):
            rule = "a folder with Parquet tables or pictures, as commands of thalweg save them"
            raise InvalidInput([Defect(path="", value=str(place), rule=rule)])

    def _is_own(self, file: Path) -> bool:
        """Whether a file lies in the folder, also behind links, and has a name that can be told."""
        inside = file.is_file() and file.resolve().is_relative_to(self._folder.resolve())
        return inside and not file.name.startswith(".") and str(file).isprintable()

    def results(self) -> Plain:
        """The first rows of every table, the names of pictures, and what the manifest says."""
        return {
            "text": "\n\n".join(self._read_texts()),
            "tables": [self._table(file) for file in self._tables],
            "images": list(self._images),
        }

    def image(self, name: str) -> Path:
        """A picture by its name; no other file can be asked for."""
        if name not in self._images or not self._is_own(self._images[name]):
            raise UnknownName("there is no such picture")
        return self._images[name]

    def _table(self, file: Path) -> Plain:
        name = str(file.relative_to(self._folder).with_suffix(""))
        try:
            with open_stored(self._folder, file) as opened:
                columns = opened.schema_arrow.names[:_MOST_COLUMNS]
                total = opened.metadata.num_rows
                batch = next(opened.iter_batches(batch_size=_MOST_ROWS, columns=columns), None)
            if batch is not None:
                require_small(batch.columns)
                batch.validate(full=True)
            rows = [] if batch is None else batch.to_pylist()
        except Exception as error:
            # A file that was cut off is told in its place; the others are shown all the same.
            return {"name": name, "columns": ["problem"], "rows": [[_told(error)]], "total": 0}
        shown = [[_plain(row[column]) for column in columns] for row in rows]
        return {"name": name, "columns": columns, "rows": shown, "total": total}

    def _read_texts(self) -> list[str]:
        found = []
        for file in self._texts:
            with suppress(OSError, ValueError, RecursionError):
                if file.stat().st_size <= _MOST_TEXT_BYTES:
                    data = json.loads(file.read_text(encoding="utf-8"))
                    found.append(f"{file.relative_to(self._folder)}\n{_indented(data)}")
        return found


def _indented(data: Any) -> str:
    """Plain data over many lines; cut where depth makes much of little."""
    found, letters = list[str](), 0
    for part in json.JSONEncoder(indent=1).iterencode(data):
        found.append(part)
        letters += len(part)
        if letters > 2 * _MOST_TEXT_BYTES:
            return "".join([*found, "…"])
    return "".join(found)


def _plain(value: Any) -> Any:
    """A value for a cell: numbers and short texts as they are, lists shortened."""
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("inf" if value > 0 else "-inf")
    if isinstance(value, (datetime, date, timedelta)):
        return str(value)
    if isinstance(value, (list, dict)):
        return _short(json.dumps(value, default=str))
    if isinstance(value, str):
        return _short(value)
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    return value


def _in_order(file: Path) -> list[tuple[int, str]]:
    """Names as people sort them: figure 5 before figure 10.

    >>> sorted([Path("figure-10.png"), Path("figure-5.png")], key=_in_order)[0].name
    'figure-5.png'
    """
    parts = re.split(r"(\d+)", file.as_posix())
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]


def _told(error: Exception) -> str:
    return str(error)[:500].encode("utf-8", "replace").decode()


def _short(text: str) -> str:
    return text if len(text) <= _MOST_LETTERS else f"{text[: _MOST_LETTERS - 1]}…"
