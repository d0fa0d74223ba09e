"""The whole evaluation of Ottenwälder et al. 2013: sweep, figures and claims, in one folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from thalweg.errors import Defects
from thalweg.experiments.migcep.claims import compare_with_paper
from thalweg.experiments.migcep.figures import draw_figures
from thalweg.experiments.migcep.results import Results
from thalweg.experiments.migcep.run import COLUMNS, CONSTANT, list_points, run_point
from thalweg.experiments.migcep.setting import SECONDS, VEHICLES, require_data
from thalweg.experiments.reproduction import Evaluation, Reproduction, run_again

REPETITIONS, QUICK_REPETITIONS = 5, 1
# Fewer where plans branch: those take a hundred times as long.
INSTANCES = {"10c": 24, CONSTANT: 24, "10ab": 24, "9a-d": 300, "9f": 150, "9e": 300, "messages": 40}
QUICK_INSTANCES = {"10c": 4, CONSTANT: 4, "10ab": 3, "9a-d": 40, "9f": 20, "9e": 60, "messages": 20}


def reproduce(
    into: Path,
    *,
    data: Path | None = None,
    master: str | None = None,
    quick: bool = False,
    repetitions: int | None = None,
    restart: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
    instances: Mapping[str, int] | None = None,
    vehicles: int = VEHICLES,
) -> Reproduction:
    """Run all points of Figures 9 and 10, or go on where an earlier call stopped.

    `data` is a folder with SUMO's tables, which the workers have to find there, too; without it
    vehicles are generated. `quick` takes one repetition and few instances; `instances` says how
    many there are in each figure.
    """
    defects = Defects()
    good = repetitions is None or (isinstance(repetitions, int) and repetitions >= 1)
    defects.require(good, "repetitions", repetitions, "a whole number >= 1")
    defects.raise_if_any()
    folder = "" if data is None else str(require_data(data))
    trace = f"SUMO's tables in {folder}"
    if data is None:
        trace = f"{vehicles:,} generated ones over {SECONDS:,} s, like those of Luxembourg"
    many = repetitions or (QUICK_REPETITIONS if quick else REPETITIONS)
    evaluation = Evaluation(
        name="migcep",
        points=list_points(many, instances or (QUICK_INSTANCES if quick else INSTANCES)),
        run=run_point,
        columns=COLUMNS,
        settings={"data": folder, "vehicles": vehicles},
        judge=lambda table: compare_with_paper(Results.of(table), trace),
        draw=lambda table, here: draw_figures(Results.of(table), here),
    )
    return run_again(evaluation, into, master=master, restart=restart, on_progress=on_progress)
