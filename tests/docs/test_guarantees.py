"""docs/guarantees.md says in which run the tests are that it names."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
NAMED = re.compile(r"`(tests/[\w/]+\.py)`( †)?")


def test_every_test_that_the_page_names_is_in_make_test_but_for_those_it_marks() -> None:
    page = (ROOT / "docs" / "guarantees.md").read_text(encoding="utf-8")
    named = {(file, bool(mark)) for file, mark in NAMED.findall(page)}
    files = sorted({file for file, _ in named})
    assert len(files) == len(named) > 10, "a file is marked everywhere or nowhere"
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", "not slow", *files]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    in_make_test = {line.partition("::")[0] for line in done.stdout.splitlines() if "::" in line}
    assert {file for file, only_in_all in named if not only_in_all} == in_make_test
    assert {file for file, only_in_all in named if only_in_all} == set(files) - in_make_test
