"""Which operators belong near the edge and which to a cloud, by where their events end."""

from __future__ import annotations

from functools import cache

import numpy as np

from thalweg.model.graph import Index
from thalweg.model.network import Tier
from thalweg.model.operator import Operator
from thalweg.model.problem import Problem
from thalweg.placement.greedy.scopes import Scope, Scopes
from thalweg.placement.greedy.steps import Stage

_NEAREST = "cloud region: the cloud nearest to its sinks that has room"


class Regions:
    """An operator is of the cloud region if all its paths end in sinks that run in clouds.

    Every other one is of the edge region: it shares a path with a sink outside of the clouds, or
    with one that may run anywhere.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        app = problem.application
        sinks = [k for k, operator in enumerate(app.operators) if operator.kind == "sink"]
        places = [_place_of(problem, app.operators[k]) for k in sinks]
        self._sink_sites = [site for _, site in places]
        # Sets of sinks as bits: operators are many, sinks are few.
        self._outside = sum(1 << k for k, (in_cloud, _) in enumerate(places) if not in_cloud)
        self._reached = [0] * len(app.operators)
        for bit, sink in enumerate(sinks):
            self._reached[sink] = 1 << bit
        leaving: list[list[int]] = [[] for _ in app.operators]
        for source, target in zip(
            app.graph.source.tolist(), app.graph.target.tolist(), strict=True
        ):
            leaving[source].append(target)
        for operator in app.graph.order[::-1].tolist():
            for target in leaving[operator]:
                self._reached[operator] |= self._reached[target]
        self._sites_of = cache(self._find_sites)
        self._cloud_order = cache(self._rank_clouds)
        self._two_nearest = cache(self._look_at_two)

    def is_cloud(self, operator: int) -> bool:
        """Whether the operator is of the cloud region."""
        return not self._reached[operator] & self._outside

    def sink_sites(self, operator: int) -> tuple[int, ...]:
        """The sites of the sinks at the ends of its paths, ascending, as far as pins tell."""
        return self._sites_of(self._reached[operator])

    def _find_sites(self, reached: int) -> tuple[int, ...]:
        sites = {site for bit, site in enumerate(self._sink_sites) if reached >> bit & 1}
        return tuple(sorted(sites - {-1}))

    def nearest_clouds(self, operator: int, scopes: Scopes) -> Stage:
        """A look at the cloud nearest to its sinks, and at the next nearest, in this order."""
        return self._two_nearest(self.sink_sites(operator), scopes)

    def _look_at_two(self, sinks: tuple[int, ...], scopes: Scopes) -> Stage:
        scope = scopes.everywhere()
        ranks = self._cloud_order(sinks, scope)
        columns = np.flatnonzero((ranks < 2) & scope.index.site_is_cloud[scope.sites])
        pair = scopes.these(f"the clouds nearest to sites {sinks}", scope.sites[columns])
        return Stage(pair, _NEAREST, priority=ranks[columns])

    def clouds_first(self, operator: int, scope: Scope) -> Index:
        """Priorities of a scope's sites: the clouds nearest to its sinks first, no cloud last.

        Nearest is the least sum of latencies to the sites of all its sinks. Ties: the lower site.
        """
        return self._cloud_order(self.sink_sites(operator), scope)

    def _rank_clouds(self, sinks: tuple[int, ...], scope: Scope) -> Index:
        is_cloud = scope.index.site_is_cloud[scope.sites]
        clouds = scope.sites[is_cloud]
        rank = np.full(scope.sites.size, clouds.size, dtype=np.int32)
        if not sinks:
            rank[is_cloud] = 0
        elif clouds.size:
            latency_s = self._problem.network.wan.latency_s(clouds[:, None], np.array([sinks]))
            nearest = np.argsort(latency_s.sum(axis=1), kind="stable")
            rank[scope.column[clouds[nearest]]] = np.arange(clouds.size, dtype=np.int32)
        return rank


def cloud_region(scopes: Scopes, regions: Regions, operator: int) -> tuple[Stage, ...]:
    """Where an operator of the cloud region goes: the nearest cloud, the next, or else the edge."""
    scope = scopes.everywhere()
    if not regions.sink_sites(operator):
        first = Stage(scopes.clouds(), "cloud region: least added latency of {looked} in cloud")
    else:
        first = regions.nearest_clouds(operator, scopes)
    return first, Stage(scope, _NEAREST, priority=regions.clouds_first(operator, scope))


def _place_of(problem: Problem, sink: Operator) -> tuple[bool, int]:
    """Whether a sink runs in a cloud for certain, and its site (−1 where several are allowed)."""
    net, pin = problem.network, sink.pin
    if pin is None:
        return False, -1
    if pin.tier is not None:
        return pin.tier == Tier.CLOUD.label, -1
    if pin.site is not None:
        site = net.site_index[pin.site]
    else:
        site = int(net.node_site[net.node_index(str(pin.node))])
    return bool(net.site_tier[site] == Tier.CLOUD), site
