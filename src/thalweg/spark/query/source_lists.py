"""Spark's lists of the files that a query has read, kept short.

A file source writes down every file that it has taken, and every tenth list has all of them since
the query began: each time it is read, parsed and written anew. A query that takes two files in a
second spends ever more of its time on that. Files that are gone cannot be taken twice, so that
nobody needs their entries.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote, urlsplit
from uuid import uuid4

from thalweg.spark.log.disk import Disk, names_in

_COMPACT = ".compact"
_VERSION = b"v1"
_EVERY = 10
# As many as Spark keeps of everything, in case that a query is set back.
_KEPT_LISTS = 100


class SourceLists:
    """The lists of one query's checkpoint.

    They are shortened from within a batch: Spark reads and writes them only between two batches.
    """

    def __init__(self, checkpoint: Path, *, durable: bool = True) -> None:
        self._folder = checkpoint / "sources"
        self._disk = Disk(durable=durable)
        self._shortened: dict[str, int] = {}

    def shorten(self, batch: int) -> None:
        """Leave out of the newest whole lists what is gone, now and then."""
        if batch % _EVERY:
            return
        for name in names_in(self._folder):
            newest = _newest_whole(self._folder / name)
            if newest > self._shortened.get(name, -1):
                # It is a favour to later batches; whatever is wrong with a list is Spark's to tell.
                with suppress(OSError, ValueError, KeyError, TypeError):
                    self._shorten(self._folder / name / f"{newest}{_COMPACT}", newest)
                self._shortened[name] = newest

    def _shorten(self, file: Path, newest: int) -> None:
        version, *entries = file.read_bytes().split(b"\n")
        if version != _VERSION:
            return
        kept = list(_needed(entries, newest - _KEPT_LISTS))
        if len(kept) == len(entries):
            return
        draft = file.with_name(f".{file.name}.{uuid4().hex}")
        try:
            with self._disk.create(draft) as opened:
                opened.write(b"\n".join([version, *kept]))
                self._disk.sync_file(opened)
            # Without its checksum a file is read as it is: at no moment the two do not fit.
            file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
            self._disk.rename(draft, file)
            self._disk.sync_folder(file.parent)
        finally:
            draft.unlink(missing_ok=True)


def _newest_whole(source: Path) -> int:
    """The number of the newest list that has all entries; -1: there is none."""
    numbers = (name.removesuffix(_COMPACT) for name in names_in(source) if name.endswith(_COMPACT))
    return max((int(number) for number in numbers if number.isdecimal()), default=-1)


def _needed(entries: list[bytes], upto: int) -> Iterator[bytes]:
    """The entries of lists after this one, and of files that are still there."""
    for line in entries:
        entry = json.loads(line)
        if entry["batchId"] > upto or _may_be_there(entry["path"]):
            yield line


def _may_be_there(address: str) -> bool:
    place = urlsplit(address)
    return place.scheme != "file" or Path(unquote(place.path)).exists()
