"""One small file of every kind that Thalweg reads, each of them right; made in a folder."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from property.spoiling import APPLICATION, CITY, NETWORKS, PLAN
from thalweg.cli.entry import run
from thalweg.files.transitions_table import TransitionTable, save_transitions
from thalweg.model import Application, Network
from thalweg.scenarios import fog_cloud, taxi_demand
from thalweg.spark.deployment.folder import HistoryEntry, RunFolder
from thalweg.spark.deployment.manifest import RunManifest
from thalweg.spark.deployment.timeline import Timeline
from thalweg.spark.log.founding import found_log

CHANGES = {
    "thalweg": 1,
    "changes": [
        {"at": "1 s", "rates": [{"source": "rides", "site": "hub-west", "rate": "50 events/s"}]},
        {"at": "1.5 s", "plan": "plan.json"},
    ],
}


def write_documents(folder: Path) -> None:
    """Applications, networks, plans, workloads and changes, as YAML, JSON and CSV."""
    (folder / "app.yaml").write_text(yaml.safe_dump(APPLICATION))
    (folder / "app.json").write_text(json.dumps(APPLICATION))
    for number, network in enumerate(NETWORKS):
        # By way of JSON: what is there twice in memory would be an anchor in YAML.
        plain = json.loads(json.dumps(network))
        (folder / f"network-{number}.yaml").write_text(yaml.safe_dump(plain))
        (folder / f"network-{number}.json").write_text(json.dumps(network))
    (folder / "plan.json").write_text(json.dumps(PLAN))
    (folder / "changes.yaml").write_text(yaml.safe_dump(CHANGES))
    (folder / "changes.json").write_text(json.dumps(CHANGES))
    rows = [f"{t},rides,hub-{where},{10 + t}" for t in (0, 60, 120) for where in ("west", "east")]
    (folder / "days.csv").write_text("\n".join(["time_s,source,site,rate", *rows, ""]))
    births = [f"rides,hub-west,{t / 10}" for t in range(20)]
    (folder / "births.csv").write_text("\n".join(["source,site,time_s", *births, ""]))
    times = [f"parse,{0.001 * t}" for t in range(1, 20)]
    (folder / "times.csv").write_text("\n".join(["operator,seconds", *times, ""]))
    stamps = [f"2014-07-01 0{hour}:00:00,{100 + hour}" for hour in range(8)]
    (folder / "curve.csv").write_text("\n".join(["timestamp,value", *stamps, ""]))


def write_tables(folder: Path) -> None:
    """Workloads, traces, routes, transitions, samples and trips, as Parquet and CSV."""
    from thalweg.files.load import load_workload
    from thalweg.files.save import save

    save(load_workload(folder / "days.csv"), folder / "days.parquet")
    save(load_workload(folder / "days.csv"), folder / "days.yaml")
    births = {"source": ["rides"] * 9, "site": ["hub-west"] * 9, "time_s": np.arange(9.0)}
    pq.write_table(pa.table(births), folder / "births.parquet")
    times = {"operator": ["parse"] * 9, "seconds": np.arange(1.0, 10.0) / 1e3}
    pq.write_table(pa.table(times), folder / "times.parquet")
    traced = ["mobility", "trace", "--vehicles", "6", "--for", "20", "--output"]
    assert run([*traced, str(folder / "traced")]) == 0
    tracks = pq.read_table(folder / "traced" / "tracks.parquet")
    columns = {name: tracks[name].to_pylist() for name in tracks.column_names}
    lines = [",".join(map(str, row)) for row in zip(*columns.values(), strict=True)]
    (folder / "tracks.csv").write_text("\n".join([",".join(columns), *lines, ""]))
    counted = TransitionTable.of_rows(
        {("", "a", "b"): (3, 20.0, 4.0), ("a", "b", ""): (1, 5.0, 0.0), ("b", "a", "b"): (2, 1, 0)}
    )
    save_transitions(counted, folder / "transitions.parquet")
    moments = pa.array(np.arange(5) * 60_000_000, pa.timestamp("us"))
    later = pa.array((np.arange(5) + 10) * 60_000_000, pa.timestamp("us"))
    trips = {
        "tpep_pickup_datetime": moments,
        "tpep_dropoff_datetime": later,
        "PULocationID": np.arange(1, 6),
        "DOLocationID": np.arange(2, 7),
        "trip_distance": np.arange(1.0, 6.0),
        "fare_amount": np.arange(5.0, 10.0),
        "tip_amount": np.ones(5),
    }
    pq.write_table(pa.table(trips), folder / "trips.parquet")


def write_matrices(folder: Path) -> None:
    """Round trips, as NumPy's archive, NumPy's array and CSV."""
    matrix = np.array([[0.0, 5.0, 9.0], [5.0, 0.0, 7.0], [9.0, 7.0, 0.0]])
    np.savez(folder / "rtt.npz", rtt_ms=matrix)
    np.savez_compressed(folder / "packed.npz", rtt_ms=matrix)
    np.save(folder / "rtt.npy", matrix)
    np.savetxt(folder / "rtt.csv", matrix, delimiter=",")


def write_networks(folder: Path) -> None:
    """A folder of Parquet files for each shape that a network can have."""
    from thalweg.files.load import load_network
    from thalweg.files.save import save

    save(CITY, folder / "city")
    for number in range(1, len(NETWORKS)):
        found = load_network(folder / f"network-{number}.yaml")
        save(found, folder / f"{found.name}-folder")


def write_run(folder: Path, app: Application | None = None, net: Network | None = None) -> Path:
    """The folder of a run that has ended, as the run would have left it."""
    app, net = app or taxi_demand(), net or fog_cloud(2)
    run_folder = RunFolder(folder)
    folder.mkdir(parents=True)
    found_log(folder / "log")
    fogs = ("fog-0", "fog-1")
    run_folder.write_manifest(
        RunManifest(pipeline="taxi", graph="0", network=net.name, fogs=fogs, cloud="cloud")
    )
    run_folder.write_model(app, net)
    names = [o.name for o in app.operators if o.kind == "transform"]
    before, after = {fog: tuple(names[:1]) for fog in fogs}, dict.fromkeys(fogs, ())
    plan = run_folder.keep_plan(json.dumps(PLAN))
    run_folder.write_history(
        [
            HistoryEntry(cuts=before, reason="first deployment", at_s=10.0, plan=plan),
            HistoryEntry(cuts=after, reason="uplink too full", at_s=20.0),
        ]
    )
    rates = {("rides", fog): 100.0 for fog in fogs}
    timeline = Timeline(folder)
    timeline.write_cuts(10.0, "first", "first deployment", before, plan=plan, rates=rates)
    frame = _frame(fogs)
    for at_s in (11.0, 12.0):
        _append(folder, {**frame, "at_s": at_s})
    timeline.write_cuts(20.0, "adapt", "uplink too full", after, rates=rates)
    timeline.write_mark(21.0, "failure", "fog-0 died", "signal 9")
    _append(folder, {**frame, "at_s": 22.0})
    run_folder.write_decision({"at_s": 10.0, "cause": "first", "reason": "first", "plan": plan})
    site = {"alive": False, "pid": 1, "silent_s": 1.0, "queries": [_query()]}
    status = {
        "pipeline": "taxi",
        "network": net.name,
        "state": "ended",
        "strategy": "atsoo",
        "heartbeat_s": 30.0,
        "pid": 1,
        "rows_in": 1234,
        "rates": {"rides": dict.fromkeys(fogs, 100.0)},
        "cuts": {fog: list(cut) for fog, cut in after.items()},
        "sites": {**dict.fromkeys(fogs, site), "cloud": {**site, "queries": []}},
        "last_decision": {"reason": "uplink too full"},
    }
    run_folder.write_status(status)
    run_folder.write_report({"rows_in": 1234, "state": "ended"})
    return folder


def _frame(fogs: tuple[str, ...]) -> dict[str, Any]:
    return {
        "kind": "frame",
        "figures": {"response_time_s": 0.5, "uplink_bps": 1e5, "usage": 0.1},
        "rates": {"rides": dict.fromkeys(fogs, 100.0)},
        "events_in_per_s": 200.0,
        "events_out_per_s": 3.0,
        "sites": {fog: {"state": "up", "cpu": 0.5, "memory_bytes": 10} for fog in fogs},
        "links": {fog: {"bps": 3e4, "lag_s": 0.2} for fog in fogs},
        "operators": {fogs[0]: {"parse": [100.0, 99.0]}},
    }


def _query() -> dict[str, Any]:
    return {
        "name": "fog",
        "state": "running",
        "batch": 7,
        "input_rows_per_s": 10.0,
        "processed_rows_per_s": 10.0,
        "batch_s": 0.1,
        "watermark": None,
        "error": None,
    }


def _append(folder: Path, line: dict[str, Any]) -> None:
    with (folder / "timeline.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")


def write_simulation(folder: Path) -> Path:
    """A simulation with a change of rates and a change of plan."""
    case = folder.with_name(f"{folder.name}-case")
    case.mkdir()
    write_documents(case)
    words = ["app.json", "network-0.json", "plan.json"]
    files = [str(case / word) for word in words]
    more = ["--changes", str(case / "changes.yaml"), "--for", "2", "--output", str(folder)]
    assert run(["simulate", *files, *more]) == 0
    return folder


def write_city(folder: Path) -> Path:
    """A city in motion, with its tables and, beside the folder, its page."""
    asked = ["mobility", "run", "--vehicles", "6", "--for", "20", "--approach", "static"]
    page = folder.with_suffix(".html")
    assert run([*asked, "--output", str(folder), "--plot", str(page)]) == 0
    return folder


def write_schedule(folder: Path) -> list[Path]:
    """An application, a network, a workload and the steps of its schedule."""
    from thalweg.files.save import save

    folder.mkdir()
    save(taxi_demand(), folder / "app.yaml")
    save(fog_cloud(2), folder / "net.yaml")
    rows = [
        f"{t},rides,fog-{k},{5000 * f}" for t, f in ((0, 1), (600, 4), (1200, 1)) for k in (0, 1)
    ]
    (folder / "days.csv").write_text("\n".join(["time_s,source,site,rate", *rows, ""]))
    files = [folder / name for name in ("app.yaml", "net.yaml", "days.csv")]
    words = ["schedule", *map(str, files[:2]), "--workload", str(files[2])]
    assert run([*words, "--output", str(folder / "steps.parquet")]) == 0
    return [*files, folder / "steps.parquet"]


def write_results(folder: Path) -> Path:
    """Tables, a picture and a manifest of no known kind."""
    (folder / "inner").mkdir(parents=True)
    rows = {"seed": [0, 1], "name": ["a", "b"], "value": [1.5, float("nan")], "list": [[1], []]}
    pq.write_table(pa.table(rows), folder / "rows.parquet")
    pq.write_table(pa.table(rows), folder / "inner" / "more.parquet")
    (folder / "inner" / "plot.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    (folder / "manifest.json").write_text(json.dumps({"seed": 0, "command": "thalweg"}))
    return folder


STORED: dict[str, Callable[[Path], Any]] = {
    "run": write_run,
    "simulation": write_simulation,
    "city": write_city,
    "schedule": write_schedule,
    "results": write_results,
}
