"""The query of a keyed operator without Spark: everything but who calls its function."""

from __future__ import annotations

import os
import pickle
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark.keyed_pipelines import LAST_RIDE, tally, tally_at_once
from spark.keyed_specs import spec_in
from thalweg.errors import InvalidInput
from thalweg.spark.keyed import log as keyed_log
from thalweg.spark.keyed import work as keyed_work
from thalweg.spark.keyed.feed import KeyedFeeder, rows_folder
from thalweg.spark.keyed.log import STATES, KeyedLog, Ledger, StateDiffers, state_stream
from thalweg.spark.keyed.move import Run
from thalweg.spark.keyed.query import KeyedPublisher
from thalweg.spark.keyed.work import KeyedOptions
from thalweg.spark.log.names import EpochPlace
from thalweg.spark.log.reader import Log, LogError, LogWriter
from thalweg.spark.query.spec import QuerySpec

Ride = tuple[int, int]


class Killed(Exception):
    """The process of a site has ended."""


class Frame:
    """What Spark would give to the function of a batch."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def toArrow(self) -> pa.Table:
        return self._table


class Query:
    """A query with everything but Spark; `turn` is one look and one batch of it."""

    numbers = count()

    def __init__(self, spec: QuerySpec) -> None:
        folder = spec.checkpoint.with_name(f"{spec.checkpoint.name}-{next(self.numbers)}")
        rows_folder(folder).mkdir(parents=True)
        self._folder = folder
        self._taken: set[Path] = set()
        self.publisher = KeyedPublisher(spec, folder)
        options = KeyedOptions.of(spec)
        self.feeder = KeyedFeeder(
            KeyedLog(Log(spec.log), tally),
            writer=EpochPlace(
                root=spec.log, stream=state_stream("tally"), site=spec.site, epoch=spec.epoch
            ),
            follows=options.follows,
            stream=options.input,
            site=None,
            start={},
            rows=4,
            folder=folder,
        )

    def lots(self) -> list[Path]:
        """The files that are laid down."""
        return list(rows_folder(self._folder).glob("[!.]*.parquet"))

    def turn(self, kill: str | None = None) -> bool:
        """Whether there was anything to do."""
        with patch("thalweg.spark.keyed.feed._FOLLOW_EVERY_S", 0.0):
            self.feeder.look()
        files = sorted(set(self.lots()) - self._taken)
        self._taken.update(files)
        if files:
            with killed(kill):
                table = pa.concat_tables([pq.read_table(file) for file in files])
                self.publisher(Frame(table), 0)
        return bool(files)


@contextmanager
def killed(when: str | None) -> Iterator[None]:
    """Have the process end before or after the commit of the batch, or before its output is out."""
    write, publish = KeyedLog.write, LogWriter.publish

    def die_writing(self: KeyedLog, *given: Any) -> Any:
        if when == "before the commit":
            raise Killed
        write(self, *given)
        raise Killed

    def die_publishing(self: LogWriter, *given: Any) -> Any:
        segment = publish(self, *given)
        if self.place.kind == "edges":
            raise Killed
        return segment

    if when is None:
        yield
    elif when == "after the output":
        with patch.object(LogWriter, "publish", die_publishing):
            yield
    else:
        with patch.object(KeyedLog, "write", die_writing):
            yield


class ThreadAtOnce:
    """A thread that is done when it has started, so that a test is the same every time."""

    def __init__(self, target: Any, **_: Any) -> None:
        self.start = target

    def is_alive(self) -> bool:
        return False


class World:
    """A log, rides that enter it, and all queries that ever ran, the left ones among them."""

    def __init__(self, folder: Path) -> None:
        self.spec = spec_in(folder)
        self.log = Log(self.spec.log)
        self.rides: list[Ride] = []
        self.run = Run(site="a", epoch=0)
        self.queries: list[Query] = [Query(self.spec.query(self.run))]
        self.left: list[Query] = []
        self.next: Run | None = None
        self._gateway = LogWriter(self.spec.log, self.spec.input, "gate", 0, durable=False)
        self._batches = count()

    def enter(self, vehicles: list[int]) -> None:
        """Rides of these vehicles; one below zero goes home."""
        rides = [
            (len(self.rides) + n + (LAST_RIDE if v < 0 else 0), abs(v))
            for n, v in enumerate(vehicles)
        ]
        self.rides += rides
        ride, vehicle = zip(*rides, strict=True)
        self._gateway.publish(next(self._batches), pa.table({"ride": ride, "vehicle": vehicle}))

    def turn(self, number: int, kill: str | None = None) -> None:
        """One batch of one of the queries; the first ones are left over from earlier."""
        everyone = [*self.left, *self.queries]
        query = everyone[-1 - number % len(everyone)]
        try:
            query.turn(kill)
        except (Killed, LogError):
            # A query that another one is at work beside may find that out in any way, if only it
            # does nothing.
            self.restart(query)

    def restart(self, query: Query) -> None:
        """Run again what a killed query ran; the killed one may live on unseen."""
        if query in self.left:
            self.left.remove(query)
            return
        place = self.queries.index(query)
        run = self.run if place == 0 else self.next
        assert run is not None
        self.left.append(query)
        self.queries[place] = Query(self.spec.query(run))

    def prepare(self) -> None:
        if self.next is None:
            site = "b" if self.run.site == "a" else "a"
            follows = (self.run.site, self.run.epoch)
            self.next = Run(site=site, epoch=self.run.epoch + 1, follows=follows)
            self.queries.append(Query(self.spec.query(self.next)))

    def fence(self) -> None:
        self.prepare()
        assert self.next is not None
        self.log.fence(f"tally.{self.run.site}", self.run.epoch, kind=STATES)
        self.run, self.next = self.next, None
        self.left.append(self.queries.pop(0))

    def output(self) -> list[tuple[int, int, int]]:
        rows = self.log.read(self.spec.output).to_pylist()
        return sorted((row["ride"], row["vehicle"], row["nth"]) for row in rows)


vehicles = st.lists(st.integers(-3, 3).filter(bool), min_size=1, max_size=6)
kills = st.sampled_from(["before the commit", "after the commit", "after the output"])
actions = st.one_of(
    st.tuples(st.just("enter"), vehicles),
    st.tuples(st.just("turn"), st.integers(0, 4)),
    st.tuples(st.just("turn"), st.integers(0, 1)),
    st.tuples(st.just("kill"), st.integers(0, 2), kills),
    st.tuples(st.just("restart"), st.integers(0, 1)),
    st.tuples(st.just("prepare")),
    st.tuples(st.just("fence")),
    st.tuples(st.just("snapshot"), st.booleans()),
)


@settings(max_examples=40)
@given(st.lists(actions, max_size=30))
def test_whoever_dies_or_lives_on_every_ride_is_tallied_once(script: list[Any]) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        patch.object(keyed_log, "_LEAST_SNAPSHOT_BYTES", 1 << 60),
        patch.object(keyed_work.threading, "Thread", ThreadAtOnce),
    ):
        world = World(Path(folder))
        for action, *given_ in script:
            if action == "turn":
                world.turn(given_[0])
            elif action == "kill":
                world.turn(given_[0], given_[1])
            elif action == "restart":
                world.restart(world.queries[given_[0] % len(world.queries)])
            elif action == "snapshot":
                keyed_log._LEAST_SNAPSHOT_BYTES = -(1 << 60) if given_[0] else 1 << 60
            else:
                getattr(world, action)(*given_)
        # A last move, with rows: then nothing is left that anybody could still publish.
        world.enter([1, 2])
        world.fence()
        quiet = 0
        while quiet < 3:
            quiet = 0 if sum(query.turn() for query in world.queries) else quiet + 1
        assert world.output() == sorted(tally_at_once(world.rides))
        ledger = Ledger(KeyedLog(world.log, tally))
        ledger.follow(1000)
        last = {v: n for _, v, n in tally_at_once(world.rides)}
        home = {v for ride, v in world.rides if ride >= LAST_RIDE}
        tallied = {r["vehicle"]: r["rides"] for r in ledger.state.to_table().to_pylist()}
        assert {v: n for v, n in tallied.items() if v not in home} == {
            v: n for v, n in last.items() if v not in home
        }


def test_output_that_was_committed_only_is_out_after_a_move_without_new_rows(
    tmp_path: Path,
) -> None:
    world = World(tmp_path)
    world.enter([1, 2, 1])
    with pytest.raises(Killed):
        world.queries[0].turn("after the commit")
    assert world.output() == []
    world.fence()
    world.queries[0].turn()
    assert world.output() == [(0, 1, 1), (1, 2, 1), (2, 1, 2)]


def test_output_that_two_publish_at_once_is_out_once(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.enter([1, 2, 1])
    with pytest.raises(Killed):
        world.queries[0].turn("after the commit")
    world.fence()
    publish, failures = LogWriter.publish, [LogError("a newer writer has taken over")]

    def fail_once(self: LogWriter, *given: Any) -> Any:
        if failures:
            raise failures.pop()
        return publish(self, *given)

    with patch.object(LogWriter, "publish", fail_once):
        world.queries[0].turn()
    assert world.output() == [(0, 1, 1), (1, 2, 1), (2, 1, 2)]


def test_what_batches_need_can_be_sent_to_where_they_run(tmp_path: Path) -> None:
    world = World(tmp_path)
    query = world.queries[0]
    for _ in range(2):
        world.enter([1, 2])
        query.turn()
        query.publisher = pickle.loads(pickle.dumps(query.publisher))  # noqa: S301
    assert world.output() == [(0, 1, 1), (1, 2, 1), (2, 1, 2), (3, 2, 2)]


def test_a_standby_that_was_given_up_does_nothing_any_more(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.enter([1, 2])
    with pytest.raises(Killed):
        world.queries[0].turn("after the commit")
    world.prepare()
    world.log.fence("tally.b", 1, kind=STATES)
    world.log.fence("tally.a", 0, kind=STATES)
    world.queries[1].turn()
    assert world.output() == []


def test_a_standby_does_not_work_before_the_fence(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.prepare()
    world.enter([1, 2, 1])
    for _ in range(3):
        world.queries[1].turn()
    assert world.output() == []


def test_a_state_that_was_changed_on_the_disk_is_refused(tmp_path: Path) -> None:
    world = World(tmp_path)
    for _ in range(3):
        world.enter([1, 2])
        world.queries[0].turn()
    place = EpochPlace(root=world.spec.log, stream="states/tally", site="tally.a", epoch=0)
    file = place.segment(1) / "updated.arrow"
    with pa.ipc.open_file(file.read_bytes()) as reader:
        table = reader.read_all()
    other = table.set_column(1, "rides", pa.array([7] * table.num_rows, pa.int64()))
    with pa.ipc.new_file(str(file), table.schema) as writer:
        writer.write_table(other)
    with pytest.raises(StateDiffers, match="commit 1 of states/tally"):
        Ledger(KeyedLog(Log(world.spec.log), tally)).follow(0)


def test_input_with_other_columns_is_refused(tmp_path: Path) -> None:
    world = World(tmp_path)
    writer = LogWriter(world.spec.log, world.spec.input, "other", 0, durable=False)
    writer.publish(0, pa.table({"ride": [1]}))
    with pytest.raises(LogError, match="not those of tally"):
        world.queries[0].turn()


def test_options_of_a_query_are_checked_all_at_once(tmp_path: Path) -> None:
    spec = World(tmp_path).spec.query(Run(site="a", epoch=0))
    values = spec.to_dict() | {"options": {"input": "rides", "output": "edges/x", "inputs": 1}}
    with pytest.raises(InvalidInput) as caught:
        KeyedOptions.of(QuerySpec.from_dict(values))
    assert {d.path for d in caught.value.defects} == {
        "options.inputs",
        "options.input",
        "options.operator",
    }


def test_lots_are_never_older_than_those_before_whatever_the_clock_says(tmp_path: Path) -> None:
    world, times_ns, year_ns = World(tmp_path), [], 365 * 86_400 * 10**9
    write_table = pq.write_table

    def write_by_this_clock(rows: pa.Table, file: Path, **options: Any) -> None:
        write_table(rows, file, **options)
        if len(times_ns) == 1:
            ahead_ns = file.stat().st_mtime_ns + year_ns
            os.utime(file, ns=(ahead_ns, ahead_ns))

    with patch("thalweg.spark.keyed.feed.pq.write_table", write_by_this_clock):
        for vehicle in (1, 2, 1, 2):
            world.enter([vehicle])
            assert world.queries[0].turn()
            (file,) = world.queries[0].lots()
            times_ns.append(file.stat().st_mtime_ns)
    assert times_ns == sorted(times_ns)
    assert times_ns[-1] - times_ns[0] >= year_ns
