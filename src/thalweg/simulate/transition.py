"""From one layout to the next: what stays, what moves, and what is under way meanwhile.

A station that is there before and after keeps its queue, its window and what it has counted. An
operator that moves stops, sends its state and what waits for it along the links, ahead of what
queues there, and resumes at the other end. What waits for an instance that ends goes to the one
that takes over. Events that are on a way that is no longer used finish it, and behind a queue that
they have joined; from the next link on nobody is in their way any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from thalweg.model.network import Network
from thalweg.model.operator import Operator
from thalweg.simulate.building import (
    Condition,
    Program,
    lan_name,
    locate_tokens,
    wan_name,
)
from thalweg.simulate.engine import Engine
from thalweg.simulate.events import Events, concatenate
from thalweg.simulate.layout import Lane, Layout, Station
from thalweg.simulate.server import Server

Index = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """An instance that moved, started with a state, or handed over what it had."""

    at_s: float
    operator: str
    source: str
    target: str
    sent_bytes: float
    downtime_s: float
    """From the moment it stops until it resumes; ∞ where no way leads there."""
    delayed_events: int
    """How many waited when it stopped, and went along."""


class Transition:
    """Takes an engine from the layout it has to another."""

    def __init__(
        self, engine: Engine, layout: Layout, programs: Sequence[Program], condition: Condition
    ) -> None:
        self._engine, self._layout = engine, layout
        self._after, self._condition = programs, condition
        self._net: Network = programs[0].problem.network
        self._old = {server.station.key: server for server in engine.servers}
        self._old_layout = engine.layout
        self._now_s = engine.now_s
        self._resend: list[tuple[Server, Events]] = []
        self.moves: list[Move] = []

    def run(self) -> list[Move]:
        """Do it; gives the moves."""
        engine, layout = self._engine, self._layout
        fresh = engine.make_servers(layout)
        self._new = {server.station.key: server for server in fresh}
        self._takers = self._find_takers(layout)
        self._clear_links(layout)
        for server in fresh:
            old = self._old.get(server.station.key) or engine.retired.get(server.station.key)
            if old is not None:
                server.adopt(old, self._now_s)
        engine.replace_servers(layout, fresh)
        for key, old in self._old.items():
            if old.station.sort == "operator":
                if key in self._new:
                    self._perhaps_move(old, self._new[key])
                else:
                    self._hand_over(old)
        for server in fresh:
            if server.station.sort == "operator" and server.station.key not in self._old:
                self._start(server)
        self._forward_all(layout)
        for old, events in self._resend:
            # A link that is down: sent again, from the beginning of what is left of the way.
            lane = Lane(target=self._place_of(old))
            self._finish_way(lane, events.at(np.full(len(events), self._now_s)))
        return self.moves

    def _place_of(self, old: Server) -> int:
        keys = [station.key for station in self._old_layout.stations]
        return keys.index(old.station.key)

    def _find_takers(self, layout: Layout) -> Index:
        """The station of the new layout that gets the events of each token of an operator."""
        taker = np.full(layout.sizes.size, -1, dtype=np.int32)
        first_station = 0
        for program in self._after:
            at, _ = locate_tokens(program)
            for operator, instance in enumerate(at):
                first = program.first_token + int(program.lineages.operator_first[operator])
                taker[first : first + instance.size] = np.where(
                    instance >= 0, first_station + instance, -1
                )
            first_station += program.deployment.size
        return taker

    def _clear_links(self, layout: Layout) -> None:
        """Let queues of links be served to their end where what waits goes another way now."""
        targets = [station.key for station in layout.stations]
        olds = [station.key for station in self._old_layout.stations]
        for key, old in self._old.items():
            if old.station.sort != "link" or not old.waiting.count:
                continue
            new = self._new.get(key)
            waiting = concatenate(list(old.waiting))
            tokens = np.unique(waiting.token)
            stays = new is not None and all(
                _same_lane(old, new, token, self._old_layout, layout, olds, targets)
                for token in tokens.tolist()
            )
            if stays:
                continue
            if old.station.halted:
                self._resend.append((old, concatenate(old.waiting.take_all())))
            else:
                old.run((), np.inf, np.inf)

    def _perhaps_move(self, old: Server, new: Server) -> None:
        a, b = old.station.place, new.station.place
        if a == b:
            return
        operator = self._operator_of(new)
        waiting = new.held
        sent = operator.state + self._bytes_of(new)
        arrival_s = self._send(a, b, sent)
        new.free_s = max(new.free_s, arrival_s)
        self._note(new.station.name, a, b, sent, arrival_s, waiting)

    def _hand_over(self, old: Server) -> None:
        """What waits for an instance that ends goes to those that take over, in one piece."""
        waiting = concatenate([part for part in old.release() if len(part)])
        taker = self._takers[waiting.token] if len(waiting) else np.empty(0, dtype=np.int32)
        for target in np.unique(taker).tolist():
            part = waiting.take(np.flatnonzero(taker == target).astype(np.int32))
            server = self._engine.servers[target]
            a, b = old.station.place, server.station.place
            sent = float(self._layout.sizes[part.token].sum())
            arrival_s = self._send(a, b, sent)
            server.add_late(part.at(np.full(len(part), arrival_s)))
            self._note(old.station.name, a, b, sent, arrival_s, len(part))

    def _start(self, server: Server) -> None:
        """A new instance waits for the state that it needs, if any."""
        operator = self._operator_of(server)
        if not operator.state:
            return
        name = operator.name
        hosts = [
            old.station.place
            for old in self._old.values()
            if old.station.sort == "operator"
            and old.station.application == server.station.application
            and old.station.name.partition("@")[0] == name
        ]
        if not hosts:
            return
        b = server.station.place
        a = min(hosts, key=lambda node: (float(self._net.latency_s(node, b)), node))
        arrival_s = self._send(a, b, operator.state)
        server.free_s = max(server.free_s, arrival_s)
        self._note(server.station.name, a, b, operator.state, arrival_s, 0)

    def _forward_all(self, layout: Layout) -> None:
        """What is under way goes on: on the same lane where there is one, else to its end."""
        keys = [station.key for station in self._old_layout.stations]
        new_keys = [station.key for station in layout.stations]
        for key, old in self._old.items():
            new = self._new.get(key)
            rows = old.router.under_way
            for lane, row in zip(old.station.lanes, rows, strict=True):
                place = None if new is None else _find_lane(lane, new, keys, new_keys)
                for events in row.take_all():
                    going = np.zeros(len(events), dtype=bool)
                    if new is not None and place is not None:
                        going = self._goes_on(new.station.lanes[place], events)
                        new.router.under_way[place].append(_pick(events, going))
                    self._finish_way(lane, _pick(events, ~going))

    def _goes_on(self, lane: Lane, events: Events) -> npt.NDArray[np.bool_]:
        """Whether each of the events is known where a lane of the new layout leads."""
        station = self._layout.stations[lane.target]
        if station.sort != "link" or station.lane_of is None:
            return np.asarray(self._takers[events.token] == lane.target)
        at = events.token if station.by_token else self._layout.stream_of[events.token]
        return np.asarray(station.lane_of[at] >= 0)

    def _finish_way(self, lane: Lane, events: Events) -> None:
        """Events that have left along a lane go the rest of their way, with nobody before them."""
        tokens = np.unique(events.token)
        for token in tokens.tolist():
            own = events.take(np.flatnonzero(events.token == token).astype(np.int32))
            station = self._old_layout.stations[lane.target]
            at, rest_s = token, 0.0
            while station.sort == "link":
                onward = station.lanes[_lane_of(station, at, self._old_layout)]
                rest_s += station.per_byte_s * float(self._old_layout.sizes[at])
                rest_s += onward.latency_s
                at += onward.shift
                station = self._old_layout.stations[onward.target]
            server = self._engine.servers[int(self._takers[at])]
            if server.station.place != station.place:
                rest_s += float(self._net.latency_s(station.place, server.station.place))
            moved = Events(
                own.moment + rest_s, own.birth, np.full(len(own), at, np.int32), own.held
            )
            server.add_late(moved)

    def _send(self, a: int, b: int, sent_bytes: float) -> float:
        """When bytes sent now from node to node are all there; links are taken on the way.

        What was on a node that is down comes from the nearest cloud, where its copy is.
        """
        net, speed = self._net, self._condition
        if speed.node_speed(a) <= 0 and not sent_bytes:
            return self._now_s
        if speed.node_speed(a) <= 0:
            up = [node for node in net.cloud_nodes.tolist() if speed.node_speed(node) > 0]
            if not up:
                return np.inf
            a = min(up, key=lambda node: (float(net.latency_s(node, b)), node))
        if a == b:
            return self._now_s
        start, end = int(net.node_site[a]), int(net.node_site[b])
        lan = net.node_lan_available_bps
        links = net.wan.route(start, end).tolist()
        if start != end and not links:
            return np.inf
        hops = [(lan_name(net, a, "out"), float(net.node_lan_latency_s[a]), lan[a])]
        for link in links:
            latency_s = float(net.wan.latency_s(*net.wan.link_ends(link)))
            free_bps = float(net.wan.link_available_bps([link])[0]) * speed.link_speed(link)
            hops.append((wan_name(net, link), latency_s, free_bps))
        into = float(lan[b]) * speed.node_speed(b) if speed.node_speed(b) > 0 else 0.0
        hops.append((lan_name(net, b, "in"), float(net.node_lan_latency_s[b]), into))
        time_s = self._now_s
        for name, latency_s, free_bps in hops:
            server = self._new.get(name)
            begin_s = time_s if server is None else max(time_s, server.free_s)
            taken_s = 8.0 * sent_bytes / free_bps if free_bps > 0 else np.inf
            time_s = begin_s + (taken_s if sent_bytes else 0.0)
            if server is not None and np.isfinite(time_s):
                server.free_s = time_s
            time_s += latency_s
        return float(time_s)

    def _operator_of(self, server: Server) -> Operator:
        program = self._after[server.station.application]
        app = program.problem.application
        return app.operators[int(program.deployment.operator[server.station.instance])]

    def _bytes_of(self, server: Server) -> float:
        parts = [*server.waiting, server.jobs.members]
        if server.hall is not None:
            parts += list(server.hall.open)
        return float(sum(self._layout.sizes[part.token].sum() for part in parts))

    def _note(self, name: str, a: int, b: int, sent: float, arrival_s: float, waiting: int) -> None:
        self.moves.append(
            Move(
                at_s=self._now_s,
                operator=name,
                source=self._net.node_name(a),
                target=self._net.node_name(b),
                sent_bytes=sent,
                downtime_s=arrival_s - self._now_s,
                delayed_events=waiting,
            )
        )


def _pick(events: Events, wanted: npt.NDArray[np.bool_]) -> Events:
    return events.take(np.flatnonzero(wanted).astype(np.int32))


def _lane_of(station: Station, token: int, layout: Layout) -> int:
    """The lane of a link that events of a token take; −1 where none does."""
    if station.lane_of is None:
        return 0
    at = token if station.by_token else int(layout.stream_of[token])
    return int(station.lane_of[at])


def _same_lane(
    old: Server,
    new: Server,
    token: int,
    before: Layout,
    after: Layout,
    olds: list[str],
    targets: list[str],
) -> bool:
    """Whether events of a token go on behind a link as they did before."""
    a = old.station.lanes[_lane_of(old.station, token, before)]
    place = _lane_of(new.station, token, after)
    if not 0 <= place < len(new.station.lanes):
        return False
    b = new.station.lanes[place]
    return bool(
        olds[a.target] == targets[b.target] and a.latency_s == b.latency_s and a.shift == b.shift
    )


def _find_lane(lane: Lane, new: Server, keys: list[str], new_keys: list[str]) -> int | None:
    """The lane of a new station that is the same way."""
    for place, other in enumerate(new.station.lanes):
        if (
            keys[lane.target] == new_keys[other.target]
            and lane.latency_s == other.latency_s
            and lane.shift == other.shift
            and lane.draw == other.draw
        ):
            return place
    return None
