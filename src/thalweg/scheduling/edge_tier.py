"""`edge-fog-cloud`: a cut between fog and cloud, and a second one between devices and fog.

Beyond Ntumba et al. 2024, who leave the devices to future work. Sources are born on edge sites; the
fog of an edge site is the first fog site above it. Another strategy decides, for the fogs, what
leaves them for the cloud; then operators move on to the devices where these have the capacity.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from time import perf_counter

import numpy as np
import numpy.typing as npt

from thalweg.errors import Defects
from thalweg.estimate.evaluate import Evaluation, evaluate, make_plan
from thalweg.model.application import Application
from thalweg.model.graph import Index
from thalweg.model.network import Tier
from thalweg.model.operator import Pin
from thalweg.model.placement import Placement
from thalweg.model.plan import Plan, Reason
from thalweg.model.problem import Problem
from thalweg.scheduling.cuts import Cuts
from thalweg.scheduling.schedule import Table
from thalweg.strategy import find_strategy, strategy

Flags = npt.NDArray[np.bool_]


@strategy("edge-fog-cloud", "another strategy between fog and cloud, then down to the devices")
def edge_fog_cloud(
    problem: Problem, current: Placement | None = None, *, base: str = "atsoo-both-ways"
) -> Plan:
    """The cuts of `base` between fog and cloud, then as much as fits on each device.

    A device takes the largest cut within that of its fog for which its memory and CPU are free,
    that sends no more to the fog than the raw data, and with which its stream stays within the
    response time. Ties: least sent, then operator order.
    """
    started = perf_counter()
    areas = Areas.of(problem)
    lifted = areas.lifted
    running = None if current is None else areas.lift_placement(current)
    on_fog = areas.read(find_strategy(base)(lifted, running).placement)
    nothing = np.zeros_like(on_fog)
    plain = evaluate(problem, areas.place(on_fog, nothing))
    on_device = _fill_devices(areas, plain, on_fog)
    on_device = _mind_the_time(areas, plain, on_fog, on_device)
    count = len(areas.site)
    above, below = (
        np.count_nonzero(on_fog & ~on_device, axis=0),
        np.count_nonzero(on_device, axis=0),
    )
    reasons = [
        Reason(
            operator=operator.name,
            why=f"born in {operator.pin}"
            if operator.kind == "source"
            else f"on {below[k]} of {count} devices, on the fog for {above[k]}: "
            f"{base}, then devices with capacity",
        )
        for k, operator in enumerate(problem.application.operators)
    ]
    return make_plan(
        problem,
        areas.place(on_fog, on_device),
        strategy="edge-fog-cloud",
        objective_name="usage",
        reasons=reasons,
        seconds=perf_counter() - started,
        candidates=count * len(problem.application.operators),
    )


@dataclass(frozen=True, eq=False)
class Areas:
    """Edge sites where sources are born, and the fog of each."""

    problem: Problem
    site: Index
    node: Index
    fog: Index

    @classmethod
    def of(cls, problem: Problem) -> Areas:
        """The areas of a problem; raises `InvalidInput` where a source is not below a fog."""
        net, births = problem.network, problem.births
        site, first = np.unique(births.site, return_index=True)
        fog = site.copy()
        for _ in range(net.site_count):
            climbs = (fog >= 0) & (net.site_tier[fog] == Tier.EDGE)
            if not climbs.any():
                break
            fog = np.where(climbs, net.site_parent[fog], fog)
        defects = Defects()
        for k in np.flatnonzero((fog < 0) | (net.site_tier[fog] != Tier.FOG)).tolist():
            defects.add(
                "network",
                net.site_names[int(site[k])],
                "a site of sources with a fog site above it",
                "give its parent, or use a strategy between fog and cloud",
            )
        for k in np.flatnonzero(net.site_tier[site] != Tier.EDGE).tolist():
            name = net.site_names[int(site[k])]
            defects.add(
                "network", name, "sources born on edge sites", "strategy base decides alone"
            )
        defects.raise_if_any()
        return cls(problem, site.astype(np.int32), births.node[first], fog.astype(np.int32))

    @cached_property
    def lifted(self) -> Problem:
        """The problem in which the sources are born on the fogs."""
        app, net, births = self.problem.application, self.problem.network, self.problem.births
        fog_of = dict(zip(self.site.tolist(), self.fog.tolist(), strict=True))
        rates: dict[tuple[str, str], float] = {}
        fogs = np.flatnonzero(net.site_tier == Tier.FOG).tolist()
        operators = []
        for position, operator in enumerate(app.operators):
            if operator.kind == "source":
                operator = replace(operator, pin=Pin(tier="fog"))
                for fog in fogs:
                    rates[operator.name, net.site_names[fog]] = 0.0
                for k in np.flatnonzero(births.operator == position).tolist():
                    name = net.site_names[fog_of[int(births.site[k])]]
                    rates[operator.name, name] += float(births.rate[k])
            operators.append(operator)
        lifted = Application(
            name=app.name, operators=operators, streams=app.streams, limits=app.limits
        )
        return Problem(application=lifted, network=net, rates=rates)

    def lift_placement(self, placement: Placement) -> Placement | None:
        """What runs now as the lifted problem would have it; None where it is for other sites."""
        on_fog = np.zeros((len(self.site), len(self.problem.application.operators)), dtype=bool)
        index = self.problem.application.index
        row = {self.problem.network.site_names[s]: k for k, s in enumerate(self.site.tolist())}
        for instance in placement:
            if instance.origin is not None:
                if instance.origin not in row or instance.operator not in index:
                    return None
                on_fog[row[instance.origin], index[instance.operator]] = True
        lifted = self.lifted
        births = lifted.births
        by_fog = {int(fog): on_fog[k] for k, fog in enumerate(self.fog)}
        nothing = np.zeros(on_fog.shape[1], dtype=bool)
        rows = np.array([by_fog.get(int(site), nothing) for site in births.site])
        return _place(lifted, births.site, births.node, births.node, rows, np.zeros_like(rows))

    def read(self, placement: Placement) -> Flags:
        """(areas, operators): whether the lifted placement has the operator below the cloud."""
        app, net = self.problem.application, self.problem.network
        found: dict[str, Flags] = {}
        for instance in placement:
            if instance.origin is not None:
                row = found.setdefault(instance.origin, np.zeros(len(app.operators), dtype=bool))
                row[app.index[instance.operator]] = True
        nothing = np.zeros(len(app.operators), dtype=bool)
        rows = [found.get(net.site_names[int(fog)], nothing) for fog in self.fog]
        return np.array(rows) & app.columns.is_transform

    def place(self, on_fog: Flags, on_device: Flags) -> Placement:
        """The placement with these operators below the cloud, some of them on the devices."""
        fog_node = self.problem.network.first_node[self.fog].astype(np.int32)
        return _place(self.problem, self.site, self.node, fog_node, on_fog, on_device)


def _place(
    problem: Problem, site: Index, node: Index, fog_node: Index, on_fog: Flags, on_device: Flags
) -> Placement:
    births, columns = problem.births, problem.application.columns
    area, operator = np.nonzero(on_fog & columns.is_transform)
    host = np.where(on_device[area, operator], node[area], fog_node[area])
    in_cloud = np.flatnonzero(~columns.is_source & ~(on_fog & columns.is_transform).all(axis=0))
    cloud = int(problem.network.cloud_nodes[0])
    return Placement.from_indices(
        problem,
        operator=np.concatenate([births.operator, operator, in_cloud]),
        node=np.concatenate([births.node, host, np.full(in_cloud.size, cloud)]),
        origin=np.concatenate([births.site, site[area], np.full(in_cloud.size, -1)]),
    )


def _fill_devices(areas: Areas, plain: Evaluation, on_fog: Flags) -> Flags:
    """The largest cut within the fog's that each device has the capacity for."""
    net, app = areas.problem.network, areas.problem.application
    cuts = Table.of(areas.lifted).cuts
    members, crossing = cuts.members.astype(float), cuts.crossing.astype(float)
    memory, cpu, flow = _by_area(areas, plain)
    born = app.columns.is_source
    chosen = np.zeros_like(on_fog)
    for k in range(len(areas.site)):
        node, fog = int(areas.node[k]), int(net.first_node[areas.fog[k]])
        sent = crossing @ flow[k]
        fits = (
            (members @ memory[k] + memory[k][born].sum() <= net.node_memory_available_bytes[node])
            & (members @ cpu[k] + cpu[k][born].sum() < net.node_cpu_available_ips[node])
            & (sent <= min(float(net.available_bps(node, fog)), sent[0]))
            & ~(cuts.members & ~on_fog[k]).any(axis=1)
        )
        chosen[k] = _largest(cuts, fits, sent)
    return chosen


def _largest(cuts: Cuts, fits: Flags, sent: npt.NDArray[np.float64]) -> Flags:
    fits = fits.copy()
    fits[0] = True
    size = np.where(fits, cuts.sizes, -1)
    best: Flags = cuts.members[np.where(size == size.max(), sent, np.inf).argmin()]
    return best


def _by_area(
    areas: Areas, plain: Evaluation
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Memory and CPU of each operator and bits/s of each edge, for the events of each area.

    What leaves for the cloud is unknown and stays 0: no device takes it.
    """
    deployment = plain.deployment
    app = areas.problem.application
    row = np.full(areas.problem.network.site_count + 1, -1)
    row[areas.site] = np.arange(len(areas.site))
    memory, cpu = np.zeros((2, len(areas.site), len(app.operators)))
    at = row[deployment.origin]
    own = at >= 0
    memory[at[own], deployment.operator[own]] = plain.demand.memory_bytes[own]
    cpu[at[own], deployment.operator[own]] = plain.demand.cpu_ips[own]
    flow = np.zeros((len(areas.site), len(app.streams)))
    sender = at[deployment.graph.source]
    known = sender >= 0
    flow[sender[known], deployment.stream[known]] = plain.rates.flow_bps[known]
    return memory, cpu, flow


def _mind_the_time(areas: Areas, plain: Evaluation, on_fog: Flags, on_device: Flags) -> Flags:
    """Without what makes a stream too slow that was fast enough on the fog."""
    limit = areas.problem.application.limits.response_time_s
    found = evaluate(areas.problem, areas.place(on_fog, on_device))
    born = np.flatnonzero(found.deployment.graph.roots)
    too_slow = found.response.stream_s > max(limit, plain.response.response_time_s)
    slow_sites = np.unique(found.deployment.origin[born][too_slow])
    return np.where(np.isin(areas.site, slow_sites)[:, None], False, on_device)
