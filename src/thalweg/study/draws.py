"""What a seed draws: source rates around those that are declared."""

from __future__ import annotations

from thalweg.model import Problem
from thalweg.scenarios.randomness import random_stream

SPREAD = 0.5


def draw_rates(problem: Problem, seed: int, spread: float = SPREAD) -> dict[tuple[str, str], float]:
    """Each declared rate times a factor that is uniform from 1 − spread to 1 + spread.

    Every (source, site) has a factor of its own, so the total varies, and how it splits over the
    sites. A draw depends on the seed, the name of the source and the number of its site only: it is
    the same for every strategy and every value of a swept parameter.

    >>> from thalweg.scenarios import fog_cloud, taxi_fares
    >>> problem = Problem(application=taxi_fares(), network=fog_cloud(2))
    >>> draw_rates(problem, 7) == draw_rates(problem, 7) != draw_rates(problem, 8)
    True
    """
    declared = problem.birth_rates
    number: dict[str, int] = {}
    for source, _ in declared:
        number[source] = number.get(source, 0) + 1
    factors = {
        source: iter(
            random_stream(seed, "rates", source).uniform(1 - spread, 1 + spread, count).tolist()
        )
        for source, count in number.items()
    }
    return {
        (source, site): rate * next(factors[source]) for (source, site), rate in declared.items()
    }
