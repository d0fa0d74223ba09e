"""`import thalweg` is for scripts and shell completion: what it does not need, it does not load."""

from __future__ import annotations

import subprocess
import sys

HEAVY = [
    "matplotlib",
    "numba",
    "pandas",
    "pyarrow",
    "pydantic",
    "pyspark",
    "rich",
    "scipy",
    "typer",
    "yaml",
]


def test_import_loads_no_heavy_package() -> None:
    program = "import sys, thalweg; print(*sys.modules, sep='\\n')"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    loaded = set(run.stdout.split())
    assert "thalweg" in loaded
    assert sorted(loaded.intersection(HEAVY)) == []
