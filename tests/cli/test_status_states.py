"""`thalweg status` of a run whose sites die, restart and end."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from thalweg.spark.deployment.folder import RunFolder, RunManifest

pytest.importorskip("pyspark")

QUERY = {
    "name": "q",
    "state": "running",
    "batch": 7,
    "input_rows_per_s": 90.0,
    "processed_rows_per_s": 90.0,
    "batch_s": 0.1,
    "watermark": None,
    "error": None,
}
_EMPTY = (
    *("figures", "estimated", "measured", "characteristics", "rows_in_by_source"),
    *("rows_in_by_site", "rows_out", "sent_bytes", "sent_rows", "changes_by_cause"),
    "restarts_by_site",
)
NOTHING_YET = {
    **dict.fromkeys(("code", "code_since_s", "link", "last_change", "last_decision", "error")),
    **{name: {} for name in _EMPTY},
    **dict.fromkeys(("rows_in", "dead_rows", "changes", "restarts"), 0),
    "deviations": [],
    "strategy": "atsoo-both-ways",
    "interval_s": 2.0,
    "note": "",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunFolder:
    monkeypatch.chdir(tmp_path)
    found = RunFolder(tmp_path / "run")
    found.path.mkdir()
    fogs = ("fog-0", "fog-1")
    found.write_manifest(
        RunManifest(pipeline="taxi-fares", graph="1", network="city", fogs=fogs, cloud="cloud")
    )
    now_s = time.time()

    def site(state: str, ago_s: float, *, alive: bool) -> dict[str, Any]:
        queries = [QUERY] if alive else []
        own = {"alive": alive, "pid": None, "silent_s": 0.0, "queries": queries}
        return {**own, "state": state, "since_s": now_s - ago_s}

    activity = {"kind": "restart", "site": "fog-1", "began_at_s": now_s - 7.0}
    found.write_status(
        {
            **NOTHING_YET,
            "pipeline": "taxi-fares",
            "network": "city",
            "state": "running",
            "pid": 1,
            "began_s": now_s - 3600.0,
            "heartbeat_s": now_s,
            "cuts": {"fog-0": ["parse"], "fog-1": []},
            "rates": {"rides": {"fog-0": 100.0, "fog-1": 100.0}},
            "sites": {
                "fog-0": site("down", 3600.0, alive=False),
                "fog-1": site("restarting", 3600.0, alive=True),
                "cloud": site("up", 3600.0, alive=True),
            },
            "under_way": {**activity, "what": "fog-1 is started again"},
        }
    )
    return found


def rows_of(shown: str) -> dict[str, str]:
    """What is said of each site, without the spaces that make columns."""
    lines = (" ".join(line.split()) for line in shown.splitlines())
    return {line.split()[0]: line for line in lines if line.startswith(("fog", "cloud"))}


def test_states_are_told_with_their_age_and_what_is_under_way(
    thalweg: Any, folder: RunFolder
) -> None:
    with folder.hold():
        shown = thalweg("status", "run")
    assert shown.code == 0
    rows = rows_of(shown.out)
    # A table may take seconds to come on a busy machine.
    assert rows["fog-0"].startswith("fog-0 down for 36")
    assert rows["fog-1"].startswith("fog-1 restarting for 36")
    assert rows["cloud"].startswith("cloud up everything 90 7")
    # A site that does not work has no speed.
    assert " 90 " not in rows["fog-1"]
    assert "under way for " in shown.out + shown.err
    assert "s: fog-1 is started again" in shown.out + shown.err


def test_a_run_that_was_killed_has_sites_that_are_down(thalweg: Any, folder: RunFolder) -> None:
    shown = thalweg("status", "run")
    assert all(" down for " in row for row in rows_of(shown.out).values())
    assert len(rows_of(shown.out)) == 3
    assert "under way" not in shown.out + shown.err


def test_the_status_of_a_killed_run_is_told_the_same_everywhere(
    thalweg: Any, folder: RunFolder
) -> None:
    """In the table, as JSON, on the page and as metrics."""
    from thalweg.spark.deployment.status import describe_state
    from thalweg.web.monitoring.samples import RunReading, find_samples

    raw = folder.read_status()
    told = json.loads(thalweg("status", "run", "--format", "json").out)
    assert (told["state"], told["under_way"], told["alive"]) == ("killed", None, False)
    for name, site in told["sites"].items():
        gone = (site["state"], site["alive"], site["pid"], site["queries"])
        assert gone == ("down", False, None, []), name
    # One that was down before is so since then, the others since the run was last heard of.
    since_s = {name: site["since_s"] for name, site in told["sites"].items()}
    assert since_s["fog-0"] == raw["sites"]["fog-0"]["since_s"]
    assert since_s["fog-1"] == since_s["cloud"] == raw["heartbeat_s"]
    assert "killed" in thalweg("status", "run").out
    assert describe_state(told, 7.0, is_alive=False) == describe_state(raw, 7.0, is_alive=False)
    samples = list(find_samples(RunReading(is_live=False, status=raw)))
    of_run = [s.labels for s in samples if s.name == "thalweg_run_state" and s.value]
    of_sites = [s.labels for s in samples if s.name == "thalweg_site_state" and s.value]
    assert of_run == [("killed",)]
    assert sorted(of_sites) == [(name, "down") for name in sorted(told["sites"])]


@pytest.mark.parametrize("state", ["ended", "failed"])
def test_the_sites_of_a_run_that_ended_in_order_have_ended(
    thalweg: Any, folder: RunFolder, state: str
) -> None:
    folder.write_status({**folder.read_status(), "state": state, "error": "no rows"})
    shown = thalweg("status", "run")
    assert all(" ended " in row for row in rows_of(shown.out).values())
    told = json.loads(thalweg("status", "run", "--format", "json").out)
    assert (told["state"], told["under_way"]) == (state, None)
    assert {(site["state"], site["alive"]) for site in told["sites"].values()} == {("ended", False)}


def test_a_run_that_goes_on_is_told_as_it_reports(thalweg: Any, folder: RunFolder) -> None:
    with folder.hold():
        told = json.loads(thalweg("status", "run", "--format", "json").out)
    raw = folder.read_status()
    assert {name: told[name] for name in raw} == raw
