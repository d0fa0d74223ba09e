"""Which Pythons are tried, and that only those are promised."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from tools import try_pythons

ROOT = Path(__file__).parents[1]


def classified() -> list[str]:
    about = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    mark = "Programming Language :: Python :: 3."
    return [c.rpartition(" ")[2] for c in about["classifiers"] if c.startswith(mark)]


def test_only_pythons_that_passed_have_a_classifier() -> None:
    passed = json.loads(try_pythons.RECORD.read_text(encoding="utf-8"))
    assert classified() == sorted(passed, key=lambda version: int(version[2:]))
    assert all(full.startswith(f"{version}.") for version, full in passed.items())
    assert set(passed) <= set(try_pythons.VERSIONS)


def test_every_path_that_is_tried_is_there() -> None:
    assert [path for path in try_pythons.TESTS if not (ROOT / path).exists()] == []


def fake_python(folder: Path, version: str, says: str) -> Path:
    folder.mkdir(parents=True)
    python = folder / f"python{version}"
    python.write_text(f"#!/bin/sh\n{says}\n", encoding="utf-8")
    python.chmod(0o755)
    return python


def test_a_shim_for_nothing_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_python(tmp_path / "shims", "3.12", "exit 127")
    there = fake_python(tmp_path / "pyenv" / "versions" / "3.12.9" / "bin", "3.12", "echo 3.12.9")
    monkeypatch.setenv("PATH", str(tmp_path / "shims"))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert try_pythons.find_python("3.12") == there
    assert try_pythons.find_python("3.14") is None


def test_what_is_not_here_is_untried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_python(tmp_path / "bin", "3.12", "echo 3.12.9")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(try_pythons, "RECORD", tmp_path / "tried.json")
    monkeypatch.setattr(try_pythons, "find_uv", lambda: "uv")
    monkeypatch.setattr(try_pythons, "try_python", lambda uv, version, python: True)
    assert try_pythons.main(["3.12", "3.13", "--record"]) == 0
    assert capsys.readouterr().out == "passed: 3.12\nuntried: 3.13\n"
    assert json.loads((tmp_path / "tried.json").read_text()) == {"3.12": "3.12.9"}
    monkeypatch.setattr(try_pythons, "try_python", lambda uv, version, python: False)
    assert try_pythons.main(["3.12", "--record"]) == 1
    assert json.loads((tmp_path / "tried.json").read_text()) == {}


def test_the_tool_says_what_it_does() -> None:
    told = subprocess.run(
        [sys.executable, "tools/try_pythons.py", "--help"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert "untried" in told
