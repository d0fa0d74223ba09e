"""`thalweg status` of a run whose sites die, restart and end."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from thalweg.spark.deployment.folder import RunFolder, RunManifest

pytest.importorskip("pyspark")

QUERY = {"name": "q", "state": "running", "batch": 7, "processed_rows_per_s": 90.0, "error": None}


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
            "pipeline": "taxi-fares",
            "network": "city",
            "state": "running",
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


def test_a_run_that_is_not_there_has_no_site_that_is_up(thalweg: Any, folder: RunFolder) -> None:
    shown = thalweg("status", "run")
    assert all(" ended " in row for row in rows_of(shown.out).values())
    assert len(rows_of(shown.out)) == 3
    assert "under way" not in shown.out + shown.err
