"""A plan on paper: an application on a network, with the plan of a strategy."""

from __future__ import annotations

from thalweg.errors import Defects
from thalweg.model import Application, Network, Plan, Problem
from thalweg.web.subject import Plain
from thalweg.web.subjects.planned import PlannedSubject, Present

_ID = "plan"


class PlanSubject(PlannedSubject):
    """One placement and no time; everything can be asked about it, and nothing applied."""

    kind = "plan"
    now_is = "the plan shown"
    views = ("map", "what-if", "compare")

    def __init__(self, application: Application, network: Network, plan: Plan) -> None:
        super().__init__(f"{application.name} on {network.name} by {plan.strategy}")
        self._present = Present(
            problem=Problem(application=application, network=network),
            placement=plan.placement,
            plan=plan,
            strategy=plan.strategy,
        )
        _require_same(plan, application, network)
        # A placement that does not fit is told now, not when somebody looks.
        _ = self.grouping

    def present(self) -> Present:
        """The plan."""
        return self._present

    def history(self) -> Plain:
        """One frame: what the formulas say."""
        picture, plan = self.picture(self._present), self._present.plan
        headline = "" if plan is None else plan.headline
        told = picture.describe(_ID, strategy=self._present.strategy, text=headline)
        return {"frames": [picture.frame(0.0, _ID)], "placements": {_ID: told}, "marks": []}


def _require_same(plan: Plan, application: Application, network: Network) -> None:
    """Raise `InvalidInput` for a plan of something else."""
    defects = Defects()
    for part, wanted in (("application", application.name), ("network", network.name)):
        found = getattr(plan, part)
        defects.require(found == wanted, f"plan.{part}", found, f'a plan for the {part} "{wanted}"')
    defects.raise_if_any()
