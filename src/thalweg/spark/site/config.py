"""How Spark is set up for a site: small, quick to start, quick at each batch."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

_STREAMING = {
    # Rows are few and sites have one or two cores: a second partition would only be overhead.
    "spark.sql.shuffle.partitions": "1",
    # Spark's default forks helper processes at every write of its own log, 50 ms each.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # A file source keeps what it has read of the last hundred batches at least. Spark keeps it for
    # ten minutes more, for readers of object stores: thousands of files, listed at every batch.
    "spark.sql.streaming.fileSource.log.cleanupDelay": "1s",
    # Milliseconds. Without rows, Spark asks every source again after 10 of them: of a query with an
    # inbox at each edge, that takes a third of a core.
    "spark.sql.streaming.pollingDelay": "200",
    "spark.sql.session.timeZone": "UTC",
}

# Spark remembers a thousand ended plans, jobs and stages for its pages, also where it shows none:
# of long plans a hundred MiB, which every full collection goes through.
_REMEMBERED = {
    "spark.sql.ui.retainedExecutions": "50",
    "spark.ui.retainedJobs": "100",
    "spark.ui.retainedStages": "100",
    "spark.ui.retainedTasks": "1000",
}


def site_config(
    master: str, scratch: Path, heap_mb: int, java_options: Iterable[str]
) -> dict[str, str]:
    """The settings of a site's Spark; of a Spark Connect server only those of the session."""
    if master.startswith("sc://"):
        return dict(_STREAMING)
    java = [
        "-XX:+UseSerialGC",
        # On one core, the second compiler takes for a minute what the streams need.
        "-XX:TieredStopAtLevel=1",
        # With one compiler the JVM keeps only 48 MB of code. A long query fills that, and then
        # what was thrown away is compiled again, batch after batch.
        "-XX:ReservedCodeCacheSize=128m",
        "-XX:-UsePerfData",
        f"-Djava.io.tmpdir={scratch}",
        *java_options,
    ]
    return (
        _STREAMING
        | _driver_settings(scratch, heap_mb, java)
        | ({} if master.startswith("local") else _cluster_settings(master, heap_mb))
    )


def _driver_settings(scratch: Path, heap_mb: int, java: Iterable[str]) -> dict[str, str]:
    return {
        "spark.driver.memory": f"{heap_mb}m",
        "spark.driver.extraJavaOptions": " ".join(java),
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.default.parallelism": "1",
        "spark.ui.enabled": "false",
        # A query of ten operators with an inbox at every edge is made of more classes than Spark
        # keeps by default; those that it forgot it compiles again, at every batch.
        "spark.sql.codegen.cache.maxEntries": "2000",
        # The shuffle files of an ended batch go when the JVM finds that nobody needs them. Of a
        # batch that has grown old in the heap that is at a full collection, which is seldom.
        "spark.cleaner.periodicGC.interval": "5min",
        **_REMEMBERED,
    }


def _cluster_settings(master: str, heap_mb: int) -> dict[str, str]:
    """As much of a cluster as a site needs that has few rows, so that several sites fit on it."""
    settings = {"spark.executor.memory": f"{heap_mb}m"}
    if master.startswith("spark://"):
        # A standalone master gives all cores to the first site otherwise, and the next one waits.
        return settings | {"spark.cores.max": "1"}
    return settings | {"spark.executor.instances": "1", "spark.executor.cores": "1"}


class ServerLease:
    """The session that a site has on a Spark Connect server, remembered in the site's folder.

    Queries on such a server outlive a killed client. The next client of the site finds the
    session's number here, and ends what is left of it before it opens its own.
    """

    def __init__(self, master: str, folder: Path) -> None:
        self.remote = master.startswith("sc://")
        self._master = master
        self._file = folder / "connect-session"

    def renew(self) -> str:
        """The address to connect to, with a session of one's own; what was left has ended."""
        if not self.remote:
            return self._master
        if self._file.exists():
            self._end_session(self._file.read_text())
        number = str(uuid.uuid4())
        self._file.write_text(number)
        return self._with_session(number)

    def release(self) -> None:
        """Forget the session, which has ended in order."""
        self._file.unlink(missing_ok=True)

    def _with_session(self, number: str) -> str:
        address = self._master if ";" in self._master else f"{self._master.rstrip('/')}/"
        return f"{address.rstrip(';')};session_id={number}"

    def _end_session(self, number: str) -> None:
        from pyspark.sql.connect.session import SparkSession

        # A server that was started anew knows nothing of the session: then nothing is left of it.
        with suppress(Exception):
            session = SparkSession.builder.remote(self._with_session(number)).create()
            for query in session.streams.active:
                query.stop()
            session.stop()
