"""`cloud-only`: everything that may move runs in a cloud."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

import numpy as np
import numpy.typing as npt

from thalweg.errors import Defect, InvalidInput
from thalweg.estimate.demand import Demand, estimate_demand
from thalweg.estimate.evaluate import make_plan
from thalweg.estimate.latency import transfer_time_s
from thalweg.estimate.queueing import mm1_sojourn_s
from thalweg.estimate.rates import Rates, estimate_rates
from thalweg.model.deployment import Deployment, deploy_indices
from thalweg.model.graph import Floats
from thalweg.model.placement import Placement
from thalweg.model.plan import Plan, Reason
from thalweg.model.problem import Problem
from thalweg.placement.room import Room
from thalweg.placement.sequence import deployment_sequence
from thalweg.strategy import strategy

_COST = "added latency [s]"
# Bounds the memory of one look at many senders and many candidates.
_MOST_PAIRS = 2**20


@strategy("cloud-only", "every movable operator on the cloud that adds least latency")
def cloud_only(problem: Problem, current: Placement | None = None) -> Plan:
    """Each operator in turn goes to the cloud node that adds least latency and has room.

    Added latency is the service time there plus the communication time from every operator that
    sends to it. Pinned operators go to the best node that their pin allows. Ties: the lower node
    index. Where nothing has room for all of it, the node of least latency among those with CPU and
    memory for it, or else among all, is taken all the same, and the plan says what it violates.
    `current` changes nothing: a first placement starts from nothing.
    """
    del current
    start = perf_counter()
    search = _Search(problem)
    for operator in deployment_sequence(problem.application):
        if problem.application.operators[operator].kind != "source":
            search.place(operator)
    seconds = perf_counter() - start
    skeleton = search.skeleton
    return make_plan(
        problem,
        Placement.from_indices(problem, skeleton.operator, search.node, skeleton.origin),
        strategy="cloud-only",
        reasons=search.reasons,
        seconds=seconds,
        candidates=search.candidates,
    )


@dataclass(frozen=True, eq=False)
class _Choice:
    """Candidates for one operator with what they would add, ∞ where the queue would not hold."""

    nodes: npt.NDArray[np.int64]
    cost_s: Floats
    fits: npt.NDArray[np.bool_]


class _Search:
    """The state of one run: which instance is where, and what room is left."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.skeleton = _single_instances(problem)
        self.rates: Rates = estimate_rates(self.skeleton)
        self.demand: Demand = estimate_demand(self.skeleton, self.rates)
        self.node = self.skeleton.node.astype(np.int64)
        self.room = Room(problem.network)
        self.reasons: list[Reason] = []
        self.candidates = 0
        self.instance_of = dict(
            zip(self.skeleton.operator.tolist(), range(self.skeleton.size), strict=True)
        )
        for position in np.flatnonzero(self.skeleton.graph.roots).tolist():
            self._settle(position, int(self.node[position]))
        for source in problem.application.sources:
            self.reasons.append(Reason(operator=source.name, why=f"born in {source.pin}"))

    def place(self, operator: int) -> None:
        """Put one operator on the best node that its pin, or the clouds, offer."""
        position = self.instance_of[operator]
        choice = self._weigh(operator, position)
        self.candidates += choice.nodes.size
        order = np.lexsort((choice.nodes, choice.cost_s, ~choice.fits))
        senders, flows = self._arriving(position)
        chosen = next(
            (
                k
                for k in order.tolist()
                if choice.fits[k] and self.room.carries(senders, int(choice.nodes[k]), flows)
            ),
            None,
        )
        has_room = chosen is not None
        best = int(order[0]) if chosen is None else chosen
        self.reasons.append(self._reason(operator, choice, order, best, has_room))
        self._settle(position, int(choice.nodes[best]))

    def _weigh(self, operator: int, position: int) -> _Choice:
        problem, net = self.problem, self.problem.network
        allowed = problem.allowed_nodes(operator)
        nodes = net.cloud_nodes if allowed is None else allowed
        if not nodes.size:
            raise InvalidInput(
                [
                    Defect(
                        path="network",
                        value=net.name,
                        rule="a network with at least one cloud site",
                        hint="cloud-only places operators in clouds alone",
                    )
                ]
            )
        added = self._communication_s(position, nodes)
        work = float(self.demand.work_per_event[position] * self.demand.passes[position])
        if work > 0:
            with np.errstate(over="ignore"):
                service_rate = net.node_cpu_available_ips[nodes] / work
            added = added + mm1_sojourn_s(service_rate, self.rates.events_in[position])
        need_cpu = float(self.demand.cpu_ips[position])
        need_memory = float(self.demand.memory_bytes[position])
        # What needs nothing fits even on a node that others have overloaded.
        has_cpu = (need_cpu == 0) | (self.room.cpu_free(nodes) >= need_cpu)
        has_memory = (need_memory == 0) | (self.room.memory_free(nodes) >= need_memory)
        return _Choice(nodes, added, has_cpu & has_memory & np.isfinite(added))

    def _communication_s(self, position: int, nodes: npt.NDArray[np.int64]) -> Floats:
        """The communication time from all senders together, for each candidate."""
        net, rates = self.problem.network, self.rates
        edges = np.flatnonzero(self.skeleton.graph.target == position)
        senders = self.node[self.skeleton.graph.source[edges]]
        added = np.zeros(nodes.size)
        step = max(_MOST_PAIRS // nodes.size, 1)
        for first in range(0, edges.size, step):
            sender, edge = senders[first : first + step, None], edges[first : first + step, None]
            added += transfer_time_s(
                net.available_bps(sender, nodes[None, :]),
                net.latency_s(sender, nodes[None, :]),
                rates.flow[edge],
                rates.flow_size[edge],
                sender == nodes[None, :],
            ).sum(axis=0)
        return added

    def _arriving(self, position: int) -> tuple[npt.NDArray[np.int64], Floats]:
        """The nodes that send to an instance, and how many bits/s each."""
        edges = np.flatnonzero(self.skeleton.graph.target == position)
        return self.node[self.skeleton.graph.source[edges]], self.rates.flow_bps[edges]

    def _settle(self, position: int, node: int) -> None:
        senders, flows = self._arriving(position)
        self.node[position] = node
        self.room.take(
            node,
            float(self.demand.cpu_ips[position]),
            float(self.demand.memory_bytes[position]),
            senders,
            flows,
        )

    def _reason(
        self,
        operator: int,
        choice: _Choice,
        order: npt.NDArray[np.int64],
        chosen: int,
        has_room: bool,
    ) -> Reason:
        pin = self.problem.application.operators[operator].pin
        count = choice.nodes.size
        pool = "cloud" if pin is None else str(pin)
        if pin is not None and pin.node is not None:
            why = f"pinned to {pin}"
        elif has_room:
            why = (
                f"least added latency of {count} in {pool}"
                if count > 1
                else f"the only node in {pool}"
            )
        else:
            why = f"no node in {pool} has room; least added latency of {count}"
        # What was passed over for lack of room is no runner-up.
        ranked = order.tolist()
        later = ranked[ranked.index(chosen) + 1 :]
        others = [k for k in later if choice.fits[k] or not has_room]
        return Reason(
            operator=self.problem.application.operators[operator].name,
            why=why,
            cost=float(choice.cost_s[chosen]),
            cost_name=_COST,
            considered=count,
            runner_up=self.problem.network.node_name(int(choice.nodes[others[0]]))
            if others
            else None,
            runner_up_cost=float(choice.cost_s[others[0]]) if others else None,
        )


def _single_instances(problem: Problem) -> Deployment:
    """Sources where they are born, everyone else once, on a node yet to be chosen."""
    births = problem.births
    others = [k for k, o in enumerate(problem.application.operators) if o.kind != "source"]
    return deploy_indices(
        problem,
        np.concatenate([births.operator, np.array(others, dtype=np.int32)]),
        np.concatenate([births.node, np.zeros(len(others), dtype=np.int32)]),
        np.concatenate([births.site, np.full(len(others), -1, dtype=np.int32)]),
    )
