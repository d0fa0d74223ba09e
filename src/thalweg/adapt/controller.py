"""The adaptation controller: (state, event) → (state, instructions), and nothing else.

Replays, simulations and runs drive the same one. It learns from what is measured, judges what runs
by the trigger, asks the strategy, and remembers; it has no clock, no files, no threads. What was
declared is the prior of all that is measured (`thalweg.adapt.characteristics`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from thalweg.adapt.arrivals import INTERVAL_S
from thalweg.adapt.characteristics import Deviation, Measured
from thalweg.adapt.cycle import have_jumped, jump_s, observe_cycle, run_cycle
from thalweg.adapt.events import (
    Arrived,
    BatchDone,
    ChangeBegan,
    ChangeEnded,
    Cycle,
    Event,
    Held,
    Instruction,
    LinksMeasured,
    Pair,
    RatesKnown,
    Situation,
)
from thalweg.adapt.forecast import Forecaster
from thalweg.adapt.state import ControllerState, InvalidTransition
from thalweg.adapt.trigger import Trigger
from thalweg.estimate.evaluate import evaluate, make_plan
from thalweg.estimate.usage import COMPUTE_WEIGHT, NETWORK_WEIGHT, estimate_usage
from thalweg.model.application import Application, Limits
from thalweg.model.network import Network
from thalweg.model.placement import Placement
from thalweg.model.plan import Plan
from thalweg.model.problem import Problem
from thalweg.planning import SCHEDULING_STRATEGY
from thalweg.planning import plan as find_plan

_REMEMBERED_EVENTS = 20


@dataclass(frozen=True, eq=False, kw_only=True)
class Controller:
    """Keeps one application on one network right, by a trigger and a strategy.

    Without a trigger every cycle is planned anew. With a forecaster a cycle also looks
    `ahead_steps` cycles ahead. `interval_s` is how often cycles come, where rates are estimated
    from arrivals.
    """

    application: Application
    network: Network
    strategy: str = SCHEDULING_STRATEGY
    options: Mapping[str, Any] = field(default_factory=dict)
    trigger: Trigger | None = field(default_factory=Trigger)
    forecaster: Forecaster | None = None
    ahead_steps: int = 1
    interval_s: float = INTERVAL_S

    def handle(
        self, state: ControllerState, event: Event
    ) -> tuple[ControllerState, tuple[Instruction, ...]]:
        """What is true after an event, and what is to be done; the same for the same arguments.

        Raises:
            InvalidTransition: for a change that begins within another, or ends before it began.
        """
        if isinstance(event, BatchDone):
            known = state.known.learn(event, self.application)
            learnt_s = event.time_s if state.learnt_s is None else state.learnt_s
            return replace(state, known=known, learnt_s=learnt_s), ()
        if isinstance(event, Arrived):
            return self._notice(replace(state, arrivals=state.arrivals.add(event))), ()
        if isinstance(event, RatesKnown):
            return replace(state, rates=dict(event.rates)), ()
        if isinstance(event, LinksMeasured):
            return replace(state, links=event), ()
        if isinstance(event, Cycle):
            return run_cycle(self, state, event)
        return _note(self, state, event), ()

    def observe(self, state: ControllerState, cycle: Cycle) -> Situation | None:
        """What runs costs now, and nothing decided; None as long as no rates are known."""
        return observe_cycle(self, state, cycle)

    def evaluate(self, problem: Problem, placement: Placement) -> Plan:
        """What a placement costs."""
        return make_plan(problem, placement, strategy=self.strategy, objective_name="usage")

    def find(self, problem: Problem, running: Placement | None) -> Plan:
        """What the strategy says."""
        return find_plan(
            problem.application,
            problem.network,
            self.strategy,
            rates=problem.rates,
            current=running,
            **self.options,
        )

    def cost(self, problem: Problem, placement: Placement) -> float:
        """RU with the weights that the strategy is given, if it is given any."""
        if not self.options.keys() & {"compute_weight", "network_weight"}:
            return self.evaluate(problem, placement).estimate.usage
        found = evaluate(problem, placement)
        return estimate_usage(
            found.deployment,
            found.rates,
            found.demand,
            compute_weight=float(self.options.get("compute_weight", COMPUTE_WEIGHT)),
            network_weight=float(self.options.get("network_weight", NETWORK_WEIGHT)),
        ).total

    @property
    def limits(self) -> Limits:
        """The application's, with the trigger's own limit of usage where it has one."""
        limits = self.application.limits
        if self.trigger is None or self.trigger.usage_most is None:
            return limits
        return replace(limits, usage=self.trigger.usage_most)

    def measured(self, state: ControllerState) -> Measured:
        """The application as it is measured."""
        totals: dict[str, float] = {}
        for (source, _), rate in (self.rates(state) or {}).items():
            totals[source] = totals.get(source, 0.0) + rate
        return state.known.measured(self.application, totals)

    def deviations(self, state: ControllerState) -> tuple[Deviation, ...]:
        """Where declared and measured figures differ."""
        return self.measured(state).deviations()

    def is_due(self, state: ControllerState, now_s: float) -> bool:
        """Whether a cycle is due before its time: rates have jumped since the last one."""
        jumped_s = state.jumped_s
        is_new = bool(state.steps) and jumped_s > state.steps[-1][0]
        return is_new and now_s >= jumped_s + jump_s(self.interval_s)

    def _notice(self, state: ControllerState) -> ControllerState:
        """Remember when rates jump, with the first count that says so."""
        if state.rates is not None or not state.steps:
            return state
        cycle_s, before = state.steps[-1]
        now, now_s = self.rates(state), state.arrivals.counts[-1][0]
        # What is still to become known of one jump is no other.
        is_new = state.jumped_s <= cycle_s and now_s - state.jumped_s >= self.interval_s
        if now is None or not is_new or not have_jumped(before, now):
            return state
        return replace(state, jumped_s=now_s)

    def rates(self, state: ControllerState) -> dict[Pair, float] | None:
        """The present rates, as well as they are known; None where they are not."""
        if state.rates is not None:
            return dict(state.rates)
        found = state.arrivals.rates(self.interval_s)
        return None if found is None else {pair: one.rate for pair, one in found.items()}


def _note(controller: Controller, state: ControllerState, event: Event) -> ControllerState:
    """Remember what people or changes do."""
    name = type(event).__name__
    history = (*state.history, f"{name} at {event.time_s:.3f}")[-_REMEMBERED_EVENTS:]
    if isinstance(event, Held):
        rest_s = controller.trigger.rest_s if controller.trigger is not None else 0.0
        until_s = event.time_s + rest_s
        return replace(state, held_until_s=until_s, held_by=event.by, history=history)
    if isinstance(event, ChangeBegan):
        _require(state.changing_s is None, name, "while another change is under way", history)
        return replace(state, changing_s=event.time_s, history=history)
    if isinstance(event, ChangeEnded):
        began_s = state.changing_s
        if began_s is None:
            raise _invalid(name, "while no change is under way", history)
        took_s = max(0.0, event.time_s - began_s)
        return replace(
            state,
            known=state.known.forget_open_windows(),
            changing_s=None,
            changed_s=event.time_s,
            change_s=(state.change_s + took_s) / 2 if event.done else state.change_s,
            history=history,
        )
    raise _invalid(name, "which no controller knows", history)


def _require(holds: bool, event: str, when: str, history: tuple[str, ...]) -> None:
    if not holds:
        raise _invalid(event, when, history)


def _invalid(event: str, when: str, history: tuple[str, ...]) -> InvalidTransition:
    return InvalidTransition(f"{event} came {when}; before it: {', '.join(history[:-1]) or 'none'}")
