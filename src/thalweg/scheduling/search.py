"""A working deployment that strategies change step by step, and what it amounts to at each step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from thalweg.estimate.constraints import ROUNDING
from thalweg.model.graph import Floats, Graph
from thalweg.scheduling.cuts import Cuts
from thalweg.scheduling.schedule import Choice, Table

if TYPE_CHECKING:
    from thalweg.scheduling.compiled.latency import Load

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Violated:
    """What is too much for each fog, and whether the uplink, the time and the cloud are."""

    fogs: npt.NDArray[np.int64]
    whole: tuple[bool, bool, bool]

    def within(self, other: Violated) -> bool:
        """Whether all of it is broken in the other, too."""
        return not (self.fogs & ~other.fogs).any() and all(
            there or not here for here, there in zip(self.whole, other.whole, strict=True)
        )

    @property
    def count(self) -> int:
        """How many fogs and limits are affected."""
        return int(np.count_nonzero(self.fogs)) + sum(self.whole)


class Search:
    """A cut for every stream, with the load of the cloud and the latencies that follow from it."""

    def __init__(self, table: Table, choice: Choice) -> None:
        from thalweg.scheduling.compiled.latency import Load

        operators, limits = (
            len(table.problem.application.operators),
            table.problem.application.limits,
        )
        self.table = table
        self.figures = table.figures
        self.most_s = limits.response_time_s * (1.0 + ROUNDING)
        # What reaches the cloud comes in through its own link, too.
        cloud_bps = table.problem.network.node_lan_available_bps[table.traffic.cloud]
        self.most_bps = min(limits.uplink_bps, float(cloud_bps)) * (1.0 + ROUNDING)
        self._streams = np.arange(choice.size)
        self.load: Load = Load(
            events=np.zeros(operators),
            work=np.zeros(operators),
            streams=np.zeros(operators, dtype=np.int64),
            plain=np.zeros(operators),
            memory=np.zeros(operators),
            cpu=np.zeros(operators),
        )
        self.onward_s = np.zeros(operators)
        self.arrival_s = np.zeros((choice.size, operators))
        self.choose(choice)

    def choose(self, choice: Choice) -> None:
        """Go over to these cuts."""
        from thalweg.scheduling.compiled.moves import settle

        self.choice: Choice = np.array(choice, dtype=np.int64)
        settle(self.figures, self.choice, self.load, self.onward_s, self.arrival_s)
        self.uplink_bps = float(self.table.costs.uplink_bps[self.choice, self._streams].sum())

    @property
    def latency_s(self) -> Floats:
        """L of every stream; a queue that is not stable counts 10¹² s and more."""
        from thalweg.scheduling.compiled.moves import stream_latencies

        return stream_latencies(self.arrival_s, self.onward_s)

    @property
    def in_time(self) -> bool:
        """T ≤ Tmax."""
        return bool(self.latency_s.max(initial=0.0) <= self.most_s)

    @property
    def uplink_fits(self) -> bool:
        """B ≤ Bmax."""
        return self.uplink_bps <= self.most_bps

    @property
    def overfull(self) -> Flags:
        """The streams whose cut does not fit their fog."""
        return ~self.table.costs.fits[self.choice, self._streams]

    @property
    def cloud_excess(self) -> float:
        """By how much memory or CPU of the cloud are overdrawn, relative."""
        from thalweg.scheduling.compiled.moves import cloud_excess

        return cloud_excess(self.figures, self.load)

    @property
    def feasible(self) -> bool:
        """Whether every constraint is kept."""
        return (
            self.uplink_fits
            and not self.overfull.any()
            and self.cloud_excess <= ROUNDING
            and self.in_time
        )

    @property
    def violations(self) -> Violated:
        """What the deployment breaks."""
        return Violated(
            fogs=self.table.costs.broken[self.choice, self._streams],
            whole=(not self.uplink_fits, not self.in_time, self.cloud_excess > ROUNDING),
        )

    def cost_of(self, cost: Floats) -> float:
        """The sum of a cost of cuts × streams."""
        return float(cost[self.choice, self._streams].sum())

    def shorten(self) -> None:
        """Move operators at the cuts of too slow streams: back to the cloud, then down to the fog.

        Once over the streams each way; a stream is left as soon as it is fast enough or a further
        move would not make it faster.
        """
        for down in (False, True):
            if not self.in_time:
                self._shorten(down=down)

    def _shorten(self, *, down: bool) -> None:
        from thalweg.scheduling.compiled.moves import shorten

        before = self.choice.copy()
        self.uplink_bps = shorten(
            self.figures,
            self.choice,
            self.load,
            self.onward_s,
            self.arrival_s,
            self.table.costs.uplink_bps,
            self.table.costs.usable,
            steps_of(self.table.cuts, self.table.problem.application.graph, down=down),
            down,
            self.most_s,
            self.most_bps,
            self.uplink_bps,
        )
        self._refresh(before)

    def improve(self, cost: Floats) -> None:
        """Take the moves that save most first, each stream at most once, while all limits hold.

        Ties: the lower stream, then the lower cut.
        """
        now = cost[self.choice, self._streams]
        saved = now - cost
        # Less than this is rounding.
        worth = np.flatnonzero(self.table.costs.fits & (saved > 1e-12 * np.abs(now)))
        if not worth.size:
            return
        cut, stream = np.divmod(worth, saved.shape[1])
        order = np.lexsort((cut, stream, -saved.ravel()[worth]))
        self.take(cut[order], stream[order])

    def take(self, cut: Choice, stream: Choice) -> None:
        """Move streams to cuts in this order, each stream at most once, while all limits hold."""
        from thalweg.scheduling.compiled.moves import improve

        before = self.choice.copy()
        self.uplink_bps = improve(
            self.figures,
            self.choice,
            self.load,
            self.onward_s,
            self.arrival_s,
            self.table.costs.uplink_bps,
            cut,
            stream,
            self.most_s,
            self.most_bps,
            self.uplink_bps,
        )
        self._refresh(before)

    def _refresh(self, before: Choice) -> None:
        """Sums anew after moves: adding and taking away leaves rounding behind."""
        if not np.array_equal(before, self.choice):
            self.choose(self.choice)


def steps_of(cuts: Cuts, graph: Graph, *, down: bool) -> npt.NDArray[np.int64]:
    """The cut after moving each operator, (cuts, operators); −1 where there is none.

    Down to the fog an operator takes all that sends to it, back to the cloud all that it sends to.
    """
    if down in cuts.steps:
        return cuts.steps[down]
    operators = cuts.members.shape[1]
    step = np.full(cuts.members.shape, -1, dtype=np.int64)
    order = graph.order.tolist() if down else graph.order.tolist()[::-1]
    related = np.eye(operators, dtype=bool)
    for x in order:
        near = graph.source[graph.target == x] if down else graph.target[graph.source == x]
        related[x] |= related[near].any(axis=0)
    # Sources are on the fog and sinks in the cloud whatever the cut.
    may_move = cuts.members.any(axis=0)
    fixed = np.zeros(operators, dtype=bool)
    fixed[graph.source[~np.isin(graph.source, graph.target)]] = True
    for x in np.flatnonzero(may_move).tolist():
        if down:
            step[:, x] = cuts.find(cuts.members | (related[x] & ~fixed))
        else:
            step[:, x] = cuts.find(cuts.members & ~related[x])
    cuts.steps[down] = step
    return step
