"""One call from an application and a network to a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from thalweg.errors import Defects, StrategyError
from thalweg.strategy import find_strategy, require_options

if TYPE_CHECKING:
    from collections.abc import Mapping

    from thalweg.model import Application, Network, Placement, Plan

DEFAULT_STRATEGY = "cloud-only"


def plan(
    application: Application,
    network: Network,
    strategy: str = DEFAULT_STRATEGY,
    *,
    rates: Mapping[tuple[str, str], float] | None = None,
    current: Plan | Placement | None = None,
    **options: Any,
) -> Plan:
    """Where each operator should run, by the named strategy.

    `rates` gives events/s for (source, site) where they differ from an even split; `current` is
    what runs now; other keywords are options of the strategy.
    """
    from thalweg.model import Plan, Problem

    defects = Defects()
    chosen = defects.attempt("", lambda: find_strategy(strategy))
    if chosen is not None:
        defects.attempt("", lambda: require_options(strategy, options))
    problem = defects.attempt(
        "", lambda: Problem(application=application, network=network, rates=rates)
    )
    defects.attempt("", lambda: require_current(current, application, network))
    defects.raise_if_any()
    if chosen is None or problem is None:  # Each attempt that gives nothing has been told.
        raise StrategyError("a problem that was not told")
    running = current.placement if isinstance(current, Plan) else current
    found = chosen(problem, running, **options)
    if not isinstance(found, Plan):
        raise StrategyError(f"{strategy} returned {type(found).__name__}, not a Plan")
    return found


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
