"""From a problem to the tables that the search reads, and the first bound."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from thalweg.model.graph import Floats
from thalweg.placement.branch_and_bound.elimination import Term, eliminate, order_levels
from thalweg.placement.branch_and_bound.places import (
    Places,
    allowed_places,
    bound_nodes,
    can_share,
    find_places,
)
from thalweg.placement.branch_and_bound.pruning import Message, least_with_each, spanning_tree
from thalweg.placement.local_search.figures import EDGE_PATHS, Figures, Integers

# Numbers in the tables of all pairs together; beyond, a bound has to do.
_MOST_PAIR_ENTRIES = 20_000_000
_ROUNDING = 1e-12


@dataclass
class Bounds:
    """The places of every copy that may move, what they cost, and what all cost at the least.

    `known_s` is the aggregate latency of a placement that is known, ∞ for none: places that lead
    to no better one are left out.
    """

    figures: Figures
    nodes: Integers
    known_s: float
    copies: list[int] = field(init=False)
    places: Places = field(init=False)
    pairs: list[tuple[int, int]] = field(init=False)
    weights: list[float] = field(init=False)
    values: list[Integers] = field(init=False)
    own: list[Floats] = field(init=False)
    fixed_s: float = field(init=False)
    least_s: float = field(init=False)
    """No placement that violates nothing costs less; ∞ where there is none."""

    def __post_init__(self) -> None:
        from thalweg.placement.branch_and_bound.compiled.tables import own_costs

        f = self.figures
        placed = bound_nodes(f, self.nodes)
        self.copies = np.flatnonzero(placed < 0).tolist()
        self.places = find_places(f, placed)
        self._find_pairs()
        self.values, self.own = [], []
        for copy in self.copies:
            value = np.flatnonzero(allowed_places(f, self.places, copy))
            cost = own_costs(f, copy, self.places.nearest[value], placed)
            self.values.append(value[np.isfinite(cost)])
            self.own.append(cost[np.isfinite(cost)])
        self.fixed_s = self._fixed_cost(placed)
        self.least_s = self.fixed_s
        self.least_s += sum(float(cost.min(initial=np.inf)) for cost in self.own)
        if np.isfinite(self.least_s):
            self._prune(self._message_between_sites)

    def _find_pairs(self) -> None:
        """Neighbours among the copies that may move, by position, and how many paths join them."""
        position = {copy: k for k, copy in enumerate(self.copies)}
        joined: dict[tuple[int, int], float] = {}
        for e, (a, b) in enumerate(self.figures.ends.tolist()):
            if a in position and b in position:
                pair = (min(position[a], position[b]), max(position[a], position[b]))
                joined[pair] = joined.get(pair, 0.0) + float(self.figures.edge[e, EDGE_PATHS])
        self.pairs, self.weights = list(joined), list(joined.values())

    def _fixed_cost(self, placed: Integers) -> float:
        """What the copies that are bound cost among themselves; ∞ where they violate something."""
        from thalweg.placement.local_search.compiled.state import evaluate, make_state

        state = make_state(self.figures)
        state.at[:] = placed
        evaluate(self.figures, state)
        return float(state.total[1]) if state.total[0] == 0 else np.inf

    def _prune(self, message: Message) -> None:
        tree = spanning_tree(len(self.copies), self.pairs, self.weights)
        least, total = least_with_each(self.own, tree, message)
        self.least_s = max(self.least_s, total + self.fixed_s)
        if not np.isfinite(self.known_s):
            return
        most = self.known_s * (1 + _ROUNDING) - self.fixed_s
        for k, costs in enumerate(least):
            keep = costs <= most
            self.values[k], self.own[k] = self.values[k][keep], self.own[k][keep]

    def _message_between_sites(self, start: int, end: int, cost: Floats) -> Floats:
        """Between sites a pair costs at least the fastest way; within one, nothing."""
        spot = self.figures.spot[self.places.nearest]
        here, there = spot[self.values[start]], spot[self.values[end]]
        best = np.full(self.figures.tier.size, np.inf)
        np.minimum.at(best, here, cost)
        paths = self.weights[self.pairs.index((min(start, end), max(start, end)))]
        crossing = paths * self._fastest_s
        least: Floats = np.minimum(best[there], float(cost.min(initial=np.inf)) + crossing)
        return least

    def _second(self, a: int, b: int) -> Integers:
        """For each place of a the node for b if both are there; −2 for the same, −1 for none."""
        shared = can_share(self.figures, self.places, self.copies[a], self.copies[b])
        return np.where(shared, -2, self.places.second)[self.values[a]]

    @cached_property
    def _fastest_s(self) -> float:
        """The least latency between two different sites."""
        f = self.figures
        count = int(f.steps[0])
        if count < 2 or f.latency_s.size < count * count:
            return 0.0
        latency = f.latency_s.reshape(count, count)
        least = np.inf
        for row in range(count):
            least = min(
                least,
                float(latency[row, :row].min(initial=np.inf)),
                float(latency[row, row + 1 :].min(initial=np.inf)),
            )
        return least

    @property
    def is_small(self) -> bool:
        """Whether the tables of all pairs can be held."""
        entries = sum(self.values[a].size * self.values[b].size for a, b in self.pairs)
        return entries <= _MOST_PAIR_ENTRIES

    def tabulate(self) -> tuple[list[int], list[Term]]:
        """(order of the copies, tables that taking them out makes); sharpens `least_s`.

        The last copy of the order is taken out first. Places are pruned once more on the way.
        """
        table = {pair: self._pair_costs(*pair) for pair in self.pairs}
        before = [value.copy() for value in self.values]

        def message(start: int, end: int, cost: Floats) -> Floats:
            pair = (min(start, end), max(start, end))
            costs = table[pair] if pair[0] == start else table[pair].T
            return np.asarray((cost[:, None] + costs).min(axis=0, initial=np.inf))

        self._prune(message)
        keep = [np.isin(old, new) for old, new in zip(before, self.values, strict=True)]
        order = order_levels([value.size for value in self.values], self.pairs)
        level = {k: t for t, k in enumerate(order)}
        terms = [Term((level[k],), self.own[k]) for k in range(len(self.copies))]
        for (a, b), costs in table.items():
            costs = costs[keep[a]][:, keep[b]]
            if level[a] > level[b]:
                a, b, costs = b, a, costs.T
            terms.append(Term((level[a], level[b]), np.ascontiguousarray(costs)))
        if min((self.values[k].size for k in order), default=1) == 0:
            self.least_s = max(self.least_s, self.known_s)
            return order, []
        made = eliminate([self.values[k].size for k in order], terms)
        constant = sum(float(term.table) for term in made if not term.scope)
        self.least_s = max(self.least_s, constant + self.fixed_s)
        return order, made

    def _pair_costs(self, a: int, b: int) -> Floats:
        from thalweg.placement.branch_and_bound.compiled.tables import pair_costs

        nearest = self.places.nearest
        costs: Floats = pair_costs(
            self.figures,
            self.copies[a],
            self.copies[b],
            nearest[self.values[a]],
            nearest[self.values[b]],
            self._second(a, b),
        )
        return costs
