"""A strategy in one file: every operator on the first node that its pin allows."""

import numpy as np

import thalweg as tw
from thalweg.estimate.evaluate import make_plan


@tw.strategy("first-fit", "every operator on the first node that its pin allows")
def first_fit(problem: tw.Problem, current: tw.Placement | None = None) -> tw.Plan:
    """Sources where they are born, everything else on the lowest node index."""
    births = problem.births
    operators = problem.application.operators
    others = [k for k, operator in enumerate(operators) if operator.kind != "source"]
    allowed = [problem.allowed_nodes(k) for k in others]
    placement = tw.Placement.from_indices(
        problem,
        operator=np.concatenate([births.operator, others]),
        node=np.concatenate([births.node, [0 if a is None else a[0] for a in allowed]]),
        origin=np.concatenate([births.site, np.full(len(others), -1)]),
    )
    return make_plan(problem, placement, strategy="first-fit")
