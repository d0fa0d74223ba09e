"""A placement with what it is estimated to cost, what it violates, and how it was found."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from thalweg.errors import Defect, InvalidInput, MissingExtra, nearest
from thalweg.model.placement import Placement
from thalweg.model.plan_diff import PlanDiff, compare_plans
from thalweg.model.plan_figures import PlanFigures, figure_table, name_figure, show_figure
from thalweg.model.plan_groups import group_rows
from thalweg.model.table import format_table, wrap
from thalweg.units import BANDWIDTH, CPU_SPEED, DURATION, SIZE, show_quantity

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One constraint that a plan breaks: where, which resource, how much is needed and there."""

    constraint: str
    """`placed`, `pin`, `replicable`, `cpu`, `stability`, `memory`, `bandwidth`, `response-time`
    or `uplink`."""
    place: str
    resource: str
    need: float
    have: float
    unit: str
    operators: tuple[str, ...] = ()

    @property
    def excess(self) -> float:
        """How much is missing."""
        return self.need - self.have

    def _show(self, value: float) -> str:
        dimension = _DIMENSIONS.get(self.unit)
        return show_quantity(value, dimension) if dimension else f"{value:.6g} {self.unit}"

    def __str__(self) -> str:
        who = f" ({', '.join(self.operators)})" if self.operators else ""
        if not self.unit:
            return f"{self.constraint}: {self.place}: {self.resource}{who}"
        return (
            f"{self.constraint}: {self.place}: needs {self._show(self.need)} of "
            f"{self.resource}, has {self._show(self.have)}{who}"
        )


_DIMENSIONS = {"instr/s": CPU_SPEED, "B": SIZE, "bps": BANDWIDTH, "s": DURATION}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why an operator is where it is: the rule, and what the next best node would have cost."""

    operator: str
    why: str
    cost: float | None = None
    cost_name: str = ""
    considered: int = 0
    runner_up: str | None = None
    runner_up_cost: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What a deployment costs by the formulas; ∞ means that a queue or link cannot keep up."""

    aggregate_latency_s: float
    """Sum of the latencies of all source→sink paths."""
    worst_latency_s: float
    path_count: float
    response_time_s: float
    """Slowest way from a device to a sink; the time until a window is full is left out."""
    uplink_bps: float
    """What all sites send up to the clouds."""
    usage: float
    """Share of fog memory and uplinks taken, weighted by how scarce they are."""
    delay_product_bits: float
    """Bandwidth × delay, over all flows: bits on their way."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A frozen answer to a problem; prints as a table, diffs, explains itself."""

    application: str
    network: str
    strategy: str
    placement: Placement
    hosts: Mapping[str, tuple[str, str]]
    """Site and tier of every node in the placement."""
    objective_name: str
    objective: float
    estimate: Estimate
    violations: tuple[Violation, ...] = ()
    reasons: tuple[Reason, ...] = ()
    seconds: float = field(default=0.0, compare=False)
    """How long the strategy took; two plans that differ in nothing else are equal."""
    candidates: int = 0
    """How many (operator, node) pairs were evaluated."""
    gap: float | None = None
    """Proven upper bound of (objective − optimum) / optimum, where there is one."""

    @property
    def feasible(self) -> bool:
        """Whether no constraint is violated."""
        return not self.violations

    @property
    def cost(self) -> float:
        """The objective of a feasible plan; ∞ for any other."""
        return self.objective if self.feasible else math.inf

    @property
    def aggregate_latency(self) -> float:
        """Sum of the latencies of all source→sink paths [s]."""
        return self.estimate.aggregate_latency_s

    def _rows(self) -> list[dict[str, Any]]:
        why = {reason.operator: reason.why for reason in self.reasons}
        rows = []
        for instance in self.placement:
            site, tier = self.hosts[instance.node]
            row = {"operator": instance.operator, "node": instance.node, "site": site, "tier": tier}
            if instance.origin is not None:
                row["origin"] = instance.origin
            rows.append({**row, "why": why.get(instance.operator, "")})
        return rows

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain data, ready for JSON; ∞ is written "inf"."""
        return {
            "thalweg": 1,
            "application": self.application,
            "network": self.network,
            "strategy": self.strategy,
            "feasible": self.feasible,
            "objective_name": self.objective_name,
            "objective": _finite(self.objective),
            "seconds": self.seconds,
            "candidates": self.candidates,
            "gap": _finite(self.gap),
            "placement": self._rows(),
            "estimate": {name: _finite(value) for name, value in asdict(self.estimate).items()},
            "violations": [
                {name: _finite(value) for name, value in asdict(violation).items()}
                for violation in self.violations
            ],
            "reasons": [
                {name: _finite(value) for name, value in asdict(reason).items()}
                for reason in self.reasons
            ],
        }

    def to_json(self) -> str:
        """The plan as JSON text."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)

    def to_pandas(self) -> pd.DataFrame:
        """One row for each instance: operator, node, site, tier, origin, why."""
        try:
            import pandas as pd
        except ImportError as error:
            raise MissingExtra(
                "Plan.to_pandas() needs pandas. Hint: pip install 'thalweg[pandas]'"
            ) from error
        columns = ["operator", "node", "site", "tier", "origin", "why"]
        return pd.DataFrame(self._rows(), columns=columns)

    def diff(self, newer: Plan) -> PlanDiff:
        """What changes from this plan to a newer one."""
        if not isinstance(newer, Plan):
            raise InvalidInput([Defect(path="newer", value=type(newer).__name__, rule="a Plan")])
        return compare_plans(self, newer)

    def explain(self, operator: str | None = None) -> str:
        """Why every operator, or the one named, is where it is."""
        known = list(dict.fromkeys(self.placement.operator_names))
        if operator is not None and operator not in known:
            rule, hint = f"an operator of {self.application}", nearest(str(operator), known)
            raise InvalidInput([Defect(path="operator", value=operator, rule=rule, hint=hint)])
        lines = []
        for name in known if operator is None else [operator]:
            nodes = self.placement.nodes_of(name)
            shown = ", ".join(nodes[:4]) + (f" and {len(nodes) - 4} more" if len(nodes) > 4 else "")
            lines.append(f"{name} runs on {shown}")
            lines += [f"  {line}" for line in self._reasoning(name)]
        return "\n".join([*lines, *self._verdict()])

    def _reasoning(self, operator: str) -> list[str]:
        lines = []
        for reason in self.reasons:
            if reason.operator != operator:
                continue
            cost = "" if reason.cost is None else f": {_show_cost(reason, reason.cost)}"
            lines.append(f"{reason.why}{cost}")
            if reason.considered:
                nodes = "node" if reason.considered == 1 else "nodes"
                lines.append(f"considered {reason.considered} {nodes}")
            if reason.runner_up is not None and reason.runner_up_cost is not None:
                shown = _show_cost(reason, reason.runner_up_cost, named=False)
                lines.append(f"next best: {reason.runner_up} at {shown}")
        return lines or ["no reason was recorded"]

    def _verdict(self) -> list[str]:
        if self.feasible:
            return ["feasible: every constraint is met"]
        return [f"not feasible, {len(self.violations)} constraints are violated:"] + [
            f"  {violation}" for violation in self.violations
        ]

    @property
    def headline(self) -> str:
        """What was planned where by whom, and how good it is."""
        objective = show_figure(self.objective_name, self.objective)
        return (
            f"{self.application} on {self.network} by {self.strategy}: "
            f"{name_figure(self.objective_name)} {objective}, "
            f"{'feasible' if self.feasible else 'NOT FEASIBLE'}"
        )

    def table(self, *, all_rows: bool = False) -> tuple[list[str], list[list[str]]]:
        """Names of the columns, and a row for each operator, or for each instance."""
        rows = self._rows()
        if not all_rows:
            return group_rows(rows)
        with_origin = any("origin" in row for row in rows)
        names = ["operator", "node", "site", *(["origin"] if with_origin else []), "why"]
        return names, [[str(row.get(name, "")) for name in names] for row in rows]

    def __str__(self) -> str:
        violations = [line for v in self.violations for line in wrap(str(v), indent="  ")]
        figures = format_table(*figure_table(PlanFigures(self)))
        table = format_table(*self.table())
        return "\n".join([*wrap(self.headline), table, *violations, "", figures])


def _show_cost(reason: Reason, cost: float, *, named: bool = True) -> str:
    """A cost of a reason with its unit, which the name tells, and with the name."""
    name, _, unit = reason.cost_name.partition(" [")
    shown = show_quantity(cost, DURATION) if unit == "s]" else f"{cost:.6g}"
    return f"{name} {shown}" if named else shown


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return list(value) if isinstance(value, tuple) else value
