"""Plans of operators that depend on each other, agreed on in turns.

Each operator in turn answers the plans of its neighbours with the cheapest one of its own, and
takes it only if it is strictly cheaper. What all of them cost together falls with every change,
so that it ends. `thalweg.migration.coordination` has the same as messages between operators.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thalweg.migration.compiled.driving import go_together, plan_in_turns
from thalweg.migration.drive import Effort, state_bytes, stream_ends
from thalweg.migration.fan import Fan
from thalweg.migration.policies import Choice, KShortest, Policy, appraise, weighted_sum
from thalweg.migration.situation import Situation
from thalweg.migration.time_graph import MoveTime
from thalweg.model.graph import Floats, Index

_EPSILON = 1e-9


@dataclass(frozen=True, eq=False, kw_only=True)
class Agreement:
    """The plans that operators agreed on."""

    plans: Index
    """The hosts of each operator, a column for each step."""
    choices: tuple[Choice, ...]
    """Of each operator, where a policy made them; empty where the compiled turns did."""
    place: Floats
    """What each operator saw last: the cost of each step at each broker."""
    effort: Effort

    @property
    def is_certain(self) -> bool:
        """Whether there is one sequence of hosts for each operator."""
        return all(choice.fan.is_certain for choice in self.choices)


def agree(situation: Situation, before: Index, policy: Policy) -> Agreement:
    """Plan in turns, from the plans `before` on; each operator is where its plan begins."""
    if _is_plain(situation, policy):
        return _agree_compiled(situation, before)
    return _agree_by_policy(situation, before, policy)


def _is_plain(situation: Situation, policy: Policy) -> bool:
    """Whether the compiled turns do: one sequence for each operator, no limit but range."""
    certain = all(fan.is_certain for fan in situation.fans)
    one_path = policy is weighted_sum or (certain and not isinstance(policy, KShortest))
    limits = [situation.city.graph.latency_s, situation.settings.decay_s]
    in_a_step = all(moves.time is MoveTime.ONE_STEP for moves in situation.moves)
    return (
        one_path and situation.reservations is None and bool(np.isinf(limits).all()) and in_a_step
    )


def _agree_compiled(situation: Situation, before: Index) -> Agreement:
    city, fans = situation.city, situation.fans
    start, plans = before[:, 0].copy(), np.ascontiguousarray(before).copy()
    place = np.empty((len(start), situation.steps, city.brokers.count))
    state = state_bytes(city.graph)
    known = (
        np.concatenate([fan.weight for fan in fans]),
        np.concatenate([fan.hosts for fan in fans]),
        np.cumsum([0, *(len(fan.weight) for fan in fans)]).astype(np.int32),
        stream_ends(city.graph),
        situation.carried(),
        city.brokers.parent,
        state[:, None] * city.brokers.link_delay_s,
        state,
        city.brokers.delay_s,
        start,
        situation.barred(start),
    )
    barred = known[-1]
    effort, again = Effort(coordinations=1), True
    while again:
        made, taken = plan_in_turns(*known, situation.settings.most_turns, plans, place)
        again = situation.settings.together and go_together(*known, plans)
        effort += Effort(plans=made, changes=taken + again * len(start))
    crowded = sum(bool(row[hosts[1:]].any()) for row, hosts in zip(barred, plans, strict=True))
    effort += Effort(crowded=crowded)
    return Agreement(plans=plans, choices=(), place=place, effort=effort)


def _agree_by_policy(situation: Situation, before: Index, policy: Policy) -> Agreement:
    operators = situation.city.graph.operators
    start = before[:, 0].tolist()
    plans = situation.with_operators(before)
    # All but the last word is on the cheapest path alone: k paths are wanted only at the end.
    answer = weighted_sum if isinstance(policy, KShortest) else policy
    choices: list[Choice | None] = [None] * len(operators)
    place = np.empty((len(operators), situation.steps, situation.city.brokers.count))
    made, taken, quiet = 0, 0, 0
    while quiet < len(operators) and made < situation.settings.most_turns * len(operators):
        k = made % len(operators)
        made += 1
        outlook = situation.outlook(k, plans, start[k])
        choice, place[k] = answer(outlook), outlook.place_cost()
        old = appraise(outlook, place[k], choices[k] or plans[operators[k].name])
        better = _is_better(choice, old)
        # An answer that is as good as the plan before may know of more than one sequence.
        if better or (choices[k] is None and not _is_better(old, choice)):
            choices[k], plans[operators[k].name] = choice, choice.fan
        else:
            choices[k] = old
        taken, quiet = taken + better, (0 if better else quiet + 1)
    outlooks = [situation.outlook(k, plans, at) for k, at in enumerate(start)]
    if answer is not policy:
        choices = [policy(outlook) for outlook in outlooks]
    found = tuple(
        appraise(outlook, outlook.place_cost(), choice)
        for outlook, choice in zip(outlooks, choices, strict=True)
        if choice is not None
    )
    effort = Effort(
        coordinations=1,
        plans=made,
        changes=taken,
        left_out=max(choice.left_out for choice in found),
        late=sum(choice.late_s > 0 for choice in found),
        crowded=sum(choice.crowded > 0 for choice in found),
    )
    hosts = np.stack([choice.fan.hosts[0] for choice in found])
    return Agreement(plans=hosts, choices=found, place=place, effort=effort)


def _is_better(choice: Choice, than: Choice) -> bool:
    """Whether a plan keeps the limits better, or costs strictly less and keeps them as well."""
    late = choice.late_s - than.late_s
    if abs(late) > _EPSILON:
        return late < 0
    if choice.crowded != than.crowded:
        return choice.crowded < than.crowded
    return choice.cost < than.cost - _EPSILON * (1.0 + abs(than.cost))


def as_seen(situation: Situation, step: int, leaf: Index) -> tuple[Fan, ...]:
    """What users may still do, given where they are at a step; where nothing fits, all of it."""
    fans = []
    for fan, at in zip(situation.fans, leaf, strict=True):
        fits = fan.hosts[:, step] == at
        if not fits.any() or fits.all():
            fans.append(fan)
            continue
        weight = fan.weight[fits] / fan.weight[fits].sum()
        fans.append(Fan(weight=weight, hosts=np.ascontiguousarray(fan.hosts[fits])))
    return tuple(fans)
