"""Draws a replay: usage, uplink and response time against their limits, and the cuts, over time."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np

from thalweg.adapt.record import Replay
from thalweg.model.graph import Floats
from thalweg.plotting import require_plotting
from thalweg.units import BANDWIDTH, DURATION, Dimension

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which people with any colour vision can tell apart.
_LINE, _LIMIT, _FELT, _ADAPTED, _AHEAD = "#0072B2", "#000000", "#E69F00", "#D55E00", "#009E73"
_MOST_NAMED_SITES = 25


def plot_replay(replay: Replay, path: str | os.PathLike[str]) -> None:
    """Draw a replay into a file; its ending says how (.png, .svg or .pdf)."""
    draw_replay(replay).savefig(path, dpi=150)


def draw_replay(replay: Replay) -> Figure:
    """The drawing: four panels over one axis of time.

    Lines are what runs after each decision, dashed ones the limits. A step that began with a
    violation is shaded, adaptations are marked at the bottom: for a cause that was there already,
    and for one that was expected. What is infinite is marked at the top of its panel.
    """
    require_plotting()
    from matplotlib.figure import Figure

    steps = replay.steps
    time_s = np.array([step.time_s for step in steps])
    time_factor, time_unit = _fitting(DURATION, float(np.ptp(time_s)) / 2.0, ("s", "min", "h", "d"))
    # A step lasts until the next one; the last one as long as the one before it.
    last_s = time_s[-1] + (time_s[-1] - time_s[-2] if len(time_s) > 1 else 1.0)
    edges = np.append(time_s, last_s) / time_factor
    uplink = np.array([step.after.uplink_bps for step in steps])
    response = np.array([step.after.response_time_s for step in steps])
    usage = np.array([step.after.usage for step in steps])
    limits = steps[0].after.limits
    figure = Figure(figsize=(10, 9), layout="constrained")
    panels = figure.subplots(4, 1, sharex=True, height_ratios=[1, 1, 1, 1.3])
    _draw_figure(panels[0], edges, usage, limits.usage, "resource usage RU")
    factor, unit = _fitting(BANDWIDTH, _largest(uplink), ("bps", "kbps", "Mbps", "Gbps", "Tbps"))
    _draw_figure(
        panels[1], edges, uplink / factor, limits.uplink_bps / factor, f"uplink B [{unit}]"
    )
    factor, unit = _fitting(DURATION, _largest(response), ("ms", "s", "min"))
    limit = limits.response_time_s / factor
    _draw_figure(panels[2], edges, response / factor, limit, f"response time T [{unit}]")
    for panel in panels[:3]:
        _mark_steps(panel, replay, edges)
    _draw_cuts(figure, panels[3], replay, edges)
    panels[3].set_xlabel(f"time [{time_unit}]")
    panels[0].set_title(f"{replay.application} on {replay.network} by {replay.strategy}")
    handles, labels = panels[0].get_legend_handles_labels()
    named = dict(zip(labels, handles, strict=True))
    for panel in panels[1:3]:
        named |= dict(zip(*reversed(panel.get_legend_handles_labels()), strict=True))
    figure.legend(named.values(), named.keys(), loc="outside lower center", ncols=len(named))
    return figure


def _draw_figure(panel: Axes, edges: Floats, values: Floats, limit: float, label: str) -> None:
    finite = np.isfinite(values)
    shown = np.where(finite, values, np.nan)
    panel.stairs(shown, edges, baseline=None, color=_LINE, label="after the decision")
    top = float(np.nanmax(shown)) if finite.any() else 0.0
    if np.isfinite(limit) and limit <= 20.0 * max(top, 1e-300):
        panel.axhline(limit, color=_LIMIT, linestyle="--", linewidth=1.0, label="limit")
        top = max(top, limit)
    panel.set_ylim(0.0, 1.12 * top if top > 0 else 1.0)
    if not finite.all():
        middle = (edges[:-1] + edges[1:]) / 2.0
        at_top = panel.get_ylim()[1] * np.full(np.count_nonzero(~finite), 0.97)
        panel.plot(middle[~finite], at_top, "x", color=_LINE, clip_on=False, label="infinite")
    panel.set_ylabel(label)
    panel.margins(x=0)
    panel.grid(alpha=0.3)


def _mark_steps(panel: Axes, replay: Replay, edges: Floats) -> None:
    felt = [k for k, step in enumerate(replay.steps) if step.violated]
    for number, k in enumerate(felt):
        label = "began with a violation" if number == 0 else None
        panel.axvspan(edges[k], edges[k + 1], color=_FELT, alpha=0.35, linewidth=0, label=label)
    steps = replay.steps
    for is_ahead, colour, marker, label in (
        (False, _ADAPTED, "^", "adapted"),
        (True, _AHEAD, "v", "adapted ahead"),
    ):
        # Where every step adapts, marks say nothing; where nothing changed, neither.
        at = [
            edges[k]
            for k, step in enumerate(steps)
            if step.adapted and step.ahead == is_ahead and step.started + step.stopped > 0
        ]
        if at:
            low = panel.get_ylim()[1] * 0.04
            panel.plot(at, np.full(len(at), low), marker, color=colour, markersize=5, label=label)


def _draw_cuts(figure: Figure, panel: Axes, replay: Replay, edges: Floats) -> None:
    """How many operators run in each fog, as a map of fogs over time."""
    sites = list(dict.fromkeys(site for step in replay.steps for site in step.cuts))
    panel.set_ylabel("operators in each fog")
    if not sites:
        return
    counts = np.array([[len(step.cuts.get(site, ())) for step in replay.steps] for site in sites])
    most = max(int(counts.max()), 1)
    rows = np.arange(len(sites) + 1) - 0.5
    drawn = panel.pcolormesh(edges, rows, counts, cmap="cividis", vmin=0, vmax=most)
    if len(sites) <= _MOST_NAMED_SITES:
        panel.set_yticks(range(len(sites)), sites, fontsize="small")
    panel.invert_yaxis()
    figure.colorbar(drawn, ax=panel, label="operators", pad=0.01)


def _largest(values: Floats) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.max()) if finite.size else 1.0


def _fitting(dimension: Dimension, largest: float, units: tuple[str, ...]) -> tuple[float, str]:
    """The largest of the units, given in rising order, of which there is at least one."""
    fitting = [unit for unit in units if largest >= dimension.units[unit]] or [units[0]]
    return dimension.units[fitting[-1]], fitting[-1]
