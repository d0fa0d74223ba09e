"""What several threads tell one site: a restart in the middle of a change, answers that come late.

The processes of sites are played: a few lines of Python in place of Spark.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from thalweg.spark.query.spec import QuerySpec
from thalweg.spark.site import channel as channels
from thalweg.spark.site.channel import SiteChannel, SiteError, SiteLate
from thalweg.spark.site.site import Site, SiteSpec
from thalweg.spark.site.sites import Sites

PATIENCE_S = 60.0
# Starts and drains at once; `carry` never ends, `records` are given once, and late.
_PROCESS = """
import json, sys, threading, time
lock, records = threading.Lock(), [[{"batch": 7}]]
def say(number, result):
    with lock:
        print(json.dumps({"id": number, "result": result}), flush=True)
def beat():
    while True:
        time.sleep(0.05)
        with lock:
            print(json.dumps({"event": "alive"}), flush=True)
threading.Thread(target=beat, daemon=True).start()
stand = {"batch": 3, "offsets": {}, "watermark_ms": None, "newest_ms": None}
status = {"name": "q", "id": "1", "site": "one", "epoch": 0, "role": "fog", "state": "running",
          "batch": 0, "input_rows_per_s": 0.0, "processed_rows_per_s": 0.0, "offsets": {},
          "sink_rows": {}, "state_rows": 0, "batch_s": 0.0, "watermark": None, "error": None}
for line in sys.stdin:
    message = json.loads(line)
    number, command = message["id"], message["command"]
    if command == "carry":
        pass
    elif command == "records":
        told = records.pop() if records else []
        threading.Timer(0.5, say, (number, told)).start()
    elif command == "end":
        say(number, None)
        break
    else:
        say(number, {"drain": stand, "start": status, "status": [status]}.get(command))
"""


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> None:
    started = subprocess.Popen

    def start(_command: list[str], **settings: Any) -> subprocess.Popen[bytes]:
        return started([sys.executable, "-c", _PROCESS], **settings)

    monkeypatch.setattr(channels.subprocess, "Popen", start)


def site_in(folder: Path) -> Site:
    folder.mkdir(exist_ok=True)
    site = Site(SiteSpec(name="one", folder=folder))
    begin(site)
    return site


def begin(site: Site) -> None:
    channel = SiteChannel(site.name, site.spec.folder, lambda _message: None)
    site.begin(channel, PATIENCE_S)


def query(folder: Path, epoch: int) -> QuerySpec:
    return QuerySpec(
        site="one",
        epoch=epoch,
        role="fog",
        pipeline="a:b",
        log=folder / "log",
        checkpoint=folder / f"checkpoint-{epoch}",
    )


@pytest.fixture
def site(played: None, tmp_path: Path) -> Iterator[Site]:
    found = site_in(tmp_path / "one")
    yield found
    found.kill()


def test_nobody_else_commands_a_site_that_is_being_started_again(
    site: Site, tmp_path: Path
) -> None:
    told: list[str] = []

    def ask() -> None:
        try:
            site.drain("one@0")
        except SiteError as error:
            told.append(error.reason)

    site.start(query(tmp_path, 0))
    with site.restarting():
        begin(site)
        other = threading.Thread(target=ask)
        other.start()
        other.join(PATIENCE_S)
        # Whoever starts it again may.
        site.start(query(tmp_path, 0))
        with pytest.raises(SiteError, match="started again already"), site.restarting():
            pass
    assert told == ["it is being started again"]
    assert site.drain("one@0").batch == 3
    assert site.queries == ()


def test_a_restart_knows_what_was_ended_before_it(site: Site, tmp_path: Path) -> None:
    """Else the query that a change has just drained would be begun again beside its successor."""
    site.start(query(tmp_path, 0))
    at_it, failed = threading.Event(), list[str]()

    def change() -> None:
        site.drain("one@0")
        site.start(query(tmp_path, 1))
        at_it.set()
        try:
            site._call("carry", {}, PATIENCE_S)
        except SiteError as error:
            failed.append(error.reason)

    changing = threading.Thread(target=change)
    changing.start()
    assert at_it.wait(PATIENCE_S)
    with site.restarting():
        assert [spec.name for spec in site.queries] == ["one@1"]
        assert not site.alive
    changing.join(PATIENCE_S)
    assert len(failed) == 1
    assert "its process" in failed[0] or "started again" in failed[0]


def test_what_is_told_once_is_not_lost_with_a_late_answer(site: Site, tmp_path: Path) -> None:
    with pytest.raises(SiteLate):
        site.records(timeout_s=0.05)
    # Commands of a change in between take their own answers.
    site.start(query(tmp_path, 0))
    assert site.records(timeout_s=PATIENCE_S) == [{"batch": 7}]
    assert site.records(timeout_s=PATIENCE_S) == []


def test_a_status_is_what_a_site_said_last_where_it_does_not_answer(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sites = Sites()
    sites._sites["one"] = site
    try:
        told = sites.status(PATIENCE_S)["one"]
        assert (told.answered, [q.name for q in told.queries]) == (True, ["q"])
        with monkeypatch.context() as late:
            late.setattr(site, "status", _late)
            told = sites.status()["one"]
            assert (told.alive, told.answered, len(told.queries)) == (True, False, 1)
        site.kill()
        told = sites.status()["one"]
        assert (told.alive, told.queries) == (False, ())
    finally:
        sites.close()


def _late(_timeout_s: float) -> None:
    raise SiteLate("one", "status", "no answer")
