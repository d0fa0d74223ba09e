"""A study as a figure for a paper: as wide as a page, means with 95 % intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

from thalweg.plotting import COLOURS, require_plotting
from thalweg.study.families import BY_NAME, Figure
from thalweg.study.planned import Row
from thalweg.study.tables import means_of, scale_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

    from thalweg.study.result import Study

PAGE_WIDTH_IN = 7.16
"""As wide as two columns of a journal."""
_ROW_HEIGHT_IN = 1.75
_DECADES = 30.0
_MARKERS = "osD^vP*X<>hp"
_LINES: tuple[Literal["-", "--", ":"], ...] = ("-", "--", ":")
_STYLE: Any = {
    "font.size": 8.0,
    "axes.titlesize": 8.0,
    "axes.labelsize": 8.0,
    "xtick.labelsize": 7.0,
    "ytick.labelsize": 7.0,
    "legend.fontsize": 7.0,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.linewidth": 0.4,
    "grid.alpha": 0.4,
    "lines.linewidth": 1.1,
    "lines.markersize": 3.5,
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
}


def draw_study(study: Study) -> Drawing:
    """A row of panels for each case: over the first swept numbers, else a dot per strategy."""
    require_plotting()
    import matplotlib as mpl
    from matplotlib.figure import Figure as Drawing

    swept = next((name for name, values in study.vary.items() if _are_numbers(values)), None)
    figures = _figures(study)
    strategies = [name for name in study.strategies if name in _planned(study)]
    count = len(strategies)
    height = _ROW_HEIGHT_IN if swept else 0.65 + 0.17 * count
    with mpl.rc_context(_STYLE):
        legend = 0.25 + 0.17 * math.ceil(count / 5) if swept else 0.3
        size = (PAGE_WIDTH_IN, height * len(study.cases) + legend)
        drawing = Drawing(figsize=size, layout="constrained")
        panels = drawing.subplots(
            len(study.cases), len(figures), squeeze=False, sharey="none" if swept else "row"
        )
        for row, case in enumerate(study.cases):
            for column, figure in enumerate(figures):
                panel = panels[row, column]
                own = _select(study, case, figure.name, swept)
                if swept is None:
                    _draw_dots(panel, strategies, own)
                else:
                    _draw_lines(panel, strategies, own, swept, study.vary[swept])
                _label(panel, study, case, figure, swept, row=row, column=column)
        fixed = [f"{name} = {values[0]}" for name, values in study.vary.items() if name != swept]
        if fixed:
            drawing.suptitle(f"at {', '.join(fixed)}", fontsize=8.0)
        _add_key(drawing, study, strategies, swept)
    return drawing


def _planned(study: Study) -> set[str]:
    """The strategies that have a plan for any of the problems."""
    return {row["strategy"] for row in study.rows if row["feasible"] is not None}


def _figures(study: Study) -> list[Figure]:
    """The three main figures of the family that the study has."""
    names = list(study.family.shown[:3])
    if study.simulate_s is not None:
        names[-1] = "simulated_latency_s"
    known = {row["figure"] for row in study.summary}
    return [BY_NAME[name] for name in names if name in known] or [BY_NAME[names[0]]]


def _are_numbers(values: Sequence[Any]) -> bool:
    return all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values)


def _select(study: Study, case: str, figure: str, swept: str | None) -> list[Row]:
    """The means of a figure; parameters that are not drawn have their first value."""
    fixed = {name: values[0] for name, values in study.vary.items() if name != swept}
    rows = (own[figure] for own in means_of(study, case).values() if figure in own)
    return [
        row
        for row in rows
        if all(row[name] == value for name, value in fixed.items()) and math.isfinite(row["mean"])
    ]


def _scaled(row: Row, scale: float) -> tuple[float, float]:
    """The mean and half of its interval, 0 where there is none."""
    low, high = row["low"], row["high"]
    half = 0.0 if low is None or high is None else (high - low) / 2
    return row["mean"] / scale, half / scale


def _draw_lines(
    panel: Axes,
    strategies: Sequence[str],
    rows: Sequence[Row],
    swept: str,
    all_values: Sequence[float],
) -> None:
    """A line for each strategy, a little beside each other; hollow: not feasible at every seed."""
    scale, _ = scale_of(rows)
    values = sorted(all_values)
    step = min((b - a for a, b in pairwise(values)), default=1.0)
    for number, strategy in enumerate(strategies):
        own = sorted((r for r in rows if r["strategy"] == strategy), key=lambda r: r[swept])
        if not own:
            continue
        shift = 0.16 * step * ((number + 0.5) / len(strategies) - 0.5)
        at = [row[swept] + shift for row in own]
        means, halves = zip(*(_scaled(row, scale) for row in own), strict=True)
        colour, marker = COLOURS[number % len(COLOURS)], _MARKERS[number % len(_MARKERS)]
        panel.errorbar(
            at,
            means,
            yerr=halves,
            color=colour,
            elinewidth=0.7,
            capsize=1.3,
            linestyle=_LINES[number // len(COLOURS) % len(_LINES)],
        )
        for k, row in enumerate(own):
            fill = colour if row["feasible"] == row["planned"] else "white"
            panel.plot(at[k], means[k], marker=marker, color=colour, markerfacecolor=fill, zorder=3)
    if _spans_decades(rows):
        panel.set_yscale("log")
    # Where no strategy has a feasible plan the axis has the value, and nothing at it.
    panel.set_xlim(values[0] - 0.25 * step, values[-1] + 0.25 * step)
    if len(values) <= 8:
        panel.set_xticks(values, [f"{value:g}" for value in values])


def _spans_decades(rows: Sequence[Row]) -> bool:
    """Whether small figures would all lie on the axis beside the large ones."""
    means = [row["mean"] for row in rows]
    lows = [row["mean"] if row["low"] is None else row["low"] for row in rows]
    return bool(means) and min(lows) > 0 and max(means) > _DECADES * min(means)


def _draw_dots(panel: Axes, strategies: Sequence[str], rows: Sequence[Row]) -> None:
    """A dot with its interval for each strategy; hollow: not feasible at every seed."""
    scale, _ = scale_of(rows)
    own_rows = {row["strategy"]: row for row in rows}
    for place, strategy in enumerate(strategies):
        if strategy not in own_rows:
            continue
        row = own_rows[strategy]
        mean, half = _scaled(row, scale)
        colour = COLOURS[2] if row["best"] else COLOURS[0]
        fill = colour if row["feasible"] == row["planned"] else "white"
        panel.errorbar(mean, place, xerr=half or None, color=colour, marker="o", linestyle="none",
                       markerfacecolor=fill, elinewidth=1.0, capsize=2.0)  # fmt: skip
    panel.set_yticks(range(len(strategies)), list(strategies))
    panel.set_ylim(len(strategies) - 0.4, -0.6)
    if _spans_decades(rows):
        panel.set_xscale("log")
    elif rows:
        ends = [row["mean"] if row["high"] is None else row["high"] for row in rows]
        panel.set_xlim(0, 1.08 * max(ends) / scale or 1.0)


def _label(
    panel: Axes,
    study: Study,
    case: str,
    figure: Figure,
    swept: str | None,
    *,
    row: int,
    column: int,
) -> None:
    rows = _select(study, case, figure.name, swept)
    _, prefix = scale_of(rows)
    unit = f" [{prefix}{figure.unit}]" if figure.unit else ""
    name = f"{_NAMES.get(figure.name, figure.label)}{unit}"
    last = row == len(study.cases) - 1
    panel.grid()
    if not rows:
        panel.text(0.5, 0.5, "no finite mean", transform=panel.transAxes, ha="center", color="grey")
        panel.set_xticks([])
    panel.set_axisbelow(True)
    if swept is None:
        panel.set_xlabel(name)
    else:
        panel.set_ylabel(name)
        if last:
            panel.set_xlabel(_SWEPT.get(swept, swept))
    if column == 0 and len(study.cases) > 1:
        panel.set_title(case, loc="left", fontweight="bold")


_NAMES = {
    "aggregate_latency_s": "aggregate latency",
    "response_time_s": "response time",
    "simulated_latency_s": "simulated latency",
}
_SWEPT = {
    "rates": "source rates [× declared]",
    "bandwidth": "bandwidth [× declared]",
    "latency": "link latency [× declared]",
}


def _add_key(drawing: Drawing, study: Study, strategies: Sequence[str], swept: str | None) -> None:
    """What colours, dots and bars mean, below the panels."""
    from matplotlib.lines import Line2D

    handles = []
    if swept is not None:
        handles = [
            Line2D([], [], color=COLOURS[k % len(COLOURS)], marker=_MARKERS[k % len(_MARKERS)],
                   linestyle=_LINES[k // len(COLOURS) % len(_LINES)], label=name)
            for k, name in enumerate(strategies)
        ]  # fmt: skip
    else:
        handles = [Line2D([], [], color=COLOURS[2], marker="o", linestyle="none", label="best")]
    if any(row["feasible"] is False for row in study.rows):
        seeds = "not feasible at every seed" if len(study.seeds) > 1 else "not feasible"
        handles.append(Line2D([], [], color="grey", marker="o", markerfacecolor="white",
                              linestyle="none", label=seeds))  # fmt: skip
    if len(study.seeds) > 1:
        text = f"mean of {len(study.seeds)} seeds, 95 % interval"
        handles.append(Line2D([], [], color="grey", marker="|", linestyle="-", label=text))
    columns = 5 if swept else len(handles)
    drawing.legend(handles=handles, loc="outside lower center", ncols=columns, frameon=False)
