"""How much of the scarce resources below the cloud a deployment takes.

Formulas (5)–(14) and (24)–(30) of Ntumba et al. 2024, Adaptive Scheduling of Continuous Operators
for IoT Edge Analytics.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from thalweg.estimate.demand import Demand
from thalweg.estimate.rates import Rates
from thalweg.estimate.response import ResponseModel, emission_bytes
from thalweg.model.deployment import Deployment
from thalweg.model.figures import sum_at
from thalweg.model.graph import Floats
from thalweg.model.network import Network, Tier

COMPUTE_WEIGHT, NETWORK_WEIGHT = 0.5, 0.5
"""w_c and w_n of formula (30), unless a strategy is given others."""


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
    compute_weight: float = COMPUTE_WEIGHT,
    network_weight: float = NETWORK_WEIGHT,
    model: ResponseModel | None = None,
    emission: Floats | None = None,
) -> Usage:
    """RU = w_c · CRU + w_n · NRU over all nodes and sites below the cloud.

    The uplink of a site is its way to the nearest cloud; what it sends to any cloud counts. A
    site that no way leads from costs ∞ if it sends, and changes no other site's cost. `emission`
    is `emission_bytes` under the same model, for callers that have it already.
    """
    model = model or ResponseModel()
    net = deployment.problem.network
    below = net.site_tier != Tier.CLOUD
    compute_site = _compute_cost(deployment, demand, below)
    if emission is None:
        emission = emission_bytes(deployment, rates, model)
    network_site, uplink_bps = _network_cost(deployment, rates, emission, model, below)
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


def _compute_cost(deployment: Deployment, demand: Demand, below: npt.NDArray[np.bool_]) -> Floats:
    """Each site's part of CRU; only nodes that run something are looked at."""
    net, columns = deployment.problem.network, deployment.problem.application.columns
    works = columns.is_transform[deployment.operator] & below[net.node_site[deployment.node]]
    nodes, position = np.unique(deployment.node[works], return_inverse=True)
    used = sum_at(position, demand.memory_bytes[works], nodes.size)
    return sum_at(net.node_site[nodes], memory_usage(net, nodes, used), net.site_count)


@dataclass(frozen=True, eq=False)
class Uplinks:
    """The ways of sites to their nearest clouds, and what they are weighed against."""

    site: npt.NDArray[np.int64]
    capacity_bps: Floats
    available_bps: Floats
    propagation_s: Floats
    slowest_s: float
    """nd_max: the slowest of them, if it had to carry all that is born there."""
    total_bps: float
    """The capacity of all of them."""

    def usage(self, sent_bps: Floats, largest_bits: Floats) -> Floats:
        """Formulas (25) and (29): bandwidth × its weight × the relative delay, as a share of all.

        `largest_bits` is the largest emission that crosses; arrays may have leading axes.
        """
        delay = self.propagation_s + _over(largest_bits, self.available_bps)
        if np.isinf(self.slowest_s):
            relative = np.where(np.isinf(delay), 1.0, 0.0)
        else:
            relative = delay / self.slowest_s if self.slowest_s > 0 else np.zeros_like(delay)
        capacity = np.broadcast_to(self.capacity_bps, sent_bps.shape)
        weight = resource_weight(capacity, self.available_bps, sent_bps)
        with np.errstate(invalid="ignore", over="ignore"):
            cost = np.where(sent_bps > 0, sent_bps * weight * relative, 0.0)
        # 0 × ∞: an uplink without capacity that is also infinitely slow costs without bound.
        cost = np.where(np.isnan(cost), np.inf, cost)
        return cost / self.total_bps if self.total_bps > 0 else np.where(cost > 0, np.inf, 0.0)

    def at(self, site: npt.NDArray[np.integer[Any]]) -> Uplinks:
        """Those of some sites only, weighed against all; no way up has no capacity."""
        position = np.searchsorted(self.site, site)
        known = np.append(self.site, -1)[position] == site

        def pick(figures: Floats, otherwise: float) -> Floats:
            return np.where(known, np.append(figures, otherwise)[position], otherwise)

        return replace(
            self,
            site=np.asarray(site, dtype=np.int64),
            capacity_bps=pick(self.capacity_bps, 0.0),
            available_bps=pick(self.available_bps, 0.0),
            propagation_s=pick(self.propagation_s, np.inf),
        )


def find_uplinks(network: Network, born_bps: Floats, model: ResponseModel) -> Uplinks:
    """The uplinks of all sites below the cloud; `born_bps` is the raw data born in each site."""
    site, capacity, available, propagation = _ways_up(network)
    waiting = _over(born_bps[site] * model.source_period_s, available)
    return Uplinks(
        site=site,
        capacity_bps=capacity,
        available_bps=available,
        propagation_s=propagation,
        slowest_s=float((propagation + waiting).max(initial=0.0)),
        total_bps=float(capacity[np.isfinite(capacity)].sum()),
    )


# A network is asked for every placement that is weighed on it.
_WAYS: WeakKeyDictionary[Network, tuple[npt.NDArray[np.int64], Floats, Floats, Floats]] = (
    WeakKeyDictionary()
)


def _ways_up(network: Network) -> tuple[npt.NDArray[np.int64], Floats, Floats, Floats]:
    """Sites below the cloud, and capacity, free bandwidth and delay of their ways up."""
    if network not in _WAYS:
        below = network.site_tier != Tier.CLOUD
        site = np.flatnonzero(below & (network.nearest_cloud >= 0))
        cloud = network.nearest_cloud[site]
        _WAYS[network] = (
            site,
            network.wan.bandwidth_bps(site, cloud),
            network.wan.available_bps(site, cloud),
            network.wan.latency_s(site, cloud),
        )
    return _WAYS[network]


def memory_usage(
    network: Network, node: npt.NDArray[np.integer[Any]], used_bytes: Floats
) -> Floats:
    """Formulas (24) and (28): memory × its weight, as a share of all memory below the cloud."""
    capacity = np.broadcast_to(network.node_memory_bytes[node], used_bytes.shape)
    weight = resource_weight(capacity, network.node_memory_available_bytes[node], used_bytes)
    with np.errstate(invalid="ignore", over="ignore"):
        cost = np.where(used_bytes > 0, used_bytes * weight, 0.0)
    total = network.memory_below_cloud_bytes
    return cost / total if total > 0 else np.where(cost > 0, np.inf, 0.0)


def _network_cost(
    deployment: Deployment,
    rates: Rates,
    emission: Floats,
    model: ResponseModel,
    below: npt.NDArray[np.bool_],
) -> tuple[Floats, float]:
    """Each site's part of NRU, and B in bits/s."""
    net, graph = deployment.problem.network, deployment.graph
    start = net.node_site[deployment.node[graph.source]]
    end = net.node_site[deployment.node[graph.target]]
    rising = below[start] & ~below[end]
    sent = sum_at(start[rising], rates.flow_bps[rising], net.site_count)
    largest = np.zeros(net.site_count)
    np.maximum.at(largest, start[rising], emission[rising] * 8.0)
    born = np.flatnonzero(graph.roots)
    raw_bps = rates.events_out[born] * rates.size_out[born] * 8.0
    uplinks = find_uplinks(net, sum_at(deployment.origin[born], raw_bps, net.site_count), model)
    cost = np.where(sent > 0, np.inf, 0.0)
    cost[uplinks.site] = uplinks.usage(sent[uplinks.site], largest[uplinks.site])
    return cost, float(sent.sum())


def _over(bits: Floats, available_bps: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(bits > 0, bits / available_bps, 0.0)
