"""Makes a layout of plans: a station for each instance and each link that events cross."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from thalweg.estimate.demand import window_passes
from thalweg.model.deployment import Deployment, deploy
from thalweg.model.graph import Floats
from thalweg.model.network import Network
from thalweg.model.operator import CountWindow, Operator, TimeWindow
from thalweg.model.placement import Placement
from thalweg.model.problem import Problem
from thalweg.simulate.layout import Filling, Lane, Layout, Source, Station
from thalweg.simulate.lineages import Lineages, trace_lineages
from thalweg.simulate.physics import Physics

Index = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False, kw_only=True)
class Program:
    """One application that runs, and where its numbers begin among those of all."""

    problem: Problem
    placement: Placement
    physics: Physics
    lineages: Lineages
    number: int = 0
    first_token: int = 0
    first_stream: int = 0

    @cached_property
    def deployment(self) -> Deployment:
        """The placement unfolded."""
        return deploy(self.problem, self.placement)

    def placed(self, placement: Placement) -> Program:
        """The same application, placed otherwise."""
        return replace(self, placement=placement)


@dataclass(frozen=True, eq=False, kw_only=True)
class Condition:
    """How well nodes and links work: the part of their speed that is there; all, if not named."""

    node: dict[int, float] = field(default_factory=dict)
    link: dict[int, float] = field(default_factory=dict)
    """By the number of a directed link."""
    losing_nodes: frozenset[int] = frozenset()
    losing_links: frozenset[int] = frozenset()
    """Those that lose what is there."""

    def node_speed(self, node: int) -> float:
        """The part of a node's speed that is there."""
        return self.node.get(node, 1.0)

    def link_speed(self, link: int) -> float:
        """The part of a link's speed that is there."""
        return self.link.get(link, 1.0)


def number_programs(
    problems: Sequence[Problem], placements: Sequence[Placement], physics: Sequence[Physics]
) -> list[Program]:
    """Programs whose tokens and streams are counted one application after the other."""
    programs: list[Program] = []
    token = stream = 0
    for number, (problem, placement, own) in enumerate(
        zip(problems, placements, physics, strict=True)
    ):
        lineages = trace_lineages(problem)
        programs.append(
            Program(
                problem=problem,
                placement=placement,
                physics=own,
                lineages=lineages,
                number=number,
                first_token=token,
                first_stream=stream,
            )
        )
        token += lineages.count
        stream += len(problem.application.streams)
    return programs


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
        self._sharing = _operators_on_nodes(programs, self._net) if shared else np.ones(1)

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


def lan_name(network: Network, node: int, way: str) -> str:
    """What the link of a node to its site's gateway is called; `way` is "out" or "in"."""
    return f"LAN {network.node_name(node)} {way}"


def wan_name(network: Network, link: int) -> str:
    """What a directed link between two sites is called."""
    first, second = network.wan.link_ends(link)
    return f"WAN {network.site_names[first]} → {network.site_names[second]}"


def _delays(way: list[tuple[int, float]]) -> list[float]:
    """The latency before the first station on a way, and behind each."""
    delays = [0.0]
    for station, latency_s in way:
        if station >= 0:
            delays.append(latency_s)
        else:
            delays[-1] += latency_s
    return delays


def locate_tokens(program: Program) -> tuple[list[Index], list[Index]]:
    """Which instance gets the events of each token of an operator; which sends those of a stream.

    In the order of the tokens of the operator, and of the stream.
    """
    deployment, lineages = program.deployment, program.lineages
    app, births = program.problem.application, program.problem.births
    graph = app.graph
    home = {
        (int(o), int(s)): k
        for k, (o, s) in enumerate(zip(deployment.operator, deployment.origin, strict=True))
    }
    target = np.full(deployment.size + 1, -1, dtype=np.int32)
    nobody = np.empty(0, dtype=np.int32)
    at, sent_by = [nobody] * len(app.operators), [nobody] * len(app.streams)
    arriving: list[list[int]] = [[] for _ in app.operators]
    leaving: list[list[int]] = [[] for _ in app.operators]
    for stream, (a, b) in enumerate(zip(graph.source.tolist(), graph.target.tolist(), strict=True)):
        arriving[b].append(stream)
        leaving[a].append(stream)
    order = np.argsort(deployment.stream, kind="stable")
    bounds = np.searchsorted(deployment.stream[order], np.arange(len(app.streams) + 1))
    for operator in graph.order.tolist():
        born = np.flatnonzero(births.operator == operator)
        here = [home[operator, int(births.site[row])] for row in born.tolist()]
        parts = [np.array(here, dtype=np.int32)]
        for stream in arriving[operator]:
            edges = order[bounds[stream] : bounds[stream + 1]]
            target[deployment.graph.source[edges]] = deployment.graph.target[edges]
            parts.append(target[sent_by[stream]])
        if lineages.merged:
            # Whichever way an event of this birth came: a replica for its site, if there is one.
            row = np.full(births.operator.size, -1, dtype=np.int32)
            row[born] = parts[0]
            for part in parts[1:]:
                row = np.where(part >= 0, part, row)
            at[operator] = row
        else:
            at[operator] = np.concatenate(parts)
        for stream in leaving[operator]:
            sent_by[stream] = at[operator]
    return at, sent_by


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


def _operators_on_nodes(programs: Sequence[Program], net: Network) -> Floats:
    """How many operators share the CPU of each node, those that are not simulated included."""
    count = net.node_operators.astype(float)
    for program in programs:
        columns = program.problem.application.columns
        works = columns.is_transform[program.deployment.operator]
        count += np.bincount(program.deployment.node[works], minlength=net.node_count)
    return count
