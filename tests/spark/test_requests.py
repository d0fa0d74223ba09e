"""Files in the place of requests and decisions that are none: nobody waits for them."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from thalweg.errors import InvalidInput
from thalweg.spark.deployment.control import MOVE, Request, leave, list_requests, take_one
from thalweg.spark.deployment.folder import RunFolder


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
