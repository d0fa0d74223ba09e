"""How many events of what size pass each copy, by walking the graph from the sources."""

from __future__ import annotations

from dataclasses import dataclass

from thalweg.check.unfold import Copy, Unfolded
from thalweg.model.operator import CountWindow, TimeWindow
from thalweg.model.problem import Problem


@dataclass(frozen=True)
class Flow:
    """Events from one copy to another."""

    sender: Copy
    receiver: Copy
    start: int
    end: int
    events_per_s: float
    size_bytes: float

    @property
    def bps(self) -> float:
        """Bits/s."""
        return self.events_per_s * self.size_bytes * 8


@dataclass(frozen=True)
class Traffic:
    """Per copy events/s and bytes in; all flows; the copies, upstream first."""

    events_in: dict[Copy, float]
    size_in: dict[Copy, float]
    flows: list[Flow]
    order: list[Copy]


def measure_traffic(problem: Problem, unfolded: Unfolded) -> Traffic:
    """Follow the events from where they are born to the sinks."""
    app = problem.application
    events_in: dict[Copy, float] = {}
    size_in: dict[Copy, float] = {}
    flows: list[Flow] = []
    order = upstream_first(unfolded)
    for copy in order:
        operator = app.operator(copy[0])
        if operator.kind == "source":
            events_in[copy] = unfolded.births[copy]
            size_in[copy] = operator.event_size or 0.0
            continue
        arriving: list[tuple[float, float]] = []
        for sender, probability in unfolded.senders[copy]:
            upstream = app.operator(sender[0])
            grown = upstream.kind != "source"
            events = events_in[sender] * (upstream.selectivity if grown else 1.0) * probability
            size = size_in[sender] * (upstream.compression if grown else 1.0)
            arriving.append((events, size))
            start, end = unfolded.node[sender], unfolded.node[copy]
            flows.append(Flow(sender, copy, start, end, events, size))
        events_in[copy] = sum(events for events, _ in arriving)
        if events_in[copy] > 0:
            size_in[copy] = sum(e * size for e, size in arriving) / events_in[copy]
        else:
            size_in[copy] = sum(size for _, size in arriving) / len(arriving)
    return Traffic(events_in, size_in, flows, order)


def upstream_first(unfolded: Unfolded) -> list[Copy]:
    """Every copy after all copies that send to it."""
    receivers: dict[Copy, list[Copy]] = {copy: [] for copy in unfolded.node}
    missing = {copy: len(sending) for copy, sending in unfolded.senders.items()}
    for copy, sending in unfolded.senders.items():
        for sender, _ in sending:
            receivers[sender].append(copy)
    ready = [copy for copy, count in missing.items() if count == 0]
    order = []
    while ready:
        copy = ready.pop()
        order.append(copy)
        for receiver in receivers[copy]:
            missing[receiver] -= 1
            if missing[receiver] == 0:
                ready.append(receiver)
    return order


def instructions_per_event(problem: Problem, traffic: Traffic, copy: Copy) -> float:
    """Work on one event, once."""
    operator = problem.application.operator(copy[0])
    return operator.cpu_per_event + operator.cpu_per_byte * traffic.size_in[copy]


def cpu_load_ips(problem: Problem, traffic: Traffic, copy: Copy) -> float:
    """Instructions/s: a sliding window works on each event as often as it lies in one."""
    window = problem.application.operator(copy[0]).window
    overlap = window.length / window.slide if isinstance(window, TimeWindow) else 1.0
    return instructions_per_event(problem, traffic, copy) * traffic.events_in[copy] * overlap


def memory_load_bytes(problem: Problem, traffic: Traffic, copy: Copy) -> float:
    """Fixed memory, and the window's data times the memory factor."""
    operator = problem.application.operator(copy[0])
    events = 0.0
    if isinstance(operator.window, CountWindow):
        events = operator.window.events
    elif isinstance(operator.window, TimeWindow):
        events = operator.window.length * traffic.events_in[copy]
    return operator.memory + operator.memory_factor * events * traffic.size_in[copy]
