"""`tsoo-optimal`: the cheapest cuts of all that keep the limits, with proof.

Usage and uplink are sums over streams; with a cut table that is a multiple-choice knapsack. The
response time is a maximum over streams, and only the load of the cloud ties them together. So:
relax that tie to the load that is certain, solve the knapsack, and where its answer breaks the tie
split the cuts of one stream in two by whether they have some operator on the fog.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from heapq import heappop, heappush
from itertools import count
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from thalweg.errors import Defects
from thalweg.model.graph import Floats
from thalweg.model.placement import Placement
from thalweg.model.plan import Plan
from thalweg.model.problem import Problem
from thalweg.scheduling.atsoo import adapt
from thalweg.scheduling.fc_interplay import interplay
from thalweg.scheduling.knapsack import pack
from thalweg.scheduling.min_cut import cheapest
from thalweg.scheduling.schedule import Choice, Table, plan_cuts
from thalweg.scheduling.search import Search
from thalweg.scheduling.shared_changes import count_shared_changes, least_shared_changes
from thalweg.scheduling.terms import cost_cuts_with
from thalweg.scheduling.trcs import keep_within_bounds
from thalweg.scheduling.tsoo import schedule_afresh
from thalweg.scheduling.usage_bound import usage_bound
from thalweg.strategy import strategy

if TYPE_CHECKING:
    from thalweg.scheduling.compiled.latency import Figures

Flags = npt.NDArray[np.bool_]

MOST_BOXES = 400
# Boxes × cuts × streams; beyond, a box takes so long that few must do.
_MOST_ENTRIES = 1_000_000
# With more cuts × streams what a stream itself adds to the cloud is left out of its bound.
_MOST_OWN_LOADS = 20_000
# Numbers of all cuts × streams × operators that are kept at most.
_MOST_ARRIVALS = 4_000_000
_MOST_TIGHTENINGS = 4
_MOST_ROUNDS = 4
# Cuts that are paired with the largest one, the smallest ones.
_MOST_PAIRS = 24
_MOST_PRICES = 10
# Two costs closer than this, relatively, are one.
_ROUNDING = 1e-12
# On tables so large that a stream's own load is left out, an answer so close ends the search.
_LARGE_GAP = 1e-4
# The same for a bound by maximum flows.
_FLOW_ROUNDING = 1e-9


@strategy("tsoo-optimal", "the least usage that keeps the limits, with a proven gap")
def tsoo_optimal(
    problem: Problem,
    current: Placement | None = None,
    *,
    reschedule_weight: float = 0.0,
    energy_weight: float = 0.0,
    state_weight: float = 0.0,
    most_boxes: int = MOST_BOXES,
) -> Plan:
    """The optimum over all combinations of cuts, or the best found with what it can miss at most.

    Of an application with more than 20,000 cuts the promising ones are combined; the gap is proven
    against all.

    With `reschedule_weight` the cost is RU + weight × (operators started + stopped) against
    `current`; the plan's gap is about that cost. Where no combination keeps the limits, of the
    choices that other strategies make the one that breaks the least, and no gap. A link that
    several fogs share on their way to the cloud is not weighed; the plan tells if it is too small.
    """
    started = perf_counter()
    defects = Defects()
    whole = isinstance(most_boxes, int) and not isinstance(most_boxes, bool)
    defects.require(whole and most_boxes >= 1, "most_boxes", most_boxes, "a whole number >= 1")
    defects.raise_if_any()
    table = Table.of(problem)
    running = None if current is None else table.choice_of(current)
    cost = cost_cuts_with(
        table,
        running,
        energy_weight=energy_weight,
        state_weight=state_weight,
        reschedule_weight=reschedule_weight,
    )
    tree = _Tree(table, cost, running, reschedule_weight)
    answer = tree.solve(most_boxes)
    if answer is None:
        proven = tree.open_boxes == 0
        found = "none keeps every limit" if proven else "none was found to keep every limit"
        choice, why, gap = tree.least_bad(), f"{found}; these break least", None
    else:
        choice, gap = answer.choice, answer.gap
        why = "none is cheaper" if gap == 0 else "the cheapest found"
    plan = plan_cuts(table, choice, strategy="tsoo-optimal", why=why, started=started, gap=gap)
    if gap is None or plan.feasible:
        return plan
    # A link that several fogs share on their way up is no part of the search.
    why = "the cheapest, but together too much for a link that they share"
    return plan_cuts(table, choice, strategy="tsoo-optimal", why=why, started=started)


def least_usage(problem: Problem, *, most_boxes: int = MOST_BOXES) -> float | None:
    """The usage of the best cuts that keep every limit; None where none were found.

    What `tsoo-optimal` finds, without the plan around it.
    """
    table = Table.of(problem)
    answer = _Tree(table, table.usage, None, 0.0).solve(most_boxes)
    if answer is None:
        return None
    return float(table.usage[answer.choice, np.arange(answer.choice.size)].sum())


@dataclass(frozen=True, slots=True)
class _Answer:
    choice: Choice
    gap: float | None


class _Tree:
    """Boxes of cuts that are still open, cheapest bound first, and the best choice so far."""

    def __init__(
        self, table: Table, cost: Floats, running: Choice | None, shared_weight: float
    ) -> None:
        self.table, self.cost = table, cost
        self.running, self.shared_weight = running, shared_weight if running is not None else 0.0
        self.search = Search(table, cheapest(table, cost))
        self.best: Choice | None = None
        self.best_cost = np.inf
        self.open_boxes = 0
        self._lightest = _with_least_work(self.search)
        self._enough = _ROUNDING if cost.size <= _MOST_OWN_LOADS else _LARGE_GAP

    def solve(self, most_boxes: int) -> _Answer | None:
        """The best choice within so many boxes; None where there is none, or none was found."""
        if self.search.feasible and not self.shared_weight:
            return _Answer(self.search.choice.copy(), self._gap(self.search.cost_of(self.cost)))
        boxes: list[tuple[float, int, Flags]] = [(-np.inf, 0, np.array(self.table.costs.fits))]
        made, number = 0, count(1)
        most = max(min(most_boxes, _MOST_ENTRIES // max(self.cost.size, 1)), 1)
        while boxes and made < most:
            bound, _, allowed = boxes[0]
            if not self._worthwhile(bound):
                break
            heappop(boxes)
            made += 1
            for low, part in self._open(allowed, root=made == 1):
                heappush(boxes, (low, next(number), part))
        self.open_boxes = len(boxes)
        self._polish()
        if self.best is None:
            return None
        bound = min((low for low, *_ in boxes), default=self.best_cost)
        return _Answer(self.best, self._gap(min(bound, self.best_cost)))

    @cached_property
    def _arrivals(self) -> Floats:
        """When events come up to the cloud at every cut; empty where that is too much to keep."""
        from thalweg.scheduling.compiled.bounds import all_arrivals

        figures = self.search.figures
        if self.cost.size * figures.order.size > _MOST_ARRIVALS:
            return np.empty((0, 0, 0))
        return all_arrivals(figures)

    def _worthwhile(self, bound: float) -> bool:
        """Whether a box with this bound can still hold something better."""
        return self.best is None or bound < self.best_cost - self._enough * abs(self.best_cost)

    def _gap(self, bound: float) -> float | None:
        """(Best − bound) / bound; None where nothing is known about the bound."""
        best = self.best_cost if self.best is not None else bound
        if not self.table.cuts.complete:
            # Cuts that are not listed have no part in the tree; this bound is about all of them.
            bound = usage_bound(
                self.table.traffic,
                self.table.cuts,
                uplink_limit_bps=self.search.most_bps,
                must_fit=np.ones(self.search.choice.size, dtype=bool),
            ).value
        if best - bound <= (_ROUNDING if self.table.cuts.complete else _FLOW_ROUNDING) * abs(best):
            return 0.0
        return (best - bound) / bound if bound > 0 else None

    def _open(self, allowed: Flags, *, root: bool) -> list[tuple[float, Flags]]:
        """Bound one box; offer what it finds; give the boxes that it falls into."""
        tight = self._tighten(allowed)
        if tight is None:
            return []
        packing = pack(self.cost, self.table.costs.uplink_bps, tight, self.search.most_bps)
        if packing is None:
            return []
        bound = packing.bound + self._shared_bound(tight)
        if not self._worthwhile(bound):
            return [(bound, tight)]
        exact = self._offer(packing.choice) and packing.proven
        if exact and self._shared_cost(packing.choice) <= self._shared_bound(tight):
            return []
        if root:
            self._find_good(tight, packing.choice)
        split = self._split(tight, packing.choice)
        # Where nothing can be split every stream has one cut left, and that was offered.
        return [] if split is None else [(bound, part) for part in split]

    def _tighten(self, allowed: Flags) -> Flags | None:
        """Drop cuts that are too slow under the least load of the cloud; None if none is left."""
        from thalweg.scheduling.compiled.bounds import find_certain, least_latencies

        search = self.search
        own = allowed.size <= _MOST_OWN_LOADS
        for _ in range(_MOST_TIGHTENINGS):
            if not allowed.any(axis=0).all():
                return None
            certain = find_certain(search.figures, allowed)
            latency = least_latencies(
                search.figures,
                self._lightest,
                self._arrivals,
                allowed,
                certain,
                search.load,
                search.most_s,
                own,
            )
            within = allowed & (latency <= search.most_s)
            if np.array_equal(within, allowed):
                break
            allowed = within
        return allowed if allowed.any(axis=0).all() else None

    def _offer(self, choice: Choice) -> bool:
        """Whether the choice keeps every limit; if it is the best so far it is remembered."""
        self.search.choose(choice)
        if not self.search.feasible:
            return False
        cost = self.search.cost_of(self.cost) + self._shared_cost(choice)
        if cost < self.best_cost:
            self.best, self.best_cost = self.search.choice.copy(), cost
        return True

    def _shared_cost(self, choice: Choice) -> float:
        if self.running is None or not self.shared_weight:
            return 0.0
        return self.shared_weight * count_shared_changes(self.table, self.running, choice)

    def _shared_bound(self, allowed: Flags) -> float:
        if self.running is None or not self.shared_weight:
            return 0.0
        return self.shared_weight * least_shared_changes(self.table, self.running, allowed)

    def _find_good(self, allowed: Flags, choice: Choice) -> None:
        """Good choices to begin with.

        The knapsack again under the load that its answer makes; then with a price on work in the
        cloud, for all cuts and for pairs of a cut and the largest one (streams that leave nothing
        to a slow cloud make room in it for the others); and what other strategies come to.
        """
        self._settle(self.cost, allowed, choice)
        if self.cost.size <= _MOST_OWN_LOADS:
            self._trade_load(allowed)
            for low in range(min(_MOST_PAIRS, len(allowed) - 1)):
                pair = np.zeros_like(allowed)
                pair[[low, -1]] = allowed[[low, -1]]
                lacking = ~pair.any(axis=0)
                pair[:, lacking] = allowed[:, lacking]
                self._trade_load(pair)
        for known in self._rivals():
            if not self._offer(known):
                self._offer(adapt(self.table, known, self.cost)[0].choice)
        self._polish()

    def _trade_load(self, allowed: Flags) -> None:
        """The least price on work in the cloud that makes the streams fast enough, by bisection."""
        cpu = self.search.figures.cpu
        work = cpu.sum(axis=1) - self.table.cuts.members.astype(float) @ cpu.T
        finite = np.isfinite(self.cost)
        total = float(work.sum())
        if not total > 0:
            return
        price, low, high = float(self.cost[finite].sum()) / total, 0.0, np.inf
        for _ in range(_MOST_PRICES):
            priced = self.cost + price * work
            packing = pack(priced, self.table.costs.uplink_bps, allowed, self.search.most_bps)
            if packing is None:
                return
            if self._offer(packing.choice):
                high = price
            else:
                low = price
            price = 4.0 * price if high == np.inf else 0.5 * (low + high)

    def _settle(self, cost: Floats, allowed: Flags, choice: Choice) -> bool:
        """The knapsack again and again, each time under the load that its last answer makes."""
        from thalweg.scheduling.compiled.latency import OVERLOAD_S, all_latencies

        search, uplink = self.search, self.table.costs.uplink_bps
        onward, latency = np.zeros_like(search.onward_s), np.empty(allowed.shape)
        for _ in range(_MOST_ROUNDS):
            if self._offer(choice):
                return True
            if search.onward_s.max() >= OVERLOAD_S:
                # No stream is fast enough whose cut leaves anything to an overloaded cloud.
                return False
            onward = np.maximum(onward, search.onward_s)
            all_latencies(search.figures, onward, allowed, latency)
            packing = pack(cost, uplink, allowed & (latency <= search.most_s), search.most_bps)
            if packing is None or np.array_equal(packing.choice, choice):
                return False
            choice = packing.choice
        return False

    def _polish(self) -> None:
        """Make the best choice cheaper, one stream at a time, until no single move does."""
        while self.best is not None:
            before = self.best_cost
            self.search.choose(self.best)
            self.search.improve(self.cost)
            if not self._offer(self.search.choice) or not self.best_cost < before:
                return

    def _split(self, allowed: Flags, choice: Choice) -> tuple[Flags, Flags] | None:
        """Two boxes, by whether one stream has one operator on the fog; None if all is settled.

        The operator is the one with most work among those that the choice leaves to the cloud,
        else among all that can be in both places. Ties: the lower stream, the lower operator.
        """
        members = self.table.cuts.members
        on_fog = allowed.T.astype(np.int64) @ members.astype(np.int64)
        open_ended = (on_fog > 0) & (on_fog < allowed.sum(axis=0)[:, None])
        if not open_ended.any():
            return None
        in_cloud = open_ended & ~members[choice]
        work = np.where(in_cloud if in_cloud.any() else open_ended, self.search.figures.cpu, -1.0)
        stream, operator = np.unravel_index(int(work.argmax()), work.shape)
        with_it, without = allowed.copy(), allowed.copy()
        with_it[~members[:, operator], stream] = False
        without[members[:, operator], stream] = False
        return with_it, without

    def least_bad(self) -> Choice:
        """Of what other strategies choose, what breaks least; ties: the cheaper, the first."""
        ranked = []
        for position, choice in enumerate(self._rivals()):
            self.search.choose(choice)
            key = (self.search.violations.count, self.search.cost_of(self.cost), position)
            ranked.append((key, choice))
        return min(ranked, key=lambda entry: entry[0])[1]

    def _rivals(self) -> list[Choice]:
        """What other strategies choose."""
        table = self.table
        in_cloud = np.zeros(self.search.choice.size, dtype=np.int64)
        return [
            schedule_afresh(table, self.cost)[0].choice,
            cheapest(table, table.costs.network_usage),
            cheapest(table, self.cost),
            np.where(table.costs.usable, table.cuts.sizes[:, None], -1).argmax(axis=0),
            in_cloud,
            interplay(table),
            keep_within_bounds(table, in_cloud),
            *(
                (self.running, adapt(table, self.running, self.cost)[0].choice)
                if self.running is not None
                else ()
            ),
        ]


def _with_least_work(search: Search) -> Figures:
    """The figures with the least work per event of any stream where windows count events.

    There the mean over streams can fall when a stream joins; the least cannot be undercut.
    """
    figures = search.figures
    counts = figures.slide_s <= 0
    least = np.where(counts, figures.work_per_event.min(axis=0), figures.work_per_event)
    return figures._replace(work_per_event=np.ascontiguousarray(least))
