"""The keyed operator of most tests of moves, in a folder of its own."""

from __future__ import annotations

from pathlib import Path

from thalweg.spark.keyed.spec import KeyedSpec


def spec_in(folder: Path) -> KeyedSpec:
    return KeyedSpec(
        operator="spark.keyed_pipelines:tally",
        folder=folder / "run",
        log=folder / "log",
        input="sources/rides",
        output="edges/tally+board",
        durable=False,
    )
