"""The migration plan of an operator: where it will be when, what it takes along, and why."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from thalweg.errors import Defects
from thalweg.migration.approaches import SETTINGS, could_be_full, fly
from thalweg.migration.city import City
from thalweg.migration.mobility import Predictor
from thalweg.migration.outlook import Outlook
from thalweg.migration.pilot import Pilot
from thalweg.migration.policies import Policy, cost_of, weighted_sum
from thalweg.migration.settings import Settings
from thalweg.migration.situation import moves_of
from thalweg.model.graph import Floats, Index


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanStep:
    """Where an operator is expected to be at a step, and what has to be ready for that."""

    time_s: float
    host: str
    out_bytes_per_s: float
    """Expected on all its outgoing streams."""
    transfer_begin_s: float
    """When the transfer of its immutable state has to begin for it to run there at `time_s`."""
    first_event_s: dict[str, float]
    """By neighbour upstream: the moment of the first event that is still needed then."""
    reserved_latency_s: dict[str, float | None]
    """By neighbour: how long the stream may take, the others being as planned; None: no limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedMove:
    """One change of host, and what it is good for."""

    at_s: float
    begin_s: float
    source: str
    target: str
    state_bytes: float
    cost: float
    """State × delay, in byte · s."""
    saves: float
    """What all would cost more if it stayed until the next move instead, in byte · s."""
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationPlan:
    """The plan of one operator, with its costs in byte · s."""

    operator: str
    begin_s: float
    until_s: float
    """Up to which all its users are expected on the map; what follows costs nothing."""
    step_s: float
    steps: tuple[PlanStep, ...]
    moves: tuple[PlannedMove, ...]
    cost: float
    """Expected, of all steps and moves."""
    staying_cost: float
    """What it would cost not to move at all."""
    alternatives: tuple[tuple[float, tuple[str, ...]], ...]
    """Probability and hosts of each sequence, where the plan has several."""
    late_s: float
    """By how much the latency share is exceeded where it is worst."""
    crowded: bool
    """Whether it has to run where there is no room."""

    @property
    def violations(self) -> tuple[str, ...]:
        """The limits that it cannot keep."""
        found = []
        if self.late_s > 0:
            found.append(f"exceeds its latency share by {1e3 * self.late_s:.3g} ms")
        if self.crowded:
            found.append("has to run where there is no room for it")
        return tuple(found)

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain data."""
        return asdict(self) | {"violations": list(self.violations)}

    def explain(self) -> list[str]:
        """Why these hosts, at these times, at what cost."""
        return list(_explain(self))


def _explain(plan: MigrationPlan) -> Iterator[str]:
    yield (
        f"{plan.operator} is at {plan.steps[0].host} at {plan.begin_s:g} s; planned to "
        f"{plan.until_s:g} s in steps of {plan.step_s:g} s."
    )
    for move in plan.moves:
        yield (
            f"{move.at_s:g} s: {move.source} → {move.target}, {move.reason}. "
            f"Sending {move.state_bytes:,.0f} bytes from {move.begin_s:g} s on costs "
            f"{move.cost:,.4g} byte·s; {_alternative(move)}."
        )
    if not plan.moves:
        yield "It stays: no move would pay for itself within the plan."
    less = 1.0 - plan.cost / plan.staying_cost if plan.staying_cost > 0 else 0.0
    yield (
        f"Expected cost {plan.cost:,.4g} byte·s; never moving would cost "
        f"{plan.staying_cost:,.4g} ({less:.0%} saved)."
    )
    if len(plan.alternatives) > 1:
        odds = ", ".join(f"{probability:.0%}" for probability, _ in plan.alternatives)
        yield f"{len(plan.alternatives)} sequences of hosts are kept, with {odds} to be the best."
    for violation in plan.violations:
        yield f"Violated: it {violation}."


def _alternative(move: PlannedMove) -> str:
    if move.saves >= 0:
        return f"without this move it would cost {move.saves:,.4g} byte·s more in all"
    # Nobody pays for nothing: a limit has forced it.
    return f"staying would cost {-move.saves:,.4g} byte·s less, but not keep the limits"


def plan_instance(
    city: City,
    instance: int,
    at_s: float,
    predictor: Predictor,
    policy: Policy = weighted_sum,
    settings: Settings = SETTINGS,
) -> list[MigrationPlan]:
    """The plans of all operators of an instance at a moment, having gone by plans until then."""
    defects = Defects()
    known = 0 <= instance < city.instances
    defects.require(known, "instance", instance, f"a number from 0 to {city.instances - 1}")
    defects.raise_if_any()
    start_s, tick_s = city.connections.start_s, city.tick_s
    first, end = city.life[instance].tolist()
    tick = round((at_s - start_s) / tick_s) - first
    begin_s, end_s = start_s + first * tick_s, start_s + end * tick_s
    rule = f"from {begin_s:g} s to before {end_s:g} s, while all its users are on the map"
    defects.require(0 <= tick < end - first, "at_s", at_s, rule)
    defects.raise_if_any()
    if could_be_full(city):
        # Others may have reserved what this one would like to have.
        pilot = fly(city, predictor, policy, settings, until=first + tick)[instance]
    else:
        moves, at = moves_of(city, settings), 0
        pilot = Pilot.of(city, instance, predictor, policy, settings, moves, None)
        while at < tick:
            at = pilot.plan(at)
    pilot.plan(tick, anew=True)
    return [_describe(pilot, k) for k in range(len(city.graph.operators))]


def _describe(pilot: Pilot, k: int) -> MigrationPlan:
    agreement = pilot.agreement
    assert agreement is not None  # noqa: S101 - it has just planned
    city, outlook, hosts = pilot.city, pilot.outlook(k), agreement.plans[k]
    place = outlook.place_cost()
    choice = agreement.choices[k] if agreement.choices else None
    late = 0.0 if outlook.excess_s is None else outlook.excess_s[np.arange(hosts.size), hosts].max()
    begin_s = city.connections.start_s + city.tick_s * (
        int(city.life[pilot.instance, 0]) + pilot.planned_at
    )
    names = city.brokers.names
    several = choice is not None and not choice.fan.is_certain
    return MigrationPlan(
        operator=outlook.operator.name,
        begin_s=begin_s,
        until_s=begin_s + _alive(outlook) * outlook.moves.step_s,
        step_s=outlook.moves.step_s,
        steps=tuple(_steps(pilot, k, outlook, hosts, begin_s)),
        moves=tuple(_moves(pilot, outlook, hosts, place, begin_s)),
        cost=cost_of(outlook, place, hosts),
        staying_cost=float(place[:, outlook.start].sum()),
        alternatives=tuple(
            (float(weight), tuple(names[host] for host in row))
            for weight, row in zip(choice.fan.weight, choice.fan.hosts, strict=True)
        )
        if several and choice is not None
        else (),
        late_s=max(float(late), 0.0),
        crowded=outlook.room is not None and not outlook.room[np.arange(hosts.size), hosts].all(),
    )


def _alive(outlook: Outlook) -> int:
    """The step after the last one in which anything flows."""
    flows = np.flatnonzero(sum(tie.carried_bytes for tie in outlook.ties))
    return int(flows[-1]) + 1 if flows.size else 0


def _steps(
    pilot: Pilot, k: int, outlook: Outlook, hosts: Index, begin_s: float
) -> Iterator[PlanStep]:
    graph, names, step_s = pilot.city.graph, pilot.city.brokers.names, outlook.moves.step_s
    out = sum(float(tie.carried_bytes[0]) for tie in outlook.ties if not tie.incoming) / step_s
    window_s = graph.operators[k].window_s
    slack = _slack(outlook, hosts)
    since_s = begin_s
    for t, host in enumerate(hosts.tolist()):
        time_s = begin_s + t * step_s
        if t and host != hosts[t - 1]:
            source = np.array([hosts[t - 1]], dtype=np.int32)
            since_s = time_s - float(outlook.moves.steps_from(source)[0, host]) * step_s
        yield PlanStep(
            time_s=time_s,
            host=names[host],
            out_bytes_per_s=out,
            transfer_begin_s=since_s,
            first_event_s={
                tie.neighbour: time_s - window_s for tie in outlook.ties if tie.incoming
            },
            reserved_latency_s={
                tie.neighbour: None if slack is None else float(slack[n, t])
                for n, tie in enumerate(outlook.ties)
            },
        )


def _slack(outlook: Outlook, hosts: Index) -> Floats | None:
    """How long each stream may take at each step; None without a limit."""
    if np.isinf(outlook.latency_share_s):
        return None
    delay = outlook.moves.brokers.delay_s
    far = np.array(
        [
            np.where(tie.fan.hosts[0] >= 0, delay[hosts, tie.fan.hosts[0]], 0.0)
            for tie in outlook.ties
        ]
    )
    incoming = np.array([tie.incoming for tie in outlook.ties])
    own = np.array([tie.incoming or tie.most_delay_s is None for tie in outlook.ties])
    into = far[incoming].max(axis=0, initial=0.0)
    out = far[own & ~incoming].max(axis=0, initial=0.0)
    left = outlook.latency_share_s - outlook.work_s[hosts]
    rows = [
        tie.most_delay_s if tie.most_delay_s is not None else left - (out if tie.incoming else into)
        for tie in outlook.ties
    ]
    return np.asarray(np.maximum(np.array(rows), 0.0))


def _moves(
    pilot: Pilot, outlook: Outlook, hosts: Index, place: Floats, begin_s: float
) -> Iterator[PlannedMove]:
    brokers, step_s = pilot.city.brokers, outlook.moves.step_s
    changes = [t for t in range(1, hosts.size) if hosts[t] != hosts[t - 1]]
    ends = [*changes[1:], hosts.size][: len(changes)]
    for t, until in zip(changes, ends, strict=True):
        source, target = int(hosts[t - 1]), int(hosts[t])
        delay = float(brokers.delays_from(np.array([source], dtype=np.int32))[0, target])
        without = hosts.copy()
        without[t:until] = source
        takes = int(outlook.moves.steps_from(np.array([source], dtype=np.int32))[0, target])
        yield PlannedMove(
            at_s=begin_s + t * step_s,
            begin_s=begin_s + (t - takes) * step_s,
            source=brokers.names[source],
            target=brokers.names[target],
            state_bytes=outlook.moves.state_bytes,
            cost=outlook.moves.state_bytes * delay,
            saves=cost_of(outlook, place, without) - cost_of(outlook, place, hosts),
            reason=_reason(outlook, place, source, target, t, until, brokers.names),
        )


def _reason(
    outlook: Outlook,
    place: Floats,
    source: int,
    target: int,
    t: int,
    until: int,
    names: tuple[str, ...],
) -> str:
    """Which neighbours draw it there, and what that saves while it lasts."""
    delay = outlook.moves.brokers.delay_s
    nearer = []
    for tie in outlook.ties:
        host = int(tie.fan.hosts[0, t])
        if host >= 0 and delay[host, target] < delay[host, source]:
            nearer.append(f"{tie.neighbour} at {names[host]}")
    less = float(place[t:until, source].sum() - place[t:until, target].sum())
    span_s = max(min(until, _alive(outlook)) - t, 0) * outlook.moves.step_s
    drawn = "nearer to " + " and ".join(nearer) if nearer else "ahead of where its neighbours go"
    return f"{drawn}: streams cost {less:,.4g} byte·s less over {span_s:g} s there"
