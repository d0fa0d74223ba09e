"""Several strategies on the same problem, side by side: a study of one problem, with its plans."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from thalweg.errors import Defects
from thalweg.model import Application, Network, Placement, Plan, Problem
from thalweg.study.families import family_of
from thalweg.study.planned import figure_row, plan_each, require_strategies
from thalweg.study.result import Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The plans of several strategies for one application on one network."""

    plans: tuple[Plan, ...]
    study: Study
    """Their figures, as a study of a single problem has them."""

    @property
    def best(self) -> Plan | None:
        """The feasible plan with the least of what the family minimises; of equals the first."""
        return next(iter(self.all_best), None)

    @property
    def all_best(self) -> tuple[Plan, ...]:
        """All plans that tie for the best; none where no plan is feasible."""
        names = self.study.best()
        return tuple(plan for plan in self.plans if plan.strategy in names)

    @property
    def refusals(self) -> Mapping[str, str]:
        """Strategy that this problem is not for → why; it has no plan."""
        return self.study.refusals

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain data, ready for JSON; ∞ is written "inf"."""
        return self.study.to_dict()

    def to_pandas(self) -> DataFrame:
        """A row for each strategy, with its figures."""
        return self.study.to_pandas()

    @property
    def headline(self) -> str:
        """What was compared."""
        return self.study.tables()[0].title

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Names of the columns, and a row for each strategy that has a plan."""
        table = self.study.tables()[0]
        return list(table.names), [list(row) for row in table.rows]

    def __str__(self) -> str:
        return str(self.study)

    def draw(self) -> Figure:
        """The main figures of every strategy, side by side."""
        return self.study.draw()

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Draw it into a file; its ending says how (.pdf, .svg or .png)."""
        self.study.plot(path)


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

    `current` is what runs now, if anything does. What a first call makes does not count; strategies
    with a time limit see to that themselves. An option goes to every strategy that takes it; one
    that none takes is refused. `study` compares over several problems, seeds and values.

    >>> import thalweg as tw
    >>> app, net = tw.scenarios.small_taxi(), tw.scenarios.small_city()
    >>> [plan.strategy for plan in tw.compare(app, net, ["cloud-only"]).plans]
    ['cloud-only']
    """
    defects = Defects()
    names = require_strategies(defects, strategies, options)
    posed = defects.attempt(
        "", lambda: Problem(application=application, network=network, rates=rates)
    )
    defects.raise_if_any()
    problem = cast("Problem", posed)
    outcomes = plan_each(problem, names, options, current)
    plans = tuple(outcome.plan for outcome in outcomes if outcome.plan is not None)
    if not plans:
        raise next(outcome.refused for outcome in outcomes if outcome.refused is not None)
    head = {"case": network.name, "application": application.name, "network": network.name}
    found = Study(
        rows=[{**head, "seed": None, **figure_row(problem, a, current)} for a in outcomes],
        strategies=names,
        cases=(network.name,),
        family_name=family_of(problem).name,
        baseline="cloud-only" if "cloud-only" in names else names[0],
    )
    return Comparison(plans=plans, study=found)
