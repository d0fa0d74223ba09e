"""What a running application leaves of a network to others."""

from __future__ import annotations

import numpy as np

from thalweg.estimate.evaluate import evaluate
from thalweg.model.deployment import Deployment, deploy
from thalweg.model.figures import less
from thalweg.model.graph import Index
from thalweg.model.network import Network
from thalweg.model.placement import Placement
from thalweg.model.problem import Problem


def leave_to_others(problem: Problem, placement: Placement, network: Network) -> Network:
    """The network with less CPU, memory and bandwidth free, and more operators on its nodes.

    `network` is the one to take from: that of the problem, or one that others have taken from.
    """
    found = evaluate(problem, placement)
    deployment, rates, demand = found.deployment, found.rates, found.demand
    node, graph = deployment.node, deployment.graph
    a, b = node[graph.source], node[graph.target]
    apart = a != b
    links, load = network.wan.link_loads(network.node_site[a], network.node_site[b], rates.flow_bps)
    ends = np.concatenate([a[apart], b[apart]])
    sent = np.tile(rates.flow_bps[apart], 2)
    return network.with_available(
        node_cpu_available_ips=less(network.node_cpu_available_ips, node, demand.cpu_ips),
        node_memory_available_bytes=less(
            network.node_memory_available_bytes, node, demand.memory_bytes
        ),
        node_lan_available_bps=less(network.node_lan_available_bps, ends, sent),
        node_operators=_crowded(problem, deployment, network),
        wan=network.wan.reserved(links, load),
    )


def crowd(problem: Problem, placement: Placement, network: Network) -> Network:
    """The network with the placement's operators counted on its nodes, and nothing else taken."""
    deployment = deploy(problem, placement)
    return network.with_available(node_operators=_crowded(problem, deployment, network))


def _crowded(problem: Problem, deployment: Deployment, network: Network) -> Index:
    works = problem.application.columns.is_transform[deployment.operator]
    counts = np.bincount(deployment.node[works], minlength=network.node_count)
    return (network.node_operators + counts).astype(np.int32)
