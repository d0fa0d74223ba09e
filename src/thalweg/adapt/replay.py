"""Replays a workload: what runs at every step, what it costs, when and why it is adapted."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from thalweg.adapt.forecast import Forecaster, require_steps, roll_forecasts
from thalweg.adapt.observation import Observation
from thalweg.adapt.record import Replay, Step
from thalweg.adapt.trigger import Decision, Trigger, TriggerState, decide
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
from thalweg.planning import plan as find_plan
from thalweg.planning import require_current
from thalweg.scheduling.rewrite import Changes, count_changes
from thalweg.strategy import find_strategy, require_options

_LARGEST_RATE = 1e15
# As in `Problem`: a trend that is carried on must not end in a problem that cannot be posed.


def replay(
    application: Application,
    network: Network,
    workload: Workload,
    strategy: str = "atsoo",
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
    steps: list[Step] = []
    running, state = current, TriggerState()
    for step in range(len(rate)):
        coming = None if expected is None else expected[step]
        row, running, state = _take_step(setting, step, coming, running, state, steps)
        steps.append(row)
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

    def ask(self, row: Floats, running: Placement | None) -> Plan:
        """What the strategy says at these rates."""
        return find_plan(
            self.application,
            self.network,
            self.strategy,
            rates=self.rates(row),
            current=running,
            **self.options,
        )

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


def _take_step(
    setting: _Setting,
    step: int,
    coming: Floats | None,
    running: Placement | None,
    state: TriggerState,
    past: list[Step],
) -> tuple[Step, Placement, TriggerState]:
    """Look, decide, act: the row of the step, what runs after it, what the trigger remembers."""
    time_s, present = float(setting.workload.time_s[step]), setting.workload.rate[step]
    if running is None:
        before, decision = None, Decision(adapt=True, reason="first deployment")
    else:
        before = setting.observe(running, time_s, present)
        decision, state = _decide(setting, state, before, step, running, coming)
    chosen, seconds = running, 0.0
    if decision.adapt or chosen is None:
        chosen, seconds = _adapt(setting, running, present, coming, only_ahead=decision.ahead)
    if before is not None and chosen == running:
        after, changes = before, Changes(started=0, stopped=0)
    else:
        after = setting.observe(chosen, time_s, present)
        changes = count_changes(setting.application, running, chosen)
    row = Step(
        time_s=time_s,
        adapted=decision.adapt,
        ahead=decision.ahead,
        reason=decision.reason,
        before=before,
        after=after,
        started=changes.started,
        stopped=changes.stopped,
        cuts=past[-1].cuts if past and chosen == running else setting.cuts(chosen),
        seconds=seconds,
    )
    return row, chosen, state


def _decide(
    setting: _Setting,
    state: TriggerState,
    now: Observation,
    step: int,
    running: Placement,
    coming: Floats | None,
) -> tuple[Decision, TriggerState]:
    if setting.trigger is None:
        return Decision(adapt=True, reason="planned anew at every step"), state
    ahead = None
    if coming is not None:
        for index, row in enumerate(coming, start=1):
            seen = setting.observe(running, now.time_s + setting.ahead_s(step, index), row)
            # A plan is made for all that is expected, so that is what the strategy decides on.
            ahead = replace(seen, inputs=tuple(coming.max(axis=0).tolist()))
            if ahead.broken or ahead.excess_usage(setting.limits.usage):
                break
    return decide(setting.trigger, state, now, ahead)


def _adapt(
    setting: _Setting,
    running: Placement | None,
    present: Floats,
    coming: Floats | None,
    *,
    only_ahead: bool,
) -> tuple[Placement, float]:
    """What to run from now on, and how long the strategy took to say so."""
    if coming is None:
        plan = setting.ask(present, running)
        return plan.placement, plan.seconds
    larger = np.maximum(present, coming.max(axis=0))
    wide = setting.ask(larger, running)
    if wide.feasible and setting.evaluate(wide.placement, present).feasible:
        return wide.placement, wide.seconds
    narrow = setting.ask(present, running)
    seconds = wide.seconds + narrow.seconds
    if not only_ahead or running is None:
        return narrow.placement, seconds
    holding = [
        placement
        for placement in (running, wide.placement, narrow.placement)
        if setting.evaluate(placement, present).feasible
    ]
    if not holding:
        return narrow.placement, seconds
    return min(holding, key=lambda p: _badness(setting.evaluate(p, larger))), seconds


def _badness(plan: Plan) -> tuple[int, float]:
    """How many constraints a plan breaks, and by how much in all."""
    excess = [v.need / v.have if v.have > 0 else math.inf for v in plan.violations]
    return len(excess), sum(excess)
