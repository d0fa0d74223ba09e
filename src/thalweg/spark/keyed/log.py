"""What a keyed operator has done, in the log: every batch as one commit, whole or not at all.

A commit has the state that the batch changed, the rows that it puts out, how far the input was read
by then, and the fingerprint of the whole state after it. Since a commit appears at once, these four
are never at odds, whoever dies when. The output is published in its own stream after the commit;
what a dying process did not publish, its successor does, out of the commit.

The state of an operator is thereby a function of the log: the commits of its epochs in their order,
each epoch up to its fence. Now and then the whole state is written as a snapshot, from where a
reader can begin.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from thalweg.errors import ThalwegError
from thalweg.spark.keyed.operator import Change, KeyedOperator, keys_of
from thalweg.spark.keyed.state import KeyedState
from thalweg.spark.log.disk import Disk
from thalweg.spark.log.epoch import last_batch_of
from thalweg.spark.log.fingerprint import HASH_KIND, hash_rows
from thalweg.spark.log.founding import while_there
from thalweg.spark.log.names import EpochPlace
from thalweg.spark.log.reader import Log, LogError, Offset, Segment
from thalweg.spark.log.segment import describe_columns, read_batches, read_segment, write_part
from thalweg.spark.log.writer import LogWriter

STATES = "states"
STANDBY = "standby"
_INFO = "info.arrow"
_UPDATED = "updated.arrow"
_REMOVED = "removed.arrow"
_OUTPUT = "output.arrow"
_INFO_SCHEMA = pa.schema([pa.field("offset", pa.string()), pa.field("fingerprint", pa.string())])
_ROWS_PER_RECORD_BATCH = 50_000
# Reading a commit costs about as much as reading so many bytes of a snapshot.
_BYTES_PER_COMMIT = 20_000
_LEAST_SNAPSHOT_BYTES = 16_000_000


class StateDiffers(ThalwegError):
    """The state that was read is not the one that was written."""


def state_stream(operator: str) -> str:
    """The stream of an operator's commits.

    >>> state_stream("trips")
    'states/trips'
    """
    return f"{STATES}/{operator}"


def snapshot_stream(operator: str) -> str:
    """The stream of an operator's snapshots."""
    return f"{STATES}/{operator}+snapshot"


def standby_stream(operator: str) -> str:
    """The stream in which a standby says how far it has followed."""
    return f"{STANDBY}/{operator}"


def writer_name(operator: str, site: str) -> str:
    """Who writes for an operator on a site, other than for the site's own queries.

    An operator's name has no dot, so that no two are the same.

    >>> writer_name("trips", "fog-1")
    'trips.fog-1'
    """
    return f"{operator}.{site}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """One batch of a keyed operator as it is in the log."""

    place: EpochPlace
    batch: int
    offset: Offset
    fingerprint: int
    change: Change


class KeyedLog:
    """The commits of one operator."""

    def __init__(self, log: Log, operator: KeyedOperator) -> None:
        self.log = log
        self.operator = operator
        self._removed = pa.schema([operator.state.field(name) for name in operator.key])

    def places(self, upto_epoch: int) -> list[EpochPlace]:
        """The epochs up to one that somebody has written in, in order."""
        places = self.log.places(state_stream(self.operator.name))
        known = [place for place in places if place.epoch <= upto_epoch]
        return sorted(known, key=lambda place: (place.epoch, place.site))

    def is_fenced(self, place: EpochPlace) -> bool:
        """Whether the epoch has ended."""
        return self.log.find_fence(place.site, place.epoch, kind=place.kind) is not None

    def last_commit(self, upto_epoch: int) -> tuple[EpochPlace, int] | None:
        """Where the newest commit is, of epochs up to one; None: there is none."""
        for place in reversed(self.places(upto_epoch)):
            fence = self.log.find_fence(place.site, place.epoch, kind=place.kind)
            batch = last_batch_of(place, None if fence is None else fence.last_batch)
            if batch >= 0:
                return place, batch
        return None

    def last_stand(self, writer: str, epoch: int) -> tuple[int, int] | None:
        """How far a standby says that it has followed: epoch and batch; None: it has said nothing.

        Raises:
            LogError: where what it said cannot be read.
        """
        stream = standby_stream(self.operator.name)
        place = EpochPlace(root=self.log.root, stream=stream, site=writer, epoch=epoch)
        said = read_segment(place, last_batch_of(place))
        if said is None:
            return None
        (last,) = (row for file in said.files for b in read_batches(file) for row in b.to_pylist())
        return last["epoch"], last["batch"]

    def read_offset(self, place: EpochPlace, batch: int) -> Offset:
        """How far the input was read by this commit."""
        offset: Offset = json.loads(self._info(self._segment(place, batch))["offset"])
        return offset

    def read(self, place: EpochPlace, batch: int) -> Commit:
        """One commit.

        Raises:
            LogError: where it is not there, or cannot be read.
        """
        return self._to_commit(place, self._segment(place, batch))

    def commits(self, place: EpochPlace, after: int) -> Iterator[Commit]:
        """The commits of an epoch after one, in order, as far as they count."""
        for segment in self.log.segments_at(place, after):
            yield self._to_commit(place, segment)

    def write(
        self, writer: LogWriter, batch: int, change: Change, offset: Offset, fingerprint: int
    ) -> Segment:
        """Publish a commit; see `LogWriter.publish` for what it raises."""
        tables = {
            _INFO: _info_table(offset, fingerprint),
            _UPDATED: change.updated,
            _REMOVED: change.removed,
            _OUTPUT: change.output,
        }
        return _publish(writer, batch, tables)

    def write_snapshot(
        self, writer: LogWriter, batch: int, state: KeyedState, offset: Offset
    ) -> Segment:
        """Publish the whole state after a commit."""
        tables = {_INFO: _info_table(offset, state.fingerprint), _UPDATED: state.to_table()}
        return _publish(writer, batch, tables)

    def last_snapshot(self, upto_epoch: int) -> Segment | None:
        """The newest snapshot of epochs up to one."""
        places = self.log.places(snapshot_stream(self.operator.name))
        known = [place for place in places if place.epoch <= upto_epoch]
        for place in sorted(known, key=lambda place: place.epoch, reverse=True):
            fence = self.log.find_fence(place.site, place.epoch, kind=place.kind)
            batch = last_batch_of(place, None if fence is None else fence.last_batch)
            if batch >= 0:
                return read_segment(place, batch)
        return None

    def read_state(self, snapshot: Segment) -> KeyedState:
        """The state of a snapshot.

        Raises:
            StateDiffers: where it is not the one that was written.
        """
        table = _part(snapshot, _UPDATED, self.operator.state)
        state = KeyedState(self.operator.state, self.operator.key, table)
        require_fingerprint(state, int(self._info(snapshot)["fingerprint"], 16), str(snapshot))
        return state

    def _segment(self, place: EpochPlace, batch: int) -> Segment:
        segment = read_segment(place, batch)
        if segment is None:
            raise LogError(f"cannot read the log: {place.segment(batch)} is gone")
        return segment

    def _info(self, segment: Segment) -> Mapping[str, str]:
        (info,) = _part(segment, _INFO, _INFO_SCHEMA).to_pylist()
        known: Mapping[str, str] = info
        return known

    def _to_commit(self, place: EpochPlace, segment: Segment) -> Commit:
        info = self._info(segment)
        change = Change(
            output=_part(segment, _OUTPUT, self.operator.output),
            updated=_part(segment, _UPDATED, self.operator.state),
            removed=_part(segment, _REMOVED, self._removed),
        )
        return Commit(
            place=place,
            batch=segment.batch,
            offset=json.loads(info["offset"]),
            fingerprint=int(info["fingerprint"], 16),
            change=change,
        )


class Ledger:
    """The state of an operator as far as its commits were read, and read on from there.

    Only one goes on to the next epoch when the last one is known to have ended.
    """

    def __init__(self, commits: KeyedLog) -> None:
        self._commits = commits
        operator = commits.operator
        self.state = KeyedState(operator.state, operator.key)
        self.epoch = -1
        self.batch = -1
        self._new_bytes = 0

    def follow(self, upto_epoch: int) -> None:
        """Take in all that is new in epochs up to one.

        Raises:
            StateDiffers: where a commit does not lead to the state that it says.
            LogError: where the log cannot be read.
        """
        with while_there(self._commits.log.root):
            self._follow(upto_epoch)

    def _follow(self, upto_epoch: int) -> None:
        if self.epoch < 0:
            self._begin_at_snapshot(upto_epoch)
        for place in self._commits.places(upto_epoch):
            if place.epoch < self.epoch:
                continue
            # Asked first: what is committed until then is seen below.
            ended = self._commits.is_fenced(place)
            after = self.batch if place.epoch == self.epoch else -1
            for commit in self._commits.commits(place, after):
                self.take(commit.change, place.epoch, commit.batch)
                name = f"commit {commit.batch} of {place.stream}, epoch {place.epoch}"
                require_fingerprint(self.state, commit.fingerprint, name)
            if not ended:
                return

    def take(self, change: Change, epoch: int, batch: int) -> None:
        """Take in the commit that comes next."""
        key = self._commits.operator.key
        self.state.change(change.updated, keys_of(change.removed, key))
        self.epoch, self.batch = epoch, batch
        self._new_bytes += change.updated.nbytes + change.output.nbytes + _BYTES_PER_COMMIT

    def wants_snapshot(self) -> bool:
        """Whether a reader would be better off with a snapshot than with the commits so far."""
        return self._new_bytes > 2 * self.state.nbytes + _LEAST_SNAPSHOT_BYTES

    def has_snapshot(self) -> None:
        """There is a snapshot of the state as it is now."""
        self._new_bytes = 0

    def _begin_at_snapshot(self, upto_epoch: int) -> None:
        snapshot = self._commits.last_snapshot(upto_epoch)
        if snapshot is not None:
            self.state = self._commits.read_state(snapshot)
            self.epoch, self.batch = snapshot.epoch, snapshot.batch


def require_fingerprint(state: KeyedState, fingerprint: int, name: str) -> None:
    """Raise `StateDiffers` unless the state has this fingerprint."""
    if state.fingerprint != fingerprint:
        raise StateDiffers(
            f"the state after {name} is not the one that was written: its fingerprint is "
            f"{state.fingerprint:016x}, not {fingerprint:016x}. Hint: a file of the log was "
            "changed, or the operator's columns were."
        )


def _info_table(offset: Offset, fingerprint: int) -> pa.Table:
    row = {"offset": json.dumps(offset), "fingerprint": f"{fingerprint:016x}"}
    return pa.Table.from_pylist([row], schema=_INFO_SCHEMA)


def _publish(writer: LogWriter, batch: int, tables: Mapping[str, pa.Table]) -> Segment:
    disk = Disk(durable=writer.durable)
    with writer.drafting(batch) as draft:
        parts = []
        for file, table in tables.items():
            part = write_part(
                disk,
                draft,
                file,
                [b for b in table.to_batches(_ROWS_PER_RECORD_BATCH) if b.num_rows],
                compression=writer.compression,
                hash_of=hash_rows,
            )
            parts += [part] if part else []
        columns = describe_columns(tables[_UPDATED].schema)
        return writer.commit(batch, draft, parts, columns=columns, hash_kind=HASH_KIND)


def _part(segment: Segment, name: str, schema: pa.Schema) -> pa.Table:
    files: list[Path] = [file for file in segment.files if file.name == name]
    batches = [batch for file in files for batch in read_batches(file)]
    try:
        return pa.Table.from_batches(batches, schema=schema)
    except pa.ArrowInvalid as error:
        raise LogError(f"cannot read {segment}: its {name} has other columns: {error}") from error
