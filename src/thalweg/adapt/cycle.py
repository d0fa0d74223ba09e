"""One monitoring cycle of an adaptation controller: observe, decide, ask the strategy."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from thalweg.adapt.arrivals import SPAN_S, ArrivalRate
from thalweg.adapt.characteristics import DEVIATION, LINK_RATIO, Measured
from thalweg.adapt.events import Adapt, Cycle, Forecast, Instruction, Keep, Pair, Situation
from thalweg.adapt.observation import Observation
from thalweg.adapt.state import ControllerState, Rates
from thalweg.adapt.trigger import Decision, decide
from thalweg.model.network import Network, Tier
from thalweg.model.placement import Placement
from thalweg.model.plan import Plan
from thalweg.model.problem import Problem
from thalweg.units import DURATION, show_quantity, show_share

if TYPE_CHECKING:
    from thalweg.adapt.controller import Controller

_EARLY, _AGAIN = 10, 5
_REMEMBERED_STEPS = 64
_LEAST_STEPS = 10
_JUMP, _STEADY = 0.3, 0.05
_LINKS_FRESH_S = 6.0
_WAIT_SHARE = 0.25
_LARGEST_RATE = 1e15


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bar:
    """What a plan has to offer for which only measured figures speak: changes cost, too."""

    cheaper: float
    headroom: float
    """The part of each limit that it leaves: what breaks one by chance is no improvement."""


_OTHER_FIGURES = _Bar(cheaper=0.02, headroom=0.005)
_KNOWN_BETTER = _Bar(cheaper=0.05, headroom=0.02)

Answer = tuple[ControllerState, tuple[Instruction, ...]]


def run_cycle(controller: Controller, state: ControllerState, cycle: Cycle) -> Answer:
    """What is true after a monitoring cycle, and what is to be done."""
    return _Cycle(controller, state, cycle).run()


def observe_cycle(controller: Controller, state: ControllerState, cycle: Cycle) -> Situation | None:
    """What runs costs at the moment of a cycle; None as long as no rates are known."""
    return _Cycle(controller, state, cycle).observe()


class _Cycle:
    """One monitoring cycle of a controller."""

    def __init__(self, controller: Controller, state: ControllerState, cycle: Cycle) -> None:
        self._own, self._state, self._cycle = controller, state, cycle
        self._network = cycle.network or controller.network
        self._seconds = 0.0
        self._unsettled: dict[Pair, ArrivalRate] = {}
        rates = controller.rates(state)
        if rates is not None and state.rates is None:
            arriving = state.arrivals.rates(controller.interval_s) or {}
            self._unsettled = {p: one for p, one in arriving.items() if not one.is_settled}
        self._measured = controller.measured(state)
        self._anchored = self._measured.anchored(state.planned)
        births = Problem(application=controller.application, network=self._network).birth_rates
        # Sources that nothing is known of are silent.
        self._rates = None if rates is None else {pair: rates.get(pair, 0.0) for pair in births}

    def run(self) -> Answer:
        """What is true after the cycle, and what is to be done."""
        rates, running = self._rates, self._cycle.running
        if rates is None:
            return self._state, (self._keep("kept: no rates are known yet"),)
        steps = (*self._state.steps, (self._cycle.time_s, rates))[-_REMEMBERED_STEPS:]
        self._remember_change_of_rates()
        jumped = len(steps) > 1 and have_jumped(steps[-2][1], rates)
        if self._state.rates is None and (self._is_changing or jumped):
            steps = steps[-1:]
        self._state = replace(self._state, steps=steps)
        if running is None:
            first = Decision(adapt=True, reason="first deployment")
            return self._ask(first, None, self._forecasts())
        situation = self._observe(running, rates)
        now_s = self._cycle.time_s
        if self._state.changing_s is not None:
            reason = "kept: a change is under way"
            return self._state, (self._keep(reason, situation),)
        if now_s < self._state.held_until_s:
            left = show_quantity(self._state.held_until_s - now_s, DURATION)
            reason = f"kept: {self._state.held_by}, which holds for another {left}"
            return self._state, (self._keep(reason, situation),)
        return self._decide(situation)

    def _remember_change_of_rates(self) -> None:
        """Remember since when rates have been changing."""
        since_s = None
        if self._unsettled:
            known_s = self._state.changing_rates_s
            since_s = self._cycle.time_s if known_s is None else known_s
        self._state = replace(self._state, changing_rates_s=since_s)

    def observe(self) -> Situation | None:
        """What is seen, without a decision."""
        running, rates = self._cycle.running, self._rates
        return None if running is None or rates is None else self._observe(running, rates)

    def _keep(self, reason: str, situation: Situation | None = None) -> Keep:
        again_s = self._wait_s if self._is_changing else None
        now_s = self._cycle.time_s
        return Keep(time_s=now_s, reason=reason, situation=situation, again_s=again_s)

    def _adapt(
        self, reason: str, plan: Plan, situation: Situation | None, *, ahead: bool = False
    ) -> Adapt:
        return Adapt(
            time_s=self._cycle.time_s,
            reason=reason,
            plan=plan,
            ahead=ahead,
            situation=situation,
            seconds=self._seconds,
        )

    # What is seen

    def _problem(self, rates: Rates, measured: Measured | None = None) -> Problem:
        application = (measured or self._measured).application
        return Problem(application=application, network=self._network, rates=dict(rates))

    def _evaluate(self, placement: Placement, rates: Rates) -> Plan:
        return self._own.evaluate(self._problem(rates), placement)

    def _observe(self, placement: Placement, rates: Rates) -> Situation:
        now_s = self._cycle.time_s
        plan = self._evaluate(placement, rates)
        inputs = [*rates.values(), *self._figures().values()]
        if self._cycle.network is not None:
            # A network that may change is part of the question.
            inputs += _links_bps(self._network)
        estimated = Observation.of(plan, now_s, self._own.limits, inputs=inputs)
        measured_bps = self._links_measured_bps()
        uplink_bps = max(estimated.uplink_bps, measured_bps or 0.0)
        return Situation(
            observation=replace(estimated, uplink_bps=uplink_bps),
            estimated=estimated,
            measured_bps=measured_bps,
            passing_bps=self._passing_bps(),
        )

    def _links_measured_bps(self) -> float | None:
        """What the links carry of the deployment that runs; older figures are of another one."""
        links = self._state.links
        if links is None or self._state.changing_s is not None:
            return None
        now_s = self._cycle.time_s
        stale = now_s - links.time_s > _LINKS_FRESH_S
        settling = links.time_s - self._state.changed_s < _LINKS_FRESH_S
        return None if stale or settling else math.fsum(links.bps.values())

    def _passing_bps(self) -> float | None:
        """What the links carry for a while beside what the deployment sends."""
        links = self._state.links
        if links is None or self._cycle.time_s - links.time_s > _LINKS_FRESH_S:
            return None
        return links.passing_bps

    def _figures(self) -> dict[tuple[str, str], float]:
        """Measured figures as a strategy decides on them, by (operator, figure)."""
        return {name: found.value for name, found in self._measured.planned_with().items()}

    # What is decided

    def _decide(self, situation: Situation) -> Answer:
        own, state = self._own, self._state
        forecasts = self._forecasts()
        if own.trigger is None:
            decision = Decision(adapt=True, reason="planned anew at every step")
            return self._ask(decision, situation, forecasts)
        decision, trigger = decide(
            own.trigger, state.trigger, situation.observation, self._look_ahead(forecasts)
        )
        if decision.adapt:
            waits = self._reason_to_wait(decision)
            if waits:
                # Nobody was asked: only that it was bad is remembered.
                trigger = replace(state.trigger, bad_count=trigger.bad_count)
                since_s = state.unsettled_s
                since_s = self._cycle.time_s if since_s is None else since_s
                state = replace(state, trigger=trigger, unsettled_s=since_s)
                return state, (self._keep(waits, situation),)
        self._state = replace(state, trigger=trigger, unsettled_s=None)
        if decision.adapt:
            return self._ask(decision, situation, forecasts)
        return self._reconsider(decision, situation)

    def _forecasts(self) -> list[Forecast]:
        """What is expected: what the caller says, or what the forecaster makes of the last cycles.

        Steps count as evenly far apart.
        """
        if self._cycle.coming is not None:
            return list(self._cycle.coming)
        own, steps = self._own, self._state.steps
        # What has just begun, or jumped, is no trend: that is extrapolated, or waited for.
        if own.forecaster is None or len(steps) < _LEAST_STEPS or self._is_changing:
            return []
        pairs = sorted(steps[-1][1])
        history = np.array([[rates.get(pair, 0.0) for pair in pairs] for _, rates in steps])
        said = np.minimum(own.forecaster.forecast(history, own.ahead_steps), _LARGEST_RATE)
        step_s = float(np.median(np.diff([at_s for at_s, _ in steps])))
        return [
            Forecast(ahead_s=k * step_s, rates=dict(zip(pairs, row.tolist(), strict=True)))
            for k, row in enumerate(said, start=1)
        ]

    def _look_ahead(self, forecasts: list[Forecast]) -> Observation | None:
        """What runs at the first forecast that breaks something, else at the last one."""
        running, ahead = self._cycle.running, None
        largest = _largest([forecast.rates for forecast in forecasts])
        for forecast in forecasts:
            if running is None:
                break
            plan = self._evaluate(running, forecast.rates)
            # A plan is made for all that is expected, so that is what the strategy decides on.
            ahead = Observation.of(
                plan,
                self._cycle.time_s + forecast.ahead_s,
                self._own.limits,
                inputs=list(largest.values()),
            )
            if ahead.broken or ahead.excess_usage(self._own.limits.usage):
                break
        return ahead

    def _reason_to_wait(self, decision: Decision) -> str:
        """Why a decision waits for rates that are changing; empty where it is made now.

        To wait costs the time until the next look. To decide on rates that are not there yet costs
        a second change, unless the strategy answers the same for what they will be.
        """
        if not self._is_changing or self._rates is None:
            return ""
        since_s = self._state.unsettled_s
        waited_s = 0.0 if since_s is None else self._cycle.time_s - since_s
        change_s, wait_s = self._state.change_s, self._wait_s
        if waited_s + wait_s > change_s:
            return ""
        if self._rest_s > 0:
            left = show_quantity(round(wait_s, 2), DURATION)
            return f"kept: {decision.reason}; rates have just jumped, and are known in {left}"
        now = self._find(self._rates).placement
        then = self._find(_largest([self._rates, self._extrapolated()]))
        since_s = self._state.changing_rates_s
        is_known = since_s is not None and self._cycle.time_s - since_s >= self._own.interval_s
        if now == then.placement or (is_known and self._holds(then)):
            return ""
        (source, site), one = max(self._unsettled.items(), key=lambda item: abs(item[1].slope))
        return (
            f"kept: {decision.reason}; {source} at {site} is changing ({one.rate:.4g}/s, by "
            f"{one.slope:+.3g}/s each second): to wait costs {show_quantity(wait_s, DURATION)},"
            f" a second change {show_quantity(round(change_s, 1), DURATION)}"
        )

    @property
    def _wait_s(self) -> float:
        """Until rates that are changing are looked at again: they settle within an interval."""
        return self._rest_s or _WAIT_SHARE * self._own.interval_s

    @property
    def _rest_s(self) -> float:
        """Until rates are known again that have just jumped."""
        if self._state.rates is not None:
            return 0.0
        passed_s = self._cycle.time_s - self._state.jumped_s
        return max(0.0, jump_s(self._own.interval_s) - passed_s)

    @property
    def _is_changing(self) -> bool:
        return bool(self._unsettled) or self._rest_s > 0

    def _extrapolated(self) -> dict[Pair, float]:
        """The rates that will be there when a change is in force, and for some time after it.

        What has been growing for some time is expected to grow for as long again.
        """
        rates = dict(self._rates or {})
        since_s = self._state.changing_rates_s
        grown_s = 0.0 if since_s is None else self._cycle.time_s - since_s
        for pair, one in self._unsettled.items():
            if pair in rates:
                rates[pair] = one.after(self._state.change_s + grown_s)
        return rates

    def _find(self, rates: Rates) -> Plan:
        """What the strategy says at these rates."""
        return self._find_for(self._problem(rates))

    def _find_for(self, problem: Problem) -> Plan:
        found = self._own.find(problem, self._cycle.running)
        self._seconds += found.seconds
        return found

    def _ask(
        self, decision: Decision, situation: Situation | None, forecasts: list[Forecast]
    ) -> Answer:
        """Ask the strategy, and remember the figures that it was asked with."""
        present = self._rates or {}
        coming = [forecast.rates for forecast in forecasts]
        reason = decision.reason
        if self._unsettled and situation is not None:
            coming.append(self._extrapolated())
            reason += ", rates extrapolated"
        plan = self._choose(present, coming, only_ahead=decision.ahead)
        # What was decided on the first counts is reconsidered as more come.
        is_early = self._is_early
        until_s = self._again_until_s if is_early else self._state.reconsider_until_s
        state = replace(
            self._state,
            planned=self._values_planned_with(self._measured),
            reconsider_until_s=until_s,
            replanned_for_figures=is_early or self._cycle.running is None,
        )
        if plan.placement == self._cycle.running:
            said = f"kept: {reason}; {self._own.strategy} finds nothing better"
            keep = Keep(
                time_s=self._cycle.time_s,
                reason=said,
                situation=situation,
                asked_for=reason,
                ahead=decision.ahead,
                seconds=self._seconds,
            )
            return state, (keep,)
        return state, (self._adapt(reason, plan, situation, ahead=decision.ahead),)

    def _choose(self, present: Rates, coming: list[Rates], *, only_ahead: bool) -> Plan:
        """What to run from now on.

        A plan for the larger of present and expected rates, pair by pair, if it holds now and then;
        else one for the present rates. Where only a forecast speaks for it: of those that hold now,
        the one with the fewest violations, then the least excess, at the larger rates.
        """
        running = self._cycle.running
        if not coming:
            return self._find(present)
        larger = _largest([present, *coming])
        wide = self._find(larger)
        if self._holds(wide):
            return wide
        narrow = self._find(present)
        if not only_ahead or running is None:
            return narrow
        kept = self._evaluate(running, present)
        holding = [
            plan
            for plan in (kept, wide, narrow)
            if self._evaluate(plan.placement, present).feasible
        ]
        if not holding:
            return narrow
        return min(holding, key=lambda plan: _badness(self._evaluate(plan.placement, larger)))

    def _holds(self, wide: Plan) -> bool:
        """Whether a plan for expected rates holds then and now."""
        return wide.feasible and self._evaluate(wide.placement, self._rates or {}).feasible

    def _reconsider(self, decision: Decision, situation: Situation) -> Answer:
        """Ask once more where figures turn out to be others than those that were planned with."""
        state, now_s = self._state, self._cycle.time_s
        changed = self._changed_figures()
        if changed:
            state = replace(state, reconsider_until_s=self._again_until_s)
        is_asked = changed or now_s < state.reconsider_until_s
        if not is_asked or not self._is_steady:
            return state, (self._keep(decision.reason, situation),)
        own = self._own
        rest_s = own.trigger.rest_s if own.trigger is not None else 0.0
        adapted_s = state.trigger.adapted_s
        rests = adapted_s is not None and now_s - adapted_s < rest_s
        if rests and not state.replanned_for_figures:
            return state, (self._keep(decision.reason, situation),)
        bar = _OTHER_FIGURES if changed else _KNOWN_BETTER
        state = replace(state, planned=self._values_planned_with(self._anchored))
        plan = self._find_for(self._problem(self._rates or {}, self._anchored))
        if (
            plan.placement == self._cycle.running
            or not self._fits(plan, bar)
            or not self._is_better(plan, bar)
        ):
            keep = Keep(
                time_s=self._cycle.time_s,
                reason=decision.reason,
                situation=situation,
                asked_for="measured figures differ from those planned with",
                seconds=self._seconds,
            )
            return state, (keep,)
        first, *others = changed or ["they are better known"]
        more = f" and {len(others)} more" if others else ""
        reason = (
            f"measured figures differ from those planned with: {first}{more}; "
            f"usage {show_share(situation.estimated.usage)} → {show_share(plan.estimate.usage)}"
        )
        state = replace(
            state,
            trigger=replace(state.trigger, adapted_s=now_s),
            replanned_for_figures=self._is_early,
        )
        adapt = Adapt(
            time_s=self._cycle.time_s,
            reason=reason,
            plan=plan,
            situation=situation,
            seconds=self._seconds,
        )
        return state, (adapt,)

    def _fits(self, plan: Plan, bar: _Bar) -> bool:
        """Whether a plan keeps all constraints with something to spare.

        What is cheaper by the model and then breaks a limit by chance is no improvement.
        """
        now = self._evaluate(plan.placement, self._rates or {})
        limits, part = self._own.limits, 1.0 - bar.headroom
        return (
            not plan.violations
            and now.feasible
            and now.estimate.uplink_bps <= limits.uplink_bps * part
            and now.estimate.response_time_s <= limits.response_time_s * part
        )

    def _is_better(self, plan: Plan, bar: _Bar) -> bool:
        """Whether a plan is clearly cheaper than what runs, as the strategy weighs it.

        At the rates of the cycle before, too: those of now may be the begin of a change.
        """
        running, cost = self._cycle.running, self._own.cost
        if running is None:
            return False
        problems = [self._problem(rates, self._anchored) for _, rates in self._state.steps[-2:]]
        return all(
            cost(problem, plan.placement) < cost(problem, running) * (1.0 - bar.cheaper)
            for problem in problems
        )

    def _values_planned_with(self, measured: Measured) -> dict[tuple[str, str], float]:
        """The figures that a strategy is asked with; of the first counts those that are precise.

        Later ones are held to be the same as long as they are not surely others.
        """
        return {
            name: found.value
            for name, found in measured.planned_with().items()
            if not self._is_early or found.is_precise
        }

    @property
    def _again_until_s(self) -> float:
        return self._cycle.time_s + _AGAIN * self._own.interval_s

    @property
    def _is_steady(self) -> bool:
        """Whether something arrives, and as much as a cycle ago: plans are compared by that."""
        if self._is_changing or len(self._state.steps) < 2:
            return False
        before, now = (math.fsum(rates.values()) for _, rates in self._state.steps[-2:])
        if now <= 0:
            return False
        chance = 2.0 * math.sqrt(2.0 / (SPAN_S * now))
        return abs(now - before) <= max(_STEADY, chance) * max(now, before)

    @property
    def _is_early(self) -> bool:
        """Whether something has been counted, and so little that figures still move."""
        learnt_s = self._state.learnt_s
        early_s = _EARLY * self._own.interval_s
        return learnt_s is not None and self._cycle.time_s - learnt_s < early_s

    def _changed_figures(self) -> list[str]:
        """Figures that are surely further than 20 % from what was planned with, in words."""
        found = []
        for (operator, figure), estimate in self._measured.planned_with().items():
            declared = self._measured.declared_figure(operator, figure)
            planned = self._state.planned.get((operator, figure), declared)
            if estimate.differs_from(planned, DEVIATION):
                name = "size on links" if figure == LINK_RATIO else figure
                found.append(f"{operator} {name} {planned:.3g} → {estimate.value:.3g}")
        return found


def jump_s(interval_s: float) -> float:
    """How long after a jump rates are known again, counted from when it was noticed."""
    return interval_s / 2


def have_jumped(before: Rates, after: Rates) -> bool:
    """Whether the sum of all rates is another than before."""
    then, now = math.fsum(before.values()), math.fsum(after.values())
    return abs(now - then) > _JUMP * max(now, then)


def _largest(rows: list[Rates]) -> dict[Pair, float]:
    """The largest rate of each pair."""
    found: dict[Pair, float] = {}
    for rates in rows:
        for pair, rate in rates.items():
            found[pair] = max(found.get(pair, 0.0), rate)
    return found


def _badness(plan: Plan) -> tuple[int, float]:
    """How many constraints a plan breaks, and by how much in all."""
    excess = [v.need / v.have if v.have > 0 else math.inf for v in plan.violations]
    return len(excess), sum(excess)


def _links_bps(network: Network) -> list[float]:
    """What the ways up have to give, which a strategy decides on as it does on rates.

    Those without bound are left out: two of them would not count as the same.
    """
    below = np.flatnonzero((network.site_tier != Tier.CLOUD) & (network.nearest_cloud >= 0))
    free = network.wan.available_bps(below, network.nearest_cloud[below])
    return [float(bps) for bps in free if math.isfinite(bps)]
