"""Plans with several sequences of hosts, followed: at every step by the one that is cheapest then.

Section 4.3 of Ottenwälder et al. 2013, MigCEP.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from thalweg.migration.compiled.pricing import price_hosts
from thalweg.migration.drive import Effort
from thalweg.migration.fan import Fan
from thalweg.migration.outlook import Outlook
from thalweg.migration.situation import Situation
from thalweg.migration.time_graph import Moves
from thalweg.migration.turns import Agreement, as_seen
from thalweg.model.graph import Floats, Index


def follow_branches(
    situation: Situation, agreement: Agreement, first: int, leaf: Index, tick_bytes: Floats
) -> tuple[Index, Effort]:
    """The hosts of each operator from step `first` on: a column for each step seen, and the next.

    `leaf` and `tick_bytes` are where users are and what streams carry at each of these steps, a
    column each. When either changes, each operator in turn weighs the rest of all its sequences
    by what is known then, and goes by the cheapest. What a sequence has planned is prepared in
    time; to change to another one, its state is sent first. What is on its way when the next plan
    is made is wasted.
    """
    operators = situation.city.graph.operators
    seen_steps = leaf.shape[1]
    hosts = np.empty((len(operators), seen_steps + 1), dtype=np.int32)
    ways = [
        _Way(agreement.plans[k].copy(), int(agreement.plans[k, first]), situation.moves[k])
        for k in range(len(operators))
    ]
    for k in range(seen_steps + 1):
        step = min(first + k, agreement.plans.shape[1] - 1)
        if _is_news(leaf, tick_bytes, k):
            seen = replace(
                situation,
                fans=as_seen(situation, step, leaf[:, k]),
                tick_bytes=np.ascontiguousarray(tick_bytes[:, k]),
            )
            plans = seen.with_operators(np.stack([way.hosts for way in ways]))
            for position, way in enumerate(ways):
                fan = agreement.choices[position].fan
                outlook = seen.outlook(position, plans, way.at)
                way.change(fan.hosts[_cheapest(outlook, fan, step)], step)
                plans[operators[position].name] = Fan.certain(way.hosts)
        hosts[:, k] = [way.go(step) for way in ways]
    wasted = Effort()
    for way in ways:
        wasted += way.wasted(first + seen_steps)
    return hosts, wasted


def _is_news(leaf: Index, tick_bytes: Floats, k: int) -> bool:
    """Whether anything is seen at a step that was not at the one before."""
    if k == 0 or k == leaf.shape[1]:
        return False
    same = np.array_equal(leaf[:, k], leaf[:, k - 1])
    return not (same and np.array_equal(tick_bytes[:, k], tick_bytes[:, k - 1]))


@dataclass(slots=True)
class _Way:
    """How one operator goes along a sequence of hosts, and from one to another."""

    hosts: Index
    """The sequence it goes by."""
    at: int
    moves: Moves
    since: int = -(10**9)
    """The step at which it changed to this sequence."""
    target: int = -1
    arrive: int = 0
    """Where state is on its way to, and the step at which it is there."""

    def change(self, hosts: Index, step: int) -> None:
        """Go by another sequence from a step on."""
        if not np.array_equal(hosts[step:], self.hosts[step:]):
            self.since = step
        self.hosts = hosts

    def wasted(self, step: int) -> Effort:
        """State that was sent up to a step, if nobody waits for the rest of it."""
        if self.target < 0:
            return Effort()
        begun = self.arrive - self._takes(self.target)
        sent = (step - begun) / (self.arrive - begun)
        return Effort(wasted_bytes=self.moves.state_bytes * sent, wasted_transfers=int(sent > 0))

    def _takes(self, target: int) -> int:
        return int(self.moves.steps_from(np.array([self.at], dtype=np.int32))[0, target])

    def go(self, step: int) -> int:
        """Where the operator runs during a step."""
        if self.target >= 0 and self.arrive <= step:
            self.at, self.target = self.target, -1
        wanted = int(self.hosts[step])
        if wanted != self.at and self.target < 0:
            takes = self._takes(wanted)
            begun = step - takes
            prepared = begun >= self.since and (self.hosts[begun:step] == self.at).all()
            if prepared and begun >= 0:
                self.at = wanted
            else:
                self.target, self.arrive = wanted, step + takes
        return self.at


def _cheapest(outlook: Outlook, fan: Fan, step: int) -> int:
    """The sequence whose rest costs least from where the operator is; ties: the first."""
    place, state = outlook.place_cost(), outlook.moves.state_bytes
    costs = []
    for hosts in fan.hosts:
        row_of, delay = outlook.moves.brokers.rows_from(hosts)
        costs.append(price_hosts(place, hosts, outlook.start, step, state, row_of, delay))
    return int(np.argmin(costs))
