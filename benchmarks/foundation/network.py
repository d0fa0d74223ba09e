"""How fast a network of 250,500 nodes is generated and loaded, and how much memory it takes."""

from __future__ import annotations

import gc
import tempfile
import time
import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import numpy as np

import thalweg as tw
from benchmarks.measure import call_fresh, median_seconds, resident_bytes
from benchmarks.runner import Count, Row, Settings

SHAPE, SMOKE_SHAPE = (500, 500, 500), (5, 5, 5)
"""Clouds, edge sites, devices per site."""


def measure_network(settings: Settings) -> list[Row]:
    """Each figure is that of a fresh process: what a user waits for is the first call."""
    turns = settings.pick(full=11, quick=3, smoke=1)
    shape = _shape(settings)
    settings.tell("a network: generate")
    generated = [call_fresh(generate, shape=shape) for _ in range(turns)]
    held = call_fresh(hold, shape=shape)
    nodes = held["nodes"]
    note = f"median of {turns} fresh processes"
    rows = [
        Row(measure="network", value=nodes, unit="nodes"),
        Row(
            measure="network generated",
            value=median(run["first_s"] for run in generated),
            unit="s",
            target=1.0,
            note=note,
        ),
        Row(
            measure="network generated, again in the same process",
            value=median(run["again_s"] for run in generated),
            unit="s",
            note=note,
        ),
        Row(
            measure="network held",
            value=held["held_bytes"] / nodes,
            unit="B/node",
            target=100,
            note="by its own account: the bytes of its arrays",
        ),
        Row(
            measure="network held, traced",
            value=held["traced_bytes"] / nodes,
            unit="B/node",
            target=100,
            note="by tracemalloc: what is allocated after, less before",
        ),
        Row(
            measure="network held, resident",
            value=median(run["resident_bytes"] for run in generated) / nodes,
            unit="B/node",
            note="by the kernel: resident memory after, less before",
        ),
        Row(
            measure="memory while it is generated, traced",
            value=held["traced_peak_bytes"],
            unit="B",
        ),
    ]
    return rows + _measure_files(settings, shape, turns)


def count_nodes(rows: Sequence[Row], settings: Settings) -> Count:
    """The nodes that were measured, against those that the shape has."""
    clouds, sites, devices = _shape(settings)
    found = next(int(str(row.value)) for row in rows if row.measure == "network")
    return Count(name="nodes", expected=clouds + sites * devices, counted=found)


def _shape(settings: Settings) -> tuple[int, int, int]:
    return SMOKE_SHAPE if settings.smoke else SHAPE


def _measure_files(settings: Settings, shape: Sequence[int], turns: int) -> list[Row]:
    settings.tell("the same network from Parquet files")
    with tempfile.TemporaryDirectory(prefix="thalweg-bench-") as folder:
        place = Path(folder) / "network"
        network = _generate(shape)
        start = time.perf_counter()
        tw.save(network, place)
        saved_s = time.perf_counter() - start
        size = sum(file.stat().st_size for file in place.rglob("*") if file.is_file())
        loads = [call_fresh(load, folder=str(place)) for _ in range(turns)]
        _require_same(network, tw.load_network(place))
    note = f"median of {turns} fresh processes"
    return [
        Row(
            measure="network loaded from Parquet",
            value=median(run["first_s"] for run in loads),
            unit="s",
            target=0.5,
            note=f"{note}; imports apart",
        ),
        Row(
            measure="network loaded from Parquet, again in the same process",
            value=median(run["again_s"] for run in loads),
            unit="s",
            note=note,
        ),
        Row(
            measure="import pyarrow.parquet",
            value=median(run["import_pyarrow_s"] for run in loads),
            unit="s",
            note=note,
        ),
        Row(
            measure="import thalweg.files.load after it",
            value=median(run["import_files_s"] for run in loads),
            unit="s",
            note=note,
        ),
        Row(measure="network saved as Parquet", value=saved_s, unit="s", note="once"),
        Row(measure="network as Parquet", value=size, unit="B"),
    ]


def generate(shape: Sequence[int]) -> dict[str, float]:
    """Generate the network in this process, for the first time and again."""
    gc.collect()
    before = resident_bytes()
    start = time.perf_counter()
    network = _generate(shape)
    first_s = time.perf_counter() - start
    gc.collect()
    grown = resident_bytes() - before
    del network
    return {
        "first_s": first_s,
        "resident_bytes": grown,
        "again_s": median_seconds(lambda: _generate(shape), repeats=5, warm_up=0),
    }


def hold(shape: Sequence[int]) -> dict[str, float]:
    """What the network takes; tracing slows everything down, so nothing is timed here."""
    tracemalloc.start()
    gc.collect()
    before, _ = tracemalloc.get_traced_memory()
    network = _generate(shape)
    gc.collect()
    after, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return {
        "nodes": network.node_count,
        "held_bytes": network.held_bytes,
        "traced_bytes": after - before,
        "traced_peak_bytes": peak - before,
    }


def load(folder: str) -> dict[str, float]:
    """Load the network in this process, for the first time and again."""
    start = time.perf_counter()
    import pyarrow.parquet  # noqa: F401

    after_pyarrow = time.perf_counter()
    from thalweg.files.load import load_network

    after_files = time.perf_counter()
    load_network(folder)
    loaded = time.perf_counter()
    return {
        "import_pyarrow_s": after_pyarrow - start,
        "import_files_s": after_files - after_pyarrow,
        "first_s": loaded - after_files,
        "again_s": median_seconds(lambda: load_network(folder), repeats=5, warm_up=0),
    }


def _generate(shape: Sequence[int]) -> tw.Network:
    return tw.scenarios.cloud_edge(*shape, seed=0)


def _require_same(saved: tw.Network, loaded: tw.Network) -> None:
    """A loader that is fast because it leaves something out is no loader."""
    for name, value in vars(saved).items():
        if isinstance(value, np.ndarray) and not np.array_equal(
            value, getattr(loaded, name), equal_nan=value.dtype.kind == "f"
        ):
            raise RuntimeError(f"{name} of the loaded network differs from the saved one")
    sites = np.arange(saved.site_count)
    for name in ("latency_s", "available_bps"):
        figures = (getattr(n.wan, name)(sites[:, None], sites[None, :]) for n in (saved, loaded))
        if not np.array_equal(*figures):
            raise RuntimeError(f"the links' {name} of the loaded network differ from the saved one")
    if saved.site_names != loaded.site_names:
        raise RuntimeError("the loaded network has other sites than the saved one")
