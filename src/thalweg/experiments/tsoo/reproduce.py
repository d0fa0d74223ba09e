"""The whole evaluation of Ntumba et al. 2024: sweep, figures and claims, kept in one folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from thalweg.experiments.reproduction import Evaluation, Reproduction, run_again
from thalweg.experiments.tsoo.claims import compare_with_paper
from thalweg.experiments.tsoo.figures import draw_figures
from thalweg.experiments.tsoo.results import Results
from thalweg.experiments.tsoo.run import COLUMNS, list_points, run_point
from thalweg.experiments.tsoo.setting import REPETITIONS

SEEDS, QUICK_SEEDS, QUICK_REPETITIONS = 20, 2, 2


def reproduce(
    into: Path,
    *,
    master: str | None = None,
    quick: bool = False,
    seeds: int | None = None,
    restart: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
) -> Reproduction:
    """Run both experiments for all seeds, or go on where an earlier call stopped.

    `quick` takes fewer seeds and repetitions: enough to see that everything works.
    """
    evaluation = Evaluation(
        name="tsoo",
        points=list_points(seeds or (QUICK_SEEDS if quick else SEEDS)),
        run=run_point,
        columns=COLUMNS,
        settings={"repetitions": QUICK_REPETITIONS if quick else REPETITIONS},
        judge=lambda table: compare_with_paper(Results.of(table)),
        draw=lambda table, folder: draw_figures(Results.of(table), folder),
    )
    return run_again(evaluation, into, master=master, restart=restart, on_progress=on_progress)
