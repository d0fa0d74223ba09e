"""A strategy of one's own in one file: held against its promises, compared with the others.

    python examples/custom_strategy.py

`to-neighbours` puts everything into the best cloud, then moves operators one by one to where a
sender or a receiver of theirs is, for as long as that makes the plan better. It is a pattern for
yours: a function of the problem that returns a plan, registered by a name. In a package of its own,
an entry point has it found everywhere: see `first_fit/`.
"""

from __future__ import annotations

import sys

import numpy as np

import thalweg as tw
from thalweg.estimate.evaluate import make_plan
from thalweg.model.network import Tier
from thalweg.testing import check_strategy

NAME = "to-neighbours"
OTHERS = ("aels", "aels-rp", "aels-rp-la-free", "tcep-best-fit", "cloud-only", "exact")


@tw.strategy(NAME, "all in the best cloud, then one by one to a sender or a receiver")
def to_neighbours(
    problem: tw.Problem, current: tw.Placement | None = None, *, rounds: int = 3
) -> tw.Plan:
    """Options come after `*`. Operators go in their order; of equal hosts the first one stays."""
    births, operators = problem.births, problem.application.operators
    movable = [k for k, operator in enumerate(operators) if operator.kind != "source"]

    def plan_for(hosts: dict[int, int], candidates: int) -> tw.Plan:
        placement = tw.Placement.from_indices(
            problem,
            # Sources run where they are born, once for each site.
            operator=np.concatenate([births.operator, list(hosts)]),
            node=np.concatenate([births.node, list(hosts.values())]),
            origin=np.concatenate([births.site, np.full(len(hosts), -1)]),
        )
        return make_plan(problem, placement, strategy=NAME, candidates=candidates)

    def in_cloud(cloud: int) -> dict[int, int]:
        pins = ((k, problem.allowed_nodes(k)) for k in movable)
        return {k: cloud if pin is None or cloud in pin else int(pin[0]) for k, pin in pins}

    clouds = _clouds(problem)
    hosts = min(map(in_cloud, clouds), key=lambda hosts: _rank(plan_for(hosts, 1)))
    best, tried = plan_for(hosts, len(clouds)), len(clouds)
    for _ in range(rounds):
        before = best
        for k in hosts:
            for node in _neighbours(problem, k, hosts):
                tried += 1
                plan = plan_for(hosts | {k: node}, tried)
                if _rank(plan) < _rank(best):
                    best, hosts[k] = plan, node
        if best is before:
            break
    return plan_for(hosts, tried)


def _clouds(problem: tw.Problem) -> list[int]:
    """The nodes of all clouds; in a network without any, of all sites."""
    network = problem.network
    found = np.flatnonzero(network.site_tier[network.node_site] == Tier.CLOUD).tolist()
    return found or list(range(network.node_count))


def _neighbours(problem: tw.Problem, operator: int, hosts: dict[int, int]) -> list[int]:
    """Where the senders and receivers of an operator run, as far as it may run there."""
    index, births, found = problem.application.index, problem.births, set[int]()
    for stream in problem.application.streams:
        ends = index[stream.source], index[stream.target]
        for other in ends if operator in ends else ():
            born = births.node[births.operator == other].tolist()
            found |= set(born) if born else {hosts[other]}
    pin = problem.allowed_nodes(operator)
    return sorted(found if pin is None else found & set(pin.tolist()))


def _rank(plan: tw.Plan) -> tuple[int, float, float]:
    """Less violated is better, then less latency; both tell apart plans that are not feasible."""
    return len(plan.violations), plan.aggregate_latency, plan.estimate.usage


def main() -> int:
    """Check it, then plan two problems with it and with the others."""
    report = check_strategy(to_neighbours)
    print(
        f"{NAME} keeps every promise on {report.problems} problems: "
        f"{report.feasible} feasible plans, {report.refused} refused"
    )
    for sites, devices in ((3, 4), (10, 20)):
        network = tw.scenarios.cloud_edge(2, sites, devices, seed=1)
        application = tw.scenarios.random_application("stats", network, seed=6)
        found = tw.compare(application, network, [NAME, *OTHERS], time_limit_s=60.0)
        print(f"\n{found.headline}, {network.node_count} nodes")
        show(*found.table())
        gap = {plan.strategy: plan.gap for plan in found.plans}["exact"]
        print("no placement has less than exact" if gap == 0 else f"gap of exact: {gap}")
    return 0


def show(titles: list[str], rows: list[list[str]]) -> None:
    """Columns, as wide as they have to be."""
    table = [titles[:4], *(row[:4] for row in rows)]
    widths = [max(len(row[k]) for row in table) for k in range(4)]
    for row in table:
        print(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        )


if __name__ == "__main__":
    sys.exit(main())
