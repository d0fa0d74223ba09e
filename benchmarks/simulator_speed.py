"""How many event-hops does the simulator do in a second, on one core, and against SimPy?

A hop is an event through one queue that takes time: an operator or a link. The same chain of
queues runs in `thalweg.simulate` and in SimPy, in turns, and both have to find the same latency.
"""

from __future__ import annotations

import cProfile
import resource
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from statistics import fmean, median
from types import CodeType
from typing import Any

import thalweg as tw
from benchmarks.measure import Answer, call_fresh, timed
from benchmarks.runner import REGISTER, Benchmark, Count, Result, Row, Settings
from benchmarks.simulator_plain import Chain, by_hand, by_message, by_server, make_chain
from thalweg.scenarios import cloud_edge, random_application

HOPS_TARGET, RATIO_TARGET, RATIO_GOAL = 20e6, 300.0, 1000.0
LATENCY_TARGET = 3.0
"""In percent, of the difference between both simulators."""
MEMORY_TARGET = 8 * 1024**3
WAYS = {
    "a process per message, Resource": by_message,
    "a process per server, Store": by_server,
    "a process per server, queue by hand": by_hand,
}
*OWN_QUEUES, BY_HAND = WAYS
APPLICATION_RATE = 10_000.0
OURS = "thalweg"

PYTHON = "Python between calls"
PARTS = {
    ("births.py", "bear"): "births",
    ("ordering.py", "merge"): "merging",
    ("ordering.py", "sort_in_buckets"): "merging",
    ("ordering.py", "gather"): "merging",
    ("ordering.py", "gather_tokens"): "merging",
    ("events.py", "concatenate"): "merging",
    ("serving.py", "serve"): "serving",
    ("serving.py", "weigh"): "routing and recording",
    ("serving.py", "count_arrivals"): "routing and recording",
    ("recording.py", "record"): "routing and recording",
    ("router.py", "_go"): "routing and recording",
}
"""Functions whose own time is work on arrays, and what it is for. All else is `PYTHON`."""
LIMITS = {
    "births": "drawing the gaps between births limits it",
    "merging": "bringing the events of all sources into one order limits it",
    "serving": "the loop over the events of a queue limits it: each has to wait for the one before",
    "routing and recording": "counting what goes where limits it",
    PYTHON: "Python between the compiled loops limits it: longer pieces of time would help",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much is measured; seconds are simulated ones."""

    repeats: int
    seconds: float
    plain_seconds: float
    hops: float
    application_s: float = 60.0


FULL = Sizes(repeats=5, seconds=6000.0, plain_seconds=30.0, hops=1e9)
QUICK = Sizes(repeats=3, seconds=1500.0, plain_seconds=10.0, hops=1e8)
SMOKE = Sizes(repeats=1, seconds=20.0, plain_seconds=1.0, hops=1e5, application_s=1.0)


def run(settings: Settings) -> Result:
    """Measure the chain, its parts, a long run and a large application."""
    return answer(settings.pick(full=FULL, quick=QUICK, smoke=SMOKE), settings)


def answer(sizes: Sizes, settings: Settings) -> Result:
    """The same at any size."""
    chain = Chain()
    settings.tell("the chain, in turns with SimPy")
    repeats = measure_chain(chain, sizes)
    settings.tell("where the time goes")
    shares = break_down(chain, sizes.seconds)
    settings.tell(f"{sizes.hops:g} hops")
    long = call_fresh(run_long, hops=sizes.hops)
    settings.tell("the large application")
    large = run_application(sizes.application_s, sizes.repeats)
    rows = [
        *_chain_rows(repeats),
        *_latency_rows(repeats),
        *(
            Row(measure="share of the time", value=100.0 * share, unit="%", at={"part": part})
            for part, share in shares.items()
        ),
        *_long_rows(long),
        *_application_rows(large),
    ]
    first, second, *_ = sorted(shares, key=lambda part: -shares[part])
    notes = [
        f"chain: {chain.sources} sources, {chain.hops} queues, {chain.load:.0%} load, "
        f"{sizes.repeats} repeats of {sizes.seconds:g} s and, in SimPy, {sizes.plain_seconds:g} s",
        f"SimPy {version('simpy')}; a hop there is counted when its message has come to the end",
        "the queue by hand goes around SimPy's own queues: it needs less than half as many events",
        "rates are per second of the CPU, which other work on the machine changes less: all "
        "simulators use one thread; medians; a ratio is of runs that follow each other",
        f"most time goes into {first} and {second}; {LIMITS[first]}",
    ]
    details = [*repeats, {"long run": long}, {"large application": large}]
    return Result(rows=rows, notes=notes, details=details, counts=_count_events(repeats, large))


def _count_events(repeats: Sequence[Mapping[str, Any]], large: Mapping[str, Any]) -> list[Count]:
    """A simulator that loses events is fast."""
    lost = sum(repeat[OURS]["lost"] for repeat in repeats)
    leaking = sum(not repeat[OURS]["conserved"] for repeat in repeats)
    return [
        Count(name="events lost in the chain", expected=0, counted=lost),
        Count(name="runs of the chain whose events do not add up", expected=0, counted=leaking),
        Count(
            name="large applications whose events do not add up",
            expected=0,
            counted=int(not large["conserved"]),
        ),
    ]


def measure_chain(chain: Chain, sizes: Sizes) -> list[dict[str, Any]]:
    """Runs of ours and of each way in SimPy, in turns: hops, seconds and mean latency of each."""
    posed = make_chain(chain)
    tw.simulate(*posed, seconds=10.0)  # Compiles what has to be compiled.
    repeats = []
    for seed in range(sizes.repeats):
        found, spent = _spend(partial(tw.simulate, *posed, seconds=sizes.seconds, seed=seed))
        done = {"hops": found.totals["hops"], "messages": found.totals["ended"]}
        kept = {"lost": found.totals["lost"], "conserved": found.conserved}
        repeat = {OURS: {**done, **kept, **spent, "latency_s": found.latency_s}}
        for name, way in WAYS.items():
            latencies, spent = _spend(partial(way, chain, sizes.plain_seconds, seed))
            done = {"hops": chain.hops * len(latencies), "messages": len(latencies)}
            # The first tenth is left out, as in ours.
            latency_s = fmean(latencies[len(latencies) // 10 :])
            repeat[name] = {**done, **spent, "latency_s": latency_s}
        repeats.append(repeat)
    return repeats


def _spend(call: Callable[[], Answer]) -> tuple[Answer, dict[str, float]]:
    """What a call returns, and the time that it took: by the wall clock, and of the CPU."""
    began_s = time.process_time()
    answer, seconds = timed(call)
    return answer, {"seconds": seconds, "cpu_s": time.process_time() - began_s}


def break_down(chain: Chain, seconds: float) -> dict[str, float]:
    """The share of a run's time that each part takes; they add up to 1.

    A profile makes calls in Python slower, but not the loops that are compiled. So the time of
    the loops comes from a profile, and what is left of a run without one is Python's.
    """
    posed = make_chain(chain)
    simulate = partial(tw.simulate, *posed, seconds=seconds)
    simulate()  # Compiles what has to be compiled.
    whole_s = median(_spend(simulate)[1]["cpu_s"] for _ in range(3))
    profile = cProfile.Profile(time.process_time)
    profile.runcall(simulate)
    spent = dict.fromkeys(PARTS.values(), 0.0)
    for entry in profile.getstats():
        if isinstance(entry.code, CodeType):
            part = PARTS.get((Path(entry.code.co_filename).name, entry.code.co_name))
            if part is not None:
                spent[part] += entry.inlinetime
    # Times vary: the loops of the profile may have taken longer than the whole run did.
    spent[PYTHON] = max(whole_s - sum(spent.values()), 0.0)
    total_s = sum(spent.values())
    return {part: own_s / total_s for part, own_s in spent.items()}


def run_long(hops: float) -> dict[str, float]:
    """A run of so many hops in this process: hops done, seconds, and the most memory it held."""
    chain = Chain()
    posed = make_chain(chain)
    tw.simulate(*posed, seconds=10.0)
    seconds = 1.001 * hops / (chain.hops * chain.rate)  # Chance must not leave it short.
    found, spent = _spend(partial(tw.simulate, *posed, seconds=seconds))
    return {
        "hops": found.totals["hops"],
        **spent,
        "simulated_s": seconds,
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


def run_application(seconds: float, repeats: int) -> dict[str, Any]:
    """50 operators at 10,000 events/s: how long a run takes, and how many hops it does."""
    network = cloud_edge(clouds=1, sites=4, devices_per_site=10, seed=0)
    app = random_application("extra-large", network, seed=0)
    births = tw.Problem(application=app, network=network).births
    scale = APPLICATION_RATE / float(births.rate.sum())
    rates = {
        (app.operators[operator].name, network.site_names[site]): rate * scale
        for operator, site, rate in zip(
            births.operator.tolist(), births.site.tolist(), births.rate.tolist(), strict=True
        )
    }
    plan = tw.plan(app, network, strategy="aels-rp-la-free", rates=rates)
    tw.simulate(app, network, plan, seconds=1.0, rates=rates)
    times = []
    for _ in range(repeats):
        found, wall_s = timed(lambda: tw.simulate(app, network, plan, seconds=seconds, rates=rates))
        times.append(wall_s)
    return {
        "operators": sum(operator.kind == "transform" for operator in app.operators),
        "events_per_s": APPLICATION_RATE,
        "simulated_s": seconds,
        "seconds": median(times),
        "hops": found.totals["hops"],
        "born": found.totals["born"],
        "conserved": found.conserved,
        "unstable": len(found.unstable),
    }


def _rate(run: Mapping[str, Any], what: str = "hops") -> float:
    return float(run[what] / run["cpu_s"])


def _chain_rows(repeats: Sequence[Mapping[str, Any]]) -> list[Row]:
    rows = [
        Row(
            measure="event-hops per second on one core",
            value=median(_rate(repeat[OURS]) for repeat in repeats),
            unit="hops/s",
            target=HOPS_TARGET,
            at_least=True,
            note=f"median of {len(repeats)}",
        ),
        Row(
            measure="the same by the wall clock",
            value=median(repeat[OURS]["hops"] / repeat[OURS]["seconds"] for repeat in repeats),
            unit="hops/s",
        ),
    ]
    ratios = {}
    for way in WAYS:
        at = {"SimPy": way}
        for what in ("hops", "messages"):
            rate = median(_rate(repeat[way], what) for repeat in repeats)
            rows.append(
                Row(measure=f"{what} per second of SimPy", value=rate, unit=f"{what}/s", at=at)
            )
        ratios[way] = median(_rate(repeat[OURS]) / _rate(repeat[way]) for repeat in repeats)
    fastest = min(OWN_QUEUES, key=lambda way: ratios[way])
    named = {"hops/s against SimPy": RATIO_TARGET, "the same, goal": RATIO_GOAL}
    return rows + [
        Row(
            measure=name,
            value=ratios[way],
            unit="times",
            target=target,
            at_least=True,
            at={"SimPy": way},
            note="the faster of SimPy's own queues" if way == fastest else "",
        )
        for name, target in named.items()
        for way in (fastest, BY_HAND)
    ]


def _latency_rows(repeats: Sequence[Mapping[str, Any]]) -> list[Row]:
    means = {name: fmean(repeat[name]["latency_s"] for repeat in repeats) for name in (OURS, *WAYS)}
    rows = [
        Row(measure="mean latency", value=mean, unit="s", at={"simulator": name})
        for name, mean in means.items()
    ]
    apart = 100.0 * max(abs(means[way] / means[OURS] - 1.0) for way in WAYS)
    name = "mean latencies differ by at most"
    return [*rows, Row(measure=name, value=apart, unit="%", target=LATENCY_TARGET)]


def _long_rows(long: Mapping[str, float]) -> list[Row]:
    at = {"hops": long["hops"]}
    return [
        Row(measure="time of a long run", value=long["seconds"], unit="s", at=at),
        Row(
            measure="most memory of a long run",
            value=long["peak_bytes"],
            unit="B",
            target=MEMORY_TARGET,
            at=at,
            note="a process of its own",
        ),
    ]


def _application_rows(large: Mapping[str, Any]) -> list[Row]:
    at = {name: large[name] for name in ("operators", "events_per_s", "simulated_s")}
    return [
        Row(measure="time of a large application", value=large["seconds"], unit="s", at=at),
        Row(measure="hops of a large application", value=large["hops"], unit="hops", at=at),
    ]


REGISTER.add(
    Benchmark(
        name="simulator_speed",
        question="How many event-hops does the simulator do in a second, alone and against SimPy?",
        run=run,
    )
)
