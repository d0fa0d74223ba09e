"""Lets the JVMs of sites start in half the time: Spark's classes, loaded and checked once.

`python -m thalweg.spark.class_archive` runs a small stream and has the JVM write down the classes
that it needed (class data sharing). Sites map that file, all of them the same pages of it, instead
of loading some fifteen thousand classes from jars. Without the file everything works, slower.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from thalweg.errors import ThalwegError
from thalweg.spark import session as spark_session
from thalweg.spark.java import JavaHome, _cache_folder, find_java
from thalweg.spark.session import open_session, require_pyspark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_BATCHES = 4
_WARM_UP_TIMEOUT_S = 300
_WRITE_TIMEOUT_S = 300


def archive_path(java: JavaHome) -> Path:
    """Where the archive for this Java and the installed pyspark is, or would be."""
    import pyspark

    made_for = f"{java.path} {java.version} {pyspark.__version__} {pyspark.__file__}"
    name = sha256(made_for.encode()).hexdigest()[:12]
    return _cache_folder() / "class-archive" / f"{name}.jsa"


def archive_options(java: JavaHome) -> list[str]:
    """The options with which a JVM uses the archive; none where there is no archive."""
    path = archive_path(java)
    # A JVM that cannot use the archive says so and starts without.
    return [f"-XX:SharedArchiveFile={path}", "-Xlog:cds=off"] if path.is_file() else []


def build_archive() -> Path:
    """Make the archive, unless it is there, and give its path; takes about a minute.

    Call it in a process that has no Spark session.
    """
    require_pyspark()
    path = archive_path(find_java())
    if path.is_file():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    # The JVM writes the archive as it ends, for longer than sessions usually wait for that.
    spark_session._END_TIMEOUT_S = _WRITE_TIMEOUT_S
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        draft = Path(folder) / path.name
        _run_with_archive(draft, Path(folder))
        if not draft.is_file():
            raise ThalwegError(f"the JVM wrote no class archive to {draft}")
        draft.replace(path)
    return path


def _run_with_archive(draft: Path, folder: Path) -> None:
    from thalweg.spark.site.config import site_config

    config = site_config("local[1]", folder, 768, java_options=())
    java = f"{config['spark.driver.extraJavaOptions']} -XX:ArchiveClassesAtExit={draft}"
    # What cannot be archived is of no interest, and there is a line for each class of it.
    config["spark.driver.extraJavaOptions"] = f"{java} -Xlog:cds=off -Xlog:cds+dynamic=off"
    with open_session("local[1]", "class-archive", config=config, log=folder / "log") as session:
        _warm_up(session, folder / "checkpoint")


def _warm_up(session: SparkSession, checkpoint: Path) -> None:
    """A few batches of a stream with state, so that the classes of all its parts are loaded."""
    done: list[int] = []

    def count(batch: DataFrame, number: int) -> None:
        done.append(number + 0 * batch.toArrow().num_rows)

    rows = session.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    counts = rows.withWatermark("timestamp", "1 second").groupBy("timestamp").count()
    query = (
        counts.writeStream.foreachBatch(count)
        .option("checkpointLocation", str(checkpoint))
        .trigger(processingTime="0 seconds")
        .start()
    )
    deadline = time.monotonic() + _WARM_UP_TIMEOUT_S
    while len(done) < _BATCHES and query.isActive and time.monotonic() < deadline:
        time.sleep(0.05)
    query.stop()


def main() -> int:
    """Make the archive and print its path."""
    try:
        path = build_archive()
    except ThalwegError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(f"{path} ({path.stat().st_size / 1e6:.0f} MB)\n")
    return 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)
