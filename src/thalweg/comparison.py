"""Several strategies on the same problem, side by side."""

from __future__ import annotations

import math
import os
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from thalweg.errors import Defects, InvalidInput
from thalweg.model.table import format_table
from thalweg.planning import call_strategy
from thalweg.plotting import COLOURS, require_plotting
from thalweg.strategy import find_strategy, require_options

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from thalweg.model import Application, Network, Placement, Plan, Problem


_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The plans of several strategies for one application on one network."""

    plans: tuple[Plan, ...]
    refusals: Mapping[str, str] = field(default_factory=dict)
    """Strategy that this problem is not for → why; it has no plan."""

    @property
    def best(self) -> Plan | None:
        """The feasible plan of least aggregate latency; of equals the first; None: none is."""
        feasible = [plan for plan in self.plans if plan.feasible]
        return min(feasible, key=lambda plan: plan.aggregate_latency, default=None)

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain data, ready for JSON; ∞ is written "inf"."""
        best = self.best
        return {
            "application": self.plans[0].application,
            "network": self.plans[0].network,
            "best": None if best is None else best.strategy,
            "strategies": [
                {
                    "strategy": plan.strategy,
                    "aggregate_latency_s": _plain(plan.estimate.aggregate_latency_s),
                    "worst_latency_s": _plain(plan.estimate.worst_latency_s),
                    "uplink_bps": _plain(plan.estimate.uplink_bps),
                    "response_time_s": _plain(plan.estimate.response_time_s),
                    "usage": _plain(plan.estimate.usage),
                    "seconds": plan.seconds,
                    "candidates": plan.candidates,
                    "feasible": plan.feasible,
                    "violations": [str(violation) for violation in plan.violations],
                    "gap": _plain(plan.gap),
                }
                for plan in self.plans
            ],
            "refusals": dict(self.refusals),
        }

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Names of the columns, and a row for each strategy."""
        names = ["strategy", "AL [s]", "against best", "uplink [bps]", "response [s]", "usage"]
        names += ["time [ms]", "candidates", "feasible"]
        best = self.best
        rows = [
            [
                plan.strategy,
                f"{plan.estimate.aggregate_latency_s:.6g}",
                _against(plan, best),
                f"{plan.estimate.uplink_bps:.4g}",
                f"{plan.estimate.response_time_s:.4g}",
                f"{plan.estimate.usage:.4g}",
                f"{plan.seconds * 1e3:.2f}",
                f"{plan.candidates:,}",
                "yes" if plan.feasible else f"no: {plan.violations[0]}",
            ]
            for plan in self.plans
        ]
        return names, rows + [
            [name, *[""] * (len(names) - 2), f"no plan: {why}"]
            for name, why in self.refusals.items()
        ]

    def to_pandas(self) -> DataFrame:
        """A row for each strategy that has a plan, with its figures."""
        from pandas import DataFrame

        return DataFrame.from_records(self.to_dict()["strategies"])

    @property
    def headline(self) -> str:
        """What was compared."""
        first = self.plans[0]
        return f"{first.application} on {first.network}: {len(self.plans)} strategies"

    def __str__(self) -> str:
        return f"{self.headline}\n{format_table(*self.table())}"

    def draw(self) -> Figure:
        """Aggregate latency and resolution time of every strategy; hatched: not feasible."""
        require_plotting()
        from matplotlib.figure import Figure

        figure = Figure(figsize=(10.0, 1.2 + 0.42 * len(self.plans)), layout="constrained")
        left, right = figure.subplots(1, 2, sharey=True)
        latencies = [plan.estimate.aggregate_latency_s for plan in self.plans]
        self._draw_bars(left, latencies, "aggregate latency [s]")
        self._draw_bars(right, [plan.seconds * 1e3 for plan in self.plans], "time to plan [ms]")
        right.set_xscale("log")
        left.invert_yaxis()
        figure.suptitle(self.headline, fontsize=11)
        return figure

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Draw it into a file; its ending says how (.png, .svg or .pdf)."""
        self.draw().savefig(path, dpi=150)

    def _draw_bars(self, axes: Axes, values: list[float], label: str) -> None:
        finite = [value for value in values if math.isfinite(value)]
        most = max(finite, default=1.0)
        for row, (plan, value) in enumerate(zip(self.plans, values, strict=True)):
            endless = not math.isfinite(value)
            axes.barh(
                row,
                most if endless else value,
                color=COLOURS[row % len(COLOURS)],
                alpha=0.8 if plan.feasible else 0.35,
                hatch=None if plan.feasible else "//",
            )
            shown = "∞" if endless else f"{value:.4g}"
            axes.annotate(shown, (most if endless else value, row), va="center", fontsize=8)
        axes.set_yticks(range(len(self.plans)), [plan.strategy for plan in self.plans])
        axes.margins(x=0.15)  # For the figures at the ends of the bars.
        axes.set_xlabel(label)
        axes.grid(axis="x", alpha=0.3)


def compare(
    application: Application,
    network: Network,
    strategies: Sequence[str],
    *,
    rates: Mapping[tuple[str, str], float] | None = None,
    current: Placement | None = None,
    **options: Any,
) -> Comparison:
    """The plans of all these strategies, with how long each took.

    `current` is what runs now, if anything does.

    Code that has to compile does so in a first call, which does not count; strategies with a time
    limit see to that themselves.

    An option goes to every strategy that takes it; one that none takes is refused.

    >>> import thalweg as tw
    >>> app, net = tw.scenarios.small_taxi(), tw.scenarios.small_city()
    >>> [plan.strategy for plan in tw.compare(app, net, ["cloud-only"]).plans]
    ['cloud-only']
    """
    from thalweg.model import Problem

    defects = Defects()
    names = [strategies] if isinstance(strategies, str) else list(strategies)
    defects.require(bool(names), "strategies", names, "at least one strategy")
    defects.require(len(set(names)) == len(names), "strategies", names, "each strategy once")
    chosen = {}
    for name in names:
        found = defects.attempt("", lambda name=name: find_strategy(name))  # type: ignore[misc]
        if found is not None:
            chosen[name] = found
    if chosen:
        defects.attempt("", lambda: require_options("+".join(chosen), options))
    problem = defects.attempt(
        "", lambda: Problem(application=application, network=network, rates=rates)
    )
    defects.raise_if_any()
    posed = cast("Problem", problem)
    plans: list[Plan] = []
    refusals: dict[str, str] = {}
    refused: list[InvalidInput] = []
    for name, strategy in chosen.items():
        own = {key: value for key, value in options.items() if _takes(name, key)}
        for part in name.split("+"):
            if not _takes(part, "time_limit_s"):
                known = {k: v for k, v in own.items() if _takes(part, k)}
                with suppress(InvalidInput):
                    call_strategy(find_strategy(part), posed, current, name=part, **known)
        try:
            plans.append(call_strategy(strategy, posed, current, name=name, **own))
        except InvalidInput as error:
            if any(defect.path in options for defect in error.defects):
                raise
            refusals[name] = "; ".join(str(defect) for defect in error.defects)
            refused.append(error)
    if refused and not plans:
        raise refused[0]
    return Comparison(plans=tuple(plans), refusals=refusals)


def _takes(name: str, option: str) -> bool:
    try:
        require_options(name, {option: None})
    except InvalidInput:
        return False
    return True


def _against(plan: Plan, best: Plan | None) -> str:
    if best is None or not plan.feasible or best.aggregate_latency <= 0:
        return ""
    if plan.aggregate_latency <= best.aggregate_latency * (1.0 + _ROUNDING):
        # Of several that tie, each is.
        return "best"
    return f"{100 * (plan.aggregate_latency / best.aggregate_latency - 1):+.2f} %"


def _plain(value: float | None) -> float | str | None:
    return value if value is None or math.isfinite(value) else str(value)
