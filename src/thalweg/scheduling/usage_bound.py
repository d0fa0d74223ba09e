"""What usage is not below, whatever the cuts: also those of applications with too many to list.

RU of a stream is a convex function of the memory and the uplink that a cut takes, once the range
of its largest emission is fixed. A tangent of it is a weight for every operator and edge, and its
least value over all cuts one maximum flow away (`thalweg.scheduling.closure`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from heapq import heappop, heappush

import numpy as np
import numpy.typing as npt

from thalweg.estimate.constraints import ROUNDING
from thalweg.estimate.demand import window_passes
from thalweg.estimate.response import ResponseModel
from thalweg.estimate.usage import find_uplinks
from thalweg.model.graph import Floats
from thalweg.scheduling.closure import MOST_FLOWS, CutGraph, arrange_cuts, least_cut
from thalweg.scheduling.costs import cost_cuts
from thalweg.scheduling.cuts import Cuts, Flags
from thalweg.scheduling.traffic import StreamTraffic

_PRICES = 4


@dataclass(frozen=True, eq=False)
class UsageBound:
    """What RU is not below, whatever the cuts."""

    value: float
    cuts: Cuts
    """The listed cuts and, where the search came upon better ones, the best of every stream."""


def usage_bound(
    traffic: StreamTraffic,
    cuts: Cuts,
    *,
    uplink_limit_bps: float = np.inf,
    must_fit: Flags | None = None,
    price: float | None = None,
    compute_weight: float = 0.5,
    network_weight: float = 0.5,
    most_flows: int = MOST_FLOWS,
    model: ResponseModel | None = None,
) -> UsageBound:
    """A number that RU is not below, whatever cuts are chosen: listed in `cuts` or not.

    It holds for deployments that send no more than the limit and, for the streams that `must_fit`
    marks, fit the fog; by default none has to. A limit comes in as a price of each bit/s beyond
    it (a Lagrange multiplier), the one that is best for the listed cuts unless it is given. Listed
    cuts are where the search begins; each stream gets about `most_flows` maximum flows.
    """
    model = model or ResponseModel()
    weights = (compute_weight, network_weight)
    required = np.zeros(traffic.site.size, dtype=bool) if must_fit is None else must_fit
    graph = CutGraph.of(traffic.problem.application)
    best, tried = -np.inf, set[float]()
    while len(tried) < _PRICES:
        if price is None or tried:
            costs = cost_cuts(traffic, cuts, model)
            usage = weights[0] * costs.compute_usage + weights[1] * costs.network_usage
            usage = np.where(required & ~costs.fits, np.inf, usage)
            price = _find_price(usage, costs.uplink_bps, uplink_limit_bps)
        if price in tried:
            break
        tried.add(price)
        value, found = -price * uplink_limit_bps if price > 0 else 0.0, []
        for stream in _describe_streams(traffic, weights, price, required, model):
            search = _Search(stream, cuts.members, most_flows)
            value += search.run()
            found.append(search.members[search.costs.argmin()])
        best = max(best, value)
        cuts = arrange_cuts(graph, [*cuts.members, *found])
    return UsageBound(max(best, 0.0), cuts)


def _find_price(usage: Floats, uplink: Floats, limit: float) -> float:
    """The least price at which the listed cuts of least cost keep the limit; 0 if none do."""

    def sent(price: float) -> float:
        best = (usage + price * uplink).argmin(axis=0)
        return float(uplink[best, np.arange(best.size)].sum())

    if not limit > 0 or sent(0.0) <= limit:
        return 0.0
    low, high = 0.0, 1.0 / limit
    for _ in range(60):
        if sent(high) <= limit:
            break
        low, high = high, high * 4.0
    else:
        return 0.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if sent(middle) <= limit else (middle, high)
    return high


@dataclass(frozen=True, eq=False, kw_only=True)
class _Stream:
    """One stream: what its operators and edges need, what that costs, and how much fits.

    RU = squared · (m², n²) + linear · (m, n), where the part of n counts by the relative delay.
    """

    graph: CutGraph
    memory: Floats
    cpu: Floats
    flow: Floats
    emission: Floats
    squared: Floats
    linear: Floats
    delay: Floats
    """The relative delay is delay · (1, largest emission that crosses)."""
    price: float
    """What a bit/s counts besides, because all streams share a limit."""
    room: Floats
    """Largest (m, n)."""
    cpu_room: float
    stuck: Flags
    """Operators that the fog is too slow for."""
    jammed: Flags
    """Edges that the uplink is too slow for."""

    def factors(self, emission: npt.ArrayLike) -> Floats:
        """What the parts of m and n count at the delay of such an emission."""
        relative = self.delay[0] + self.delay[1] * np.asarray(emission)
        return np.stack([np.ones_like(relative), relative], axis=-1)

    def cost(self, point: Floats, emission: npt.ArrayLike) -> Floats:
        """RU and price of (m, n)."""
        parts = self.factors(emission) * point * (self.squared * point + self.linear)
        cost: Floats = parts.sum(axis=-1) + self.price * point[..., 1]
        return cost

    def slope(self, point: Floats, emission: float) -> Floats:
        """How the cost grows with m and n."""
        growth = self.factors(emission) * (2.0 * self.squared * point + self.linear)
        growth[..., 1] += self.price
        return growth

    def measure(self, members: Flags) -> tuple[Floats, Floats, Floats]:
        """(m, n), the largest emission and the cost (∞ where it does not fit) of cuts in rows."""
        crossing = self.graph.crossing(members)
        point = np.column_stack([members @ self.memory, crossing @ self.flow])
        largest = np.where(crossing, self.emission, 0.0).max(axis=1, initial=0.0)
        fits = (point <= self.room).all(axis=1) & (members @ self.cpu <= self.cpu_room)
        fits &= ~(members & self.stuck).any(axis=1) & ~(crossing & self.jammed).any(axis=1)
        return point, largest, np.where(fits, self.cost(point, largest), np.inf)


def _describe_streams(
    traffic: StreamTraffic,
    weights: tuple[float, float],
    price: float,
    must_fit: Flags,
    model: ResponseModel,
) -> Iterator[_Stream]:
    """The streams, with costs that are exact where all figures are finite, else too small."""
    app, net, node = traffic.problem.application, traffic.problem.network, traffic.node
    born_bps = np.zeros(net.site_count)
    born_bps[traffic.site] = traffic.born_bps
    uplinks = find_uplinks(net, born_bps, model).at(traffic.site)
    capacity = np.array([net.node_memory_bytes[node], uplinks.capacity_bps])
    free = np.array([net.node_memory_available_bytes[node], uplinks.available_bps])
    whole = np.array([[net.memory_below_cloud_bytes], [uplinks.total_bps]])
    scale = np.array(weights)[:, None]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        squared = scale / capacity / whole
        linear = scale * (capacity - free) / capacity / whole
        delay = np.array([uplinks.propagation_s, 1.0 / uplinks.available_bps]) / uplinks.slowest_s
    squared, linear, delay = (np.where(np.isfinite(x), x, 0.0) for x in (squared, linear, delay))
    cpu = traffic.work_per_event * traffic.events_in * window_passes(app.columns)[:, None]
    uplink_free = net.available_bps(node, np.full_like(node, traffic.cloud))
    # Twice the rounding that `cost_cuts` allows for: nothing that fits there is left out here.
    room = np.array([net.node_memory_available_bytes[node], uplink_free]) * (1 + 2 * ROUNDING)
    room[0] -= traffic.memory_bytes[app.columns.is_source].sum(axis=0)
    cpu_free = net.node_cpu_available_ips[node]
    cpu_room = cpu_free * (1 + 2 * ROUNDING) - cpu[app.columns.is_source].sum(axis=0)
    stuck = (cpu >= cpu_free) & (traffic.work_per_event > 0) & must_fit
    jammed = (traffic.flow_bps >= uplink_free) & ((traffic.flow_bps > 0) | (uplink_free <= 0))
    jammed &= must_fit
    graph = CutGraph.of(app)
    for j in range(node.size):
        yield _Stream(
            graph=graph,
            memory=traffic.memory_bytes[:, j],
            cpu=cpu[:, j],
            flow=traffic.flow_bps[:, j],
            emission=traffic.emission_bits[:, j],
            squared=squared[:, j],
            linear=linear[:, j],
            delay=delay[:, j],
            price=price,
            room=room[:, j] if must_fit[j] else np.full(2, np.inf),
            cpu_room=float(cpu_room[j]) if must_fit[j] else np.inf,
            stuck=stuck[:, j],
            jammed=jammed[:, j],
        )


@dataclass(frozen=True, eq=False)
class _Part:
    """The cuts that hold `inside`, nothing of `outside`, and send no emission of `most` or more.

    Their delay is taken as that of an emission of `least`, so those that send less look dearer
    than they are: they are in another part.
    """

    least: float
    most: float
    inside: Flags
    outside: Flags


class _Search:
    """Branch and bound for the cheapest cut of one stream."""

    def __init__(self, stream: _Stream, members: Flags, flows: int) -> None:
        self.stream = stream
        self.members = members
        self.points, self.emissions, self.costs = stream.measure(members)
        self.flows = flows

    def run(self) -> float:
        """The least cost from below: exact, up to rounding, if the flows are enough.

        The part that looks cheapest is divided until it is no cheaper than a known cut.
        """
        nothing = np.zeros(self.members.shape[1], dtype=bool)
        stuck = self.stream.graph.draw_down(self.stream.stuck)
        parts: list[tuple[float, int, _Part, list[_Part]]] = []
        waiting, floor, number = [_Part(0.0, np.inf, nothing, stuck)], 0.0, 0
        while True:
            for part in waiting:
                bound, divided = self.bound(part)
                number += 1
                heappush(parts, (max(bound, floor), number, part, divided))
            floor, _, _, waiting = heappop(parts)
            if self.flows <= 0 or not waiting or floor >= self.costs.min() * (1.0 - ROUNDING):
                return floor

    def bound(self, part: _Part) -> tuple[float, list[_Part]]:
        """The least cost in a part, from below, and the parts to divide it into.

        With one delay for all, RU is convex in (m, n). Where it is least on the convex hull of
        known cuts, its tangent is a plane below it; the least cut of that plane gives a bound
        and, if it is below the hull, a new corner.
        """
        stream, best, divided = self.stream, 0.0, [part]
        barred = (stream.emission >= part.most) | stream.jammed
        while self.flows > 0:
            known = (self.emissions < part.most) & ~(self.members & part.outside).any(axis=1)
            known &= (self.members | ~part.inside).all(axis=1)
            hull = _lower_hull(self.points, np.flatnonzero(known))
            point, extra, ends = self.points[0], np.zeros(2), hull
            if hull.size:
                point, extra, ends = _find_lowest(stream, self.points[hull], hull, part.least)
            slope = stream.slope(point, part.least)
            weight = slope + extra
            self.flows -= 1
            cut = least_cut(
                stream.graph,
                weight[0] * stream.memory,
                np.where(barred, np.inf, weight[1] * stream.flow),
                inside=part.inside,
                outside=part.outside,
            )
            if np.isinf(cut.value):
                return np.inf, []
            held = float((extra * np.where(extra > 0, stream.room, 0.0)).sum())
            start = float(stream.cost(point, part.least) - slope @ point)
            rounding = 1e-12 * (cut.value + abs(start) + held)
            best = max(best, start + cut.bound - held - rounding)
            found, largest, cost = stream.measure(cut.members[None])
            new = not (hull.size and weight @ found[0] >= weight @ point * (1.0 - ROUNDING))
            if new or cost[0] < self.costs.min():
                self.members = np.vstack([self.members, cut.members])
                self.points = np.vstack([self.points, found])
                self.emissions = np.append(self.emissions, largest)
                self.costs = np.append(self.costs, cost)
            if not new:
                corners = [cut.members, *self.members[ends]]
                divided = self.divide(part, float(largest[0]), corners)
                # What cannot be divided is this cut alone.
                return best if divided else max(best, cost[0] * (1.0 - ROUNDING)), divided
        return best, divided

    def divide(self, part: _Part, emission: float, corners: list[Flags]) -> list[_Part]:
        """Two parts: by emission where that of the least cut is above the least, else by operator.

        The operator is one that the corners differ in, the middle one in the order of the graph.
        """
        graph, nothing = self.stream.graph, np.zeros(part.inside.size, dtype=bool)
        if emission > part.least:
            sizes = np.sort(self.stream.emission)
            sizes = sizes[(sizes > part.least) & (sizes <= emission)]
            middle = float(sizes[sizes.size // 2])
            return [replace(part, most=middle), replace(part, least=middle)]
        open_ones = graph.may_run & ~part.inside & ~part.outside
        differ = open_ones & np.logical_or.reduce([c != corners[0] for c in corners])
        for choice in (differ, open_ones & corners[0], open_ones):
            operators = graph.order[choice[graph.order]]
            if operators.size:
                picked = nothing.copy()
                picked[operators[operators.size // 2]] = True
                above = graph.draw_in(part.inside | picked, np.zeros(graph.source.size, dtype=bool))
                return [
                    replace(part, inside=above),
                    replace(part, outside=part.outside | graph.draw_down(picked)),
                ]
        return []


def _lower_hull(points: Floats, among: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The corners of the lower left convex hull of some points, from least m to least n."""
    among = among[np.lexsort((points[among, 1], points[among, 0]))]
    # Corners send less than all that need less memory.
    sent = points[among, 1]
    among = among[sent < np.minimum.accumulate(np.append(np.inf, sent))[:-1]]
    m, n = points[among].T.tolist()
    corners: list[int] = []
    for k in range(len(m)):
        while len(corners) > 1:
            i, j = corners[-2:]
            if (m[j] - m[i]) * (n[k] - n[i]) > (n[j] - n[i]) * (m[k] - m[i]):
                break
            corners.pop()
        corners.append(k)
    return among[corners]


def _find_lowest(
    stream: _Stream, hull: Floats, numbers: npt.NDArray[np.int64], emission: float
) -> tuple[Floats, Floats, npt.NDArray[np.int64]]:
    """Where on the hull the cost is least and fits, what m and n have to count besides, and ends.

    With that the point is the least of the hull on its tangent, although room may end there.
    Where nothing on the hull fits, room is left out. The ends are of the side it is on.
    """
    if len(hull) == 1:
        return hull[0], np.zeros(2), numbers
    start, step = hull[:-1], np.diff(hull, axis=0)
    bend = 2.0 * (stream.factors(emission) * stream.squared * step**2).sum(axis=1)
    fall = -(stream.slope(start, emission) * step).sum(axis=1)
    share = np.divide(fall, bend, out=np.where(fall > 0, 1.0, 0.0), where=bend > 0)
    # m grows and n falls along the hull.
    last, first = ((stream.room - start) / step).T
    first, last = np.maximum(first, 0.0), np.minimum(last, 1.0)
    if not (first <= last).any():
        first, last = np.zeros(len(start)), np.ones(len(start))
    share = np.clip(share, first, np.maximum(first, last))
    points = start + share[:, None] * step
    at = int(np.where(first <= last, stream.cost(points, emission), np.inf).argmin())
    steep = np.concatenate([[np.inf], -step[:, 1] / step[:, 0], [0.0]])
    left = max(steep[at + (share[at] > 0)], np.finfo(float).tiny)
    right = steep[at + 1 + (share[at] >= 1)]
    slope = stream.slope(points[at], emission)
    extra = np.array([slope[1] * right - slope[0], slope[0] / left - slope[1]])
    extra = np.where(np.isfinite(stream.room), np.maximum(extra, 0.0), 0.0)
    return points[at], extra, numbers[at : at + 2]
