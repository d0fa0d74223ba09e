"""Applications and networks as graphs of networkx, for its algorithms and drawings.

Attributes are named as those of the model, with the unit last. networkx comes with the extra
`thalweg[graph]`, and is loaded when a graph is made.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from thalweg.errors import MissingExtra
from thalweg.model.links import LinkWan
from thalweg.model.network import Network, Tier
from thalweg.model.operator import CountWindow, Operator
from thalweg.model.tree import TreeWan

if TYPE_CHECKING:
    import networkx as nx

    from thalweg.model.application import Application

_NODE_FIGURES = (
    "cpu_ips",
    "cpu_available_ips",
    "memory_bytes",
    "memory_available_bytes",
)


def application_graph(application: Application) -> nx.DiGraph:
    """The operators by name, in the order of the application, and its streams."""
    graph = _load_networkx("Application").DiGraph(name=application.name)
    for operator in application.operators:
        graph.add_node(operator.name, **_describe_operator(operator))
    for stream in application.streams:
        graph.add_edge(stream.source, stream.target, probability=stream.probability)
    return graph


def network_graph(network: Network, *, machines: bool = True) -> nx.DiGraph:
    """The sites by name, their machines by `site/name`, and both directions of every link."""
    graph = _load_networkx("Network").DiGraph(name=network.name)
    for position, name in enumerate(network.site_names):
        graph.add_node(name, **_describe_site(network, position))
    names = network.site_names
    graph.add_edges_from((names[a], names[b], figures) for a, b, figures in _links(network))
    if machines:
        _add_machines(graph, network)
    return graph


def _load_networkx(what: str) -> Any:
    try:
        import networkx
    except ImportError as error:
        raise MissingExtra(
            f"{what}.to_networkx() needs networkx. Hint: pip install 'thalweg[graph]'"
        ) from error
    return networkx


def _describe_operator(operator: Operator) -> dict[str, Any]:
    """What is said of an operator; what is left out has no attribute."""
    facts: dict[str, Any] = {
        "kind": operator.kind,
        "selectivity": operator.selectivity,
        "compression": operator.compression,
        "cpu_per_event_instructions": operator.cpu_per_event,
        "cpu_per_byte_instructions": operator.cpu_per_byte,
        "memory_bytes": operator.memory,
        "memory_factor": operator.memory_factor,
        "state_bytes": operator.state,
        "replicable": operator.replicable,
    }
    if isinstance(operator.window, CountWindow):
        facts["window_events"] = operator.window.events
    elif operator.window is not None:
        facts["window_length_s"] = operator.window.length
        facts["window_slide_s"] = operator.window.slide
    if operator.pin is not None:
        facts["pin"] = str(operator.pin)
    if operator.kind == "source":
        facts["rate_per_s"], facts["event_size_bytes"] = operator.rate, operator.event_size
    return facts


def _describe_site(network: Network, site: int) -> dict[str, Any]:
    parent = int(network.site_parent[site])
    facts: dict[str, Any] = {
        "kind": "site",
        "tier": Tier(network.site_tier[site]).label,
        "machines": int(network.first_node[site + 1] - network.first_node[site]),
        "edge_delay_s": float(network.site_edge_delay_s[site]),
    }
    return facts if parent < 0 else {**facts, "parent": network.site_names[parent]}


def _add_machines(graph: nx.DiGraph, network: Network) -> None:
    """A vertex for each node of the network, joined to its site by its LAN link."""
    figures = {name: getattr(network, f"node_{name}").tolist() for name in _NODE_FIGURES}
    latency_s = network.node_lan_latency_s.tolist()
    bandwidth_bps = network.node_lan_bandwidth_bps.tolist()
    available_bps = network.node_lan_available_bps.tolist()
    for node, position in enumerate(network.node_site.tolist()):
        site, name = network.site_names[position], network.node_name(node)
        # A node alone in its site, without a name, is called as the site: it has number 0 there.
        name = f"{site}/0" if name == site else name
        graph.add_node(
            name,
            kind="machine",
            tier=graph.nodes[site]["tier"],
            site=site,
            **{figure: values[node] for figure, values in figures.items()},
        )
        link = {
            "latency_s": latency_s[node],
            "bandwidth_bps": bandwidth_bps[node],
            "available_bps": available_bps[node],
        }
        graph.add_edge(name, site, **link)
        graph.add_edge(site, name, **link)


def _links(network: Network) -> Iterator[tuple[int, int, dict[str, float]]]:
    """Every directed link between two sites that a message can take, with its figures."""
    wan = network.wan
    if isinstance(wan, (LinkWan, TreeWan)):
        count = len(wan.latency)
        ends = [wan.link_ends(link) for link in range(2 * count)]
        for link, (a, b) in enumerate(ends):
            if min(a, b) >= 0:  # The root of a tree has no link up.
                figures = (wan.latency[link // 2], wan.bandwidth[link // 2])
                yield a, b, _link_facts(*figures, wan.available[link // 2, link % 2])
        return
    others = np.arange(wan.site_count)
    for a in range(wan.site_count):
        figures_of = (wan.latency_s, wan.bandwidth_bps, wan.available_bps)
        rows = [np.broadcast_to(figure(a, others), others.shape).tolist() for figure in figures_of]
        for b, row in enumerate(zip(*rows, strict=True)):
            if a != b and row[0] != np.inf:
                yield a, b, _link_facts(*row)


def _link_facts(latency_s: float, bandwidth_bps: float, available_bps: float) -> dict[str, float]:
    return {
        "latency_s": float(latency_s),
        "bandwidth_bps": float(bandwidth_bps),
        "available_bps": float(available_bps),
    }
