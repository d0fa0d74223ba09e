"""`thalweg run`, `status`, `stop`, `rollback` and `explain` of a run, on played sites."""

from __future__ import annotations

import importlib
import json
import os
import re
import signal
import socket
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from thalweg.errors import InvalidInput
from thalweg.files.save import save
from thalweg.model.workload import Workload
from thalweg.scenarios import fog_cloud
from thalweg.scenarios.rides import generate_rides

pytest.importorskip("pyspark")

from thalweg.spark import deployment
from thalweg.spark.deployment.folder import HistoryEntry, RunFolder
from thalweg.spark.deployment.manifest import RunManifest
from thalweg.spark.log import Log

RUN = ("run", "taxi-fares", "net.yaml")


class PlayedSites:
    def __init__(self) -> None:
        self.cuts: dict[str, tuple[str, ...]] = {}

    def go_to(self, cuts: Any) -> list[str]:
        self.cuts.update(cuts)
        return ["moved"]

    def next_event(self, timeout_s: float) -> None:
        time.sleep(min(timeout_s, 0.01))

    def status(self) -> dict[str, Any]:
        return {}

    def records(self) -> list[Any]:
        return []

    def stop(self) -> None: ...


@pytest.fixture
def city(thalweg: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    save(fog_cloud(2, seed=1), tmp_path / "net.yaml")
    sites = PlayedSites()

    @contextmanager
    def played(*_: Any) -> Iterator[PlayedSites]:
        yield sites

    made = partial(deployment.Deployment, open_sites=played)
    monkeypatch.setattr(deployment, "Deployment", made)
    return tmp_path


@contextmanager
def meanwhile(act: Callable[[], Any]) -> Iterator[list[Any]]:
    """Within the block, somebody else does something as soon as the run of the folder runs."""
    results: list[Any] = []

    def wait() -> None:
        folder = RunFolder("run")
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if folder.exists and folder.read_status().get("state") == "running":
                results.append(act())
                return
            time.sleep(0.02)

    thread = threading.Thread(target=wait)
    thread.start()
    yield results
    thread.join()


def test_a_run_ends_after_its_time_with_a_summary_and_a_report(thalweg: Any, city: Path) -> None:
    shown = thalweg(*RUN, "--for", "1 s", "--feed", "rides:200", "--interval", "200 ms")
    assert shown.code == 0, shown.err
    assert "rows in" in shown.out
    assert "first: first deployment" in shown.out
    assert "thalweg stop run" in shown.err
    report = json.loads((city / "run" / "report.json").read_text())
    rows = Log(city / "run" / "log").read("sources/rides").num_rows
    assert report["rows_in"] == rows > 0
    assert report["rows_out"] == dict.fromkeys(report["rows_out"], 0)
    assert set(report["rows_in_by_site"]) == {"fog-0", "fog-1"}
    told = thalweg("status", "run")
    assert "stopped" in told.out
    assert "goes on where it was" in told.out
    again = thalweg(*RUN, "--for", "100 ms", "--format", "json")
    assert json.loads(again.out)["cuts"] == report["cuts"]
    causes = [d["cause"] for d in RunFolder("run").read_decisions()]
    assert causes.count("first") == causes.count("resume") == 1


def test_a_run_that_is_to_go_on_is_not_begun_where_there_is_none(thalweg: Any, city: Path) -> None:
    shown = thalweg(*RUN, "--resume", "--for", "100 ms")
    assert shown.code == 2
    assert "need a folder with a run to go on with" in shown.err
    assert "its disk may be away" in shown.err
    assert not (city / "run").exists()
    assert thalweg(*RUN, "--for", "100 ms").code == 0
    assert thalweg(*RUN, "--resume", "--for", "100 ms").code == 0
    (city / "run").rename(city / "away")
    (city / "run").mkdir()
    assert thalweg(*RUN, "--resume", "--for", "100 ms").code == 2
    assert list((city / "run").iterdir()) == []


EDITED = """
from thalweg.spark.pipeline import Pipeline

LIMIT = 5
flow = Pipeline("flow")
rides = flow.source("rides", schema="n long, zone int", key="zone", rate=10.0)

def is_dear(frame):
    return frame.where(f"n > {LIMIT}")

@flow.operator(rides, kind="row-wise")
def clean(rides):
    return is_dear(rides)

flow.sink("board", clean)
"""
EDITED_RUN = ("run", "edited_flow:flow", "net.yaml", "--for", "100 ms", "--no-adapt")


@pytest.fixture
def edit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Writes the module `edited_flow`, with some of its text replaced, for the next command."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(tmp_path)

    def write(*texts: str) -> None:
        text = EDITED
        for before, after in zip(texts[::2], texts[1::2], strict=True):
            assert before in text
            text = text.replace(before, after)
        (tmp_path / "edited_flow.py").write_text(text)
        sys.modules.pop("edited_flow", None)
        importlib.invalidate_caches()

    yield write
    sys.modules.pop("edited_flow", None)


def test_other_code_is_refused_with_all_that_differs_and_nothing_starts(
    thalweg: Any, city: Path, edit: Callable[..., None]
) -> None:
    edit()
    assert thalweg(*EDITED_RUN).code == 0
    digest = json.loads((city / "run" / "run.json").read_text())["code"]["digest"]
    assert {d["code"] for d in RunFolder("run").read_decisions()} == {digest}
    report = json.loads((city / "run" / "report.json").read_text())
    assert report["code"] == RunFolder("run").read_status()["code"] == digest
    assert f"code {digest[:12]}\n" in thalweg("status", "run").out
    # Comments and figures for planning are no other code.
    edit("rate=10.0)", "rate=99.0)  # More.")
    assert thalweg(*EDITED_RUN, "--resume").code == 0
    files = {f: f.read_bytes() for f in (city / "run").rglob("*") if f.is_file()}
    edit("LIMIT = 5", "LIMIT = 6")
    for option in ("--no-page", "--resume", "--dry-run"):
        shown = thalweg(*EDITED_RUN, option)
        assert shown.code == 2
        assert "operator clean: reaches edited_flow.LIMIT, which has changed: got" in shown.err
        assert f"need {digest[:12]}, the code that this run began with" in shown.err
        assert "Hint: go back to that code, or run this one in another folder." in shown.err
    edit("is_dear(rides)", "is_dear(rides.limit(1))", '"board"', '"list"')
    told = thalweg(*EDITED_RUN).err
    changes = "operator clean: its function has changed", "sink board: is gone", "sink list: is new"
    assert all(change in told for change in changes)
    with pytest.raises(InvalidInput, match="its function has changed"):
        deployment.Deployment("edited_flow:flow", "net.yaml", folder="run")
    assert files == {f: f.read_bytes() for f in (city / "run").rglob("*") if f.is_file()}
    edit()
    assert thalweg(*EDITED_RUN).code == 0


def test_a_run_that_began_after_another_was_prepared_keeps_its_code(
    thalweg: Any, city: Path, edit: Callable[..., None]
) -> None:
    edit()
    prepared = deployment.Deployment("edited_flow:flow", "net.yaml", folder="run")
    edit("n > {LIMIT}", "n < {LIMIT}")
    assert thalweg(*EDITED_RUN).code == 0
    with pytest.raises(InvalidInput, match=r"reaches edited_flow\.is_dear, which has changed"):
        prepared.start()
    assert not RunFolder("run").is_held()


def test_a_folder_of_an_earlier_version_takes_the_code_and_says_since_when(
    thalweg: Any, city: Path, edit: Callable[..., None]
) -> None:
    edit()
    assert thalweg(*EDITED_RUN).code == 0
    file = city / "run" / "run.json"
    data = json.loads(file.read_text())
    digest = data.pop("code")["digest"]
    del data["code_since_s"]
    file.write_text(json.dumps({**data, "thalweg_run": 1}))
    assert thalweg(*EDITED_RUN).code == 0
    data = json.loads(file.read_text())
    assert (data["thalweg_run"], data["code"]["digest"]) == (2, digest)
    told = thalweg("status", "run").out
    assert re.search(rf"code {digest[:12]} since .* UTC; that of the rows before is unknown", told)
    # It stays so at the next start.
    assert thalweg(*EDITED_RUN).code == 0
    assert json.loads(file.read_text())["code_since_s"] == data["code_since_s"]
    edit("n > {LIMIT}", "n < {LIMIT}")
    assert thalweg(*EDITED_RUN).code == 2


def test_a_trip_file_is_replayed(thalweg: Any, city: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rides = generate_rides(60, seed=1)
    times = rides["pickup_time"].cast(pa.timestamp("us"))
    trips = {
        "tpep_pickup_datetime": times,
        "tpep_dropoff_datetime": times,
        "PULocationID": rides["zone"],
        "DOLocationID": rides["zone"],
        **{name: pa.array([1.0] * 60) for name in ("trip_distance", "fare_amount", "tip_amount")},
    }
    pq.write_table(pa.table(trips), city / "trips.parquet")
    shown = thalweg(*RUN, "--for", "1 s", "--data", "trips.parquet", "--format", "json")
    assert json.loads(shown.out)["rows_in"] == 60


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_a_run_in_order(thalweg: Any, city: Path, number: int) -> None:
    before = signal.getsignal(number)
    with meanwhile(lambda: os.kill(os.getpid(), number)):
        shown = thalweg(*RUN)
    assert shown.code == 0, shown.err
    assert "stopping" in shown.err
    assert RunFolder("run").read_status()["state"] == "ended"
    assert signal.getsignal(number) is before


def wait_for_page(folder: RunFolder) -> str:
    """Where the page of a run is, once it is there."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if address := folder.read_page():
            return address
        time.sleep(0.02)
    return "nowhere"


def read_subjects(address: str) -> list[Any]:
    """What a run's page says that there is, to one who knows its address."""
    place, _, token = address.partition("/#token=")
    asked = Request(f"{place}/api/subjects", headers={"Authorization": f"Bearer {token}"})  # noqa: S310
    with urlopen(asked, timeout=30) as answer:  # noqa: S310
        return list(json.load(answer)["subjects"])


def test_a_port_that_is_taken_is_told_before_anything_starts(thalweg: Any, city: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        shown = thalweg(*RUN, "--port", port, "--for", "1 s")
        assert shown.code == 2
        assert "a port that is free" in shown.err
        assert not (city / "run").exists()
        assert thalweg(*RUN, "--port", port, "--no-page", "--for", "100 ms").code == 0


def scrape(place: str, token: str) -> str:
    """What Prometheus reads at a place, with the token."""
    asked = Request(f"{place}/metrics", headers={"Authorization": f"Bearer {token}"})  # noqa: S310
    with urlopen(asked, timeout=30) as answer:  # noqa: S310
        return str(answer.read().decode())


@pytest.mark.parametrize("own_token", [None, "a-token-of-the-tests-0123456789"])
def test_metrics_are_served_without_a_page_to_whoever_reads_the_token_file(
    thalweg: Any, city: Path, own_token: str | None
) -> None:
    from thalweg.cli.stop import stop

    file = city / "run" / "control" / "metrics-token"

    def read_and_stop() -> tuple[str, str, int]:
        deadline = time.monotonic() + 60
        while not file.exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        token, mode = file.read_text(), stat.S_IMODE(file.stat().st_mode)
        text = scrape(f"http://127.0.0.1:{port}", token)
        stop(Path("run"), "1 min")
        return token, text, mode

    (city / "token").write_text(f"{own_token}\n")
    words = [] if own_token is None else ["--token-file", "token"]
    port = free_port()
    with meanwhile(read_and_stop) as results:
        shown = thalweg(*RUN, "--no-page", "--metrics", str(port), *words)
    assert shown.code == 0, shown.err
    ((token, text, mode),) = results
    assert token == own_token or own_token is None
    assert mode == 0o600
    assert 'thalweg_run_up{run="run"} 1.0' in text
    assert f"metrics: http://127.0.0.1:{port}/metrics, token in {file}" in shown.err
    assert token not in shown.err
    assert "page:" not in shown.err
    assert not file.exists()


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def test_the_page_has_the_port_of_the_metrics(thalweg: Any, city: Path) -> None:
    port = str(free_port())
    shown = thalweg(*RUN, "--metrics", port, "--port", port, "--for", "1 s")
    assert shown.code == 0, shown.err
    assert f"page: http://127.0.0.1:{port}/#token=" in shown.err
    assert f"metrics: http://127.0.0.1:{port}/metrics" in shown.err


def test_metrics_that_cannot_be_served_are_refused_before_anything_starts(
    thalweg: Any, city: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        shown = thalweg(*RUN, "--no-page", "--metrics", str(taken.getsockname()[1]))
    assert shown.code == 2
    assert "--metrics: got" in shown.err
    shown = thalweg(*RUN, "--metrics", "9464", "--port", "9465")
    assert shown.code == 2
    assert "the page and the metrics have one" in shown.err
    (city / "token").write_text("short")
    shown = thalweg(*RUN, "--metrics", "0", "--token-file", "token")
    assert shown.code == 2
    assert "at least 16 printable ASCII characters" in shown.err
    assert "short" not in shown.err
    monkeypatch.setattr("thalweg.web.server.find_spec", lambda _name: None)
    shown = thalweg(*RUN, "--metrics", "0")
    assert shown.code == 2
    assert "pip install 'thalweg[web]'" in shown.err
    assert not (city / "run").exists()


@pytest.mark.parametrize("name", ["rules", "dashboard", "prometheus"])
def test_what_prometheus_and_grafana_need_is_printed(thalweg: Any, name: str) -> None:
    from thalweg.web.monitoring import read_shipped

    shown = thalweg("metrics", name)
    assert (shown.code, shown.out, shown.err) == (0, read_shipped(name), "")


def test_stop_and_status_of_a_live_run(thalweg: Any, city: Path) -> None:
    from thalweg.cli.status import describe_run
    from thalweg.cli.stop import stop

    def look_and_stop() -> str:
        folder = RunFolder("run")
        told = describe_run(folder.read_status(), 0.0, is_alive=folder.is_held())
        pages.append(read_subjects(wait_for_page(folder)))
        stop(Path("run"), "1 min")
        return told

    pages: list[Any] = []
    with meanwhile(look_and_stop) as results:
        shown = thalweg(*RUN)
    assert shown.code == 0
    (told,) = results
    ((subject,),) = pages
    assert (subject["kind"], subject["live"]) == ("run", True)
    assert "page: http://127.0.0.1:" in shown.err
    assert RunFolder("run").read_page() is None
    assert "running, last look 0 s ago" in told
    assert not RunFolder("run").is_held()
    nothing = thalweg("stop", "run")
    assert (nothing.code, nothing.err) == (0, "nothing runs in run\n")


def test_a_rollback_of_a_live_run_goes_back_at_once(thalweg: Any, city: Path) -> None:
    from thalweg.cli.rollback import rollback
    from thalweg.cli.stop import stop
    from thalweg.spark.deployment.control import MOVE, Request, await_answer, leave

    def move_and_back() -> list[Any]:
        folder = RunFolder("run")
        before = folder.read_history()[-1].cuts
        request = Request(kind=MOVE, cuts={"fog-0": () if before["fog-0"] else ("parse",)})
        leave(folder, request)
        await_answer(folder, request, 60.0, goes_on=folder.is_held)
        moved = folder.read_history()[-1].cuts
        rollback(Path("run"))
        stop(Path("run"), "1 min")
        return [before, moved, folder.read_history()[-1].cuts]

    with meanwhile(move_and_back) as results:
        assert thalweg(*RUN, "--no-adapt").code == 0
    ((before, moved, after),) = results
    assert before == after != moved
    explained = thalweg("explain", "run")
    assert explained.code == 0
    assert explained.out.startswith("rollback: rolled back to the cuts before")
    assert "parse runs on" in explained.out
    data = json.loads(thalweg("explain", "run", "parse", "--format", "json").out)
    assert data["change"]["cause"] == "rollback"
    assert {row["operator"] for row in data["placement"]} == {"parse"}


def test_a_rollback_of_a_stopped_run_waits_for_its_next_start(thalweg: Any, city: Path) -> None:
    assert thalweg(*RUN, "--for", "100 ms", "--no-adapt").code == 0
    none = thalweg("rollback", "run")
    assert (none.code, "no earlier cuts" in none.err) == (2, True)
    folder = RunFolder("run")
    (first,) = folder.read_history()
    earlier = HistoryEntry(cuts={"fog-0": (), "fog-1": ()}, reason="by hand", at_s=1.0)
    folder.write_history([earlier, first])
    left = thalweg("rollback", "run")
    assert (left.code, "next start" in left.err) == (0, True)
    shown = thalweg(*RUN, "--for", "100 ms", "--no-adapt", "--format", "json")
    assert json.loads(shown.out)["cuts"] == {"fog-0": [], "fog-1": []}


def run_with_two_cuts(folder: RunFolder) -> None:
    """What a run leaves behind whose cuts were changed once."""
    folder.path.mkdir()
    fogs = ("fog-0", "fog-1")
    folder.write_manifest(
        RunManifest(pipeline="taxi-fares", graph="1", network="city", fogs=fogs, cloud="cloud")
    )
    folder.write_history(
        [
            HistoryEntry(cuts=dict.fromkeys(fogs, cut), reason="why", at_s=at_s)
            for at_s, cut in ((1.0, ()), (2.0, ("parse",)))
        ]
    )
    folder.write_status({"state": "running", "pid": 4711})


def test_a_rollback_of_a_stopped_run_is_not_asked_for_twice(thalweg: Any, tmp_path: Path) -> None:
    run_with_two_cuts(RunFolder("run"))
    assert thalweg("rollback", "run").code == 0
    again = thalweg("rollback", "run")
    assert again.code == 2
    (file,) = (tmp_path / "run" / "control").iterdir()
    assert "the next start begins with it" in again.err
    assert file.name in again.err.replace("\n", "")


@pytest.mark.parametrize("is_begun", [False, True])
def test_a_rollback_that_is_not_answered_is_taken_back_unless_it_is_begun(
    thalweg: Any, monkeypatch: pytest.MonkeyPatch, is_begun: bool
) -> None:
    from thalweg.spark.deployment import control

    folder = RunFolder("run")
    run_with_two_cuts(folder)

    def hear_nothing(*_: Any, **__: Any) -> None:
        if is_begun:
            control.take_one(folder)

    monkeypatch.setattr(control, "await_answer", hear_nothing)
    with folder.hold():
        shown = thalweg("rollback", "run")
    assert shown.code == 2
    said = "may still do what was asked" if is_begun else "the request was taken back"
    assert said in " ".join(shown.err.split())
    assert len(list(folder.control.iterdir())) == is_begun


def test_a_run_that_cannot_be_asked_says_so(thalweg: Any, tmp_path: Path) -> None:
    folder = RunFolder("run")
    run_with_two_cuts(folder)
    folder.control.write_text("")
    with folder.hold():
        for words in (("stop", "run"), ("rollback", "run")):
            shown = thalweg(*words)
            assert shown.code == 2, shown.err
            assert "need a folder in which a request can be left" in shown.err
            assert ("`kill 4711`" in shown.err) == (words[0] == "stop")
            assert ("SIGTERM" in shown.err) == (words[0] == "stop")


def test_a_rollback_with_a_torn_history_names_the_remedy(thalweg: Any, tmp_path: Path) -> None:
    run_with_two_cuts(RunFolder("run"))
    (tmp_path / "run" / "history.json").write_text('{"entries": [')
    shown = thalweg("rollback", "run")
    assert shown.code == 2
    assert "history.json" in shown.err
    assert f"`thalweg doctor {tmp_path / 'run'} --repair` sets it aside" in shown.err
    assert not (tmp_path / "run" / "control").exists()


def test_the_status_of_a_killed_run_says_so_and_what_to_do(thalweg: Any, city: Path) -> None:
    assert thalweg(*RUN, "--for", "100 ms").code == 0
    folder = RunFolder("run")
    told = folder.read_status()
    folder.write_status({**told, "state": "running", "heartbeat_s": time.time() - 90})
    shown = " ".join(thalweg("status", "run").out.split())
    # A busy machine may take its time to ask.
    silent_s = re.search(r"killed, last heard of (\d+) s ago", shown)
    assert silent_s is not None and int(silent_s[1]) >= 90
    assert "goes on where it was" in shown
    folder.write_status({**told, "state": "failed", "error": "fog-0 does not stay"})
    assert "fog-0 does not stay" in thalweg("status", "run").out
    data = json.loads(thalweg("status", "run", "--format", "json").out)
    assert (data["alive"], data["state"]) == (False, "failed")


def test_a_dry_run_prints_steps_and_a_workload_sets_the_rates(thalweg: Any, city: Path) -> None:
    load = Workload.of({0.0: {("rides", "fog-0"): 5.0, ("rides", "fog-1"): 1e5}})
    save(load, city / "load.csv")
    plain = thalweg(*RUN, "--dry-run")
    assert plain.code == 0
    assert "1. start cloud: the whole of taxi-fares" in plain.out
    told = json.loads(thalweg(*RUN, "--dry-run", "--workload", "load.csv", "--format", "json").out)
    assert set(told["cuts"]) == {"fog-0", "fog-1"}
    usual = json.loads(thalweg(*RUN, "--dry-run", "--format", "json").out)
    assert told["plan"]["estimate"]["uplink_bps"] > usual["plan"]["estimate"]["uplink_bps"]
    assert not (city / "run").exists()


def test_everything_wrong_with_a_call_is_told_at_once(thalweg: Any, city: Path) -> None:
    shown = thalweg(
        "run", "taxi-far", "net.yml", "--strategy", "atso", "--for", "soon", "--feed", "cars:1",
        "--interval", "x", "--option", "y", "--data", "none.parquet", "--seed", "-1",
        "--bad-rows", "drop",
    )  # fmt: skip
    assert shown.code == 2
    assert "10 problems" in shown.err
    for part in (
        "taxi-fares",
        "net.yaml",
        "atsoo",
        "--for",
        "--feed",
        "--interval",
        "NAME=VALUE",
        "--bad-rows",
    ):
        assert part in shown.err
    assert not (city / "run").exists()


@pytest.mark.parametrize("verb", ["status", "stop", "rollback"])
def test_a_folder_without_a_run_is_told(thalweg: Any, tmp_path: Path, verb: str) -> None:
    shown = thalweg(verb, "nothing")
    assert shown.code == 2
    assert "the folder of a run" in shown.err


def test_another_pipeline_or_network_in_a_folder_is_refused(thalweg: Any, city: Path) -> None:
    assert thalweg(*RUN, "--for", "100 ms").code == 0
    other = thalweg("run", "taxi-demand", "net.yaml")
    assert other.code == 2
    assert "thalweg.spark.examples.taxi:taxi_fares" in other.err
    save(replace(fog_cloud(3, seed=1), name="town"), city / "town.yaml")
    other = thalweg("run", "taxi-fares", "town.yaml")
    assert (other.code, "2 problems" in other.err) == (2, True)


def test_rides_are_not_sent_to_a_pipeline_that_reads_something_else(
    thalweg: Any, city: Path
) -> None:
    shown = thalweg("run", "etl", "net.yaml", "--feed", "rides:10", "--dry-run")
    assert shown.code == 2
    assert "--feed" in shown.err
