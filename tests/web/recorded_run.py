"""The folder of a run with a story, written line by line: all that a page has to tell apart.

| seconds | what happens |
|---|---|
| 0–6 | no query has a watermark yet |
| 20–26 | cuts change, as one event; what ran before goes on meanwhile |
| 30 on | what is declared of two operators differs from what is measured |
| 40–42 | fog-1 is dead |
| 42–50 | fog-1 is started again, as one event |
| 58 on | fog-2 measures nothing new; from 60 on no link does |
| 80 | the run ends; nobody writes a last moment |
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import thalweg as tw
from thalweg.spark.demo import demo_network
from thalweg.spark.deployment.folder import RunFolder

BEGAN_S = 1_795_061_600.0
END_S = 80
FOGS = ("fog-0", "fog-1", "fog-2")
LIMIT_BPS = 300_000.0
_ALL = ["parse", "clean", "enrich-zone", "speed-by-zone", "congestion", "join"]
_ALL += ["fares-by-zone", "tip-ratio", "rank-zones"]
BEFORE = {fog: ["parse", "clean"] for fog in FOGS}
AFTER = dict.fromkeys(FOGS, _ALL)
DEVIATIONS = [
    {
        "operator": "parse",
        "site": None,
        "figure": "event_size",
        "declared": 1.0,
        "measured": 84.2,
        "low": 83.9,
        "high": 84.6,
    },
    {
        "operator": "clean",
        "site": "fog-1",
        "figure": "selectivity",
        "declared": 0.3,
        "measured": 0.91,
        "low": 0.88,
        "high": 0.94,
    },
]


def write_recorded_run(folder: Path, *, state: str = "ended", last_s: int = END_S) -> Path:
    """The run up to a second of its story; with another `state` than "ended" it wrote no end."""
    folder.mkdir(parents=True, exist_ok=True)
    run = RunFolder(folder)
    app = tw.scenarios.taxi_fares()
    limits = replace(app.limits, uplink_least_bps=200_000.0, uplink_bps=LIMIT_BPS)
    run.write_model(replace(app, limits=limits), demo_network())
    (folder / "run.json").write_text("{}")
    lines = sorted(_events() + [_frame(second) for second in range(0, END_S, 2)], key=_at)
    kept = [line for line in lines if line["at_s"] <= BEGAN_S + last_s]
    (folder / "timeline.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in kept))
    run.write_status(
        {
            "state": state,
            "strategy": "atsoo",
            "interval_s": 2.0,
            "heartbeat_s": BEGAN_S + last_s,
            "deviations": DEVIATIONS,
            "sites": {},
        }
    )
    return folder


def _at(line: dict[str, Any]) -> float:
    return float(line["at_s"])


def _events() -> list[dict[str, Any]]:
    def cuts(second: int, cause: str, reason: str, which: dict[str, list[str]]) -> dict[str, Any]:
        told = {"kind": "cuts", "at_s": BEGAN_S + second, "cuts": which, "cause": cause}
        return {**told, "reason": reason, "plan": None, "rates": _rates(second)}

    def mark(second: int, kind: str, title: str, **more: str) -> dict[str, Any]:
        return {"kind": "mark", "at_s": BEGAN_S + second, "mark": kind, "title": title, **more}

    return [
        cuts(0, "first", "first deployment", BEFORE),
        mark(20, "change", "cuts change", event="change-1", phase="begin"),
        cuts(26, "adapt", "uplink is 561 kbps now, limit 300 kbps", AFTER),
        mark(26, "change", "cuts have changed", event="change-1", phase="end"),
        mark(40, "failure", "fog-1 died", text="signal 9"),
        mark(42, "restart", "fog-1 is started again", event="restart-1", phase="begin"),
        mark(50, "restart", "fog-1 is back", event="restart-1", phase="end"),
    ]


def _rates(second: int) -> dict[str, dict[str, float]]:
    return {"rides": dict.fromkeys(FOGS, 40.0 if second < 14 else 120.0 + second / 10)}


def _uplink_bps(second: int) -> tuple[float, float]:
    """By the model alone, and by the links alone."""
    if second < 14:
        return 158_000.0, 181_000.0
    return (480_000.0, 561_000.0) if second < 26 else (225_000.0, 254_000.0)


def _frame(second: int) -> dict[str, Any]:
    at_s = BEGAN_S + second
    estimated, measured = _uplink_bps(second)
    renewed = dict.fromkeys((*FOGS, "cloud"), at_s) | {"fog-2": BEGAN_S + min(second, 58)}
    rates = _rates(second)
    under_way = None
    if 20 <= second < 26:
        what = "all fogs take over the whole pipeline"
        under_way = {"kind": "change", "site": None, "what": what, "began_at_s": BEGAN_S + 20}
    elif 42 <= second < 50:
        what = "started again after signal 9"
        under_way = {"kind": "restart", "site": "fog-1", "what": what, "began_at_s": BEGAN_S + 42}
    over = ["uplink 561 kbps is over 300 kbps"] if 14 <= second < 26 else []
    return {
        "kind": "frame",
        "at_s": at_s,
        "figures": {
            "usage": 3.1,
            "uplink_bps": max(estimated, measured),
            "response_time_s": 0.62,
            "broken": over,
        },
        "estimated": {"usage": 2.4, "uplink_bps": estimated, "response_time_s": 0.51},
        "measured": {"uplink_bps": measured, "measured_at_s": BEGAN_S + min(second, 60)},
        "rates": rates,
        "events_in_per_s": sum(rates["rides"].values()),
        "events_out_per_s": 0.0,
        "sites": {site: _site(site, second, renewed[site]) for site in (*FOGS, "cloud")},
        "links": {
            fog: {"bps": measured / 3, "lag_s": _lag(second), "renewed_at_s": renewed[fog]}
            for fog in FOGS
        },
        "operators": {fog: {"parse": [rates["rides"][fog], 0.0]} for fog in FOGS},
        "deviations": DEVIATIONS if second >= 30 else [],
        "under_way": under_way,
    }


def _lag(second: int) -> float | None:
    return None if second < 6 else 1.4


def _site(site: str, second: int, renewed_at_s: float) -> dict[str, Any]:
    if site == "fog-1" and 40 <= second < 50:
        state, since = ("down", 40) if second < 42 else ("restarting", 42)
        # What was measured last is still there, for whoever reads it carelessly.
        return {"state": state, "since_s": BEGAN_S + since, "cpu": 0.7, "lag_s": 1.4, "load": 0.4}
    return {
        "state": "up",
        "since_s": BEGAN_S if site != "fog-1" or second < 40 else BEGAN_S + 50,
        "memory_bytes": 210e6,
        "cpu": 0.0 if site == "cloud" and second < 6 else 0.42,
        "load": 0.3,
        "lag_s": _lag(second),
        "renewed_at_s": renewed_at_s,
    }
