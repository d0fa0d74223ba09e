"""The state of one run of a greedy strategy: which instance is where, and what room is left."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from thalweg.estimate.constraints import ROUNDING
from thalweg.estimate.demand import estimate_demand
from thalweg.estimate.rates import estimate_rates
from thalweg.model.graph import Index, distinct
from thalweg.model.mesh import CoordinateWan, MeshWan
from thalweg.model.placement import Placement
from thalweg.model.problem import Problem
from thalweg.placement.compiled.advancing import Places, Results, Steps, advance
from thalweg.placement.compiled.choosing import choose, find_lower_bound, find_nearest_miss
from thalweg.placement.compiled.pools import ROOM_FOR_ALL, Pool
from thalweg.placement.compiled.room import (
    make_taken,
    settle,
    settle_all,
    slot_of,
    taken_on_link,
)
from thalweg.placement.greedy.links import Flows, SharedLinks, link_loads
from thalweg.placement.greedy.scopes import Scope, Scopes
from thalweg.placement.greedy.workload import (
    gather_groups,
    gather_nodes,
    gather_work,
    single_instances,
)
from thalweg.placement.network_index import read_only


class Choice(NamedTuple):
    """The best node and the next best (−1: none), and how many were looked at."""

    node: int
    cost_s: float
    runner_up: int
    runner_up_cost_s: float
    looked: int


class Search:
    """Sources are where they are born; everyone else is placed once, one after the other.

    A candidate's cost is the latency it adds: formula (8) over the edges to all that have a node,
    plus formula (7) without the time that a window takes to fill, which is the same everywhere.
    It has room if CPU and memory are left, no queue grows, and the LAN and WAN links of all those
    edges carry what is added.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.scopes = Scopes(problem.network)
        self.skeleton = single_instances(problem)
        self.rates = estimate_rates(self.skeleton)
        self.demand = estimate_demand(self.skeleton, self.rates)
        self.instance_of: list[int] = np.searchsorted(
            self.skeleton.operator, np.arange(len(problem.application.operators))
        ).tolist()
        self.candidates = 0
        self._nodes = gather_nodes(problem.network)
        self._work = gather_work(self.skeleton, self.rates, self.demand)
        self._groups = gather_groups(problem.network, self.demand)
        # On a tree, or on any graph of links, ways share links; those are looked after here.
        self.own_links = isinstance(problem.network.wan, (MeshWan, CoordinateWan))
        edges = int(self.skeleton.graph.source.size)
        self._taken = make_taken(self.skeleton.size, edges, self.own_links)
        self._links = SharedLinks(problem.network)
        self._wanted = np.empty((2, int(np.diff(self._work.first).max())), dtype=np.int64)
        born = np.flatnonzero(self.skeleton.graph.roots)
        settle_all(self._nodes, self._work, self._taken, born, self.skeleton.node[born])

    def flows_of(self, instance: int) -> Flows:
        """What an instance exchanges with instances that have a node."""
        listed = slice(self._work.first[instance], self._work.first[instance + 1])
        node = self._taken.host[self._work.other[listed]]
        placed = node >= 0
        edge = self._work.edge[listed][placed]
        return Flows(node[placed], self._work.outward[listed][placed], self._work.bps[edge], edge)

    def sites_around(self, instance: int) -> list[int]:
        """The sites of those that send to an instance or get from it and have a node, ascending."""
        nodes = self.flows_of(instance).node
        return sorted(set(self.problem.network.node_site[nodes].tolist()))

    def look(
        self,
        instance: int,
        scope: Scope,
        level: int = ROOM_FOR_ALL,
        *,
        priority: Index | None = None,
        groups: Index | None = None,
        one_per_site: bool = False,
    ) -> Choice | None:
        """The best candidate of a scope by priority (of its columns), cost and node index.

        With `groups` only their nodes and those at the other ends of edges are candidates; with
        `one_per_site`, of each site's groups only the node with room and least LAN latency.
        """
        best: Choice | None = None
        for part in scope.parts(self.degree_of(instance)):
            ranks, wanted = priority, groups
            if ranks is None:
                ranks = part.no_priority
            elif part is not scope:
                ranks = ranks[scope.column[part.sites]]
            if wanted is None:
                wanted = part.groups
            elif part is not scope:
                wanted = wanted[part.column[scope.index.group_site[wanted]] >= 0]
            found = self._look_in(instance, part, level, ranks, wanted, one_per_site)
            self.candidates += found.looked
            best = (
                found
                if best is None
                else _merge(best, found, scope, priority if level == ROOM_FOR_ALL else None)
            )
        return None if best is None or best.node < 0 else best

    def _look_in(
        self,
        instance: int,
        scope: Scope,
        level: int,
        priority: Index,
        groups: Index,
        one_per_site: bool,
    ) -> Choice:
        pool = self._pool(scope, groups, priority, one_per_site)
        while True:
            missing, node, cost_s, runner_up, runner_up_cost_s, looked = choose(
                self._nodes,
                self._groups,
                self._work,
                self._taken,
                scope.rows,
                pool,
                instance,
                level,
                self._wanted,
            )
            if missing:
                scope.fetch(*self._wanted[:, :missing].copy())
                continue
            choice = Choice(node, cost_s, runner_up, runner_up_cost_s, looked)
            if self.own_links or level != ROOM_FOR_ALL:
                return choice
            if not self._judge_links(instance, scope, pool, (choice.node, choice.runner_up)):
                return choice

    def _pool(
        self, scope: Scope, groups: Index, priority: Index, one_per_site: bool = False
    ) -> Pool:
        return Pool(
            groups,
            scope.node,
            scope.column,
            priority,
            scope.new_verdicts(),
            scope.where,
            read_only(self.problem.network.site_tier),
            one_per_site,
        )

    def _judge_links(self, instance: int, scope: Scope, pool: Pool, nodes: tuple[int, ...]) -> bool:
        """Give verdicts on the WAN of these nodes' sites; whether one of them is bad news."""
        flows, refused = self.flows_of(instance), False
        for node in nodes:
            if node >= 0:
                column = scope.column[self.problem.network.node_site[node]]
                if pool.verdict[column] == 0:
                    pool.verdict[column] = 1 if self._links.carry(flows, node) else -1
                refused |= bool(pool.verdict[column] < 0)
        return refused

    def full_links(self, instance: int, node: int) -> list[tuple[int, float, float]]:
        """(link, load, what is left) of every WAN link that would not carry what is added."""
        flows = self.flows_of(instance)
        if not self.own_links:
            return self._links.find_full(flows, node)
        full = []
        for link, load in link_loads(self.problem.network, flows, node):
            free = float(self.problem.network.wan.link_available_bps([link])[0])
            left = free - float(taken_on_link(self._taken, link))
            if load > 0 and load > left * (1 + ROUNDING):
                full.append((link, load, left))
        return full

    def left_on_node(self, node: int) -> tuple[float, float]:
        """The CPU [instr/s] and memory [B] left on a node."""
        slot = slot_of(self._taken, node)
        cpu, memory = float(self._nodes.cpu_ips[node]), float(self._nodes.memory_bytes[node])
        if slot >= 0:
            cpu -= float(self._taken.cpu_ips[slot])
            memory -= float(self._taken.memory_bytes[slot])
        return cpu, memory

    def left_on_lan_bps(self, node: int) -> float:
        """What is left on the LAN link of a node."""
        slot = slot_of(self._taken, node)
        taken = float(self._taken.lan_bps[slot]) if slot >= 0 else 0.0
        return float(self._nodes.lan_bps[node]) - taken

    def halve(self, instance: int, ranked: Index) -> Choice | None:
        """The node to which halving the ranked nodes leads, down to the first that fits."""
        scope = self.scopes.everywhere()
        pool = self._pool(scope, ranked[:0], scope.no_priority)
        while True:
            missing, doubtful, node, cost_s, before, before_s, looked = find_lower_bound(
                self._nodes,
                self._work,
                self._taken,
                scope.rows,
                pool,
                ranked,
                instance,
                self._wanted,
            )
            if missing:
                scope.fetch(*self._wanted[:, :missing].copy())
            elif doubtful >= 0:
                first = int(self.problem.network.first_node[doubtful])
                self._judge_links(instance, scope, pool, (first,))
            else:
                self.candidates += looked
                return Choice(node, cost_s, before, before_s, looked) if node >= 0 else None

    def advance(self, steps: Steps, results: Results) -> Iterator[int]:
        """Take steps as long as each finds a node; yields those that find none, to be settled."""
        scope = self.scopes.everywhere()
        scope.fetch_early(distinct(self.problem.births.site))
        places = Places(
            read_only(scope.sites),
            scope.column,
            read_only(self.problem.network.site_tier),
            scope.index.site_first_group,
            np.full(scope.column.size, -2, dtype=np.int32),
            np.full(scope.column.size, -2, dtype=np.int32),
            scope.new_verdicts(),
        )
        step = 0
        while True:
            step, missing = advance(
                self._nodes,
                self._groups,
                self._work,
                self._taken,
                scope.rows,
                places,
                steps,
                results,
                step,
                ROOM_FOR_ALL,
                self._wanted,
            )
            if missing:
                scope.fetch(*self._wanted[:, :missing].copy())
            elif step == steps.instance.size:
                self.candidates += int(results.looked.sum())
                return
            else:
                yield step
                step += 1

    def degree_of(self, instance: int) -> int:
        """How many edges an instance has."""
        return int(self._work.first[instance + 1] - self._work.first[instance])

    def nearest_miss(self, instance: int, scope: Scope) -> tuple[int, int, float]:
        """What all nodes of a scope lack (0: CPU, 1: memory, 2: else), who least, and its rest."""
        pool = self._pool(scope, scope.groups, scope.no_priority)
        lacks, node, left = find_nearest_miss(
            self._nodes, self._groups, self._work, self._taken, pool, instance
        )
        return int(lacks), int(node), float(left)

    def settle(self, instance: int, node: int) -> None:
        """Note that the instance runs on the node."""
        if not self.own_links:
            self._links.take(self.flows_of(instance), node)
        settle(self._nodes, self._work, self._taken, instance, node)

    def placement(self) -> Placement:
        """Where everything is."""
        skeleton = self.skeleton
        return Placement.from_indices(
            self.problem, skeleton.operator, self._taken.host, skeleton.origin
        )


def _merge(one: Choice, other: Choice, scope: Scope, priority: Index | None) -> Choice:
    """The two best of two parts of a scope."""

    def rank(candidate: tuple[int, float]) -> tuple[int, float, int]:
        node, cost_s = candidate
        column = scope.column[scope.network.node_site[node]]
        return (0 if priority is None else int(priority[column]), cost_s, node)

    offered = [
        (node, cost_s)
        for choice in (one, other)
        for node, cost_s in (
            (choice.node, choice.cost_s),
            (choice.runner_up, choice.runner_up_cost_s),
        )
        if node >= 0
    ]
    best = [*sorted(offered, key=rank), (-1, 0.0), (-1, 0.0)]
    return Choice(*best[0], *best[1], one.looked + other.looked)
