"""Figures 8–12 of Ntumba et al. 2024, drawn from our results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from thalweg.experiments.tsoo.results import DEMAND, FARES, Results
from thalweg.experiments.tsoo.setting import LEVELS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's colours, and a marker each: readable without colour, too.
_STYLES = {
    "tsoo": ("#0072B2", "o"),
    "atsoo": ("#D55E00", "s"),
    "trcs": ("#009E73", "^"),
    "fog-only": ("#CC79A7", "v"),
    "fc-interplay": ("#E69F00", "D"),
    "tsoo-optimal": ("#000000", "x"),
}
# (file, experiment, panels of (application or None for both, column, factor, label))
_FIGURES: tuple[tuple[str, int, tuple[tuple[str | None, str, float, str], ...]], ...] = (
    (
        "figure-8",
        1,
        ((FARES, "usage", 1, "RU of App-1"), (DEMAND, "usage", 1, "RU of App-2")),
    ),
    (
        "figure-9",
        1,
        (
            (FARES, "uplink_violated", 100, "B violated, App-1 [%]"),
            (DEMAND, "uplink_violated", 100, "B violated, App-2 [%]"),
            (DEMAND, "time_violated", 100, "T violated, App-2 [%]"),
        ),
    ),
    (
        "figure-10",
        1,
        (
            (FARES, "seconds", 1e3, "time of a decision, App-1 [ms]"),
            (FARES, "changes", 1, "operators started + stopped, App-1"),
        ),
    ),
    (
        "figure-11",
        1,
        (
            (DEMAND, "seconds", 1e3, "time of a decision, App-2 [ms]"),
            (DEMAND, "changes", 1, "operators started + stopped, App-2"),
        ),
    ),
    (
        "figure-12",
        2,
        (
            (None, "fog_memory_share", 100, "fog memory used [%]"),
            (None, "uplink_share", 100, "uplinks used [%]"),
            (None, "feasible", 100, "success rate [%]"),
        ),
    ),
)


def draw_figures(results: Results, into: Path) -> list[Path]:
    """Draw every figure as PNG into the folder; returns the files."""
    from matplotlib.figure import Figure

    written = []
    for name, experiment, panels in _FIGURES:
        here = results.pick(experiment=experiment)
        figure = Figure(figsize=(4.6 * len(panels), 3.8), layout="constrained")
        for axes, panel in zip(figure.subplots(1, len(panels)), panels, strict=True):
            _draw_panel(axes, here, here.strategies, *panel)
        axes.legend(frameon=False)
        path = into / f"{name}.png"
        figure.savefig(path, dpi=130)
        written.append(path)
    return written


def _draw_panel(
    axes: Axes,
    results: Results,
    strategies: Sequence[str],
    application: str | None,
    column: str,
    factor: float,
    label: str,
) -> None:
    levels = np.arange(1, LEVELS + 1)
    for name in strategies:
        here = results.pick(strategy=name)
        if application is not None:
            here = here.pick(application=application)
        colour, marker = _STYLES[name]
        axes.plot(
            levels,
            factor * here.by_level(column),
            color=colour,
            marker=marker,
            markersize=5,
            linewidth=1.2,
            label=name,
        )
    axes.set_xticks(levels, [f"M{level}" for level in levels])
    axes.set_ylabel(label)
    axes.set_xlabel("number of devices, M1 < … < M11")
    axes.set_ylim(bottom=0)
    if "[%]" in label and axes.get_ylim()[1] < 1:
        axes.set_ylim(top=100)
    axes.grid(alpha=0.3)
