"""What a simulation must be given, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from thalweg.errors import Defects
from thalweg.estimate.rates import estimate_rates
from thalweg.model.application import Application
from thalweg.model.changes import Change, PlanChange, RateChange, SpeedChange
from thalweg.model.deployment import Deployment
from thalweg.model.network import Network
from thalweg.model.operator import TimeWindow
from thalweg.model.placement import Placement
from thalweg.model.plan import Plan
from thalweg.model.problem import Problem
from thalweg.planning import require_current
from thalweg.simulate.physics import Physics
from thalweg.simulate.program import Program, locate_tokens
from thalweg.simulate.session import with_rates

_LONGEST_S = 1e9


_MOST_BORN = 1e12


_MOST_REPLICATIONS = 100_000


_MOST_COPIES = 100_000


_MOST_SLIDES = 1_000_000


def unfold(program: Program) -> Deployment:
    """The placement of a program unfolded; raises where it does not fit."""
    locate_tokens(program)
    return program.deployment


def pose(
    application: Application,
    network: Network,
    plan: Plan | Placement,
    rates: Mapping[tuple[str, str], float] | None,
) -> Problem:
    """The problem that a plan answers; raises where it answers another one."""
    problem = Problem(application=application, network=network, rates=rates)
    defects = Defects()
    if isinstance(plan, Plan):
        for part, other in (("application", application), ("network", network)):
            name, wanted = getattr(plan, part), other.name
            rule = f'a plan for the {part} "{wanted}"'
            defects.require(name == wanted, f"plan.{part}", name, rule)
    else:
        require_current(plan, application, network)
    defects.raise_if_any()
    return problem


def require_times(
    defects: Defects,
    seconds: float,
    warm_up_s: float | None,
    replications: int,
    seed: int,
    most_events: int,
) -> None:
    """Remember times and counts that make no run."""
    number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    good = number and math.isfinite(seconds) and 0 < seconds <= _LONGEST_S
    defects.require(good, "seconds", seconds, f"a duration > 0 s, at most {_LONGEST_S:g} s")
    if warm_up_s is not None and good:
        number = isinstance(warm_up_s, int | float) and not isinstance(warm_up_s, bool)
        number = number and math.isfinite(warm_up_s)
        rule = "a duration >= 0 s, shorter than the run"
        defects.require(number and 0 <= warm_up_s < seconds, "warm_up_s", warm_up_s, rule)
    for name, value, least, most in (
        ("replications", replications, 1, _MOST_REPLICATIONS),
        ("seed", seed, 0, 2**63 - 1),
        ("most_events", most_events, 1, 10**9),
    ):
        whole = isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
        defects.require(whole, name, value, f"a whole number from {least:,} to {most:,}")


def require_physics(defects: Defects, physics: Sequence[object], posed: Sequence[Problem]) -> None:
    """Remember what is no physics, or names what is not there."""
    rule = f"{len(posed)}, one for each application"
    defects.require(len(physics) == len(posed), "physics", len(physics), rule)
    own = Defects()
    names = [operator.name for problem in posed for operator in problem.application.operators]
    pairs = {pair for problem in posed for pair in problem.birth_rates}
    for each in physics:
        if isinstance(each, Physics):
            each.require_names(own, names, pairs)
        else:
            own.add("", type(each).__name__, "a Physics")
    defects.attempt("physics", own.raise_if_any)


def require_changes(
    defects: Defects, changes: Sequence[object], programs: Sequence[Program], seconds: float
) -> None:
    """Remember changes that cannot be made."""
    names = [program.problem.application.name for program in programs]
    network = programs[0].problem.network
    for position, change in enumerate(changes):
        path = f"changes[{position}]"
        if not isinstance(change, PlanChange | RateChange | SpeedChange):
            defects.add(path, type(change).__name__, "a PlanChange, RateChange or SpeedChange")
            continue
        rule = f"a time before the end, {seconds:g} s"
        defects.require(change.at_s < seconds, f"{path}.at_s", change.at_s, rule)
        if isinstance(change, SpeedChange):
            change.find(defects, path, network)
            continue
        if change.application is not None and change.application not in names:
            rule = f"one of {', '.join(names)}"
            defects.add(f"{path}.application", change.application, rule)
            continue
        program = programs[names.index(change.application) if change.application else 0]
        defects.attempt(path, partial(_try_change, program, change))


def _try_change(program: Program, change: PlanChange | RateChange) -> None:
    """Raise what is wrong with a change before anything runs."""
    if isinstance(change, RateChange):
        with_rates(program, change.rates)
        return
    plan = change.plan
    problem = program.problem
    if isinstance(plan, Plan):
        pose(problem.application, problem.network, plan, None)
    placed = plan.placement if isinstance(plan, Plan) else plan
    unfold(replace(program, placement=placed))


def require_size(defects: Defects, programs: Sequence[Program], seconds: float) -> None:
    """A run that nobody would live to see the end of is refused."""
    hops = sum(
        float(rates.events_in.sum() + rates.flow.sum())
        for rates in (estimate_rates(program.deployment) for program in programs)
    )
    rule = f"at most {_MOST_BORN:g} hops in all"
    hint = "fewer seconds, replications or events/s"
    shown = f"{hops * seconds:.3g} hops: {hops:.3g}/s for {seconds:g} s in all runs"
    defects.require(hops * seconds <= _MOST_BORN, "seconds", shown, rule, hint)


def at_most_rates(programs: Sequence[Program], timeline: Sequence[Change]) -> list[Program]:
    """The programs with every rate as high as it gets on the way."""
    found = list(programs)
    names = [program.problem.application.name for program in programs]
    highest: dict[int, dict[tuple[str, str], float]] = {}
    for change in timeline:
        if isinstance(change, RateChange):
            number = names.index(change.application) if change.application else 0
            most = highest.setdefault(number, {})
            for pair, rate in change.rates.items():
                most[pair] = max(most.get(pair, 0.0), rate)
    for number, rates in highest.items():
        for pair, rate in found[number].problem.birth_rates.items():
            rates[pair] = max(rates.get(pair, 0.0), rate)
        found[number] = with_rates(found[number], rates)
    return found


def require_windows(defects: Defects, programs: Sequence[Program]) -> None:
    """One event that fills memory is refused, and a window of too many slides."""
    for program in programs:
        for position, operator in enumerate(program.problem.application.operators):
            path, window = f"operators[{position}]", operator.window
            rule = f"at most {_MOST_COPIES:,} events of one, to be simulated"
            share = operator.selectivity
            defects.require(share <= _MOST_COPIES, f"{path}.selectivity", share, rule)
            if isinstance(window, TimeWindow):
                slides = window.length / window.slide
                rule = f"a length of at most {_MOST_SLIDES:,} slides, to be simulated"
                defects.require(slides <= _MOST_SLIDES, f"{path}.window", f"{slides:g}", rule)
