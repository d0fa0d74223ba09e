"""What a keyed operator does with its rows in an epoch: works on a lot, commits, publishes."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self

import pyarrow as pa

from thalweg.errors import Defects, nearest
from thalweg.spark.keyed.log import (
    STATES,
    KeyedLog,
    Ledger,
    snapshot_stream,
    standby_stream,
    state_stream,
)
from thalweg.spark.keyed.operator import KeyedOperator, first_of_each_key, load_operator
from thalweg.spark.log.names import EpochPlace, require_stream
from thalweg.spark.log.reader import Log, LogError
from thalweg.spark.log.writer import LogWriter
from thalweg.spark.query.spec import QuerySpec

_ATTEMPTS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedOptions:
    """What the query of a keyed operator is told, beyond what every query is."""

    operator: str
    """`package.module:attribute`."""
    input: str
    """The stream of the log that it reads."""
    output: str
    """The stream of the log that it publishes in."""
    input_site: str | None = None
    """Whose rows it reads; None: those of all sites."""
    follows: tuple[str, int] | None = None
    """The writer and the epoch that it takes over from; None: it is the first."""

    @classmethod
    def of(cls, spec: QuerySpec) -> Self:
        """The options of a query.

        Raises:
            InvalidInput: with all that is wrong with them.
        """
        values = dict(spec.options)
        known = set(cls.__dataclass_fields__)
        defects = Defects()
        for name in sorted(set(values) - known):
            defects.add(f"options.{name}", values[name], "an option", nearest(name, known))
        for name in ("input", "output"):
            require_stream(defects, f"options.{name}", values.get(name))
        is_reference = isinstance(values.get("operator"), str)
        rule = "package.module:attribute"
        defects.require(is_reference, "options.operator", values.get("operator"), rule)
        defects.raise_if_any()
        follows: Any = values.pop("follows", None)
        return cls(**values, follows=None if follows is None else tuple(follows))  # type: ignore[arg-type]


class KeyedWork:
    """The state of an operator in an epoch, and what its batches do to it."""

    def __init__(self, spec: QuerySpec) -> None:
        self._spec = spec
        self._options = KeyedOptions.of(spec)
        self._operator: KeyedOperator = load_operator(self._options.operator)
        self._log = Log(spec.log)
        self._commits = KeyedLog(self._log, self._operator)
        self._ledger = Ledger(self._commits)
        self._writers: dict[str, LogWriter] = {}
        self._begun = False
        self._snapshot: threading.Thread | None = None

    def follow(self, number: int) -> None:
        """Take in what is new, and say so; or begin, if the epoch before has ended."""
        if self._fenced():
            return
        if self._begun or self._may_begin():
            self._begin()
            return
        self._ledger.follow(self._spec.epoch)
        # What is loaded when it is first used should not be loaded after the fence. Of nothing, a
        # function need not make anything.
        with suppress(Exception):
            self._operator.work(self._operator.rows.empty_table(), self._ledger.state.find([]))
        name = self._operator.name
        stand = {"epoch": [self._ledger.epoch], "batch": [self._ledger.batch]}
        self._writer(standby_stream(name)).publish(number, pa.table(stand))

    def do(self, lot: int, rows: pa.Table, end: Mapping[str, Mapping[str, int]]) -> None:
        """Work on a lot, unless that is done already."""
        if self._fenced():
            return
        self._begin()
        ledger, operator = self._ledger, self._operator
        if ledger.epoch == self._spec.epoch and lot <= ledger.batch:
            return
        rows = rows.select(operator.rows.names).cast(operator.rows).combine_chunks()
        state = ledger.state.find(first_of_each_key(rows, operator.key))
        change = operator.work(rows, state)
        ledger.take(change, self._spec.epoch, lot)
        try:
            writer = self._writer(state_stream(operator.name))
            self._commits.write(writer, lot, change, end, ledger.state.fingerprint)
            self._publish(lot, change.output)
            if ledger.wants_snapshot():
                self._write_snapshot(lot, end)
        except LogError:
            # The state here is ahead of the log, and never used again.
            if not self._fenced():
                raise

    def _write_snapshot(self, lot: int, end: Mapping[str, Mapping[str, int]]) -> None:
        """Write the state as it is now, while batches go on."""
        if self._snapshot is not None and self._snapshot.is_alive():
            return
        writer, state = (
            self._writer(snapshot_stream(self._operator.name)),
            self._ledger.state.copy(),
        )

        def write() -> None:
            # A snapshot saves time and is needed by nobody: what keeps it from being written will
            # be told by the next commit, if it is no fence.
            with suppress(LogError):
                self._commits.write_snapshot(writer, lot, state, end)

        self._snapshot = threading.Thread(target=write, name="snapshot", daemon=True)
        self._snapshot.start()
        self._ledger.has_snapshot()

    def _may_begin(self) -> bool:
        follows = self._options.follows
        if follows is None:
            return True
        site, epoch = follows
        return self._log.find_fence(site, epoch, kind=STATES) is not None

    def _begin(self) -> None:
        """Take in the rest of the epoch before, and publish what it committed but did not."""
        if self._begun:
            return
        if not self._may_begin():
            raise LogError(f"epoch {self._spec.epoch} has rows before the one before it ended")
        self._ledger.follow(self._spec.epoch)
        self._complete()
        self._begun = True

    def _complete(self) -> None:
        """Let the output be all that was committed, and end it where the commits have ended."""
        kind = self._options.output.partition("/")[0]
        last = self._commits.last_commit(self._spec.epoch)
        if last is not None:
            place, batch = last
            if self._log.find_fence(place.site, place.epoch, kind=kind) is None:
                self._publish_for(place, batch)
        # Who made the last commit has done the same with all epochs before.
        first = 0 if last is None else last[0].epoch
        places = self._commits.places(self._spec.epoch - 1)
        before = {(place.site, place.epoch) for place in places if place.epoch >= first}
        if self._options.follows is not None:
            before.add(self._options.follows)
        for site, epoch in sorted(before):
            self._log.fence(site, epoch, kind=kind)

    def _publish_for(self, place: EpochPlace, batch: int) -> None:
        """Publish the output of a commit in the name of whoever made it."""
        output = self._commits.read(place, batch).change.output
        for attempts_left in reversed(range(_ATTEMPTS)):
            try:
                if output.num_rows:
                    self._open(self._options.output, place.site, place.epoch).publish(batch, output)
                return
            except LogError:
                # Whoever made the commit may be at it too, and the later one takes over.
                if not attempts_left:
                    raise

    def _publish(self, batch: int, output: pa.Table) -> None:
        if output.num_rows:
            self._writer(self._options.output).publish(batch, output)

    def _fenced(self) -> bool:
        return self._log.find_fence(self._spec.site, self._spec.epoch, kind=STATES) is not None

    def _writer(self, stream: str) -> LogWriter:
        if stream not in self._writers:
            self._writers[stream] = self._open(stream, self._spec.site, self._spec.epoch)
        return self._writers[stream]

    def _open(self, stream: str, site: str, epoch: int) -> LogWriter:
        durable = self._spec.durable
        return LogWriter(self._spec.log, stream, site, epoch, durable=durable, founds=False)
