"""State, and what waits with it, on its way from node to node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from thalweg.model.network import Network
from thalweg.simulate.events import Events
from thalweg.simulate.program import Condition, lan_name, wan_name
from thalweg.simulate.server import Server


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """An instance that moved, started with a state, or handed over what it had."""

    at_s: float
    operator: str
    source: str
    target: str
    sent_bytes: float
    downtime_s: float
    """From the moment it stops until it resumes; ∞ where no way led there all the time."""
    delayed_events: int
    """How many waited when it stopped, and went along."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Parcel:
    """What is to go from node to node, for a station."""

    key: str
    source: int
    target: int
    sent_bytes: float
    events: Events = field(default_factory=Events.none)
    """Those that arrive with it; what waits for a station that moves stays in its queue."""
    number: int
    """Of the move that it belongs to."""


class Shipper:
    """Sends parcels; those that no way leads for wait for the next change."""

    def __init__(self, network: Network) -> None:
        self._net = network
        self.moves: list[Move] = []
        self.waiting: list[Parcel] = []

    @property
    def held(self) -> int:
        """How many events wait for a way."""
        return sum(len(parcel.events) for parcel in self.waiting)

    def ship(
        self,
        parcel: Parcel,
        now_s: float,
        servers: Mapping[str, Server],
        condition: Condition,
    ) -> None:
        """Send a parcel; the station that it is for works on when it has arrived."""
        arrival_s = self._send(parcel, now_s, servers, condition)
        move = self.moves[parcel.number]
        downtime_s = arrival_s - move.at_s
        if np.isfinite(move.downtime_s):  # The last of its parts counts.
            downtime_s = max(downtime_s, move.downtime_s)
        self.moves[parcel.number] = replace(move, downtime_s=downtime_s)
        server = servers.get(parcel.key)
        if server is None:
            return
        if not np.isfinite(arrival_s):
            self.waiting.append(parcel)
            if not len(parcel.events):
                server.stand_still(np.inf)
            return
        if len(parcel.events):
            server.add_late(parcel.events.at(np.full(len(parcel.events), arrival_s)))
            return
        if np.isinf(server.free_s):
            server.resume(now_s)
        server.stand_still(arrival_s)

    def try_again(self, now_s: float, servers: Mapping[str, Server], condition: Condition) -> None:
        """Send what waits, now that something has changed."""
        parcels, self.waiting = self.waiting, []
        for parcel in parcels:
            self.ship(parcel, now_s, servers, condition)

    def note(self, name: str, parcel_bytes: float, a: int, b: int, at_s: float, events: int) -> int:
        """Remember a move; gives its number."""
        net = self._net
        self.moves.append(
            Move(
                at_s=at_s,
                operator=name,
                source=net.node_name(a),
                target=net.node_name(b),
                sent_bytes=parcel_bytes,
                downtime_s=0.0,
                delayed_events=events,
            )
        )
        return len(self.moves) - 1

    def _send(
        self, parcel: Parcel, now_s: float, servers: Mapping[str, Server], condition: Condition
    ) -> float:
        """When bytes sent now are all there; links are taken on the way, ahead of what queues.

        What was on a node that is down comes from the nearest cloud that is up, where its copy is.
        """
        net = self._net
        a, b, sent_bytes = parcel.source, parcel.target, parcel.sent_bytes
        if condition.node_speed(a) <= 0:
            if not sent_bytes:
                return now_s
            up = [n for n in net.cloud_nodes.tolist() if condition.node_speed(n) > 0]
            if not up:
                return np.inf
            a = min(up, key=lambda node: (float(net.latency_s(node, b)), node))
        if a == b:
            return now_s
        time_s = now_s
        for name, latency_s, free_bps in self._hops(a, b, condition):
            server = servers.get(name)
            begin_s = time_s if server is None else max(time_s, server.free_s)
            taken_s = 8.0 * sent_bytes / free_bps if free_bps > 0 else np.inf
            time_s = begin_s + (taken_s if sent_bytes else 0.0)
            if server is not None and np.isfinite(time_s):
                server.free_s = time_s
            time_s += latency_s
        return float(time_s)

    def _hops(self, a: int, b: int, condition: Condition) -> list[tuple[str, float, float]]:
        """Name, latency and bandwidth of each link from node to node."""
        net = self._net
        start, end = int(net.node_site[a]), int(net.node_site[b])
        links = net.wan.route(start, end).tolist()
        hops = [self._lan_hop(a, "out", condition)]
        if start != end and not links:
            return [*hops, ("no way", np.inf, 0.0)]
        for link in links:
            latency_s = float(net.wan.latency_s(*net.wan.link_ends(link)))
            free_bps = float(net.wan.link_available_bps([link])[0]) * condition.link_speed(link)
            hops.append((wan_name(net, link), latency_s, free_bps))
        return [*hops, self._lan_hop(b, "in", condition)]

    def _lan_hop(self, node: int, way: str, condition: Condition) -> tuple[str, float, float]:
        net, speed = self._net, condition.node_speed(node)
        bps = float(net.node_lan_available_bps[node]) * speed if speed > 0 else 0.0
        return lan_name(net, node, way), float(net.node_lan_latency_s[node]), bps
