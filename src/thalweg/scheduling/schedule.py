"""A cut for every stream, as a placement and as a plan."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from thalweg.estimate.evaluate import make_plan
from thalweg.model.graph import Floats
from thalweg.model.placement import Placement
from thalweg.model.plan import Plan, Reason
from thalweg.model.problem import Problem
from thalweg.scheduling.closure import sweep_front
from thalweg.scheduling.costs import CutCosts, cost_cuts
from thalweg.scheduling.cuts import Cuts, TooManyCuts, list_cuts
from thalweg.scheduling.figures import figures_of
from thalweg.scheduling.traffic import StreamTraffic, measure_streams
from thalweg.scheduling.usage_bound import usage_bound

if TYPE_CHECKING:
    from thalweg.scheduling.compiled.latency import Figures

Choice = npt.NDArray[np.int64]
"""The chosen cut of every stream, by index."""


# Strategies that are chained or compared are asked about one problem after the other.
_last: list[Table] = []


@dataclass(frozen=True, eq=False)
class Table:
    """Everything a scheduling strategy decides on: streams, cuts, and what each cut costs."""

    traffic: StreamTraffic
    cuts: Cuts

    @classmethod
    def of(cls, problem: Problem) -> Table:
        """The table of a problem; raises `InvalidInput` where it cannot be cut.

        Of an application with more cuts than can be listed it has the best ones, and says so
        (`cuts.complete`).
        """
        for table in _last:
            if table.problem is problem:
                return table
        traffic = measure_streams(problem)
        try:
            table = cls(traffic, list_cuts(problem.application))
        except TooManyCuts:
            # The front of memory and uplink, and what is best for each stream by itself.
            table = cls(traffic, usage_bound(traffic, sweep_front(traffic)).cuts)
        _last[:] = [table]
        return table

    @property
    def problem(self) -> Problem:
        """The problem that the table is of."""
        return self.traffic.problem

    @cached_property
    def costs(self) -> CutCosts:
        """What every cut costs for every stream."""
        return cost_cuts(self.traffic, self.cuts)

    @cached_property
    def usage(self) -> Floats:
        """RU_j of every cut and stream, both parts weighing the same."""
        return 0.5 * self.costs.compute_usage + 0.5 * self.costs.network_usage

    @cached_property
    def crossing_s(self) -> Floats:
        """From fog to cloud over each edge: propagation and sending of one emission."""
        traffic, net = self.traffic, self.problem.network
        cloud = np.full_like(traffic.node, traffic.cloud)
        free_bps = net.available_bps(traffic.node, cloud)
        with np.errstate(divide="ignore", invalid="ignore"):
            sending = np.where(traffic.emission_bits > 0, traffic.emission_bits / free_bps, 0.0)
        return net.latency_s(traffic.node, cloud) + sending

    @cached_property
    def figures(self) -> Figures:
        """What the compiled loops read."""
        return figures_of(self.traffic, self.cuts, self.crossing_s)

    def choice_of(self, placement: Placement) -> Choice | None:
        """The cuts that a placement has; None where it is no cut of every stream."""
        app, net = self.problem.application, self.problem.network
        members = np.zeros((self.traffic.site.size, len(app.operators)), dtype=bool)
        transforms = app.columns.is_transform
        operator = np.array([app.index.get(name, -1) for name in placement.operator_names])
        known_sites = placement.indices_in(net)
        if known_sites is None:
            sites = np.array([net.site_index.get(name, -1) for name in placement.origin_names])
        else:
            sites = known_sites[1]
        stream_of = np.full(net.site_count + 1, -1)
        stream_of[self.traffic.site] = np.arange(self.traffic.site.size)
        stream = np.append(stream_of[sites.astype(np.int64)], -1)
        replica = placement.origin >= 0
        at_operator = operator[placement.operator[replica]]
        at_stream = stream[placement.origin[replica]]
        known = (at_operator >= 0) & (at_stream >= 0) & transforms[at_operator]
        members[at_stream[known], at_operator[known]] = True
        choice = self.cuts.find(members)
        # Where a stream does not reach every operator, several cuts are the same to it.
        for k in np.flatnonzero(choice < 0).tolist():
            same = (self.cuts.members & self.traffic.fed[:, k] == members[k]).all(axis=1)
            if not same.any():
                return None
            choice[k] = int(same.argmax())
        return choice

    def place(self, choice: Choice) -> Placement:
        """The deployable placement: replicas above each cut, one copy of the rest in the cloud."""
        traffic, births = self.traffic, self.problem.births
        columns = self.problem.application.columns
        fed = traffic.fed.T
        on_fog = self.cuts.members[choice] & fed
        stream, operator = np.nonzero(on_fog)
        # An operator runs in the cloud for the streams whose cut leaves it there, if any does.
        in_cloud = np.flatnonzero(~columns.is_source & (fed & ~on_fog).any(axis=0))
        return Placement.from_indices(
            self.problem,
            operator=np.concatenate([births.operator, operator, in_cloud]),
            node=np.concatenate(
                [births.node, traffic.node[stream], np.full(in_cloud.size, traffic.cloud)]
            ),
            origin=np.concatenate([births.site, traffic.site[stream], np.full(in_cloud.size, -1)]),
        )


def plan_cuts(
    table: Table,
    choice: Choice,
    *,
    strategy: str,
    why: str,
    started: float,
    gap: float | None = None,
) -> Plan:
    """The plan with these cuts; `started` is the `perf_counter()` at which the search began."""
    seconds = perf_counter() - started
    count = len(choice)
    above = np.count_nonzero(table.cuts.members[choice] & table.traffic.fed.T, axis=0)
    reasons = []
    for position, operator in enumerate(table.problem.application.operators):
        if operator.kind == "source":
            text = f"born in {operator.pin}"
        elif operator.kind == "sink":
            text = "a sink, in the cloud"
        else:
            cuts = f"of {len(table.cuts)} cuts, {why}"
            text = f"on the fog for {above[position]} of {count} streams: {cuts}"
        reasons.append(Reason(operator=operator.name, why=text))
    return make_plan(
        table.problem,
        table.place(choice),
        strategy=strategy,
        objective_name="usage",
        reasons=reasons,
        seconds=seconds,
        candidates=len(table.cuts) * count,
        gap=gap,
    )
