"""A driver to be killed: `python sweep_and_hang.py FOLDER`.

Sweeps all points into FOLDER/whole, then starts over into FOLDER/part and, with some points
finished and others running, says so and waits for its end.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from spark.sweep_functions import COLUMNS, measure, touch
from thalweg.spark.session import open_session
from thalweg.spark.sweep import sweep

QUICK_START = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
POINTS = [{"seed": seed, "load": seed / 8} for seed in range(24)]


def measure_here(point: dict[str, Any]) -> list[dict[str, Any]]:
    """A function of the script itself, which no worker can import."""
    return measure(point)


def hang(done: int, total: int) -> None:
    if done >= total // 4:
        print("hanging", flush=True)
        time.sleep(600)


def main(folder: Path) -> None:
    with open_session("local[1]", config=QUICK_START) as session:
        print(session.sparkContext._gateway.proc.pid, flush=True)
        sweep(POINTS, measure_here, into=folder / "whole", columns=COLUMNS)
        settings = {"folder": str(folder / "runs")}
        sweep(
            POINTS,
            touch,
            into=folder / "part",
            columns=COLUMNS,
            settings=settings,
            on_progress=hang,
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
