"""Is the ground fast and small enough?

`import thalweg`; a network of 250,500 nodes generated, held and loaded; the aggregate latency of
an application of 50 operators with millions of paths.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.foundation.importing import measure_import
from benchmarks.foundation.network import count_nodes, measure_network
from benchmarks.foundation.paths import measure_paths, plot_paths
from benchmarks.runner import REGISTER, Benchmark, Result, Settings


def run(settings: Settings) -> Result:
    """Measure the parts one after the other, never two at a time."""
    rows = []
    for measure in (measure_import, measure_network, measure_paths):
        rows += measure(settings)
    notes = [
        "fresh processes use byte code, as an installed package does",
        "a deployment's aggregate latency: rates, demand, service and communication times, sum; "
        "what is the same for all placements of a problem (graph, rates) is known from the first",
    ]
    return Result(rows=rows, notes=notes, counts=[count_nodes(rows, settings)])


def plot(result: Result, path: Path) -> None:
    """Draw how time grows with the number of paths."""
    plot_paths(result, path)


REGISTER.add(
    Benchmark(
        name="foundation",
        question="Is the ground fast and small enough?",
        run=run,
        plot=plot,
    )
)
