"""Functions that the tests sweep, in a module of their own so that Spark's workers can load it."""

from __future__ import annotations

import os
import time
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa

COLUMNS = pa.schema({"step": pa.int64(), "value": pa.float64(), "label": pa.string()})


def measure(point: dict[str, Any]) -> list[dict[str, Any]]:
    """No row, one, or several, depending on the point."""
    seed, load = point["seed"], point["load"]
    return [
        {"step": step, "value": load / (seed + step + 1), "label": f"{seed}/{step}"}
        for step in range(seed % 4)
    ]


def measure_as_table(point: dict[str, Any]) -> pa.Table:
    """The same, as a table with its columns in another order."""
    rows = measure(point)
    return pa.Table.from_pylist(rows, schema=COLUMNS).select(["label", "value", "step"])


def touch(point: dict[str, Any]) -> list[dict[str, Any]]:
    """Leave a file for each time that a point runs; take a little time, if told so."""
    Path(point["folder"], f"{point['seed']}-{uuid.uuid4().hex}").touch()
    time.sleep(point.get("seconds", 0.0))
    return measure(point)


def touch_before_and_after(point: dict[str, Any]) -> list[dict[str, Any]]:
    """Long for all points but the first eight."""
    folder, seed = Path(point["folder"]), point["seed"]
    (folder / f"start-{seed}").touch()
    time.sleep(20.0 if seed > 8 else 0.0)
    (folder / f"end-{seed}").touch()
    return measure(point)


def fail_until_repaired(point: dict[str, Any]) -> list[dict[str, Any]]:
    """Point 3 raises until the folder has a file called `repaired`."""
    touch(point)
    if point["seed"] == 3 and not Path(point["folder"], "repaired").exists():
        raise RuntimeError(f"no way through at load {point['load']}")
    return measure(point)


def end_worker(point: dict[str, Any]) -> list[dict[str, Any]]:
    """Point 5 takes the whole process down."""
    if point["seed"] == 5:
        os._exit(7)
    return measure(point)


def show_environment(point: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"threads": os.environ.get("OMP_NUM_THREADS"), "process": os.getpid()}]


def spoil(point: dict[str, Any]) -> Any:
    """Every wrong thing that a function can return, one for each point."""
    row = {"step": 1, "value": 2.0, "label": "a"}
    point["kind"].append("changed by the function, seen by nobody")
    return {
        "nothing": None,
        "number": 7,
        "mapping": row,
        "list of numbers": [1, 2],
        "missing": [{"step": 1, "value": 2.0}],
        "unknown": [row | {"colour": "red"}],
        "type": [row | {"step": "one"}],
        "null": [row | {"label": None}],
        "table": pa.table({"step": [1]}),
    }[point["kind"][0]]


def exit_process(point: dict[str, Any]) -> list[dict[str, Any]]:
    raise SystemExit(3)
