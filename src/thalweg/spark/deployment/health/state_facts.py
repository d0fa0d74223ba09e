"""The state stores of a checkpoint: those that are there, and those that should be.

Spark keeps `state/OPERATOR/PARTITION/`, with a folder more where an operator has several stores,
and says in `state/OPERATOR/_metadata/metadata` which they are. Which operators have state, no file
of Spark says. They are numbered without a gap, and every batch has written down whose state was
there when it began.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from thalweg.spark.deployment.health.checksums import fault_of
from thalweg.spark.deployment.health.guarded_files import read_whole
from thalweg.spark.deployment.health.listing import files_in, folders_in, number_in
from thalweg.spark.log.names import number_of

_FULL, _STEPS = (".zip", ".snapshot"), (".changelog", ".delta")
_DEFAULT = "default"
_AGGREGATE, _BY_KEY = "stateStoreSave", ("symmetricHashJoin", "dedupe", "dedupeWithinWatermark")
_NO_KEY = b'{"type":"struct","fields":[]}'
# It becomes part of a path.
_STORE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
# Numbers come from files, which may say anything.
_MOST_TOLD = 10
Faults = Mapping[int, str]
"""What is wrong with each numbered file; nothing where it is sound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreFacts:
    """The versions of one state store: whole ones, and steps from one to the next.

    One that has neither is missing; its folder is then the first on the way to it that is.
    """

    folder: Path
    full: Faults = field(default_factory=dict)
    steps: Faults = field(default_factory=dict)
    ending: str = ".changelog"
    """Of the names of steps."""

    @property
    def is_missing(self) -> bool:
        """Whether there is nothing of it."""
        return not (self.full or self.steps)


def read_stores(folder: Path, stateful: Collection[int]) -> tuple[StoreFacts, ...]:
    """Every store in the `state` folder of a checkpoint, then those that are missing.

    `stateful` are the operators that are known to have state.
    """
    found = tuple(_stores(folder))
    there = {store.folder for store in found}
    missing = (_first_gone(folder, path) for path in _wanted(folder, stateful, there))
    return found + tuple(StoreFacts(folder=path) for path in dict.fromkeys(missing))


def _stores(folder: Path) -> Iterator[StoreFacts]:
    """Every store below a folder, in the order of their paths: operator, partition, name."""
    for below in folders_in(folder):
        if below.name.startswith("_"):
            continue
        full = {number_in(f): fault_of(f) for ending in _FULL for f in files_in(below, ending)}
        steps = {number_in(f): fault_of(f) for ending in _STEPS for f in files_in(below, ending)}
        if full or steps:
            ending = next((e for e in _STEPS if files_in(below, e)), _STEPS[0])
            yield StoreFacts(folder=below, full=full, steps=steps, ending=ending)
        yield from _stores(below)


def _wanted(state: Path, stateful: Collection[int], there: Collection[Path]) -> Iterator[Path]:
    """The folders of stores that should be there and are not."""
    operators = {*_numbers_in(state), *stateful}
    gaps = (n for n in range(max(operators, default=-1)) if n not in operators)
    for operator in sorted({*operators, *islice(gaps, _MOST_TOLD)}):
        folder = state / str(operator)
        kind, stores = _describe(folder)
        for store, partitions in stores:
            held = {n for n in _numbers_in(folder) if _store_folder(folder, n, store) in there}
            if held == {0} and not _is_spread(folder, kind):
                continue
            lost = (n for n in range(partitions) if n not in held)
            yield from (_store_folder(folder, n, store) for n in islice(lost, _MOST_TOLD))
        if not stores and not any(path.is_relative_to(folder) for path in there):
            yield folder


def _describe(operator: Path) -> tuple[str, tuple[tuple[str, int], ...]]:
    """What an operator is, and its stores with their numbers of partitions, where that is said."""
    file = operator / "_metadata" / "metadata"
    if fault_of(file):
        return "", ()
    try:
        _, text = read_whole(file).split(b"\n", 1)
        described: dict[str, Any] = json.loads(text)
        kind = described["operatorInfo"]["operatorName"]
        stores = [(s["storeName"], s["numPartitions"]) for s in described["stateStoreInfo"]]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return "", ()
    named = [(name, n) for name, n in stores if isinstance(name, str) and isinstance(n, int)]
    return str(kind), tuple((name, n) for name, n in named if _STORE_NAME.fullmatch(name))


def _is_spread(operator: Path, kind: str) -> bool:
    """Whether an operator has a store in every partition that is described.

    One that works on all rows together, without a key, has its first alone.
    """
    if kind != _AGGREGATE:
        return kind in _BY_KEY
    schema = operator / "0" / "_metadata" / "schema"
    try:
        return not fault_of(schema) and _NO_KEY not in read_whole(schema)
    except (OSError, ValueError):
        return False


def _numbers_in(folder: Path) -> Iterator[int]:
    """The numbers that folders there are named by."""
    numbers = (number_of(entry.name) for entry in folders_in(folder))
    return (number for number in numbers if number is not None)


def _store_folder(operator: Path, partition: int, store: str) -> Path:
    folder = operator / str(partition)
    return folder if store == _DEFAULT else folder / store


def _first_gone(state: Path, path: Path) -> Path:
    """The first folder on the way to a missing one that is not there; itself where all are."""
    way = [path, *path.parents]
    return next((p for p in reversed(way[: way.index(state) + 1]) if not p.exists()), path)
