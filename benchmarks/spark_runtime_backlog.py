"""Rides that have piled up: in the log of a split run, in that of one place, and as plain files.

Everything is written once. A run gets it all at once by links, when its queries are warm.
"""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.spark_runtime_sites import DELAY_S, FOGS, SOURCE, TIME
from thalweg.scenarios.rides import MONDAY, generate_rides
from thalweg.spark.feed.gateway import END_OF_TIME, Gateway
from thalweg.spark.feed.rides import split_rides
from thalweg.spark.log.names import edge_stream
from thalweg.spark.log.writer import LogWriter
from thalweg.spark.query.clock import END_OF_TIME_MS, SITE_CLOCK, clock_table

RIDES_PER_S = 3_000
FIRST_OPERATOR = "parse"
BEGIN = MONDAY + timedelta(hours=12)
EMPTY = "0.parquet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """Rides that wait to be worked on, a second of them in each segment of the log."""

    folder: Path
    rides: int
    rows_per_batch: int

    def write(self) -> None:
        """Write it in all three forms."""
        rides = generate_rides(self.rides, seed=1, start=BEGIN, seconds=self.rides / RIDES_PER_S)
        self._write_logs(rides)
        self._write_files(rides)

    def put_into_log(self, log: Path, kind: str) -> float:
        """Give it to a log as what was born at sites, or as what they sent; tells when."""
        copy = log.with_name(f"{log.name}-{kind}")
        shutil.copytree(self.folder / kind, copy, copy_function=os.link)
        now = time.time()
        copy.rename(log / kind)
        return now

    def put_empty_file(self, folder: Path) -> None:
        """Let a query that reads files begin."""
        folder.mkdir(parents=True)
        os.link(self.folder / "files" / EMPTY, folder / EMPTY)

    def put_files(self, folder: Path) -> float:
        """Give it to a folder as Parquet files, a batch in each; tells when."""
        now = time.time()
        files = (self.folder / "files").iterdir()
        for file in sorted((f for f in files if f.name != EMPTY), key=lambda f: int(f.stem)):
            os.link(file, folder / file.name)
        return now

    def _write_logs(self, rides: pa.Table) -> None:
        gateways = {
            fog: Gateway(self.folder, SOURCE, fog, time=TIME, durable=False, founds=True)
            for fog in FOGS
        }
        sent = {
            fog: LogWriter(self.folder, edge_stream(SOURCE, FIRST_OPERATOR), fog, 0, durable=False)
            for fog in FOGS
        }
        clocks = {
            fog: LogWriter(self.folder, SITE_CLOCK, fog, 0, time="time", durable=False)
            for fog in FOGS
        }
        seconds = -(-self.rides // RIDES_PER_S)
        for second in range(seconds):
            part = rides.slice(second * RIDES_PER_S, RIDES_PER_S)
            newest: datetime = pc.max(part[TIME]).as_py()
            for fog, table in split_rides(part, FOGS).items():
                gateways[fog].send(table)
                sent[fog].publish(second, table)
                told_ms = round((newest.timestamp() - DELAY_S) * 1000)
                clocks[fog].publish(second, clock_table(told_ms))
        for fog in FOGS:
            gateways[fog].close()
            clocks[fog].publish(seconds, clock_table(END_OF_TIME_MS))

    def _write_files(self, rides: pa.Table) -> None:
        folder = self.folder / "files"
        folder.mkdir()
        parts = [
            rides.slice(first, self.rows_per_batch)
            for first in range(0, self.rides, self.rows_per_batch)
        ]
        # A ride at the end of time ends every window before it; its own never does.
        last = rides.slice(0, 1).to_pylist()[0] | {TIME: END_OF_TIME.astimezone(UTC)}
        parts.append(pa.Table.from_pylist([last], schema=rides.schema))
        for number, part in enumerate([rides.slice(0, 0), *parts]):
            file = folder / f"{number}.parquet"
            pq.write_table(part, file, compression="none", use_dictionary=False)
            # Spark takes files in the order of their age.
            os.utime(file, (number + 1, number + 1))
