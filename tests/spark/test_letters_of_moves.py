"""Operators with windows move, with bad rows in them: every bad row has one letter, for good."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark.bad_row_pipelines import UNLUCKY
from spark.site_session import site_session
from spark.taxi_run import coordinate, wait_for
from thalweg.spark.deployment.coordinator import Coordinator
from thalweg.spark.deployment.folder import RunFolder
from thalweg.spark.deployment.manifest import RunManifest
from thalweg.spark.deployment.one_place import verify
from thalweg.spark.deployment.plan import fingerprint_graph
from thalweg.spark.deployment.publications import complete_ms
from thalweg.spark.deployment.spec import DeploymentSpec
from thalweg.spark.log import Log
from thalweg.spark.log.writer import LogWriter
from thalweg.spark.pipeline import DEAD_LETTERS, load_pipeline
from thalweg.spark.query.carry import CarryOrder, carry_file, carry_windows
from thalweg.spark.query.checkpoint import Stand
from thalweg.spark.query.clock import END_OF_TIME_MS, SOURCE_CLOCK, clock_table
from thalweg.spark.query.left_out import LEFT_OUT_STREAM
from thalweg.spark.query.spec import QuerySpec
from thalweg.spark.site.links import SiteLinks
from thalweg.spark.site.queries import FAILED, SiteQueries

pytest.importorskip("pyspark")
pytestmark = pytest.mark.jvm

TOTALS = "spark.bad_row_pipelines:totals"
FOG = "fog-1"
MONDAY = datetime(2024, 1, 1, tzinfo=UTC)
SCHEMA = pa.schema(
    [
        ("n", pa.int64()),
        ("sensor", pa.int32()),
        ("text", pa.string()),
        ("at", pa.timestamp("us", "UTC")),
    ]
)
REFUSED, NO_NUMBER, UNLUCKY_TEXT, NO_DIVISOR = "7", "x", str(UNLUCKY), "0"
"""What `total` refuses, `read-value` and `total` fail on, and `part` fails on."""
BAD = (REFUSED, NO_NUMBER, UNLUCKY_TEXT, NO_DIVISOR)
PATIENCE_S = 180.0


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    # With the master that one place has: it is lent.
    with site_session(tmp_path_factory.mktemp("session"), master="local[2]") as session:
        yield session


class Meters:
    """Numbered readings of one fog, a second of event time in each segment."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._writer = LogWriter(log, "sources/readings", FOG, 0, time="at", durable=False)
        self._rows: list[dict[str, Any]] = []
        self._second = 0

    @property
    def newest_ms(self) -> int:
        return round((MONDAY + timedelta(seconds=self._second - 1)).timestamp() * 1000)

    @property
    def bad(self) -> list[int]:
        """The numbers of the rows that should have a letter."""
        return [row["n"] for row in self._rows if row["text"] in BAD]

    def send(self, *texts: str) -> None:
        """A good reading and these, at the next second."""
        at = MONDAY + timedelta(seconds=self._second)
        first = len(self._rows)
        rows = [
            {"n": n, "sensor": n % 2, "text": text, "at": at}
            for n, text in enumerate(("1", *texts), start=first)
        ]
        self._rows += rows
        self._writer.publish(self._second, pa.Table.from_pylist(rows, schema=SCHEMA))
        self._second += 1

    def end(self) -> None:
        """Say that nothing else will come, so that every window closes."""
        clock = LogWriter(self._log, SOURCE_CLOCK, FOG, 0, time="time", durable=False)
        clock.publish(0, clock_table(END_OF_TIME_MS))


class SiteHere:
    """A site in this process, on a session that it shares with others."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self.failures: list[str | None] = []
        self.queries = SiteQueries(SiteLinks(), self.report)
        self.handed_over: list[dict[str, int]] = []

    def report(self, event: str, _query: str, error: str | None) -> None:
        if event == FAILED:
            self.failures.append(error)

    def start(self, query: QuerySpec) -> None:
        self.queries.start(self._session, query)

    def prepare(self, query: QuerySpec) -> None:
        self.queries.start(self._session, query, held=True).get_ready()

    def newest_ms(self, query: str) -> int | None:
        return self.queries.newest_ms(query)

    def drain(self, query: str) -> Stand:
        return self.queries.end(query, lambda running: running.drain(None, PATIENCE_S))

    def carry(self, query: QuerySpec, order: CarryOrder) -> dict[str, int]:
        rows = carry_windows(self._session, query, order)
        # Whoever asked may have died before it knew.
        assert carry_windows(self._session, query, order) == rows
        self.handed_over.append(rows)
        return rows

    def ship(self, query: QuerySpec, batch: int) -> None: ...

    def await_arrival(self, query: QuerySpec, site: str, epoch: int, batch: int) -> None: ...

    def look_after(self) -> None:
        self.queries.look_after()
        assert not self.failures, self.failures


class Run:
    """A fog and a cloud on one session, whose cut moves while readings come."""

    def __init__(self, session: Any, folder: Path) -> None:
        self.spec = DeploymentSpec(
            pipeline=TOTALS,
            folder=folder,
            fogs=(FOG,),
            trigger="50 ms",
            durable=False,
            watched=False,
            # Little: readings of the next seconds are in windows of the cloud, and then are not.
            margin_s=1.0,
        )
        graph = fingerprint_graph(load_pipeline(TOTALS))
        manifest = RunManifest(
            pipeline=TOTALS, graph=graph, network="one", fogs=(FOG,), cloud="cloud"
        )
        folder.mkdir()
        RunFolder(folder).write_manifest(manifest)
        self.sites = {name: SiteHere(session) for name in (FOG, "cloud")}
        self.coordinator: Coordinator = coordinate(self.spec, self.sites)
        self.meters = Meters(self.spec.log)

    def go_to(self, *cut: str) -> None:
        self.coordinator.go_to({FOG: cut})

    def work(self, *seconds: Sequence[str]) -> None:
        """Have readings with these texts come, and the fog take them."""
        for texts in seconds:
            self.meters.send(*texts)
        query = f"{FOG}@{self.coordinator.state.sites[FOG].epoch}"
        self._await(lambda: self.sites[FOG].newest_ms(query) == self.meters.newest_ms)

    def end(self) -> None:
        self.meters.end()
        self._await(lambda: (complete_ms(Log(self.spec.log)) or 0) >= END_OF_TIME_MS)
        self.coordinator.stop()

    def _await(self, happened: Any) -> None:
        def look() -> Any:
            for site in self.sites.values():
                site.look_after()
            return happened()

        wait_for(look)

    def letters(self) -> list[dict[str, Any]]:
        log = Log(self.spec.log)
        streams = (f"{kind}/{DEAD_LETTERS}" for kind in ("edges", "sinks"))
        return [letter for stream in streams for letter in log.read(stream).to_pylist()]

    def stop(self) -> None:
        for site in self.sites.values():
            site.queries.stop_all()


@pytest.mark.slow
def test_every_bad_row_has_one_letter_wherever_its_windows_go(session: Any, tmp_path: Path) -> None:
    """Windows stay, leave and come; in each place there are rows that break them, in all ways."""
    run = Run(session, tmp_path / "run")
    good: tuple[str, ...] = ("2", "3")
    try:
        with run.coordinator:
            run.go_to("read-value", "total")
            run.work(good, (REFUSED, UNLUCKY_TEXT, NO_NUMBER, "2"))
            # They stay, beside an operator for which the site sets rows aside, too.
            run.go_to("read-value", "total", "part")
            run.work((REFUSED, NO_DIVISOR, "2"), good)
            # They leave.
            run.go_to("read-value")
            run.work(good, (UNLUCKY_TEXT, "2"))
            # They come: the first readings are in windows of the cloud, some of them in both.
            run.go_to("read-value", "total")
            early, both, late = (REFUSED, UNLUCKY_TEXT), (REFUSED, UNLUCKY_TEXT), (REFUSED,)
            run.work(early, *([good] * 7), both, *([good] * 4), late)
            # All leave; readings of before are not computed again.
            run.go_to()
            run.work((REFUSED, "2"))
            run.end()
    finally:
        run.stop()
    handed_over = run.sites[FOG].handed_over
    assert len(handed_over) == 3
    assert all(rows["read-value+total"] for rows in handed_over)
    numbers = Counter(json.loads(letter["row"])["n"] for letter in run.letters())
    assert numbers == Counter(run.meters.bad)
    found = verify(TOTALS, run.spec.folder)
    assert found.same, {name: str(verdict) for name, verdict in found.verdicts.items()}
    assert found.letters == len(run.meters.bad)


def publish(folder: Path, batch: int, texts: Sequence[str]) -> None:
    rows = [
        {"n": 10_000 * batch + n, "sensor": 1, "text": text, "at": MONDAY}
        for n, text in enumerate(texts)
    ]
    writer = LogWriter(folder / "log", "sources/readings", FOG, 0, time="at", durable=False)
    writer.publish(batch, pa.Table.from_pylist(rows, schema=SCHEMA))


@pytest.mark.slow
def test_any_number_of_rows_may_have_been_set_aside_in_open_windows(
    session: Any, tmp_path: Path
) -> None:
    """More than one lot may have: it is known which they are, so nobody looks for them."""
    many = 1_500
    texts = ["1", NO_NUMBER, REFUSED, "2"]
    publish(tmp_path, 0, texts * many)
    # Those were never worked on here, so that nobody knows of them: they are looked for.
    publish(tmp_path, 1, ["3", NO_NUMBER, NO_NUMBER])
    places = [{"source": "readings", "epoch": 0, "batch": 0, "place": p} for p in range(4 * many)]
    gone = pa.Table.from_pylist(places[texts.index(NO_NUMBER) :: len(texts)])
    writer = LogWriter(tmp_path / "log", LEFT_OUT_STREAM, FOG, 0, durable=False)
    writer.publish(0, gone)
    spec = QuerySpec(
        site=FOG,
        epoch=0,
        role="fog",
        pipeline=TOTALS,
        log=tmp_path / "log",
        checkpoint=tmp_path / "checkpoints" / FOG,
        cut=("read-value", "total"),
        durable=False,
    )
    order = CarryOrder(
        offsets={"sources/readings": {FOG: {"0": 1}}},
        batch=1,
        folder=str(tmp_path / "carried"),
        keep={"total": round(MONDAY.timestamp() * 1000)},
    )
    edge = "read-value+total"
    assert carry_windows(session, spec, order) == {edge: 2 * many + 1}
    kept = pq.read_table(carry_file(order.folder, edge))
    assert Counter(kept["value"].to_pylist()) == {1: many, 2: many, 3: 1}
