"""What stands still on a page: operators, sites and links, with their figures for people."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from thalweg.model import CountWindow, LinkWan, Network, Operator, Problem, TreeWan
from thalweg.model.network import Tier
from thalweg.strategy import strategies
from thalweg.units import (
    BANDWIDTH,
    CPU_SPEED,
    DURATION,
    EVENT_RATE,
    SIZE,
    WORK,
    WORK_PER_BYTE,
    Dimension,
    show_quantity,
)
from thalweg.web.grouping import Grouping
from thalweg.web.picture import plain_number

Plain = dict[str, Any]
Facts = list[list[str]]
_MOST_SOURCES = 2_000
_MOST_LINKS = 600


def show(value: float, dimension: Dimension) -> str:
    """A quantity for people; ∞ is "no limit"."""
    return "no limit" if math.isinf(value) else show_quantity(value, dimension)


def describe_scene(problem: Problem, grouping: Grouping, strategy: str) -> Plain:
    """Everything that a page draws once."""
    app, net = problem.application, problem.network
    limits = app.limits
    births, operators = problem.births, app.operators
    born = zip(births.operator.tolist(), births.site.tolist(), births.rate.tolist(), strict=True)
    return {
        "limits": {
            "response_time_s": _limit(limits.response_time_s),
            "uplink_bps": _limit(limits.uplink_bps),
            "usage": _limit(limits.usage),
        },
        "operators": [
            {"name": o.name, "kind": o.kind, "facts": operator_facts(o)} for o in operators
        ],
        "streams": [{"source": s.source, "target": s.target} for s in app.streams],
        "sites": [_site(grouping, name) for name in grouping.names],
        "links": describe_links(grouping),
        "left_out": grouping.left_out,
        "sources": [
            {"source": operators[o].name, "site": net.site_names[s], "rate": rate}
            for o, s, rate in list(born)[:_MOST_SOURCES]
        ],
        "strategies": _strategies(strategy),
        "strategy": strategy,
    }


def _strategies(used: str) -> list[Plain]:
    """All that can be asked; a chain is none of the registered ones, but may be in use."""
    found = strategies()
    more = {} if used in found else {used: "the one in use"}
    return [{"name": name, "text": text} for name, text in (found | more).items()]


def operator_facts(operator: Operator) -> Facts:
    """What is declared or was profiled of an operator."""
    facts = [["kind", operator.kind]]
    if operator.kind == "source":
        facts.append(["rate", show(operator.rate or 0.0, EVENT_RATE)])
        facts.append(["event size", show(operator.event_size or 0.0, SIZE)])
    else:
        facts.append(["selectivity", f"{operator.selectivity:g} events out for each one in"])
        facts.append(["compression", f"{operator.compression:g} of the size of an event"])
        facts.append(["CPU per event", show(operator.cpu_per_event, WORK)])
        if operator.cpu_per_byte:
            facts.append(["CPU per byte", show(operator.cpu_per_byte, WORK_PER_BYTE)])
        facts.append(["memory", show(operator.memory, SIZE)])
        facts.append(["may be replicated", "yes" if operator.replicable else "no"])
    window = operator.window
    if isinstance(window, CountWindow):
        facts.append(["window", f"{window.events:g} events"])
    elif window is not None:
        length, slide = show(window.length, DURATION), show(window.slide, DURATION)
        facts.append(["window", f"{length}, every {slide}"])
    if operator.state:
        facts.append(["state", show(operator.state, SIZE)])
    if operator.pin is not None:
        facts.append(["pinned to", str(operator.pin)])
    return facts


def site_facts(grouping: Grouping, name: str) -> Facts:
    """What a site, or a group of sites, has."""
    net, members = grouping.network, grouping.members(name)
    alone = members.size == 1
    # Of a single site they are a range; to look through all nodes for each would take long.
    nodes = net.nodes_in_site(int(members[0])) if alone else np.flatnonzero(_among(net, members))
    facts = [["tier", Tier(net.site_tier[members[0]]).label]]
    if members.size > 1:
        facts.append(["sites", f"{members.size:,}"])
    else:
        parent = int(net.site_parent[members[0]])
        facts += [["parent", net.site_names[parent]]] if parent >= 0 else []
        facts.append(["Spark", net.address_of(name)])
    facts.append(["nodes", f"{nodes.size:,}"])
    for label, figures, dimension in (
        ("CPU of a node", net.node_cpu_available_ips, CPU_SPEED),
        ("memory of a node", net.node_memory_available_bytes, SIZE),
    ):
        if nodes.size:
            facts.append([label, _span(figures[nodes], dimension)])
    return facts


def describe_links(grouping: Grouping) -> list[Plain]:
    """The links of the network between what is shown; none of a full mesh of many."""
    net = grouping.network
    found: dict[tuple[str, str], Facts] = {}
    for a, b in _link_ends(net):
        one, other = grouping.name_of(a), grouping.name_of(b)
        if one == other or (one, other) in found or (other, one) in found:
            continue
        found[one, other] = [
            ["latency", show(float(net.wan.latency_s(a, b)), DURATION)],
            ["bandwidth", show(float(net.wan.bandwidth_bps(a, b)), BANDWIDTH)],
        ]
        if len(found) > _MOST_LINKS:
            return []
    return [{"a": a, "b": b, "facts": facts} for (a, b), facts in found.items()]


def _link_ends(net: Network) -> Sequence[tuple[int, int]]:
    """The two sites of every link; none where each pair of sites has one of its own."""
    wan = net.wan
    if isinstance(wan, LinkWan):
        return list(zip(wan.a.tolist(), wan.b.tolist(), strict=True))
    if isinstance(wan, TreeWan):
        return [(k, p) for k, p in enumerate(wan.parent.tolist()) if p >= 0]
    if net.site_count <= 12:
        return [(a, b) for a in range(net.site_count) for b in range(a)]
    return []


def _site(grouping: Grouping, name: str) -> Plain:
    net, members = grouping.network, grouping.members(name)
    x = y = None
    if net.site_area_m is not None and members.size == 1:
        west, south, east, north = net.site_area_m[members[0]].tolist()
        if not math.isnan(west):
            x, y = (west + east) / 2, (south + north) / 2
    return {
        "name": name,
        "tier": Tier(net.site_tier[members[0]]).label,
        "members": int(members.size),
        "x": x,
        "y": y,
        "facts": site_facts(grouping, name),
    }


def _among(net: Network, sites: np.ndarray) -> np.ndarray:
    """For every node whether it is in one of these sites."""
    chosen = np.zeros(net.site_count, dtype=bool)
    chosen[sites] = True
    return np.asarray(chosen[net.node_site])


def _span(values: np.ndarray, dimension: Dimension) -> str:
    low, high = float(values.min()), float(values.max())
    text = show(low, dimension)
    return text if low == high else f"{text} to {show(high, dimension)}"


def _limit(value: float) -> float | None:
    found = plain_number(value)
    return found if isinstance(found, float) else None
