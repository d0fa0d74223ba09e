"""A clock that is set back: Spark would wait until it is there again."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast

import pyarrow as pa

from thalweg.spark.query.intake import write_rows
from thalweg.spark.query.running import Repair, RunningQuery
from thalweg.spark.query.spec import QuerySpec
from thalweg.spark.site.wall_clock import WallClock


class Hands:
    """Two clocks that can be set."""

    def __init__(self) -> None:
        self.wall_s, self.forward_s = 1e9, 50.0

    def pass_by(self, seconds: float, *, shown: float | None = None) -> None:
        self.forward_s += seconds
        self.wall_s += seconds if shown is None else shown


def test_only_a_step_back_counts_and_each_once() -> None:
    hands = Hands()
    clock = WallClock(lambda: hands.wall_s, lambda: hands.forward_s)
    assert clock.went_back_s() == 0.0
    hands.pass_by(100.0)
    assert clock.went_back_s() == 0.0
    hands.pass_by(0.5, shown=3600.0)
    assert clock.went_back_s() == 0.0
    hands.pass_by(0.5, shown=-3600.0)
    assert round(clock.went_back_s(), 3) == 3600.5
    hands.pass_by(0.5)
    assert clock.went_back_s() == 0.0


def test_files_are_never_older_than_the_one_before(tmp_path: Path) -> None:
    """Spark takes no file that is a week older than the newest that it has seen."""
    table, year_s = pa.table({"n": [1]}), 365 * 86_400
    write_rows(table, tmp_path / "0.parquet")
    # The clock was a year ahead then.
    ahead_s = (tmp_path / "0.parquet").stat().st_mtime + year_s
    os.utime(tmp_path / "0.parquet", (ahead_s, ahead_s))
    for number in (1, 2):
        write_rows(table, tmp_path / f"{number}.parquet")
    times = [(tmp_path / f"{n}.parquet").stat().st_mtime for n in range(3)]
    assert times == sorted(times)
    # In the place of one that is there, when those before it are gone: still as young.
    for number in (0, 1):
        (tmp_path / f"{number}.parquet").unlink()
    write_rows(table, tmp_path / "2.parquet")
    assert (tmp_path / "2.parquet").stat().st_mtime == times[2]
    write_rows(table, tmp_path / "rides.parquet")
    assert (tmp_path / "rides.parquet").stat().st_mtime < ahead_s - year_s / 2


class PlayedQuery:
    """A streaming query that runs until it is stopped."""

    recentProgress: tuple[()] = ()  # noqa: N815

    def __init__(self) -> None:
        self.isActive, self.stops = True, 0

    def stop(self) -> None:
        self.isActive = False
        self.stops += 1

    def exception(self) -> None:
        return None


def make_query(folder: Path, made: list[PlayedQuery]) -> RunningQuery:
    spec = QuerySpec(
        site="fog-1",
        epoch=0,
        role="own",
        pipeline="a:b",
        log=folder / "log",
        checkpoint=folder / "checkpoint",
    )

    def restart() -> Any:
        made.append(PlayedQuery())
        return made[-1]

    first = cast("Any", restart())
    return RunningQuery(spec, first, ExitStack(), repair=Repair(restart=restart))


def test_a_query_is_made_anew_while_it_runs(tmp_path: Path) -> None:
    made: list[PlayedQuery] = []
    query = make_query(tmp_path, made)
    assert query.start_over()
    assert (len(made), made[0].stops, made[1].stops) == (2, 1, 0)
    assert query.active
    assert query.error is None


def test_a_query_that_was_told_to_end_stays_ended(tmp_path: Path) -> None:
    made: list[PlayedQuery] = []
    query = make_query(tmp_path, made)
    query.stop()
    assert not query.start_over()
    assert len(made) == 1
    failed: list[PlayedQuery] = []
    other = make_query(tmp_path / "other", failed)
    failed[0].isActive = False
    assert not other.start_over()
    assert len(failed) == 1
