"""A strategy in the loop: at every interval it sees what a monitor would see, not the future."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING, Any

from thalweg.adapt.controller import Controller
from thalweg.adapt.events import Adapt, Cycle, RatesKnown
from thalweg.adapt.state import ControllerState
from thalweg.adapt.trigger import Trigger
from thalweg.errors import Defects
from thalweg.model.changes import PlanChange
from thalweg.planning import SCHEDULING_STRATEGY
from thalweg.planning import plan as find_plan
from thalweg.strategy import find_strategy, require_options

if TYPE_CHECKING:
    from thalweg.model.plan import Plan
    from thalweg.simulate.program import Program
    from thalweg.simulate.session import Session

_SHORTEST_S = 0.001


@dataclass(frozen=True, kw_only=True)
class Control:
    """Watches the first application and adapts it.

    Every `interval_s` the events born since the last look are counted; what runs is evaluated at
    these rates, and where the trigger says so, the strategy plans at them.
    """

    strategy: str = SCHEDULING_STRATEGY
    interval_s: float = 10.0
    trigger: Trigger = field(default_factory=Trigger)
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        defects = Defects()
        interval_s = self.interval_s
        number = isinstance(interval_s, int | float) and not isinstance(interval_s, bool)
        good = number and isfinite(interval_s) and interval_s >= _SHORTEST_S
        defects.require(good, "interval_s", interval_s, f"a duration >= {_SHORTEST_S:g} s")
        defects.raise_if_any()

    def require(self, defects: Defects, program: Program) -> None:
        """Remember a strategy or options that do not exist, or cannot plan this application."""
        found = Defects()
        if found.attempt("control", lambda: find_strategy(self.strategy)) is not None:
            found.attempt("control", lambda: require_options(self.strategy, dict(self.options)))
        if not found:
            found.attempt("", lambda: self.ask(program, None))
        defects.attempt("", found.raise_if_any)

    def ask(self, program: Program, rates: Mapping[tuple[str, str], float] | None) -> Plan:
        """What the strategy says, at these rates or at those of the program."""
        problem = program.problem
        return find_plan(
            problem.application,
            problem.network,
            self.strategy,
            rates=problem.rates if rates is None else rates,
            current=program.placement,
            **self.options,
        )

    def begin(self, session: Session) -> Callable[[Session], PlanChange | None]:
        """What looks at a session again and again."""
        watcher = _Watcher(self, session)
        session.decisions = watcher.decisions
        return watcher.look


class _Watcher:
    """Remembers what it has seen."""

    def __init__(self, control: Control, session: Session) -> None:
        program = session.programs[0]
        self._controller = Controller(
            application=program.problem.application,
            network=program.problem.network,
            strategy=control.strategy,
            options=control.options,
            trigger=control.trigger,
        )
        self._state = ControllerState()
        self._born = [spring.born for spring in session.engine.springs]
        self._seen_s = 0.0
        self.decisions: list[dict[str, Any]] = []

    def look(self, session: Session) -> PlanChange | None:
        now_s = session.engine.now_s
        program = session.programs[0]
        problem, net = program.problem, program.problem.network
        born = [spring.born for spring in session.engine.springs]
        seconds = now_s - self._seen_s
        # The springs of the first application come first, in the order of its births.
        rates = {
            pair: (born[k] - self._born[k]) / seconds for k, pair in enumerate(problem.birth_rates)
        }
        self._born, self._seen_s = born, now_s
        known = RatesKnown(time_s=now_s, rates=rates)
        self._state, _ = self._controller.handle(self._state, known)
        cycle = Cycle(time_s=now_s, running=program.placement, network=net)
        self._state, (said,) = self._controller.handle(self._state, cycle)
        change = None
        if isinstance(said, Adapt):
            name = problem.application.name
            change = PlanChange(at_s=now_s, plan=said.plan, application=name)
        asked_for = said.reason if isinstance(said, Adapt) else said.asked_for
        self.decisions.append(
            {
                "at_s": now_s,
                "adapted": asked_for is not None,
                "changed": change is not None,
                "reason": said.reason if asked_for is None else asked_for,
                "rate_seen": sum(rates.values()),
            }
        )
        return change
