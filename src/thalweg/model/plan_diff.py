"""What changes from one plan to another."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from thalweg.model.placement import Instance
from thalweg.model.plan_figures import name_figure, show_both
from thalweg.model.table import format_table

if TYPE_CHECKING:
    from thalweg.model.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """An operator (for one origin, or for all) that runs on another node."""

    operator: str
    origin: str | None
    before: str
    after: str


@dataclass(frozen=True, kw_only=True)
class PlanDiff:
    """Moves, starts and stops, and how each estimate changes; empty where plans agree."""

    moved: tuple[Move, ...]
    started: tuple[Instance, ...]
    stopped: tuple[Instance, ...]
    estimates: dict[str, tuple[float, float]]
    """Name of each estimate that differs → (before, after)."""

    def __bool__(self) -> bool:
        return bool(self.moved or self.started or self.stopped or self.estimates)

    def to_dict(self) -> dict[str, Any]:
        """The difference as plain data, ready for JSON; ∞ is written "inf"."""
        return {
            "moved": [asdict(move) for move in self.moved],
            "started": [asdict(instance) for instance in self.started],
            "stopped": [asdict(instance) for instance in self.stopped],
            "estimates": {
                name: {"before": _plain(before), "after": _plain(after)}
                for name, (before, after) in self.estimates.items()
            },
        }

    def __str__(self) -> str:
        if not self:
            return "no difference"
        rows = [["move", _label(m.operator, m.origin), m.before, m.after] for m in self.moved]
        rows += [["start", _label(i.operator, i.origin), "", i.node] for i in self.started]
        rows += [["stop", _label(i.operator, i.origin), i.node, ""] for i in self.stopped]
        rows += [
            ["estimate", name_figure(name), *show_both(name, before, after)]
            for name, (before, after) in self.estimates.items()
        ]
        return format_table(["change", "what", "before", "after"], rows)


def compare_plans(older: Plan, newer: Plan) -> PlanDiff:
    """What changes from the older plan to the newer one, in the order of the operators."""
    before = {(i.operator, i.origin): i for i in older.placement}
    after = {(i.operator, i.origin): i for i in newer.placement}
    old, new = asdict(older.estimate), asdict(newer.estimate)
    return PlanDiff(
        moved=tuple(
            Move(operator=key[0], origin=key[1], before=before[key].node, after=after[key].node)
            for key in before
            if key in after and before[key].node != after[key].node
        ),
        started=tuple(instance for key, instance in after.items() if key not in before),
        stopped=tuple(instance for key, instance in before.items() if key not in after),
        estimates={name: (old[name], new[name]) for name in old if old[name] != new[name]},
    )


def _label(operator: str, origin: str | None) -> str:
    return operator if origin is None else f"{operator} for {origin}"


def _plain(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)
