"""Does the simulator find what queueing theory says, within its confidence intervals?

Single queues with random or even arrivals and services, five in a row, events that are thinned,
streams that join, and a stream that is split. 30 runs each, with random numbers of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import thalweg as tw
from benchmarks.runner import REGISTER, Benchmark, Result, Row, Settings
from thalweg.estimate.queueing import dm1_wait_s, md1_wait_s, mm1_wait_s
from thalweg.model import (
    Application,
    Instance,
    Network,
    Node,
    Operator,
    Pin,
    Placement,
    Site,
    Stream,
    build_network,
)
from thalweg.simulate import Deterministic, Exponential, Periodic, Physics, Poisson, Simulation

RATE = 1000.0
CPU_IPS = 1e9
LOADS = (0.3, 0.6, 0.9)
REPLICATIONS = 30
SPLIT = {"few": 0.2, "some": 0.3, "most": 0.5}


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """A figure of a queue: what theory says, what came out, and how sure that is."""

    case: str
    figure: str
    predicted: float
    measured: float
    half_interval: float

    @property
    def inside(self) -> bool:
        """Whether theory is within the 95 % confidence interval."""
        return abs(self.measured - self.predicted) <= self.half_interval

    @property
    def distance(self) -> float:
        """How far it is from the mean, in halves of the interval."""
        return abs(self.measured - self.predicted) / self.half_interval


def predict_all(
    *, seconds: float, replications: int = REPLICATIONS, seed: int = 0
) -> Iterator[Prediction]:
    """Every case, one after the other."""
    given = {"seconds": seconds, "replications": replications, "seed": seed}
    for load in LOADS:
        service_rate = RATE / load
        yield from _single(f"M/M/1 at {load}", mm1_wait_s(service_rate, RATE), load, {}, given)
        fixed = {"service": Deterministic()}
        yield from _single(f"M/D/1 at {load}", md1_wait_s(service_rate, RATE), load, fixed, given)
        even = {"arrivals": Periodic()}
        waiting_s = dm1_wait_s(service_rate, 1.0 / RATE)
        yield from _single(f"D/M/1 at {load}", waiting_s, load, even, given)
    yield from _tandem(0.7, given)
    yield from _thinned(0.8, 0.3, given)
    yield from _joined(0.8, given)
    yield from _split(0.8, given)


def _single(
    case: str, waiting_s: object, load: float, options: dict, given: dict
) -> Iterator[Prediction]:
    found = _simulate(
        {"in": RATE},
        [("queue", load, 1.0)],
        [("in", "queue", 1.0), ("queue", "out", 1.0)],
        options,
        given,
    )
    yield from _queue(case, found, "queue", float(str(waiting_s)), RATE, load / RATE)


def _tandem(load: float, given: dict) -> Iterator[Prediction]:
    names = [f"queue-{k}" for k in range(1, 6)]
    ways = [(a, b, 1.0) for a, b in zip(["in", *names], [*names, "out"], strict=True)]
    found = _simulate({"in": RATE}, [(name, load, 1.0) for name in names], ways, {}, given)
    waiting_s, service_s = float(mm1_wait_s(RATE / load, RATE)), load / RATE
    for name in names:
        yield from _queue(f"five M/M/1 in a row at {load}", found, name, waiting_s, RATE, service_s)
    row = found.rows("applications")[0]
    yield Prediction(
        case=f"five M/M/1 in a row at {load}",
        figure="latency of all [s]",
        predicted=5 * (waiting_s + service_s),
        measured=row["latency_s"],
        half_interval=row["latency_s_ci"],
    )


def _thinned(load: float, share: float, given: dict) -> Iterator[Prediction]:
    """A queue behind a filter that takes no time and lets a share through."""
    ways = [("in", "filter", 1.0), ("filter", "queue", 1.0), ("queue", "out", 1.0)]
    kept = RATE * share
    stations = [("filter", 0.0, share), ("queue", load, 1.0)]
    found = _simulate({"in": RATE}, stations, ways, {}, given, at={"queue": kept})
    waiting_s = float(mm1_wait_s(kept / load, kept))
    yield from _queue(
        f"thinned to {share}, M/M/1 at {load}", found, "queue", waiting_s, kept, load / kept
    )


def _joined(load: float, given: dict) -> Iterator[Prediction]:
    rates = {"a": 0.1 * RATE, "b": 0.3 * RATE, "c": 0.6 * RATE}
    ways = [(name, "queue", 1.0) for name in rates] + [("queue", "out", 1.0)]
    found = _simulate(rates, [("queue", load, 1.0)], ways, {}, given)
    waiting_s = float(mm1_wait_s(RATE / load, RATE))
    yield from _queue(
        f"three streams joined, M/M/1 at {load}", found, "queue", waiting_s, RATE, load / RATE
    )


def _split(load: float, given: dict) -> Iterator[Prediction]:
    ways = [("in", "switch", 1.0)]
    ways += [("switch", name, share) for name, share in SPLIT.items()]
    ways += [(name, "out", 1.0) for name in SPLIT]
    rates = {name: RATE * share for name, share in SPLIT.items()}
    stations = [("switch", 0.0, 1.0), *((name, load, 1.0) for name in SPLIT)]
    found = _simulate({"in": RATE}, stations, ways, {}, given, at=rates)
    for name, rate in rates.items():
        waiting_s = float(mm1_wait_s(rate / load, rate))
        case = f"split, {SPLIT[name]} of the events, M/M/1 at {load}"
        yield from _queue(case, found, name, waiting_s, rate, load / rate)


def _queue(
    case: str, found: Simulation, name: str, waiting_s: float, rate: float, service_s: float
) -> Iterator[Prediction]:
    """Waiting time, events there, and rate of one queue."""
    row = next(row for row in found.rows("operators") if row["name"] == name)
    for figure, column, predicted in (
        ("waiting time [s]", "wait_s", waiting_s),
        ("events there", "queue_mean", rate * (waiting_s + service_s)),
    ):
        yield Prediction(
            case=case,
            figure=f"{figure} of {name}",
            predicted=predicted,
            measured=row[column],
            half_interval=row[f"{column}_ci"],
        )


def _simulate(
    sources: dict[str, float],
    stations: list[tuple[str, float, float]],
    ways: list[tuple[str, str, float]],
    options: dict,
    given: dict,
    at: dict[str, float] | None = None,
) -> Simulation:
    """Queues on one node: (name, load at its rate, selectivity) each; no links in between."""
    rates = at or {}
    here = Pin(node="place/node")
    app = Application(
        name="queues",
        operators=[
            *(
                Operator(name=name, kind="source", rate=rate, event_size=1.0, pin=here)
                for name, rate in sources.items()
            ),
            *(
                Operator(
                    name=name,
                    cpu_per_event=load / rates.get(name, RATE) * CPU_IPS,
                    selectivity=share,
                )
                for name, load, share in stations
            ),
            Operator(name="out", kind="sink", pin=here),
        ],
        streams=[Stream(source=a, target=b, probability=p) for a, b, p in ways],
    )
    physics = Physics(**{"service": Exponential(), "arrivals": Poisson(), **options})
    placement = _everything_on(app, "place/node", list(sources))
    found = tw.simulate(app, _one_node(), placement, physics=physics, **given)
    if not found.conserved:
        raise RuntimeError("the events of a run do not add up")
    return found


def _everything_on(app: Application, node: str, sources: list[str]) -> Placement:
    return Placement.of(
        Instance(operator=o.name, node=node, origin="place" if o.name in sources else None)
        for o in app.operators
    )


def _one_node() -> Network:
    node = Node(name="node", cpu_ips=CPU_IPS, memory_bytes=1e12)
    return build_network("one", [Site(name="place", tier="cloud", nodes=(node,))], [])


def run(settings: Settings) -> Result:
    """A row for each figure, with the distance from theory in halves of the interval."""
    seconds = settings.pick(full=600.0, quick=60.0, smoke=2.0)
    replications = 3 if settings.smoke else REPLICATIONS
    found = list(predict_all(seconds=seconds, replications=replications))
    rows = [
        Row(
            measure=f"{each.case}: {each.figure}",
            value=each.measured,
            at={
                "predicted": each.predicted,
                "half_interval": each.half_interval,
                "inside": each.inside,
                "distance": round(each.distance, 3),
            },
        )
        for each in found
    ]
    inside = sum(each.inside for each in found)
    rows.append(
        Row(
            measure="figures that are within the 95 % confidence interval",
            value=100.0 * inside / len(found),
            unit="%",
            target=90.0,
            at_least=True,
            note=f"{inside} of {len(found)}, {replications} runs of each; about one in twenty is "
            "outside by chance",
        )
    )
    return Result(rows=rows)


REGISTER.add(
    Benchmark(
        name="simulator_theory",
        question="Does the simulator find what queueing theory says?",
        run=run,
    )
)
