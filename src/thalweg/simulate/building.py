"""Makes a layout of plans: a station for each instance and each link that events cross."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from thalweg.estimate.demand import window_passes
from thalweg.model.operator import CountWindow, Operator, TimeWindow
from thalweg.model.problem import Problem
from thalweg.simulate.layout import Filling, Lane, Layout, Source, Station
from thalweg.simulate.physics import Physics
from thalweg.simulate.program import (
    Condition,
    Program,
    count_operators,
    lan_name,
    locate_tokens,
    wan_name,
)

Index = npt.NDArray[np.int32]


def build_layout(programs: Sequence[Program], condition: Condition) -> Layout:
    """The layout of programs that run beside each other."""
    return _Builder(programs, condition).build()


class _Draft:
    """A station that gets its lanes while edges are laid."""

    def __init__(self, station: Station) -> None:
        self.station = station
        self.lanes: list[Lane] = []
        self.known: dict[tuple[int, float, int], int] = {}
        self.tokens: list[tuple[Index, int, int]] = []
        """(tokens, their stream, their lane), of a link."""

    def lane(self, target: int, latency_s: float, shift: int) -> int:
        """The number of a lane, laid if it is not there."""
        key = (target, latency_s, shift)
        if key not in self.known:
            self.known[key] = len(self.lanes)
            self.lanes.append(Lane(target=target, latency_s=latency_s, shift=shift))
        return self.known[key]


class _Builder:
    """Lays stations first, then the edges between them."""

    def __init__(self, programs: Sequence[Program], condition: Condition) -> None:
        self._programs, self._condition = programs, condition
        self._net = programs[0].problem.network
        self._drafts: list[_Draft] = []
        self._links: dict[str, int] = {}
        self._ways: dict[tuple[int, int], list[tuple[int, float]]] = {}
        self._first_instance: list[int] = []
        shared = any(program.physics.cpu == "shared" for program in programs)
        self._sharing = count_operators(programs, self._net) if shared else np.ones(1)

    def build(self) -> Layout:
        sources: list[Source] = []
        for program in self._programs:
            self._first_instance.append(len(self._drafts))
            self._add_operators(program)
            sources += self._sources(program)
        edges = 0
        for program in self._programs:
            self._lay_edges(program, edges)
            edges += program.deployment.stream.size
        total = sum(program.lineages.count for program in self._programs)
        stream_of = np.full(total, -1, dtype=np.int32)
        for program in self._programs:
            for k in range(len(program.problem.application.streams)):
                first = program.first_token + int(program.lineages.stream_first[k])
                end = first + int(program.lineages.stream_count[k])
                stream_of[first:end] = program.first_stream + k
        return Layout(
            sources=sources,
            stations=[self._finish(draft, stream_of) for draft in self._drafts],
            sizes=np.concatenate([p.lineages.size_bytes for p in self._programs]),
            stream_of=stream_of,
            edge_count=edges,
        )

    def _finish(self, draft: _Draft, stream_of: Index) -> Station:
        """The station with its lanes, and for a link which events take which."""
        station = replace(draft.station, lanes=tuple(draft.lanes))
        if station.sort != "link":
            return station
        by_stream = np.full(int(stream_of.max()) + 1, -1, dtype=np.int32)
        alike = True
        for _, stream, lane in draft.tokens:
            alike = alike and by_stream[stream] in (-1, lane)
            by_stream[stream] = lane
        if alike:
            return replace(station, lane_of=by_stream)
        # An event that waited where another instance works on its kind now goes as its stream does.
        by_token = np.where(stream_of >= 0, by_stream[stream_of], -1).astype(np.int32)
        for tokens, _, lane in draft.tokens:
            by_token[tokens] = lane
        return replace(station, lane_of=by_token, by_token=True)

    def _add_operators(self, program: Program) -> None:
        deployment, app = program.deployment, program.problem.application
        passes = window_passes(app.columns)
        for instance in range(deployment.size):
            position = int(deployment.operator[instance])
            operator = app.operators[position]
            node = int(deployment.node[instance])
            name = deployment.instance_name(instance)
            self._drafts.append(
                _Draft(
                    self._operator_station(
                        program, operator, node, instance, name, float(passes[position])
                    )
                )
            )

    def _operator_station(
        self,
        program: Program,
        operator: Operator,
        node: int,
        instance: int,
        name: str,
        passes: float,
    ) -> Station:
        physics = program.physics
        works = operator.kind == "transform" or physics.ends_work
        needs = works and (operator.cpu_per_event > 0 or operator.cpu_per_byte > 0)
        ips = self._node_ips(physics, node)
        rounds = passes if physics.windows == "fill" else 1.0
        halted = ips <= 0 if needs else self._condition.node_speed(node) <= 0
        scale = rounds / ips if needs and not halted and np.isfinite(ips) else 0.0
        return Station(
            key=f"{program.number}:{name}",
            name=name,
            place=node,
            application=program.number,
            instance=instance,
            fixed_s=operator.cpu_per_event * scale,
            per_byte_s=operator.cpu_per_byte * scale,
            halted=halted,
            loses=node in self._condition.losing_nodes,
            service=physics.service_of(operator),
            window=_window(operator, physics) if operator.kind == "transform" else None,
            selectivity=1.0 if operator.kind != "transform" else operator.selectivity,
            even=physics.even,
            is_sink=operator.kind == "sink",
        )

    def _node_ips(self, physics: Physics, node: int) -> float:
        net = self._net
        speed = self._condition.node_speed(node)
        if physics.cpu == "whole":
            return float(net.node_cpu_available_ips[node]) * speed
        return float(net.node_cpu_ips[node]) * speed / max(float(self._sharing[node]), 1.0)

    def _sources(self, program: Program) -> list[Source]:
        problem, deployment, lineages = program.problem, program.deployment, program.lineages
        births, net = problem.births, self._net
        at = {
            (int(o), int(s)): k
            for k, (o, s) in enumerate(zip(deployment.operator, deployment.origin, strict=True))
        }
        found = []
        for row, (operator, site) in enumerate(
            zip(births.operator.tolist(), births.site.tolist(), strict=True)
        ):
            instance = at[operator, site]
            first = int(lineages.operator_first[operator])
            count = int(lineages.operator_count[operator])
            own = np.flatnonzero(lineages.birth[first : first + count] == row)
            name = problem.application.operators[operator].name
            site_name = net.site_names[site]
            delay_s = 0.0 if program.physics.ends_work else float(net.site_edge_delay_s[site])
            found.append(
                Source(
                    key=f"{program.number}:{name}@{site_name}",
                    target=self._first_instance[program.number] + instance,
                    rate=float(births.rate[row]),
                    token=program.first_token + first + int(own[0]),
                    latency_s=delay_s,
                    arrivals=program.physics.arrivals_of(name, site_name),
                )
            )
        return found

    def _lay_edges(self, program: Program, first_edge: int) -> None:
        deployment, lineages = program.deployment, program.lineages
        graph, app = deployment.graph, program.problem.application
        choices = [_choices(program.problem, o) for o in range(len(app.operators))]
        _, senders = locate_tokens(program)
        offset = self._first_instance[program.number]
        for edge in range(deployment.stream.size):
            a, b = int(graph.source[edge]), int(graph.target[edge])
            stream = int(deployment.stream[edge])
            leave, arrive = lineages.shifts(program.problem, stream)
            low, high, draw = choices[int(deployment.operator[a])][stream]
            way = self._way(int(deployment.node[a]), int(deployment.node[b]), program.physics)
            stops = [station for station, _ in way if station >= 0] + [offset + b]
            delays = _delays(way)
            self._drafts[offset + a].lanes.append(
                Lane(
                    target=stops[0],
                    latency_s=delays[0],
                    shift=leave + (arrive if len(stops) == 1 else 0),
                    low=low,
                    high=high,
                    draw=draw,
                    edge=first_edge + edge,
                )
            )
            if len(stops) == 1:
                continue
            block = program.first_token + int(lineages.stream_first[stream])
            tokens = (block + np.flatnonzero(senders[stream] == a)).astype(np.int32)
            for k, station in enumerate(stops[:-1]):
                last = k == len(stops) - 2
                draft = self._drafts[station]
                lane = draft.lane(stops[k + 1], delays[k + 1], arrive if last else 0)
                draft.tokens.append((tokens, program.first_stream + stream, lane))

    def _way(self, a: int, b: int, physics: Physics) -> list[tuple[int, float]]:
        """From node to node: (station, or −1 where none is needed; latency behind it)."""
        if a == b:
            return []
        if (a, b) in self._ways:
            return self._ways[a, b]
        net = self._net
        start, end = int(net.node_site[a]), int(net.node_site[b])
        hops = [(self._lan(a, "out", physics), float(net.node_lan_latency_s[a]))]
        for link in net.wan.route(start, end).tolist():
            first, second = net.wan.link_ends(link)
            latency_s = float(net.wan.latency_s(first, second))
            hops.append((self._wan(link, physics), latency_s))
        if start != end and len(hops) == 1:  # No way leads there: nothing ever arrives.
            hops.append((self._nowhere(start, end), 0.0))
        hops.append((self._lan(b, "in", physics), float(net.node_lan_latency_s[b])))
        self._ways[a, b] = hops
        return hops

    def _lan(self, node: int, way: str, physics: Physics) -> int:
        net = self._net
        speed = self._condition.node_speed(node)
        bps = float(net.node_lan_available_bps[node]) * speed if speed > 0 else 0.0
        if np.isinf(bps):
            return -1
        loses = node in self._condition.losing_nodes
        return self._link(lan_name(net, node, way), node, bps, physics, loses=loses)

    def _wan(self, link: int, physics: Physics) -> int:
        net = self._net
        speed = self._condition.link_speed(link)
        bps = float(net.wan.link_available_bps([link])[0]) * speed if speed > 0 else 0.0
        loses = link in self._condition.losing_links
        return self._link(wan_name(net, link), link, bps, physics, loses=loses)

    def _nowhere(self, start: int, end: int) -> int:
        names = self._net.site_names
        return self._link(f"no way {names[start]} → {names[end]}", -1, 0.0, Physics())

    def _link(
        self, name: str, place: int, bps: float, physics: Physics, *, loses: bool = False
    ) -> int:
        if name not in self._links:
            self._links[name] = len(self._drafts)
            self._drafts.append(
                _Draft(
                    Station(
                        key=name,
                        name=name,
                        sort="link",
                        place=place,
                        per_byte_s=0.0 if bps <= 0 or np.isinf(bps) else 8.0 / bps,
                        halted=bps <= 0,
                        loses=loses,
                        service=physics.transfer,
                    )
                )
            )
        return self._links[name]


def _delays(way: list[tuple[int, float]]) -> list[float]:
    """The latency before the first station on a way, and behind each."""
    delays = [0.0]
    for station, latency_s in way:
        if station >= 0:
            delays.append(latency_s)
        else:
            delays[-1] += latency_s
    return delays


def _choices(problem: Problem, operator: int) -> dict[int, tuple[float, float, str]]:
    """For each stream of an operator: from where to where its draw is, and whose draw.

    Streams whose probabilities add up to at most 1 are alternatives: an event takes one of them,
    or none. Where they add up to more, each decides for itself.
    """
    app = problem.application
    streams = np.flatnonzero(app.graph.source == operator).tolist()
    part = [k for k in streams if app.probability[k] < 1.0]
    found = dict.fromkeys(streams, (0.0, 1.0, ""))
    if sum(float(app.probability[k]) for k in part) <= 1.0 + 1e-9:
        low = 0.0
        for k in part:
            high = low + float(app.probability[k])
            found[k] = (low, min(high, 1.0) if high < 1.0 - 1e-12 else 1.0, "routes")
            low = high
        return found
    for k in part:
        found[k] = (0.0, float(app.probability[k]), f"route {app.streams[k].target}")
    return found


def _window(operator: Operator, physics: Physics) -> Filling | None:
    if isinstance(operator.window, CountWindow):
        return Filling(sort=physics.windows, events=operator.window.events)
    if isinstance(operator.window, TimeWindow):
        window = operator.window
        return Filling(sort=physics.windows, slide_s=window.slide, length_s=window.length)
    return None
