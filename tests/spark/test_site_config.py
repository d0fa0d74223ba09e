"""What a site's settings keep small."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from thalweg.spark.class_archive import archive_options
from thalweg.spark.java import find_java
from thalweg.spark.query.checkpoint import last_number
from thalweg.spark.query.intake import write_rows
from thalweg.spark.session import open_session
from thalweg.spark.site.config import site_config

_BATCHES = 180
_KEPT_BATCHES = 100
_COMPACTED_EVERY = 10


@pytest.mark.jvm
def test_a_site_forgets_the_files_and_the_plans_of_long_ago(tmp_path: Path) -> None:
    rows, checkpoint, scratch = tmp_path / "rows", tmp_path / "checkpoint", tmp_path / "scratch"
    rows.mkdir()
    scratch.mkdir()
    for number in range(_BATCHES):
        write_rows(pa.table({"n": [number]}), rows / f"{number}.parquet")
    config = site_config("local[1]", scratch, 512, archive_options(find_java()))
    with open_session("local[1]", "files", config=config, log=tmp_path / "log") as session:
        read = session.readStream.schema("n long").option("maxFilesPerTrigger", 1)
        written = read.parquet(str(rows)).writeStream.format("noop")
        written = written.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
        query = written.start()
        assert query.awaitTermination(240)
        assert query.exception() is None
        remembered = session._jsparkSession.sharedState().statusStore().executionsCount()
    # Every batch is an execution; the oldest are forgotten a few at a time, a moment later.
    assert 0 < remembered < _BATCHES / 2
    log = checkpoint / "sources" / "0"
    assert last_number(log) == _BATCHES - 1
    kept = [file for file in log.iterdir() if not file.name.startswith(".")]
    # All from the compacted file before the last hundred batches on, and what is too young to go.
    assert _KEPT_BATCHES <= len(kept) <= _KEPT_BATCHES + 4 * _COMPACTED_EVERY
