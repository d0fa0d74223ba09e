"""What a rebuild has to know of the life before: the epochs that there were, and what ran last.

It is found by the traces that epochs leave, and written down before any of them is moved. Should
that file be lost in a power cut, the traces are still there, under `set-aside`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from thalweg.errors import InvalidInput, ThalwegError
from thalweg.files.own_file import read_own_bytes
from thalweg.files.plain_json import parse_plain_json
from thalweg.model.names import is_name
from thalweg.spark.deployment.folder import RunFolder, as_cuts
from thalweg.spark.deployment.health.aside import list_set_aside
from thalweg.spark.deployment.health.run_facts import read_journal
from thalweg.spark.deployment.health.stakes import RunPlaces
from thalweg.spark.deployment.whole_file import write_whole
from thalweg.spark.log import Log
from thalweg.spark.log.disk import names_in
from thalweg.spark.log.epoch import numbers_in
from thalweg.spark.log.names import EDGES, number_of

_MOST_BYTES = 16 * 2**20
# Each is fenced, and numbers come from names of files, which may be anything.
_MOST_EPOCHS = 10**6
Cuts = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class FormerLife:
    """The last epoch of each fog, -1 where there was none, and the cuts that ran last."""

    epochs: Mapping[str, int] = field(default_factory=dict)
    cuts: Cuts = field(default_factory=dict)


def find_former_life(folder: RunFolder, places: RunPlaces) -> FormerLife:
    """What was, by the marker of a rebuild that was cut off, and by all traces that are left.

    Raises:
        ThalwegError: where there is an epoch that cannot be; or where a rebuild was cut off, and
            nothing says which epochs there were.
    """
    marker = _read_marker(folder)
    known = marker or FormerLife()
    lives = [places, *(replace(places, folder=path) for path in list_set_aside(places.folder))]
    epochs: dict[str, int] = {}
    for fog in places.fogs:
        traces = [trace for life in lives for trace in _traces(life, fog)]
        told = (known.epochs.get(fog, -1), folder.rebuild_file)
        epochs[fog] = _require_possible(*max([told, *traces]))
    if marker is None and all(epoch < 0 for epoch in epochs.values()):
        raise ThalwegError(
            f"{folder.rebuild_file} cannot be read, and no other file says which epochs there "
            "were. Hint: restore it, or `set-aside`, from a copy; if no site of this run has ever "
            "worked, remove it."
        )
    cuts: Cuts = next(filter(None, map(_last_cuts, lives)), {})
    return FormerLife(epochs=epochs, cuts={**cuts, **known.cuts})


def _require_possible(epoch: int, where: Path) -> int:
    if epoch <= _MOST_EPOCHS:
        return epoch
    raise ThalwegError(
        f"{where} tells of epoch {str(epoch)[:20]}, and no run has more than {_MOST_EPOCHS:,}. "
        "Hint: restore it from a copy, or remove it if it is none of this run."
    )


def keep_former_life(folder: RunFolder, life: FormerLife) -> None:
    """Mark a rebuild as begun; the marker is on the disk before anything is moved."""
    write_whole(folder.rebuild_file, json.dumps(asdict(life)), durable=True)


def _read_marker(folder: RunFolder) -> FormerLife | None:
    """What a rebuild that was cut off knew, nothing where none was; None where that is lost."""
    if not os.path.lexists(folder.rebuild_file):
        return FormerLife()
    try:
        content = read_own_bytes(folder.path, folder.rebuild_file, _MOST_BYTES)
        found: Any = parse_plain_json(content)
        epochs = {str(fog): epoch for fog, epoch in found["epochs"].items()}
        if not all(isinstance(epoch, int) for epoch in epochs.values()):
            return None
        return FormerLife(epochs=epochs, cuts=_names_alone(as_cuts(found["cuts"])))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _traces(places: RunPlaces, fog: str) -> Iterator[tuple[int, Path]]:
    """Every epoch that a fog has left a trace of, and where that is."""
    checkpoints = places.folder / "checkpoints"
    for name in names_in(checkpoints):
        site, _, rest = name.rpartition("@")
        number = number_of(rest.partition(".")[0])
        if site == fog and number is not None:
            yield number, checkpoints / name
    for root in {places.log, places.log_of(fog)}:
        streams = [root / stream / fog for stream in Log(root).streams(EDGES)]
        for folder in (root / EDGES / ".gates" / fog, *streams):
            yield from ((number, folder / str(number)) for number in numbers_in(folder))
    site_state = read_journal(places.journal, places.fogs).sites.get(fog)
    if site_state is not None:
        yield site_state.epoch, places.journal


def _last_cuts(places: RunPlaces) -> Cuts:
    """What ran last, by the journal, or else by the history; nothing where neither says it."""
    journal = read_journal(places.journal, places.fogs)
    known: Cuts = {n: s.next_cut or s.cut for n, s in journal.sites.items() if s.phase != "idle"}
    if not known:
        try:
            known = RunFolder(places.folder).read_history()[-1].cuts
        except (InvalidInput, IndexError):
            return {}
    return _names_alone({fog: cut for fog, cut in known.items() if fog in places.fogs})


def _names_alone(cuts: Cuts) -> Cuts:
    """The cuts whose operators have names that can be some."""
    return {fog: cut for fog, cut in cuts.items() if all(map(is_name, cut))}
