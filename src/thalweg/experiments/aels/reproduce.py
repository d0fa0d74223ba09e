"""The whole evaluation of da Silva Veith et al.: sweep, figures and claims, kept in one folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from thalweg.errors import Defects
from thalweg.experiments.aels.claims import compare_with_paper
from thalweg.experiments.aels.figures import draw_all
from thalweg.experiments.aels.run import COLUMNS, list_points, run_point
from thalweg.experiments.reproduction import Evaluation, Reproduction, run_again
from thalweg.experiments.rows import Rows

QUICK_RUNS = 54


def reproduce(
    into: Path,
    *,
    master: str | None = None,
    quick: bool = False,
    limit: int | None = None,
    restart: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
) -> Reproduction:
    """Run every strategy on all 3,510 pairs of network and application, or go on with that.

    `limit` takes about so many of them, spread evenly over networks and graphs; `quick` a few.
    """
    defects = Defects()
    good = limit is None or (isinstance(limit, int) and limit >= 1)
    defects.require(good, "limit", limit, "a whole number of runs >= 1")
    defects.raise_if_any()
    points, draws = list_points(limit or (QUICK_RUNS if quick else None))
    evaluation = Evaluation(
        name="aels",
        points=points,
        run=run_point,
        columns=COLUMNS,
        settings={"draws": draws},
        judge=lambda table: compare_with_paper(Rows.of(table)),
        draw=lambda table, folder: draw_all(Rows.of(table), folder),
    )
    return run_again(evaluation, into, master=master, restart=restart, on_progress=on_progress)
