"""The archive of Spark's classes is made by a fresh machine's set-up, and JVMs use it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark")


@pytest.mark.slow
@pytest.mark.jvm
def test_an_archive_is_made_where_there_is_none(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "thalweg.spark.class_archive"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    (archive,) = tmp_path.rglob("*.jsa")
    assert archive.stat().st_size > 10_000_000
    assert str(archive) in done.stdout
