"""Our own rows beside the paper's: margins at the largest state, and gaps to the optimum."""

from __future__ import annotations

from thalweg.experiments.claims import Claim
from thalweg.experiments.migcep.results import Results, panels, percent, short_name
from thalweg.experiments.migcep.run import (
    GREEDY,
    MIGCEP,
    OURS,
    STATIC,
    TOGETHER,
    UNCERTAIN,
    uncertain,
)


def measure_margins(results: Results) -> list[Claim]:
    """What the paper does not say, as rows of the same table."""
    return [*_margins(results.of_figure("9a-d")), *_gaps(results)]


def _margins(results: Results) -> list[Claim]:
    largest = max(results.levels("state_bytes"))
    margins = []
    for title, here in panels(results.pick(state_bytes=largest)):
        to = {base: 1 - here.ratios(MIGCEP, base).mean() for base in (STATIC, GREEDY)}
        margins.append(f"{title}: {percent(to[GREEDY])} of greedy, {percent(to[STATIC])} of static")
    counts = []
    for base in (GREEDY, STATIC):
        ratio = results.ratios(MIGCEP, base)
        counts.append(f"≤ {base} in {int((ratio <= 1 + 1e-9).sum())} of {ratio.size}")
    below = results.ratios(MIGCEP, OURS)
    return [
        Claim(
            about=f"saving of migcep with perfect knowledge at {largest:,.0f} B",
            paper="",
            measured="; ".join(margins),
            agrees=None,
        ),
        Claim(
            about="migcep with perfect knowledge, over all sizes, trees and repetitions",
            paper="",
            measured=f"{', '.join(counts)}; below {OURS} in {int((below < 1 - 1e-9).sum())}",
            agrees=None,
        ),
    ]


def _gaps(results: Results) -> list[Claim]:
    claims = []
    for figure, label, names in (
        ("9a-d", "all panels of Figure 9", (STATIC, GREEDY, MIGCEP, TOGETHER)),
        (
            "10ab",
            "unseen vehicles of Figure 10",
            (STATIC, GREEDY, MIGCEP, TOGETHER, *(uncertain(*both) for both in UNCERTAIN)),
        ),
    ):
        here = results.of_figure(figure)
        states = here.levels("state_bytes")
        told = []
        for name in names:
            gap = here.ratio_by("state_bytes", name, OURS) - 1
            told.append(f"{short_name(name)} {percent(gap[0])}, {percent(gap[-1])}")
        claims.append(
            Claim(
                about=f"cost above {OURS} at {states[0]:,.0f} and {states[-1]:,.0f} B, {label}",
                paper="",
                measured="; ".join(told),
                agrees=None,
            )
        )
    return claims
