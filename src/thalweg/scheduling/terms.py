"""What a strategy minimises: usage, and what may be asked to weigh beside it.

Each further term is off by default. All are sums over streams, so that a search can weigh the cut
of a stream by itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from thalweg.errors import Defects
from thalweg.estimate.demand import window_passes
from thalweg.estimate.usage import COMPUTE_WEIGHT, NETWORK_WEIGHT
from thalweg.model.graph import Floats
from thalweg.model.network import Tier
from thalweg.scheduling.schedule import Choice, Table


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyModel:
    """Joules for each instruction and each bit. The figures are nominal, not measurements."""

    fog_j_per_instruction: float = 1e-9
    cloud_j_per_instruction: float = 5e-10
    uplink_j_per_bit: float = 2e-8

    def __post_init__(self) -> None:
        defects = Defects()
        for name in ("fog_j_per_instruction", "cloud_j_per_instruction", "uplink_j_per_bit"):
            value = getattr(self, name)
            good = isinstance(value, (int, float)) and np.isfinite(value) and value >= 0
            defects.require(good, name, value, "a finite number >= 0")
        defects.raise_if_any()


def require_weights(**weights: float) -> None:
    """Raise `InvalidInput` for weights that are not finite numbers ≥ 0."""
    defects = Defects()
    for name, value in weights.items():
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        defects.require(
            number and np.isfinite(value) and value >= 0, name, value, "a finite number >= 0"
        )
    defects.raise_if_any()


def cost_cuts_with(
    table: Table,
    running: Choice | None,
    *,
    compute_weight: float = COMPUTE_WEIGHT,
    network_weight: float = NETWORK_WEIGHT,
    energy_weight: float = 0.0,
    state_weight: float = 0.0,
    reschedule_weight: float = 0.0,
) -> Floats:
    """RU_j, w_c · CRU_j + w_n · NRU_j, and the weighted further terms of every cut and stream.

    `running` are the cuts that run now; without them nothing moves, and moving costs nothing.
    """
    require_weights(
        compute_weight=compute_weight,
        network_weight=network_weight,
        energy_weight=energy_weight,
        state_weight=state_weight,
        reschedule_weight=reschedule_weight,
    )
    if (compute_weight, network_weight) == (COMPUTE_WEIGHT, NETWORK_WEIGHT):
        cost = table.usage
    else:
        cost = _weighted(compute_weight, table.costs.compute_usage)
        cost = cost + _weighted(network_weight, table.costs.network_usage)
    if energy_weight > 0:
        cost = cost + energy_weight * energy_usage(table)
    if running is not None and state_weight > 0:
        cost = cost + state_weight * state_usage(table, running)
    if running is not None and reschedule_weight > 0:
        cost = cost + reschedule_weight * replicas_changed(table, running)
    return cost


def _weighted(weight: float, cost: Floats) -> Floats:
    """A part of RU; 0 · ∞ is no number: what has no weight adds nothing."""
    return weight * cost if weight > 0 else np.zeros_like(cost)


def energy_usage(table: Table, model: EnergyModel | None = None) -> Floats:
    """Power of every cut and stream, as a share of what all fogs and uplinks can draw."""
    model = model or EnergyModel()
    traffic, net = table.traffic, table.problem.network
    columns = table.problem.application.columns
    work = traffic.events_in * traffic.work_per_event * window_passes(columns)[:, None]
    work = np.where(columns.is_transform[:, None], work, 0.0)
    members = table.cuts.members.astype(float)
    on_fog = members @ work
    power = (
        on_fog * model.fog_j_per_instruction
        + (work.sum(axis=0) - on_fog) * model.cloud_j_per_instruction
        + table.costs.uplink_bps * model.uplink_j_per_bit
    )
    below = net.site_tier[net.node_site] != Tier.CLOUD
    uplinks = net.available_bps(traffic.node, np.full_like(traffic.node, traffic.cloud))
    most = float(net.node_cpu_ips[below].sum()) * model.fog_j_per_instruction
    most += float(uplinks[np.isfinite(uplinks)].sum()) * model.uplink_j_per_bit
    return power / most if most > 0 else np.zeros_like(power)


def state_usage(table: Table, running: Choice) -> Floats:
    """State that has to move, as a share of what all uplinks carry in a second."""
    traffic, net = table.traffic, table.problem.network
    state_bits = 8.0 * table.problem.application.columns.state
    moved = _changed(table, running) @ state_bits
    uplinks = net.available_bps(traffic.node, np.full_like(traffic.node, traffic.cloud))
    total = float(uplinks[np.isfinite(uplinks)].sum())
    return moved / total if total > 0 else np.zeros_like(moved)


def replicas_changed(table: Table, running: Choice) -> Floats:
    """How many replicas a change to each cut would start and stop, for every stream."""
    changed: Floats = _changed(table, running).sum(axis=2).astype(float)
    return changed


def _changed(table: Table, running: Choice) -> npt.NDArray[np.bool_]:
    """(cuts, streams, operators): whether the operator's place differs from now."""
    members = table.cuts.members
    other = np.not_equal(members[:, None, :], members[running][None, :, :])
    return other & table.traffic.fed.T[None, :, :]
