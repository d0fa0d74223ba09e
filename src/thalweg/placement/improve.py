"""`improve`: takes a placement and moves operators while the aggregate latency falls.

Single operators, pairs, clusters on one node or in one site, and swaps of two; every move is judged
by its exact effect on the aggregate latency, on constraints (9)–(15) of da Silva Veith et al.,
Latency-Aware Strategies for Deploying Data Stream Processing Applications on Large Cloud-Edge
Infrastructure, and on the limits of the application. The best node for an operator is found among
all nodes at the price of one look at each group of equal nodes in each site.
"""

from __future__ import annotations

from time import perf_counter

from thalweg.errors import Defects
from thalweg.estimate.evaluate import make_plan
from thalweg.model.placement import Placement
from thalweg.model.plan import Plan, Reason
from thalweg.model.problem import Problem
from thalweg.placement.local_search.descents import Found, Kept, load_all_compiled, search_locally
from thalweg.strategy import strategy

RESTARTS = 12


@strategy("improve", "moves operators of any plan while the aggregate latency falls")
def improve(
    problem: Problem,
    current: Placement | None = None,
    *,
    time_limit_s: float = 1.0,
    seed: int = 0,
    restarts: int = RESTARTS,
) -> Plan:
    """The best placement that descents from `current` and from other strategies' plans reach.

    First from `current`, then from what aels-rp-la-free, aels, aels-rp, cloud-only and
    tcep-best-fit choose, then `restarts` times from the best so far with some operators put
    elsewhere at random (`seed`). The answer is never worse than any of the placements that it
    began with; the plans of all of these are made before the first move, as far as there is time.
    Unless the time limit ends the search, the answer is the same for the same seed; the first
    operator's reasons tell.

    A placement that violates something is repaired first: moves lower the sum of all relative
    excesses, then the latency. Sources stay where they are, operators pinned to a node go there. A
    `current` placement with replicas is kept as it is: which events each of them gets is not for
    this search to say. So is one that uses more sites of a routed network than can be searched.
    """
    defects = Defects()
    require_seconds(defects, time_limit_s)
    require_whole(defects, seed=seed, restarts=restarts)
    defects.raise_if_any()
    load_all_compiled()
    started = perf_counter()
    found = search_locally(
        problem, current, deadline=started + time_limit_s, seed=seed, restarts=restarts
    )
    if isinstance(found, Kept):
        return found.plan(problem, "improve", started)
    return make_plan(
        problem,
        found.board.place(found.search.best_nodes),
        strategy="improve",
        reasons=[_story(found), *_reasons(found)],
        seconds=perf_counter() - started,
        candidates=found.search.candidates,
    )


def require_seconds(defects: Defects, time_limit_s: object) -> None:
    """Remember a defect unless the time limit is a number of seconds."""
    number = isinstance(time_limit_s, (int, float)) and not isinstance(time_limit_s, bool)
    good = number and time_limit_s >= 0  # type: ignore[operator]
    defects.require(good, "time_limit_s", time_limit_s, "a number of seconds >= 0")


def require_whole(defects: Defects, **options: object) -> None:
    """Remember a defect for each option that is no whole number >= 0."""
    for name, value in options.items():
        whole = isinstance(value, int) and not isinstance(value, bool) and value >= 0
        defects.require(whole, name, value, "a whole number >= 0")


def _story(found: Found) -> Reason:
    """What was searched, told with the first operator that is not a source."""
    search = found.search
    operators = found.board.problem.application.operators
    ended = "the time was up in one more" if search.stopped else "each to a local optimum"
    remains = f", violations of {search.violation:.3g} remain" if search.violation > 0 else ""
    return Reason(
        operator=next(o.name for o in operators if o.kind != "source"),
        why=f"{search.descents} descents, {ended}; aggregate latency {search.first_latency_s:.6g} s"
        f" → {search.latency_s:.6g} s{remains}",
    )


def _reasons(found: Found) -> list[Reason]:
    """For each operator where it came from, and what its next best node would have cost."""
    board, search = found.board, found.search
    net, before = board.problem.network, board.nodes_of(found.first)
    reasons = [
        Reason(operator=source.name, why=f"born in {source.pin}")
        for source in board.problem.application.sources
    ]
    next_best = {copy: rest for copy, *rest in search.runners_up()}
    for copy, index in enumerate(board.skeleton.operator.tolist()):
        operator = board.problem.application.operators[index]
        if operator.kind == "source":
            continue
        here, why = int(search.best_nodes[copy]), "no other node is better"
        if copy not in board.movable:
            why = f"pinned to {operator.pin}"
        elif before is None or before[copy] != here:
            why = "moved" if before is None else f"moved from {net.node_name(int(before[copy]))}"
        node, cost, weighed = next_best.get(copy, (-1, 0.0, 0))
        reasons.append(
            Reason(
                operator=operator.name,
                why=why,
                cost=search.latency_s if copy in next_best else None,
                cost_name="aggregate latency [s]" if copy in next_best else "",
                considered=int(weighed),
                runner_up=net.node_name(int(node)) if node >= 0 else None,
                runner_up_cost=float(cost) if node >= 0 else None,
            )
        )
    return reasons
