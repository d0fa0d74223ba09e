"""How an operator plans when its neighbours' plans are uncertain.

Section 4.2 of Ottenwälder et al. 2013, MigCEP.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np

from thalweg.errors import Defects, nearest
from thalweg.migration.cheapest import Spread, probability_of_least
from thalweg.migration.compiled.k_best import k_best
from thalweg.migration.compiled.pricing import price_hosts
from thalweg.migration.compiled.shifting import shift_moves
from thalweg.migration.fan import Fan
from thalweg.migration.outlook import Outlook
from thalweg.migration.time_graph import Path, cheapest_path
from thalweg.model.graph import Floats, Index


@dataclass(frozen=True, eq=False, kw_only=True)
class Choice:
    """The plan of an operator: one sequence of hosts, or several with probabilities."""

    fan: Fan
    """The sequence to begin with comes first."""
    cost: float
    """Expected, of the first sequence."""
    left_out: float = 0.0
    """Probability of the combinations of neighbours' plans that were not looked at."""
    late_s: float = 0.0
    """By how much the latency share is exceeded where it is worst; 0 if it never is."""
    crowded: int = 0
    """For how many steps it has to run where there is no room."""


Policy = Callable[[Outlook], Choice]


def _search(outlook: Outlook, place_cost: Floats) -> Path | None:
    """The cheapest path that keeps every limit; where none does, the one that is least late."""
    path = cheapest_path(outlook.graph(place_cost))
    if path is None:
        path = cheapest_path(outlook.lenient_graph(place_cost))
    return path


def appraise(outlook: Outlook, place: Floats, plan: Choice | Fan) -> Choice:
    """A plan as it looks now: what its first sequence costs, and which limits it does not keep."""
    if isinstance(plan, Choice):
        return _choose(outlook, place, plan.fan, plan.left_out)
    return _choose(outlook, place, plan)


def _choose(outlook: Outlook, place: Floats, fan: Fan, left_out: float = 0.0) -> Choice:
    hosts = fan.hosts[0]
    late = 0.0 if outlook.excess_s is None else outlook.excess_s[np.arange(hosts.size), hosts].max()
    crowded = 0
    if outlook.room is not None:
        crowded = int((~outlook.room[np.arange(hosts.size), hosts]).sum())
    return Choice(
        fan=fan,
        cost=cost_of(outlook, place, hosts),
        left_out=left_out,
        late_s=max(float(late), 0.0),
        crowded=crowded,
    )


def cost_of(outlook: Outlook, place_cost: Floats, hosts: Index) -> float:
    """What a sequence of hosts is taken to cost, its moves included, the first at a discount."""
    row_of, delay = outlook.moves.brokers.rows_from(hosts)
    state = outlook.moves.state_bytes
    cost = price_hosts(place_cost, hosts, outlook.start, 0, state, row_of, delay)
    if outlook.leave_factor < 1.0:
        leaves = np.flatnonzero(hosts != outlook.start)[:1]
        if leaves.size:
            away = float(delay[row_of[hosts[leaves[0]]], outlook.start])
            cost -= (1.0 - outlook.leave_factor) * state * away
    return cost


def _stay(outlook: Outlook) -> Index:
    return np.full(outlook.steps, outlook.start, dtype=np.int32)


def weighted_sum(outlook: Outlook) -> Choice:
    """The path that is cheapest by the expected cost of every step."""
    place = outlook.place_cost()
    path = _search(outlook, place)
    return _choose(outlook, place, Fan.certain(_stay(outlook) if path is None else path.hosts))


@dataclass(frozen=True, slots=True)
class Naive:
    """A time graph for each combination of neighbours' sequences; paths merged by probability.

    At most `most` combinations, the likeliest; `Choice.left_out` says what the cap left out.
    """

    most: int = 16

    def __call__(self, outlook: Outlook) -> Choice:
        """Plan for each combination."""
        fans = [tie.fan for tie in outlook.ties]
        if all(fan.is_certain for fan in fans):
            return weighted_sum(outlook)
        chosen = _likeliest([fan.weight for fan in fans], self.most)
        weights, rows = [], []
        for probability, picks in chosen:
            certain = [Fan.certain(fan.hosts[k]) for fan, k in zip(fans, picks, strict=True)]
            path = _search(outlook, outlook.place_cost(certain))
            weights.append(probability)
            rows.append(_stay(outlook) if path is None else path.hosts)
        looked_at = math.fsum(weights)
        merged = Fan.of(np.array(weights) / looked_at, np.array(rows))
        return _choose(outlook, outlook.place_cost(), merged, left_out=max(1.0 - looked_at, 0.0))


def _likeliest(weights: list[Floats], most: int) -> list[tuple[float, tuple[int, ...]]]:
    """The likeliest combinations of independent choices, best first; ties: the lower positions.

    Weights fall, so from a combination only its successors in one place need to be looked at.
    """
    first = (0,) * len(weights)
    heap = [(-math.prod(float(w[0]) for w in weights), first)]
    seen = {first}
    found: list[tuple[float, tuple[int, ...]]] = []
    while heap and len(found) < most:
        negative, picks = heappop(heap)
        found.append((-negative, picks))
        for place, weight in enumerate(weights):
            if picks[place] + 1 < weight.size:
                after = (*picks[:place], picks[place] + 1, *picks[place + 1 :])
                if after not in seen:
                    seen.add(after)
                    odds = math.prod(float(w[k]) for w, k in zip(weights, after, strict=True))
                    heappush(heap, (-odds, after))
    return found


@dataclass(frozen=True, slots=True)
class Temporal:
    """The path for the likeliest sequences, each of its moves shifted to where it costs least.

    `most_shift` steps earlier or later; expected cost by the weights of all sequences. With
    `skewed`, the path with all its moves earlier or later by as much is kept as well, each with
    the probability that it ends up the cheapest if costs are off by `error`.
    """

    most_shift: int = 5
    skewed: bool = False
    error: float = 0.2

    def __call__(self, outlook: Outlook) -> Choice:
        """Plan for the likeliest sequences, then shift."""
        place = outlook.place_cost()
        likeliest = [Fan.certain(tie.fan.hosts[0]) for tie in outlook.ties]
        path = _search(outlook, outlook.place_cost(likeliest))
        if path is None:
            return _choose(outlook, place, Fan.certain(_stay(outlook)))
        if not path.moves:
            return _choose(outlook, place, Fan.certain(path.hosts))
        order = np.array([outlook.start, *(m.target for m in path.moves)], dtype=np.int32)
        arrive = np.array([m.arrive for m in path.moves], dtype=np.int32)
        least = np.array([m.arrive - m.begin for m in path.moves], dtype=np.int32)
        allowed = outlook.graph(place).place_cost
        shifted = shift_moves(np.ascontiguousarray(allowed), order, arrive, least, self.most_shift)
        best = _at_moments(order, shifted, outlook.steps)
        if not self.skewed:
            return _choose(outlook, place, Fan.certain(best))
        rows = [best]
        for shift in range(-self.most_shift, self.most_shift + 1):
            moments = arrive + shift
            good = moments[0] >= least[0] and moments[-1] < outlook.steps
            row = _at_moments(order, moments, outlook.steps) if good else best
            if np.isfinite(cost_of(outlook, allowed, row)) and not np.array_equal(row, best):
                rows.append(row)
        costs = np.array([cost_of(outlook, place, row) for row in rows])
        odds = probability_of_least(costs, self.error * costs)
        return _choose(outlook, place, Fan(weight=odds, hosts=np.array(rows, dtype=np.int32)))


def _at_moments(order: Index, arrive: Index, steps: int) -> Index:
    """The hosts of an order, each from the moment of its arrival on."""
    bounds = np.concatenate([[0], arrive, [steps]])
    return np.repeat(order, np.diff(bounds))


@dataclass(frozen=True, slots=True)
class KShortest:
    """The k cheapest paths, each with the probability that it ends up the cheapest.

    `error` is how far the cost of a path may be off, as a share of it: how far rates and
    latencies may change before a new plan is made.
    """

    k: int = 4
    error: float = 0.2
    spread: Spread = "uniform"

    def __call__(self, outlook: Outlook) -> Choice:
        """Keep k paths of one time graph."""
        place = outlook.place_cost()
        graph = outlook.graph(place)
        everyone = np.arange(outlook.moves.brokers.count, dtype=np.int32)
        moves = outlook.moves
        move_cost = moves.cost_from(everyone)
        move_cost[outlook.start] *= outlook.leave_factor
        costs, hosts = k_best(
            np.ascontiguousarray(graph.place_cost),
            move_cost,
            moves.steps_from(everyone),
            outlook.start,
            self.k,
        )
        if not costs.size:
            return weighted_sum(outlook)
        odds = probability_of_least(costs, self.error * costs, spread=self.spread)
        # The cheapest by what is known now comes first, though others may be as likely.
        return _choose(outlook, place, Fan(weight=odds, hosts=hosts))


POLICIES: dict[str, Callable[[], Policy]] = {
    "naive": Naive,
    "weighted-sum": lambda: weighted_sum,
    "temporal": Temporal,
    "k-shortest": KShortest,
}


def policy(name: str) -> Policy:
    """The policy of that name, as it is by default."""
    defects = Defects()
    hint = nearest(name, POLICIES)
    defects.require(name in POLICIES, "policy", name, " or ".join(POLICIES), hint)
    defects.raise_if_any()
    return POLICIES[name]()
