"""Keeps a simulation: a Parquet file for each table, and a manifest that says how to repeat it."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from thalweg.errors import Defect, InvalidInput
from thalweg.simulate.figures import RunFigures
from thalweg.simulate.simulation import Simulation

TABLES = (
    "operators",
    "links",
    "nodes",
    "paths",
    "applications",
    "comparison",
    "segments",
    "moves",
    "decisions",
    "queues",
    "histogram",
)
MANIFEST = "manifest.json"


def to_arrow(found: Simulation, table: str) -> pa.Table:
    """The rows of a table of all runs, with the number of the run in front."""
    rows = [
        {"replication": number, **row}
        for number, run in enumerate(found.runs)
        for row in getattr(run, table)
    ]
    return (
        pa.Table.from_pylist(rows) if rows else pa.table({"replication": pa.array([], pa.int64())})
    )


def save_simulation(
    found: Simulation, folder: Path, *, inputs: Mapping[str, str] | None = None, command: str = ""
) -> list[Path]:
    """Write all tables and the manifest into a folder; gives the files.

    `inputs` are the hashes of what was read, by name.

    Raises:
        InvalidInput: where the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        files = []
        for table in TABLES:
            path = folder / f"{table}.parquet"
            draft = folder / f".{table}.parquet"
            pq.write_table(to_arrow(found, table), draft)
            draft.replace(path)
            files.append(path)
        manifest = folder / MANIFEST
        text = json.dumps(_manifest(found, inputs or {}, command), indent=2, ensure_ascii=False)
        draft = folder / f".{MANIFEST}"
        draft.write_text(text + "\n", encoding="utf-8")
        draft.replace(manifest)
    except OSError as error:
        rule = f"a folder that can be written ({(error.strerror or str(error)).lower()})"
        raise InvalidInput([Defect(path="", value=str(folder), rule=rule)]) from error
    return [*files, manifest]


def _manifest(found: Simulation, inputs: Mapping[str, str], command: str) -> dict[str, Any]:
    return {
        "thalweg": 1,
        "command": command,
        "seed": found.seed,
        "replications": found.replications,
        "seconds": found.seconds,
        "warm_up_s": found.warm_up_s,
        "applications": list(found.applications),
        "network": found.network,
        "strategies": list(found.strategies),
        "physics": list(found.physics),
        "totals": found.totals,
        "inputs": dict(inputs),
        "versions": {
            "thalweg": version("thalweg"),
            "python": platform.python_version(),
            **{name: version(name) for name in ("numba", "numpy", "pyarrow", "scipy")},
        },
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def run_to_json(run: RunFigures) -> str:
    """One run as text that gives the very same run back."""
    return json.dumps({name: getattr(run, name) for name in RunFigures.__dataclass_fields__})


def run_from_json(text: str) -> RunFigures:
    """The run that was written."""
    return RunFigures(**json.loads(text))
