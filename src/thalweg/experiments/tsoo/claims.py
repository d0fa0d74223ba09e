"""What Ntumba et al. 2024 say in section 7, beside what came out here."""

from __future__ import annotations

import numpy as np

from thalweg.experiments.claims import Claim
from thalweg.experiments.tsoo.results import DEMAND, FARES, Floats, Results
from thalweg.experiments.tsoo.run import OURS

_GRAPHS = "the paper shows its two graphs in a figure only, so ours differ"
_LINKS = (
    "with the bandwidths of Table 6 the uplink of the busiest area is full before the limit of "
    "all uplinks together is reached, and what does not fit takes longer than the time limit"
)


def compare_with_paper(results: Results) -> list[Claim]:
    """The rows of the table, in the paper's order, then our own."""
    first, second = results.pick(experiment=1), results.pick(experiment=2)
    return [
        *_usage(first),
        *_uplink(first),
        *_time(first),
        _changes(first),
        *_success(second),
        *_against_optimum(results),
    ]


def _usage(results: Results) -> list[Claim]:
    claims = []
    for application, label, paper, trcs_paper in (
        (FARES, "App-1", "atsoo = tsoo", "trcs above, up to 7.65 %"),
        (
            DEMAND,
            "App-2",
            "atsoo above tsoo by up to 1.29 % for M1–M8, below by up to 1.88 % for M9–M11",
            "trcs above, up to 17.68 %",
        ),
    ):
        here = results.pick(application=application)
        usage = {name: here.pick(strategy=name).by_level("usage") for name in here.strategies}
        apart = 100 * (usage["atsoo"] / usage["tsoo"] - 1)
        above = 100 * (usage["trcs"] / usage["atsoo"] - 1)
        claims += [
            Claim(
                about=f"RU of {label}, atsoo against tsoo",
                paper=paper,
                measured=f"M1–M8 {_span(apart[:8])}, M9–M11 {_span(apart[8:])}",
                agrees=_close(apart, first=application == FARES),
                reason=f"{_GRAPHS}; both differ where a limit is broken and the repair starts "
                "from other cuts",
            ),
            Claim(
                about=f"RU of {label}, trcs against atsoo",
                paper=trcs_paper,
                measured=f"{_span(above)}; above at {_at(above > 0)}",
                agrees=bool((above > 0).all()),
                reason=f"{_GRAPHS}; where limits are broken a lower usage is no merit",
            ),
        ]
    return claims


def _close(apart: Floats, *, first: bool) -> bool:
    """App-1: the same curve, to half a percent. App-2: within 2 %, below from M9 on."""
    if first:
        return bool(np.abs(apart).max() <= 0.5)
    return bool(np.abs(apart).max() <= 2.0 and apart[8:].max() <= 0.0)


def _uplink(results: Results) -> list[Claim]:
    return [
        _violations(
            results.pick(application=application),
            "uplink_violated",
            f"B violated, {label}",
            paper,
            first,
        )
        for application, label, paper, first in (
            (FARES, "App-1", "from M8 on, 20 % → 86.7 % (tsoo, atsoo)", 8),
            (
                DEMAND,
                "App-2",
                "from M9 on, 13.3 % → 60 % (tsoo, atsoo), 20 % → 73.3 % (trcs)",
                9,
            ),
        )
    ]


def _time(results: Results) -> list[Claim]:
    return [
        _violations(
            results.pick(application=application),
            "time_violated",
            f"T violated, {label}",
            paper,
            first,
        )
        for application, label, paper, first in (
            (FARES, "App-1", "never", None),
            (DEMAND, "App-2", "from M7 (atsoo, trcs) or M8 (tsoo) on", 7),
        )
    ]


def _violations(
    results: Results, column: str, about: str, paper: str, expected: int | None
) -> Claim:
    """Where violations begin and how frequent they are at the end, for each strategy."""
    said, begins, grows = [], [], True
    for name in results.strategies:
        rate = results.pick(strategy=name).by_level(column)
        first = int(np.flatnonzero(rate > 0)[0]) + 1 if (rate > 0).any() else None
        if name != OURS:
            begins.append(first)
            grows &= first is None or bool(rate[-1] > rate[first - 1])
        span = "never" if first is None else f"from M{first} on, {_percent(rate[first - 1])}"
        said.append(f"{name} {span}" + ("" if first is None else f" → {_percent(rate[-1])}"))
    if expected is None:
        agrees = all(first is None for first in begins)
    else:
        agrees = grows and all(first is not None and abs(first - expected) <= 1 for first in begins)
    return Claim(
        about=about,
        paper=paper,
        measured="; ".join(said),
        agrees=agrees,
        reason=f"{_LINKS}; {_GRAPHS}",
    )


def _changes(results: Results) -> Claim:
    here = results.pick(application=FARES)
    cost = {name: here.pick(strategy=name).by_level("changes") for name in here.strategies}
    lowest = cost["atsoo"] <= np.minimum(cost["tsoo"], cost["trcs"])
    highest = cost["tsoo"] >= np.maximum(cost["atsoo"], cost["trcs"])
    means = ", ".join(f"{name} {values.mean():.1f}" for name, values in cost.items())
    return Claim(
        about="rescheduling cost of App-1",
        paper="atsoo lowest but for M5, M6; tsoo highest",
        measured=f"atsoo lowest at {_at(lowest)}; tsoo highest at {_at(highest)}; "
        f"on average {means}",
        agrees=bool(lowest.mean() > 0.5 and highest.mean() > 0.5),
        reason="we count operators that really start or stop: tsoo, from scratch, often comes to "
        "the cuts that run already, while trcs follows every change of the rates",
    )


def _success(results: Results) -> list[Claim]:
    rate = {name: results.pick(strategy=name).by_level("feasible") for name in results.strategies}
    sure = {name: _at(values >= 1.0) for name, values in rate.items()}
    order = rate["tsoo"].mean() >= rate["atsoo"].mean() - 1e-9 and (
        rate["atsoo"].mean() > max(rate["fog-only"].mean(), rate["fc-interplay"].mean())
    )
    return [
        Claim(
            about="success rate 100 %, both applications",
            paper="tsoo M1–M4; atsoo, fog-only, fc-interplay M1–M2; fc-interplay 0 % at M6, M7",
            measured="; ".join(f"{name} {where}" for name, where in sure.items())
            + f"; fc-interplay at M6, M7 {_percent(rate['fc-interplay'][5])}, "
            f"{_percent(rate['fc-interplay'][6])}",
            agrees=sure["tsoo"] == "M1–M4"
            and all(sure[name] == "M1–M2" for name in ("atsoo", "fog-only", "fc-interplay"))
            and not rate["fc-interplay"][5:7].any(),
            reason=f"{_LINKS}; {_GRAPHS}",
        ),
        Claim(
            about="success rate, order of strategies",
            paper="tsoo ≥ atsoo > fog-only and fc-interplay",
            measured=", ".join(f"{name} {_percent(v.mean())}" for name, v in rate.items()),
            agrees=bool(order),
            reason="atsoo starts from cuts that have been mended before, tsoo from the cheapest; "
            "where the cloud is slow that can be the better start",
        ),
    ]


def _against_optimum(results: Results) -> list[Claim]:
    claims, always = [], True
    behind: list[str] = []
    for experiment in (1, 2):
        here = results.pick(experiment=experiment)
        rivals = [name for name in here.strategies if name != OURS]
        claims.append(
            Claim(
                about=f"RU above that of {OURS} on the same problem, experiment {experiment}",
                paper="",
                measured="; ".join(f"{name} {_gap(here.pick(strategy=name))}" for name in rivals),
                agrees=None,
            )
        )
        rates = (
            f"{name} {_percent(here.pick(strategy=name).values('feasible').mean())}"
            for name in here.strategies
        )
        claims.append(
            Claim(
                about=f"success rate over all steps, experiment {experiment}",
                paper="",
                measured=", ".join(rates),
                agrees=None,
            )
        )
        always &= all(_never_ahead(here.pick(strategy=name)) for name in rivals)
        ours = here.pick(strategy=OURS).by_level("feasible")
        behind += [
            f"{name} at {_at(ahead)} of experiment {experiment}"
            for name in rivals
            if (ahead := here.pick(strategy=name).by_level("feasible") > ours + 1e-9).any()
        ]
    return [
        *claims,
        Claim(
            about=f"at every M {OURS} succeeds at least as often, on the same problems",
            paper="",
            measured="in every case" if always else "not in every case",
            agrees=None,
        ),
        Claim(
            about="the same, each strategy on its own way through the sequence",
            paper="",
            measured="more often than it: " + "; ".join(behind) if behind else "in every case",
            agrees=None,
        ),
    ]


def _gap(results: Results) -> str:
    """How much more usage, where the strategy kept every limit."""
    best, usage = results.values("least_usage"), results.values("usage")
    both = (results.values("feasible") > 0) & (best > 0)
    if not both.any():
        return "never feasible"
    gap = 100 * (usage[both] / best[both] - 1)
    cheaper = np.count_nonzero(gap < -1e-6)
    return (
        f"{gap.mean() + 0.0:.2f} % on average, {gap.max():.1f} % at worst, "
        f"below it in {cheaper} of {gap.size}"
    )


def _never_ahead(results: Results) -> bool:
    """Whether the optimum was found wherever the strategy kept every limit."""
    results = results.pick(compared=True)
    possible = np.isfinite(results.values("least_usage"))
    return bool((possible | (results.values("feasible") == 0)).all())


def _span(values: Floats) -> str:
    return f"{values.min():+.2f} … {values.max():+.2f} %"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _at(flags: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> str:
    """`M1–M4, M7` for the levels where the flag is set."""
    parts, k = [], 0
    while k < flags.size:
        if flags[k]:
            end = k
            while end + 1 < flags.size and flags[end + 1]:
                end += 1
            parts.append(f"M{k + 1}" if end == k else f"M{k + 1}–M{end + 1}")
            k = end
        k += 1
    return ", ".join(parts) or "none of M1–M11"
