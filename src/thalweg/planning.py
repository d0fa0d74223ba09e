"""One call from an application and a network to a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from thalweg.errors import StrategyError
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

    chosen = find_strategy(strategy)
    require_options(strategy, options)
    problem = Problem(application=application, network=network, rates=rates)
    running = current.placement if isinstance(current, Plan) else current
    found = chosen(problem, running, **options)
    if not isinstance(found, Plan):
        raise StrategyError(f"{strategy} returned {type(found).__name__}, not a Plan")
    return found
