"""Every verb with damaged files and strange words: done, or refused in words, and no more.

No Spark is started here: lines of verbs that would start one are such that they are refused before.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import typer

from fuzz.damage import HTML, NAMES, damage_file, files_below, pick
from fuzz.good_files import (
    write_documents,
    write_matrices,
    write_networks,
    write_results,
    write_run,
    write_tables,
)
from fuzz.test_loaders import not_for_ever
from thalweg.cli.entry import make_app, run

# 0: done, 1: done and something is lacking, 2: refused, 3: planned, and not feasible.
CODES = (0, 1, 2, 3)
CASES, MANY_CASES = 8, 160
_WORDS = (*NAMES, "1e308", "-1", "0", "9" * 300, "NaN", "1e400 s", "--", "-h", "--none", "5 ms")
_APP, _NET, _PLAN = "app.json", "network-0.json", "plan.json"
_TRACKS, _ROUTES = "traced/tracks.parquet", "traced/routes.parquet"
_GROUND = f"--tracks {_TRACKS} --routes {_ROUTES} --fill-gaps"

# Lines that are done as they stand, or (behind a "!") refused as they stand: those of verbs that
# start Spark or a server, with a file that is damaged for sure or a word that means nothing.
LINES: dict[str, list[str]] = {
    "demo": ["demo --plan-only", "!demo --port 99999", "!demo --for nonsense --no-page"],
    "init": ["init new", "!init app.json", "init new --force"],
    "validate": [f"validate {_APP} {_NET} {_PLAN} days.csv days.parquet city", "validate app.yaml"],
    "plan": [
        f"plan {_APP} {_NET} -s cloud-only",
        f"plan {_APP} city -s cloud-only -o out.json --format json",
        f"plan {_APP} {_NET} -s cloud-only --current {_PLAN}",
    ],
    "schedule": [f"!schedule {_APP} {_NET} --workload days.csv --strategy nonsense"],
    "verify": ["!verify taxi-fares run", "!verify taxi-fare run --format json"],
    "doctor": [
        "doctor run",
        "doctor run --deep --format json",
        "doctor run --repair",
        "doctor run --rebuild --yes",
    ],
    "explain": [f"explain {_PLAN}", f"explain {_PLAN} parse", "explain run"],
    "diff": [f"diff {_PLAN} {_PLAN}", f"diff {_PLAN} {_PLAN} --format json"],
    "strategies": ["strategies", "strategies --format json"],
    "schema": ["schema application", "schema network", "!schema nonsense"],
    "coordinates": ["coordinates rtt.npz", "coordinates rtt.csv --unit ms --dimensions 2"],
    "simulate": [
        f"simulate {_APP} {_NET} {_PLAN} --for 2 --changes changes.yaml --output sim",
        f"simulate {_APP} {_NET} {_PLAN} --for 0.2 --trace births.csv",
        f"simulate {_APP} {_NET} {_PLAN} --for 0.2 --workload days.csv --format json",
    ],
    "compare": [f"compare {_APP} {_NET} --strategy cloud-only"],
    "profile": ["!profile nonsense", "!profile no.such.module:it --data trips.parquet"],
    "run": [
        f"!run nonsense {_NET} new-run --no-page",
        f"!run taxi-fares {_NET} new-run --no-page --interval nonsense",
    ],
    "status": ["status run", "status run --format json"],
    "stop": ["stop run"],
    "rollback": ["rollback run"],
    "serve": ["!serve none", "!serve results --port 99999", "!serve app.json --no-open"],
    "reproduce tsoo": ["!reproduce tsoo --seeds 0", "!reproduce tsoo --output app.json --quick"],
    "reproduce aels": ["!reproduce aels --limit 0", "!reproduce aels --output app.json --quick"],
    "reproduce migcep": ["!reproduce migcep --seeds 0 --output new", "!reproduce migcep x"],
    "mobility trace": ["mobility trace --output new --vehicles 3 --for 5"],
    "mobility predict": [
        f"mobility predict {_GROUND} --interval 5",
        "mobility predict --vehicles 3",
    ],
    "mobility learn": ["!mobility learn none.parquet --output new.parquet", "!mobility learn"],
    "mobility plan": [f"mobility plan {_GROUND} --instances 1 --at 5 --output new.json"],
    "mobility run": [f"mobility run {_GROUND} --approach static --output new --plot new.html"],
    "metrics": [
        "metrics rules",
        "metrics dashboard",
        "metrics prometheus",
        "!metrics nothing",
        "!metrics",
        "!metrics rules app.json",
    ],
    "mobility handover": [
        f"!mobility handover {_TRACKS} new --move nonsense",
        "!mobility handover none.parquet new --move 5=broker-b",
    ],
}


def verbs_of(command: object, name: tuple[str, ...] = ()) -> Iterator[str]:
    """Every verb of the command line, those of groups with the name of the group."""
    inner = getattr(command, "commands", None)
    if inner is None:
        yield " ".join(name)
    else:
        for word, each in inner.items():
            yield from verbs_of(each, (*name, word))


VERBS = sorted(verbs_of(typer.main.get_command(make_app())))


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a file and a folder of every kind."""
    folder = tmp_path_factory.mktemp("good")
    for write in (write_documents, write_tables, write_matrices, write_networks):
        write(folder)
    write_run(folder / "run")
    write_results(folder / "results")
    return folder


@pytest.fixture(autouse=True)
def no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that is refused has started a process before."""

    def refuse(*words: object, **_: object) -> None:
        pytest.fail(f"started {words}")

    monkeypatch.setattr(subprocess, "Popen", refuse)


@contextmanager
def working_in(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def spoil_line(rng: np.random.Generator, line: str, folder: Path) -> list[str]:
    """The words of a line, where a file that it names is damaged, or a word is another one."""
    words = line.removeprefix("!").split()
    own = 2 if words[0] in ("reproduce", "mobility") else 1
    named = [word for word in words[own:] if (folder / word).exists()]
    if named and rng.random() < 0.6:
        files = [file for file in files_below(folder / pick(rng, named)) if file.stat().st_size]
        damage_file(rng, pick(rng, files))
        return words
    # What is written has a place of its own here; all else may be anything.
    fixed = ("-o", "--output", "--plot", "new", "new-run", "--plan-only")
    places = [
        k for k in range(own, len(words)) if words[k - 1] not in fixed and words[k] not in fixed
    ]
    if not places or line.startswith("!"):
        return [*words, pick(rng, _WORDS)] if not line.startswith("!") else words
    words[pick(rng, places)] = pick(rng, _WORDS)
    return words


def call(words: list[str], folder: Path, capfd: pytest.CaptureFixture[str]) -> tuple[int, str]:
    capfd.readouterr()
    with working_in(folder), not_for_ever():
        code = run(words)
    told = capfd.readouterr()
    return code, told.out + told.err


def check_cases(good: Path, verb: str, capfd: pytest.CaptureFixture[str], numbers: range) -> None:
    for number in numbers:
        rng = np.random.default_rng([number, *verb.encode()])
        root = good.with_name("sandbox")
        shutil.rmtree(root, ignore_errors=True)
        # Two folders deep: what climbs out of its own is seen.
        folder = root / "above" / "here"
        shutil.copytree(good, folder)
        line = pick(rng, LINES[verb])
        words = spoil_line(rng, line, folder)
        code, told = call(words, folder, capfd)
        case = (number, [word[:80] for word in words], code, told[-600:])
        assert code in ((2,) if line.startswith("!") else CODES), case
        assert "Traceback" not in told, case
        # What was typed is told as it was typed; all else comes from a file.
        for row in told.splitlines() if all(map(str.isprintable, words)) else ():
            assert row.isprintable(), (*case, ascii(row[:300]))
        beside = {p.relative_to(root) for p in root.rglob("*") if folder not in p.parents}
        assert beside == {Path("above"), Path("above/here")}, case


def test_every_verb_is_here():
    assert sorted(LINES) == VERBS


@pytest.mark.parametrize("verb", VERBS)
def test_lines_do_what_they_are_said_to_do(good: Path, verb: str, tmp_path: Path, capfd):
    for line in LINES[verb]:
        folder = tmp_path / "here"
        shutil.copytree(good, folder)
        code, told = call(line.removeprefix("!").split(), folder, capfd)
        assert code == 2 if line.startswith("!") else code in (0, 3), (line, told)
        shutil.rmtree(folder)


@pytest.mark.parametrize("verb", VERBS)
def test_a_damaged_line_is_done_or_refused(good: Path, verb: str, capfd):
    check_cases(good, verb, capfd, range(CASES))


@pytest.mark.slow
@pytest.mark.parametrize("verb", VERBS)
def test_many_damaged_lines_are_done_or_refused(good: Path, verb: str, capfd):
    check_cases(good, verb, capfd, range(CASES, CASES + MANY_CASES))


def test_markup_in_a_status_is_text(good: Path, tmp_path: Path, capfd):
    folder = tmp_path / "run"
    shutil.copytree(good / "run", folder)
    status = (folder / "status.json").read_text()
    escape = "\\u001b]0;pwned\\u0007\\u202e"
    (folder / "status.json").write_text(status.replace("uplink too full", f"{HTML}{escape}"))
    code, told = call(["status", str(folder)], tmp_path, capfd)
    assert code == 0
    assert HTML in told
    assert all(row.isprintable() for row in told.splitlines())
