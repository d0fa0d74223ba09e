"""One run from its first second to its last, with all that changes on the way."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from thalweg.estimate.rates import estimate_rates
from thalweg.model.changes import Change, PlanChange, RateChange, SpeedChange
from thalweg.model.graph import Floats
from thalweg.model.operator import TimeWindow
from thalweg.model.placement import Placement
from thalweg.model.plan import Plan
from thalweg.simulate.building import build_layout
from thalweg.simulate.engine import Engine
from thalweg.simulate.paths import PathBook, list_paths
from thalweg.simulate.program import Condition, Program
from thalweg.simulate.seeds import Seeds
from thalweg.simulate.server import Record, Span
from thalweg.simulate.shipping import Move, Shipper
from thalweg.simulate.transition import Transition

# Arrays of this many events stay in the cache; larger ones do not, smaller ones cost more calls.
_EVENTS_PER_PIECE = 256_000
# With many stations calls cost more than the cache saves.
_EVENTS_PER_STATION = 100
_MOST_EVENTS_PER_PIECE = 1_000_000
_FEWEST_EVENTS_PER_PIECE = 16
_MOST_SLIDES_PER_PIECE = 100_000
# What is on all edges together may be this many times as much.
_SHARE_OF_ALL = 64


@dataclass(frozen=True, eq=False, kw_only=True)
class Segment:
    """A stretch of time in which nothing changed, and what happened in it."""

    begin_s: float
    end_s: float
    programs: Sequence[Program]
    cause: str
    edge_events: Floats
    edge_bytes: Floats
    path_sums: Floats
    """The sums of all paths as the segment ended."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Setting:
    """All that is given for a run."""

    programs: Sequence[Program]
    seconds: float
    warm_s: float
    changes: Sequence[Change] = ()
    most_events: int = 20_000_000
    """A run ends early when more events than this wait or are under way."""
    bins: int = 60
    brief: bool = False
    """Whether only latencies at sinks are asked for."""


Watcher = Callable[["Session"], "Change | None"]


@dataclass(eq=False)
class Session:
    """A run that is on."""

    setting: Setting
    seeds: Seeds
    programs: list[Program] = field(init=False)
    condition: Condition = field(init=False, default_factory=Condition)
    segments: list[Segment] = field(init=False, default_factory=list)
    decisions: list[dict[str, Any]] = field(init=False, default_factory=list)
    """What a strategy in the loop saw and said."""
    stopped_s: float | None = field(init=False, default=None)
    """When the run ended, if that was early."""

    def __post_init__(self) -> None:
        setting = self.setting
        self.programs = list(setting.programs)
        self.book: PathBook = list_paths(self.programs)
        self.record = Record(len(self.book.rows), self.book.row_of)
        self.span = Span(
            end_s=setting.seconds, warm_s=setting.warm_s, bins=setting.bins, brief=setting.brief
        )
        layout = build_layout(self.programs, self.condition)
        self.engine = Engine(layout, self.seeds, self.span, self.record)
        self.shipper = Shipper(self.programs[0].problem.network)
        self._begin_s, self._cause = 0.0, "start"
        self._piece_s = self._find_piece_s()

    @property
    def moves(self) -> list[Move]:
        """What has moved so far."""
        return self.shipper.moves

    def run(
        self,
        *,
        on_progress: Callable[[float], None] | None = None,
        watch: Watcher | None = None,
        watch_every_s: float = np.inf,
    ) -> None:
        """Let all the time pass; `watch` is asked every so often, and may change something."""
        end_s = self.setting.seconds
        waiting = sorted(
            (change for change in self.setting.changes if change.at_s < end_s),
            key=lambda change: change.at_s,
        )
        watched = 0
        while self.engine.now_s < end_s:
            look_s = (watched + 1) * watch_every_s if watch is not None else np.inf
            next_s = float(min(end_s, waiting[0].at_s if waiting else end_s, look_s))
            if next_s > self.engine.now_s and not self._pass(next_s, on_progress):
                break
            due = [change for change in waiting if change.at_s <= self.engine.now_s]
            waiting = waiting[len(due) :]
            if due:
                self.apply(due)
            if watch is not None and self.engine.now_s >= look_s and self.engine.now_s < end_s:
                watched += 1
                wanted = watch(self)
                if wanted is not None:
                    self.apply([wanted])
        self._close()
        self.engine.finish()

    def _pass(self, until_s: float, on_progress: Callable[[float], None] | None) -> bool:
        """Let time pass; False where too much waits to go on."""
        engine = self.engine
        while engine.now_s < until_s:
            step_s = self._piece_s
            left_s = until_s - engine.now_s
            engine.run(until_s if step_s >= left_s else engine.now_s + step_s, until_s)
            if on_progress is not None:
                on_progress(engine.now_s)
            if engine.held + engine.under_way > self.setting.most_events:
                self.stopped_s = engine.now_s
                return False
        return True

    def _find_piece_s(self) -> float:
        """How much time to let pass at once."""
        busiest, finest_s = 1e-9, np.inf
        for program in self.programs:
            rates = estimate_rates(program.deployment)
            busiest = max(busiest, float(rates.events_in.max(initial=0.0)))
            busiest = max(busiest, float(rates.flow.sum()) / _SHARE_OF_ALL)
            for operator in program.problem.application.operators:
                if isinstance(operator.window, TimeWindow):
                    finest_s = min(finest_s, operator.window.slide)
        events = max(_EVENTS_PER_PIECE, _EVENTS_PER_STATION * len(self.engine.layout.stations))
        seen_in_time = max(self.setting.most_events // 8, _FEWEST_EVENTS_PER_PIECE)
        events = min(events, _MOST_EVENTS_PER_PIECE, seen_in_time)
        return min(events / busiest, _MOST_SLIDES_PER_PIECE * finest_s)

    def apply(self, changes: Sequence[Change]) -> None:
        """Change what is to change at this moment."""
        self._close()
        causes = [_tell(change) for change in changes]
        if self._begin_s == self.engine.now_s and self.segments:
            causes = [self._cause, *causes]
        self._cause = "; ".join(causes)
        self.engine.flows.reset()
        # What fails at a moment has failed before anybody acts on it.
        for sort in (RateChange, SpeedChange, PlanChange):
            found = [change for change in changes if isinstance(change, sort)]
            for change in found:
                self._make(change)
            if found and sort is not RateChange:
                self._rebuild()
        self._begin_s = self.engine.now_s
        self._piece_s = self._find_piece_s()

    def _make(self, change: Change) -> None:
        if isinstance(change, PlanChange):
            self._place(change)
        elif isinstance(change, RateChange):
            self._rate(change)
        else:
            self._speed(change)

    def _rebuild(self) -> None:
        layout = build_layout(self.programs, self.condition)
        Transition(self.engine, layout, self.programs, self.condition, self.shipper).run()
        for server in self.engine.servers:
            if server.station.loses:
                server.lose(self.engine.now_s)

    def _close(self) -> None:
        """Keep what was counted since the last change."""
        engine = self.engine
        if engine.now_s > self._begin_s:
            self.segments.append(
                Segment(
                    begin_s=self._begin_s,
                    end_s=engine.now_s,
                    programs=list(self.programs),
                    cause=self._cause,
                    edge_events=engine.flows.events.copy(),
                    edge_bytes=engine.flows.carried_bytes.copy(),
                    path_sums=self.record.sums.copy(),
                )
            )

    def _whose(self, name: str | None) -> int:
        names = [program.problem.application.name for program in self.programs]
        return 0 if name is None else names.index(name)

    def _place(self, change: PlanChange) -> None:
        number = self._whose(change.application)
        plan = change.plan
        placement: Placement = plan.placement if isinstance(plan, Plan) else plan
        self.programs[number] = self.programs[number].placed(placement)

    def _rate(self, change: RateChange) -> None:
        number = self._whose(change.application)
        self.programs[number] = with_rates(self.programs[number], change.rates)
        rates = {
            f"{number}:{source}@{site}": rate
            for (source, site), rate in self.programs[number].problem.birth_rates.items()
        }
        for spring in self.engine.springs:
            spring.rate = rates.get(spring.source.key, spring.rate)

    def _speed(self, change: SpeedChange) -> None:
        from thalweg.errors import Defects

        net = self.programs[0].problem.network
        nodes, links = change.find(Defects(), "", net)
        now = self.condition
        losing_nodes, losing_links = now.losing_nodes - {*nodes}, now.losing_links - {*links}
        if change.loses:
            losing_nodes, losing_links = losing_nodes | {*nodes}, losing_links | {*links}
        self.condition = Condition(
            node=now.node | dict.fromkeys(nodes, change.speed),
            link=now.link | dict.fromkeys(links, change.speed),
            losing_nodes=losing_nodes,
            losing_links=losing_links,
        )


def with_rates(program: Program, rates: Mapping[tuple[str, str], float]) -> Program:
    """The program at other rates; those not named stay as they are."""
    problem = program.problem
    return replace(program, problem=replace(problem, rates={**problem.birth_rates, **rates}))


def _tell(change: Change) -> str:
    if isinstance(change, PlanChange):
        return "plan"
    if isinstance(change, RateChange):
        return "rates"
    what = change.node if change.node is not None else " – ".join(change.link or ())
    return f"{what} down" if change.speed == 0 else f"{what} at {change.speed:g} of its speed"
