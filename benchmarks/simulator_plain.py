"""A chain of queues as an application that is placed, and the same chain in SimPy.

Sources send messages at random times; every queue has one server and serves them in the order in
which they come. In SimPy it is written in three ways: the first two use the queues that SimPy has,
the third makes its own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
import simpy

from thalweg.model import (
    Application,
    Instance,
    Network,
    Operator,
    Pin,
    Placement,
    Stream,
    Tier,
    TreeWan,
)

EVENT_BYTES, CPU_IPS = 1000.0, 1e9
Process = Generator[simpy.Event, Any, None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """Sources, and the queues that each of their messages passes, all equally busy.

    `is_link` tells for each queue whether it is a link, whose times are fixed, or an operator,
    whose times are exponential.
    """

    sources: int = 20
    rate: float = 1000.0
    """Messages per second, of all sources together."""
    load: float = 0.7
    is_link: tuple[bool, ...] = (True, False, False, True, False, False, False)

    @property
    def service_s(self) -> float:
        """The mean time of service, the same in each queue."""
        return self.load / self.rate

    @property
    def hops(self) -> int:
        """How many queues a message passes."""
        return len(self.is_link)

    def services(self, random: Random) -> list[Callable[[], float]]:
        """For each queue what gives the time of the next service."""
        mean_s, draw = self.service_s, random.expovariate
        fixed, varied = (lambda: mean_s), (lambda: draw(1.0 / mean_s))
        return [fixed if link else varied for link in self.is_link]


def make_network(chain: Chain) -> Network:
    """Devices in an edge site, a fog, a cloud; only the two links between sites take time."""
    nodes = chain.sources + 2
    parent = np.array([1, 2, -1], dtype=np.int32)
    bps = np.array([*[8.0 * EVENT_BYTES / chain.service_s] * 2, np.inf])
    cpu, memory, lan = np.full(nodes, CPU_IPS), np.full(nodes, 1e9), np.full(nodes, np.inf)
    return Network(
        name="three-tiers",
        site_names=("edge", "fog", "cloud"),
        site_tier=np.array([Tier.EDGE, Tier.FOG, Tier.CLOUD], dtype=np.uint8),
        site_parent=parent,
        site_edge_delay_s=np.zeros(3),
        node_site=np.repeat(np.arange(3, dtype=np.int32), [chain.sources, 1, 1]),
        node_cpu_ips=cpu,
        node_cpu_available_ips=cpu,
        node_memory_bytes=memory,
        node_memory_available_bytes=memory,
        node_lan_latency_s=np.zeros(nodes),
        node_lan_bandwidth_bps=lan,
        node_lan_available_bps=lan,
        node_operators=np.zeros(nodes, dtype=np.int32),
        wan=TreeWan(
            parent=parent,
            latency=np.zeros(3),
            bandwidth=bps,
            available=np.repeat(bps[:, None], 2, axis=1),
        ),
    )


def make_chain(chain: Chain) -> tuple[Application, Network, Placement]:
    """The chain as an application that is placed: what is before the second link, in the fog."""
    network = make_network(chain)
    devices = {f"device-{k}": network.node_name(k) for k in range(chain.sources)}
    second = chain.is_link.index(True, 1)
    queues = enumerate(chain.is_link)
    sites = {f"step-{k}": "fog" if k < second else "cloud" for k, link in queues if not link}
    steps = list(sites)
    cpu = chain.service_s * CPU_IPS
    rate = chain.rate / chain.sources
    app = Application(
        name="chain",
        operators=[
            *(
                Operator(
                    name=name, kind="source", rate=rate, event_size=EVENT_BYTES, pin=Pin(node=node)
                )
                for name, node in devices.items()
            ),
            *(Operator(name=name, cpu_per_event=cpu) for name in steps),
            Operator(name="sink", kind="sink", pin=Pin(node="cloud")),
        ],
        streams=[
            *(Stream(source=name, target=steps[0]) for name in devices),
            *(Stream(source=a, target=b) for a, b in zip(steps, [*steps[1:], "sink"], strict=True)),
        ],
    )
    instances = [Instance(operator=o, node=n, origin="edge") for o, n in devices.items()]
    instances += [Instance(operator=o, node=n) for o, n in (sites | {"sink": "cloud"}).items()]
    return app, network, Placement.of(instances)


def _start_sources(
    env: simpy.Environment, chain: Chain, random: Random, send: Callable[[], object]
) -> None:
    draw, rate = random.expovariate, chain.rate / chain.sources

    def source() -> Process:
        while True:
            yield env.timeout(draw(rate))
            send()

    for _ in range(chain.sources):
        env.process(source())


def by_message(chain: Chain, seconds: float, seed: int) -> list[float]:
    """The latencies of all messages that came through: a process for each, a Resource per queue."""
    env, random = simpy.Environment(), Random(seed)  # noqa: S311
    queues = [(simpy.Resource(env, capacity=1), draw) for draw in chain.services(random)]
    latencies: list[float] = []

    def message() -> Process:
        born_s = env.now
        for queue, draw in queues:
            with queue.request() as turn:
                yield turn
                yield env.timeout(draw())
        latencies.append(env.now - born_s)

    _start_sources(env, chain, random, lambda: env.process(message()))
    env.run(until=seconds)
    return latencies


def by_server(chain: Chain, seconds: float, seed: int) -> list[float]:
    """The same with a process for each server, which takes messages from a Store."""
    env, random = simpy.Environment(), Random(seed)  # noqa: S311
    queues = [simpy.Store(env) for _ in chain.is_link]
    latencies: list[float] = []

    def server(own: simpy.Store, after: simpy.Store | None, draw: Callable[[], float]) -> Process:
        while True:
            born_s = yield own.get()
            yield env.timeout(draw())
            if after is None:
                latencies.append(env.now - born_s)
            else:
                after.put(born_s)

    following = [*queues[1:], None]
    for own, after, draw in zip(queues, following, chain.services(random), strict=True):
        env.process(server(own, after, draw))
    _start_sources(env, chain, random, lambda: queues[0].put(env.now))
    env.run(until=seconds)
    return latencies


class _Line:
    """A queue beside SimPy, which hears of it only when a server has run out of work."""

    def __init__(self) -> None:
        self.waiting: deque[float] = deque()
        self.wake: simpy.Event | None = None

    def put(self, born_s: float) -> None:
        self.waiting.append(born_s)
        if self.wake is not None:
            self.wake.succeed()
            self.wake = None


def by_hand(chain: Chain, seconds: float, seed: int) -> list[float]:
    """The same with a process for each server, and queues that are no part of SimPy."""
    env, random = simpy.Environment(), Random(seed)  # noqa: S311
    queues = [_Line() for _ in chain.is_link]
    latencies: list[float] = []

    def server(own: _Line, after: _Line | None, draw: Callable[[], float]) -> Process:
        waiting = own.waiting
        while True:
            if not waiting:
                own.wake = env.event()
                yield own.wake
            born_s = waiting.popleft()
            yield env.timeout(draw())
            if after is None:
                latencies.append(env.now - born_s)
            else:
                after.put(born_s)

    following = [*queues[1:], None]
    for own, after, draw in zip(queues, following, chain.services(random), strict=True):
        env.process(server(own, after, draw))
    _start_sources(env, chain, random, lambda: queues[0].put(env.now))
    env.run(until=seconds)
    return latencies
