"""The cheapest way through a time graph, by passing costs along the links of the tree.

Row t of `place` is what it costs to run at each broker during step t; ∞ where there is no vertex.
Ties: staying comes before moving, then the first one found, up the tree before down.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from thalweg.compiling import kernel, leaf, part

Floats = npt.NDArray[np.float64]
Index = npt.NDArray[np.int32]

FROM_START = -1
"""In place of where a way came from: it left the start, where it had been from the first step."""


@leaf
def _pass_along(cost: Floats, origin: Index, parent: Index, link_cost: Floats) -> None:
    """Offer every broker what it costs to come from any other one: once up, once down the tree."""
    for broker in range(cost.size - 1, 0, -1):
        above = parent[broker]
        offer = cost[broker] + link_cost[broker]
        if offer < cost[above]:
            cost[above], origin[above] = offer, origin[broker]
    for broker in range(1, cost.size):
        above = parent[broker]
        offer = cost[above] + link_cost[broker]
        if offer < cost[broker]:
            cost[broker], origin[broker] = offer, origin[above]


@part
def _pass_one_hop(
    cost: Floats, origin: Index, parent: Index, link_cost: Floats, to: Floats, to_origin: Index
) -> bool:
    """Offer every broker what it costs to come from its neighbours; false if nobody took it."""
    taken = False
    to[:], to_origin[:] = cost, origin
    for broker in range(1, cost.size):
        above = parent[broker]
        up, down = cost[broker] + link_cost[broker], cost[above] + link_cost[broker]
        if up < to[above]:
            to[above], to_origin[above], taken = up, origin[broker], True
        if down < to[broker]:
            to[broker], to_origin[broker], taken = down, origin[above], True
    return taken


@kernel
def relax_in_one_step(
    place: Floats, parent: Index, link_cost: Floats, start: int, leave_cost: Floats, came: Index
) -> Floats:
    """Where every move ends within the step: two passes over the tree for each step.

    `came[t + 1, b]` is where the cheapest way to b at t + 1 ran during step t. Leaving the start
    for the first time costs `leave_cost` (empty: as any other move). Gives the cost of being at
    each broker after the last step.
    """
    steps, count = place.shape
    best = np.full(count, np.inf)
    best[start] = 0.0
    stayed = 0.0
    for t in range(steps):
        origin = came[t + 1]
        for broker in range(count):
            best[broker] += place[t, broker]
            origin[broker] = broker
        _pass_along(best, origin, parent, link_cost)
        if leave_cost.size:
            stayed += place[t, start]
            for broker in range(count):
                if stayed + leave_cost[broker] < best[broker]:
                    best[broker], origin[broker] = stayed + leave_cost[broker], FROM_START
        if t + 1 < steps:
            for broker in range(count):
                if place[t + 1, broker] == np.inf:
                    best[broker] = np.inf
    return best


@kernel
def relax_by_hops(
    place: Floats,
    parent: Index,
    link_cost: Floats,
    steps_of_hops: Index,
    start: int,
    leave_cost: Floats,
    leave_steps: Index,
    came: Index,
    since: Index,
) -> Floats:
    """Where a move over h hops takes `steps_of_hops[h]` steps, which never falls with h.

    Within k steps it gets as far as `reach` hops: what it cost to have run k steps at a broker is
    passed along that many times. `since[t, b]` is the step at which the move to b began.
    """
    steps, count = place.shape
    most_hops = steps_of_hops.size - 1
    # What takes longer than there are steps never arrives.
    longest = min(steps_of_hops[most_hops], steps)
    reach = np.zeros(longest + 1, np.int32)
    for hops in range(most_hops + 1):
        if steps_of_hops[hops] <= longest:
            reach[steps_of_hops[hops] :] = hops
    best = np.full((2, count), np.inf)
    best[0, start] = 0.0
    running = np.full((longest + 1, count), np.inf)
    cost, other = np.empty(count), np.empty(count)
    origin, other_origin = np.empty(count, np.int32), np.empty(count, np.int32)
    stayed = 0.0
    for t in range(1, steps + 1):
        before, now = best[(t - 1) % 2], best[t % 2]
        for k in range(longest, 1, -1):
            running[k] = running[k - 1] + place[t - 1]
        running[1] = before + place[t - 1]
        stayed += place[t - 1, start]
        now[:] = running[1]
        for broker in range(count):
            came[t, broker], since[t, broker] = broker, t - 1
        for k in range(1, min(longest, t) + 1):
            if reach[k] == 0 or reach[k] == reach[k - 1]:
                continue
            cost[:] = running[k]
            for broker in range(count):
                origin[broker] = broker
            if reach[k] == most_hops:
                _pass_along(cost, origin, parent, link_cost)
            for _ in range(reach[k] if reach[k] < most_hops else 0):
                if not _pass_one_hop(cost, origin, parent, link_cost, other, other_origin):
                    break
                cost[:], origin[:] = other, other_origin
            for broker in range(count):
                if cost[broker] < now[broker]:
                    now[broker] = cost[broker]
                    came[t, broker], since[t, broker] = origin[broker], t - k
        if leave_cost.size:
            _leave_start(stayed, leave_cost, leave_steps, t, now, came[t], since[t])
        if t < steps:
            for broker in range(count):
                if place[t, broker] == np.inf:
                    now[broker] = np.inf
    last: Floats = best[steps % 2].copy()
    return last


@leaf
def _leave_start(
    stayed: float,
    leave_cost: Floats,
    leave_steps: Index,
    t: int,
    best: Floats,
    came: Index,
    since: Index,
) -> None:
    """Offer every broker what it costs to have left the start for the first time."""
    for broker in range(best.size):
        enough = leave_steps[broker] <= t
        if enough and stayed + leave_cost[broker] < best[broker]:
            best[broker] = stayed + leave_cost[broker]
            came[broker], since[broker] = FROM_START, t - leave_steps[broker]


@kernel
def relax_all_pairs(
    place: Floats,
    move_cost: Floats,
    move_steps: Index,
    start: int,
    leave_cost: Floats,
    leave_steps: Index,
    came: Index,
    since: Index,
) -> Floats:
    """Every broker from every other one, whatever lies between them: n² offers for each step."""
    steps, count = place.shape
    best = np.full((steps + 1, count), np.inf)
    best[0, start] = 0.0
    # What it cost to run somewhere up to a step, and how often it was impossible.
    spent = np.zeros((steps + 1, count))
    barred = np.zeros((steps + 1, count), np.int32)
    for t in range(steps):
        for broker in range(count):
            possible = place[t, broker] < np.inf
            spent[t + 1, broker] = spent[t, broker] + (place[t, broker] if possible else 0.0)
            barred[t + 1, broker] = barred[t, broker] + (0 if possible else 1)
    for t in range(1, steps + 1):
        for to in range(count):
            came[t, to], since[t, to] = to, t - 1
            if t < steps and place[t, to] == np.inf:
                continue
            if barred[t, to] == barred[t - 1, to]:
                best[t, to] = best[t - 1, to] + place[t - 1, to]
            for at in range(count):
                begin = t - move_steps[at, to]
                if at == to or begin < 0 or barred[t, at] != barred[begin, at]:
                    continue
                offer = best[begin, at] + spent[t, at] - spent[begin, at] + move_cost[at, to]
                if offer < best[t, to]:
                    best[t, to] = offer
                    came[t, to], since[t, to] = at, begin
        if leave_cost.size and barred[t, start] == 0:
            _leave_start(spent[t, start], leave_cost, leave_steps, t, best[t], came[t], since[t])
            if t < steps:
                for broker in range(count):
                    if place[t, broker] == np.inf:
                        best[t, broker] = np.inf
    return best[steps].copy()


@kernel
def trace_back(came: Index, since: Index, last: int, start: int, hosts: Index) -> Index:
    """Walk back from a broker after the last step; gives what moves there were.

    Begin, arrival, source and target of each, the last one first. Without `since`, every move
    takes one step.
    """
    t, at, found = hosts.size, last, 0
    moves = np.empty((hosts.size, 4), np.int32)
    while t > 0:
        source = came[t, at]
        begin = since[t, at] if since.size else t - 1
        first = source == FROM_START
        if first:
            source = start
        # A move away from the start leaves where it has been since the first step.
        hosts[0 if first else begin : t] = source
        if source != at:
            moves[found, 0], moves[found, 1] = begin, t
            moves[found, 2], moves[found, 3] = source, at
            found += 1
        t, at = (0 if first else begin), source
    return moves[:found]
