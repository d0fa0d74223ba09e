from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

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
    """Runs a command line in a folder of its own."""
    monkeypatch.chdir(tmp_path)

    def call(*words: str) -> Outcome:
        capfd.readouterr()
        code = run(words)
        captured = capfd.readouterr()
        return Outcome(code, captured.out, captured.err)

    return call


@pytest.fixture
def example(thalweg: Callable[..., Outcome], tmp_path: Path) -> Path:
    """The folder that `thalweg init` writes."""
    assert thalweg("init", "demo").code == 0
    return tmp_path / "demo"
