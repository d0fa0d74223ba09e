"""What would be planned if rates were others, or sites were gone?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from thalweg.errors import Defects, nearest
from thalweg.model import Network, Placement, Plan, Problem
from thalweg.planning import plan as find_plan
from thalweg.web.grouping import Grouping
from thalweg.web.picture import GAUGES, Picture, plain_number

Plain = dict[str, Any]
Rates = Mapping[tuple[str, str], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Other rates for some sources at some sites, sites that are gone, and whom to ask."""

    rates: Rates = field(default_factory=dict)
    down: tuple[str, ...] = ()
    strategy: str = ""


@dataclass(frozen=True, eq=False, kw_only=True)
class Answer:
    """What runs now and what would be planned, both at the rates and on the sites asked for."""

    identity: str
    problem: Problem
    before: Placement
    plan: Plan
    strategy: str
    down: tuple[str, ...] = ()

    def describe(self, grouping: Grouping) -> Plain:
        """The answer for a page: figures before and after, what moves, and the new picture."""
        old = Picture(problem=self.problem, placement=self.before, grouping=grouping)
        new = Picture(problem=self.problem, placement=self.plan.placement, grouping=grouping)
        return {
            "id": self.identity,
            "headline": self.plan.headline,
            "placement": new.describe(
                self.identity, strategy=self.strategy, text=self.plan.headline, before=old
            ),
            "before": {**old.gauges(), "violations": old.violations()},
            "after": {**new.gauges(), "violations": new.violations()},
            "moves": list_moves(old.plan, self.plan),
        }


def answer_question(
    identity: str, question: Question, problem: Problem, before: Placement, strategy: str
) -> Answer:
    """Plan at other rates and without some sites, from what runs now.

    Raises:
        InvalidInput: for rates and sites that there are not, and where a strategy refuses.
    """
    defects = Defects()
    names = problem.network.site_names
    for site in question.down:
        defects.require(site in names, "down", site, "a site", nearest(site, list(names)))
    known = problem.birth_rates
    for (source, site), rate in question.rates.items():
        where = (source, site) in known
        rule = "a source and one of its sites"
        defects.require(where, "rates", f"{source} at {site}", rule)
        defects.require(0 <= rate < 1e15, "rates", rate, "events/s >= 0")
    defects.raise_if_any()
    rates = {**known, **question.rates}
    rates |= {pair: 0.0 for pair in rates if pair[1] in question.down}
    asked = Problem(
        application=problem.application,
        network=take_down(problem.network, question.down),
        rates=rates,
    )
    chosen = question.strategy or strategy
    plan = find_plan(asked.application, asked.network, chosen, rates=rates, current=before)
    return Answer(
        identity=identity,
        problem=asked,
        before=before,
        plan=plan,
        strategy=chosen,
        down=question.down,
    )


def take_down(network: Network, sites: tuple[str, ...]) -> Network:
    """The network where no node of these sites has CPU or memory to give; its links stay.

    >>> from thalweg.scenarios import fog_cloud
    >>> take_down(fog_cloud(2), ("fog-1",)).node_cpu_available_ips.tolist()[1]
    0.0
    """
    if not sites:
        return network
    gone = np.isin(network.node_site, [network.site_index[site] for site in sites])
    return replace(
        network,
        node_cpu_available_ips=np.where(gone, 0.0, network.node_cpu_available_ips),
        node_memory_available_bytes=np.where(gone, 0.0, network.node_memory_available_bytes),
    )


def list_moves(old: Plan, new: Plan) -> list[Plain]:
    """What moves, starts and stops from one plan to another."""
    diff = old.diff(new)
    moves = [
        {
            "kind": "move",
            "operator": m.operator,
            "origin": m.origin,
            "before": m.before,
            "after": m.after,
        }
        for m in diff.moved
    ]
    for kind, instances in (("start", diff.started), ("stop", diff.stopped)):
        for i in instances:
            ends = {"before": None, "after": i.node}
            ends = ends if kind == "start" else {"before": i.node, "after": None}
            moves.append({"kind": kind, "operator": i.operator, "origin": i.origin, **ends})
    return moves


def compare_gauges(plan: Plan) -> Plain:
    """The figures of a plan that a comparison shows."""
    names = ("aggregate_latency_s", "worst_latency_s", *GAUGES)
    return {name: plain_number(getattr(plan.estimate, name)) for name in names}
