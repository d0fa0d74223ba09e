"""A run's side of the adaptation controller: cuts in and out, placements in between."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

from thalweg.adapt.controller import Controller
from thalweg.adapt.events import (
    Adapt,
    ChangeBegan,
    ChangeEnded,
    Cycle,
    Event,
    Held,
    RatesKnown,
    Situation,
)
from thalweg.adapt.forecast import Forecaster
from thalweg.adapt.observation import Observation
from thalweg.adapt.smoothing import ExponentialSmoothing
from thalweg.adapt.state import ControllerState
from thalweg.adapt.trigger import LIVE_TRIGGER, Trigger
from thalweg.errors import ThalwegError
from thalweg.model import Application, Network, Placement, Plan, Problem
from thalweg.planning import SCHEDULING_STRATEGY
from thalweg.spark.deployment.plan import Cuts, RunSites, cuts_of, placement_of
from thalweg.units import BANDWIDTH, DURATION, show_quantity, show_share

Rates = Mapping[tuple[str, str], float]

LIVE_FORECASTER = ExponentialSmoothing(has_trend=True, damping=0.7)
LIVE_AHEAD_STEPS = 3
"""In cycles: about as long as a change takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What to do, why, and what was seen; with a plan and its cuts where they are to change."""

    reason: str
    situation: Situation | None = None
    plan: Plan | None = None
    cuts: Cuts | None = None
    again_s: float | None = None
    """In how many seconds to look again, where that is sooner than the next cycle."""

    @property
    def adapt(self) -> bool:
        """Whether the cuts are to change."""
        return self.cuts is not None

    @property
    def seen(self) -> Observation | None:
        """The figures that count."""
        return None if self.situation is None else self.situation.observation


@dataclass(frozen=True, eq=False, kw_only=True)
class Adapter:
    """Decides for one application on one network, by a trigger and a strategy.

    What it remembers is the controller's state, which whoever asks keeps.
    """

    application: Application
    network: Network
    sites: RunSites
    strategy: str = SCHEDULING_STRATEGY
    options: Mapping[str, Any] = field(default_factory=dict)
    trigger: Trigger = LIVE_TRIGGER
    forecaster: Forecaster | None = None
    ahead_steps: int = LIVE_AHEAD_STEPS
    interval_s: float = 2.0

    @cached_property
    def controller(self) -> Controller:
        """What decides."""
        return Controller(
            application=self.application,
            network=self.network,
            strategy=self.strategy,
            options=self.options,
            trigger=self.trigger,
            forecaster=self.forecaster,
            ahead_steps=self.ahead_steps,
            interval_s=self.interval_s,
        )

    def plan(self, rates: Rates | None, current: Cuts | None = None) -> tuple[Plan, Cuts]:
        """What the strategy says at these rates, by declared figures, as a plan and as cuts.

        Raises:
            InvalidInput: where its plan cannot be run as cuts between fogs and the cloud.
        """
        problem = self.problem(rates)
        running = None if current is None else placement_of(current, problem, self.sites)
        found = self.controller.find(problem, running)
        return found, cuts_of(found.placement, problem, self.sites)

    def warm_up(self, rates: Rates | None, cuts: Cuts) -> None:
        """Have the strategy do once what it has to do only once: it may compile what it runs."""
        with suppress(ThalwegError):
            self.plan(rates, cuts)

    def learn(self, state: ControllerState, events: Iterable[Event]) -> ControllerState:
        """What is known after these events."""
        for event in events:
            state, _ = self.controller.handle(state, event)
        return state

    def look(
        self, state: ControllerState, now_s: float, cuts: Cuts, rates: Rates | None = None
    ) -> tuple[Verdict, ControllerState]:
        """What to do about the cuts that run, and what to remember.

        The same for the same arguments. Rates that are given stand for those of the arrivals that
        were learnt. As long as none are known, nothing is done.
        """
        state = self._take_rates(state, now_s, rates)
        state, (said,) = self.controller.handle(state, self._cycle(now_s, cuts))
        if not isinstance(said, Adapt):
            kept = Verdict(reason=said.reason, situation=said.situation, again_s=said.again_s)
            return kept, state
        wanted = cuts_of(said.plan.placement, self.problem(None), self.sites)
        if {s: set(c) for s, c in wanted.items()} == {s: set(c) for s, c in cuts.items()}:
            reason = f"kept: {said.reason}; {self.strategy} finds nothing better"
            return Verdict(reason=reason, situation=said.situation), state
        verdict = Verdict(reason=said.reason, situation=said.situation, plan=said.plan, cuts=wanted)
        return verdict, state

    def observe(
        self, state: ControllerState, now_s: float, cuts: Cuts, rates: Rates | None = None
    ) -> Situation | None:
        """What the cuts cost, and nothing decided; None as long as no rates are known."""
        state = self._take_rates(state, now_s, rates)
        return self.controller.observe(state, self._cycle(now_s, cuts))

    def hold(self, state: ControllerState, now_s: float, by: str) -> ControllerState:
        """Remember that cuts were set by hand: they are kept for as long as a trigger rests."""
        return self.learn(state, [Held(time_s=now_s, by=by)])

    def begin_change(self, state: ControllerState, now_s: float) -> ControllerState:
        """Remember that cuts are being changed."""
        return self.learn(state, [ChangeBegan(time_s=now_s)])

    def end_change(
        self, state: ControllerState, now_s: float, *, done: bool = True
    ) -> ControllerState:
        """Remember that the change under way has ended."""
        return self.learn(state, [ChangeEnded(time_s=now_s, done=done)])

    def problem(self, rates: Rates | None) -> Problem:
        """The application on the network at these rates; sources without any are silent."""
        plain = Problem(application=self.application, network=self.network)
        if rates is None:
            return plain
        now = {pair: rates.get(pair, 0.0) for pair in plain.birth_rates}
        return Problem(application=self.application, network=self.network, rates=now)

    def _take_rates(
        self, state: ControllerState, now_s: float, rates: Rates | None
    ) -> ControllerState:
        if rates is None:
            return state
        return self.learn(state, [RatesKnown(time_s=now_s, rates=rates)])

    def _cycle(self, now_s: float, cuts: Cuts) -> Cycle:
        return Cycle(time_s=now_s, running=self._placement(cuts), network=self.network)

    def _placement(self, cuts: Cuts) -> Placement:
        return placement_of(cuts, self.problem(None), self.sites)


class HasController(Protocol):
    """What knows which figures were measured."""

    @property
    def controller(self) -> Controller:
        """What decides."""
        ...


def seen_of(
    adapter: HasController,
    state: ControllerState,
    situation: Situation | None,
    measured_at_s: float,
) -> dict[str, Any]:
    """What a cycle saw, as a frame and a status say it; see `docs/reference/files.md`."""
    if situation is None:
        return {}
    measured = {
        name: value
        for name, value in (
            ("uplink_bps", situation.measured_bps),
            ("passing_bps", situation.passing_bps),
        )
        if value is not None
    }
    return {
        "figures": figures_of(situation.observation),
        "estimated": _plain(situation.estimated),
        "measured": measured and {**measured, "measured_at_s": round(measured_at_s, 3)},
        "deviations": [found.to_dict() for found in adapter.controller.deviations(state)],
    }


def figures_of(seen: Observation | None) -> dict[str, object]:
    """What was seen, as plain data; a figure without bound is left out."""
    if seen is None:
        return {}
    return {**_plain(seen), "broken": [excess.text for excess in seen.broken]}


def _plain(seen: Observation) -> dict[str, object]:
    figures = {
        "usage": seen.usage,
        "uplink_bps": seen.uplink_bps,
        "response_time_s": seen.response_time_s,
    }
    return {name: value for name, value in figures.items() if value < float("inf")}


def expected_of(plan: Plan | None) -> dict[str, object]:
    """What a plan promises, as plain data; a figure without bound is left out."""
    if plan is None:
        return {}
    figures = {
        "uplink_bps": plan.estimate.uplink_bps,
        "response_time_s": plan.estimate.response_time_s,
    }
    return {name: value for name, value in figures.items() if value < float("inf")}


def describe_figures(figures: Mapping[str, Any]) -> str:
    """Figures for people: "T 1.2 s, B 3 Mbps, usage 40 %"."""
    parts = []
    if "response_time_s" in figures:
        parts.append(f"T {show_quantity(figures['response_time_s'], DURATION)}")
    if "uplink_bps" in figures:
        parts.append(f"B {show_quantity(figures['uplink_bps'], BANDWIDTH)}")
    if "usage" in figures:
        parts.append(f"usage {show_share(figures['usage'])}")
    return ", ".join(parts)
