"""One operator's question: who is at the other ends of its edges, and what a node would cost it."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from thalweg.compiling import leaf, part
from thalweg.placement.compiled.room import (
    Flags,
    Floats,
    Index,
    Longs,
    Nodes,
    Taken,
    Work,
    link_between,
    slot_of,
    taken_on_link,
)

ALLOWED = 1.0 + 1e-9
"""Loads may be above what is left by this factor: sums round."""


class Rows(NamedTuple):
    """Figures of the ways between sites at the other ends (rows) and candidates' (columns)."""

    slot: Index
    """(2, sites): the row of ways from a site, and of ways to it; negative where there is none."""
    latency_s: Floats
    available_bps: Floats


class Question(NamedTuple):
    """What is known of an instance before its candidates are looked at."""

    cpu_ips: float
    memory_bytes: float
    work: float
    events_in: float
    node: Index
    """The node at the other end of each edge; edges to instances without a node are left out."""
    row: Index
    flow: Floats
    size: Floats
    bps: Floats
    lan_bps: Floats
    lan_latency_s: Floats
    total_bps: float
    host: Index
    """The nodes at the other ends, each once."""
    host_full: Flags
    """Whether its LAN link is too full for what flows there."""
    full_hosts: int
    site_row: Index
    """The rows of the sites at the other ends, each once."""
    site: Index
    site_outward: Flags
    site_bps: Floats
    nobody: int
    """−1: a number of no node."""


@part
def find_missing(
    nodes: Nodes, work: Work, taken: Taken, rows: Rows, instance: int, wanted: Longs
) -> int:
    """How many rows are missing: `wanted[:, k]` is a site and whether ways to it are asked for."""
    count = 0
    for k in range(work.first[instance], work.first[instance + 1]):
        other = taken.host[work.other[k]]
        if other < 0:
            continue
        site, way = nodes.site[other], np.int64(work.outward[k])
        if rows.slot[way, site] == -1:
            rows.slot[way, site] = -2  # asked for, and only once
            wanted[0, count] = site
            wanted[1, count] = way
            count += 1
    return count


@part
def ask(nodes: Nodes, work: Work, taken: Taken, rows: Rows, instance: int) -> Question:
    """Gather what the instance's edges say; marks the nodes at their other ends."""
    taken.used[1] += 1
    turn = taken.used[1]
    most = work.first[instance + 1] - work.first[instance]
    node, row = np.empty(most, np.int32), np.empty(most, np.int32)
    host, load = np.empty(most, np.int32), np.zeros(most)
    flow, size, bps = np.empty(most), np.empty(most), np.empty(most)
    lan_bps, lan_latency_s = np.empty(most), np.empty(most)
    site_row, site = np.empty(most, np.int32), np.empty(most, np.int32)
    site_outward, site_bps = np.empty(most, np.bool_), np.zeros(most)
    known = np.full(rows.latency_s.shape[0], -1, np.int32)
    count = hosts = sites = 0
    total_bps = 0.0
    for k in range(work.first[instance], work.first[instance + 1]):
        other = taken.host[work.other[k]]
        if other < 0:
            continue
        edge = work.edge[k]
        node[count] = other
        row[count] = rows.slot[np.int64(work.outward[k]), nodes.site[other]]
        flow[count], size[count], bps[count] = work.flow[edge], work.size[edge], work.bps[edge]
        lan_bps[count] = nodes.lan_bps[other]
        lan_latency_s[count] = nodes.lan_latency_s[other]
        total_bps += bps[count]
        slot = slot_of(taken, other)
        if taken.asked[slot] != turn:
            taken.asked[slot] = turn
            taken.member[slot] = hosts
            host[hosts] = other
            hosts += 1
        load[taken.member[slot]] += bps[count]
        if known[row[count]] < 0:
            known[row[count]] = sites
            site_row[sites] = row[count]
            site[sites] = nodes.site[other]
            site_outward[sites] = work.outward[k]
            sites += 1
        site_bps[known[row[count]]] += bps[count]
        count += 1
    host_full = np.empty(hosts, np.bool_)
    full_hosts = 0
    for h in range(hosts):
        left = nodes.lan_bps[host[h]] - taken.lan_bps[slot_of(taken, host[h])]
        host_full[h] = load[h] > 0.0 and load[h] > left * ALLOWED
        full_hosts += host_full[h]
    return Question(
        work.cpu_ips[instance],
        work.memory_bytes[instance],
        work.work[instance],
        work.events_in[instance],
        node[:count],
        row[:count],
        flow[:count],
        size[:count],
        bps[:count],
        lan_bps[:count],
        lan_latency_s[:count],
        total_bps,
        host[:hosts],
        host_full,
        full_hosts,
        site_row[:sites],
        site[:sites],
        site_outward[:sites],
        site_bps[:sites],
        int(taken.used[0] * 0 - 1),
    )


@leaf
def added_s(q: Question, nodes: Nodes, rows: Rows, column: int, node: int) -> float:
    """Communication time over all edges plus service time on the node; ∞ where a queue grows.

    Formulas (8) and (7), term by term as `thalweg.estimate.latency` computes them, without the
    time that windows take to fill: that is the same everywhere.
    """
    total = 0.0
    lan_bps, lan_latency_s = nodes.lan_bps[node], nodes.lan_latency_s[node]
    for j in range(q.node.size):
        if q.node[j] == node:
            continue
        waiting = 0.0
        if q.size[j] > 0.0:
            free = min(min(q.lan_bps[j], lan_bps), rows.available_bps[q.row[j], column])
            transfers = free / (8.0 * q.size[j])
            if not math.isinf(transfers):
                stable = transfers > q.flow[j]
                waiting = 1.0 / (transfers - q.flow[j]) if stable else math.inf
        total += waiting + ((q.lan_latency_s[j] + lan_latency_s) + rows.latency_s[q.row[j], column])
    if q.work > 0.0:
        service_rate = nodes.cpu_ips[node] / q.work
        stable = service_rate > q.events_in
        total += 1.0 / (service_rate - q.events_in) if stable else math.inf
    return total


@leaf
def has_room(q: Question, nodes: Nodes, taken: Taken, node: int, slot: int) -> bool:
    """Whether CPU and memory are left; what needs nothing fits even where nothing is left."""
    cpu, memory = nodes.cpu_ips[node], nodes.memory_bytes[node]
    if slot >= 0:
        cpu -= taken.cpu_ips[slot]
        memory -= taken.memory_bytes[slot]
    return (q.cpu_ips == 0.0 or cpu >= q.cpu_ips) and (
        q.memory_bytes == 0.0 or memory >= q.memory_bytes
    )


@leaf
def _fits(load: float, left: float) -> bool:
    return load == 0.0 or load <= left * ALLOWED


@leaf
def has_lan(q: Question, nodes: Nodes, taken: Taken, node: int, slot: int) -> bool:
    """Whether the LAN links of both ends carry what would flow between different nodes."""
    left = nodes.lan_bps[node]
    load, full = q.total_bps, q.full_hosts
    if slot >= 0:
        left -= taken.lan_bps[slot]
        if taken.asked[slot] == taken.used[1]:
            full -= q.host_full[taken.member[slot]]
            load = 0.0
            for j in range(q.node.size):
                if q.node[j] != node:
                    load += q.bps[j]
    return full == 0 and _fits(load, left)


@leaf
def has_wan(q: Question, work: Work, taken: Taken, rows: Rows, column: int, site: int) -> bool:
    """Whether the links between the sites carry it, where each pair of sites has its own."""
    if not taken.on_links:
        return True
    for s in range(q.site.size):
        if q.site[s] == site:
            continue
        start, end = q.site[s], site
        if q.site_outward[s]:
            start, end = end, start
        left = rows.available_bps[q.site_row[s], column] - taken_on_link(
            taken, link_between(start, end, work.site_count)
        )
        if not _fits(q.site_bps[s], left):
            return False
    return True
