"""What a site's settings keep small."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from thalweg.spark.class_archive import archive_options
from thalweg.spark.java import find_java
from thalweg.spark.query.checkpoint import last_number
from thalweg.spark.query.intake import write_rows
from thalweg.spark.query.source_lists import SourceLists
from thalweg.spark.session import open_session
from thalweg.spark.site.config import site_config

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_BATCHES = 180
_KEPT_BATCHES = 100
_COMPACTED_EVERY = 10


@pytest.mark.jvm
@pytest.mark.slow
def test_a_site_forgets_the_files_and_the_plans_of_long_ago(tmp_path: Path) -> None:
    rows, checkpoint, scratch = tmp_path / "rows", tmp_path / "checkpoint", tmp_path / "scratch"
    rows.mkdir()
    scratch.mkdir()
    lists, came = SourceLists(checkpoint, durable=False), list[int]()

    def take(batch: DataFrame, number: int) -> None:
        came.extend(batch.toArrow()["n"].to_pylist())
        lists.shorten(number)
        # As an intake does: what a finished batch has taken is removed.
        for done in came[:-1]:
            (rows / f"{done}.parquet").unlink(missing_ok=True)

    def read_all(session: SparkSession) -> None:
        read = session.readStream.schema("n long").option("maxFilesPerTrigger", 1)
        written = read.parquet(str(rows)).writeStream.foreachBatch(take)
        written = written.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
        query = written.start()
        assert query.awaitTermination(240)
        assert query.exception() is None

    config = site_config("local[1]", scratch, 512, archive_options(find_java()))
    with open_session("local[1]", "files", config=config, log=tmp_path / "log") as session:
        lay_down(rows, range(_BATCHES))
        read_all(session)
        remembered = session._jsparkSession.sharedState().statusStore().executionsCount()
        # A new start has the lists alone to know which files it has had.
        lay_down(rows, range(_BATCHES, _BATCHES + 15))
        read_all(session)
    assert sorted(came) == list(range(_BATCHES + 15))
    # Every batch is an execution; the oldest are forgotten a few at a time, a moment later.
    assert 0 < remembered < _BATCHES / 2
    log = checkpoint / "sources" / "0"
    assert last_number(log) == _BATCHES + 14
    kept = [file for file in log.iterdir() if not file.name.startswith(".")]
    # All from the compacted file before the last hundred batches on, and what is too young to go.
    assert _KEPT_BATCHES <= len(kept) <= _KEPT_BATCHES + 4 * _COMPACTED_EVERY
    whole = max((file for file in kept if file.suffix), key=lambda file: int(file.stem))
    entries = whole.read_text().splitlines()[1:]
    assert _KEPT_BATCHES <= len(entries) <= _KEPT_BATCHES + 2 * _COMPACTED_EVERY


@pytest.mark.parametrize("master", ["local[1]", "spark://host:7077", "sc://host:15002"])
def test_a_query_without_rows_asks_its_sources_five_times_a_second(
    tmp_path: Path, master: str
) -> None:
    """By Spark's default of 10 ms, an idle query with ten inboxes takes a third of a core."""
    config = site_config(master, tmp_path, 512, ())
    assert config["spark.sql.streaming.pollingDelay"] == "200"


def lay_down(rows: Path, numbers: range) -> None:
    for number in numbers:
        write_rows(pa.table({"n": [number]}), rows / f"{number}.parquet")
