"""`simulate`: a plan executed event by event."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any, cast

from thalweg.errors import Defects
from thalweg.files.workload_references import require_workload
from thalweg.model.application import Application
from thalweg.model.changes import Change, RateChange
from thalweg.model.network import Network
from thalweg.model.placement import Placement
from thalweg.model.plan import Plan
from thalweg.model.workload import Workload
from thalweg.simulate.control import Control
from thalweg.simulate.figures import RunFigures, tell
from thalweg.simulate.physics import Physics, physics_of, placement_physics
from thalweg.simulate.program import Program, number_programs
from thalweg.simulate.rules import (
    at_most_rates,
    pose,
    require_changes,
    require_physics,
    require_size,
    require_times,
    require_windows,
    unfold,
)
from thalweg.simulate.seeds import Seeds
from thalweg.simulate.session import Session, Setting, with_rates
from thalweg.simulate.simulation import Simulation

WARM_UP_SHARE = 0.1


@dataclass(frozen=True, eq=False, kw_only=True)
class Experiment:
    """All that makes a simulation, checked; each run of it can be done anywhere."""

    setting: Setting
    names: tuple[str, ...]
    strategies: tuple[str, ...]
    seed: int
    replications: int
    control: Control | None = None

    def run(
        self, replication: int, on_progress: Callable[[float], None] | None = None
    ) -> RunFigures:
        """One run; the same for the same seed and number, wherever it is done."""
        session = Session(self.setting, Seeds(f"{self.seed}/{replication}"))
        watch, every_s = None, math.inf
        if self.control is not None:
            watch, every_s = self.control.begin(session), self.control.interval_s
        session.run(on_progress=on_progress, watch=watch, watch_every_s=every_s)
        return tell(session)

    def summarise(self, runs: Sequence[RunFigures], wall_s: float = 0.0) -> Simulation:
        """All runs, put together."""
        setting = self.setting
        return Simulation(
            applications=self.names,
            network=setting.programs[0].problem.network.name,
            strategies=self.strategies,
            seconds=setting.seconds,
            warm_up_s=setting.warm_s,
            seed=self.seed,
            runs=tuple(runs),
            physics=tuple(_tell_physics(program.physics) for program in setting.programs),
            wall_s=wall_s,
        )


def simulate(
    application: Application | Sequence[Application],
    network: Network,
    plan: Plan | Placement | Sequence[Plan | Placement],
    *,
    seconds: float = 60.0,
    seed: int = 0,
    replications: int = 1,
    on_progress: Callable[[float], None] | None = None,
    **options: Any,
) -> Simulation:
    """Run a plan event by event, every event through every queue and link.

    Several applications that share the network are given as lists, with a plan for each. Options
    are those of `prepare`: `warm_up_s`, `rates`, `workload`, `physics`, `changes`, `control`,
    `most_events`. `on_progress` hears which part of the whole is done.

    >>> import thalweg as tw
    >>> app, net = tw.scenarios.small_taxi(), tw.scenarios.small_city()
    >>> found = tw.simulate(app, net, tw.plan(app, net, strategy="cloud-only"), seconds=5)
    >>> found.conserved, found.unstable
    (True, [])
    """
    experiment = prepare(
        application, network, plan, seconds=seconds, seed=seed, replications=replications, **options
    )
    return run_all(experiment, on_progress)


def run_all(
    experiment: Experiment, on_progress: Callable[[float], None] | None = None
) -> Simulation:
    """All runs of an experiment, one after the other."""
    started = perf_counter()
    runs = []
    for number in range(experiment.replications):
        told = None
        if on_progress is not None:
            told = partial(_tell_progress, on_progress, number, experiment)
        runs.append(experiment.run(number, told))
    return experiment.summarise(runs, perf_counter() - started)


def prepare(
    application: Application | Sequence[Application],
    network: Network,
    plan: Plan | Placement | Sequence[Plan | Placement],
    *,
    seconds: float = 60.0,
    seed: int = 0,
    replications: int = 1,
    warm_up_s: float | None = None,
    rates: Mapping[tuple[str, str], float] | None = None,
    workload: Workload | None = None,
    physics: Physics | Sequence[Physics] | None = None,
    changes: Sequence[Change] = (),
    control: Control | None = None,
    most_events: int = 20_000_000,
) -> Experiment:
    """The experiment, all of it checked; raises `InvalidInput` with everything that is wrong.

    - `warm_up_s`: what is not counted; a tenth of the time where it is not given.
    - `rates`: events/s for (source, site), of the first application; others keep theirs.
    - `workload`: rates over time, of the first application, from its first moment on.
    - `physics`: how operators and links work, of all applications or of each; as the estimate of
      each plan has it if not given.
    - `changes`: what happens on the way: plans, rates, failures, slow-downs, recoveries.
    - `control`: a strategy that watches and adapts the first application.
    - `most_events`: the run ends early when more than that wait or are under way.
    """
    defects = Defects()
    require_times(defects, seconds, warm_up_s, replications, seed, most_events)
    apps = [application] if isinstance(application, Application) else list(application)
    plans = [plan] if isinstance(plan, Plan | Placement) else list(plan)
    good = len(apps) == len(plans) and bool(apps)
    defects.require(good, "plan", f"{len(plans)} plans", f"{len(apps)}, one for each application")
    names = [getattr(app, "name", "?") for app in apps]
    distinct = len(set(names)) == len(names)
    defects.require(distinct, "application", names, "a name of its own for each")
    defects.raise_if_any()
    programs = _make_programs(apps, network, plans, rates, physics)
    timeline = list(changes)
    if workload is not None:
        load = defects.attempt("", lambda: require_workload(workload, apps[0], network))
        if load is not None:
            programs[0], more = _follow(programs[0], load, float(seconds))
            timeline += more
    require_changes(defects, changes, programs, float(seconds))
    require_windows(defects, programs)
    fastest = programs if defects else at_most_rates(programs, timeline)
    require_size(defects, fastest, float(seconds) * replications)
    if control is not None:
        control.require(defects, programs[0])
    defects.raise_if_any()
    warm_s = WARM_UP_SHARE * seconds if warm_up_s is None else warm_up_s
    return Experiment(
        setting=Setting(
            programs=programs,
            seconds=float(seconds),
            warm_s=float(warm_s),
            changes=tuple(timeline),
            most_events=most_events,
        ),
        names=tuple(names),
        strategies=tuple(p.strategy if isinstance(p, Plan) else "" for p in plans),
        seed=seed,
        replications=replications,
        control=control,
    )


def _make_programs(
    apps: Sequence[Application],
    network: Network,
    plans: Sequence[Plan | Placement],
    rates: Mapping[tuple[str, str], float] | None,
    physics: Physics | Sequence[Physics] | None,
) -> list[Program]:
    """The applications on the network, each as its plan has it; raises all that does not fit."""
    defects = Defects()
    several = len(apps) > 1
    problems = [
        defects.attempt(
            f"plans[{k}]" if several else "",
            partial(pose, app, network, placed, rates if not k else None),
        )
        for k, (app, placed) in enumerate(zip(apps, plans, strict=True))
    ]
    defects.raise_if_any()
    posed = [problem for problem in problems if problem is not None]
    if physics is None:
        own = [_physics_of(p) for p in plans]
    else:
        each = physics if isinstance(physics, list | tuple) else [physics] * len(plans)
        own = cast("list[Physics]", list(each))
        require_physics(defects, own, posed)
        defects.raise_if_any()
    placements = [p.placement if isinstance(p, Plan) else p for p in plans]
    programs = number_programs(posed, placements, own)
    for k, program in enumerate(programs):
        defects.attempt(f"plans[{k}]" if several else "", partial(unfold, program))
    defects.raise_if_any()
    return programs


def _physics_of(plan: Plan | Placement) -> Physics:
    return physics_of(plan) if isinstance(plan, Plan) else placement_physics()


def _follow(program: Program, load: Workload, seconds: float) -> tuple[Program, list[RateChange]]:
    """The program at the first rates of a workload, and the changes that follow."""
    begin_s = float(load.time_s[0])
    changes = []
    for moment, rates in load:
        at_s = moment - begin_s
        if at_s >= seconds:
            break
        if at_s == 0:
            program = with_rates(program, rates)
        else:
            name = program.problem.application.name
            changes.append(RateChange(at_s=at_s, rates=rates, application=name))
    return program, changes


def _tell_progress(
    on_progress: Callable[[float], None], number: int, experiment: Experiment, now_s: float
) -> None:
    on_progress((number + now_s / experiment.setting.seconds) / experiment.replications)


def _tell_physics(physics: Physics) -> dict[str, Any]:
    def name(value: object) -> str:
        return type(value).__name__.lower()

    service = physics.service
    return {
        "cpu": physics.cpu,
        "windows": physics.windows,
        "ends_work": physics.ends_work,
        "service": "estimated" if service is None else name(service),
        "transfer": name(physics.transfer),
        "arrivals": name(physics.arrivals),
        "even": physics.even,
    }
