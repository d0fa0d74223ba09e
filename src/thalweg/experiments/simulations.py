"""Many runs of a simulation side by side on Spark, and at several rates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import pyarrow as pa

from thalweg.errors import ThalwegError
from thalweg.simulate.run import Experiment
from thalweg.simulate.saving import run_from_json, run_to_json
from thalweg.simulate.simulation import Simulation
from thalweg.spark.sweep import sweep
from thalweg.spark.sweep.packing import pack, unpack

_COLUMNS = pa.schema([("run", pa.string())])


class RunFailed(ThalwegError):
    """A run of a simulation raised instead of ending."""


def run_on_spark(
    experiments: Sequence[Experiment],
    *,
    master: str | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> list[Simulation]:
    """Every run of every experiment as a task of its own, on any Spark.

    The same as one after the other, to the last bit: a run depends on its seed and number alone.
    """
    points = [
        {"experiment": number, "replication": replication}
        for number, experiment in enumerate(experiments)
        for replication in range(experiment.replications)
    ]
    started = perf_counter()
    with TemporaryDirectory(prefix="thalweg-runs-") as folder:
        found = sweep(
            points,
            run_point,
            into=Path(folder) / "sweep",
            columns=_COLUMNS,
            name="simulate",
            settings={"experiments": pack(tuple(experiments))},
            master=master,
            on_progress=on_progress,
        )
        if found.failures:
            raise RunFailed(str(found.failures[0]))
        table = found.table
        wall_s = perf_counter() - started
    texts = zip(table["experiment"].to_pylist(), table["run"].to_pylist(), strict=True)
    runs: list[list[Any]] = [[] for _ in experiments]
    for number, text in texts:
        runs[number].append(run_from_json(text))
    return [
        experiment.summarise(own, wall_s) for experiment, own in zip(experiments, runs, strict=True)
    ]


def run_point(point: Mapping[str, Any]) -> list[dict[str, object]]:
    """The run that a point names, of the experiments that come with it."""
    experiments: tuple[Experiment, ...] = unpack(str(point["experiments"]))
    experiment = experiments[int(point["experiment"])]
    return [{"run": run_to_json(experiment.run(int(point["replication"])))}]
