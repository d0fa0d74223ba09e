"""What is taken of nodes and links while operators are placed, kept only where something is."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from thalweg.compiling import kernel, leaf, part

Floats = npt.NDArray[np.float64]
Index = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


class Nodes(NamedTuple):
    """The nodes of a network: where they are, what they have free, how far they are off."""

    site: Index
    cpu_ips: Floats
    memory_bytes: Floats
    lan_bps: Floats
    lan_latency_s: Floats


class Work(NamedTuple):
    """What instances need and send; each edge is listed at both of its ends."""

    cpu_ips: Floats
    memory_bytes: Floats
    work: Floats
    """Instructions for one event, all passes together."""
    events_in: Floats
    first: Longs
    """Edges of instance i are `edge[first[i] : first[i + 1]]`, in the order of their numbers."""
    edge: Longs
    other: Index
    """The instance at the other end."""
    outward: Flags
    """Whether the edge leaves the instance."""
    flow: Floats
    size: Floats
    bps: Floats
    site_count: int


class Taken(NamedTuple):
    """What placed instances take. Nodes and links are found by hash; slots are for nodes in use."""

    host: Index
    """The node of each instance; −1 as long as it has none."""
    node_key: Longs
    node_slot: Index
    used: Longs
    """How many slots are in use, and how many questions were asked."""
    cpu_ips: Floats
    memory_bytes: Floats
    lan_bps: Floats
    asked: Longs
    """The last question in which the node was at the other end of an edge."""
    member: Index
    """And its number among those ends."""
    link_key: Longs
    link_bps: Floats
    on_links: bool
    """Whether every pair of sites has a link of its own, so that these are kept here, too."""


def make_taken(instances: int, edges: int, on_links: bool) -> Taken:
    """Nothing is taken yet."""
    nodes = 1 << int(4 * instances + 3).bit_length()
    links = 1 << int(4 * edges + 3).bit_length() if on_links else 1
    return Taken(
        host=np.full(instances, -1, np.int32),
        node_key=np.full(nodes, -1, np.int64),
        node_slot=np.empty(nodes, np.int32),
        used=np.zeros(2, np.int64),
        cpu_ips=np.zeros(instances),
        memory_bytes=np.zeros(instances),
        lan_bps=np.zeros(instances),
        asked=np.zeros(instances, np.int64),
        member=np.zeros(instances, np.int32),
        link_key=np.full(links, -1, np.int64),
        link_bps=np.zeros(links),
        on_links=on_links,
    )


@leaf
def hash_of(key: int) -> int:
    """A number whose lower bits are spread."""
    return int(key) * 2654435761 ^ (int(key) >> 15)


@leaf
def _place_of(key: int, keys: Longs) -> int:
    """Where the key is in the table, or where it would go."""
    mask = keys.size - 1
    at = hash_of(key) & mask
    while keys[at] >= 0 and keys[at] != key:
        at = (at + 1) & mask
    return at


@kernel
def slot_of(taken: Taken, node: int) -> int:
    """The slot of a node in use; −1 where nothing is on it."""
    at = _place_of(node, taken.node_key)
    return taken.node_slot[at] if taken.node_key[at] == node else -1


@kernel
def taken_on_link(taken: Taken, link: int) -> float:
    """What is taken of a link between two sites."""
    at = _place_of(link, taken.link_key)
    return taken.link_bps[at] if taken.link_key[at] == link else 0.0


@leaf
def link_between(start: int, end: int, site_count: int) -> int:
    """The number of the link from one site to another, where each pair has its own."""
    return int(start) * site_count + end


@part
def _slot_for(taken: Taken, node: int) -> int:
    at = _place_of(node, taken.node_key)
    if taken.node_key[at] != node:
        taken.node_key[at] = node
        taken.node_slot[at] = taken.used[0]
        taken.used[0] += 1
    return int(taken.node_slot[at])


@kernel
def settle(nodes: Nodes, work: Work, taken: Taken, instance: int, node: int) -> None:
    """Note that the instance runs on the node, and what flows to and from those placed before."""
    here = _slot_for(taken, node)
    taken.host[instance] = node
    taken.cpu_ips[here] += work.cpu_ips[instance]
    taken.memory_bytes[here] += work.memory_bytes[instance]
    for k in range(work.first[instance], work.first[instance + 1]):
        other = taken.host[work.other[k]]
        if other < 0 or other == node:
            continue
        bps = work.bps[work.edge[k]]
        taken.lan_bps[slot_of(taken, other)] += bps
        taken.lan_bps[here] += bps
        start, end = nodes.site[other], nodes.site[node]
        if taken.on_links and start != end:
            if work.outward[k]:
                start, end = end, start
            link = link_between(start, end, work.site_count)
            at = _place_of(link, taken.link_key)
            taken.link_key[at] = link
            taken.link_bps[at] += bps


@kernel
def settle_all(nodes: Nodes, work: Work, taken: Taken, instances: Longs, hosts: Index) -> None:
    """Note many instances, in this order."""
    for k in range(instances.size):
        settle(nodes, work, taken, instances[k], hosts[k])
