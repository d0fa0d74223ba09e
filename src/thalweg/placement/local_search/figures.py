"""What an application needs and what a network offers, as arrays for compiled loops.

The copies of an application are those of a first placement: every source where it is born, every
other operator once. Nothing here depends on where they run.
"""

from __future__ import annotations

from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from thalweg.estimate.demand import Demand, estimate_demand
from thalweg.estimate.latency import window_time_s
from thalweg.estimate.rates import Rates, estimate_rates
from thalweg.estimate.response import ResponseModel, emission_bytes
from thalweg.model.deployment import Deployment
from thalweg.model.graph import Floats, Index
from thalweg.model.network import Network, Tier
from thalweg.model.problem import Problem
from thalweg.placement.local_search.groups import group_nodes
from thalweg.placement.local_search.ways import Ways

Integers = npt.NDArray[np.int64]
Tiers = npt.NDArray[np.uint8]

# More paths than this count as this many: sums of them must stay numbers.
_MOST_PATHS = 1e200


# Columns of `Figures.copy`, `.pin`, `.window`, `.edge`, `.node`, `.steps` and `.bounds`.
WORK, EVENTS, CPU, MEMORY, PATHS = range(5)
MOVABLE, PIN_SPOT, PIN_TIER = range(3)
WORKS, WINDOW_WORK, WINDOW_RATE, SLIDE_S, EDGE_DELAY_S, BORN = range(6)
FLOW, SIZE, BPS, EDGE_PATHS, EMISSION = range(5)
FREE_CPU, FREE_MEMORY, FREE_LAN, LAN_S, TOTAL_CPU, OPERATORS = range(6)
RESPONSE_S, UPLINK_BPS, CONSTANT_S = range(3)


class Figures(NamedTuple):
    """All that the loops read, in few arrays: each one more makes them slower to compile.

    Columns have names above. Node figures and ways are read-only, so that loops meet one type.
    """

    copy: Floats
    """(copies, 5): instructions for one event over all passes, events/s, instructions/s, bytes,
    source→sink paths."""
    pin: Integers
    """(copies, 3): whether it may move; the spot and the tier that it must be in, −1 for any."""
    window: Floats
    """(copies, 6): whether it works, instructions for one window, windows/s (if they count
    events), slide (0 if they count events), delay from the devices to a source, whether it is one.
    """
    upstream_first: Integers
    ends: Integers
    """(edges, 2): the copies it joins."""
    edge: Floats
    """(edges, 5): events/s, bytes, bits/s, paths, bytes of one emission."""
    first: Integers
    """The edges at copy i are incident[first[i] : first[i + 1]]."""
    incident: Integers
    bounds: Floats
    """Limits of response time and uplink; the part of the aggregate latency that no move changes,
    which is the time that windows take to fill."""
    node: Floats
    """(nodes, 6): free CPU, memory and LAN bandwidth, LAN latency, all CPU, others' operators."""
    spot: Index
    """Of each node: the number of its site among those on the board, −1 for the others."""
    tier: Tiers
    """Of each spot."""
    order: Index
    group_first: Integers
    group_spot: Index
    """The groups of nodes, as in `Groups`."""
    latency_s: Floats
    free_bps: Floats
    steps: Integers
    route_first: Integers
    route_link: Integers
    link_free_bps: Floats
    """The ways between sites, as in `Ways`."""


def draw_figures(problem: Problem, skeleton: Deployment, ways: Ways) -> Figures:
    """The figures of a problem; `skeleton` is of `single_instances`."""
    rates = estimate_rates(skeleton)
    demand = estimate_demand(skeleton, rates)
    graph, net = skeleton.graph, problem.network
    paths, edge_paths = (np.minimum(counts, _MOST_PATHS) for counts in graph.path_counts)
    work = demand.work_per_event * demand.passes
    limits = problem.application.limits
    first, incident = _incidence(skeleton)
    groups = group_nodes(net, sharing=bool(np.isfinite(limits.response_time_s)))
    if not ways.all_sites:
        groups = groups.within(ways.place >= 0)
    return Figures(
        copy=_columns(work, rates.events_in, demand.cpu_ips, demand.memory_bytes, paths),
        pin=_pins(problem, ways)[skeleton.operator],
        window=_windows(skeleton, rates, demand),
        upstream_first=graph.order.astype(np.int64),
        ends=np.stack([graph.source, graph.target], axis=1).astype(np.int64),
        edge=_columns(
            rates.flow,
            rates.flow_size,
            rates.flow_bps,
            edge_paths,
            emission_bytes(skeleton, rates, ResponseModel()),
        ),
        first=first,
        incident=incident,
        bounds=np.array(
            [limits.response_time_s, limits.uplink_bps, _filling_s(skeleton, rates, paths)],
            dtype=float,
        ),
        node=_node_columns(net),
        spot=_plain(_spots(ways, net.node_site), np.int32),
        tier=_plain(net.site_tier[ways.sites], np.uint8),
        order=_plain(groups.order, np.int32),
        group_first=_plain(groups.first, np.int64),
        group_spot=_plain(_spots(ways, groups.site), np.int32),
        latency_s=ways.latency_s,
        free_bps=ways.free_bps,
        steps=ways.steps,
        route_first=ways.route_first,
        route_link=ways.route_link,
        link_free_bps=ways.link_free_bps,
    )


def _spots(ways: Ways, sites: Index) -> Index:
    """The numbers of sites on the board; as they are where all are."""
    return sites if ways.all_sites else ways.place[sites]


def _columns(*columns: npt.NDArray[Any]) -> Floats:
    return np.stack(columns, axis=1).astype(float)


def _incidence(skeleton: Deployment) -> tuple[Integers, Integers]:
    graph = skeleton.graph
    ends = np.concatenate([graph.source, graph.target])
    order = np.argsort(ends, kind="stable").astype(np.int64)
    first = np.searchsorted(ends[order], np.arange(graph.size + 1)).astype(np.int64)
    return first, order % max(graph.source.size, 1)


def _filling_s(skeleton: Deployment, rates: Rates, paths: Floats) -> float:
    """Paths × the time that windows take to fill."""
    waiting_s = window_time_s(skeleton, rates)
    return float(paths[waiting_s > 0] @ waiting_s[waiting_s > 0])


def _pins(problem: Problem, ways: Ways) -> Integers:
    """Of each operator: whether it may move, and the spot and tier that its pin names."""
    operators, net = problem.application.operators, problem.network
    pins = np.full((len(operators), 3), -1, dtype=np.int64)
    for k, operator in enumerate(operators):
        pin = operator.pin
        pins[k, MOVABLE] = operator.kind != "source" and (pin is None or pin.node is None)
        if pin is not None and pin.site is not None:
            pins[k, PIN_SPOT] = ways.place[net.site_index[pin.site]]
        if pin is not None and pin.tier is not None:
            pins[k, PIN_TIER] = Tier[pin.tier.upper()]
    return pins


def _windows(skeleton: Deployment, rates: Rates, demand: Demand) -> Floats:
    problem, operator, graph = skeleton.problem, skeleton.operator, skeleton.graph
    columns = problem.application.columns
    length, slide = columns.window_length_s[operator], columns.window_slide_s[operator]
    batch = np.maximum(columns.window_events[operator], 1.0)
    delay = np.where(graph.roots, problem.network.site_edge_delay_s[skeleton.origin], 0.0)
    return _columns(
        columns.is_transform[operator],
        demand.work_per_event * np.where(slide > 0, length * rates.events_in, batch),
        rates.events_in / batch,
        slide,
        delay,
        graph.roots,
    )


_NODE_COLUMNS: WeakKeyDictionary[Network, Floats] = WeakKeyDictionary()


def _node_columns(net: Network) -> Floats:
    if net not in _NODE_COLUMNS:
        figures = _columns(
            net.node_cpu_available_ips,
            net.node_memory_available_bytes,
            net.node_lan_available_bps,
            net.node_lan_latency_s,
            net.node_cpu_ips,
            net.node_operators,
        )
        _NODE_COLUMNS[net] = _plain(figures, float)
    return _NODE_COLUMNS[net]


def _plain(array: npt.NDArray[Any], kind: type) -> npt.NDArray[Any]:
    """The array in one row in memory and read-only: compiled loops are made for one type each."""
    view: npt.NDArray[Any] = np.ascontiguousarray(array, dtype=kind).view()
    view.flags.writeable = False
    return view
