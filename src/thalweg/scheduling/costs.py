"""What each cut of each stream costs, as matrices of cuts × streams.

Formulas (5)–(14) and (24)–(34) of Ntumba et al. 2024, Adaptive Scheduling of Continuous Operators
for IoT Edge Analytics. RU is a sum over streams, so the cost of a deployment is one entry for each
stream, added up; `thalweg.estimate.usage` gives the same for the deployment as a whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from thalweg.estimate.constraints import ROUNDING
from thalweg.estimate.demand import window_passes
from thalweg.estimate.response import ResponseModel
from thalweg.estimate.usage import find_uplinks, memory_usage
from thalweg.model.figures import freeze
from thalweg.model.graph import Floats
from thalweg.scheduling.cuts import Cuts
from thalweg.scheduling.traffic import StreamTraffic

MEMORY, CPU, UPLINK, STUCK, JAMMED = 1, 2, 4, 8, 16


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
    broken: npt.NDArray[np.int64]
    """What of the fog the cut is too much for: a sum of `MEMORY`, `CPU`, `UPLINK`, `STUCK`
    (an operator whose queue grows without end) and `JAMMED` (the same of a flow)."""
    fits: npt.NDArray[np.bool_]
    """Whether it is too much for nothing."""

    def __post_init__(self) -> None:
        freeze(self)

    @cached_property
    def usable(self) -> npt.NDArray[np.bool_]:
        """What to choose from: cuts that fit, or, for a stream that has none, what its fog can run.

        Its uplink is too small for every cut then, and some cuts are still worse than others.
        """
        runs = (self.broken & (MEMORY | CPU | STUCK)) == 0
        return np.where(self.fits.any(axis=0), self.fits, runs)


def cost_cuts(traffic: StreamTraffic, cuts: Cuts, model: ResponseModel | None = None) -> CutCosts:
    """What every cut costs for every stream."""
    from thalweg.scheduling.compiled.sums import add_up

    model = model or ResponseModel()
    net, node = traffic.problem.network, traffic.node
    memory = add_up(cuts.members, traffic.memory_bytes)
    uplink = add_up(cuts.crossing, traffic.flow_bps)
    memory_free = net.node_memory_available_bytes[node]
    uplink_free = net.available_bps(node, np.full_like(node, traffic.cloud))
    cpu_free = net.node_cpu_available_ips[node]
    load = _cpu_load(traffic)
    # A source runs on the fog whatever the cut.
    sources = traffic.problem.application.columns.is_source
    base_memory = traffic.memory_bytes[sources].sum(axis=0)
    base_load = load[sources].sum(axis=0)
    # A queue that gets as much as it can serve grows without end, even if nothing is above it.
    stuck = (load >= cpu_free) & (traffic.work_per_event > 0)
    jammed = (traffic.flow_bps >= uplink_free) & ((traffic.flow_bps > 0) | (uplink_free <= 0))
    lan_free = net.node_lan_available_bps[node]
    broken = (
        MEMORY * (memory + base_memory > memory_free * (1 + ROUNDING))
        + CPU * (add_up(cuts.members, load) + base_load > cpu_free * (1 + ROUNDING))
        + UPLINK * (uplink > np.minimum(uplink_free, lan_free) * (1 + ROUNDING))
    )
    if stuck.any():
        broken += STUCK * (add_up(cuts.members, stuck.astype(float)) > 0)
    if jammed.any():
        broken += JAMMED * (add_up(cuts.crossing, jammed.astype(float)) > 0)
    return CutCosts(
        memory_bytes=memory,
        uplink_bps=uplink,
        compute_usage=memory_usage(net, node, memory),
        network_usage=_network_usage(traffic, cuts, uplink, model),
        broken=broken,
        fits=broken == 0,
    )


def _cpu_load(traffic: StreamTraffic) -> Floats:
    passes = window_passes(traffic.problem.application.columns)
    return traffic.work_per_event * traffic.events_in * passes[:, None]


def _network_usage(
    traffic: StreamTraffic, cuts: Cuts, uplink: Floats, model: ResponseModel
) -> Floats:
    from thalweg.scheduling.compiled.sums import find_largest

    net = traffic.problem.network
    born_bps = np.zeros(net.site_count)
    born_bps[traffic.site] = traffic.born_bps
    largest = find_largest(cuts.crossing, traffic.emission_bits)
    return find_uplinks(net, born_bps, model).at(traffic.site).usage(uplink, largest)
