"""Which constraints a deployment violates, and by how much.

Constraints (9)–(15) of da Silva Veith et al. on what is available, and the limits of the
application. `thalweg.check` answers the same question without any code of this package.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from thalweg.estimate.demand import Demand
from thalweg.estimate.rates import Rates
from thalweg.model.deployment import Deployment
from thalweg.model.figures import sum_at
from thalweg.model.graph import Floats
from thalweg.model.plan import Violation

ROUNDING = 1e-9
"""Sums are compared with this relative allowance for rounding."""


def find_violations(
    deployment: Deployment,
    rates: Rates,
    demand: Demand,
    *,
    response_time_s: float,
    uplink_bps: float,
) -> tuple[Violation, ...]:
    """Every violated constraint: pins and replicas, nodes by index, links by index, limits."""
    return (
        *_misplaced(deployment),
        *_overloaded_nodes(deployment, demand),
        *_unstable(deployment, rates, demand),
        *_overloaded_links(deployment, rates),
        *_missed_limits(deployment, response_time_s, uplink_bps),
    )


def _misplaced(deployment: Deployment) -> Iterator[Violation]:
    problem = deployment.problem
    app, net = problem.application, problem.network
    columns = app.columns
    replica = (deployment.origin >= 0) & ~columns.is_source[deployment.operator]
    for position in np.flatnonzero(replica & ~columns.replicable[deployment.operator]).tolist():
        yield _statement(
            "replicable", deployment, position, "runs as a replica but is not replicable"
        )
    for index, operator in enumerate(app.operators):
        allowed = problem.allowed_nodes(index)
        if allowed is None:
            continue
        here = np.flatnonzero(deployment.operator == index)
        node = deployment.node[here]
        at = np.minimum(np.searchsorted(allowed, node), allowed.size - 1)
        outside = allowed[at] != node if allowed.size else np.ones(here.size, dtype=bool)
        strayed = ~outside & (operator.kind == "source")
        strayed &= net.node_site[node] != deployment.origin[here]
        for position in here[outside | strayed].tolist():
            if position in here[outside]:
                yield _statement("pin", deployment, position, f"must run in {operator.pin}")
            else:
                yield _statement("pin", deployment, position, "runs outside the site it is born in")


def _statement(constraint: str, deployment: Deployment, position: int, resource: str) -> Violation:
    return Violation(
        constraint=constraint,
        place=deployment.problem.network.node_name(int(deployment.node[position])),
        resource=resource,
        need=1.0,
        have=0.0,
        unit="",
        operators=(deployment.instance_name(position),),
    )


def _overloaded_nodes(deployment: Deployment, demand: Demand) -> Iterator[Violation]:
    net = deployment.problem.network
    nodes, position = np.unique(deployment.node, return_inverse=True)
    cpu = sum_at(position, demand.cpu_ips, nodes.size)
    memory = sum_at(position, demand.memory_bytes, nodes.size)
    cpu_free = net.node_cpu_available_ips[nodes]
    memory_free = net.node_memory_available_bytes[nodes]
    for k in np.flatnonzero(_above(cpu, cpu_free) | _above(memory, memory_free)).tolist():
        here = _names(deployment, position == k)
        for constraint, need, have, unit in (
            ("cpu", cpu[k], cpu_free[k], "instr/s"),
            ("memory", memory[k], memory_free[k], "B"),
        ):
            if _above(need, have):
                yield Violation(
                    constraint=constraint,
                    place=net.node_name(int(nodes[k])),
                    resource=constraint,
                    need=float(need),
                    have=float(have),
                    unit=unit,
                    operators=here,
                )


def _unstable(deployment: Deployment, rates: Rates, demand: Demand) -> Iterator[Violation]:
    """Constraints (9) and (10): a queue that gets as much as it can serve grows without end.

    That holds for nothing at all too: a node without CPU never serves what needs some, and where
    no way leads or no bandwidth is left nothing arrives.
    """
    net, graph = deployment.problem.network, deployment.graph
    have_ips = net.node_cpu_available_ips[deployment.node]
    full = (demand.cpu_ips >= have_ips) & (demand.work_per_event > 0)
    for position in np.flatnonzero(full).tolist():
        yield Violation(
            constraint="stability",
            place=net.node_name(int(deployment.node[position])),
            resource="cpu",
            need=float(demand.cpu_ips[position]),
            have=float(have_ips[position]),
            unit="instr/s",
            operators=(deployment.instance_name(position),),
        )
    a, b = deployment.node[graph.source], deployment.node[graph.target]
    no_way = np.isinf(deployment.edge_latency_s)
    have_bps = np.where(no_way, 0.0, deployment.edge_available_bps)
    full = (rates.flow_bps >= have_bps) & ((rates.flow_size > 0) | no_way)
    for edge in np.flatnonzero(full).tolist():
        yield Violation(
            constraint="stability",
            place=f"{net.node_name(int(a[edge]))} → {net.node_name(int(b[edge]))}",
            resource="bandwidth",
            need=float(rates.flow_bps[edge]),
            have=float(have_bps[edge]),
            unit="bps",
            operators=(
                deployment.instance_name(int(graph.source[edge])),
                deployment.instance_name(int(graph.target[edge])),
            ),
        )


def _overloaded_links(deployment: Deployment, rates: Rates) -> Iterator[Violation]:
    net, graph = deployment.problem.network, deployment.graph
    a, b = deployment.node[graph.source], deployment.node[graph.target]
    apart = a != b
    ends = np.concatenate([a[apart], b[apart]])
    nodes, position = np.unique(ends, return_inverse=True)
    load = sum_at(position, np.tile(rates.flow_bps[apart], 2), nodes.size)
    free = net.node_lan_available_bps[nodes]
    for k in np.flatnonzero(_above(load, free)).tolist():
        yield _full_link(f"LAN of {net.node_name(int(nodes[k]))}", load[k], free[k])
    links, load = net.wan.link_loads(net.node_site[a], net.node_site[b], rates.flow_bps)
    free = net.wan.link_available_bps(links)
    for k in np.flatnonzero(_above(load, free)).tolist():
        start, end = net.wan.link_ends(int(links[k]))
        yield _full_link(f"{net.site_names[start]} → {net.site_names[end]}", load[k], free[k])


def _full_link(place: str, need: float, have: float) -> Violation:
    return Violation(
        constraint="bandwidth",
        place=place,
        resource="bandwidth",
        need=float(need),
        have=float(have),
        unit="bps",
    )


def _missed_limits(
    deployment: Deployment, response_time_s: float, uplink_bps: float
) -> Iterator[Violation]:
    app = deployment.problem.application
    for constraint, resource, need, have, unit in (
        ("response-time", "response time", response_time_s, app.limits.response_time_s, "s"),
        ("uplink", "uplink", uplink_bps, app.limits.uplink_bps, "bps"),
    ):
        if _above(need, have):
            yield Violation(
                constraint=constraint,
                place=app.name,
                resource=resource,
                need=need,
                have=have,
                unit=unit,
            )


def _names(deployment: Deployment, where: npt.NDArray[np.bool_]) -> tuple[str, ...]:
    return tuple(deployment.instance_name(i) for i in np.flatnonzero(where).tolist())


def _above(need: Floats | float, have: Floats | float) -> npt.NDArray[np.bool_]:
    return np.asarray(need) > np.asarray(have) * (1.0 + ROUNDING)
