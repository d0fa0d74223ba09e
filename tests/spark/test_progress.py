"""What is asked of Spark about a query's batches, and how little of it."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from thalweg.spark.query.clock import Clock
from thalweg.spark.query.feeder import Feeder
from thalweg.spark.query.progress import last_progress, progress_after
from thalweg.spark.query.running import RunningQuery
from thalweg.spark.query.spec import QuerySpec


class PlayedProgress:
    def __init__(self, batch: int, asked: list[int]) -> None:
        self._batch, self._asked = batch, asked

    def json(self) -> str:
        self._asked.append(self._batch)
        return json.dumps({"batchId": self._batch})


def on_the_jvm(batches: int, asked: list[int]) -> Any:
    told = [PlayedProgress(batch, asked) for batch in range(batches)]
    java = SimpleNamespace(
        recentProgress=lambda: told, lastProgress=lambda: told[-1] if told else None
    )
    return SimpleNamespace(_jsq=java)


def over_connect(batches: int) -> Any:
    told = [SimpleNamespace(json=json.dumps({"batchId": batch})) for batch in range(batches)]
    return SimpleNamespace(recentProgress=told, lastProgress=told[-1] if told else None)


@pytest.mark.parametrize("make", [lambda n: on_the_jvm(n, []), over_connect])
def test_only_later_batches_are_told_in_their_order(make: Any) -> None:
    assert [p["batchId"] for p in progress_after(make(5), 2)] == [3, 4]
    assert [p["batchId"] for p in progress_after(make(3), -1)] == [0, 1, 2]
    assert progress_after(make(3), 2) == progress_after(make(0), -1) == []
    assert last_progress(make(3)) == {"batchId": 2}
    assert last_progress(make(0)) == {}


def test_of_a_hundred_batches_only_the_new_ones_are_asked_for() -> None:
    asked: list[int] = []
    progress_after(on_the_jvm(100, asked), 97)
    assert sorted(asked) == [97, 98, 99]


def test_marks_that_were_taken_long_ago_are_removed(tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    clock = Clock(tmp_path / "intake" / "clock")
    for time_ms in range(1, 10):
        clock.advance(time_ms)
    (checkpoint / "commits").mkdir(parents=True)
    (checkpoint / "commits" / "60").write_text("v1")
    taken = checkpoint.with_name("checkpoint.taken")
    taken.mkdir()
    (taken / "60").write_text(json.dumps({"lots": {clock.label: 6}, "rows": {}}))
    feeder = Feeder(checkpoint, {}, clock)
    feeder._lay_next()
    kept = sorted(int(file.stem) for file in clock.rows_folder.glob("*.parquet"))
    # The last that was taken is still read by who tells the time.
    assert kept == [6, 7, 8]
    assert Clock(tmp_path / "intake" / "clock").time_ms == 9


def test_a_query_is_idle_when_no_batch_is_under_way_and_it_may_take_all_rows(
    tmp_path: Path,
) -> None:
    """Spark reports a batch only when it is done: that one hangs is seen in the checkpoint."""
    checkpoint = tmp_path / "checkpoint"
    for folder in ("offsets", "commits"):
        (checkpoint / folder).mkdir(parents=True)
    spec = QuerySpec(
        site="fog-0", epoch=0, role="own", pipeline="a:b", log=tmp_path, checkpoint=checkpoint
    )
    query = SimpleNamespace(
        id=1, isActive=True, exception=lambda: None, lastProgress=None, recentProgress=[]
    )
    feeder = Feeder(checkpoint, {})
    # Nothing is to be fed here.
    feeder.start = lambda: None  # type: ignore[method-assign]
    running = RunningQuery(spec, query, ExitStack(), feeder=feeder)  # type: ignore[arg-type]

    def is_idle() -> bool:
        return running.status().is_idle

    assert is_idle()
    (checkpoint / "offsets" / "0").write_text("v1\n{}")
    assert not is_idle()
    (checkpoint / "commits" / "0").write_text("v1")
    (tmp_path / "checkpoint.taken").mkdir()
    (tmp_path / "checkpoint.taken" / "0").write_text('{"lots": {}, "rows": {}}')
    assert is_idle()
    # A change of cuts has it stop before the end of its streams.
    feeder.limit(None)
    assert not is_idle()
    feeder.limit({})
    assert not is_idle()
    feeder.release()
    assert is_idle()
    query.isActive = False
    assert running.status().state == "stopped"
