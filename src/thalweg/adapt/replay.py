"""Replays a workload: what runs at every step, what it costs, when and why it is adapted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from thalweg.adapt.controller import Controller
from thalweg.adapt.events import Adapt, Cycle, Forecast, Instruction, RatesKnown
from thalweg.adapt.forecast import Forecaster, require_steps, roll_forecasts
from thalweg.adapt.observation import Observation
from thalweg.adapt.record import Replay, Step
from thalweg.adapt.state import ControllerState
from thalweg.adapt.trigger import Trigger
from thalweg.errors import Defects
from thalweg.estimate.evaluate import make_plan
from thalweg.files.workload_references import require_workload
from thalweg.model.application import Application, Limits
from thalweg.model.graph import Floats
from thalweg.model.network import Network, Tier
from thalweg.model.placement import Placement
from thalweg.model.plan import Plan
from thalweg.model.problem import Problem
from thalweg.model.workload import Workload
from thalweg.planning import SCHEDULING_STRATEGY, require_current
from thalweg.scheduling.rewrite import Changes, count_changes
from thalweg.strategy import find_strategy, require_options

_LARGEST_RATE = 1e15
# As in `Problem`: a trend that is carried on must not end in a problem that cannot be posed.


def replay(
    application: Application,
    network: Network,
    workload: Workload,
    strategy: str = SCHEDULING_STRATEGY,
    *,
    trigger: Trigger | None = None,
    forecaster: Forecaster | None = None,
    ahead_steps: int = 1,
    options: Mapping[str, Any] | None = None,
    current: Placement | None = None,
) -> Replay:
    """Go through the workload step by step, as if it happened.

    At each step the rates change, what runs is evaluated at the new rates, and the trigger decides
    whether to keep it; without a trigger every step is planned anew. `current` is what runs before
    the first step. With a forecaster the trigger also sees what is expected within the next
    `ahead_steps` steps (only from the rates up to the present step; steps count as evenly far
    apart), and a strategy plans for the larger of present and expected rates, source by source and
    site by site, so that the plan holds now and then.

    Where no such plan is found, an adaptation plans for the present rates. One that only a forecast
    speaks for then takes, of the deployments that hold now (what runs, what was planned for the
    larger rates, what is planned for the present ones), the one with the fewest violations, then
    the least excess, at the larger rates; ties: in that order.
    """
    setting = _Setting(application, network, workload, strategy, dict(options or {}), trigger)
    setting = _require_replayable(setting, ahead_steps, current)
    rate = setting.workload.rate
    expected = None
    if forecaster is not None:
        expected = roll_forecasts(forecaster, rate, ahead_steps)
        expected = np.minimum(expected, _LARGEST_RATE)
    controller = Controller(
        application=application,
        network=network,
        strategy=strategy,
        options=setting.options,
        trigger=trigger,
    )
    steps: list[Step] = []
    running, state = current, ControllerState()
    for step, row in enumerate(rate):
        known = RatesKnown(time_s=float(setting.workload.time_s[step]), rates=setting.rates(row))
        state, _ = controller.handle(state, known)
        coming = () if expected is None else setting.forecasts(step, expected[step])
        cycle = Cycle(time_s=known.time_s, running=running, coming=coming)
        state, (said,) = controller.handle(state, cycle)
        steps.append(_carry_out(setting, said, row, running, steps))
        running = said.plan.placement if isinstance(said, Adapt) else running
    return Replay(
        application=application.name,
        network=network.name,
        strategy=strategy,
        steps=tuple(steps),
    )


@dataclass(frozen=True, eq=False)
class _Setting:
    """All that stays the same during a replay."""

    application: Application
    network: Network
    workload: Workload
    strategy: str
    options: dict[str, Any]
    trigger: Trigger | None

    @property
    def limits(self) -> Limits:
        """The application's, with the trigger's own limit of usage where it has one."""
        limits = self.application.limits
        if self.trigger is None or self.trigger.usage_most is None:
            return limits
        return replace(limits, usage=self.trigger.usage_most)

    def rates(self, row: Floats) -> dict[tuple[str, str], float]:
        return dict(zip(self.workload.births, row.tolist(), strict=True))

    def problem(self, row: Floats) -> Problem:
        return Problem(application=self.application, network=self.network, rates=self.rates(row))

    def evaluate(self, placement: Placement, row: Floats) -> Plan:
        """What a placement costs at these rates."""
        problem = self.problem(row)
        return make_plan(problem, placement, strategy=self.strategy, objective_name="usage")

    def observe(self, placement: Placement, time_s: float, row: Floats) -> Observation:
        plan = self.evaluate(placement, row)
        return Observation.of(plan, time_s, self.limits, inputs=row.tolist())

    def cuts(self, placement: Placement) -> dict[str, tuple[str, ...]]:
        """The operators in every fog site and in every edge site that is used."""
        net, app = self.network, self.application
        fogs = np.flatnonzero(net.site_tier == Tier.FOG)
        found: dict[str, dict[str, None]] = {net.site_names[s]: {} for s in fogs.tolist()}
        for instance in placement:
            site = int(net.node_site[net.node_index(instance.node)])
            if net.site_tier[site] == Tier.CLOUD:
                continue
            if app.operators[app.index[instance.operator]].kind != "source":
                found.setdefault(net.site_names[site], {})[instance.operator] = None
        order = app.index
        return {s: tuple(sorted(names, key=order.__getitem__)) for s, names in found.items()}

    def forecasts(self, step: int, coming: Floats) -> list[Forecast]:
        """The rows that are expected after a step, with how far ahead they lie."""
        return [
            Forecast(ahead_s=self.ahead_s(step, ahead), rates=self.rates(row))
            for ahead, row in enumerate(coming, start=1)
        ]

    def ahead_s(self, step: int, ahead: int) -> float:
        """How far the moment is that lies so many steps ahead; beyond the end, even steps."""
        time_s = self.workload.time_s
        if step + ahead < len(time_s):
            return float(time_s[step + ahead] - time_s[step])
        return ahead * (float(np.median(np.diff(time_s))) if len(time_s) > 1 else 0.0)


def _require_replayable(setting: _Setting, ahead_steps: int, current: Placement | None) -> _Setting:
    """The setting with a rate for every birth; raises `InvalidInput` with all its defects."""
    app, net, load = setting.application, setting.network, setting.workload
    defects = Defects()
    if defects.attempt("", lambda: find_strategy(setting.strategy)) is not None:
        defects.attempt("", lambda: require_options(setting.strategy, setting.options))
    require_steps(defects, "ahead_steps", ahead_steps)
    complete = defects.attempt("", lambda: require_workload(load, app, net))
    if complete is not None:
        setting = replace(setting, workload=complete)
        # What can be posed at the largest rates can be posed at all.
        defects.attempt("", lambda: setting.problem(complete.rate.max(axis=0)))
        defects.attempt("", lambda: require_current(current, app, net))
    defects.raise_if_any()
    return setting


def _carry_out(
    setting: _Setting,
    said: Instruction,
    present: Floats,
    running: Placement | None,
    past: list[Step],
) -> Step:
    """The row of a step in which the controller has said this."""
    before = None if said.situation is None else said.situation.observation
    chosen = said.plan.placement if isinstance(said, Adapt) else running
    if chosen is None:
        raise ValueError("a controller that knows its rates deploys something")
    if before is not None and chosen == running:
        after, changes = before, Changes(started=0, stopped=0)
    else:
        after = setting.observe(chosen, said.time_s, present)
        changes = count_changes(setting.application, running, chosen)
    asked_for = said.reason if isinstance(said, Adapt) else said.asked_for
    return Step(
        time_s=said.time_s,
        adapted=asked_for is not None,
        ahead=said.ahead,
        reason=said.reason if asked_for is None else asked_for,
        before=before,
        after=after,
        started=changes.started,
        stopped=changes.stopped,
        cuts=past[-1].cuts if past and chosen == running else setting.cuts(chosen),
        seconds=said.seconds,
    )
