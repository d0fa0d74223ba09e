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

_TEXT, _NUMBER, _WHOLE, _YES = pa.string(), pa.float64(), pa.int64(), pa.bool_()
_STAYS = {
    "events": _WHOLE,
    "throughput_per_s": _NUMBER,
    "utilisation": _NUMBER,
    "load": _NUMBER,
    "wait_s": _NUMBER,
    "latency_s": _NUMBER,
    "latency_p50_s": _NUMBER,
    "latency_p95_s": _NUMBER,
    "latency_p99_s": _NUMBER,
    "queue_mean": _NUMBER,
    "queue_end": _WHOLE,
    "lost": _WHOLE,
}
_LATENCIES = {
    "events": _WHOLE,
    **dict.fromkeys(
        (
            "latency_s",
            "latency_sd_s",
            "latency_p50_s",
            "latency_p95_s",
            "latency_p99_s",
            "latency_max_s",
            "response_s",
        ),
        _NUMBER,
    ),
}
TABLES: Mapping[str, pa.Schema] = {
    name: pa.schema({"replication": _WHOLE, **columns})
    for name, columns in {
        "operators": {
            "name": _TEXT,
            "application": _TEXT,
            "node": _TEXT,
            **_STAYS,
            "window_wait_s": _NUMBER,
            "window_end": _WHOLE,
            "estimated_s": _NUMBER,
        },
        "links": {"name": _TEXT, **_STAYS, "sent_bytes": _NUMBER},
        "nodes": {
            "name": _TEXT,
            "tier": _TEXT,
            "operators": _WHOLE,
            "throughput_per_s": _NUMBER,
            "utilisation": _NUMBER,
        },
        "paths": {
            "name": _TEXT,
            "application": _TEXT,
            "source": _TEXT,
            "sink": _TEXT,
            "ways": _NUMBER,
            **_LATENCIES,
        },
        "applications": {"name": _TEXT, "throughput_per_s": _NUMBER, **_LATENCIES},
        "comparison": {
            "application": _TEXT,
            "name": _TEXT,
            "estimated": _NUMBER,
            "measured": _NUMBER,
        },
        "segments": {
            "begin_s": _NUMBER,
            "end_s": _NUMBER,
            "cause": _TEXT,
            "events": _WHOLE,
            "latency_s": _NUMBER,
            "uplink_bps": _NUMBER,
            "uplink_estimated_bps": _NUMBER,
            "usage": _NUMBER,
            "usage_estimated": _NUMBER,
            "response_estimated_s": _NUMBER,
        },
        "moves": {
            "at_s": _NUMBER,
            "operator": _TEXT,
            "from": _TEXT,
            "to": _TEXT,
            "sent_bytes": _NUMBER,
            "downtime_s": _NUMBER,
            "delayed_events": _WHOLE,
        },
        "decisions": {
            "at_s": _NUMBER,
            "adapted": _YES,
            "changed": _YES,
            "reason": _TEXT,
            "rate_seen": _NUMBER,
        },
        "queues": {
            "name": _TEXT,
            "sort": _TEXT,
            "time_s": pa.list_(_NUMBER),
            "queue": pa.list_(_WHOLE),
        },
        "placements": {
            "begin_s": _NUMBER,
            "application": _TEXT,
            "operator": _TEXT,
            "node": _TEXT,
            "origin": _TEXT,
        },
        "rates": {
            "begin_s": _NUMBER,
            "application": _TEXT,
            "source": _TEXT,
            "site": _TEXT,
            "rate_per_s": _NUMBER,
        },
        "histogram": {
            "application": _TEXT,
            "from_s": _NUMBER,
            "to_s": _NUMBER,
            "events": _WHOLE,
        },
    }.items()
}
"""The tables that are saved, and their columns."""
MANIFEST = "manifest.json"


def to_arrow(found: Simulation, table: str) -> pa.Table:
    """The rows of a table of all runs, with the number of the run in front."""
    rows = [
        {"replication": number, **row}
        for number, run in enumerate(found.runs)
        for row in getattr(run, table)
    ]
    return pa.Table.from_pylist(rows, schema=TABLES[table])


def save_simulation(
    found: Simulation,
    folder: Path,
    *,
    inputs: Mapping[str, str] | None = None,
    command: str = "",
    settings: Mapping[str, object] | None = None,
) -> list[Path]:
    """Write all tables and the manifest into a folder; gives the files.

    `inputs` are the hashes of what was read, by name, `settings` what else is to be remembered.

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
        manifested = {**_manifest(found, inputs or {}, command), "settings": dict(settings or {})}
        text = json.dumps(manifested, indent=2, ensure_ascii=False)
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
