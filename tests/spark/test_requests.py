"""The folder of requests when it is full, another's, or holds what is no request."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from thalweg.errors import InvalidInput
from thalweg.spark.deployment.control import MOVE, STOP, Request, leave, list_requests, take_one
from thalweg.spark.deployment.folder import RunFolder


@pytest.mark.parametrize(
    ("number", "hint"),
    [
        (errno.ENOSPC, "free some space"),
        (errno.EACCES, "the user who started the run"),
        (errno.EIO, "its disk"),
    ],
)
def test_a_request_that_cannot_be_left_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, hint: str
) -> None:
    folder = RunFolder(tmp_path)

    def fail(file: Path, *_: Any, **__: Any) -> None:
        file.touch()
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Path, "write_text", fail)
    with pytest.raises(InvalidInput) as told:
        leave(folder, Request(kind=STOP))
    (defect,) = told.value.defects
    assert (defect.file, defect.value) == (str(folder.control), os.strerror(number))
    assert hint in defect.hint
    assert list(folder.control.iterdir()) == []


def test_a_file_in_the_place_of_the_folder_is_told(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.control.write_text("")
    with pytest.raises(InvalidInput, match="move away what is there"):
        leave(folder, Request(kind=STOP))
    assert take_one(folder) is None


def within_seconds(act: Callable[[], Any]) -> Any:
    """What is given within seconds; fails where somebody waits for ever."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(act()), daemon=True)
    thread.start()
    thread.join(20.0)
    assert found, "nothing came, or an error"
    return found[0]


@pytest.mark.parametrize("sort", ["pipe", "endless", "outside", "folder", "large"])
def test_what_is_no_file_of_a_request_makes_nobody_wait(tmp_path: Path, sort: str) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.control.mkdir(parents=True)
    file = folder.control / f"1-{'0' * 32}.request.json"
    text = '{"kind": "stop", "cuts": {}}'
    if sort == "pipe":
        os.mkfifo(file)
    elif sort == "folder":
        file.mkdir()
    elif sort == "large":
        file.write_text(text + " " * 2**20)
    else:
        (tmp_path / "outside.json").write_text(text)
        file.symlink_to("/dev/zero" if sort == "endless" else tmp_path / "outside.json")
    asked = Request(kind=MOVE, cuts={"fog-0": ()})
    leave(folder, asked)
    assert [kind for kind, _ in within_seconds(lambda: list_requests(folder))] == [MOVE]
    assert within_seconds(lambda: take_one(folder)) == asked
    assert file.exists() == (sort == "folder")


@pytest.mark.parametrize("name", ["decisions.jsonl", "decisions.1.jsonl"])
@pytest.mark.parametrize("sort", ["pipe", "endless", "folder"])
def test_what_is_no_file_of_decisions_makes_nobody_wait(
    tmp_path: Path, name: str, sort: str
) -> None:
    folder = RunFolder(tmp_path)
    if sort == "pipe":
        os.mkfifo(tmp_path / name)
    elif sort == "folder":
        (tmp_path / name).mkdir()
    else:
        (tmp_path / name).symlink_to("/dev/zero")

    def read() -> str:
        with pytest.raises(InvalidInput) as told:
            folder.read_decisions()
        return str(told.value)

    assert f"{name}: got " in within_seconds(read)


def test_a_pipe_in_the_place_of_the_page_makes_nobody_wait(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.control.mkdir()
    os.mkfifo(folder.control / "page")
    assert within_seconds(lambda: [folder.read_page()]) == [None]
