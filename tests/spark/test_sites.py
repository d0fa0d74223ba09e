from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark import site_pipelines, site_queries
from spark.connect_server import connect_server
from spark.site_queries import ROWS, read_batches, spec_of
from thalweg.errors import InvalidInput
from thalweg.spark.log import Log
from thalweg.spark.log.founding import found_log
from thalweg.spark.log.writer import LogWriter
from thalweg.spark.pipeline import load_pipeline
from thalweg.spark.pipeline.code import code_of
from thalweg.spark.query.checkpoint import (
    Stand,
    batch_under_way,
    has_reached,
    hold_checkpoint,
    read_stand,
)
from thalweg.spark.query.spec import QuerySpec
from thalweg.spark.site.channel import SiteChannel, last_lines
from thalweg.spark.site.site import SiteError, SiteSpec
from thalweg.spark.site.sites import Sites

pytestmark = pytest.mark.jvm

PATIENCE_S = 120.0


def wait_for(happened: Callable[[], Any]) -> Any:
    """What `happened` gives, as soon as it is something."""
    deadline = time.monotonic() + PATIENCE_S
    while not (given := happened()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)
    return given


def refused(call: Callable[..., Any], *arguments: Any, **named: Any) -> dict[str, str]:
    with pytest.raises(InvalidInput) as caught:
        call(*arguments, **named)
    return {defect.path: str(defect) for defect in caught.value.defects}


def numbers_in(folder: Path) -> list[int]:
    return list(chain.from_iterable(values for _, values in sorted(read_batches(folder).items())))


# On Spark


@pytest.fixture(scope="module")
def orphan(tmp_path_factory: pytest.TempPathFactory) -> Iterator[subprocess.Popen[str]]:
    """A parent with a site, to be killed; it starts while the sites of the other tests do."""
    pytest.importorskip("pyspark")
    folder = tmp_path_factory.mktemp("orphan")
    command = [sys.executable, site_queries.__file__, str(folder)]
    path = str(Path(__file__).parents[1])
    parent = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": path}
    )
    yield parent
    parent.kill()
    parent.communicate()


@pytest.fixture(scope="module")
def sites(
    orphan: subprocess.Popen[str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Sites]:
    folder = tmp_path_factory.mktemp("sites")
    with Sites(silence_s=2 * PATIENCE_S) as sites:
        sites.start(
            [SiteSpec(name=name, folder=folder / name, heap_mb=512) for name in ("one", "two")]
        )
        yield sites
        processes = [psutil.Process(site.pid) for site in sites.values()]
        processes += [child for process in processes for child in process.children(recursive=True)]
        assert any("java" in process.name() for process in processes)
    # What was started has ended with the block.
    assert [process for process in processes if process.is_running()] == []


def test_sites_are_processes_of_their_own_that_answer_and_stay_quiet(
    sites: Sites, capfd: pytest.CaptureFixture[str]
) -> None:
    pids = {site.pid for site in sites.values()}
    assert len(pids) == 2
    assert os.getpid() not in pids
    assert all(site.ping() >= 0 and site.alive for site in sites.values())
    status = sites.status()
    assert list(status) == ["one", "two"]
    assert {report.queries for report in status.values()} == {()}
    assert sites.next_event() is None
    assert capfd.readouterr() == ("", "")


def test_a_drained_query_stops_at_a_batch_and_goes_on_from_there(
    sites: Sites, tmp_path: Path
) -> None:
    site, query = sites["one"], spec_of("one", tmp_path)
    sites.check(query)
    first = site.start(query)
    assert (first.name, first.epoch, first.role, first.state) == ("one@0", 0, "own", "running")
    running = wait_for(lambda: [q for q in site.status().queries if q.batch > 0])[0]
    assert running.id == first.id
    assert running.processed_rows_per_s > 0
    goal = {"0": {"offset": running.offsets["0"]["offset"] + 5 * ROWS}}
    stand = site.drain(query.name, goal)
    assert has_reached(stand.offsets, goal)
    # Nothing was published beyond, nothing is missing before.
    assert stand.offsets["0"]["offset"] == (stand.batch + 1) * ROWS
    assert numbers_in(tmp_path / "out") == list(range((stand.batch + 1) * ROWS))
    assert site.queries == site.status().queries == ()
    # The same checkpoint goes on where it stood.
    again = site.start(query)
    assert again.id == first.id
    wait_for(lambda: len(read_batches(tmp_path / "out")) > stand.batch + 3)
    last = site.drain(query.name)
    assert numbers_in(tmp_path / "out") == list(range((last.batch + 1) * ROWS))


def test_a_goal_out_of_reach_leaves_the_query_running(sites: Sites, tmp_path: Path) -> None:
    site, query = sites["two"], spec_of("two", tmp_path)
    site.start(query)
    with pytest.raises(SiteError, match=r"site two: drain: not drained in time: .*batch"):
        site.drain(query.name, {"0": {"offset": 10**9}}, timeout_s=0.2)
    batches = len(read_batches(tmp_path / "out"))
    wait_for(lambda: len(read_batches(tmp_path / "out")) > batches + 1)
    assert [status.state for status in site.status().queries] == ["running"]
    stand = site.stop(query.name)
    assert stand == read_stand(query.checkpoint)


def test_a_checkpoint_in_use_is_refused_on_any_site(sites: Sites, tmp_path: Path) -> None:
    query = spec_of("one", tmp_path)
    first = sites["one"].start(query)
    other = spec_of("two", tmp_path)
    assert "one@0 on one has this one" in refused(sites.check, other)["checkpoint"]
    assert "that no running query uses" in refused(sites["two"].start, other)["checkpoint"]
    with pytest.raises(SiteError, match="another query one@0 is running already"):
        sites["one"].start(spec_of("one", tmp_path / "other"))
    # The same again is no other.
    sites.check(query)
    assert sites["one"].start(query).id == first.id
    sites["one"].stop(query.name)
    sites["two"].start(other)
    sites["two"].stop(other.name)


def test_what_a_query_lacks_is_told_by_the_site_too(sites: Sites, tmp_path: Path) -> None:
    unknown = spec_of("one", tmp_path, pipeline="spark.site_queries:count_dwn")
    assert "count_dwn" in refused(sites["one"].start, unknown)["pipeline"]
    with pytest.raises(SiteError, match=r"site one: start: RuntimeError: this query never starts"):
        sites["one"].start(spec_of("one", tmp_path, pipeline="spark.site_queries:refuse"))
    with pytest.raises(SiteError, match=r"site one: stop: there is no query one@0"):
        sites["one"].stop("one@0")
    with pytest.raises(SiteError, match=r"site one: dance: there is no such command"):
        sites["one"]._call("dance", {}, 60)
    assert sites["one"].queries == ()


def test_a_query_that_fails_is_an_event_and_can_be_started_again(
    sites: Sites, tmp_path: Path
) -> None:
    site, query = sites["two"], spec_of("two", tmp_path, options={"fail_at": 2})
    site.start(query)
    event = sites.next_event(PATIENCE_S)
    assert event is not None
    told = (event.site, event.kind, event.query, event.detail)
    assert told == ("two", "query-failed", "two@0", "ValueError: batch 2 is not wanted")
    (status,) = site.status().queries
    assert (status.state, status.error, status.batch) == ("failed", event.detail, 1)
    with pytest.raises(SiteError, match="drain: the query failed: ValueError: batch 2"):
        site.drain(query.name, {"0": {"offset": 10**9}})
    site.start(spec_of("two", tmp_path))
    wait_for(lambda: len(read_batches(tmp_path / "out")) > 3)
    stand = site.drain(query.name)
    assert numbers_in(tmp_path / "out") == list(range((stand.batch + 1) * ROWS))
    assert sites.next_event() is None


def test_a_killed_site_is_noticed_restarted_and_goes_on(sites: Sites, tmp_path: Path) -> None:
    site, query = sites["one"], spec_of("one", tmp_path)
    site.start(query)
    wait_for(lambda: len(read_batches(tmp_path / "out")) > 2)
    pid = site.pid
    assert pid is not None
    family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    os.kill(pid, signal.SIGKILL)
    event = sites.next_event(PATIENCE_S)
    assert event is not None
    assert (event.site, event.kind, event.query) == ("one", "died", None)
    assert event.detail == "its process ended: killed by SIGKILL"
    assert (site.alive, site.pid, site.status().alive) == (False, None, False)
    with pytest.raises(SiteError, match="site one: ping: its process has ended"):
        site.ping()
    assert site.queries == (query,)
    sites.restart("one")
    assert [process for process in family if process.is_running()] == []
    seen = len(read_batches(tmp_path / "out"))
    wait_for(lambda: len(read_batches(tmp_path / "out")) > seen + 2)
    stand = site.drain(query.name)
    assert numbers_in(tmp_path / "out") == list(range((stand.batch + 1) * ROWS))
    assert sites.next_event() is None


@pytest.mark.slow
def test_a_site_that_is_started_again_refuses_other_code(
    sites: Sites, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that is edited while a run is live is what the next process of a site loads."""
    text = Path(site_pipelines.__file__).read_text()
    module = tmp_path / "edited_rides.py"
    module.write_text(text)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.syspath_prepend(tmp_path)
    found_log(tmp_path / "out")
    reference = "edited_rides:rides"
    code = code_of(load_pipeline(reference))
    query = spec_of("one", tmp_path, role="fog", cut=("clean",), pipeline=reference, code=code)
    assert QuerySpec.from_dict(json.loads(json.dumps(query.to_dict()))) == query
    site = sites.restart("one")
    site.start(query)
    module.write_text(text.replace("fare > 0", "fare > 1"))
    # What runs goes on: its process has loaded the file as it was.
    assert site.start(query).state == "running"
    with pytest.raises(InvalidInput, match="operator clean: its function has changed") as refusal:
        sites.restart("one")
    assert f"need {code.digest[:12]}, the code that this run began with" in str(refusal.value)
    module.write_text(text)
    site = sites.restart("one")
    assert [status.state for status in site.status().queries] == ["running"]
    site.drain(query.name)


def test_a_parent_killed_leaves_no_process_behind(orphan: subprocess.Popen[str]) -> None:
    assert orphan.stdout is not None
    site = psutil.Process(int(orphan.stdout.readline()))
    family = [site, *site.children(recursive=True)]
    assert any("java" in process.name() for process in family)
    orphan.kill()
    assert psutil.wait_procs(family, timeout=PATIENCE_S)[1] == []


@pytest.mark.slow
def test_a_site_that_hangs_is_told_and_a_command_to_it_times_out(tmp_path: Path) -> None:
    with Sites(silence_s=5, shown=True) as sites:
        (site,) = sites.start([SiteSpec(name="one", folder=tmp_path)])
        process = psutil.Process(site.pid)
        process.suspend()
        wait_for(lambda: process.status() == psutil.STATUS_STOPPED)
        with pytest.raises(SiteError, match=r"site one: ping: no answer within 0.5 s"):
            site.ping(timeout_s=0.5)
        for kind in ("unheard", "silent"):
            event = sites.next_event(PATIENCE_S)
            assert event is not None
            assert (event.site, event.kind) == ("one", kind)
        status = sites.status()["one"]
        assert (status.alive, status.answered) == (True, False)
        process.resume()
        event = sites.next_event(PATIENCE_S)
        assert event is not None
        assert (event.site, event.kind) == ("one", "heard")


@pytest.mark.slow
def test_a_site_that_loses_its_spark_dies(tmp_path: Path) -> None:
    with Sites() as sites:
        (site,) = sites.start([SiteSpec(name="one", folder=tmp_path)])
        (java,) = [p for p in psutil.Process(site.pid).children() if "java" in p.name()]
        java.kill()
        event = sites.next_event(PATIENCE_S)
        assert event is not None
        assert (event.site, event.kind) == ("one", "died")
        assert "the JVM of this site has ended" in event.log


@pytest.mark.slow
def test_a_site_on_a_connect_server_is_a_site_like_any_other(tmp_path: Path) -> None:
    with connect_server(tmp_path / "server.log") as address, Sites() as sites:
        (site,) = sites.start([SiteSpec(name="one", folder=tmp_path / "site", master=address)])
        query = spec_of("one", tmp_path)
        site.start(query)
        running = wait_for(lambda: [q for q in site.status().queries if q.batch > 0])[0]
        goal = {"0": {"offset": running.offsets["0"]["offset"] + 5 * ROWS}}
        stand = site.drain(query.name, goal)
        assert has_reached(stand.offsets, goal)
        assert numbers_in(tmp_path / "out") == list(range((stand.batch + 1) * ROWS))
        # Its client killed, the query runs on at the server until the next client stops it.
        site.start(query)
        assert site.pid is not None
        os.kill(site.pid, signal.SIGKILL)
        event = sites.next_event(PATIENCE_S)
        assert event is not None
        assert event.kind == "died"
        sites.restart("one")
        seen = len(read_batches(tmp_path / "out"))
        wait_for(lambda: len(read_batches(tmp_path / "out")) > seen + 2)
        stand = site.drain(query.name)
        published = read_batches(tmp_path / "out")
        assert numbers_in(tmp_path / "out") == list(range((stand.batch + 1) * ROWS))
        failing = spec_of("one", tmp_path, options={"fail_at": stand.batch + 2}, epoch=1)
        site.start(failing)
        event = sites.next_event(PATIENCE_S)
        assert event is not None
        assert (event.kind, event.detail[:10]) == ("query-failed", "ValueError")
        assert len(read_batches(tmp_path / "out")) == len(published) + 1


# Without Spark


def test_a_site_whose_spark_does_not_start_tells_why_and_ends(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    spec = SiteSpec(name="one", folder=tmp_path, config={"spark.driver.memory": "1k"})
    with Sites() as sites:
        with pytest.raises(SiteError, match=r"(?s)site one: open: .*Too small maximum heap"):
            sites.start([spec])
        assert len(sites) == 0
        assert sites.next_event() is None


def test_what_keeps_sites_from_starting_is_told_before_any_starts(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    (tmp_path / "file").touch()
    specs = [
        SiteSpec(name="one", folder=tmp_path / "one"),
        SiteSpec(name="one", folder=tmp_path / "file"),
        SiteSpec(name="two", folder=tmp_path / "one", master="sc://127.0.0.1:1"),
        SiteSpec(name="three", folder=tmp_path / "three", master="spark://127.0.0.1:1"),
    ]
    with Sites() as sites:
        defects = refused(sites.start, specs)
        assert len(sites) == 0
    assert sorted(defects) == [
        "sites[1].folder",
        "sites[1].name",
        "sites[2].folder",
        "sites[2].master",
        "sites[3].master",
    ]
    assert "nobody answers" in defects["sites[3].master"]
    assert not (tmp_path / "one" / "site.log").exists()


@pytest.mark.parametrize(
    ("fields", "paths"),
    [
        ({"name": ""}, ["name"]),
        ({"name": "a\nb", "master": "cluster", "heap_mb": 10}, ["name", "master", "heap_mb"]),
        ({"heap_mb": True, "config": {"spark.a": 1}}, ["heap_mb", "config.spark.a"]),
    ],
)
def test_site_specs_are_checked_at_birth(fields: dict[str, Any], paths: list[str]) -> None:
    given = {"name": "one", "folder": Path("x"), **fields}
    assert list(refused(SiteSpec, **given)) == paths
    assert SiteSpec(name="one", folder=Path("x")).folder.is_absolute()


def test_queries_for_unknown_sites_and_of_unknown_things_are_refused(tmp_path: Path) -> None:
    with Sites() as sites:
        query = spec_of("fog-9", tmp_path, pipeline="no_such_module:thing")
        assert list(refused(sites.check, query)) == ["site", "pipeline"]


@pytest.mark.parametrize(
    ("fields", "paths"),
    [
        ({"site": "", "epoch": -1, "role": "edge"}, ["site", "epoch", "role"]),
        ({"pipeline": "taxi", "cut": ["a"]}, ["pipeline", "cut"]),
        ({"log": Path("a"), "checkpoint": Path("b")}, ["log", "checkpoint"]),
        ({"trigger": "soon", "rows_per_batch": 0}, ["rows_per_batch", "trigger"]),
        ({"start": 3, "options": {"a": object()}}, ["start", "options"]),
    ],
)
def test_query_specs_are_checked_at_birth(
    fields: dict[str, Any], paths: list[str], tmp_path: Path
) -> None:
    assert list(refused(spec_of, "one", tmp_path, **fields)) == paths


def test_a_query_spec_is_the_same_after_a_journey(tmp_path: Path) -> None:
    query = spec_of("one", tmp_path, role="fog", cut=["a", "b"], start={"rides": {"0": 3}})
    assert QuerySpec.from_dict(query.to_dict()) == query
    values = query.to_dict()
    del values["site"]
    defects = refused(QuerySpec.from_dict, {**values, "eepoch": 3})
    assert list(defects) == ["eepoch", "site"]
    assert 'did you mean "epoch"?' in defects["eepoch"]


def test_the_end_of_a_log_is_its_last_lines(tmp_path: Path) -> None:
    log = tmp_path / "site.log"
    assert last_lines(log) == ()
    log.write_text("".join(f"line {number}\n\n" for number in range(10_000)))
    assert last_lines(log, 2) == ("line 9998", "line 9999")


def test_a_channel_to_a_process_that_ends_fails_all_that_wait(tmp_path: Path) -> None:
    # Told something else than to open, the process ends.
    messages = list[dict[str, Any]]()
    ended = threading.Event()

    def take(message: dict[str, Any]) -> None:
        messages.append(message)
        ended.set()

    channel = SiteChannel("one", tmp_path, take)
    with pytest.raises(SiteError, match=r"site one: ping: its process ended \(exit code 2\)"):
        channel.call("ping", {}, PATIENCE_S)
    assert ended.wait(PATIENCE_S)
    assert messages == [{"event": "end", "code": 2}]
    assert channel.wait(PATIENCE_S)
    channel.kill()
    with pytest.raises(SiteError, match=r"site one: ping: its process has ended"):
        channel.call("ping", {}, PATIENCE_S)


# Checkpoints


PLAIN = st.recursive(
    st.integers(-3, 3) | st.sampled_from(["a", "b"]) | st.none(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("xy"), inner),
    max_leaves=4,
)


def leaves_of(value: Any) -> dict[tuple[Any, ...], Any]:
    """The oracle's view: every path into a value, and what is at its end."""
    if isinstance(value, dict):
        inner: dict[tuple[Any, ...], Any] = {(): "mapping"}
        return inner | {(k, *p): v for k, item in value.items() for p, v in leaves_of(item).items()}
    if isinstance(value, list):
        inner = {(): "list"}
        items = enumerate(value)
        return inner | {(k, *p): v for k, item in items for p, v in leaves_of(item).items()}
    return {(): value}


@given(PLAIN, PLAIN)
def test_offsets_have_reached_a_goal_if_no_leaf_of_it_is_ahead(offsets: Any, goal: Any) -> None:
    here = leaves_of(offsets)
    ahead = [
        path
        for path, value in leaves_of(goal).items()
        if path not in here
        or not (
            here[path] >= value
            if isinstance(value, int) and isinstance(here[path], int)
            else here[path] == value
        )
    ]
    assert has_reached(offsets, goal) == (not ahead)


def write_log(folder: Path, kind: str, files: dict[int, str]) -> None:
    (folder / kind).mkdir(exist_ok=True)
    for number, text in files.items():
        (folder / kind / str(number)).write_text(text)


def test_a_query_stands_at_its_last_finished_batch(tmp_path: Path) -> None:
    assert read_stand(tmp_path) == Stand(batch=-1, offsets={})
    assert batch_under_way(tmp_path) is None
    write_log(tmp_path, "offsets", {9: 'v1\n{}\n{"a":3}\n-', 10: "v1\n{}\n4\n-"})
    assert read_stand(tmp_path).batch == -1
    assert batch_under_way(tmp_path) == 10
    write_log(tmp_path, "commits", {9: "v1\n{}"})
    (tmp_path / "commits" / ".10.crc").touch()
    assert read_stand(tmp_path) == Stand(batch=9, offsets={"0": {"a": 3}, "1": None})
    assert batch_under_way(tmp_path) == 10
    write_log(tmp_path, "commits", {10: "v1\n{}"})
    assert read_stand(tmp_path) == Stand(batch=10, offsets={"0": 4, "1": None})
    assert batch_under_way(tmp_path) is None


def test_a_checkpoint_is_held_by_one_at_a_time(tmp_path: Path) -> None:
    checkpoint = tmp_path / "new" / "checkpoint"
    with hold_checkpoint(checkpoint):
        with pytest.raises(InvalidInput, match="that no running query uses"):
            hold_checkpoint(checkpoint).__enter__()
        with hold_checkpoint(tmp_path / "new" / "other"):
            pass
    with hold_checkpoint(checkpoint):
        pass


def test_a_rehearsal_leaves_nothing_behind(sites: Sites, tmp_path: Path) -> None:
    query = QuerySpec(
        site="one",
        epoch=7,
        role="fog",
        pipeline="spark.site_pipelines:rides",
        log=tmp_path / "rehearsal" / "log",
        checkpoint=tmp_path / "rehearsal" / "checkpoint",
        cut=("clean", "fares"),
        durable=False,
    )
    assert sites["one"].rehearse(query) == 0
    assert list(tmp_path.iterdir()) == []
    assert sites["one"].status().queries == ()
    # With rows, it is the site's own last ones that it works on, and they stay where they are.
    log = tmp_path / "log"
    writer = LogWriter(log, "sources/rides", "one", 0, durable=False)
    for batch in range(3):
        at = pa.array([1_000_000 * (batch + 1)] * 2, pa.timestamp("us", "UTC"))
        ride = {"n": [0, 1], "zone": pa.array([1, 2], pa.int32()), "at": at, "fare": [60, 70]}
        writer.publish(batch, pa.table(ride))
    # What a rehearsal that was killed has left does not matter.
    (tmp_path / "rehearsal" / "log" / "sources").mkdir(parents=True)
    (tmp_path / "rehearsal" / "checkpoint").mkdir()
    assert sites["one"].rehearse(query, log) == 6
    assert sites["one"].rehearse(query, tmp_path / "nowhere") == 0
    assert [each.name for each in tmp_path.iterdir()] == ["log"]
    assert Log(log).read("sources/rides").num_rows == 6
    assert Log(log).streams("edges") == []
    # What cannot run is told.
    wrong = QuerySpec.from_dict({**query.to_dict(), "cut": ["fares"]})
    assert refused(sites["one"].rehearse, wrong)
