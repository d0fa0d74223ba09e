"""The independent checker: it shares no code with the strategies or their estimators.

It is written to be read beside the papers, in plain Python over dictionaries, and is slow where
the estimators are fast. Every plan that any strategy returns is checked in the tests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, overload

if TYPE_CHECKING:
    from collections.abc import Mapping

    from thalweg.model import Application, Network, Placement, Plan, Problem, Violation


@overload
def check(plan: Plan | Placement, application: Problem) -> list[Violation]: ...


@overload
def check(
    plan: Plan | Placement,
    application: Application,
    network: Network,
    *,
    rates: Mapping[tuple[str, str], float] | None = None,
) -> list[Violation]: ...


def check(
    plan: Plan | Placement,
    application: Application | Problem,
    network: Network | None = None,
    *,
    rates: Mapping[tuple[str, str], float] | None = None,
) -> list[Violation]:
    """Every constraint that the plan violates; an empty list where it meets them all.

    Takes `check(plan, application, network)` or `check(plan, problem)`. A placement that does not
    even describe a deployment (operators missing, unknown nodes) is answered with what is missing.
    """
    # Imported here so that `thalweg.check` costs nothing until something is checked.
    from thalweg.check.capacity import check_links, check_nodes, check_queues
    from thalweg.check.limits import check_limits
    from thalweg.check.traffic import measure_traffic
    from thalweg.check.unfold import check_positions, unfold
    from thalweg.errors import Defect, InvalidInput
    from thalweg.model import Placement, Plan, Problem

    if isinstance(application, Problem):
        problem = application
    elif network is None:
        raise TypeError("check(plan, application, network): the network is missing")
    else:
        problem = Problem(application=application, network=network, rates=rates)
    placement: object = plan.placement if isinstance(plan, Plan) else plan
    if not isinstance(placement, Placement):
        rule = "a Plan or a Placement"
        raise InvalidInput([Defect(path="plan", value=type(plan).__name__, rule=rule)])
    unfolded, broken = unfold(problem, placement)
    if broken:
        return broken
    traffic = measure_traffic(problem, unfolded)
    return [
        *check_positions(problem, unfolded),
        *check_nodes(problem, unfolded, traffic),
        *check_queues(problem, unfolded, traffic),
        *check_links(problem, traffic),
        *check_limits(problem, unfolded, traffic),
    ]
