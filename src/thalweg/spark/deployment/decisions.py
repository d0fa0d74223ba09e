"""Keep the cuts that run, or go to others? A pure function of what was measured."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from thalweg.adapt.observation import Observation
from thalweg.adapt.trigger import Decision, Trigger, TriggerState, decide
from thalweg.estimate.evaluate import make_plan
from thalweg.model import Application, Network, Plan, Problem
from thalweg.planning import plan as find_plan
from thalweg.spark.deployment.plan import Cuts, RunSites, cuts_of, placement_of
from thalweg.units import BANDWIDTH, DURATION, show_quantity

Rates = Mapping[tuple[str, str], float]

# Measured rates are never twice the same: what differs by less is the same question.
LIVE_TRIGGER = Trigger(patience=2, rest_s=30.0, change_least=0.1)


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterState:
    """What is remembered from one look to the next."""

    trigger: TriggerState = field(default_factory=TriggerState)
    held_until_s: float = 0.0
    """After cuts were set by hand, nothing is changed before this time."""
    held_by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What to do, why, and what was seen; with a plan and its cuts where they are to change."""

    reason: str
    seen: Observation | None = None
    plan: Plan | None = None
    cuts: Cuts | None = None

    @property
    def adapt(self) -> bool:
        """Whether the cuts are to change."""
        return self.cuts is not None


@dataclass(frozen=True, eq=False, kw_only=True)
class Adapter:
    """Decides for one application on one network, by a trigger and a strategy."""

    application: Application
    network: Network
    sites: RunSites
    strategy: str = "atsoo"
    options: Mapping[str, Any] = field(default_factory=dict)
    trigger: Trigger = LIVE_TRIGGER

    def plan(self, rates: Rates | None, current: Cuts | None = None) -> tuple[Plan, Cuts]:
        """What the strategy says at these rates, as a plan and as cuts.

        Raises:
            InvalidInput: where its plan cannot be run as cuts between fogs and the cloud.
        """
        problem = self.problem(rates)
        found = find_plan(
            self.application,
            self.network,
            self.strategy,
            rates=problem.rates,
            current=None if current is None else placement_of(current, problem, self.sites),
            **self.options,
        )
        return found, cuts_of(found.placement, problem, self.sites)

    def look(
        self, state: AdapterState, now_s: float, cuts: Cuts, rates: Rates | None
    ) -> tuple[Verdict, AdapterState]:
        """What to do about the cuts that run at these rates, and what to remember.

        The same for the same arguments. Rates of None: nothing is known yet, and nothing is done.
        """
        if rates is None:
            return Verdict(reason="kept: no rates are known yet"), state
        seen = self.observe(now_s, cuts, rates)
        if now_s < state.held_until_s:
            left = show_quantity(state.held_until_s - now_s, DURATION)
            reason = f"kept: {state.held_by}, which holds for another {left}"
            return Verdict(reason=reason, seen=seen), state
        decision, remembered = decide(self.trigger, state.trigger, seen)
        state = replace(state, trigger=remembered)
        if not decision.adapt:
            return Verdict(reason=decision.reason, seen=seen), state
        return self._adapt(decision, seen, cuts, rates), state

    def hold(self, state: AdapterState, now_s: float, by: str) -> AdapterState:
        """Remember that cuts were set by hand: they are kept for as long as a trigger rests."""
        return replace(state, held_until_s=now_s + self.trigger.rest_s, held_by=by)

    def observe(self, now_s: float, cuts: Cuts, rates: Rates) -> Observation:
        """What the cuts cost at these rates."""
        problem = self.problem(rates)
        plan = make_plan(
            problem,
            placement_of(cuts, problem, self.sites),
            strategy=self.strategy,
            objective_name="usage",
        )
        inputs = [rate for _, rate in sorted(rates.items())] + self._links_bps()
        return Observation.of(plan, now_s, self.application.limits, inputs=inputs)

    def problem(self, rates: Rates | None) -> Problem:
        """The application on the network at these rates; sources without any are silent."""
        if rates is None:
            return Problem(application=self.application, network=self.network)
        plain = Problem(application=self.application, network=self.network)
        now = {pair: rates.get(pair, 0.0) for pair in plain.birth_rates}
        return Problem(application=self.application, network=self.network, rates=now)

    def _links_bps(self) -> list[float]:
        """What the fogs' links have to give, which a strategy decides on as it does on rates.

        Those without bound are left out: two of them would not count as the same.
        """
        index, wan = self.network.site_index, self.network.wan
        cloud = index[self.sites.cloud]
        found = [float(wan.available_bps(index[fog], cloud)) for fog in self.sites.fogs]
        return [bps for bps in found if math.isfinite(bps)]

    def _adapt(self, decision: Decision, seen: Observation, cuts: Cuts, rates: Rates) -> Verdict:
        plan, wanted = self.plan(rates, cuts)
        if {s: set(c) for s, c in wanted.items()} == {s: set(c) for s, c in cuts.items()}:
            reason = f"kept: {decision.reason}; {self.strategy} finds nothing better"
            return Verdict(reason=reason, seen=seen)
        return Verdict(reason=decision.reason, seen=seen, plan=plan, cuts=wanted)


def figures_of(seen: Observation | None) -> dict[str, object]:
    """What was seen, as plain data; a figure without bound is left out."""
    if seen is None:
        return {}
    figures = {
        "usage": seen.usage,
        "uplink_bps": seen.uplink_bps,
        "response_time_s": seen.response_time_s,
    }
    finite = {name: value for name, value in figures.items() if value < float("inf")}
    return {**finite, "broken": [excess.text for excess in seen.broken]}


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
    """Figures for people: "T 1.2 s, B 3 Mbps, usage 0.4"."""
    parts = []
    if "response_time_s" in figures:
        parts.append(f"T {show_quantity(figures['response_time_s'], DURATION)}")
    if "uplink_bps" in figures:
        parts.append(f"B {show_quantity(figures['uplink_bps'], BANDWIDTH)}")
    if "usage" in figures:
        parts.append(f"usage {figures['usage']:.3g}")
    return ", ".join(parts)
