"""`thalweg doctor`: findings, exit codes, repairs, rebuilds; and the line in `thalweg status`."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from spark.damaged_runs import FOG, make_run
from thalweg.spark.deployment.folder import RunFolder
from thalweg.spark.deployment.health import machine


@pytest.fixture
def stopped(thalweg: Any, tmp_path: Path) -> Path:
    return make_run(tmp_path / "run", heartbeat_s=time.time() - 30.0)


def tear_commit(folder: Path) -> None:
    (folder / "checkpoints" / "cloud@0" / "commits" / "4").write_bytes(b"v1")


def lose_offsets(folder: Path) -> None:
    (folder / "checkpoints" / "cloud@0" / "offsets" / "4").unlink()


def test_a_run_that_is_well_ends_with_zero(thalweg: Any, stopped: Path) -> None:
    told = thalweg("doctor", "run", "--deep")
    assert told.code == 0, told.err
    lines = told.out.splitlines()
    assert lines[0].split() == ["level", "where", "what"]
    assert any(line.split()[:3] == ["good", "run", "stopped"] for line in lines)
    data = json.loads(thalweg("doctor", "run", "--format", "json").out)
    assert data["well"] is True
    assert {tuple(sorted(f)) for f in data["findings"]} == {("level", "remedy", "what", "where")}


def test_a_problem_ends_with_one_and_names_the_command(thalweg: Any, stopped: Path) -> None:
    lose_offsets(stopped)
    told = thalweg("doctor", "run")
    assert told.code == 1
    assert "problem  checkpoints/cloud@0/offsets/4" in told.out
    assert f"`thalweg doctor {stopped} --rebuild --yes`" in told.out
    assert thalweg("doctor", "run", "--format", "json").code == 1


def test_what_can_be_mended_is_a_warning_and_a_repair_mends_it(thalweg: Any, stopped: Path) -> None:
    tear_commit(stopped)
    told = thalweg("doctor", "run")
    assert told.code == 0
    assert "--repair" in told.out
    told = thalweg("doctor", "run", "--repair")
    assert told.code == 0
    assert told.out.startswith("checkpoints/cloud@0/commits/4 is torn")
    assert "warning" not in told.out
    assert "nothing needed a repair" in thalweg("doctor", "run", "--repair").out


def test_a_rebuild_wants_a_yes_and_says_what_readers_will_see(thalweg: Any, stopped: Path) -> None:
    lose_offsets(stopped)
    told = thalweg("doctor", "run", "--rebuild")
    assert told.code == 2
    assert "readers of the sinks will see them again from the beginning" in told.err
    assert (stopped / "checkpoints" / "cloud@0").is_dir()
    told = thalweg("doctor", "run", "--rebuild", "--yes")
    assert told.code == 0
    assert "works on all rows again" in told.out
    assert not (stopped / "checkpoints").exists()


def test_bad_calls_end_with_two(thalweg: Any, stopped: Path, tmp_path: Path) -> None:
    assert thalweg("doctor", "nowhere").code == 2
    told = thalweg("doctor", "--repair", "--rebuild", "--deep")
    assert told.code == 2
    assert "3 problems" in told.err
    with RunFolder(stopped).hold():
        for option in ("--repair", "--rebuild"):
            told = thalweg("doctor", "run", option, "--yes")
            assert told.code == 2
            assert "no other run holds" in told.err
        assert "alive" in thalweg("doctor", "run").out
    (stopped / "run.json").write_text("[]")
    assert thalweg("doctor", "run").code == 1
    assert thalweg("doctor", "run", "--rebuild", "--yes").code == 2


def test_without_a_folder_it_is_about_this_machine(
    thalweg: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = thalweg("doctor", "--format", "json")
    found = {f["where"]: f["level"] for f in json.loads(told.out)["findings"]}
    assert found["pyspark"] == found["pandas"] == found["python"] == "good"
    assert told.code == 0
    monkeypatch.setattr(machine, "_version_of", lambda _name: None)
    told = thalweg("doctor")
    assert told.code == 1
    assert "pip install 'pyspark>=4.2'" in told.out


def test_status_has_a_line_for_the_worst_that_is_known_at_once(thalweg: Any, stopped: Path) -> None:
    assert "doctor" not in thalweg("status", "run").out
    (stopped / "journal.jsonl").write_text("nothing\n")
    told = thalweg("status", "run").out
    assert "problem: journal.jsonl:" in told
    assert told.rstrip().endswith("`thalweg doctor run` says more")
    data = json.loads(thalweg("status", "run", "--format", "json").out)
    assert data["worst"]["where"] == "journal.jsonl"


def test_status_says_what_helps_where_it_cannot_be_read(thalweg: Any, stopped: Path) -> None:
    (stopped / "status.json").write_text('{"state": ')
    told = thalweg("status", "run")
    assert told.code == 2
    assert f"Hint: `thalweg doctor {stopped} --repair` sets it aside" in told.err
    assert "--repair" in thalweg("status", "run", "--format", "json").out
    # What is worse is told before.
    (stopped / "journal.jsonl").write_text("nothing\n")
    assert "Hint: journal.jsonl: " in thalweg("status", "run").err
    with RunFolder(stopped).hold():
        assert "ask again" in thalweg("doctor", "run").out
    assert thalweg("doctor", "run", "--repair").out.startswith("status.json cannot be read")


def test_a_killed_run_is_told_once(thalweg: Any, tmp_path: Path) -> None:
    make_run(tmp_path / "run", state="running", heartbeat_s=time.time() - 60.0, cuts={FOG: []})
    told = thalweg("status", "run").out
    assert told.count("killed") == 1
    assert "warning: `thalweg doctor run` says more" in told
