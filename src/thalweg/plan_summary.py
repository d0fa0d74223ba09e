"""What a plan costs beside what everything in the cloud would cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from thalweg.errors import InvalidInput
from thalweg.model.plan_figures import PlanFigures, figure_table
from thalweg.planning import call_strategy
from thalweg.strategy import find_strategy

if TYPE_CHECKING:
    from thalweg.model import Limits, Plan, Problem

BASELINE = "cloud-only"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSummary:
    """The figures of a plan that matter, beside those of the baseline."""

    found: PlanFigures
    baseline: PlanFigures | None = None
    limits: Limits | None = None
    refusal: str = ""
    """Why there is no baseline, where the problem is not for it."""

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Names of the columns, and a row for each figure."""
        return figure_table(self.found, self.baseline, self.limits)


def summarise(plan: Plan, problem: Problem) -> PlanSummary:
    """The plan beside what `cloud-only` makes of the same problem."""
    baseline, refusal = None, ""
    if plan.strategy != BASELINE:
        try:
            beside = call_strategy(find_strategy(BASELINE), problem, name=BASELINE)
            baseline = _measure(beside, problem)
        except InvalidInput as error:
            why = "; ".join(str(defect) for defect in error.defects)
            refusal = f"no figures of {BASELINE}: {why}"
    return PlanSummary(
        found=_measure(plan, problem),
        baseline=baseline,
        limits=problem.application.limits,
        refusal=refusal,
    )


def _measure(plan: Plan, problem: Problem) -> PlanFigures:
    from thalweg.estimate.latency import aggregate_window_s
    from thalweg.model import deploy

    return PlanFigures(plan, aggregate_window_s(deploy(problem, plan.placement)))
