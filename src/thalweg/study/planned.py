"""Every strategy on one problem: its plan, how long it took, and its figures as a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

from thalweg.compiling import count_loops, report_compiling
from thalweg.errors import Defects, InvalidInput
from thalweg.estimate.latency import aggregate_window_s
from thalweg.model import Network, Placement, Plan, Problem, deploy
from thalweg.model.plan_figures import PlanFigures
from thalweg.planning import call_strategy
from thalweg.strategy import find_strategy, require_options

Row: TypeAlias = dict[str, Any]

_MAX_TURNS = 3
# Strategies that have had a call on a network that did not count: what they need is made.
_warmed: WeakKeyDictionary[Network, set[str]] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What comes of a strategy: a plan, or why it cannot take the problem."""

    strategy: str
    plan: Plan | None = None
    refused: InvalidInput | None = None

    @property
    def refusal(self) -> str | None:
        """Why there is no plan, in a line; None where there is one."""
        if self.refused is None:
            return None
        return "; ".join(str(defect) for defect in self.refused.defects)


def require_strategies(
    defects: Defects, strategies: object, options: Mapping[str, Any]
) -> tuple[str, ...]:
    """The names of strategies that there are; remembers what is wrong with them."""
    if isinstance(strategies, str):
        names = [strategies]
    elif isinstance(strategies, Sequence):
        names = list(strategies)
    else:
        defects.add("strategies", strategies, "a list of names of strategies")
        return ()
    defects.require(bool(names), "strategies", names, "at least one strategy")
    defects.require(len(set(names)) == len(names), "strategies", names, "each strategy once")
    known = []
    for name in names:
        found = defects.attempt("", lambda name=name: find_strategy(name))  # type: ignore[misc]
        if found is not None:
            known.append(name)
    if known:
        try:
            require_options("+".join(known), dict(options))
        except InvalidInput as error:
            rule = "an option of one of the strategies"
            defects.absorb(InvalidInput(replace(d, rule=rule) for d in error.defects))
    return tuple(known)


def plan_each(
    problem: Problem,
    strategies: Sequence[str],
    options: Mapping[str, Any],
    current: Placement | None = None,
) -> list[Outcome]:
    """The outcome of each strategy; an option goes to every strategy that takes it.

    Raises:
        InvalidInput: where the value of an option is wrong.
    """
    return [_plan_one(problem, name, options, current) for name in strategies]


def _plan_one(
    problem: Problem, name: str, options: Mapping[str, Any], current: Placement | None
) -> Outcome:
    own = {key: value for key, value in options.items() if _takes(name, key)}
    _warm_up(problem, name, own, current)
    try:
        plan = _call_settled(problem, name, own, current)
    except InvalidInput as error:
        if any(defect.path in options for defect in error.defects):
            raise
        return Outcome(strategy=name, refused=error)
    return Outcome(strategy=name, plan=plan)


def _warm_up(
    problem: Problem, name: str, options: Mapping[str, Any], current: Placement | None
) -> None:
    """Let all that a first call on a network makes be made, so that no strategy pays for others.

    Strategies with a time limit would take all of it.
    """
    warmed = _warmed.setdefault(problem.network, set())
    for part in name.split("+"):
        if part not in warmed and not _takes(part, "time_limit_s"):
            known = {key: value for key, value in options.items() if _takes(part, key)}
            with suppress(InvalidInput):
                call_strategy(find_strategy(part), problem, current, name=part, **known)
        warmed.add(part)


def _call_settled(
    problem: Problem, name: str, options: Mapping[str, Any], current: Placement | None
) -> Plan:
    """The plan of a call in which nothing was compiled or loaded, if there is one soon."""
    strategy = find_strategy(name)
    for _ in range(_MAX_TURNS):
        compiled: list[bool] = []
        loops = count_loops()
        with report_compiling(lambda heard=compiled: heard.append(True)):  # type: ignore[misc]
            plan = call_strategy(strategy, problem, current, name=name, **options)
        if count_loops() == loops and not compiled:
            break
    return plan


def _takes(name: str, option: str) -> bool:
    try:
        require_options(name, {option: None})
    except InvalidInput:
        return False
    return True


def figure_row(problem: Problem, outcome: Outcome, before: Placement | None) -> Row:
    """The figures of an outcome; without a plan all of them are None.

    `before` is what the operators moved from, if anything was there.
    """
    plan = outcome.plan
    if plan is None:
        return {**dict.fromkeys(_COLUMNS), "strategy": outcome.strategy, "refusal": outcome.refusal}
    estimate = plan.estimate
    figures = PlanFigures(plan, aggregate_window_s(deploy(problem, plan.placement)))
    return {
        "strategy": outcome.strategy,
        "feasible": plan.feasible,
        "violations": "; ".join(str(violation) for violation in plan.violations),
        "objective_name": plan.objective_name,
        "objective": plan.objective,
        "aggregate_latency_s": estimate.aggregate_latency_s,
        "latency_without_windows_s": figures.without_windows_s,
        "worst_latency_s": estimate.worst_latency_s,
        "response_time_s": estimate.response_time_s,
        "uplink_bps": estimate.uplink_bps,
        "usage": estimate.usage,
        "delay_product_bits": estimate.delay_product_bits,
        "moved": None if before is None else count_moved(before, plan.placement),
        "seconds": plan.seconds,
        "candidates": plan.candidates,
        "gap": plan.gap,
        "simulated_latency_s": None,
        "simulated_p99_s": None,
        "refusal": None,
        "note": None,
    }


_COLUMNS = (
    "strategy", "feasible", "violations", "objective_name", "objective", "aggregate_latency_s",
    "latency_without_windows_s", "worst_latency_s", "response_time_s", "uplink_bps", "usage",
    "delay_product_bits", "moved", "seconds", "candidates", "gap", "simulated_latency_s",
    "simulated_p99_s", "refusal", "note",
)  # fmt: skip


def count_moved(before: Placement, after: Placement) -> int:
    """How many operators have an instance that starts, stops or runs on another node."""
    old = {(i.operator, i.origin): i.node for i in before}
    new = {(i.operator, i.origin): i.node for i in after}
    pairs = old.keys() | new.keys()
    return len({operator for operator, origin in pairs
                if old.get((operator, origin)) != new.get((operator, origin))})  # fmt: skip
