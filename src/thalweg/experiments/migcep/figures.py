"""Figures 9 and 10 of Ottenwälder et al. 2013, drawn from our results."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from thalweg.experiments.migcep.results import Results, panels, short_name
from thalweg.experiments.migcep.run import GREEDY, MIGCEP, OURS, STATIC, uncertain
from thalweg.experiments.rows import Floats
from thalweg.plotting import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BLUE, _SKY, _RED, _GREEN, _ORANGE, _PINK, _, _BLACK = COLOURS
_STYLES = {
    STATIC: (_ORANGE, "v", "-"),
    GREEDY: (_RED, "s", "-"),
    MIGCEP: (_BLUE, "o", "-"),
    OURS: (_BLACK, "x", "--"),
    uncertain("navigation", "weighted-sum"): (_GREEN, "D", "-"),
    uncertain("dead-reckoning", "weighted-sum"): (_PINK, "^", "-"),
    uncertain("dead-reckoning", "naive"): (_PINK, "v", ":"),
    uncertain("learned", "weighted-sum"): (_SKY, "^", "-"),
    uncertain("learned", "naive"): (_SKY, "v", ":"),
    uncertain("learned", "temporal"): (_SKY, "P", "-."),
}
_LABELS = {
    MIGCEP: "migcep, perfect knowledge",
    uncertain("navigation", "weighted-sum"): "navigation, any policy",
}
_STATE = "immutable state [1,000 bytes]"


def draw_figures(results: Results, into: Path) -> list[Path]:
    """Draw both figures as PNG into the folder; returns the files."""
    return [_draw_ninth(results, into / "fig9.png"), _draw_tenth(results, into / "fig10.png")]


def _draw_ninth(results: Results, path: Path) -> Path:
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator

    figure = Figure(figsize=(13.5, 7.6), layout="constrained")
    axes = figure.subplots(2, 3)
    four = axes[0, 0], axes[0, 1], axes[1, 0], axes[1, 1]
    titled = panels(results.of_figure("9a-d"))
    for at, letter, (title, here) in zip(four, "abcd", titled, strict=True):
        for name in (STATIC, GREEDY, MIGCEP, OURS):
            ratio = here.ratio_by("state_bytes", name, STATIC)
            _line(at, np.array(here.levels("state_bytes")) / 1e3, ratio, name)
        _finish(at, f"({letter}) {title} events", _STATE, "average bdp, relative to static")
        # Greedy costs up to ten times as much as static: on an even scale the rest is one line.
        at.set_yscale("log")
        at.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        at.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        at.yaxis.set_minor_formatter("")
    axes[0, 0].legend(frameon=False, fontsize=8)
    _draw_steps(axes[0, 2], results.of_figure("9e"))
    _draw_ranges(axes[1, 2], results.of_figure("9f"))
    figure.savefig(path, dpi=130)
    return path


def _draw_steps(axes: Axes, results: Results) -> None:
    steps_s = results.levels("step_s")
    bdp = results.mean(MIGCEP, "step_s")
    axes.plot(steps_s, bdp / bdp.max(), color=_BLUE, marker="o", label="average bdp (left)")
    other = axes.twinx()
    vertices = results.mean(MIGCEP, "step_s", "vertices")
    other.plot(steps_s, vertices, color=_RED, marker="s", ls=":", label="vertices (right)")
    other.set_yscale("log", base=2)
    other.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    other.set_ylabel("vertices of a time graph")
    _finish(axes, "(e) length of steps", "step [s]", "average bdp, relative to the largest")
    axes.set_xticks(steps_s, [f"{s:g}" for s in steps_s])
    lines = [*axes.get_lines(), *other.get_lines()]
    axes.legend(
        lines,
        [str(line.get_label()) for line in lines],
        loc="upper center",
        frameon=False,
        fontsize=8,
    )


def _draw_ranges(axes: Axes, results: Results) -> None:
    ranges = results.levels("range_m")
    for range_m, colour, marker in zip(ranges, (_RED, _GREEN, _BLUE), "sDo", strict=True):
        here = results.pick(range_m=range_m)
        bdp = here.ratio_by("horizon", MIGCEP, STATIC)
        label = f"range {range_m:,.0f} m"
        axes.plot(here.levels("horizon"), bdp, color=colour, marker=marker, label=label)
    best = results.ratios(OURS, STATIC).mean()
    axes.axhline(best, color=_BLACK, ls="--", lw=1, label=OURS)
    _finish(axes, "(f) steps ahead and range", "steps ahead", "average bdp, relative to static")
    axes.set_ylim(bottom=0)
    axes.set_xscale("log")
    axes.set_xticks(results.levels("horizon"), [f"{h:g}" for h in results.levels("horizon")])
    axes.minorticks_off()
    axes.legend(frameon=False, fontsize=8)


def _draw_tenth(results: Results, path: Path) -> Path:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(15.0, 4.8), layout="constrained")
    axes = figure.subplots(1, 3)
    here = results.of_figure("10ab")
    states = np.array(here.levels("state_bytes")) / 1e3
    sides = {
        "(a) naive": (uncertain("dead-reckoning", "naive"), uncertain("learned", "naive")),
        "(b) weighted sum and temporal": (
            uncertain("dead-reckoning", "weighted-sum"),
            uncertain("learned", "weighted-sum"),
            uncertain("learned", "temporal"),
        ),
    }
    for at, (title, names) in zip(axes, sides.items(), strict=False):
        for name in (GREEDY, uncertain("navigation", "weighted-sum"), *names, MIGCEP, OURS):
            _line(at, states, here.mean(name, "state_bytes"), name)
        _finish(at, title, _STATE, "average bdp [bytes]")
        at.set_ylim(bottom=0)
        at.legend(frameon=False, fontsize=8)
    axes[1].sharey(axes[0])
    _draw_paths(axes[2], results.of_figure("10c"))
    figure.savefig(path, dpi=130)
    return path


def _draw_paths(axes: Axes, results: Results) -> None:
    intervals = results.levels("interval_s")
    for k, interval_s in enumerate(intervals):
        here = results.pick(interval_s=interval_s)
        cost = here.by("k", here.values("bdp_bytes"))
        label = f"every {interval_s:g} s"
        paths = here.levels("k")
        axes.plot(paths, cost / cost[-1], color=COLOURS[k], marker="osD^v"[k % 5], label=label)
    axes.set_xscale("log", base=2)
    axes.set_xticks(paths, [f"{k:g}" for k in paths])
    axes.minorticks_off()
    axes.ticklabel_format(axis="y", useOffset=False)
    title = "(c) k-shortest, events of changing size"
    _finish(axes, title, "number of paths k", "average bdp, relative to the largest k")
    axes.legend(frameon=False, fontsize=8, title="size changes", title_fontsize=8)


def _line(axes: Axes, x: Floats, y: Floats, name: str) -> None:
    colour, marker, style = _STYLES[name]
    label = _LABELS.get(name, short_name(name).replace("/", ", "))
    axes.plot(x, y, color=colour, marker=marker, ls=style, ms=5, lw=1.2, label=label)


def _finish(axes: Axes, title: str, x: str, y: str) -> None:
    axes.set_title(title, fontsize=10)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(alpha=0.3)
