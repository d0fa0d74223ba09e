"""Deployments whose fogs have logs of their own, with a link between them and the cloud."""

from __future__ import annotations

import os
import random
import shutil
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from spark.kafka_broker import broker_or_skip
from spark.memory_link import MemoryLink, Wire
from spark.taxi_run import coordinate, deployment, running_sites, wait_for
from thalweg.errors import InvalidInput
from thalweg.scenarios import fog_cloud
from thalweg.spark.deployment import runtime
from thalweg.spark.deployment.check import RunWishes, prepare
from thalweg.spark.deployment.coordinator import Coordinator
from thalweg.spark.deployment.logs import open_logs
from thalweg.spark.deployment.runtime import SparkRuntime
from thalweg.spark.deployment.spec import DeploymentSpec
from thalweg.spark.deployment.tally import Tally
from thalweg.spark.feed.gateway import Gateway
from thalweg.spark.link import LinkError, open_link
from thalweg.spark.link.sender import LinkSender
from thalweg.spark.log.founding import found_log
from thalweg.spark.log.reader import Log, LogWriter
from thalweg.spark.query.checkpoint import Stand
from thalweg.spark.query.spec import QuerySpec
from thalweg.spark.site import links as site_links
from thalweg.spark.site.channel import SiteError
from thalweg.spark.site.links import LinkEnd, SiteLinks
from thalweg.spark.site.queries import FAILED, SiteQueries

pytestmark = pytest.mark.jvm
FOG = "fog-1"
RIDES = "spark.site_pipelines:rides"
STREAM = "edges/clean+rank"


def shipping(folder: Path, **values: Any) -> DeploymentSpec:
    spec = DeploymentSpec(pipeline="a:b", folder=folder, fogs=(FOG,), durable=False)
    spec = replace(spec, **({"link": f"directory://{spec.log}"} | values))
    open_logs(spec)
    return spec


def publish(query: QuerySpec, batch: int) -> None:
    table = pa.table({"number": [batch]})
    LogWriter(query.log, STREAM, query.site, query.epoch, durable=False).publish(batch, table)


def numbers_in(log: Path) -> list[int]:
    table = Log(log).read(STREAM)
    return table["number"].to_pylist() if table.num_rows else []


# What is said of a link


def test_with_a_link_every_fog_has_a_log_of_its_own(tmp_path: Path) -> None:
    spec = shipping(tmp_path, fogs=(FOG, "fog-2"))
    logs = [spec.log_of(site) for site in (FOG, "fog-2", "cloud")]
    assert len(set(logs)) == 3
    assert [spec.query(site, 0).log for site in (FOG, "fog-2", "cloud")] == logs
    assert logs[2] == spec.log
    query = spec.query(FOG, 3)
    assert query.ships and QuerySpec.from_dict(query.to_dict()) == query


@pytest.mark.parametrize("link", [None, "directory"])
def test_without_one_all_have_the_same(tmp_path: Path, link: str | None) -> None:
    spec = shipping(tmp_path, link=link)
    assert spec.log_of(FOG) == spec.log_of("cloud") == spec.query(FOG, 0).log == spec.log
    assert not spec.query(FOG, 0).ships


def test_bad_links_are_told_with_everything_else(tmp_path: Path) -> None:
    for link, need in (
        ("kafak://broker:9092/rides", 'did you mean "kafka"'),
        ("directory:///elsewhere", f"need directory://{tmp_path}/log"),
    ):
        with pytest.raises(InvalidInput, match=need) as told:
            shipping(tmp_path, link=link, fogs=())
        assert len(told.value.defects) == 2
    with pytest.raises(InvalidInput, match="link"):
        replace(shipping(tmp_path).query(FOG, 0), link="post", site="../etc")


def test_a_run_says_its_link_and_keeps_to_it(tmp_path: Path) -> None:
    network = fog_cloud(2, seed=1)
    wishes = RunWishes(pipeline="taxi-fares", network=network, folder=tmp_path)
    alone = prepare(wishes, dry=True)
    linked = prepare(replace(wishes, link="kafka://broker:9092/rides"), dry=True)
    assert (alone.spec.ships, linked.spec.ships) == (False, True)
    moved = prepare(replace(wishes, link="kafka://other:9092/rides"), dry=True)
    moved.manifest.require_same(linked.manifest)
    for now, before in ((alone, linked), (linked, alone)):
        with pytest.raises(InvalidInput, match="as in this folder") as told:
            now.manifest.require_same(before.manifest)
        assert [defect.path for defect in told.value.defects] == ["link"]
    with pytest.raises(InvalidInput) as told:
        prepare(replace(wishes, link="post", strategy="nobody"), dry=True)
    assert {defect.path for defect in told.value.defects} == {"link", "strategy"}


def test_rows_born_at_sites_with_logs_of_their_own_are_counted_once(tmp_path: Path) -> None:
    logs = [Log(tmp_path / name) for name in ("log", FOG, "fog-2")]
    tally = Tally(logs[0], ["rides"], own_logs=logs[1:])
    for batch in range(2):
        for rows, log in enumerate(logs[1:], start=1):
            site = log.root.name
            writer = LogWriter(log.root, "sources/rides", site, 0, durable=False)
            writer.publish(batch, pa.table({"number": [0] * rows}))
        tally.update(float(batch))
    tally.update(2.0)
    assert tally.rows_in == {("rides", FOG): 2, ("rides", "fog-2"): 4}


# The ends of a link in a site's process


def test_a_link_that_ended_is_begun_anew_and_sends_everything(tmp_path: Path) -> None:
    spec, links = shipping(tmp_path), SiteLinks()
    query = spec.query(FOG, 0)
    try:
        publish(query, 0)
        links.end_of(query).ship(0, 0, 30.0)
        assert numbers_in(spec.log) == [0]
        # A new disk in the cloud: what the sender knows to be there is not.
        shutil.rmtree(spec.log)
        found_log(spec.log)
        publish(query, 1)
        error = wait_for(lambda: links.error_of(query), 30.0)
        assert "batch 0 before it did not" in error
        with pytest.raises(LinkError, match="has ended"):
            links._ends[site_links._key(query)].ship(0, 1, 5.0)
        links.connect(query)
        links.end_of(query).ship(0, 1, 30.0)
        assert links.error_of(query) is None
        assert numbers_in(spec.log) == [0, 1]
        links.end_of(spec.query("cloud", 0)).await_arrival(FOG, 0, 1, 30.0)
    finally:
        links.close()


def test_an_epoch_has_not_arrived_before_it_was_shipped(tmp_path: Path) -> None:
    spec, links = shipping(tmp_path), SiteLinks()
    query, cloud = spec.query(FOG, 0), spec.query("cloud", 0)
    try:
        publish(query, 0)
        with pytest.raises(LinkError, match="batch 0 of fog-1, epoch 0, has not come"):
            links.end_of(cloud).await_arrival(FOG, 0, 0, 0.1)
        links.end_of(query).ship(0, 0, 30.0)
        links.end_of(cloud).await_arrival(FOG, 0, 0, 30.0)
    finally:
        links.close()


def test_a_query_need_not_wait_for_a_link_at_which_nobody_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, away = shipping(tmp_path), [True]

    def open_or_not(link: Any) -> Any:
        if away:
            raise LinkError("nobody answers")
        return open_link(link)

    monkeypatch.setattr(site_links, "open_link", open_or_not)
    monkeypatch.setattr(site_links, "_RETRY_S", 0.05)
    query = spec.query(FOG, 0)
    publish(query, 0)
    end = LinkEnd(query)
    try:
        with pytest.raises(LinkError, match="nobody answers"):
            end.ship(0, 0, 0.2)
        assert end.error is None
        away.clear()
        end.ship(0, 0, 30.0)
        assert numbers_in(spec.log) == [0]
    finally:
        end.close()


def test_a_link_that_cannot_be_used_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(link: Any) -> Any:
        raise ValueError("no such client")

    monkeypatch.setattr(site_links, "open_link", refuse)
    end = LinkEnd(shipping(tmp_path).query(FOG, 0))
    assert "no such client" in wait_for(lambda: end.error, 30.0)
    with pytest.raises(LinkError, match="no such client"):
        end.ship(0, 0, 30.0)
    end.close()


def test_something_missing_is_an_error_when_it_stays_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gaps = {FOG: "batch 3 is missing"}
    lasting = {site_links._GAP_S: gaps}
    monkeypatch.setattr(site_links.LinkReceiver, "lasting_gaps", lambda _, s: dict(lasting[s]))
    end = LinkEnd(shipping(tmp_path).query("cloud", 0))
    try:
        assert wait_for(lambda: end.error, 30.0) == "batch 3 is missing"
        assert end.gaps == gaps
        gaps.clear()
        assert end.error is None
    finally:
        end.close()


@pytest.mark.parametrize("opens_in_between", [False, True])
def test_a_site_that_is_to_send_again_does_so_once_its_link_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opens_in_between: bool
) -> None:
    spec, wire, may_open = shipping(tmp_path), Wire(), threading.Event()
    query = spec.query(FOG, 0)
    publish(query, 0)
    with LinkSender(MemoryLink(wire), query.log, FOG) as sender:
        sender.flush(0, 0)
    sent = len(wire.sent)
    ends: list[LinkEnd] = []

    def open_late(_spec: Any) -> MemoryLink:
        may_open.wait()
        if opens_in_between:
            wait_for(lambda: ends)[0].send_again()
        return MemoryLink(wire)

    monkeypatch.setattr(site_links, "open_link", open_late)
    ends.append(LinkEnd(query))
    try:
        if not opens_in_between:
            ends[0].send_again()
        may_open.set()
        ends[0].ship(0, 0, 30.0)
        assert wait_for(lambda: wire.sent[sent:].count(wire.sent[0]), 30.0) == 1
    finally:
        ends[0].close()


class LinkedSite:
    """A site whose queries are played, and whose ends of links are as they are."""

    alive = True

    def __init__(self, query: QuerySpec) -> None:
        self.queries, self.failed = (query,), list[str]()
        self.links = SiteLinks()
        self._queries = SiteQueries(self.links, self.report)
        played: Any = SimpleNamespace(spec=query, active=True, is_held=False)
        self._queries._running[query.name] = played

    def report(self, event: str, _query: str, why: str | None) -> None:
        if event == FAILED:
            self.failed.append(str(why))

    def start(self, query: QuerySpec) -> None:
        session: Any = None
        self._queries.start(session, query)

    def look_for_failure(self) -> list[str]:
        self._queries.look_after()
        return self.failed

    def gaps(self, query: QuerySpec) -> dict[str, str]:
        return self.links.gaps_of(query)

    def send_again(self, query: QuerySpec) -> None:
        self.links.end_of(query).send_again()


def test_what_a_link_has_thrown_away_is_sent_again_by_the_fog_that_had_sent_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A topic whose retention was too short: no receiver mends that, however often it begins."""
    wire, spec = Wire(), shipping(tmp_path, fogs=(FOG, "fog-2"))
    monkeypatch.setattr(site_links, "open_link", lambda _spec: MemoryLink(wire))
    monkeypatch.setattr(site_links, "_GAP_S", 0.3)
    monkeypatch.setattr(runtime, "look_over_queries", lambda _folder, _queries: ())
    names = (FOG, "fog-2", "cloud")
    sites = {name: LinkedSite(spec.query(name, 0)) for name in names}
    state = SimpleNamespace(cuts={})
    coordinator = SimpleNamespace(spec=spec, state=state, forget_pace=lambda: None)
    made: Any = SparkRuntime
    try:
        for number, name in enumerate(names[:2], start=1):
            (query,) = sites[name].queries
            for batch in range(3):
                publish(query, batch)
            sites[name].start(query)
            wait_for(lambda number=number: len(wire.sent) == 3 * number, 30.0)
        del wire.sent[:2]
        cloud = sites["cloud"]
        cloud.start(cloud.queries[0])
        assert "batch 1 before it did not" in wait_for(cloud.look_for_failure, 30.0)[0]
        assert Log(spec.log).end(STREAM) == {"fog-2": {"0": 2}}
        (told,) = made(sites, coordinator).restart("cloud", "cloud@0")
        assert told.startswith("fog-1 sends everything again, as its link has lost some: batch 2")
        wait_for(lambda: Log(spec.log).end(STREAM) == {FOG: {"0": 2}, "fog-2": {"0": 2}}, 30.0)
        publish(sites[FOG].queries[0], 3)
        wait_for(lambda: numbers_in(spec.log) == [0, 1, 2, 3, 0, 1, 2], 30.0)
        assert len(cloud.failed) == 1
        assert cloud.links.error_of(cloud.queries[0]) is None
        # The other fog had lost nothing.
        assert len(wire.sent) == 1 + 3 + 3 + 1
        assert made(sites, coordinator).restart("cloud", "cloud@0") == ()
    finally:
        for site in sites.values():
            site.links.close()


# The coordinator, on sites that are played


class PlayedSite:
    """Drains at batch 4, and asks `happen` before a link is waited for."""

    def __init__(self, happen: Callable[[str], None]) -> None:
        self._happen = happen

    def start(self, query: QuerySpec) -> None:
        """Nothing has to run."""

    prepare = start

    def newest_ms(self, query: str) -> None:
        """Nothing was seen."""

    def drain(self, query: str) -> Stand:
        return Stand(batch=4, offsets={"rides": 5})

    def ship(self, query: QuerySpec, batch: int) -> None:
        self._happen(f"ship {query.name} {batch} from {query.log.name}")

    def await_arrival(self, query: QuerySpec, site: str, epoch: int, batch: int) -> None:
        self._happen(f"arrive {site}@{epoch} {batch} in {query.log.name}")


def test_an_epoch_is_fenced_only_after_all_of_it_has_arrived(tmp_path: Path) -> None:
    spec, told, broken = shipping(tmp_path), [], ["arrive"]

    def happen(what: str) -> None:
        told.append(what)
        if broken and what.startswith(broken[0]):
            raise SiteError("cloud", "await_arrival", "nothing has come")

    sites = {name: PlayedSite(happen) for name in (FOG, "cloud")}
    logs = (Log(spec.log), Log(spec.log_of(FOG)))
    with Coordinator(spec, sites, logs[0], openings={}) as coordinator:
        coordinator.go_to({FOG: ("a",)})
        for broken[0] in ("arrive", "ship"):
            with pytest.raises(SiteError, match="nothing has come"):
                coordinator.go_to({FOG: ()})
            assert not any(log.find_fence(FOG, 0) for log in logs)
        told.clear()
        broken.clear()
        coordinator.go_to({FOG: ()})
        assert told == ["ship fog-1@0 4 from fog-1", "arrive fog-1@0 4 in log"]
        assert [log.fence(FOG, 0).last_batch for log in logs] == [4, 4]


# On sites that really run


class Taxis:
    """Numbered rides: forty seconds of them in each batch, and then twenty minutes of none."""

    def __init__(self, log: Path) -> None:
        self._gateway = Gateway(log, "rides", FOG, time="at", durable=False, founds=True)
        self._rng = random.Random(3)  # noqa: S311
        self._batch = 0
        self.rides: list[dict[str, Any]] = []

    def send(self, batches: int) -> None:
        for _ in range(batches):
            begin = datetime(2026, 3, 2, tzinfo=UTC) + timedelta(minutes=20 * self._batch)
            rides = [
                {
                    "n": 100 * self._batch + number,
                    "zone": self._rng.randrange(4),
                    "at": begin + timedelta(milliseconds=self._rng.randrange(40_000)),
                    "fare": self._rng.randrange(-5, 60),
                }
                for number in range(100)
            ]
            kinds = {"n": "int64", "zone": "int32", "fare": "int64"}
            table = pa.Table.from_pylist(rides)
            for name, kind in kinds.items():
                column = table.column_names.index(name)
                table = table.set_column(column, name, table[name].cast(kind))
            self._gateway.send(table)
            self.rides += rides
            self._batch += 1

    def end(self) -> None:
        self._gateway.close()

    def results(self) -> dict[str, Counter[Any]]:
        """What has to come out, computed without Spark."""
        paid = [ride for ride in self.rides if ride["fare"] > 0]
        dear = [(r["n"], r["at"], 2 * r["fare"]) for r in paid if r["fare"] >= 50]
        sums: Counter[tuple[datetime, int]] = Counter()
        for ride in paid:
            at = ride["at"].replace(microsecond=0)
            sums[at - timedelta(seconds=at.second % 10), ride["zone"]] += ride["fare"]
        board = [(begin, zone, fare) for (begin, zone), fare in sums.items() if fare > 100]
        return {"list": Counter(dear), "board": Counter(board)}


def results(log: Path) -> dict[str, Counter[Any]]:
    dear, board = (Log(log).read(f"sinks/{name}").to_pylist() for name in ("list", "board"))
    return {
        "list": Counter((r["n"], r["at"], r["double"]) for r in dear),
        "board": Counter((r["window"]["start"], r["zone"], r["fare"]) for r in board),
    }


@pytest.fixture
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "directory":
        yield f"directory://{tmp_path}/log"
        return
    pytest.importorskip("confluent_kafka")
    folder = tmp_path / "broker"
    folder.mkdir()
    broker = broker_or_skip(folder)
    try:
        broker.start()
        yield broker.address("rides")
    finally:
        broker.kill()


@pytest.mark.parametrize(
    "address", ["directory", pytest.param("kafka", marks=pytest.mark.slow)], indirect=True
)
def test_rows_that_go_over_a_link_count_once(tmp_path: Path, address: str) -> None:
    pytest.importorskip("pyspark")
    spec = replace(deployment(tmp_path, RIDES, (FOG,)), link=address)
    own, cloud = Log(spec.log_of(FOG)), Log(spec.log)
    taxis = Taxis(own.root)
    with running_sites(tmp_path, (FOG, "cloud")) as sites, coordinate(spec, sites) as run:
        run.go_to({FOG: ("clean", "fares")})
        taxis.send(6)
        wait_for(lambda: cloud.end("edges/fares+high"))
        os.kill(sites[FOG].pid or 0, signal.SIGKILL)
        died = wait_for(lambda: sites.next_event(1.0))
        assert (died.site, died.kind) == (FOG, "died")
        sites.restart(FOG)
        taxis.send(3)
        # What is known is dropped, so a fog may be told to send all of it at any time.
        sites[FOG].send_again(spec.query(FOG, 0))
        assert sites["cloud"].gaps(spec.query("cloud", 0)) == {}
        # The windows that are open go up; later ones are begun in the cloud.
        steps = run.go_to({FOG: ("clean",)})
        assert "ExportState" in {type(step).__name__ for step in steps}
        taxis.send(3)
        taxis.end()
        expected = taxis.results()
        assert all(rows.total() for rows in expected.values())
        wait_for(lambda: results(spec.log) == expected or sites.next_event())
        run.stop()
    assert results(spec.log) == expected
    assert own.streams("sources") and not own.streams("sinks")
    assert cloud.streams("sinks") and not cloud.streams("sources")
    assert own.find_fence(FOG, 0) == cloud.find_fence(FOG, 0) is not None
