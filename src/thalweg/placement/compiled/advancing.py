"""Many operators placed in one go, as long as nothing is missing and every one finds a node."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from thalweg.compiling import kernel, part
from thalweg.placement.compiled.choosing import halve, search_pool
from thalweg.placement.compiled.pools import (
    ANYWHERE,
    IN_TIER,
    OUTSIDE_CLOUDS,
    Bytes,
    Groups,
    Pool,
    is_in,
    no_candidates,
)
from thalweg.placement.compiled.question import Question, Rows, ask, find_missing
from thalweg.placement.compiled.room import Floats, Index, Longs, Nodes, Taken, Work, settle

PLAIN, NEAR, HALVING = 0, 1, 2
"""How the first stage of a step looks: in its groups, near senders and sinks, or by halving."""
_IN_CLOUD = IN_TIER - 2


class Steps(NamedTuple):
    """One step for each operator; each has two stages, of which the second may be empty."""

    instance: Longs
    mode: Bytes
    first: Longs
    """(2, steps): groups of a stage are `groups[first : last]`."""
    last: Longs
    where: Longs
    rank: Longs
    """Which of the ranks holds the priorities of the first stage, by column."""
    ranks: Index
    """(ranks, columns); the first is 0 everywhere."""
    node: Longs
    """The one node that a pin allows; −1 for none."""
    groups: Index
    first_sink: Longs
    """Sites of sinks of step k are `sink[first_sink[k] : first_sink[k + 1]]`."""
    sink: Index
    ranked: Index
    """The nodes that are halved."""


class Results(NamedTuple):
    """What was found in each step: the best and the next best, and in which stage."""

    node: Longs
    """(2, steps)."""
    cost_s: Floats
    """(2, steps)."""
    looked: Longs
    stage: Longs


class Places(NamedTuple):
    """The sites of a network, and what is nearest to each: −2 as long as that is not known."""

    site: Index
    """The site of each column."""
    column: Index
    tier: npt.NDArray[np.uint8]
    first_group: Index
    near_edge: Index
    near_cloud: Index
    no_verdict: Bytes


@part
def _find_nearest(places: Places, rows: Rows, site: int) -> None:
    """Note the nearest other site outside of clouds and the nearest cloud. Ties: the lower."""
    latency_s = rows.latency_s[rows.slot[0, site]]
    for cloud in (False, True):
        best, best_s = -1, math.inf
        for column in range(places.site.size):
            other = places.site[column]
            if is_in(_IN_CLOUD if cloud else OUTSIDE_CLOUDS, places.tier, other):
                if other == site and not cloud:
                    continue
                if best < 0 or latency_s[column] < best_s:
                    best, best_s = int(other), latency_s[column]
        if cloud:
            places.near_cloud[site] = best
        else:
            places.near_edge[site] = best


@part
def _groups_around(q: Question, steps: Steps, places: Places, rows: Rows, step: int) -> Index:
    """The groups of the senders' sites, of the nearest to each of them, and of the sinks'."""
    first, last = steps.first_sink[step], steps.first_sink[step + 1]
    sites = np.empty(3 * q.site.size + last - first, np.int64)
    count = 0
    for site in q.site:
        if places.near_edge[site] == -2:
            _find_nearest(places, rows, site)
        for near in (site, places.near_edge[site], places.near_cloud[site]):
            if near >= 0:
                sites[count] = near
                count += 1
    for k in range(first, last):
        sites[count] = steps.sink[k]
        count += 1
    sites = np.unique(sites[:count])
    total = 0
    for site in sites:
        total += places.first_group[site + 1] - places.first_group[site]
    groups = np.empty(total, np.int32)
    total = 0
    for site in sites:
        for group in range(places.first_group[site], places.first_group[site + 1]):
            groups[total] = group
            total += 1
    return groups


@part
def _is_held(steps: Steps, step: int) -> bool:
    """Whether a step has a stage that can be taken here."""
    if steps.mode[step] != PLAIN or steps.node[step] >= 0:
        return True
    return bool(
        steps.first[0, step] != steps.last[0, step] or steps.first[1, step] != steps.last[1, step]
    )


@kernel
def advance(
    nodes: Nodes,
    groups: Groups,
    work: Work,
    taken: Taken,
    rows: Rows,
    places: Places,
    steps: Steps,
    results: Results,
    step: int,
    level: int,
    wanted: Longs,
) -> tuple[int, int]:
    """Take one step after the other, from `step` on; the step that was not taken, and why.

    Where rows are missing their number is returned, and 0 where no stage finds a node. (`level` is
    a number that is not known beforehand, lest everything be compiled twice.)
    """
    while step < steps.instance.size:
        instance = steps.instance[step]
        if not _is_held(steps, step):
            return step, 0  # Of an operator with very many edges not all rows are held at once.
        missing = find_missing(nodes, work, taken, rows, instance, wanted)
        if missing > 0:
            return step, missing
        q = ask(nodes, work, taken, rows, instance)
        found = no_candidates()
        looked = 0
        for stage in range(2):
            first, last = steps.first[stage, step], steps.last[stage, step]
            mode = steps.mode[step] if stage == 0 else PLAIN
            pin = steps.node[step] if stage == 0 else -1
            if mode == PLAIN and first == last and pin < 0:
                continue
            wide = mode != PLAIN
            pool = Pool(
                _groups_around(q, steps, places, rows, step)
                if mode == NEAR
                else steps.groups[first:last],
                pin,
                places.column,
                steps.ranks[steps.rank[step] if stage == 0 else 0],
                places.no_verdict,
                ANYWHERE if wide else steps.where[stage, step],
                places.tier,
                mode == NEAR,
            )
            if mode == HALVING:
                looked += halve(q, nodes, work, taken, rows, pool, steps.ranked, found)[0]
            else:
                looked += search_pool(q, nodes, groups, work, taken, rows, pool, level, found)
            if found.node[0] >= 0:
                results.stage[step] = stage
                break
        results.looked[step] = looked
        if found.node[0] < 0:
            return step, 0
        results.node[:, step] = found.node
        results.cost_s[:, step] = found.cost_s
        settle(nodes, work, taken, instance, found.node[0])
        step += 1
    return step, 0
