"""The folder of a run of which everything is known, written by hand: each figure is another one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from thalweg.model import Application, Limits, Operator, Pin, Stream
from thalweg.scenarios import fog_cloud
from thalweg.spark.deployment.folder import RunFolder

BEGAN_S, AT_S = 1_795_061_000.0, 1_795_061_600.0

APP = Application(
    name="fares",
    operators=[
        Operator(name="rides", kind="source", rate=300.0, event_size=100.0, pin=Pin(tier="fog")),
        Operator(name="clean", kind="transform", selectivity=0.5),
        Operator(name="board", kind="sink", pin=Pin(tier="cloud")),
    ],
    streams=[Stream(source="rides", target="clean"), Stream(source="clean", target="board")],
    limits=Limits(response_time_s=2.0, uplink_bps=80_000.0, usage=0.9),
)

DEVIATION = {"site": None, "figure": "event_size", "low": 250.0, "high": 350.0}
FRAME: dict[str, Any] = {
    "kind": "frame",
    "at_s": AT_S,
    "figures": {
        "usage": 0.31,
        "uplink_bps": 40_000.0,
        "response_time_s": 1.5,
        "broken": ["uplink_bps: 40 kbit/s, at most 8 kbit/s"],
    },
    "estimated": {"usage": 0.25, "uplink_bps": 32_000.0, "response_time_s": 1.25},
    "measured": {"uplink_bps": 36_000.0, "passing_bps": 800.0, "measured_at_s": AT_S - 3},
    "rates": {"rides": {"fog-0": 120.0, "fog-1": 0.0}},
    "events_in_per_s": 120.0,
    "events_out_per_s": 7.0,
    "sites": {
        "fog-0": {
            "state": "up",
            "memory_bytes": 4096,
            "cpu": 0.5,
            "load": 0.25,
            "lag_s": 1.75,
            "renewed_at_s": AT_S - 1,
        },
        "fog-1": {"state": "down", "load": None, "lag_s": None},
        "cloud": {"state": "up", "memory_bytes": 8192, "cpu": 0.0, "load": 0.0, "lag_s": 0.0},
    },
    "links": {"fog-0": {"bps": 36_000.0, "lag_s": 0.5, "renewed_at_s": AT_S - 2}},
    "operators": {"fog-0": {"clean": [120.0, 60.0]}},
    "deviations": [{**DEVIATION, "operator": "rides", "declared": 100.0, "measured": 300.0}],
}
STATUS: dict[str, Any] = {
    "state": "running",
    "pid": 1,
    "began_s": BEGAN_S,
    "heartbeat_s": AT_S + 1,
    "pipeline": "fares",
    "network": "town",
    "strategy": "atsoo",
    "cuts": {"fog-0": ["clean"]},
    "sites": {
        "fog-0": {"alive": True, "state": "up", "since_s": BEGAN_S + 10, "queries": []},
        "fog-1": {"alive": False, "state": "restarting", "since_s": AT_S - 4, "queries": []},
        "cloud": {"alive": True, "state": "up", "since_s": BEGAN_S + 11, "queries": []},
    },
    "rows_in_by_source": {"rides": 72_000},
    "rows_out": {"board": 4_200},
    "dead_rows": 3,
    "sent_bytes": {"fog-0": 1_000_000, "fog-1": 0},
    "changes": 3,
    "changes_by_cause": {"first": 1, "adapt": 2},
    "last_change": {"at_s": AT_S - 100, "cause": "adapt", "seconds": 6.5},
    "restarts": 2,
    "restarts_by_site": {"fog-1": 2},
    "under_way": {"kind": "restart", "site": "fog-1", "what": "a restart", "began_at_s": AT_S - 4},
}


def write_measured_run(
    folder: Path, *, status: dict[str, Any] | None = None, frames: list[Any] | None = None
) -> Path:
    """The folder of the run, with another status or other frames where they are given."""
    run = RunFolder(folder)
    run.write_model(APP, fog_cloud(2, seed=1))
    (folder / "run.json").write_text("{}")
    run.write_status(STATUS if status is None else status)
    lines = [json.dumps(frame) + "\n" for frame in ([FRAME] if frames is None else frames)]
    (folder / "timeline.jsonl").write_text("".join(lines))
    return folder


@contextmanager
def held_run(folder: Path, **told: Any) -> Iterator[Path]:
    """The folder of the run while somebody runs it."""
    folder.mkdir(parents=True, exist_ok=True)
    with RunFolder(folder).hold():
        yield write_measured_run(folder, **told)
