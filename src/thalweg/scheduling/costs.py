"""What each cut of each stream costs, as matrices of cuts × streams.

Formulas (5)–(14) and (24)–(34) of Ntumba et al. 2024, Adaptive Scheduling of Continuous Operators
for IoT Edge Analytics. RU is a sum over streams, so the cost of a deployment is one entry for each
stream, added up; `thalweg.estimate.usage` gives the same for the deployment as a whole.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from thalweg.estimate.response import ResponseModel
from thalweg.estimate.usage import resource_weight
from thalweg.model.figures import freeze
from thalweg.model.graph import Floats
from thalweg.model.network import Tier
from thalweg.scheduling.cuts import Cuts
from thalweg.scheduling.traffic import StreamTraffic

ROUNDING = 1e-9
"""As much as the checker allows; a strategy must not be looser than it."""


@dataclass(frozen=True, eq=False)
class CutCosts:
    """Figures of cuts × streams."""

    memory_bytes: Floats
    """cmu: memory that the cut takes on the fog."""
    uplink_bps: Floats
    """nbu: what the cut sends up."""
    compute_usage: Floats
    """CRU_j."""
    network_usage: Floats
    """NRU_j."""
    fits: npt.NDArray[np.bool_]
    """Whether memory, CPU and uplink of the fog have room for the cut."""

    def __post_init__(self) -> None:
        freeze(self)


def cost_cuts(traffic: StreamTraffic, cuts: Cuts, model: ResponseModel | None = None) -> CutCosts:
    """What every cut costs for every stream."""
    model = model or ResponseModel()
    net, node = traffic.problem.network, traffic.node
    members = cuts.members.astype(float)
    memory = members @ traffic.memory_bytes
    uplink = cuts.crossing.astype(float) @ traffic.flow_bps
    memory_free = net.node_memory_available_bytes[node]
    uplink_free = net.available_bps(node, np.full_like(node, traffic.cloud))
    cpu_free = net.node_cpu_available_ips[node]
    load = _cpu_load(traffic)
    # A source runs on the fog whatever the cut.
    sources = traffic.problem.application.columns.is_source
    base_memory = traffic.memory_bytes[sources].sum(axis=0)
    base_load = load[sources].sum(axis=0)
    fits = (
        (memory + base_memory <= memory_free * (1 + ROUNDING))
        & (members @ load + base_load <= cpu_free * (1 + ROUNDING))
        & (uplink <= uplink_free * (1 + ROUNDING))
    )
    return CutCosts(
        memory_bytes=memory,
        uplink_bps=uplink,
        compute_usage=_compute_usage(traffic, memory),
        network_usage=_network_usage(traffic, cuts, uplink, model),
        fits=fits,
    )


def _cpu_load(traffic: StreamTraffic) -> Floats:
    columns = traffic.problem.application.columns
    length, slide = columns.window_length_s, columns.window_slide_s
    passes = np.divide(length, slide, out=np.ones_like(length), where=slide > 0)
    return traffic.work_per_event * traffic.events_in * passes[:, None]


def _compute_usage(traffic: StreamTraffic, memory: Floats) -> Floats:
    net, node = traffic.problem.network, traffic.node
    capacity, free = net.node_memory_bytes[node], net.node_memory_available_bytes[node]
    weight = resource_weight(np.broadcast_to(capacity, memory.shape), free, memory)
    with np.errstate(invalid="ignore"):
        cost = np.where(memory > 0, memory * weight, 0.0)
    total = net.memory_below_cloud_bytes
    return cost / total if total > 0 else np.where(cost > 0, np.inf, 0.0)


def _network_usage(
    traffic: StreamTraffic, cuts: Cuts, uplink: Floats, model: ResponseModel
) -> Floats:
    net, site = traffic.problem.network, traffic.site
    cloud = net.nearest_cloud[site]
    capacity, free = net.wan.bandwidth_bps(site, cloud), net.wan.available_bps(site, cloud)
    propagation = net.wan.latency_s(site, cloud)
    largest = np.zeros(uplink.shape)
    for edge in range(cuts.crossing.shape[1]):
        crossing = cuts.crossing[:, edge]
        largest[crossing] = np.maximum(largest[crossing], traffic.emission_bits[edge])
    delay = propagation + _over(largest, free)
    slowest = _slowest_uplink(traffic, model)
    if np.isinf(slowest):
        relative = np.where(np.isinf(delay), 1.0, 0.0)
    else:
        relative = delay / slowest if slowest > 0 else np.zeros_like(delay)
    weight = resource_weight(np.broadcast_to(capacity, uplink.shape), free, uplink)
    with np.errstate(invalid="ignore"):
        cost = np.where(uplink > 0, uplink * weight * relative, 0.0)
    cost = np.where(np.isnan(cost), np.inf, cost)
    total = _uplink_capacity(traffic)
    return cost / total if total > 0 else np.where(cost > 0, np.inf, 0.0)


def _slowest_uplink(traffic: StreamTraffic, model: ResponseModel) -> float:
    """nd_max over all sites below the cloud, whether a stream is born there or not."""
    net = traffic.problem.network
    below = _sites_below_cloud(traffic)
    cloud = net.nearest_cloud[below]
    raw = np.zeros(net.site_count)
    raw[traffic.site] = traffic.born_bps
    waiting = _over(raw[below] * model.source_period_s, net.wan.available_bps(below, cloud))
    return float((net.wan.latency_s(below, cloud) + waiting).max(initial=0.0))


def _uplink_capacity(traffic: StreamTraffic) -> float:
    net = traffic.problem.network
    below = _sites_below_cloud(traffic)
    capacity = net.wan.bandwidth_bps(below, net.nearest_cloud[below])
    return float(capacity[np.isfinite(capacity)].sum())


def _sites_below_cloud(traffic: StreamTraffic) -> npt.NDArray[np.int64]:
    net = traffic.problem.network
    return np.flatnonzero((net.site_tier != Tier.CLOUD) & (net.nearest_cloud >= 0))


def _over(bits: Floats, available_bps: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(bits > 0, bits / available_bps, 0.0)
