"""One call from an application and a network to a plan."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

from thalweg.compiling import plain_loops
from thalweg.errors import Defects, StrategyError
from thalweg.strategy import find_strategy, require_options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from thalweg.model import Application, Network, Placement, Plan, Problem

PLACEMENT_STRATEGY = "aels-rp-la-free"
"""What plans by default where each operator may run on any node."""
SCHEDULING_STRATEGY = "atsoo-both-ways"
"""What plans by default where streams are cut between fog and cloud."""


def plan(
    application: Application,
    network: Network,
    strategy: str | None = None,
    *,
    rates: Mapping[tuple[str, str], float] | None = None,
    current: Plan | Placement | None = None,
    **options: Any,
) -> Plan:
    """Where each operator should run, by the named strategy, else by that of the problem's family.

    `rates` gives events/s for (source, site) where they differ from an even split; `current` is
    what runs now; other keywords are options of the strategy.
    """
    return _pose_and_plan(application, network, strategy, rates, current, options)[1]


def family_strategy(problem: Problem) -> str:
    """The name of the strategy that plans a problem for which none is named."""
    return SCHEDULING_STRATEGY if is_scheduling(problem) else PLACEMENT_STRATEGY


def is_scheduling(problem: Problem) -> bool:
    """Whether the application has limits, and its streams can be cut between fog and cloud.

    They can where every source is in fog sites, one cloud node can run all sinks, and nothing
    between them is pinned. All other problems are problems of placement.
    """
    from thalweg.errors import InvalidInput
    from thalweg.model import Limits

    if problem.application.limits == Limits():
        return False
    from thalweg.scheduling.traffic import find_cloud

    try:
        find_cloud(problem)
    except InvalidInput:
        return False
    return True


def _pose_and_plan(
    application: Application,
    network: Network,
    strategy: str | None,
    rates: Mapping[tuple[str, str], float] | None,
    current: Plan | Placement | None,
    options: dict[str, Any],
) -> tuple[Problem, Plan]:
    from thalweg.model import Plan, Problem

    defects = Defects()
    problem = defects.attempt(
        "", lambda: Problem(application=application, network=network, rates=rates)
    )
    if strategy is None and problem is not None:
        strategy = family_strategy(problem)
    name = strategy or ""
    chosen = None
    if strategy is not None:
        chosen = defects.attempt("", lambda: find_strategy(name))
    if chosen is not None:
        defects.attempt("", lambda: require_options(name, options))
    defects.attempt("", lambda: require_current(current, application, network))
    defects.raise_if_any()
    if chosen is None or problem is None:  # Each attempt that gives nothing has been told.
        raise StrategyError("a problem that was not told")
    running = current.placement if isinstance(current, Plan) else current
    return problem, call_strategy(chosen, problem, running, name=name, **options)


def call_strategy(
    strategy: Callable[..., Plan],
    problem: Problem,
    current: Placement | None = None,
    *,
    name: str,
    **options: Any,
) -> Plan:
    """The plan of a strategy, with how long it took.

    Raises:
        StrategyError: where it returns something else.
    """
    from thalweg.model import Plan

    cells = len(problem.application.operators) * int(problem.network.node_site.size)
    began_s = perf_counter()
    with plain_loops(cells):
        found = strategy(problem, current, **options)
    if not isinstance(found, Plan):
        raise StrategyError(f"{name} returned {type(found).__name__}, not a Plan")
    return replace(found, seconds=perf_counter() - began_s)


def require_current(current: object, application: Application, network: Network) -> None:
    """Raise `InvalidInput` unless `current` can be what runs now."""
    from thalweg.model import Placement, Plan

    defects = Defects()
    if isinstance(current, Plan):
        for part, other in (("application", application), ("network", network)):
            name, wanted = getattr(current, part), getattr(other, "name", "")
            rule = f'a plan for the {part} "{wanted}"'
            defects.require(name == wanted, f"current.{part}", name, rule)
    elif current is not None and not isinstance(current, Placement):
        defects.add("current", type(current).__name__, "a Plan, a Placement or None")
    defects.raise_if_any()


def plan_all(
    applications: Sequence[Application],
    network: Network,
    strategy: str | None = None,
    *,
    rates: Sequence[Mapping[tuple[str, str], float] | None] | None = None,
    current: Sequence[Plan | Placement | None] | None = None,
    **options: Any,
) -> list[Plan]:
    """Plans for applications that share the network, the first one's wishes first.

    What a plan takes is not available to the applications after it. The CPU of a node is shared by
    the operators of all: of those planned before as they are planned, of those after as they run
    now (`current`), since they will still be there.
    """
    turns = plan_in_turn(applications, network, strategy, rates=rates, current=current, **options)
    return [turn.plan for turn in turns]


class Turn(NamedTuple):
    """One application's turn on a shared network."""

    plan: Plan
    problem: Problem
    """What it was asked: on what the others left, with their operators counted."""
    left: Network
    """What it leaves to those after it."""


def plan_in_turn(
    applications: Sequence[Application],
    network: Network,
    strategy: str | None = None,
    *,
    rates: Sequence[Mapping[tuple[str, str], float] | None] | None = None,
    current: Sequence[Plan | Placement | None] | None = None,
    count_later: bool = True,
    **options: Any,
) -> Iterator[Turn]:
    """What `plan_all` finds, one after the other, each with what it met and what it leaves.

    Without `count_later` an application is planned as if those after it were not there yet.
    """
    from thalweg.estimate.sharing import crowd, leave_to_others
    from thalweg.model import Plan, Problem

    count = len(applications)
    asked, running = list(rates or [None] * count), list(current or [None] * count)
    defects = Defects()
    for name, given in (("rates", asked), ("current", running)):
        defects.require(len(given) == count, name, len(given), f"{count}, one for each application")
    names = [getattr(app, "name", None) for app in applications]
    defects.require(len(set(names)) == count, "applications", names, "a name of its own for each")
    for k, placed in enumerate(running[:count]):
        defects.attempt(f"[{k}]", partial(require_current, placed, applications[k], network))
    defects.raise_if_any()
    shared = network
    for k, application in enumerate(applications):
        around = shared
        for other in range(k + 1, count if count_later else 0):
            placed = running[other]
            if placed is not None:
                placement = placed.placement if isinstance(placed, Plan) else placed
                there = Problem(application=applications[other], network=network)
                around = crowd(there, placement, around)
        problem, found = _pose_and_plan(
            application, around, strategy, asked[k], running[k], options
        )
        shared = leave_to_others(problem, found.placement, shared)
        yield Turn(found, problem, shared)
