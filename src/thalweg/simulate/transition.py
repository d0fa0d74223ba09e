"""From one layout to the next: what stays, what moves, and what is under way meanwhile.

A station that is there before and after keeps its queue, its window and what it has counted. An
operator that moves stops, sends its state and what waits for it along the links, ahead of what
queues there, and resumes at the other end. What waits for an instance that ends goes to the one
that takes over. Events that are on a way that is no longer used finish it, and behind a queue that
they have joined; from the next link on nobody is in their way any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from thalweg.model.network import Network
from thalweg.model.operator import Operator
from thalweg.simulate.engine import Engine
from thalweg.simulate.events import Events, concatenate
from thalweg.simulate.layout import Lane, Layout, Station
from thalweg.simulate.program import Condition, Program, locate_tokens
from thalweg.simulate.server import Server
from thalweg.simulate.shipping import Parcel, Shipper

Index = npt.NDArray[np.int32]


class Transition:
    """Takes an engine from the layout it has to another."""

    def __init__(
        self,
        engine: Engine,
        layout: Layout,
        programs: Sequence[Program],
        condition: Condition,
        shipper: Shipper,
    ) -> None:
        self._engine, self._layout = engine, layout
        self._programs, self._condition, self._shipper = programs, condition, shipper
        self._net: Network = programs[0].problem.network
        self._old = {server.station.key: server for server in engine.servers}
        self._old_layout = engine.layout
        self._now_s = engine.now_s

    def run(self) -> None:
        """Do it."""
        engine, layout = self._engine, self._layout
        fresh = engine.make_servers(layout)
        self._new = {server.station.key: server for server in fresh}
        self._takers = self._find_takers(layout)
        stuck = self._clear_links()
        for server in fresh:
            old = self._old.get(server.station.key) or engine.retired.get(server.station.key)
            if old is not None:
                server.adopt(old, self._now_s)
                if server.station.key not in self._old and np.isinf(server.free_s):
                    server.resume(self._now_s)  # What it waited for is nobody's any more.
        engine.replace_servers(layout, fresh)
        self._readdress()
        self._shipper.try_again(self._now_s, self._new, self._condition)
        for key, old in self._old.items():
            if old.station.sort == "operator":
                if key in self._new:
                    self._perhaps_move(old, self._new[key])
                else:
                    self._hand_over(old)
        for server in fresh:
            if server.station.sort == "operator" and server.station.key not in self._old:
                self._start(server)
        self._forward_all()
        for place, events in stuck:
            self._finish_way(Lane(target=place), events)

    def _find_takers(self, layout: Layout) -> Index:
        """The station of the new layout that gets the events of each token of an operator."""
        taker = np.full(layout.sizes.size, -1, dtype=np.int32)
        first_station = 0
        for program in self._programs:
            at, _ = locate_tokens(program)
            for operator, instance in enumerate(at):
                first = program.first_token + int(program.lineages.operator_first[operator])
                taker[first : first + instance.size] = np.where(
                    instance >= 0, first_station + instance, -1
                )
            first_station += program.deployment.size
        return taker

    def _clear_links(self) -> list[tuple[int, Events]]:
        """Serve the queues of links to their end where something in them does not cross them now.

        Gives what cannot be served, since the link is down, and the link's number.
        """
        stuck = []
        for place, old in enumerate(self._engine.servers):
            if old.station.sort != "link":
                continue
            stuck += self._turn_late(place, old)
            if not old.waiting.count:
                continue
            waiting = concatenate(list(old.waiting))
            new = self._new.get(old.station.key)
            stays = np.zeros(len(waiting), dtype=bool)
            if new is not None:
                stays = _crosses(new.station, waiting.token, self._layout)
            if stays.all():
                continue
            if old.station.halted:
                old.waiting.take_all()
                old.waiting.append(_pick(waiting, stays))
                gone = _pick(waiting, ~stays)
                old.count_out([gone], self._now_s)
                stuck.append((place, gone.at(np.full(len(gone), self._now_s))))
            else:
                old.run((), np.inf, np.inf)
        return stuck

    def _turn_late(self, place: int, old: Server) -> list[tuple[int, Events]]:
        """What is on its way to a link that it does not cross any more."""
        new = self._new.get(old.station.key)
        crosses = np.zeros(len(old.late), dtype=bool)
        if new is not None:
            crosses = _crosses(new.station, old.late.token, self._layout)
        turned, old.late = _pick(old.late, ~crosses), _pick(old.late, crosses)
        return [(place, turned)] if len(turned) else []

    def _readdress(self) -> None:
        """Parcels that wait for a way go to whom their events are for now."""
        parcels, self._shipper.waiting = self._shipper.waiting, []
        for parcel in parcels:
            if not len(parcel.events):
                server = self._new.get(parcel.key)
                if server is not None and server.station.place == parcel.target:
                    self._shipper.waiting.append(parcel)
                continue
            taker = self._takers[parcel.events.token]
            for target in np.unique(taker).tolist():
                part = _pick(parcel.events, taker == target)
                station = self._layout.stations[target]
                sent = float(self._layout.sizes[part.token].sum())
                self._shipper.waiting.append(
                    replace(
                        parcel,
                        key=station.key,
                        target=station.place,
                        sent_bytes=sent,
                        events=part,
                    )
                )

    def _perhaps_move(self, old: Server, new: Server) -> None:
        a, b = old.station.place, new.station.place
        if a == b:
            return
        sent = self._operator_of(new).state + self._bytes_of(new)
        self._ship(new, new.station.name, a, sent, new.held)

    def _hand_over(self, old: Server) -> None:
        """What waits for an instance that ends goes to those that take over, in one piece."""
        self._readdress_late(old)
        waiting = concatenate([part for part in old.release(self._now_s) if len(part)])
        if not len(waiting):
            return
        taker = self._takers[waiting.token]
        for target in np.unique(taker).tolist():
            part = _pick(waiting, taker == target)
            sent = float(self._layout.sizes[part.token].sum())
            server = self._engine.servers[target]
            a = old.station.place
            self._ship(server, old.station.name, a, sent, len(part), part)

    def _readdress_late(self, old: Server) -> None:
        """What is on its way to an instance that ends arrives where it goes on, a way later."""
        late, old.late = old.late, Events.none()
        if not len(late):
            return
        taker = self._takers[late.token]
        for target in np.unique(taker).tolist():
            server = self._engine.servers[target]
            a, b = old.station.place, server.station.place
            way_s = float(self._net.latency_s(a, b))
            part = _pick(late, taker == target)
            server.add_late(part.at(part.moment + (way_s if np.isfinite(way_s) else 0.0)))

    def _start(self, server: Server) -> None:
        """A new instance waits for the state that it needs, if any."""
        operator = self._operator_of(server)
        hosts = [
            old.station.place
            for old in self._old.values()
            if old.station.sort == "operator"
            and old.station.application == server.station.application
            and old.station.name.partition("@")[0] == operator.name
        ]
        if not operator.state or not hosts:
            return
        b = server.station.place
        a = min(hosts, key=lambda node: (float(self._net.latency_s(node, b)), node))
        self._ship(server, server.station.name, a, operator.state, 0)

    def _ship(
        self,
        server: Server,
        name: str,
        source: int,
        sent_bytes: float,
        delayed: int,
        events: Events | None = None,
    ) -> None:
        target = server.station.place
        number = self._shipper.note(name, sent_bytes, source, target, self._now_s, delayed)
        parcel = Parcel(
            key=server.station.key,
            source=source,
            target=target,
            sent_bytes=sent_bytes,
            events=Events.none() if events is None else events,
            number=number,
        )
        self._shipper.ship(parcel, self._now_s, self._new, self._condition)

    def _forward_all(self) -> None:
        """What is under way goes on: on the same lane where there is one, else to its end."""
        keys = [station.key for station in self._old_layout.stations]
        new_keys = [station.key for station in self._layout.stations]
        for key, old in self._old.items():
            new = self._new.get(key)
            for lane, row in zip(old.station.lanes, old.router.under_way, strict=True):
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
        if station.sort == "link":
            return _crosses(station, events.token, self._layout)
        return np.asarray(self._takers[events.token] == lane.target)

    def _finish_way(self, lane: Lane, events: Events) -> None:
        """Events that have left along a lane go the rest of their way, with nobody before them."""
        sizes = self._old_layout.sizes
        for token in np.unique(events.token).tolist():
            own = _pick(events, events.token == token)
            station = self._old_layout.stations[lane.target]
            at, rest_s = token, 0.0
            again: Station | None = None
            while station.sort == "link":
                onward = station.lanes[_lane_of(station, at, self._old_layout)]
                if station.halted and again is None:
                    if self._wait_there(station, own, at, rest_s):
                        break
                    again = station
                rest_s += station.per_byte_s * float(sizes[at]) + onward.latency_s
                at += onward.shift
                station = self._old_layout.stations[onward.target]
            else:
                self._arrive(station, own, at, rest_s, again)

    def _wait_there(self, station: Station, events: Events, token: int, rest_s: float) -> bool:
        """Have events wait at a link that is down, if they still have to cross it."""
        new = self._new.get(station.key)
        if new is None or not _crosses(new.station, np.array([token]), self._layout).all():
            return False
        tokens = np.full(len(events), token, dtype=np.int32)
        new.add_late(Events(events.moment + rest_s, events.birth, tokens, events.held))
        return True

    def _arrive(
        self, station: Station, events: Events, token: int, rest_s: float, again: Station | None
    ) -> None:
        """Have events arrive at whom they are for now; from a link that is down, sent again."""
        net = self._net
        server = self._engine.servers[int(self._takers[token])]
        target = server.station.place
        if again is not None:
            rest_s = self._way_again_s(again, target, float(self._layout.sizes[token]))
        elif target != station.place:
            rest_s += float(net.latency_s(station.place, target))
        tokens = np.full(len(events), token, dtype=np.int32)
        server.add_late(Events(events.moment + rest_s, events.birth, tokens, events.held))

    def _way_again_s(self, link: Station, target: int, size_bytes: float) -> float:
        """How long an event takes that is sent again from before a link, to a node."""
        net, end = self._net, int(self._net.node_site[target])
        if link.place < 0:  # No way led there: nobody knows where it is.
            return 0.0
        is_lan = link.key.startswith("LAN ")
        start = int(net.node_site[link.place]) if is_lan else net.wan.link_ends(link.place)[0]
        latency_s = float(net.wan.latency_s(start, end)) + float(net.node_lan_latency_s[target])
        free_bps = float(net.wan.available_bps(start, end))
        taken_s = 8.0 * size_bytes / free_bps if free_bps > 0 else 0.0
        return taken_s + (latency_s if np.isfinite(latency_s) else 0.0)

    def _operator_of(self, server: Server) -> Operator:
        program = self._programs[server.station.application]
        app = program.problem.application
        return app.operators[int(program.deployment.operator[server.station.instance])]

    def _bytes_of(self, server: Server) -> float:
        parts = [*server.waiting, server.jobs.members]
        if server.hall is not None:
            parts += list(server.hall.open)
        return float(sum(self._layout.sizes[part.token].sum() for part in parts))


def _pick(events: Events, wanted: npt.NDArray[np.bool_]) -> Events:
    return events if wanted.all() else events.take(np.flatnonzero(wanted).astype(np.int32))


def _lane_of(station: Station, token: int, layout: Layout) -> int:
    """The lane of a link that events of a token take; −1 where none does."""
    if station.lane_of is None:
        return 0
    at = token if station.by_token else int(layout.stream_of[token])
    return int(station.lane_of[at])


def _crosses(
    station: Station, token: npt.NDArray[np.integer], layout: Layout
) -> npt.NDArray[np.bool_]:
    """Whether events of these tokens cross a link."""
    if station.lane_of is None:
        return np.ones(token.size, dtype=bool)
    at = token if station.by_token else layout.stream_of[token]
    return np.asarray(station.lane_of[at] >= 0)


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
