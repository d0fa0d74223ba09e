"""What is said of runs that are well, ill or garbage; what is mended, and what never is."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark.damaged_runs import (
    CUT,
    FOG,
    MANIFEST,
    NOW_S,
    describe_state,
    make_checkpoint,
    make_run,
    publish,
    write_summed,
)
from thalweg.errors import InvalidInput, ThalwegError
from thalweg.spark.deployment.control import ROLLBACK, Request, leave, take_one
from thalweg.spark.deployment.folder import HistoryEntry, RunFolder
from thalweg.spark.deployment.hand_over import Drain, Fence, Prepare, SiteState, StartEpoch
from thalweg.spark.deployment.health import (
    Finding,
    Health,
    examine,
    glance,
    rebuild,
    refusal,
    repair,
)
from thalweg.spark.deployment.health.backlog import Backlog, LinkFacts, judge_backlog
from thalweg.spark.deployment.health.checkpoint_facts import read_checkpoint
from thalweg.spark.deployment.health.damage import Damage, find_damage, next_batch
from thalweg.spark.deployment.health.disk import DiskFacts, judge_disk
from thalweg.spark.deployment.health.machine import MachineFacts, judge_machine
from thalweg.spark.deployment.health.refusal import look_over, look_over_queries
from thalweg.spark.deployment.health.run_facts import JournalFacts, RunFacts, judge_run
from thalweg.spark.deployment.journal import Journal, JournalBroken
from thalweg.spark.deployment.restarts import DeploymentFailed
from thalweg.spark.deployment.runtime import SparkRuntime
from thalweg.spark.deployment.spec import DeploymentSpec
from thalweg.spark.log import Log
from thalweg.spark.log.disk import LogError
from thalweg.spark.query.checkpoint import hold_checkpoint
from thalweg.spark.query.feeder import TakenLots
from thalweg.spark.query.spec import QuerySpec

pytest.importorskip("pyspark")

ALL = 4
"""The last batch of a checkpoint made by hand."""


def levels(health: Health) -> set[str]:
    return {finding.level for finding in health.findings}


def problems(folder: Path, **options: Any) -> list[Finding]:
    found = examine(folder, now_s=NOW_S, **options).findings
    return [finding for finding in found if finding.level == "problem"]


def empty(file: Path) -> None:
    file.write_bytes(b"")


def tear(file: Path) -> None:
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2])


# Findings


def test_a_finding_is_checked_and_says_nothing_that_a_terminal_obeys() -> None:
    with pytest.raises(InvalidInput) as told:
        Finding(level="bad", where="", what="")
    assert [defect.path for defect in told.value.defects] == ["level", "where", "what"]
    assert str(Finding(level="note", where="a", what="b\x1b[2J\nc")) == "a: b\\u001b[2J c"


def test_the_worst_is_the_first_of_the_worst_level() -> None:
    assert Health().worst is None
    found = [Finding(level=level, where=level, what="x") for level in ("good", "problem", "note")]
    health = Health.of([*found, Finding(level="problem", where="later", what="x")])
    assert health.worst == found[1]
    assert not health.is_well


# Checkpoints

FATAL, MENDED, HARMLESS = "fatal", "mended", "harmless"
INTAKE = "fog-0@0.intake/sources:rides"


def judged(checkpoint: Path, published: int) -> tuple[Damage, ...]:
    return find_damage(read_checkpoint(checkpoint, published))


def sort_of(damages: tuple[Damage, ...]) -> str:
    if any(damage.is_fatal for damage in damages):
        return FATAL
    return MENDED if any(damage.is_mendable for damage in damages) else HARMLESS


def test_a_whole_checkpoint_has_no_damage_whether_a_batch_is_under_way_or_not(
    tmp_path: Path,
) -> None:
    assert judged(make_checkpoint(tmp_path / "a" / "fog-0@0"), ALL) == ()
    under_way = make_checkpoint(tmp_path / "b" / "fog-0@0", begun=5, finished=4)
    for published in (4, 5):
        assert judged(under_way, published) == ()
    # Nothing was begun: it starts.
    assert judged(tmp_path / "c" / "fog-0@0", -1) == ()


@pytest.mark.parametrize("hurt", [empty, tear, Path.unlink], ids=["emptied", "torn", "removed"])
@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("fog-0@0/commits/4", MENDED),
        ("fog-0@0/commits/1", HARMLESS),
        ("fog-0@0/offsets/4", FATAL),
        ("fog-0@0/offsets/3", FATAL),
        ("fog-0@0/offsets/1", HARMLESS),
        ("fog-0@0/metadata", MENDED),
        ("fog-0@0.taken/4", FATAL),
        ("fog-0@0.taken/1", HARMLESS),
        (f"{INTAKE}/lots/4.json", FATAL),
        (f"{INTAKE}/rows/4.parquet", MENDED),
        ("fog-0@0/sources/0/2", FATAL),
        ("fog-0@0/state/0/0/5.changelog", FATAL),
        ("fog-0@0/state/0/0/2.changelog", FATAL),
    ],
)
def test_damage_is_told_by_its_file_and_only_what_is_safe_is_mended(
    tmp_path: Path, file: str, expected: str, hurt: Callable[[Path], None]
) -> None:
    checkpoint = make_checkpoint(tmp_path / "fog-0@0")
    hurt(tmp_path / file)
    damages = judged(checkpoint, ALL)
    removed = not (tmp_path / file).exists()
    if removed and expected in (MENDED, HARMLESS) and "metadata" not in file:
        # Without its commit a batch is done again, and rows of a lot are laid down again.
        assert sort_of(damages) == HARMLESS
        return
    assert sort_of(damages) == expected, damages
    named = tmp_path / file
    assert any(named in (damage.where, *damage.aside) for damage in damages)


def test_a_torn_commit_is_no_reason_to_redo_a_batch_whose_rows_are_gone(tmp_path: Path) -> None:
    # The next lot is laid down, and no batch was begun with it.
    checkpoint = make_checkpoint(tmp_path / "fog-0@0", begun=5, finished=4)
    (checkpoint / "offsets" / "5").unlink()
    (tmp_path / "fog-0@0.taken" / "5").unlink()
    empty(checkpoint / "commits" / "4")
    assert sort_of(judged(checkpoint, ALL)) == MENDED
    (tmp_path / INTAKE / "rows" / "4.parquet").unlink()
    commit, rows = [damage for damage in judged(checkpoint, ALL) if damage.is_fatal]
    assert "cannot be done again" in commit.what
    assert "rows/4.parquet" in commit.what
    assert rows.where == tmp_path / INTAKE / "rows" / "4.parquet"


def test_offsets_of_a_batch_under_way_are_made_anew_unless_some_of_it_is_published(
    tmp_path: Path,
) -> None:
    checkpoint = make_checkpoint(tmp_path / "fog-0@0", begun=5, finished=4)
    empty(checkpoint / "offsets" / "5")
    (damage,) = judged(checkpoint, 4)
    record = tmp_path / "fog-0@0.taken" / "5"
    assert set(damage.aside) >= {checkpoint / "offsets" / "5", record}
    assert next_batch(read_checkpoint(checkpoint, 4)) == 5
    assert sort_of(judged(checkpoint, 5)) == FATAL


def test_an_epoch_never_begins_again_from_nothing_once_it_has_published(tmp_path: Path) -> None:
    checkpoint = make_checkpoint(tmp_path / "fog-0@0")
    shutil.rmtree(checkpoint)
    (damage,) = judged(checkpoint, 0)
    assert damage.is_fatal
    assert "begin again from nothing" in damage.what
    # Of an epoch that has published nothing, all that was laid down goes with it.
    (damage,) = judged(checkpoint, -1)
    assert damage.is_mendable
    assert tmp_path / "fog-0@0.intake" in damage.aside


def test_a_checkpoint_from_an_older_copy_is_behind_the_log(tmp_path: Path) -> None:
    checkpoint = make_checkpoint(tmp_path / "fog-0@0")
    assert judged(checkpoint, ALL) == ()
    (damage,) = judged(checkpoint, ALL + 1)
    assert damage.is_fatal
    assert "older than the log" in damage.what


def test_an_older_checkpoint_is_told_by_the_lots_that_are_gone(tmp_path: Path) -> None:
    checkpoint = make_checkpoint(tmp_path / "fog-0@0")
    for lot in (0, 1, 2, 3):
        (tmp_path / INTAKE / "rows" / f"{lot}.parquet").unlink()
    assert judged(checkpoint, 1) == ()
    for folder in ("offsets", "commits", "sources/0"):
        for batch in ("2", "3", "4"):
            (checkpoint / folder / batch).unlink()
    # The log does not know: its batches may have had nothing to publish.
    lost = [damage.where.name for damage in judged(checkpoint, 1) if damage.is_fatal]
    assert lost == ["2.parquet", "3.parquet"]


def test_a_compacted_list_stands_for_all_before_it(tmp_path: Path) -> None:
    checkpoint = make_checkpoint(tmp_path / "fog-0@0")
    lists = checkpoint / "sources" / "0"
    (lists / "3").rename(lists / "3.compact")
    (lists / ".3.crc").rename(lists / ".3.compact.crc")
    for old in (0, 1):
        (lists / str(old)).unlink()
    empty(lists / "2")
    assert sort_of(judged(checkpoint, ALL)) == HARMLESS
    # One that no batch was begun with is found again.
    write_summed(lists / "5", "v1\n{}")
    tear(lists / "5")
    assert sort_of(judged(checkpoint, ALL)) == MENDED
    empty(lists / "3.compact")
    assert sort_of(judged(checkpoint, ALL)) == FATAL


def test_a_snapshot_stands_for_all_steps_before_it(tmp_path: Path) -> None:
    checkpoint = make_checkpoint(tmp_path / "fog-0@0")
    store = checkpoint / "state" / "0" / "0"
    (store / "3.zip").write_bytes(b"whole")
    for old in (1, 2, 3):
        (store / f"{old}.changelog").unlink()
    assert judged(checkpoint, ALL) == ()
    empty(store / "3.zip")
    assert sort_of(judged(checkpoint, ALL)) == FATAL


JOINED = ("left-keyToNumValues", "right-keyToNumValues")


def add_joins(checkpoint: Path, *operators: int) -> None:
    """Operators after the first with two partitions of two stores each, as Spark leaves them."""
    for operator in operators:
        folder = checkpoint / "state" / str(operator)
        describe_state(folder, JOINED, partitions=2, kind="symmetricHashJoin")
        for store in [folder / str(part) / name for part in (0, 1) for name in JOINED]:
            for version in range(1, ALL + 2):
                write_summed(store / f"{version}.changelog", f"state {version}")
    told = {"rows": {}, "state": [0, *operators]}
    for record in checkpoint.with_name("fog-0@0.taken").iterdir():
        lots = json.loads(record.read_bytes())["lots"]
        record.write_text(json.dumps({"lots": lots, **told}))


@pytest.mark.parametrize(
    ("gone", "told"),
    [
        ("state", ["state"]),
        ("state/0", ["state/0"]),
        ("state/1", ["state/1"]),
        ("state/2", ["state/2"]),
        ("state/0/0", ["state/0/0"]),
        ("state/1/0", ["state/1/0"]),
        ("state/1/1", ["state/1/1"]),
        (f"state/2/1/{JOINED[1]}", [f"state/2/1/{JOINED[1]}"]),
        ("state/1/_metadata", []),
    ],
)
def test_a_state_that_vanished_is_told_by_the_folder_that_is_gone(
    tmp_path: Path, gone: str, told: list[str]
) -> None:
    checkpoint = make_checkpoint(tmp_path / "fog-0@0")
    add_joins(checkpoint, 1, 2)
    assert judged(checkpoint, ALL) == ()
    shutil.rmtree(checkpoint / gone)
    damages = judged(checkpoint, ALL)
    assert [str(damage.where.relative_to(checkpoint)) for damage in damages] == told
    for damage in damages:
        assert damage.is_fatal
        assert damage.what == "is missing or empty: the state before batch 5 is lost"


def test_a_batch_writes_down_whose_state_was_there_when_it_began(tmp_path: Path) -> None:
    checkpoint, taken = tmp_path / "fog-0@0", TakenLots(tmp_path / "fog-0@0")
    taken.record(0)
    for operator in ("0", "10", "2", "_drafts"):
        (checkpoint / "state" / operator).mkdir(parents=True)
    taken.record(1)
    records = [json.loads((tmp_path / "fog-0@0.taken" / n).read_bytes()) for n in ("0", "1")]
    assert [record["state"] for record in records] == [[], [0, 2, 10]]


def test_a_state_that_vanished_is_a_problem_of_the_run_and_refused(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run")
    shutil.rmtree(folder / "checkpoints" / "cloud@0" / "state")
    (problem,) = problems(folder)
    assert problem.where == "checkpoints/cloud@0/state"
    assert f"`thalweg doctor {folder} --rebuild --yes`" in problem.remedy
    with pytest.raises(DeploymentFailed, match=r"cloud@0/state: is missing.*`thalweg doctor "):
        look_over(spec_of(folder))


def test_who_has_no_state_or_has_finished_nothing_misses_none(tmp_path: Path) -> None:
    stateless = make_checkpoint(tmp_path / "a" / "fog-0@0")
    shutil.rmtree(stateless / "state")
    for record in stateless.with_name("fog-0@0.taken").iterdir():
        record.write_text(record.read_text().replace('"state": [0]', '"state": []'))
    assert judged(stateless, ALL) == ()
    first = make_checkpoint(tmp_path / "b" / "fog-0@0", begun=0, finished=-1)
    for _ in range(2):
        assert judged(first, -1) == ()
        shutil.rmtree(first / "state", ignore_errors=True)
    # Records of an older version say nothing, and a number that is left out does.
    old = make_checkpoint(tmp_path / "c" / "fog-0@0")
    add_joins(old, 1)
    for record in old.with_name("fog-0@0.taken").iterdir():
        record.write_text(json.dumps(json.loads(record.read_bytes())["lots"]))
    assert judged(old, ALL) == ()
    shutil.rmtree(old / "state" / "0")
    assert [damage.where for damage in judged(old, ALL)] == [old / "state" / "0"]


def test_a_partition_is_missed_unless_all_rows_are_in_one_place(tmp_path: Path) -> None:
    checkpoint = make_checkpoint(tmp_path / "fog-0@0")
    operator = checkpoint / "state" / "0"
    for kind, key in (("stateStoreSave", ()), ("globalLimit", ("key",)), ("new", ("zone",))):
        describe_state(operator, partitions=4, kind=kind, key=key)
        assert judged(checkpoint, ALL) == ()
    for kind in ("stateStoreSave", "dedupe"):
        describe_state(operator, partitions=4, kind=kind)
        lost = [damage.where.name for damage in judged(checkpoint, ALL)]
        assert lost == ["1", "2", "3"]


def test_numbers_and_names_of_a_state_that_cannot_be_cost_nothing(tmp_path: Path) -> None:
    checkpoint = make_checkpoint(tmp_path / "fog-0@0")
    for store, partitions in (("../../..", 10**15), ("a/b", 2), ("x" * 300, 1), ("late", 10**15)):
        describe_state(checkpoint / "state" / "0", (store,), partitions)
        found = judged(checkpoint, ALL)
        assert len(found) <= 10
        assert all(damage.where.is_relative_to(checkpoint / "state") for damage in found)
    (checkpoint / "state" / str(10**12)).mkdir()
    assert 0 < len(judged(checkpoint, ALL)) <= 30
    for record in tmp_path.joinpath("fog-0@0.taken").iterdir():
        record.write_text('{"lots": {"sources:rides": 4}, "state": [-1, "0", 1e9, 123456789, {}]}')
    assert 0 < len(judged(checkpoint, ALL)) <= 30


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_garbage_in_any_file_of_a_checkpoint_is_judged_and_never_raised(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    dice = random.Random(seed)  # noqa: S311
    folder = tmp_path_factory.mktemp("garbage")
    checkpoint = make_checkpoint(folder / "fog-0@0", begun=2, finished=1)
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    for file in dice.sample(files, 3):
        what = dice.choice(["bytes", "json", "folder", "link"])
        file.unlink()
        if what == "bytes":
            file.write_bytes(dice.randbytes(dice.randrange(40)))
        elif what == "json":
            file.write_text(dice.choice(["[]", "null", "{}", '{"lots": 7}', "9" * 400]))
        elif what == "folder":
            file.mkdir()
        else:
            file.symlink_to("/etc/passwd")
    for damage in judged(checkpoint, dice.randrange(-1, 4)):
        assert str(damage)
        assert all(path.is_relative_to(folder) for path in damage.aside)


# The run itself


def run_facts(**fields: Any) -> RunFacts:
    told = {"state": "running", "heartbeat_s": NOW_S - 1.0, "interval_s": 2.0, "pid": 7}
    status = {**told, **fields.pop("status", {})}
    return RunFacts(folder=Path("run"), now_s=NOW_S, status=status, **fields)


@pytest.mark.parametrize(
    ("facts", "level", "what"),
    [
        (run_facts(held=True), "good", "alive: running, last look 1 s ago"),
        (run_facts(), "warning", "it was killed; last heard of 1 s ago"),
        (run_facts(status={"state": "ended"}), "good", "stopped 1 s ago"),
        (
            run_facts(status={"state": "failed", "error": "no Spark"}),
            "problem",
            "it failed 1 s ago: no Spark",
        ),
        (
            run_facts(held=True, status={"heartbeat_s": NOW_S - 61.0}),
            "problem",
            "it is there, but was last heard of 61 s ago: it hangs",
        ),
        (
            run_facts(held=True, status={"heartbeat_s": NOW_S - 61.0, "state": "starting"}),
            "good",
            "alive: starting, last look 61 s ago",
        ),
    ],
)
def test_the_state_of_a_run_is_told_by_its_lock_and_its_heartbeat(
    facts: RunFacts, level: str, what: str
) -> None:
    first = next(iter(judge_run(facts)))
    assert (first.level, first.what) == (level, what)


def test_a_heartbeat_in_the_future_is_a_clock_that_went_back() -> None:
    (told,) = [
        f
        for f in judge_run(run_facts(held=True, status={"heartbeat_s": NOW_S + 3600.0}))
        if f.level == "warning"
    ]
    assert told.what == "it was last heard of 3600 s in the future: the clock went back"


def test_dead_silent_failed_and_left_over_sites_are_told() -> None:
    sites = {
        "fog-0": {"alive": False},
        "fog-1": {"alive": True, "silent_s": 20.0},
        "cloud": {"alive": True, "queries": [{"error": "no memory"}]},
    }
    facts = run_facts(held=True, status={"sites": sites, "restarts": 3})
    told = [str(finding) for finding in judge_run(facts)]
    for part in ("fog-0: its process", "fog-1: nothing", "query failed: no memory", "3 times"):
        assert any(part in text for text in told)
    (left,) = [
        f for f in judge_run(replace(facts, held=False, left_over={"fog-0": 99})) if "99" in f.what
    ]
    assert "kill -9 99" in left.remedy


@pytest.mark.parametrize(("home", "is_told"), [("run", True), ("another", False)])
def test_a_process_of_another_run_is_none_of_this_one(
    tmp_path: Path, home: str, is_told: bool
) -> None:
    """After a reboot its number may be that of a site which was of this run."""
    site = tmp_path / home / "sites" / FOG
    site.mkdir(parents=True)
    code = "print('there', flush=True); import sys; sys.stdin.read()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, "thalweg.spark.site.process"],
        cwd=site,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "there\n"
        sites = {FOG: {"alive": True, "pid": process.pid, "queries": []}}
        folder = make_run(tmp_path / "run", sites=sites)
        told = [f.remedy for f in examine(folder, now_s=NOW_S).findings if f.where == "site fog-0"]
        assert [f"kill -9 {process.pid}" in text for text in told] == ([True] if is_told else [])
        if is_told:
            with pytest.raises(ThalwegError, match=f"process {process.pid} of {FOG}"):
                repair(folder)
        else:
            assert repair(folder) == ()
    finally:
        process.communicate("")


@pytest.mark.parametrize(
    ("site", "step"),
    [
        (SiteState(site=FOG, epoch=3, phase="running", cut=CUT), ""),
        (
            SiteState(site=FOG, epoch=3, phase="running", cut=CUT, next_cut=("parse",)),
            "drain it, to go on with parse",
        ),
        (SiteState(site=FOG, epoch=3, phase="drained"), "hand over its open windows"),
        (SiteState(site=FOG, epoch=3, phase="exported", last_batch=9), "fence it after batch 9"),
        (SiteState(site=FOG, epoch=3, phase="fenced", next_cut=()), "start epoch 4 with nothing"),
    ],
)
def test_a_hand_over_under_way_names_its_next_step(site: SiteState, step: str) -> None:
    facts = run_facts(journal=JournalFacts(sites={FOG: site}))
    told = [f.what for f in judge_run(facts) if "hand-over" in f.what]
    assert [step in text for text in told] == ([True] if step else [])


def test_a_torn_last_line_is_harmless_and_a_broken_one_is_told_with_its_number(
    tmp_path: Path,
) -> None:
    folder = make_run(tmp_path / "run")
    journal = folder / "journal.jsonl"
    with journal.open("a") as file:
        file.write('{"step": "Pre')
    assert examine(folder, now_s=NOW_S).is_well
    with journal.open("a") as file:
        file.write("\n")
    (problem,) = problems(folder)
    assert problem.where == "journal.jsonl"
    assert "journal.jsonl:2" in problem.what
    assert "--rebuild" in problem.remedy


DRAIN = '{"step": "Drain", "site": "fog-0", "epoch": 0, "cut": [], "reached": %s}'


@pytest.mark.parametrize(
    "line",
    [
        '{"step": "Fence", "site": "fog-0", "epoch": "0", "last_batch": 1, "reached": {}}',
        DRAIN % '{"who": 1}',
        DRAIN % "7",
        "[" * 9999,
        "\udcff",
    ],
)
def test_a_journal_with_garbage_says_where_it_is(tmp_path: Path, line: str) -> None:
    folder = make_run(tmp_path / "run")
    with (folder / "journal.jsonl").open("ab") as file:
        file.write(line.encode(errors="surrogateescape") + b"\n")
    with pytest.raises(JournalBroken, match=r"journal\.jsonl:2: .*thalweg doctor"):
        Journal(folder / "journal.jsonl").state((FOG,))


def test_a_folder_of_another_version_is_not_called_damaged(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run")
    with (folder / "journal.jsonl").open("a") as journal:
        journal.write('{"step": "Merge", "site": "fog-0", "epoch": 0, "reached": {}}\n')
    (problem,) = problems(folder)
    assert "not a step that this Thalweg knows ('Merge')" in problem.what
    assert "use that one: nothing is damaged" in problem.remedy
    assert "--rebuild" not in problem.remedy
    manifest = folder / "run.json"
    manifest.write_text(manifest.read_text().replace('"thalweg_run": 2', '"thalweg_run": 3'))
    (problem,) = problems(folder)
    assert "thalweg_run: got 3, need 2, the format this Thalweg knows" in problem.what
    assert problem.remedy == "use the Thalweg that wrote it, or begin in a new folder"
    # Garbage is garbage.
    for spoilt in ("[]", '{"thalweg_run": "new"}', '{"thalweg_run": 1}'):
        manifest.write_text(spoilt)
        (problem,) = problems(folder)
        assert problem.remedy.startswith("restore it from a copy")


def test_requests_wait_for_the_next_start_or_too_long(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run")
    leave(RunFolder(folder), Request(kind=ROLLBACK))
    told = [f.what for f in examine(folder, now_s=NOW_S).findings if f.where == "control"]
    assert told == ["a request to rollback waits for the next start"]
    assert take_one(RunFolder(folder)) is not None, "by a run that was killed then"
    assert told == [f.what for f in examine(folder, now_s=NOW_S).findings if f.where == "control"]
    facts = run_facts(held=True, requests=((ROLLBACK, NOW_S - 200.0),))
    assert [f.level for f in judge_run(facts) if f.where == "control"] == ["warning"]


# The whole of a folder


def test_a_run_that_was_stopped_is_well(tmp_path: Path) -> None:
    health = examine(make_run(tmp_path / "run"), deep=True, now_s=NOW_S)
    assert levels(health) == {"good"}
    told = " ".join(map(str, health.findings))
    assert "stopped 60 s ago" in told
    assert "15 segments with 45 rows are whole (rows hashed again)" in told
    assert glance(RunFolder(tmp_path / "run"), NOW_S) is None


def hurt_manifest(folder: Path) -> None:
    tear(next((folder / "log" / "sinks").rglob("manifest.json")))


def hurt_rows(folder: Path) -> None:
    tear(next((folder / "log" / "edges").rglob("rows.arrow")))


def lose_rows(folder: Path) -> None:
    next((folder / "log" / "sources" / "rides").rglob("rows.arrow")).unlink()


def lose_batch(folder: Path) -> None:
    shutil.rmtree(folder / "log" / "sources" / "rides" / FOG / "0" / "0" / "2")


def fence_what_runs(folder: Path) -> None:
    Log(folder / "log").fence(FOG, 0, 4)


def fence_what_was_read(folder: Path) -> None:
    Log(folder / "log").fence(FOG, 0, 2)


def hurt_fence(folder: Path) -> None:
    Log(folder / "log").fence(FOG, 7, 4)
    tear(folder / "log" / "edges" / ".gates" / FOG / "7" / "fence" / "fence.json")


def lead_outside(folder: Path) -> None:
    manifest = next((folder / "log" / "sinks").rglob("manifest.json"))
    data = json.loads(manifest.read_bytes())
    data["parts"][0]["file"] = "../../../../../../../../etc/passwd"
    manifest.write_text(json.dumps(data))


@pytest.mark.parametrize(
    ("hurt", "says", "remedy"),
    [
        (hurt_manifest, "cannot be read", "--rebuild"),
        (hurt_rows, "its manifest says", "--rebuild"),
        (lose_rows, "rows.arrow is missing", "from a copy"),
        (lose_batch, "batch 2 is of sources/rides of fog-0 missing", "from a copy"),
        (fence_what_runs, "the journal says that the epoch runs", "--rebuild"),
        (fence_what_was_read, "but batch 4 was read", "--rebuild"),
        (hurt_fence, "fence of epoch 7 of fog-0 cannot be read", "--rebuild"),
        (lead_outside, "no file beside it", "--rebuild"),
    ],
)
def test_a_log_that_is_not_whole_is_a_problem_with_a_remedy(
    tmp_path: Path, hurt: Callable[[Path], None], says: str, remedy: str
) -> None:
    folder = make_run(tmp_path / "run")
    hurt(folder)
    found = [problem for problem in problems(folder) if says in problem.what]
    assert found, problems(folder)
    assert remedy in found[0].remedy


def test_a_run_that_adapts_while_it_is_looked_at_is_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_run(tmp_path / "run", state="running", heartbeat_s=NOW_S)
    real = examine.__globals__["read_log"]

    def adapt_and_read(root: Path, *, deep: bool) -> Any:
        with Journal(folder / "journal.jsonl") as journal:
            journal.write(Drain(site=FOG, epoch=0, cut=("parse",)), offsets={}, last_batch=4)
            Log(root).fence(FOG, 0, 4)
            journal.write(Fence(site=FOG, epoch=0, last_batch=4))
            journal.write(StartEpoch(site=FOG, epoch=1, cut=("parse",), start={}))
        return real(root, deep=deep)

    monkeypatch.setitem(examine.__globals__, "read_log", adapt_and_read)
    with RunFolder(folder).hold():
        assert problems(folder) == []


def test_rows_that_were_changed_are_found_by_a_deep_look_alone(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run")
    other = tmp_path / "other"
    publish(other, "sinks/total", "cloud", [9])
    rows = folder / "log" / "sinks" / "total" / "cloud" / "0" / "0" / "4" / "rows.arrow"
    changed = next(other.rglob("rows.arrow"))
    assert changed.stat().st_size == rows.stat().st_size
    shutil.copyfile(changed, rows)
    assert problems(folder) == []
    (problem,) = problems(folder, deep=True)
    assert "other rows than were published" in problem.what


def test_what_cannot_be_looked_at_has_a_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise PermissionError(13, "Permission denied")

    folder = make_run(tmp_path / "run")
    for name in ("examine_calmly", "read_backlog", "read_log", "read_disk"):
        monkeypatch.setitem(examine.__globals__, name, fail)
    found = problems(folder)
    assert {problem.where for problem in found} == {"cloud@0", f"{FOG}@0", "lag", "log", "disk"}
    for problem in found:
        assert problem.what.startswith("cannot be looked at: PermissionError")
        assert f"may read all of {folder}" in problem.remedy
        assert f"`thalweg doctor {folder} --rebuild --yes`" in problem.remedy


def test_what_waits_is_counted(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run")
    publish(folder / "log", "sources/rides", FOG, [5, 6])
    publish(folder / "log", "sinks/dead-letters", "cloud", [5])
    told = [f.what for f in examine(folder, now_s=NOW_S).findings if f.level == "note"]
    assert told == [
        "6 rows have come in and were not taken yet; the next start takes them",
        "3 rows were set aside as dead letters",
    ]


def test_links_are_told_with_how_far_they_are_behind() -> None:
    facts = Backlog(
        links=(LinkFacts(site=FOG, unsent=4, behind=9),), link="kafka://a:1/b", link_fault="refused"
    )
    told = {f.where: f for f in judge_backlog(facts, Path("run"), held=True)}
    assert told["link"].level == "problem"
    assert "nobody answers at kafka://a:1/b: refused" in told["link"].what
    assert told["link of fog-0"].what == "4 rows are not sent yet, 9 not in the cloud's log"


@pytest.mark.parametrize(
    ("free", "grown", "level"),
    [(10**8, 0, "problem"), (10**9, 10**8, "warning"), (10**12, 1, "good")],
)
def test_a_disk_is_judged_by_what_is_free_and_how_fast_it_fills(
    free: int, grown: int, level: str
) -> None:
    facts = DiskFacts(free_bytes=free, total_bytes=10**12, grown_bytes=grown, span_s=3600.0)
    (found,) = judge_disk(facts)
    assert found.level == level
    if level == "warning":
        assert "fills the disk in 10 hours" in found.what


def test_a_machine_needs_versions_that_fit() -> None:
    fits = {"pyspark": "4.2.0", "pandas": "2.3.3", "pyarrow": "20.0", "confluent-kafka": None}
    good = MachineFacts(
        python=(3, 12, 1),
        packages=fits,
        java="17.0.1",
        free_memory_bytes=8 * 10**9,
        free_disk_bytes=10**11,
    )
    assert levels(Health.of(judge_machine(good))) == {"good", "note"}
    bad = replace(
        good,
        python=(3, 10, 0),
        java=None,
        java_fault="no Java. Hint: install it",
        packages={**fits, "pandas": "3.0.1", "pyspark": None, "pyarrow": "16.1"},
        free_memory_bytes=10**9,
        free_disk_bytes=10**9,
    )
    found = {f.where: (f.level, f.what) for f in judge_machine(bad)}
    assert found["pandas"] == ("problem", "3.0.1 is too new")
    assert found["pyspark"] == ("problem", "is not installed")
    assert found["pyarrow"] == ("problem", "16.1 is too old")
    assert found["python"] == ("problem", "3.10.0 is too old")
    assert found["java"] == ("problem", "no Java.")
    assert found["memory"][0] == found["disk"][0] == "warning"


def test_a_folder_without_a_run_is_bad_input(tmp_path: Path) -> None:
    for look in (examine, repair, rebuild):
        with pytest.raises(InvalidInput, match="the folder of a run"):
            look(tmp_path)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_garbage_anywhere_in_a_folder_gives_findings(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    dice = random.Random(seed)  # noqa: S311
    folder = make_run(tmp_path_factory.mktemp("garbage") / "run")
    RunFolder(folder).write_history([HistoryEntry(cuts={FOG: CUT}, reason="why", at_s=1.0)])
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    named = [folder / n for n in ("run.json", "status.json", "history.json", "journal.jsonl")]
    texts = ["[]", "null", '{"sites": 7, "heartbeat_s": "x"}', "9" * 400, '{"sites": {"a": []}}']
    texts += ['{"heartbeat_s": 1e999}', '{"thalweg_run": 1, "fogs": ["../.."], "cloud": 3}']
    for file in {*dice.sample(files, 3), dice.choice(named)}:
        file.unlink()
        if dice.random() < 0.5:
            file.write_bytes(dice.randbytes(dice.randrange(60)))
        else:
            file.write_text(dice.choice(texts))
    try:
        health = examine(folder, deep=True, now_s=NOW_S)
    except InvalidInput:
        assert not (folder / "run.json").is_file()
        return
    assert health.findings
    glance(RunFolder(folder), NOW_S)


# Refusal and repair


def spec_of(folder: Path, **fields: Any) -> DeploymentSpec:
    return DeploymentSpec(pipeline="a:b", folder=folder, fogs=(FOG,), **fields)


def test_what_is_whole_is_left_alone(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run")
    before = sorted(folder.rglob("*"))
    assert look_over(spec_of(folder)) == ()
    assert repair(folder) == ()
    assert sorted(f for f in folder.rglob("*") if f.name != "run.lock") == before
    assert look_over(spec_of(tmp_path / "new")) == ()


def test_harmless_damage_is_mended_before_a_start_and_kept_aside(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run")
    commit = folder / "checkpoints" / "cloud@0" / "commits" / "4"
    tear(commit)
    (told,) = look_over(spec_of(folder))
    assert told == (
        "checkpoints/cloud@0/commits/4 is torn: its checksum does not fit: set aside in "
        "set-aside/1; batch 4 is done again, and recognised"
    )
    assert not commit.exists()
    assert not commit.with_name(".4.crc").exists()
    aside = folder / "set-aside" / "1" / "checkpoints" / "cloud@0" / "commits"
    assert sorted(file.name for file in aside.iterdir()) == [".4.crc", "4"]
    assert look_over(spec_of(folder)) == ()


def test_damage_beyond_repair_is_refused_and_nothing_is_touched(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run")
    empty(folder / "checkpoints" / "cloud@0" / "offsets" / "4")
    tear(folder / "checkpoints" / f"{FOG}@0" / "commits" / "4")
    before = {f: f.read_bytes() for f in folder.rglob("*") if f.is_file()}
    with pytest.raises(DeploymentFailed, match=r"offsets/4: is empty.*`thalweg doctor .*/run`"):
        look_over(spec_of(folder))
    assert {f: f.read_bytes() for f in folder.rglob("*") if f.is_file()} == before


def test_a_run_without_its_checkpoints_never_begins_from_zero(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run")
    shutil.rmtree(folder / "checkpoints")
    with pytest.raises(DeploymentFailed, match="begin again from nothing"):
        look_over(spec_of(folder))
    assert {p.where for p in problems(folder)} == {
        "checkpoints/cloud@0",
        f"checkpoints/{FOG}@0",
    }


@pytest.mark.parametrize("left", ["nothing", "an empty file"])
def test_a_run_without_its_journal_never_begins_from_zero(tmp_path: Path, left: str) -> None:
    folder = make_run(tmp_path / "run")
    (folder / "journal.jsonl").unlink()
    if left == "an empty file":
        (folder / "journal.jsonl").touch()
    with pytest.raises(DeploymentFailed, match=r"journal.jsonl is gone or empty.*thalweg doctor"):
        look_over(spec_of(folder))
    (problem,) = problems(folder)
    assert problem.where == "journal.jsonl"
    assert "--rebuild" in problem.remedy
    rebuild(folder)
    assert look_over(spec_of(folder)) == ()
    # Its epochs go on counting all the same.
    state = Journal(folder / "journal.jsonl").state((FOG,))
    assert state.sites[FOG].epoch >= 0


def test_a_query_that_runs_is_looked_at_twice_and_not_mended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files change while they are read: what is wrong only once is not wrong."""
    folder = make_run(tmp_path / "run")
    query = spec_of(folder).query(FOG, 0)
    tear(query.checkpoint / "commits" / "4")
    with hold_checkpoint(query.checkpoint):
        assert look_over_queries(folder, [query]) == ()
        assert (query.checkpoint / "commits" / "4").exists()
        offsets = query.checkpoint / "offsets" / "3"
        whole = offsets.read_bytes()
        empty(offsets)
        monkeypatch.setattr(refusal.time, "sleep", lambda _s: offsets.write_bytes(whole))
        assert look_over_queries(folder, [query]) == ()
    assert len(look_over_queries(folder, [query])) == 1


def test_a_log_whose_disk_is_away_is_waited_for_and_nothing_is_set_aside(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run")
    empty(folder / "checkpoints" / "cloud@0" / "offsets" / "4")
    (folder / "log").rename(tmp_path / "disk")
    for change in (lambda: look_over(spec_of(folder)), lambda: rebuild(folder)):
        with pytest.raises(LogError, match="its disk is away"):
            change()
    assert [p.where for p in problems(folder)] == ["log"]
    assert not (folder / "set-aside").exists()


class PlayedSite:
    def __init__(self, *queries: QuerySpec, alive: bool) -> None:
        self.queries, self.alive = queries, alive
        self.started: list[str] = []

    def start(self, query: QuerySpec) -> None:
        self.started.append(query.name)


class PlayedSites(dict[str, PlayedSite]):
    def restart(self, site: str) -> None:
        self[site].started += [query.name for query in self[site].queries]


@pytest.mark.parametrize("alive", [True, False], ids=["a failed query", "a dead site"])
def test_a_live_run_looks_before_it_starts_something_again(tmp_path: Path, alive: bool) -> None:
    spec = spec_of(make_run(tmp_path / "run"))
    query = spec.query(FOG, 0)
    sites = PlayedSites({FOG: PlayedSite(query, alive=alive)})
    state = SimpleNamespace(cuts={})
    coordinator = SimpleNamespace(spec=spec, state=state, forget_pace=lambda: None)
    made: Any = SparkRuntime
    runtime = made(sites, coordinator)
    assert runtime.restart(FOG, query.name) == ()
    tear(query.checkpoint / "commits" / "4")
    (told,) = runtime.restart(FOG, query.name)
    assert "batch 4 is done again" in told
    assert sites[FOG].started == [query.name] * 2
    empty(query.checkpoint / "offsets" / "3")
    with pytest.raises(DeploymentFailed, match=r"offsets/3: is empty.*thalweg doctor"):
        runtime.restart(FOG, query.name)
    assert sites[FOG].started == [query.name] * 2


def test_an_epoch_that_was_only_got_ready_is_thrown_away_if_damaged(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run")
    with Journal(folder / "journal.jsonl") as journal:
        journal.write(Prepare(site=FOG, epoch=1, cut=("parse",)), gates={})
    ready = make_checkpoint(folder / "checkpoints" / f"{FOG}@1", begun=0, finished=0)
    assert look_over(spec_of(folder)) == ()
    empty(ready / "offsets" / "0")
    (told,) = look_over(spec_of(folder))
    assert "nothing of this epoch is published" in told
    assert not ready.exists()
    assert (folder / "set-aside" / "1" / "checkpoints" / f"{FOG}@1.intake").is_dir()


def test_safe_repairs_are_done_and_said_and_a_second_call_finds_none(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", state="failed", error="torn")
    tear(folder / "checkpoints" / f"{FOG}@0" / "commits" / "4")
    (folder / "checkpoints" / "cloud@0" / "metadata").unlink()
    (folder / "history.json").write_text("{")
    with (folder / "journal.jsonl").open("a") as file:
        file.write('{"step": ')
    told = repair(folder)
    assert len(told) == 4
    assert (folder / "set-aside" / "1" / "journal.jsonl").read_text() == '{"step": '
    assert [place.name for place in (folder / "set-aside").iterdir()] == ["1"]
    assert not (folder / "history.json").exists()
    assert examine(folder, now_s=NOW_S).is_well
    assert repair(folder) == ()
    number = json.loads((folder / "checkpoints" / "cloud@0" / "metadata").read_bytes())["id"]
    assert len(number) == 36


def lose_offsets(folder: Path) -> None:
    empty(folder / "checkpoints" / "cloud@0" / "offsets" / "4")


def break_journal(folder: Path) -> None:
    (folder / "journal.jsonl").write_text("nothing\n")


@pytest.mark.parametrize("hurt", [lose_offsets, break_journal])
def test_a_repair_that_leaves_a_problem_does_not_say_that_the_run_goes_on(
    tmp_path: Path, hurt: Callable[[Path], None]
) -> None:
    folder = make_run(tmp_path / "run", state="failed", error="torn")
    tear(folder / "checkpoints" / f"{FOG}@0" / "commits" / "4")
    (folder / "history.json").write_text("{")
    hurt(folder)
    assert repair(folder)
    told = RunFolder(folder).read_status()
    assert (told["state"], told["error"]) == ("failed", "torn")


def test_a_held_folder_is_neither_repaired_nor_rebuilt(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run")
    with RunFolder(folder).hold():
        for change in (repair, rebuild):
            with pytest.raises(InvalidInput, match="no other run holds"):
                change(folder)
    import fcntl

    with (folder / "checkpoints" / f"{FOG}@0.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for change in (repair, rebuild):
            with pytest.raises(ThalwegError, match=f"something still runs: {FOG}@0"):
                change(folder)
    assert (folder / "checkpoints" / "cloud@0").is_dir()


@pytest.mark.parametrize("journal", ["whole", "broken"])
def test_a_rebuild_keeps_what_was_born_and_goes_on_with_new_epochs(
    tmp_path: Path, journal: str
) -> None:
    folder = make_run(tmp_path / "run")
    make_checkpoint(folder / "checkpoints" / f"{FOG}@2")
    RunFolder(folder).write_history([HistoryEntry(cuts={FOG: CUT}, reason="why", at_s=1.0)])
    if journal == "broken":
        (folder / "journal.jsonl").write_text("nothing\n")
    born = {f: f.read_bytes() for f in (folder / "log" / "sources").rglob("*") if f.is_file()}
    rebuild(folder)
    for name in ("checkpoints", "history.json", "log/sinks", "log/edges/clean+total"):
        assert not (folder / name).exists(), name
        assert (folder / "set-aside" / "1" / name).exists(), name
    assert {f: f.read_bytes() for f in born} == born
    state = Journal(folder / "journal.jsonl").state((FOG,)).sites[FOG]
    assert (state.epoch, state.phase, state.next_cut) == (2, "fenced", CUT)
    assert (state.offsets, state.newest_ms) == (None, None)
    log = Log(folder / "log")
    assert [log.find_fence(FOG, epoch).last_batch for epoch in range(3)] == [-1, -1, -1]  # type: ignore[union-attr]
    assert log.find_fence(FOG, 3) is None
    assert examine(folder, now_s=NOW_S).is_well
    assert look_over(spec_of(folder)) == ()


def test_windows_that_were_handed_over_and_are_lost_are_never_left_out(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run")
    cut = ("parse", "clean", "total")
    with Journal(folder / "journal.jsonl") as journal:
        journal.write(Drain(site=FOG, epoch=0, cut=cut), offsets={}, last_batch=4)
        journal.write(Fence(site=FOG, epoch=0, last_batch=4))
        edge = "clean+total"
        journal.write(StartEpoch(site=FOG, epoch=1, cut=cut, start={}, carried=(edge,)))
    Log(folder / "log").fence(FOG, 0, 4)
    make_checkpoint(folder / "checkpoints" / f"{FOG}@1", begun=1, finished=1)
    rows = folder / "carried" / f"{FOG}@0" / edge / "rows" / "0.parquet"
    with pytest.raises(DeploymentFailed, match="open windows that were handed over are lost"):
        look_over(spec_of(folder))
    rows.parent.mkdir(parents=True)
    source = next((folder / "checkpoints").rglob("rows/0.parquet"))
    shutil.copyfile(source, rows)
    assert look_over(spec_of(folder)) == ()
    # Once they are taken and worked on, nobody needs them.
    entry = json.dumps({"path": f"file://{rows}", "batchId": 0})
    write_summed(folder / "checkpoints" / f"{FOG}@1" / "sources" / "1" / "0", f"v1\n{entry}")
    tear(rows)
    assert look_over(spec_of(folder)) == ()


def test_a_rebuild_that_was_cut_off_is_refused_until_it_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_run(tmp_path / "run")
    make_checkpoint(folder / "checkpoints" / f"{FOG}@2")
    from thalweg.spark.deployment.health import aside

    moves: list[Path] = []

    def take(self: Any, path: Path, real: Any = aside.SetAsideFolder.take) -> bool:
        moves.append(path)
        if len(moves) > 1:
            raise OSError(28, "no space left on device")
        moved: bool = real(self, path)
        return moved

    with monkeypatch.context() as patched, pytest.raises(ThalwegError, match="No space left"):
        patched.setattr(aside.SetAsideFolder, "take", take)
        rebuild(folder)
    with pytest.raises(DeploymentFailed, match="was begun and not ended"):
        look_over(spec_of(folder))
    with pytest.raises(ThalwegError, match="was begun and not ended"):
        repair(folder)
    assert any("rebuild.json" in problem.where for problem in problems(folder))
    rebuild(folder)
    # What only the checkpoints knew is not forgotten, though they were moved the first time.
    assert Journal(folder / "journal.jsonl").state((FOG,)).sites[FOG].epoch == 2
    assert look_over(spec_of(folder)) == ()


def test_with_a_link_a_rebuild_keeps_what_was_born_at_the_fogs(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run")
    RunFolder(folder).write_manifest(replace(MANIFEST, ships=True))
    (folder / "logs").mkdir()
    own = folder / "logs" / FOG
    shutil.copytree(folder / "log", own)
    shutil.rmtree(folder / "log" / "sources")
    shutil.rmtree(own / "sinks")
    for root, name in ((own, f"{FOG}-0.json"), (folder / "log", ".reader")):
        (root / ".links").mkdir()
        (root / ".links" / name).write_text('{"edges/clean+total": {"0": 3}}')
    told = [f.what for f in examine(folder, now_s=NOW_S).findings if f.where.startswith("link")]
    assert told == [
        "3 rows are not sent yet, 0 not in the cloud's log",
        "all that was published has arrived",
    ]
    rebuild(folder)
    assert Log(own).read("sources/rides").num_rows == 15
    assert not (own / ".links" / f"{FOG}-0.json").exists()
    # What the reader has not read yet is of the life before, and fenced off.
    assert (folder / "log" / ".links" / ".reader").exists()
    for root in (own, folder / "log"):
        assert Log(root).find_fence(FOG, 0).last_batch == -1  # type: ignore[union-attr]


def test_a_hand_over_under_way_needs_no_checkpoint_of_what_was_drained(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run")
    with Journal(folder / "journal.jsonl") as journal:
        journal.write(Drain(site=FOG, epoch=0, cut=("parse",)), offsets={}, last_batch=4)
        journal.write(Fence(site=FOG, epoch=0, last_batch=4))
    Log(folder / "log").fence(FOG, 0, 4)
    shutil.rmtree(folder / "checkpoints" / f"{FOG}@0")
    assert look_over(spec_of(folder)) == ()
    assert examine(folder, now_s=NOW_S).is_well


def test_the_step_after_a_rebuild_starts_from_the_first_row(tmp_path: Path) -> None:
    from thalweg.spark.deployment.hand_over import next_steps

    folder = make_run(tmp_path / "run")
    rebuild(folder)
    state = Journal(folder / "journal.jsonl").state((FOG,))
    assert next_steps(state, {}) == (StartEpoch(site=FOG, epoch=1, cut=CUT, start=None),)
