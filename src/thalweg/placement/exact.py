"""`exact`: the placement with the least aggregate latency of all, with proof.

The aggregate latency is a sum over operators and over pairs of neighbours. Without the constraints
that tie operators together (CPU, memory and bandwidth of what they share) its least is found by
taking out one operator after the other; that is the bound of a depth-first search over nodes which
heeds them all. Nodes that differ in LAN latency alone are one place for the bound.
"""

from __future__ import annotations

import math
from time import perf_counter

from thalweg.errors import Defects
from thalweg.estimate.evaluate import make_plan
from thalweg.model.placement import Placement
from thalweg.model.plan import Plan, Reason
from thalweg.model.problem import Problem
from thalweg.placement.branch_and_bound.bounds import Bounds
from thalweg.placement.branch_and_bound.search import Answer, load_compiled_search, search_all
from thalweg.placement.improve import require_seconds, require_whole
from thalweg.placement.local_search.descents import Found, Kept, load_all_compiled, search_locally
from thalweg.strategy import strategy

MOST_STEPS = 1_000_000
_RESTARTS = 4
# The share of the time that goes into finding a good placement before the proof begins.
_FIRST_SHARE = 0.3


@strategy("exact", "the least aggregate latency of all placements, with a proven gap")
def exact(
    problem: Problem,
    current: Placement | None = None,
    *,
    time_limit_s: float = 10.0,
    gap: float = 0.0,
    most_steps: int = MOST_STEPS,
) -> Plan:
    """The optimum, or the best that was found with what it can miss at most.

    Begins with what `improve` finds (from `current`, too). The search ends when nothing is left to
    look at, when no placement can be better by more than `gap`, after `most_steps` placements or at
    the time limit, whichever comes first; the plan's gap is proven in every case, 0 for the
    optimum. Only the time limit makes the answer depend on the machine.

    Where no placement keeps every constraint and limit, the plan has the one that violates least of
    those found, and the reasons say that there is none, if that is proven, or that none was found.
    Every source runs where it is born and every other operator once; a `current` placement with
    replicas is kept as it is.
    """
    defects = Defects()
    require_seconds(defects, time_limit_s)
    require_whole(defects, most_steps=most_steps)
    number = isinstance(gap, (int, float)) and not isinstance(gap, bool)
    defects.require(number and 0 <= gap < math.inf, "gap", gap, "a number >= 0")
    defects.raise_if_any()
    load_all_compiled()
    load_compiled_search()
    started = perf_counter()
    first = started + _FIRST_SHARE * time_limit_s
    found = search_locally(problem, current, deadline=first, seed=0, restarts=_RESTARTS)
    if isinstance(found, Kept):
        return found.plan(problem, "exact", started)
    known_s = found.search.latency_s if found.search.violation == 0 else math.inf
    bounds = Bounds(found.board.figures, found.search.best_nodes, known_s)
    deadline = started + time_limit_s
    answer = search_all(bounds, gap=float(gap), deadline=deadline, most_steps=most_steps)
    return _plan(found, answer, started)


def _plan(found: Found, answer: Answer, started: float) -> Plan:
    board, search = found.board, found.search
    node = search.best_nodes if answer.node is None else answer.node
    # Of a routed network with many sites some are not on the board: nothing is proven about them.
    whole = bool((board.ways.place >= 0).all())
    feasible = math.isfinite(answer.best_s)
    return make_plan(
        board.problem,
        board.place(node),
        strategy="exact",
        reasons=_reasons(found, answer, whole=whole),
        seconds=perf_counter() - started,
        candidates=search.candidates + answer.steps,
        gap=_gap(answer) if feasible and whole else None,
    )


def _gap(answer: Answer) -> float:
    if answer.best_s <= answer.least_s * (1 + 1e-12):
        return 0.0
    return answer.best_s / answer.least_s - 1 if answer.least_s > 0 else math.inf


def _reasons(found: Found, answer: Answer, *, whole: bool) -> list[Reason]:
    """The verdict for the operators that may move, with the first one how it was reached."""
    where = "" if whole else " among the sites that were searched"
    if not math.isfinite(answer.best_s):
        proven = answer.proven and whole
        verdict = "proven: no feasible placement" if proven else "no feasible placement was found"
    elif answer.proven and _gap(answer) == 0:
        verdict = f"proven: no placement has less{where}"
    elif answer.proven:
        verdict = f"within the gap that is allowed: proven that none has less{where} than "
        verdict += f"{answer.least_s:.6g} s"
    else:
        verdict = f"the best found{where}: none has less than {answer.least_s:.6g} s"
    board = found.board
    operators = board.problem.application.operators
    name = next(o.name for o in operators if o.kind != "source")
    story = f"{verdict}; {answer.steps} placements looked at"
    reasons = [Reason(operator=name, why=story)]
    movable = {int(board.skeleton.operator[copy]) for copy in board.movable}
    for index, operator in enumerate(operators):
        why = verdict
        if operator.kind == "source":
            why = f"born in {operator.pin}"
        elif index not in movable:
            why = f"pinned to {operator.pin}"
        reasons.append(Reason(operator=operator.name, why=why))
    return reasons
