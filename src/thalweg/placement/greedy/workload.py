"""What compiled code reads of a problem: nodes, groups of them, instances and their edges."""

from __future__ import annotations

import numpy as np

from thalweg.estimate.demand import Demand
from thalweg.estimate.rates import Rates
from thalweg.model.deployment import Deployment, deploy_indices
from thalweg.model.network import Network
from thalweg.model.problem import Problem
from thalweg.placement.compiled.pools import Groups
from thalweg.placement.compiled.room import Nodes, Work
from thalweg.placement.network_index import index_network, read_only


def single_instances(problem: Problem) -> Deployment:
    """Sources where they are born, everyone else once, on a node yet to be chosen."""
    births = problem.births
    others = np.flatnonzero(~problem.application.columns.is_source).astype(np.int32)
    return deploy_indices(
        problem,
        np.concatenate([births.operator, others]),
        np.concatenate([births.node, np.zeros(others.size, dtype=np.int32)]),
        np.concatenate([births.site, np.full(others.size, -1, dtype=np.int32)]),
    )


def gather_nodes(network: Network) -> Nodes:
    """What every node has free."""
    return Nodes(
        read_only(network.node_site),
        read_only(network.node_cpu_available_ips),
        read_only(network.node_memory_available_bytes),
        read_only(network.node_lan_available_bps),
        read_only(network.node_lan_latency_s),
    )


def gather_groups(network: Network, demand: Demand) -> Groups:
    """The groups of the network's index, with nothing taken."""
    index = index_network(network)
    some = demand.cpu_ips[demand.cpu_ips > 0]
    return Groups(
        index.order,
        index.group_first,
        index.group_site,
        index.group_lowest,
        index.group_first[:-1].copy(),
        float(some.min(initial=np.inf)),
    )


def gather_work(deployment: Deployment, rates: Rates, demand: Demand) -> Work:
    """What instances need and send."""
    graph = deployment.graph
    edges = np.arange(graph.source.size)
    both = np.concatenate([edges, edges])
    end = np.concatenate([graph.target, graph.source])
    order = np.lexsort((both, end))
    return Work(
        read_only(demand.cpu_ips),
        read_only(demand.memory_bytes),
        read_only(demand.work_per_event * demand.passes),
        read_only(rates.events_in),
        read_only(np.searchsorted(end[order], np.arange(graph.size + 1))),
        read_only(both[order]),
        read_only(np.concatenate([graph.source, graph.target])[order]),
        read_only(np.repeat([False, True], edges.size)[order]),
        read_only(rates.flow),
        read_only(rates.flow_size),
        read_only(rates.flow_bps),
        deployment.problem.network.site_count,
    )
