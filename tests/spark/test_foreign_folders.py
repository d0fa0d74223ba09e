"""Folders of runs that a stranger has made: doctor stays in them, and never waits or grows."""

from __future__ import annotations

import os
import re
import shutil
import socket
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fuzz.test_loaders import not_for_ever
from spark.damaged_runs import CUT, FOG, MANIFEST, NOW_S, make_checkpoint, make_run
from thalweg.cli.entry import run
from thalweg.errors import InvalidInput, ThalwegError
from thalweg.spark.deployment.folder import RunFolder
from thalweg.spark.deployment.health import examine, rebuild, repair
from thalweg.spark.deployment.health.aside import SetAsideFolder
from thalweg.spark.deployment.health.checkpoint_facts import read_checkpoint
from thalweg.spark.deployment.health.checksums import checksum_of
from thalweg.spark.deployment.health.damage import find_damage
from thalweg.spark.deployment.journal import Journal, JournalBroken
from thalweg.spark.log import Log

pytest.importorskip("pyspark")

CHANGES = (repair, rebuild)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_run(tmp_path / "run")


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, by its path."""
    files = [file for file in sorted(folder.rglob("*")) if file.is_file()]
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


def put_outside(path: Path, outside: Path) -> None:
    """Leave a link where something is, and the thing elsewhere."""
    outside.mkdir()
    shutil.move(path, outside / path.name)
    path.symlink_to(outside / path.name)


# Nothing is written outside


@pytest.mark.parametrize(
    "name",
    [
        "journal.jsonl",
        "checkpoints",
        "checkpoints/cloud@0",
        "checkpoints/cloud@0/commits",
        "log",
    ],
)
def test_what_a_link_leads_to_is_neither_repaired_nor_rebuilt(
    folder: Path, tmp_path: Path, name: str
) -> None:
    with (folder / "journal.jsonl").open("a") as journal:
        journal.write('{"step": ')
    (folder / "checkpoints" / "cloud@0" / "commits" / "4").write_bytes(b"v1")
    put_outside(folder / name, tmp_path / "outside")
    before = contents(tmp_path / "outside")
    for change in CHANGES:
        with pytest.raises(ThalwegError, match=rf"{name} is a link.*Hint: put what it leads to"):
            change(folder)
    assert contents(tmp_path / "outside") == before
    assert not (folder / "set-aside").exists()


def test_a_lock_that_is_a_link_is_refused(folder: Path, tmp_path: Path) -> None:
    (folder / "run.lock").unlink(missing_ok=True)
    (folder / "run.lock").symlink_to(tmp_path / "outside")
    for change in CHANGES:
        with pytest.raises(InvalidInput, match=r"run\.lock: got .*need a file of its own"):
            change(folder)
    assert not (tmp_path / "outside").exists()


def test_the_name_of_a_draft_cannot_be_foreseen(folder: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("mine")
    for name in (".rebuild.json", ".journal.jsonl"):
        (folder / name).symlink_to(outside)
    rebuild(folder)
    assert outside.read_text() == "mine"


def test_a_journal_is_not_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("no line of a journal")
    (tmp_path / "journal.jsonl").symlink_to(tmp_path / "outside")
    with (
        pytest.raises(JournalBroken, match=r"is a link.*Hint: restore"),
        Journal(tmp_path / "journal.jsonl"),
    ):
        pass
    assert (tmp_path / "outside").read_text() == "no line of a journal"


# A rebuild that was cut off


def cut_off_rebuild(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything was moved, and nothing is fenced."""

    def fail(*_: Any) -> Any:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Log, "fence", fail)
        with pytest.raises(ThalwegError, match=r"cannot rebuild .*: No space left .*Hint: see "):
            rebuild(folder)
    assert not (folder / "checkpoints").exists()


@pytest.mark.parametrize(
    "marker",
    [
        "",
        '{"epochs": {"fog-0": Infinity}, "cuts": {}}',
        '{"epochs": {"fog-0": 1.5}, "cuts": {}}',
        '{"epochs": 7}',
    ],
)
def test_a_rebuild_whose_marker_is_lost_knows_its_epochs_by_what_was_set_aside(
    folder: Path, monkeypatch: pytest.MonkeyPatch, marker: str
) -> None:
    make_checkpoint(folder / "checkpoints" / f"{FOG}@2")
    cut_off_rebuild(folder, monkeypatch)
    (folder / "rebuild.json").write_text(marker)
    rebuild(folder)
    fences = [Log(folder / "log").find_fence(FOG, epoch) for epoch in range(3)]
    assert [fence and fence.last_batch for fence in fences] == [-1, -1, -1]
    state = Journal(folder / "journal.jsonl").state((FOG,)).sites[FOG]
    assert (state.epoch, state.phase, state.next_cut) == (2, "fenced", CUT)
    assert not (folder / "rebuild.json").exists()


def test_a_rebuild_that_cannot_know_its_epochs_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_off_rebuild(folder, monkeypatch)
    (folder / "rebuild.json").write_text("")
    (folder / "set-aside").rename(folder.with_name("elsewhere"))
    with pytest.raises(ThalwegError, match=r"says which epochs there were\. Hint: restore it"):
        rebuild(folder)
    assert (folder / "rebuild.json").exists()


def test_a_rebuild_is_marked_on_the_disk_before_anything_is_moved(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def noting(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            seen.append(name)
            return real(*arguments)

        return call

    monkeypatch.setattr(os, "fsync", noting("sync", os.fsync))
    monkeypatch.setattr(SetAsideFolder, "take", noting("move", SetAsideFolder.take))
    rebuild(folder)
    # The file, and its name.
    assert seen[:3] == ["sync", "sync", "move"]


# Numbers that cannot be

HUGE = 10**15


@pytest.mark.parametrize(
    "name", [f"checkpoints/{FOG}@{HUGE}", f"log/edges/.gates/{FOG}/{HUGE}", "set-aside/1/{name}"]
)
def test_an_epoch_that_cannot_be_is_refused_before_anything_is_moved(
    folder: Path, name: str
) -> None:
    name = name.format(name=f"checkpoints/{FOG}@{HUGE}")
    (folder / name).mkdir(parents=True)
    before = contents(folder)
    with pytest.raises(ThalwegError, match=rf"{name} tells of epoch {HUGE}.*Hint: "):
        rebuild(folder)
    assert {**contents(folder), "run.lock": b""} == {**before, "run.lock": b""}


def test_an_epoch_of_a_journal_that_cannot_be_is_refused(folder: Path) -> None:
    journal = folder / "journal.jsonl"
    journal.write_text(journal.read_text().replace('"epoch": 0', f'"epoch": {HUGE}'))
    with pytest.raises(ThalwegError, match=r"journal\.jsonl tells of epoch"):
        rebuild(folder)


def test_a_batch_of_a_huge_number_costs_nothing(folder: Path) -> None:
    born = folder / "log" / "sources" / "rides" / FOG / "0"
    far = born / str(HUGE // 1000) / str(HUGE)
    far.parent.mkdir()
    shutil.copytree(born / "0" / "4", far)
    (told,) = [f.what for f in examine(folder, now_s=NOW_S).findings if "missing" in f.what]
    assert told.startswith(f"batches 5 to {HUGE - 1} are partly of sources/rides")


def test_a_lot_or_a_list_of_a_huge_number_costs_nothing(tmp_path: Path) -> None:
    checkpoint = make_checkpoint(tmp_path / "fog-0@0")
    lots = tmp_path / "fog-0@0.intake" / "sources:rides" / "lots"
    shutil.copyfile(lots / "4.json", lots / f"{HUGE}.json")
    lists = checkpoint / "sources" / "0"
    shutil.copyfile(lists / "4", lists / str(HUGE))
    damages = find_damage(read_checkpoint(checkpoint, 4))
    assert [damage.where.name for damage in damages if damage.where.parent == lists] == [
        str(number) for number in range(5, 15)
    ]
    assert 10 < len(damages) <= 30


# What is no file, or far too much of one

_CHECKPOINT = "checkpoints/cloud@0"
_SEGMENT = f"log/sources/rides/{FOG}/0/0/4"
SUMMED = [
    *(f"{_CHECKPOINT}/{name}" for name in ("metadata", "offsets/4", "commits/4", "sources/0/4")),
    f"{_CHECKPOINT}/state/0/0/5.changelog",
    *(f"{_CHECKPOINT}/state/0/{name}" for name in ("_metadata/metadata", "0/_metadata/schema")),
]
FILES = [
    *SUMMED,
    *("run.json", "status.json", "journal.jsonl", "log/.log"),
    *(f"{_SEGMENT}/{name}" for name in ("manifest.json", "rows.arrow")),
    *(f"{_CHECKPOINT}.{name}" for name in ("taken/4", "shape")),
    f"{_CHECKPOINT}.intake/edges:clean+total/lots/4.json",
    f"{_CHECKPOINT}.intake/edges:clean+total/rows/4.parquet",
]
SUMS = [str(checksum_of(Path(name))) for name in SUMMED]
SOMETIMES = [
    *("run.lock", "history.json", "rebuild.json", "control/page", f"{_CHECKPOINT}.lock"),
    f"log/edges/.gates/{FOG}/0/fence/fence.json",
    "log/.links/fog-0-0.json",
]


def kind_of(name: str) -> str:
    """A file by what it is, whichever site, stream and number it is of."""
    name = re.sub(r"^checkpoints/[^/]*@\d+", "checkpoints/X", name)
    name = re.sub(r"^log/[a-z].*/", "log/X/", name)
    name = re.sub(r"\.intake/[^/]*", ".intake/X", name)
    return re.sub(r"\d+", "N", name)


def test_every_file_of_a_run_is_tried(folder: Path) -> None:
    assert set(map(kind_of, contents(folder))) == set(map(kind_of, [*FILES, *SUMS]))


@pytest.mark.parametrize("name", [*FILES, *SUMS, *SOMETIMES])
def test_a_pipe_in_the_place_of_a_file_makes_nobody_wait(
    folder: Path, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / name).unlink(missing_ok=True)
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(folder / name)
    with not_for_ever():
        for words in (["status"], ["doctor"], ["doctor", "--deep"], ["doctor", "--repair"]):
            assert run([*words, str(folder)]) in (0, 1, 2)
        assert run(["doctor", "--rebuild", "--yes", str(folder)]) in (0, 1, 2)
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize("name", [*FILES, *SOMETIMES])
def test_a_huge_file_costs_little_memory(folder: Path, name: str) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    with (folder / name).open("ab") as file:
        file.truncate(3 * 2**30)
    checksum_of(folder / name).unlink(missing_ok=True)
    tracemalloc.start()
    try:
        examine(folder, now_s=NOW_S, deep=True)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 2**27


# Addresses


def test_the_servers_of_a_link_are_asked_while_the_run_is_alive_and_only_a_few(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    servers = ",".join(f"host-{number}:9092" for number in range(20))
    folder = make_run(
        tmp_path / "run", link=f"kafka://{servers}/topic", state="running", heartbeat_s=NOW_S
    )
    RunFolder(folder).write_manifest(replace(MANIFEST, ships=True))
    shutil.copytree(folder / "log", folder / "logs" / FOG)
    asked: list[tuple[str, int]] = []

    def refuse(address: tuple[str, int], **_: Any) -> Any:
        asked.append(address)
        raise ConnectionRefusedError("refused")

    monkeypatch.setattr(socket, "create_connection", refuse)
    findings = examine(folder, now_s=NOW_S).findings
    assert asked == []
    assert not any("nobody answers" in finding.what for finding in findings)
    with RunFolder(folder).hold():
        findings = examine(folder, now_s=NOW_S).findings
    assert asked == [(f"host-{number}", 9092) for number in range(5)]
    assert any("nobody answers" in finding.what for finding in findings)


# What the system refuses


@pytest.mark.parametrize("option", ["--repair", "--rebuild"])
def test_what_cannot_be_written_is_told_with_its_path(
    folder: Path,
    option: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    (folder / "checkpoints" / "cloud@0" / "commits" / "4").write_bytes(b"v1")

    def fail(self: SetAsideFolder, path: Path) -> bool:
        raise OSError(28, "No space left on device", str(path))

    with monkeypatch.context() as patched:
        patched.setattr(SetAsideFolder, "take", fail)
        assert run(["doctor", str(folder), option, "--yes"]) == 2
    told = capfd.readouterr().err
    assert re.search(r"error: cannot \w+ the run: .*checkpoints.*: No space left.*Hint: ", told)
    shutil.rmtree(folder / "checkpoints")
    (folder / "checkpoints").touch()
    assert run(["doctor", str(folder), option, "--yes"]) == 2
    assert "checkpoints: Not a directory. Hint: " in capfd.readouterr().err


@pytest.mark.parametrize("verb", ["doctor", "status", "stop"])
def test_a_folder_that_cannot_be_looked_into_is_bad_input(
    verb: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run([verb, "x" * 5000]) == 2
    assert "File name too long" in capfd.readouterr().err
