"""Stored folders that are damaged, on the page and with the verbs that look into them.

Whatever is in such a folder: it is shown, or refused in words. Nothing else.
"""

from __future__ import annotations

import json
import shutil
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("fastapi")

from fuzz.damage import damage_file, files_below
from fuzz.good_files import STORED
from fuzz.test_loaders import not_for_ever, require_words
from thalweg.cli.entry import run
from thalweg.errors import InvalidInput, ThalwegError
from thalweg.web.opening import open_subjects
from thalweg.web.subject import Subject

CASES, MANY_CASES = 40, 800
_MOST_UPDATES = 200


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a stored folder of every kind, as commands leave them."""
    folder = tmp_path_factory.mktemp("stored")
    for name, write in STORED.items():
        write(folder / name)
    return folder


def places_of(folder: Path, kind: str) -> list[Path]:
    """What is given to `thalweg serve` to see a stored folder of this kind."""
    return files_below(folder) if kind == "schedule" else [folder]


def require_plain(data: Any) -> None:
    """What is told has to be JSON that any browser reads."""
    json.dumps(data, allow_nan=False, ensure_ascii=False).encode("utf-8")


def look_at(subject: Subject) -> int:
    """Ask everything that a page asks; returns how much of it was answered."""
    questions = [subject.scene, subject.history, subject.city, subject.results]
    asked: dict[str, Any] = {"operator": "", "site": "", "link": "", "placement": ""}
    questions += [
        lambda: subject.why(**{**asked, "site": "cloud"}),
        lambda: subject.why(**{**asked, "operator": "parse", "site": "fog-0"}),
        lambda: [u and u.data for u in islice(subject.updates(0), _MOST_UPDATES)],
    ]
    answered = 0
    for question in questions:
        try:
            require_plain(question())
            answered += 1
        except ThalwegError as error:
            require_plain(str(error))
    require_plain([subject.title, subject.kind, subject.is_live])
    return answered


def check_cases(stored: Path, kind: str, numbers: range) -> None:
    for number in numbers:
        folder = stored.with_name("spoilt") / kind
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(stored / kind, folder)
        rng = np.random.default_rng([number, *kind.encode()])
        files = [file for file in files_below(folder) if file.stat().st_size]
        file = files[int(rng.integers(len(files)))]
        try:
            damage_file(rng, file)
            with not_for_ever():
                look_or_refuse(folder, kind)
        except Exception as error:
            error.add_note(f"case {number} of {kind}: {file.relative_to(folder)}")
            raise


def look_or_refuse(folder: Path, kind: str) -> None:
    try:
        subjects = open_subjects(places_of(folder, kind))
    except InvalidInput as error:
        require_words(error, folder)
        return
    for subject in subjects:
        look_at(subject)


@pytest.mark.parametrize("kind", STORED)
def test_what_is_whole_is_shown(stored: Path, kind: str):
    (subject,) = open_subjects(places_of(stored / kind, kind))
    assert subject.kind == kind
    assert look_at(subject) >= (1 if kind == "results" else 2)


@pytest.mark.parametrize("kind", STORED)
def test_what_is_damaged_is_shown_or_refused(stored: Path, kind: str):
    check_cases(stored, kind, range(CASES))


@pytest.mark.slow
@pytest.mark.parametrize("kind", STORED)
def test_much_that_is_damaged_is_shown_or_refused(stored: Path, kind: str):
    check_cases(stored, kind, range(CASES, CASES + MANY_CASES))


def check_verbs(stored: Path, capfd: pytest.CaptureFixture[str], numbers: range) -> None:
    verbs = (["status"], ["status", "--format", "json"], ["rollback"], ["stop"])
    for number in numbers:
        folder = stored.with_name("spoilt") / "verbs"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(stored / "run", folder)
        rng = np.random.default_rng([number, 7])
        name = ("status.json", "status.json", "history.json", "run.json")[int(rng.integers(4))]
        damage_file(rng, folder / name)
        for verb, *options in verbs:
            capfd.readouterr()
            with not_for_ever():
                code = run([verb, str(folder), *options])
            told = capfd.readouterr()
            assert code in (0, 2), (number, name, told.err)
            for line in (told.out + told.err).splitlines():
                assert line.isprintable(), (number, name, ascii(line[:300]))


def test_verbs_of_a_damaged_run_answer_in_words(stored: Path, capfd):
    check_verbs(stored, capfd, range(CASES))


@pytest.mark.slow
def test_verbs_of_many_damaged_runs_answer_in_words(stored: Path, capfd):
    check_verbs(stored, capfd, range(CASES, CASES + MANY_CASES))
