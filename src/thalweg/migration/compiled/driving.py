"""Runs of whole instances: what hosts cost, who is greedy, and what could have been at best."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from thalweg.compiling import kernel, leaf, part
from thalweg.migration.compiled.pricing import price_hosts
from thalweg.migration.compiled.relaxing import relax_in_one_step

Floats = npt.NDArray[np.float64]
Index = npt.NDArray[np.int32]


@kernel
def add_costs(
    hosts: Index, leaf: Index, ends: Index, carried: Floats, state: Floats, delay: Floats
) -> tuple[float, float]:
    """What the streams and the moves of an instance cost.

    `hosts` has a row for each operator, `leaf` one for each user; an end of a stream is the
    number of an operator, or −1 − the number of a user. A host that differs from the one of the
    tick before was moved to.
    """
    placement, migration = 0.0, 0.0
    for stream in range(ends.shape[0]):
        a, b = ends[stream]
        for t in range(hosts.shape[1]):
            at = hosts[a, t] if a >= 0 else leaf[-1 - a, t]
            to = hosts[b, t] if b >= 0 else leaf[-1 - b, t]
            placement += carried[stream, t] * delay[at, to]
    for operator in range(hosts.shape[0]):
        for t in range(1, hosts.shape[1]):
            migration += state[operator] * delay[hosts[operator, t - 1], hosts[operator, t]]
    return placement, migration


@part
def _price_now(
    operator: int, t: int, at: Index, leaf: Index, ends: Index, carried: Floats, delay: Floats,
    price: Floats,
) -> None:  # fmt: skip
    """What an operator's streams cost at every broker, the others being where they are."""
    price[:] = 0.0
    for stream in range(ends.shape[0]):
        a, b = ends[stream]
        if operator not in (a, b):
            continue
        other = b if a == operator else a
        host = at[other] if other >= 0 else leaf[-1 - other, t]
        for broker in range(price.size):
            price[broker] += carried[stream, t] * delay[host, broker]


@kernel
def follow_greedily(
    start: Index, leaf: Index, ends: Index, carried: Floats, move_steps: Index, delay: Floats,
    every: int, barred: npt.NDArray[np.bool_], hosts: Index,
) -> None:  # fmt: skip
    """Every few ticks each operator in turn moves to the broker that is cheapest now.

    A move takes `move_steps[operator, from, to]` ticks; until then it runs where it was. Ties:
    where it is, then the lower broker.
    """
    operators, ticks = hosts.shape
    at, target = start.copy(), np.full(operators, -1, np.int32)
    arrive = np.zeros(operators, np.int32)
    price = np.empty(delay.shape[0])
    for t in range(ticks):
        for operator in range(operators):
            if target[operator] >= 0 and arrive[operator] == t:
                at[operator], target[operator] = target[operator], -1
        if t % every == 0:
            for operator in range(operators):
                if target[operator] >= 0:
                    continue
                _price_now(operator, t, at, leaf, ends, carried, delay, price)
                best = at[operator]
                for broker in range(price.size):
                    if price[broker] < price[best] and not barred[operator, broker]:
                        best = broker
                if best != at[operator]:
                    target[operator] = best
                    arrive[operator] = t + move_steps[operator, at[operator], best]
        hosts[:, t] = at


@kernel
def look_ahead_jointly(
    place_a: Floats, place_b: Floats, between: Floats, parent: Index, link_a: Floats,
    link_b: Floats, delay: Floats, start_a: int, start_b: int, hosts: Index,
) -> float:  # fmt: skip
    """The least cost of two operators together, both known to the end; their hosts into `hosts`.

    A vertex for each pair of brokers and tick: what a and b pay for their users there, what
    flows between them, and moves of either within a tick.
    """
    ticks, count = place_a.shape
    best = np.full((count, count), np.inf)
    best[start_a, start_b] = 0.0
    # Where each pair came from, as one number.
    came = np.empty((ticks, count, count), np.int32)
    for t in range(ticks):
        origin = came[t]
        flow = between[t]
        for a in range(count):
            for b in range(count):
                best[a, b] += place_a[t, a] + place_b[t, b] + flow * delay[a, b]
                origin[a, b] = a * count + b
            # b moves within the row of a.
            for b in range(count - 1, 0, -1):
                offer = best[a, b] + link_b[b]
                if offer < best[a, parent[b]]:
                    best[a, parent[b]], origin[a, parent[b]] = offer, origin[a, b]
            for b in range(1, count):
                offer = best[a, parent[b]] + link_b[b]
                if offer < best[a, b]:
                    best[a, b], origin[a, b] = offer, origin[a, parent[b]]
        for a in range(count - 1, 0, -1):
            _offer_row(best[a], origin[a], link_a[a], best[parent[a]], origin[parent[a]])
        for a in range(1, count):
            _offer_row(best[parent[a]], origin[parent[a]], link_a[a], best[a], origin[a])
    place = int(np.argmin(best))
    least = best.ravel()[place]
    for t in range(ticks - 1, -1, -1):
        place = came[t].ravel()[place]
        hosts[0, t], hosts[1, t] = place // count, place % count
    return float(least)


@leaf
def _offer_row(cost: Floats, origin: Index, link: float, to: Floats, to_origin: Index) -> None:
    """Offer every pair of a row what it costs to come from the same column of another one."""
    for column in range(cost.size):
        offer = cost[column] + link
        better = offer < to[column]
        to[column] = offer if better else to[column]
        to_origin[column] = origin[column] if better else to_origin[column]


@leaf
def _add_sequence(
    cost: Floats, carried: Floats, weight: float, hosts: Index, delay: Floats
) -> None:
    """Add what a stream costs at every broker if its other end goes by a sequence of hosts."""
    for t in range(hosts.size):
        if hosts[t] >= 0:
            share = carried[t] * weight
            for broker in range(cost.shape[1]):
                cost[t, broker] += share * delay[hosts[t], broker]


@kernel
def plan_in_turns(
    user_weight: Floats, user_hosts: Index, user_first: Index, ends: Index, carried: Floats,
    parent: Index, links: Floats, state: Floats, delay: Floats, start: Index,
    barred: npt.NDArray[np.bool_], most_turns: int, plans: Index, place: Floats,
) -> tuple[int, int]:  # fmt: skip
    """Each operator in turn takes the cheapest path, the others' plans being what they are.

    Sequences of user u are rows `user_first[u]`… of `user_hosts`. A plan changes only for one
    that is strictly cheaper; when a whole round changes none, all are done. `plans` holds the
    plans before and after, `place[o]` what each operator saw last. Gives how many plans were
    made and how many were taken.
    """
    operators, steps = plans.shape
    came, nothing = np.empty((steps + 1, delay.shape[0]), np.int32), np.empty(0)
    own_row = np.arange(delay.shape[0]).astype(np.int32)
    made, taken, quiet = 0, 0, 0
    while quiet < operators and made < most_turns * operators:
        operator = made % operators
        made += 1
        cost = place[operator]
        for t in range(steps):
            for broker in range(cost.shape[1]):
                out = t > 0 or broker != start[operator]
                cost[t, broker] = np.inf if barred[operator, broker] and out else 0.0
        for stream in range(ends.shape[0]):
            a, b = ends[stream]
            if operator not in (a, b):
                continue
            other = b if a == operator else a
            if other >= 0:
                _add_sequence(cost, carried[stream], 1.0, plans[other], delay)
                continue
            for sequence in range(user_first[-1 - other], user_first[-other]):
                share, hosts = user_weight[sequence], user_hosts[sequence]
                _add_sequence(cost, carried[stream], share, hosts, delay)
        at = start[operator]
        best = relax_in_one_step(cost, parent, links[operator], at, nothing, came)
        before = price_hosts(cost, plans[operator], at, 0, state[operator], own_row, delay)
        for broker in range(best.size):
            if best[broker] < best[at]:
                at = broker
        # A plan that is barred by now costs ∞: any other is better.
        saved = 1e-9 * (1.0 + abs(before)) if before < np.inf else 0.0
        if best[at] + saved < before:
            for t in range(steps, 0, -1):
                at = came[t, at]
                plans[operator, t - 1] = at
            taken, quiet = taken + 1, 0
        else:
            quiet += 1
    return made, taken


@part
def _add_streams(
    operator: int, user_weight: Floats, user_hosts: Index, user_first: Index, ends: Index,
    carried: Floats, delay: Floats, cost: Floats,
) -> None:  # fmt: skip
    """Add what the streams between an operator and users cost at every broker."""
    for stream in range(ends.shape[0]):
        a, b = ends[stream]
        if operator not in (a, b):
            continue
        other = b if a == operator else a
        if other < 0:
            for sequence in range(user_first[-1 - other], user_first[-other]):
                share, hosts = user_weight[sequence], user_hosts[sequence]
                _add_sequence(cost, carried[stream], share, hosts, delay)


@part
def _price_all(
    plans: Index, prices: Floats, ends: Index, carried: Floats, state: Floats, start: Index,
    delay: Floats,
) -> float:  # fmt: skip
    """What all plans of an instance cost together."""
    total = 0.0
    for operator in range(plans.shape[0]):
        at = start[operator]
        for t in range(plans.shape[1]):
            to = plans[operator, t]
            total += prices[operator, t, to] + state[operator] * delay[at, to]
            at = to
    for stream in range(ends.shape[0]):
        a, b = ends[stream]
        if a >= 0 and b >= 0:
            for t in range(plans.shape[1]):
                total += carried[stream, t] * delay[plans[a, t], plans[b, t]]
    return total


@kernel
def go_together(
    user_weight: Floats, user_hosts: Index, user_first: Index, ends: Index, carried: Floats,
    parent: Index, links: Floats, state: Floats, delay: Floats, start: Index,
    barred: npt.NDArray[np.bool_], plans: Index,
) -> bool:  # fmt: skip
    """Try what no operator can do alone: all of them go the same way, behind each one in turn.

    The group takes the cheapest path from where its leader is, the others join it with the first
    move. True if that is strictly cheaper than the plans, which are then those of the group.
    """
    operators, steps = plans.shape
    prices = np.zeros((operators, steps, delay.shape[0]))
    for operator in range(operators):
        _add_streams(
            operator, user_weight, user_hosts, user_first, ends, carried, delay, prices[operator]
        )
    together, link = np.zeros((steps, delay.shape[0])), np.zeros(delay.shape[0])
    for operator in range(operators):
        together += prices[operator]
        link += links[operator]
        for broker in range(delay.shape[0]):
            if barred[operator, broker]:
                together[:, broker] = np.inf
    least = _price_all(plans, prices, ends, carried, state, start, delay)
    came, nothing = np.empty((steps + 1, delay.shape[0]), np.int32), np.empty(0)
    tried, better = plans.copy(), False
    for leader in range(operators):
        at = start[leader]
        best = relax_in_one_step(together, parent, link, at, nothing, came)
        for broker in range(best.size):
            if best[broker] < best[at]:
                at = broker
        if best[at] == np.inf:
            continue  # The leader is where some of them must not be, or there is no way for all.
        for t in range(steps, 0, -1):
            at = came[t, at]
            tried[:, t - 1] = at
        tried[:, 0] = start
        cost = _price_all(tried, prices, ends, carried, state, start, delay)
        if cost < least - 1e-9 * (1.0 + abs(least)):
            plans[:, :], least, better = tried, cost, True
    return better
