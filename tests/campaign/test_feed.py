"""The feed of the campaign does what a device is told to do."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from campaign.feed import Feed
from campaign.numbered import SOURCE
from thalweg.spark.log import Log
from thalweg.spark.log.disk import LogError
from thalweg.spark.log.founding import found_log
from thalweg.spark.log.names import source_stream
from thalweg.spark.log.writer import LogWriter


@pytest.mark.parametrize("is_taken", [False, True], ids=["not taken", "taken"])
def test_events_are_sent_until_the_log_says_that_it_has_them_and_count_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_taken: bool
) -> None:
    publish, fails = LogWriter.publish, iter([True, False, True, True])

    def fail_now_and_then(writer: LogWriter, batch: int, table: pa.Table) -> Any:
        failing = next(fails, False)
        if is_taken or not failing:
            segment = publish(writer, batch, table)
        if failing:
            raise LogError("the disk went away, before or after the batch was there")
        return segment

    monkeypatch.setattr(LogWriter, "publish", fail_now_and_then)
    found_log(tmp_path)
    feed = Feed({"fog-0": tmp_path, "fog-1": tmp_path})
    for _ in range(6):
        feed._send()
    sent = feed.events["number"].to_pylist()
    assert len(sent) == feed.count == 60
    found = Log(tmp_path).read(source_stream(SOURCE))["number"].to_pylist()
    assert Counter(found) == Counter(sent) == Counter(range(60))
