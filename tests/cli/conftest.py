from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest

from cli.json_documents import require_document
from thalweg.cli.entry import run


@dataclass
class Outcome:
    code: int
    out: str
    err: str


@pytest.fixture
def thalweg(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Callable[..., Outcome]:
    """Runs a command line in a folder of its own; documents are held against their schemas."""
    monkeypatch.chdir(tmp_path)

    def call(*words: str) -> Outcome:
        capfd.readouterr()
        code = run(words)
        captured = capfd.readouterr()
        if asks_for_json(words) and captured.out and not is_of_unknown_run(words, captured.out):
            require_document(words, code, captured.out)
        return Outcome(code, captured.out, captured.err)

    return call


def asks_for_json(words: Sequence[str]) -> bool:
    return words[:1] != ("schema",) and ("--format", "json") in pairwise(words)


def is_of_unknown_run(words: Sequence[str], out: str) -> bool:
    """Whether it is the status of a folder that a test wrote, with a part of what a run writes."""
    return words[0] == "status" and "pipeline" not in json.loads(out)


@pytest.fixture
def example(thalweg: Callable[..., Outcome], tmp_path: Path) -> Path:
    """The folder that `thalweg init` writes."""
    assert thalweg("init", "demo").code == 0
    return tmp_path / "demo"
