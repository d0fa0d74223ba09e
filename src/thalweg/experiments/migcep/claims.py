"""What Ottenwälder et al. 2013 say in section 6, beside what came out here."""

from __future__ import annotations

import numpy as np

from thalweg.experiments.claims import Claim
from thalweg.experiments.migcep.margins import measure_margins
from thalweg.experiments.migcep.results import Results, panels, percent, short_name
from thalweg.experiments.migcep.run import (
    CONSTANT,
    GREEDY,
    MIGCEP,
    STATIC,
    UNCERTAIN,
    uncertain,
)
from thalweg.experiments.rows import Floats

PERFECT_SAVING, UNCERTAIN_SAVING = 0.49, 0.27
PAPER_MESSAGES = 27.0
ABOUT = 0.1
"""Two figures are about the same where one is within this share of the other."""
_NOISE = 5e-3
"""Differences below this share are none."""
_STRAIGHT = 0.95
_HOW = tuple(uncertain(*both) for both in UNCERTAIN)
_WHOLE_LIFE = "plans know the whole way here, so looking farther ahead can only help"


def compare_with_paper(results: Results, trace: str) -> list[Claim]:
    """The rows of the table, in the paper's order, then our own."""
    return [
        *_perfect(results.of_figure("9a-d")),
        *_uncertainty(results.of_figure("10ab")),
        _step_length(results.of_figure("9e")),
        *_range_and_horizon(results.of_figure("9f")),
        *_messages(results.of_figure("messages")),
        *_paths(results.of_figure("10c"), results.of_figure(CONSTANT)),
        *measure_margins(results),
        Claim(about="vehicles", paper="SUMO on OpenStreetMap", measured=trace, agrees=None),
    ]


def _perfect(results: Results) -> list[Claim]:
    savings = {
        base: {
            title: 1 - here.ratio_by("state_bytes", MIGCEP, base) for title, here in panels(results)
        }
        for base in (STATIC, GREEDY)
    }
    lesser = {title: np.minimum(savings[STATIC][title], s) for title, s in savings[GREEDY].items()}
    most = {base: max(s.max() for s in found.values()) for base, found in savings.items()}
    both = max(s.max() for s in lesser.values())
    always = all((s > 0).all() for s in lesser.values())
    grows = {title: bool((np.diff(s) > -_NOISE).all()) for title, s in savings[GREEDY].items()}
    return [
        Claim(
            about="1. perfect knowledge saves network utilisation",
            paper=f"up to {percent(PERFECT_SAVING)} (it does not say of what)",
            measured=f"up to {percent(most[STATIC])} of static, {percent(most[GREEDY])} of "
            f"greedy, {percent(both)} of whichever is better",
            agrees=bool(always and both >= PERFECT_SAVING),
            reason="the paper does not say what its figure is relative to, nor how much less its "
            f"operators send on than they receive; ours saves {'' if always else 'not '}everywhere",
        ),
        Claim(
            about="1. saving over greedy by state size",
            paper="grows with the state",
            measured="; ".join(
                f"{title}: {percent(s[0])} → {percent(s[-1])}"
                for title, s in savings[GREEDY].items()
            ),
            agrees=all(grows.values()),
            reason="it falls somewhere for " + ", ".join(t for t, up in grows.items() if not up),
        ),
        _without_state(results, savings[GREEDY]),
        _event_size(savings[STATIC], savings[GREEDY]),
    ]


def _without_state(results: Results, savings: dict[str, Floats]) -> Claim:
    least = results.pick(strategy=GREEDY, state_bytes=min(results.levels("state_bytes")))
    moving = float((least.values("moving_bytes") / least.values("bdp_bytes")).mean())
    return Claim(
        about="1. migcep and greedy without immutable state",
        paper="comparable",
        measured="; ".join(f"{title}: {percent(s[0])} less" for title, s in savings.items()),
        agrees=all(abs(s[0]) <= ABOUT for s in savings.values()),
        reason=f"the events in windows move too: {percent(moving)} of what greedy costs is for "
        "them; and greedy follows a vehicle only at its next look, while a plan is there before",
    )


def _event_size(static: dict[str, Floats], greedy: dict[str, Floats]) -> Claim:
    """The panels of a tree stand side by side, the smaller events first."""
    said, larger = [], []
    titles = list(static)
    for small, large in zip(titles[::2], titles[1::2], strict=True):
        tree = small.split(",")[0]
        for base, savings in ((STATIC, static), (GREEDY, greedy)):
            before, after = (float(savings[title].mean()) for title in (small, large))
            said.append(f"{tree}, of {base} {percent(before)} → {percent(after)}")
            if base == STATIC:
                larger.append(after > before)
    return Claim(
        about="1. larger events, on average over all states",
        paper="the benefit is more distinct (relative to static)",
        measured="; ".join(said),
        agrees=all(larger),
        reason="the saving against static falls with the size of events",
    )


def thresholds(results: Results, name: str) -> float | None:
    """The state from which on an approach stays below greedy, between points; None: never."""
    states = np.array(results.levels("state_bytes"))
    above = results.ratio_by("state_bytes", name, GREEDY) - 1
    if above[-1] >= 0:
        return None
    dear = np.flatnonzero(above >= 0)
    if not dear.size:
        return float(states[0])
    k = int(dear[-1])
    share = above[k] / (above[k] - above[k + 1])
    return float(states[k] + share * (states[k + 1] - states[k]))


def _uncertainty(results: Results) -> list[Claim]:
    savings = {name: 1 - results.ratio_by("state_bytes", name, GREEDY) for name in _HOW}
    perfect = 1 - results.ratio_by("state_bytes", MIGCEP, GREEDY)
    most = {name: float(s.max()) for name, s in savings.items()}
    found = {name: thresholds(results, name) for name in _HOW}
    without = [short_name(name) for name, at in found.items() if at is None]
    left_out = {
        name: results.pick(strategy=name).values("left_out").max()
        for name in _HOW
        if name.endswith("naive")
    }
    best = max(most.values())
    return [
        Claim(
            about="2. uncertain knowledge saves network utilisation",
            paper=f"up to {percent(UNCERTAIN_SAVING)}, less than perfect knowledge",
            measured="of greedy up to "
            + "; ".join(f"{short_name(name)} {percent(s)}" for name, s in most.items())
            + f"; perfect {percent(float(perfect.max()))}",
            agrees=bool(UNCERTAIN_SAVING <= best <= perfect.max()),
            reason="the paper does not say at which sizes its figure was measured"
            if best < UNCERTAIN_SAVING
            else "with so few instances an uncertain plan was luckier than a certain one",
        ),
        Claim(
            about="2. the state from which on a policy beats greedy",
            paper="there is one for every policy",
            measured="; ".join(
                f"{short_name(name)} {'never' if at is None else f'{at:,.0f} B'}"
                for name, at in found.items()
            ),
            agrees=not without,
            reason=f"even the largest state is too small for {', '.join(without)}",
        ),
        Claim(
            about="2. combinations that naive's cap left out, at worst",
            paper="",
            measured="; ".join(
                f"{short_name(n)} {percent(share)}" for n, share in left_out.items()
            ),
            agrees=None,
        ),
    ]


def _step_length(results: Results) -> Claim:
    steps_s = np.array(results.levels("step_s"))
    bdp = results.mean(MIGCEP, "step_s")
    vertices = results.mean(MIGCEP, "step_s", "vertices")
    r = float(np.corrcoef(steps_s, bdp)[0, 1]) if np.ptp(bdp) > 0 else 0.0
    rises = bool((np.diff(bdp) > 0).all())
    return Claim(
        about="3. longer steps",
        paper="cost rises linearly while vertices fall by a factor",
        measured=f"{steps_s[0]:g} s → {steps_s[-1]:g} s: cost +{percent(bdp[-1] / bdp[0] - 1)}, "
        f"r² of a straight line {r * r:.3f}; vertices {vertices[0]:,.0f} → {vertices[-1]:,.0f}",
        agrees=bool(rises and r * r >= _STRAIGHT and (np.diff(vertices) < 0).all()),
        reason="cost "
        + ("rises, but not on a straight line" if rises else "does not rise with every step"),
    )


def _range_and_horizon(results: Results) -> list[Claim]:
    ranges = results.levels("range_m")
    bdp = np.array([results.pick(range_m=r).ratio_by("horizon", MIGCEP, STATIC) for r in ranges])
    horizons = results.levels("horizon")
    wider = np.diff(bdp, axis=0) <= _NOISE * bdp[:-1]
    loss = bdp[0] / bdp[-1] - 1
    best = [horizons[int(k)] for k in bdp.argmin(axis=1)]
    where = ", ".join(f"{r:g} m at {h:g} steps" for r, h in zip(ranges, best, strict=True))
    saves = bool((bdp[0] < 1).all())
    return [
        Claim(
            about="4. wider range of target brokers",
            paper="better, and with fewer brokers only gracefully worse",
            measured=f"no worse in {int(wider.sum())} of {wider.size} steps from one range to the "
            f"next; {ranges[0]:g} m costs {percent(loss.min())} … {percent(loss.max())} more "
            f"than {ranges[-1]:g} m, at most {percent(bdp[0].max())} of static",
            agrees=bool(wider.all() and loss.max() > _NOISE and saves),
            reason="the narrowest range is dearer than never moving"
            if not saves
            else "no range makes a difference: brokers above cover every area, and touching "
            "ones are 0 m away"
            if loss.max() <= _NOISE
            else "plans that look only a few steps ahead are no optimum: with fewer brokers "
            "to go to they may end up in a better place",
        ),
        Claim(
            about="4. number of steps ahead",
            paper="few limit the planning, too many misplace operators",
            measured=f"least cost: {where}; {horizons[0]:g} steps cost "
            f"{percent(bdp[-1, 0] / bdp[-1].min() - 1)} more than the best",
            agrees=bool(all(horizons[0] < h < horizons[-1] for h in best)),
            reason=_WHOLE_LIFE if best[-1] == horizons[-1] else "the fewest steps are the best",
        ),
    ]


def _messages(results: Results) -> list[Claim]:
    first, after = (results.values(f"{which}_messages") for which in ("first", "next"))
    mean = float(first.mean())
    sizes = {column: results.by(column, first) for column in ("event_bytes", "state_bytes")}
    spread = {column: float(np.ptp(values) / mean) for column, values in sizes.items()}
    levels = {column: results.levels(column) for column in sizes}
    quiet = results.values("quiet").sum() / results.values("coordinations").sum()
    told = "; ".join(
        f"{levels[column][0]:,.0f} B {values[0]:.1f}, {levels[column][-1]:,.0f} B {values[-1]:.1f}"
        for column, values in sizes.items()
    )
    return [
        Claim(
            about="5. messages of a coordination",
            paper=f"{PAPER_MESSAGES:g} on average",
            measured=f"{mean:.1f} when operators are deployed, {after[after > 0].mean():.1f} later "
            f"where plans change; {percent(float(quiet))} of all need none",
            agrees=bool(abs(mean / PAPER_MESSAGES - 1) <= ABOUT),
            reason="a plan takes 3 messages for each neighbour and up to 5 for each broker that "
            "it goes to, so it depends on how often plans move; the paper counts in a way "
            "that it does not tell",
        ),
        Claim(
            about="5. messages by event and state size",
            paper="independent of both",
            measured=f"events {told.split('; ')[0]}; state {told.split('; ')[1]}",
            agrees=all(share <= ABOUT for share in spread.values()),
            reason="who moves a large state goes to fewer brokers, and each broker has to be asked",
        ),
    ]


def _paths(results: Results, constant: Results) -> list[Claim]:
    changes = results.levels("interval_s")
    gain = [_gain(results.pick(interval_s=change)) for change in changes]
    never, many = _gain(constant), results.levels("k")[-1]
    told = [f"{c:g} s {100 * g:+.1f} %" for c, g in zip(changes, gain, strict=True)]
    return [
        Claim(
            about=f"6. {many:g} paths against one, by time between changes",
            paper="dearer when rates change fast, cheaper when slowly",
            measured=", ".join([*told, f"never {100 * never:+.1f} %"]),
            agrees=bool(gain[0] > _NOISE and gain[-1] < -_NOISE),
            reason=_why_paths(gain[0], gain[-1], never),
        )
    ]


def _gain(results: Results) -> float:
    """What the most paths cost more than one, as a share."""
    cost = results.by("k", results.values("bdp_bytes"))
    return float(cost[-1] / cost[0] - 1)


def _why_paths(fast: float, slow: float, never: float) -> str:
    if max(abs(fast), abs(slow)) <= _NOISE:
        return "the cheapest paths of a time graph differ by the moment of a move and little else"
    same = f"; where sizes never change it is {100 * never:+.1f} %"
    if min(fast, slow) > 0:
        return f"further paths cost more at any pace{same}"
    if max(fast, slow) < 0:
        return (
            "further paths save at any pace: operators go over only where the rest of a path is "
            f"cheaper with its moves{same}"
        )
    return f"only one end is as in the paper{same}"
