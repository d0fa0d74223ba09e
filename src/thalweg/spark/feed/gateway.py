"""What writes the rows that are born at a site into the log.

A gateway numbers what it sends. One that is started again goes on after the last batch that its
predecessor published, so a batch is there once or not at all.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from thalweg.errors import Defect, Defects, InvalidInput
from thalweg.spark.log import Log
from thalweg.spark.log.epoch import last_batch_of
from thalweg.spark.log.names import source_stream
from thalweg.spark.log.writer import LogWriter
from thalweg.spark.query.clock import CLOCK_SCHEMA, SOURCE_CLOCK

if TYPE_CHECKING:
    from thalweg.spark.log.segment import Segment
    from thalweg.spark.pipeline.kinds import Step

END_OF_TIME = datetime(9999, 1, 1, tzinfo=UTC)
"""What a gateway marks when nothing will ever come again."""


class Gateway:
    """The one who writes a source's rows at a site; a newer one takes over from an older.

    `time` names the column with the event time, if the rows have one. Without `durable`, nobody
    waits for the disk: what was sent then survives the death of processes, but perhaps not a power
    cut. A run makes its log when it is started; with `founds`, a gateway may be there first.

    Raises:
        LogError: where there is no log, or it cannot be written.
    """

    def __init__(
        self,
        log: Log | Path | str,
        source: str,
        site: str,
        *,
        time: str | None = None,
        durable: bool = True,
        founds: bool = False,
    ) -> None:
        root = log.root if isinstance(log, Log) else Path(log)
        self.root, self.source, self.site = root, source, site
        self._rows = LogWriter(
            root, source_stream(source), site, 0, time=time, durable=durable, founds=founds
        )
        self._clock = LogWriter(
            root, SOURCE_CLOCK, site, 0, time="time", durable=durable, founds=founds
        )
        self._next = last_batch_of(self._rows.place) + 1
        self._marked: datetime | None = None

    @classmethod
    def of(
        cls,
        log: Log | Path | str,
        source: Step,
        site: str,
        *,
        durable: bool = True,
        founds: bool = False,
    ) -> Gateway:
        """The gateway of a pipeline's source at a site."""
        return cls(log, source.name, site, time=source.time, durable=durable, founds=founds)

    def send(self, table: pa.Table) -> Segment:
        """Publish these rows as the next batch; they are in the log when this returns.

        Raises:
            InvalidInput: where the table has no column of the event time.
            LogError: where the disk is full or read-only, or a newer gateway has taken over.
        """
        segment = self._rows.publish(self._next, table)
        self._next += 1
        return segment

    def mark(self, time: datetime) -> bool:
        """Say that no row older than this will come from this site; False if that was known.

        It lets time go on where there are no rows. It speaks for all sources of the site.
        """
        if not isinstance(time, datetime) or time.tzinfo is None:
            rule = "a time with its zone, such as datetime.now(UTC)"
            raise InvalidInput([Defect(path="time", value=time, rule=rule)])
        if self._marked is not None and time <= self._marked:
            return False
        row = pa.table({"time": [time.astimezone(UTC)]}, schema=CLOCK_SCHEMA)
        # Gateways of other sources at this site mark in the same stream.
        self._clock.publish(last_batch_of(self._clock.place) + 1, row)
        self._marked = time
        return True

    def close(self) -> None:
        """Say that nothing will ever come again, so that every window ends."""
        self.mark(END_OF_TIME)


def require_gateways(defects: Defects, path: str, sites: Iterable[str]) -> None:
    """Remember a defect unless there is a gateway to send to."""
    names = list(sites)
    defects.require(bool(names), path, names, "a gateway for at least one site")
