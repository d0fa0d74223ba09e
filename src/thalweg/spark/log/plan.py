"""Which segments a reader takes next, decided from the log alone."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from thalweg.errors import Defects
from thalweg.model.names import is_name
from thalweg.spark.log.founding import while_there
from thalweg.spark.log.names import EpochPlace, number_of
from thalweg.spark.log.reader import Log, LogError, Offset, Segment, batch_in

OFFSET_RULE = 'the last batch by site and epoch, such as {"fog-1": {"0": 17}}'


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One stream of a log as one reader sees it: of all sites, or of one."""

    log: Log
    stream: str
    site: str | None = None
    _ended: set[EpochPlace] = field(default_factory=set, init=False, repr=False, compare=False)
    """Epochs that were fenced and read to their end; a reader does not go back."""

    def next_offset(
        self, start: Offset, *, rows: int | None = None, upto: Offset | None = None
    ) -> Offset:
        """Where the next batch of a reader ends that has read up to `start`.

        The sites take turns, in the order of their names, each with its next segment: epochs in
        order, then batches in order. That ends before the segment that would make it more than
        `rows`; a larger segment is taken alone, since segments are never split. Without a new row
        the answer is `start` itself: a batch of nothing costs as much as one of a few rows.

        Raises:
            LogError: where the log cannot be read, or batches were taken that a fence excludes.
        """
        with while_there(self.log.root):
            known = self.log.places(self.stream, self.site)
            places = [place for place in known if place not in self._ended]
            for place in places:
                self._require_within_fence(place, batch_in(start, place))
            taken: list[Segment] = []
            total = 0
            for segment in _in_turns(self._queues(places, start, upto)):
                if rows is not None and total and total + segment.rows > rows:
                    break
                taken.append(segment)
                total += segment.rows
        self._require_all(start, known)
        return advance(start, taken) if total else start

    def _require_all(self, start: Offset, known: Sequence[EpochPlace]) -> None:
        """Raise `LogError` where something was read of an epoch that is not there any more."""
        there = {(place.site, place.epoch) for place in known}
        for site, epochs in start.items():
            # An offset may speak of sites that this reader does not look at.
            if self.site not in (None, site):
                continue
            for epoch, batch in epochs.items():
                if batch >= 0 and (site, int(epoch)) not in there:
                    where = f"epoch {epoch} of {site} in {self.stream}"
                    raise LogError(
                        f"cannot read the log: {where} was there, and is gone. Hint: bring it back "
                        "from a copy of the log; `thalweg doctor --deep` says what else is missing."
                    )

    def between(self, start: Offset, end: Offset) -> list[Segment]:
        """The segments after `start` up to `end`, by site, epoch and batch.

        Fences do not matter here: what a reader has once decided to take, it takes again when the
        batch is repeated.

        Raises:
            LogError: where one that was there is there no more.
        """
        segments: list[Segment] = []
        for site, epochs in end.items():
            for epoch, last in epochs.items():
                place = EpochPlace(
                    root=self.log.root, stream=self.stream, site=site, epoch=int(epoch)
                )
                after = batch_in(start, place)
                if last <= after:
                    continue
                found = list(self.log.segments_at(place, after, upto=last, fenced=True))
                if not found or found[-1].batch != last:
                    raise LogError(
                        f"cannot read the log: {place.segment(last)} is gone. Hint: bring it back "
                        "from a copy of the log; `thalweg doctor --deep` says what else is missing."
                    )
                segments += found
        return segments

    def _queues(
        self, places: Sequence[EpochPlace], start: Offset, upto: Offset | None
    ) -> list[Iterator[Segment]]:
        """The unread segments of each site."""
        return [
            self._unread(list(epochs), start, upto)
            for _, epochs in groupby(places, key=lambda place: place.site)
        ]

    def _unread(
        self, places: Sequence[EpochPlace], start: Offset, upto: Offset | None
    ) -> Iterator[Segment]:
        for place in places:
            last = None if upto is None else batch_in(upto, place)
            # Asked first: nothing is published in an epoch after its fence.
            fenced = self.log.find_fence(place.site, place.epoch, kind=place.kind) is not None
            any_left = False
            for segment in self.log.segments_at(place, batch_in(start, place), upto=last):
                any_left = True
                yield segment
            if fenced and upto is None and not any_left:
                self._ended.add(place)

    def _require_within_fence(self, place: EpochPlace, read: int) -> None:
        fence = self.log.find_fence(place.site, place.epoch, kind=place.kind)
        if fence is not None and read > fence.last_batch:
            raise LogError(
                f"batch {read} of {place.stream} from {place.site}, epoch {place.epoch}, was read "
                f"before the epoch was fenced after batch {fence.last_batch}: its rows may count "
                "twice. Hint: fence an epoch after its last published batch."
            )


def advance(start: Offset, taken: Sequence[Segment]) -> dict[str, dict[str, int]]:
    """The offset after these segments."""
    reached = {site: dict(epochs) for site, epochs in start.items()}
    for segment in taken:
        epochs = reached.setdefault(segment.site, {})
        epoch = str(segment.epoch)
        epochs[epoch] = max(segment.batch, epochs.get(epoch, -1))
    return order_offset(reached)


def order_offset(offset: Offset) -> dict[str, dict[str, int]]:
    """The same offset, always written in the same way: Spark compares offsets as texts."""
    return {
        site: {epoch: offset[site][epoch] for epoch in sorted(offset[site], key=int)}
        for site in sorted(offset)
    }


def parse_offset(value: object, path: str = "start") -> dict[str, dict[str, int]]:
    """The offset that a JSON text or a mapping says.

    >>> parse_offset('{"fog-1": {"10": 4, "9": 17}}')
    {'fog-1': {'9': 17, '10': 4}}

    Raises:
        InvalidInput: where it says none.
    """
    defects = Defects()
    offset: Any = value
    if isinstance(value, str):
        try:
            offset = json.loads(value)
        except ValueError:
            offset = None
    defects.require(_is_offset(offset), path, value, OFFSET_RULE)
    defects.raise_if_any()
    return order_offset(offset)


def _is_offset(value: object) -> bool:
    return isinstance(value, Mapping) and all(
        is_name(site)
        and isinstance(epochs, Mapping)
        and all(
            isinstance(epoch, str) and number_of(epoch) is not None and type(batch) is int
            for epoch, batch in epochs.items()
        )
        for site, epochs in value.items()
    )


def _in_turns(queues: Sequence[Iterator[Segment]]) -> Iterator[Segment]:
    """One from each queue, then the next from each, until all are empty."""
    waiting = list(queues)
    while waiting:
        remaining = []
        for queue in waiting:
            segment = next(queue, None)
            if segment is not None:
                yield segment
                remaining.append(queue)
        waiting = remaining


def pack_files(segments: Sequence[Segment], most_bytes: int) -> list[list[Path]]:
    """The files of these segments, in order, in lots of about so many bytes: one for each task."""
    lots: list[list[Path]] = []
    filled = most_bytes
    for segment in segments:
        for part in segment.parts:
            if filled + part.file_bytes > most_bytes:
                lots.append([])
                filled = 0
            lots[-1].append(segment.folder / part.file)
            filled += part.file_bytes
    return lots
