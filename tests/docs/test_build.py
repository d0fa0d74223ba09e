from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_site_builds_without_warnings_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    pages = list(tmp_path.rglob("*.html"))
    assert pages
    # Links that a reader may follow are fine; what a browser loads by itself is not.
    loads = re.compile(r'<(?:script|img|iframe)[^>]+src="https?:|<link[^>]+href="https?:')
    assert [str(page) for page in pages if loads.search(page.read_text())] == []
