"""What operators and pairs of them cost on places, at the least."""

from __future__ import annotations

import math

import numpy as np

from thalweg.compiling import part, search_kernel
from thalweg.model.graph import Floats
from thalweg.placement.local_search.compiled.costs import service_s, transfer_s, way_between
from thalweg.placement.local_search.figures import (
    EDGE_PATHS,
    FREE_CPU,
    PATHS,
    Figures,
    Integers,
)


@part
def _edge_cost(f: Figures, e: int, a: int, b: int) -> float:
    if a == b:
        return 0.0
    way_s, free = way_between(f.node, f.spot, f.latency_s, f.free_bps, f.steps, a, b)
    seconds = transfer_s(f.edge, e, way_s, free)
    return f.edge[e, EDGE_PATHS] * seconds if seconds > 0.0 else 0.0


@search_kernel
def own_costs(f: Figures, copy: int, nodes: Integers, placed: Integers) -> Floats:
    """Service of the copy on each node, and the edges to copies that are placed (not −1)."""
    cost = np.zeros(nodes.size)
    for k in range(nodes.size):
        n = nodes[k]
        seconds = service_s(f.copy, copy, f.node[n, FREE_CPU])
        if seconds > 0.0:
            cost[k] = f.copy[copy, PATHS] * seconds
        for j in range(f.first[copy], f.first[copy + 1]):
            e = f.incident[j]
            a = n if f.ends[e, 0] == copy else placed[f.ends[e, 0]]
            b = n if f.ends[e, 1] == copy else placed[f.ends[e, 1]]
            if a >= 0 and b >= 0:
                cost[k] += _edge_cost(f, e, a, b)
    return cost


@part
def _pair_cost(f: Figures, i: int, j: int, a: int, b: int) -> float:
    """The edges between copies i and j, on nodes a and b."""
    cost = 0.0
    for k in range(f.first[i], f.first[i + 1]):
        e = f.incident[k]
        if f.ends[e, 1] == j:
            cost += _edge_cost(f, e, a, b)
        elif f.ends[e, 0] == j:
            cost += _edge_cost(f, e, b, a)
    return cost


@search_kernel
def pair_costs(
    f: Figures, i: int, j: int, nodes_i: Integers, nodes_j: Integers, second: Integers
) -> Floats:
    """The edges between two copies, for each pair of nodes, each node the nearest of its place.

    On the same place they cost nothing if the two can share a node; `second[k]` is −2 then, for
    the k-th node of the first copy. Else one of them is on the second node of the place, which
    `second` has, −1 where there is none.
    """
    cost = np.zeros((nodes_i.size, nodes_j.size))
    for p in range(nodes_i.size):
        for q in range(nodes_j.size):
            a, b = nodes_i[p], nodes_j[q]
            if a != b:
                cost[p, q] = _pair_cost(f, i, j, a, b)
            elif second[p] == -1:
                cost[p, q] = math.inf
            elif second[p] >= 0:
                cost[p, q] = _pair_cost(f, i, j, a, second[p])
    return cost
