"""The figures of plans for people: names, units, limits, and what another plan has instead."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from thalweg.model.application import Limits
from thalweg.units import BANDWIDTH, DURATION, Dimension, show_quantity, show_share

if TYPE_CHECKING:
    from thalweg.model.plan import Plan

_FIGURES: dict[str, tuple[str, Dimension | None]] = {
    "aggregate_latency_s": ("aggregate latency", DURATION),
    "worst_latency_s": ("worst latency", DURATION),
    "path_count": ("paths", None),
    "response_time_s": ("response time", DURATION),
    "uplink_bps": ("uplink", BANDWIDTH),
    "usage": ("usage", None),
    "delay_product_bits": ("delay product", None),
}
_LATENCIES = ("aggregate_latency_s", "worst_latency_s")
_LIMITED = ("uplink_bps", "response_time_s", "usage")
_SAME = 5e-5
"""Figures that differ by less, relative to the first, are shown as the same."""


def name_figure(field: str) -> str:
    """What a field of an estimate is called."""
    return _FIGURES[field][0] if field in _FIGURES else field


def show_figure(field: str, value: float) -> str:
    """The value of a field of an estimate, with its unit."""
    dimension = _FIGURES[field][1] if field in _FIGURES else None
    if field == "usage":
        return show_share(value)
    return f"{value:.4g}" if dimension is None else show_quantity(value, dimension)


def show_both(field: str, before: float, after: float) -> tuple[str, str]:
    """Two values of a field, with more digits where the usual ones do not tell them apart.

    >>> show_both("worst_latency_s", 1.0500498, 1.050033)
    ('1.05005 s', '1.05003 s')
    """
    shown = show_figure(field, before), show_figure(field, after)
    if before == after or shown[0] != shown[1]:
        return shown
    dimension = _FIGURES[field][1] if field in _FIGURES else None
    unit = f" {dimension.base}" if dimension else ""
    texts = ((f"{before:.{n}g}", f"{after:.{n}g}") for n in range(4, 18))
    first, second = next(pair for pair in texts if pair[0] != pair[1])
    return f"{first}{unit}", f"{second}{unit}"


def show_change(before: float, after: float) -> str:
    """How much more or less the second one is, relative to the first; empty where that is nothing.

    >>> show_change(2.0, 1.0), show_change(2.0, 2.0), show_change(1.0, 30.0), show_change(0.0, 1.0)
    ('-50.0 %', 'same', '× 30', '')
    """
    if before == after or abs(after - before) < _SAME * abs(before) < math.inf:
        return "same"
    if not (math.isfinite(before) and math.isfinite(after)) or before <= 0:
        return ""
    ratio = after / before
    if ratio >= 10:
        return f"× {ratio:.3g}" if ratio < 1e3 else f"× {ratio:,.0f}"
    percent = 100.0 * (ratio - 1.0)
    return f"{percent:+.1f} %" if abs(percent) >= 1 else f"{percent:+.2f} %"


@dataclass(frozen=True, slots=True)
class PlanFigures:
    """A plan, and what is known of it besides its estimate."""

    plan: Plan
    window_s: float = 0.0
    """The part of the aggregate latency that events wait for windows to end."""

    def show(self, field: str) -> str:
        """A field of the estimate for people."""
        return show_figure(field, getattr(self.plan.estimate, field))

    @property
    def without_windows_s(self) -> float:
        """The aggregate latency without the wait for windows to end."""
        latency_s = self.plan.estimate.aggregate_latency_s
        return latency_s - self.window_s if math.isfinite(latency_s) else latency_s


def figure_table(
    found: PlanFigures, beside: PlanFigures | None = None, limits: Limits | None = None
) -> tuple[list[str], list[list[str]]]:
    """Names of the columns, and a row for each figure that matters for the plan.

    Those are the latencies, unless the plan minimises something else; and uplink, response time and
    usage where it does so, or where the application has limits. Without `limits` it is not known
    what limits there are.
    """
    columns = [found] if beside is None else [found, beside]
    rows = []
    for field in _relevant(found.plan, limits):
        values = [getattr(each.plan.estimate, field) for each in columns]
        shown = [each.show(field) for each in columns]
        rows.append([name_figure(field), *shown, *_change(values), _limit(field, limits)])
        if field == "aggregate_latency_s" and any(each.window_s > 0 for each in columns):
            values = [each.without_windows_s for each in columns]
            shown = [show_quantity(value, DURATION) for value in values]
            rows.append(["  without windows", *shown, *_change(values), ""])
    plans = [each.plan for each in columns]
    rest = [""] * len(_change([plan.seconds for plan in plans])) + [""]
    rows.append(["instances", *map(_instances, plans), *rest])
    rows.append(["feasible", *map(_feasible, plans), *rest])
    # What else was planned in the same process was quicker for it: no time is beside this one.
    took = ["time to plan", show_quantity(found.plan.seconds, DURATION)]
    rows.append([*took, *[""] * (len(rows[0]) - len(took))])
    names = ["figure", *(plan.strategy for plan in plans), *(["change"] if beside else []), "limit"]
    if not any(row[-1] for row in rows):
        return names[:-1], [row[:-1] for row in rows]
    return names, rows


def _relevant(plan: Plan, limits: Limits | None) -> list[str]:
    on_latency = plan.objective_name in _LATENCIES
    limited = limits is not None and limits != Limits()
    fields = [*_LATENCIES] if on_latency or (limits is not None and not limited) else []
    return [*fields, *_LIMITED] if limited or not on_latency else fields


def _change(values: Sequence[float]) -> list[str]:
    return [show_change(values[1], values[0])] if len(values) > 1 else []


def _limit(field: str, limits: Limits | None) -> str:
    limit = getattr(limits, field, math.inf)
    return show_figure(field, limit) if math.isfinite(limit) else ""


def _instances(plan: Plan) -> str:
    nodes = len(set(plan.placement.node.tolist()))
    return f"{len(plan.placement):,} on {nodes:,} node{'' if nodes == 1 else 's'}"


def _feasible(plan: Plan) -> str:
    broken = dict.fromkeys(violation.constraint for violation in plan.violations)
    return "yes" if plan.feasible else f"no: {', '.join(broken)}"
