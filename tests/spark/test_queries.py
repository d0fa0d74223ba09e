from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Collection
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark.connect_server import connect_server
from thalweg.errors import InvalidInput, ThalwegError
from thalweg.spark.log.founding import found_log
from thalweg.spark.log.plan import Reading
from thalweg.spark.log.reader import Log, LogError
from thalweg.spark.log.writer import LogWriter
from thalweg.spark.query.checkpoint import Stand
from thalweg.spark.query.clock import END_OF_TIME_MS, SOURCE_CLOCK, clock_table
from thalweg.spark.query.feeder import TakenLots
from thalweg.spark.query.intake import Intake, read_rows_files, write_rows
from thalweg.spark.query.plan import plan_query
from thalweg.spark.query.publisher import BatchGate, BatchHeld, put_together, take_apart
from thalweg.spark.query.queries import check_query, start_query
from thalweg.spark.query.running import RunningQuery
from thalweg.spark.query.spec import QuerySpec
from thalweg.spark.site.site import SiteSpec
from thalweg.spark.site.sites import Sites

pytestmark = pytest.mark.jvm

PATIENCE_S = 180.0
PIPELINE = "spark.site_pipelines:rides"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
SCHEMA = pa.schema(
    [
        ("n", pa.int64()),
        ("zone", pa.int32()),
        ("at", pa.timestamp("us", "UTC")),
        ("fare", pa.int64()),
    ]
)
FOGS = {"fog-1": 1, "fog-2": 2}


def wait_for(happened: Callable[[], Any]) -> Any:
    """What `happened` gives, as soon as it is something."""
    deadline = time.monotonic() + PATIENCE_S
    while not (found := happened()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)
    return found


def refused(call: Callable[..., Any], *arguments: Any) -> dict[str, str]:
    with pytest.raises(InvalidInput) as caught:
        call(*arguments)
    return {defect.path: str(defect) for defect in caught.value.defects}


def spec_of(folder: Path, site: str, cut: tuple[str, ...] = (), **fields: Any) -> QuerySpec:
    epoch = fields.get("epoch", 0)
    given = {
        "site": site,
        "epoch": epoch,
        "role": "fog" if site in FOGS else "cloud",
        "pipeline": PIPELINE,
        "log": folder / "log",
        "checkpoint": folder / "checkpoints" / f"{site}@{epoch}",
        "cut": cut,
        "trigger": "50 ms",
        "durable": False,
        "sites": () if site in FOGS else tuple(FOGS),
    }
    return QuerySpec(**{**given, **fields})


# Plans


@pytest.fixture(scope="module")
def pipeline() -> Any:
    pytest.importorskip("pyspark")
    from spark.site_pipelines import rides

    return rides


FOG_OUTLETS: list[tuple[tuple[str, ...], dict[str, tuple[str, ...]]]] = [
    ((), {"rides": ("edges/rides+clean",)}),
    (
        ("clean",),
        {
            "clean": ("edges/clean+dear", "edges/clean+fares"),
            "dead-letters": ("edges/dead-letters",),
        },
    ),
    (
        ("clean", "dear", "fares", "high"),
        {
            "dear": ("edges/dear+list",),
            "high": ("edges/high+board",),
            "dead-letters": ("edges/dead-letters",),
        },
    ),
]


@pytest.mark.parametrize(("cut", "outlets"), FOG_OUTLETS)
def test_a_fog_reads_its_sources_and_publishes_what_crosses(
    pipeline: Any, cut: tuple[str, ...], outlets: Any, tmp_path: Path
) -> None:
    plan = plan_query(pipeline, spec_of(tmp_path, "fog-1", cut))
    assert dict(plan.outlets) == outlets
    assert dict(plan.sources) == {"rides": "sources/rides"}
    assert (dict(plan.inbox), plan.operators) == ({}, set(cut))


def test_a_cloud_has_an_inbox_wherever_a_fog_may_send(pipeline: Any, tmp_path: Path) -> None:
    plan = plan_query(pipeline, spec_of(tmp_path, "cloud"))
    assert set(plan.inbox) == set(pipeline.edges)
    assert plan.inbox["clean", "fares"] == "edges/clean+fares"
    assert dict(plan.sources) == {}
    assert dict(plan.outlets) == {
        "list": ("sinks/list",),
        "board": ("sinks/board",),
        "dead-letters": ("sinks/dead-letters",),
    }


def test_every_cut_of_the_examples_sends_to_inboxes_of_their_clouds(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    from thalweg.spark.examples.taxi import taxi_demand, taxi_fares

    for example in (taxi_fares, taxi_demand):
        inbox = set(plan_query(example, spec_of(tmp_path, "cloud")).inbox.values())
        cut: tuple[str, ...] = ()
        for step in example.steps:
            if step.operator.replicable:
                cut = (*cut, step.name)
                plan = plan_query(example, spec_of(tmp_path, "fog-1", cut))
                sent = {stream for streams in plan.outlets.values() for stream in streams}
                assert sent - {"edges/dead-letters"} <= inbox
                assert len(sent) > 0


def test_what_cannot_run_is_told_before_anything_starts(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    found_log(tmp_path / "log")
    unknown = spec_of(tmp_path, "fog-1", ("clean", "deer"))
    assert 'did you mean "dear"?' in refused(check_query, unknown)["cut"]
    assert list(refused(check_query, spec_of(tmp_path, "fog-1", ("dear",)))) == ["cut"]
    assert list(refused(check_query, spec_of(tmp_path, "fog-1", ("clean", "dear", "list")))) == [
        "cut"
    ]
    (tmp_path / "file").touch()
    elsewhere = {
        "pipeline": "spark.site_pipelines:rodes",
        "log": tmp_path / "file",
        "checkpoint": tmp_path / "file" / "checkpoint",
    }
    defects = refused(check_query, spec_of(tmp_path, "cloud", **elsewhere))
    assert list(defects) == ["log", "checkpoint", "pipeline"]
    wrong_start = spec_of(tmp_path, "fog-1", start={"sources/rides": {"fog-1": 3}})
    assert list(refused(check_query, wrong_start)) == ["start.sources/rides"]


# Intakes


def table_of(numbers: list[int]) -> pa.Table:
    rows = [{"n": n, "zone": 1, "at": NOON + timedelta(seconds=n), "fare": n} for n in numbers]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def open_intake(folder: Path, rows: int | None = None, start: Any = None) -> Intake:
    reading = Reading(log=Log(folder / "log"), stream="sources/rides", site=None)
    return Intake(reading, folder / "intake", SCHEMA, start=start or {}, rows=rows)


def writer_of(folder: Path, site: str = "fog-1") -> LogWriter:
    return LogWriter(folder / "log", "sources/rides", site, 0, durable=False)


def numbers_in(intake: Intake) -> dict[int, list[int]]:
    files = intake.rows_folder.glob("*.parquet")
    return {int(file.stem): pq.read_table(file).column("n").to_pylist() for file in files}


@settings(max_examples=40)
@given(
    steps=st.lists(st.sampled_from(["publish", "lay", "restart", "lose rows"]), max_size=25),
    rows=st.sampled_from([None, 1, 5]),
)
def test_lots_hold_every_row_once_whatever_dies_when(
    steps: list[str], rows: int | None, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("intake")
    writer, intake = writer_of(folder), open_intake(folder, rows)
    seen: dict[int, list[int]] = {}
    published = 0
    for step in [*steps, "lay", *["lay"] * len(steps)]:
        if step == "publish":
            writer.publish(published, table_of([2 * published, 2 * published + 1]))
            published += 1
        elif step == "lay":
            intake.lay_next()
        elif step == "restart":
            intake = open_intake(folder, rows)
        elif intake.last.number >= 0:
            # A crash between the two files of a lot.
            (intake.rows_folder / f"{intake.last.number}.parquet").unlink()
            intake = open_intake(folder, rows)
        for number, values in numbers_in(intake).items():
            assert seen.setdefault(number, values) == values
    assert list(seen) == sorted(seen)
    assert [n for values in seen.values() for n in values] == list(range(2 * published))
    assert all(len(values) <= max(rows or 10**9, 2) for values in seen.values())


def test_lots_go_up_to_a_goal_and_begin_at_a_start(tmp_path: Path) -> None:
    writer = writer_of(tmp_path)
    for batch in range(4):
        writer.publish(batch, table_of([batch]))
    intake = open_intake(tmp_path, start={"fog-1": {"0": 0}})
    assert intake.lay_next({"fog-1": {"0": 2}})
    assert not intake.lay_next({"fog-1": {"0": 2}})
    assert numbers_in(intake) == {0: [1, 2]}
    assert not intake.lay_next({})
    assert intake.lay_next()
    assert dict(intake.last.end) == {"fog-1": {"0": 3}}
    intake.forget(1)
    assert numbers_in(intake) == {1: [3]}
    assert not open_intake(tmp_path).lay_next()


def test_rows_with_other_columns_are_told(tmp_path: Path) -> None:
    writer_of(tmp_path).publish(0, pa.table({"n": [1]}))
    with pytest.raises(LogError, match="its columns are not those of the schema"):
        open_intake(tmp_path).lay_next()


def test_what_a_batch_took_is_what_its_sources_wrote_down(tmp_path: Path) -> None:
    taken = TakenLots(tmp_path / "checkpoint")
    assert taken.finished(-1) == {}
    taken.record(0)
    assert taken.finished(0) == {}

    def entry(stream: str, lot: int) -> str:
        path = f"file://{tmp_path}/{stream}/rows/{lot}.parquet"
        return json.dumps({"path": path, "timestamp": 1, "batchId": lot})

    for place, (name, lots) in enumerate({"a": [0, 1], "b%20c": []}.items()):
        folder = tmp_path / "checkpoint" / "sources" / str(place)
        folder.mkdir(parents=True)
        for lot in lots:
            (folder / str(lot)).write_text(f"v1\n{entry(name, lot)}")
    taken.record(1)
    assert taken.finished(1) == {"a": 1}
    assert taken.rows(1) == {"a": 0}
    folder = tmp_path / "checkpoint" / "sources"
    rows_folder = tmp_path / "a" / "rows"
    rows_folder.mkdir(parents=True)
    for lot in (1, 2, 9):
        pq.write_table(pa.table({"n": list(range(lot))}), rows_folder / f"{lot}.parquet")
    (folder / "0" / "9.compact").write_text("\n".join(["v1", *(entry("a", n) for n in range(10))]))
    (folder / "1" / "0").write_text(f"v1\n{entry('b%20c', 0)}")
    taken.record(2)
    assert taken.finished(2) == {"a": 9, "b c": 0}
    # Lot 1 was the batch before, and of those in between there is only one.
    assert taken.rows(2) == {"a": 11, "b c": 0}
    assert taken.rows(7) == {}
    # A batch that is done again takes the same lots, of which rows may have been set aside.
    pq.write_table(pa.table({"n": [1]}), rows_folder / "9.parquet")
    (folder / "0" / "10").write_text(f"v1\n{entry('a', 10)}")
    assert taken.record(2) == {"a": 9, "b c": 0}
    assert taken.rows(2) == {"a": 3, "b c": 0}
    # As records were once written.
    (tmp_path / "checkpoint.taken" / "3").write_text('{"a": 12}')
    assert (taken.finished(3), taken.rows(3)) == ({"a": 12}, {})
    assert taken.finished(1) == {"a": 1}


def test_a_closed_gate_holds_batches(tmp_path: Path) -> None:
    gate = BatchGate(tmp_path / "checkpoint")
    gate.pass_through()
    gate.close()
    with pytest.raises(BatchHeld):
        BatchGate(tmp_path / "checkpoint").pass_through()
    gate.open()
    gate.pass_through()


# On Spark


@pytest.fixture(scope="module")
def session(shared_session: Callable[..., Any]) -> Any:
    return shared_session()


def test_files_are_taken_once_however_the_clock_goes_and_not_remembered_for_long(
    session: Any, tmp_path: Path
) -> None:
    rows, taken = tmp_path / "rows", []
    rows.mkdir()

    def take(**options: str) -> None:
        stream = read_rows_files(session, rows, "n long")
        if options:
            stream = session.readStream.schema("n long").options(**options).parquet(str(rows))

        def keep(batch: Any, _: int) -> None:
            taken.extend(batch.toArrow().column("n").to_pylist())

        written = stream.writeStream.foreachBatch(keep).trigger(availableNow=True)
        query = written.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
        query.awaitTermination()

    def lay(number: int) -> Path:
        file = rows / f"{number}.parquet"
        write_rows(pa.table({"n": [number]}), file)
        return file

    def shift(file: Path, seconds: float) -> None:
        at_s = file.stat().st_mtime + seconds
        os.utime(file, (at_s, at_s))

    lay(0)
    # As queries did that were begun by an earlier release.
    take(maxFileAge="7d")
    shift(lay(1), 30 * 86_400.0)
    take()
    lay(2)
    take()
    for number in (0, 1):
        (rows / f"{number}.parquet").unlink()
    lay(3)
    take()
    assert taken == [0, 1, 2, 3]
    # What Spark does not take it does not have to remember, either.
    shift(lay(4), -2 * 3600.0)
    take()
    assert taken == [0, 1, 2, 3]


def test_frames_put_together_come_apart_as_they_were(session: Any) -> None:
    frames = {
        "a-b": session.sql(
            "SELECT id AS n, named_struct('x', id) AS s, 'q' AS `x.y` FROM range(3)"
        ),
        "c": session.sql("SELECT 'dead' AS n, CAST(NULL AS int) AS z"),
        "empty": session.sql("SELECT 1 AS one WHERE false"),
    }
    tables = take_apart(put_together(frames).toArrow(), frames)
    assert tables.keys() == frames.keys()
    for name, frame in frames.items():
        assert tables[name].to_pylist() == frame.toArrow().to_pylist()
        assert tables[name].column_names == frame.columns
    only = {"c": frames["c"]}
    assert take_apart(put_together(only).toArrow(), only)["c"].equals(frames["c"].toArrow())


class Rides:
    """Numbered rides that are born at fogs, and what has to become of them."""

    def __init__(self, folder: Path, fogs: Collection[str] = tuple(FOGS)) -> None:
        self._writers = {
            fog: LogWriter(folder / "log", "sources/rides", fog, 0, durable=False) for fog in fogs
        }
        self._batch = 0
        self._folder = folder
        self.rows: list[dict[str, Any]] = []

    def publish(self, batches: int = 1) -> None:
        for _ in range(batches):
            for fog, writer in self._writers.items():
                first = len(self.rows)
                rows = [
                    {
                        "n": n,
                        "zone": None if n % 20 == 7 else 10 * (n % 3) + FOGS[fog],
                        "at": NOON + timedelta(seconds=self._batch, milliseconds=n),
                        "fare": (37 * n) % 120 - 10,
                    }
                    for n in range(first, first + 25)
                ]
                self.rows += rows
                table = pa.Table.from_pylist(rows, schema=SCHEMA)
                writer.publish(self._batch, table)
            self._batch += 1

    def end_time(self) -> None:
        """Close all windows: say that nothing else will come."""
        for fog in self._writers:
            clock = LogWriter(self._folder / "log", SOURCE_CLOCK, fog, 0, time="time")
            clock.publish(0, clock_table(END_OF_TIME_MS))

    @property
    def end(self) -> int:
        return self._batch - 1

    def clean(self) -> list[dict[str, Any]]:
        return [row for row in self.rows if row["zone"] is not None and row["fare"] > 0]

    def listed(self) -> Counter[tuple[Any, ...]]:
        return Counter((r["n"], r["at"], 2 * r["fare"]) for r in self.clean() if r["fare"] >= 50)

    def board(self) -> Counter[tuple[Any, ...]]:
        sums: Counter[tuple[datetime, int]] = Counter()
        for row in self.clean():
            start = row["at"].replace(second=row["at"].second // 10 * 10, microsecond=0)
            sums[start, row["zone"]] += row["fare"]
        return Counter((*key, fare) for key, fare in sums.items() if fare > 100)

    def dead(self) -> Counter[int]:
        return Counter(row["n"] for row in self.rows if row["zone"] is None)


def read_rows(folder: Path, stream: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = Log(folder / "log").read(stream).to_pylist()
    return rows


def results(folder: Path) -> tuple[Counter[Any], Counter[Any], Counter[Any]]:
    listed = read_rows(folder, "sinks/list")
    board = read_rows(folder, "sinks/board")
    dead = [r for kind in ("edges", "sinks") for r in read_rows(folder, f"{kind}/dead-letters")]
    return (
        Counter((row["n"], row["at"], row["double"]) for row in listed),
        Counter((row["window"]["start"], row["zone"], row["fare"]) for row in board),
        Counter(json.loads(row["row"])["n"] for row in dead),
    )


def finish(query: RunningQuery, upto: dict[str, Any] | None = None) -> Stand:
    return query.drain(upto, PATIENCE_S)


def test_fogs_with_different_cuts_and_a_cut_that_moves_lose_and_double_nothing(
    session: Any, tmp_path: Path
) -> None:
    rides = Rides(tmp_path)
    rides.publish(3)
    cloud = start_query(session, spec_of(tmp_path, "cloud"))
    # One keeps state, and has several outlets; the other sends what it gets.
    first = start_query(session, spec_of(tmp_path, "fog-1", ("clean", "fares")))
    second = start_query(session, spec_of(tmp_path, "fog-2", (), rows_per_batch=30))
    rides.publish(3)
    offsets: Any = {}
    for epoch, cut in enumerate([("clean",), ("clean", "dear"), ("clean",)], start=1):
        wait_for(partial(has_begun, second))
        stand = finish(second)
        Log(tmp_path / "log").fence("fog-2", epoch - 1, stand.batch)
        assert stand.offsets["sources/rides"]["fog-2"]["0"] >= offsets.get("0", -1)
        offsets = stand.offsets["sources/rides"]["fog-2"]
        spec = spec_of(tmp_path, "fog-2", cut, epoch=epoch, start=stand.offsets)
        second = start_query(session, spec)
        rides.publish(2)
    goal = {fog: {"sources/rides": {fog: {"0": rides.end}}} for fog in FOGS}
    wait_for(lambda: second.status().offsets == goal["fog-2"])
    rides.end_time()
    expected = (rides.listed(), rides.board(), rides.dead())
    assert all(expected)
    wait_for(lambda: results(tmp_path) == expected or cloud.error)
    # The windows that were put out leave the state with the batch after.
    wait_for(lambda: cloud.status().state_rows == 0 or cloud.error)
    status = cloud.status()
    assert (status.state, status.error) == ("running", None)
    assert status.sink_rows == {
        "sinks/list": expected[0].total(),
        "sinks/board": expected[1].total(),
        "sinks/dead-letters": len(read_rows(tmp_path, "sinks/dead-letters")),
    }
    assert status.state_rows == 0
    assert status.watermark is not None
    assert finish(first).offsets == goal["fog-1"]
    assert finish(second).offsets == goal["fog-2"]
    finish(cloud)
    assert results(tmp_path) == expected


def has_begun(query: RunningQuery) -> bool:
    # Its first batch only gets it ready, and has read nothing.
    return bool(query.status().offsets.get("sources/rides"))


def test_a_query_drains_exactly_to_its_goal_and_goes_on_after_a_failure(
    session: Any, tmp_path: Path
) -> None:
    rides = Rides(tmp_path)
    rides.publish(6)
    goal = {"sources/rides": {"fog-1": {"0": 3}}}
    spec = spec_of(tmp_path, "fog-1", ("clean",), rows_per_batch=25)
    query = start_query(session, spec)
    stand = finish(query, goal)
    published = read_rows(tmp_path, "edges/clean+dear")
    assert stand.offsets == goal
    # One to get ready, and one for each segment.
    assert stand.batch >= 4
    wanted = [row for row in rides.clean() if row["zone"] % 10 == 1 and row["at"] < at_batch(4)]
    assert published == wanted
    # Nothing new: it ends where it stands, and where it has not begun, where it would have.
    query = start_query(session, spec_of(tmp_path, "fog-1", epoch=1, start=goal))
    query._feeder.limit(None)  # type: ignore[union-attr]
    assert finish(query).offsets == goal
    # A segment that cannot be read ends the query with the reason.
    LogWriter(tmp_path / "log", "sources/rides", "fog-1", 0).publish(6, pa.table({"n": [1]}))
    query = start_query(session, spec)
    wait_for(lambda: query.error)
    assert "its columns are not those of the schema" in str(query.status().error)
    assert query.status().state == "failed"
    with pytest.raises(ThalwegError, match="the query failed: cannot read"):
        query.drain(goal | {"sources/rides": {"fog-1": {"0": 6}}}, PATIENCE_S)
    assert query.stop().offsets == {"sources/rides": {"fog-1": {"0": 5}}}


def at_batch(batch: int) -> datetime:
    return NOON + timedelta(seconds=batch)


# On sites


def run_to_the_end(sites: Sites, folder: Path, rides: Rides, kills: list[str]) -> None:
    """Let sites that run take in rides until all is out, and kill some of them meanwhile."""
    for name in kills:
        rides.publish(2)
        pid = sites[name].pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        event = sites.next_event(PATIENCE_S)
        assert event is not None
        assert (event.site, event.kind) == (name, "died")
        sites.restart(name)
    rides.publish(2)
    expected = (rides.listed(), rides.board(), rides.dead())

    def is_flushed() -> bool:
        status = sites["fog-1"].status()
        ends = {"sources/rides": {"fog-1": {"0": rides.end}}}
        return [query.offsets for query in status.queries] == [ends]

    wait_for(is_flushed)
    rides.end_time()
    wait_for(lambda: results(folder) == expected or sites.next_event())
    for site in sites.values():
        (query,) = site.queries
        site.drain(query.name)
    assert results(folder) == expected
    assert sites.next_event() is None


@pytest.mark.slow
@pytest.mark.parametrize("cut", [("clean",), ("clean", "fares", "high")])
def test_sites_killed_at_any_time_lose_and_double_nothing(
    cut: tuple[str, ...], tmp_path: Path
) -> None:
    pytest.importorskip("pyspark")
    rides = Rides(tmp_path, ["fog-1"])
    rides.publish(2)
    with Sites() as sites:
        names = ("fog-1", "cloud")
        sites.start([SiteSpec(name=name, folder=tmp_path / name) for name in names])
        for name, operators in zip(names, (cut, ()), strict=True):
            spec = spec_of(tmp_path, name, operators, sites=() if operators else ("fog-1",))
            sites.check(spec)
            sites[name].start(spec)
        run_to_the_end(sites, tmp_path, rides, ["fog-1", "cloud", "fog-1", "cloud"])


@pytest.mark.slow
def test_a_pipeline_on_a_connect_server_gives_the_same(tmp_path: Path) -> None:
    rides = Rides(tmp_path, ["fog-1"])
    rides.publish(2)
    with connect_server(tmp_path / "server.log") as address, Sites() as sites:
        names = ("fog-1", "cloud")
        sites.start([SiteSpec(name=name, folder=tmp_path / name, master=address) for name in names])
        sites["cloud"].start(spec_of(tmp_path, "cloud", sites=("fog-1",)))
        sites["fog-1"].start(spec_of(tmp_path, "fog-1", ("clean", "dear")))
        run_to_the_end(sites, tmp_path, rides, ["fog-1"])
