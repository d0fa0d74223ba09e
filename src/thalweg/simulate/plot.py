"""Draws a simulation: how long events take, how long queues are, how busy everything is."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np

from thalweg.plotting import COLOURS, require_plotting
from thalweg.simulate.simulation import Simulation

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_LINES = 6
_MOST_BARS = 14
_LONGEST_NAME = 34


def plot_simulation(found: Simulation, path: str | os.PathLike[str]) -> None:
    """Draw a simulation into a file; its ending says how (.png, .svg or .pdf)."""
    draw_simulation(found).savefig(path, dpi=150)


def draw_simulation(found: Simulation) -> Figure:
    """The drawing: four panels."""
    require_plotting()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 9), layout="constrained")
    panels = figure.subplots(2, 2)
    _draw_latency(panels[0, 0], found)
    _draw_queues(panels[0, 1], found)
    _draw_busy(panels[1, 0], found)
    _draw_estimates(panels[1, 1], found)
    names = " and ".join(found.applications)
    runs = "" if found.replications == 1 else f", {found.replications} runs"
    figure.suptitle(f"{names} on {found.network}: {found.seconds:g} s{runs}")
    return figure


def _draw_latency(panel: Axes, found: Simulation) -> None:
    """Which share of the events took at most how long."""
    for number, application in enumerate(found.applications):
        counts: dict[float, int] = {}
        for run in found.runs:
            for row in run.histogram:
                if row["application"] == application:
                    counts[row["to_s"]] = counts.get(row["to_s"], 0) + row["events"]
        if not counts:
            continue
        ends = np.array(sorted(counts))
        share = np.cumsum([counts[end] for end in ends.tolist()]) / sum(counts.values())
        colour = COLOURS[number % len(COLOURS)]
        panel.step(ends, share, where="post", color=colour, label=application)
        for part in (0.5, 0.95, 0.99):
            at = float(ends[int(np.searchsorted(share, part))])
            panel.plot([at], [part], "o", color=colour, markersize=4)
            panel.annotate(
                f"p{part * 100:.0f} {_seconds(at)}", (at, part), textcoords="offset points",
                xytext=(6, -10), fontsize=8,
            )  # fmt: skip
    panel.set_xscale("log")
    panel.set_xlabel("latency from birth to sink [s]")
    panel.set_ylabel("share of events")
    panel.set_title("latency")
    if len(found.applications) > 1:
        panel.legend()
    panel.grid(alpha=0.3)


def _draw_queues(panel: Axes, found: Simulation) -> None:
    """The longest queues over time, in the first run."""
    rows = sorted(found.runs[0].queues, key=lambda row: (-max(row["queue"]), row["name"]))
    for number, row in enumerate(rows[:_MOST_LINES]):
        colour = COLOURS[number % len(COLOURS)]
        panel.plot(row["time_s"], row["queue"], color=colour, label=_short(row["name"]), lw=1.2)
    for segment in found.runs[0].segments[1:]:
        panel.axvline(segment["begin_s"], color="0.5", lw=0.8, ls="--")
    panel.axvspan(0, found.warm_up_s, color="0.9", label="warm-up")
    panel.set_xlim(0, found.seconds)
    # A window holds thousands, a link a few: both are to be seen.
    panel.set_yscale("symlog", linthresh=10)
    panel.set_ylim(bottom=0)
    panel.set_xlabel("time [s]")
    panel.set_ylabel("events there")
    panel.set_title("longest queues" + (" (first run)" if found.replications > 1 else ""))
    panel.legend(fontsize=8)
    panel.grid(alpha=0.3)


def _draw_busy(panel: Axes, found: Simulation) -> None:
    """Which part of the time operators and links are busy."""
    rows = [
        (row["utilisation"], _short(row["name"]), colour, row.get("utilisation_ci", np.nan))
        for table, colour in (("operators", COLOURS[0]), ("links", COLOURS[4]))
        for row in found.rows(table)
        if row["utilisation"] > 0
    ]
    rows = sorted(rows, key=lambda row: (-row[0], row[1]))[:_MOST_BARS][::-1]
    places = np.arange(len(rows))
    error = [row[3] if np.isfinite(row[3]) else 0.0 for row in rows]
    panel.barh(places, [row[0] for row in rows], color=[row[2] for row in rows], xerr=error)
    panel.set_yticks(places, [row[1] for row in rows], fontsize=8)
    panel.axvline(1.0, color="black", lw=0.8, ls="--")
    panel.set_xlim(0, max(1.05, *(row[0] for row in rows)) if rows else 1.05)
    panel.set_xlabel("part of the time that it is busy")
    panel.set_title("busiest operators (blue) and links (orange)")


def _draw_estimates(panel: Axes, found: Simulation) -> None:
    """Time at each operator, estimated and measured."""
    rows = [row for row in found.rows("operators") if row["latency_s"] > 0]
    rows = sorted(rows, key=lambda row: (-row["latency_s"], row["name"]))[:_MOST_BARS][::-1]
    places = np.arange(len(rows))
    measured = [row["latency_s"] for row in rows]
    estimated = [row["estimated_s"] if np.isfinite(row["estimated_s"]) else 0.0 for row in rows]
    panel.barh(places + 0.2, measured, height=0.38, color=COLOURS[0], label="measured")
    panel.barh(places - 0.2, estimated, height=0.38, color=COLOURS[2], label="estimated")
    panel.set_yticks(places, [_short(row["name"]) for row in rows], fontsize=8)
    if rows:
        panel.set_xscale("log")
        panel.legend(fontsize=8)
    panel.set_xlabel("waiting and service at the operator [s]")
    panel.set_title("slowest operators, estimated and measured")


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"


def _seconds(value: float) -> str:
    return f"{value * 1e3:.3g} ms" if value < 1 else f"{value:.3g} s"
