"""How much of the scarce resources below the cloud a deployment takes.

Formulas (5)–(14) and (24)–(30) of Ntumba et al. 2024, Adaptive Scheduling of Continuous Operators
for IoT Edge Analytics.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thalweg.estimate.demand import Demand
from thalweg.estimate.rates import Rates
from thalweg.estimate.response import ResponseModel, emission_bytes
from thalweg.model.deployment import Deployment
from thalweg.model.figures import sum_at
from thalweg.model.graph import Floats
from thalweg.model.network import Tier


@dataclass(frozen=True, eq=False)
class Usage:
    """RU and what it is made of; a cost per site, so that single streams can be weighed."""

    compute: float
    """CRU: memory of the nodes below the cloud, weighted by how full they get."""
    network: float
    """NRU: uplinks, weighted by how full they get and how slow they are."""
    total: float
    """RU = weight · CRU + weight · NRU."""
    uplink_bps: float
    """B: what all sites together send up to the clouds."""
    site: Floats
    """Each site's share of RU."""


def resource_weight(capacity: Floats, available: Floats, request: Floats) -> Floats:
    """Formula (7): 1 − available / capacity + request / capacity.

    Where there is no capacity the weight is ∞ for any request and 0 for none.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        weight = (capacity - available + request) / capacity
    weight = np.where(np.isinf(capacity), 0.0, weight)
    return np.where(capacity > 0, weight, np.where(request > 0, np.inf, 0.0))


def estimate_usage(
    deployment: Deployment,
    rates: Rates,
    demand: Demand,
    *,
    compute_weight: float = 0.5,
    network_weight: float = 0.5,
    model: ResponseModel | None = None,
) -> Usage:
    """RU = w_c · CRU + w_n · NRU over all nodes and sites below the cloud.

    The uplink of a site is its way to the nearest cloud; what it sends to any cloud counts. A
    site that no way leads from costs ∞ if it sends, and changes no other site's cost.
    """
    model = model or ResponseModel()
    net = deployment.problem.network
    below = net.site_tier != Tier.CLOUD
    compute_site = _compute_cost(deployment, demand, below)
    network_site, uplink_bps = _network_cost(deployment, rates, model, below)
    site = np.zeros(net.site_count)
    for weight, part in ((compute_weight, compute_site), (network_weight, network_site)):
        if weight > 0:  # 0 · ∞ is no number: what has no weight adds nothing.
            site += weight * part
    return Usage(
        compute=float(compute_site.sum()),
        network=float(network_site.sum()),
        total=float(site.sum()),
        uplink_bps=uplink_bps,
        site=site,
    )


def _compute_cost(
    deployment: Deployment, demand: Demand, below: np.ndarray[tuple[int], np.dtype[np.bool_]]
) -> Floats:
    """Each site's part of CRU; only nodes that run something are looked at."""
    net, columns = deployment.problem.network, deployment.problem.application.columns
    works = columns.is_transform[deployment.operator] & below[net.node_site[deployment.node]]
    nodes, position = np.unique(deployment.node[works], return_inverse=True)
    used = sum_at(position, demand.memory_bytes[works], nodes.size)
    weight = resource_weight(
        net.node_memory_bytes[nodes], net.node_memory_available_bytes[nodes], used
    )
    with np.errstate(invalid="ignore", over="ignore"):
        cost = np.where(used > 0, used * weight, 0.0)
    total = net.memory_below_cloud_bytes
    share = cost / total if total > 0 else np.where(cost > 0, np.inf, 0.0)
    return sum_at(net.node_site[nodes], share, net.site_count)


def _network_cost(
    deployment: Deployment,
    rates: Rates,
    model: ResponseModel,
    below: np.ndarray[tuple[int], np.dtype[np.bool_]],
) -> tuple[Floats, float]:
    """Each site's part of NRU, and B in bits/s."""
    net, graph = deployment.problem.network, deployment.graph
    start = net.node_site[deployment.node[graph.source]]
    end = net.node_site[deployment.node[graph.target]]
    rising = below[start] & ~below[end]
    sent = sum_at(start[rising], rates.flow_bps[rising], net.site_count)
    largest = np.zeros(net.site_count)
    np.maximum.at(largest, start[rising], emission_bytes(deployment, rates, model)[rising] * 8.0)

    cost = np.where(sent > 0, np.inf, 0.0)
    sites = np.flatnonzero(below & (net.nearest_cloud >= 0))
    if not sites.size:
        return cost, float(sent.sum())
    cloud = net.nearest_cloud[sites]
    capacity = net.wan.bandwidth_bps(sites, cloud)
    available = net.wan.available_bps(sites, cloud)
    propagation = net.wan.latency_s(sites, cloud)
    born = np.flatnonzero(graph.roots)
    raw_bps = rates.events_out[born] * rates.size_out[born] * 8.0
    raw = sum_at(deployment.origin[born], raw_bps, net.site_count)[sites]
    delay = propagation + _over(largest[sites], available)
    slowest = float((propagation + _over(raw * model.source_period_s, available)).max())
    if np.isinf(slowest):
        relative = np.where(np.isinf(delay), 1.0, 0.0)
    else:
        relative = delay / slowest if slowest > 0 else np.zeros_like(delay)
    weight = resource_weight(capacity, available, sent[sites])
    total = float(capacity[np.isfinite(capacity)].sum())
    with np.errstate(invalid="ignore", over="ignore"):
        weighted = np.where(sent[sites] > 0, sent[sites] * weight * relative, 0.0)
    # 0 × ∞: an uplink without capacity that is also infinitely slow costs without bound.
    weighted = np.where(np.isnan(weighted), np.inf, weighted)
    cost[sites] = weighted / total if total > 0 else np.where(weighted > 0, np.inf, 0.0)
    return cost, float(sent.sum())


def _over(bits: Floats, available_bps: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(bits > 0, bits / available_bps, 0.0)
