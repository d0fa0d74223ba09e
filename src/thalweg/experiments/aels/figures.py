"""Figures 5–10 and Tables 5–7 of da Silva Veith et al., from our results."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from thalweg.experiments.aels.advantage import SIMULATED
from thalweg.experiments.aels.claims import (
    GROUPS,
    OUR_LIMIT_S,
    PAPER_LIMIT_S,
    SIZES,
)
from thalweg.experiments.rows import Rows
from thalweg.plotting import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FIRST_FIGURE = {"regular": 5, "large": 7, "extra-large": 9}
_TABLES = {"regular": 5, "large": 6, "extra-large": 7}


def draw_all(rows: Rows, into: Path) -> list[Path]:
    """Draw and write whatever there are runs of; gives the files."""
    files = []
    for group in GROUPS:
        here = rows.pick(group=group)
        if not len(here):
            continue
        first = _FIRST_FIGURE[group]
        files += [
            _draw(here, into / f"figure-{first}.png", "seconds", 1e3, "resolution time [ms]"),
            _draw(
                here,
                into / f"figure-{first + 1}.png",
                SIMULATED.latency,
                1.0,
                "simulated aggregate end-to-end latency [s]",
            ),
            _write_table(here, into / f"table-{_TABLES[group]}.csv"),
        ]
    return files


def _draw(rows: Rows, file: Path, column: str, factor: float, label: str) -> Path:
    """A panel for each size of application: box and whiskers for each strategy."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13.0, 4.2), layout="constrained")
    panels = figure.subplots(1, len(SIZES))
    for axes, size in zip(panels, SIZES, strict=True):
        _draw_panel(axes, rows.pick(size=size), column, factor)
        axes.set_title(f"{size} applications", fontsize=10)
    panels[0].set_ylabel(label)
    figure.savefig(file, dpi=130)
    return file


def _draw_panel(axes: Axes, rows: Rows, column: str, factor: float) -> None:
    names = rows.strategies
    values = []
    for name in names:
        here = rows.pick(strategy=name)
        found = here.values(column) * factor
        # The latency of what breaks a constraint is no merit.
        found = found[here.values("feasible") > 0] if column != "seconds" else found
        values.append(found[np.isfinite(found)])
    shown = [k for k, found in enumerate(values) if found.size]
    if shown:
        boxes = axes.boxplot(
            [values[k] for k in shown],
            positions=shown,
            widths=0.6,
            patch_artist=True,
            showfliers=False,
            medianprops={"color": "black"},
        )
        for k, box in zip(shown, boxes["boxes"], strict=True):
            box.set_facecolor(COLOURS[k % len(COLOURS)])
            box.set_alpha(0.7)
        axes.set_yscale("log")
    axes.set_xlim(-0.6, len(names) - 0.4)
    axes.set_xticks(range(len(names)), names, rotation=30, ha="right", fontsize=8)
    axes.grid(axis="y", alpha=0.3)


def _write_table(rows: Rows, file: Path) -> Path:
    """The share of runs over a time limit, by strategy and size of application."""
    with file.open("w", newline="", encoding="utf-8") as out:
        writer = csv.writer(out)
        writer.writerow(["strategy", "limit_s", *(f"{size} [%]" for size in SIZES)])
        for name in rows.strategies:
            for limit_s in (PAPER_LIMIT_S, OUR_LIMIT_S):
                shares = []
                for size in SIZES:
                    seconds = rows.pick(strategy=name, size=size).values("seconds")
                    share = float((seconds > limit_s).mean()) if seconds.size else np.nan
                    shares.append(f"{100 * share:.1f}")
                writer.writerow([name, limit_s, *shares])
    return file
