"""How soon does a run keep its limits where its declarations are wrong?

The adaptation controller drives a deployment whose true figures it is not told: it sees counts of
arrivals, of events in and out of operators, sizes, and the work of whole batches, with the noise of
counting. What is declared is wrong by 3 × or 30 ×: event sizes, selectivities, the CPU of one
operator, or of all operators of a site. Counted are the intervals of 2 s until every limit is kept
under the true figures and RU is within 2 % of what the same strategy plans from the same running
placement with the true figures.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.runner import REGISTER, Benchmark, Result, Row, Settings
from thalweg.adapt.controller import Controller
from thalweg.adapt.events import Adapt, Arrived, BatchDone, Cycle, Output
from thalweg.adapt.state import ControllerState
from thalweg.adapt.trigger import LIVE_TRIGGER
from thalweg.check import check
from thalweg.estimate.evaluate import make_plan
from thalweg.estimate.rates import estimate_rates
from thalweg.model import (
    Application,
    Limits,
    Network,
    Operator,
    Pin,
    Plan,
    Problem,
    Stream,
    TimeWindow,
)
from thalweg.model.deployment import Deployment, deploy
from thalweg.model.placement import Placement
from thalweg.planning import plan as find_plan
from thalweg.scenarios import fog_cloud
from thalweg.scenarios.graph_shape import edges_of

INTERVAL_S = 2.0
BATCHES = 4
"""In an interval, at each site."""
INTERVALS = 8
TARGET_INTERVALS = 3
STRATEGY = "atsoo-both-ways"
KINDS = ("event size", "selectivity", "CPU of an operator", "CPU of a site")
FACTORS = (3.0, 30.0)
EDGES = edges_of("rides → parse → clean → enrich → speed → join → board", "enrich → fares → join")
NOISE = 0.03
"""Of the measured work of a batch, beside what a batch costs whatever is in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A deployment with what is true and what is declared."""

    kind: str
    factor: float
    seed: int
    network: Network
    true: Application
    declared: Application
    rates: dict[tuple[str, str], float]


def cases(seeds: int) -> Iterator[Case]:
    """Every kind of error, too large and too small, so many times."""
    for kind in KINDS:
        for factor in FACTORS:
            for seed in range(seeds):
                yield make_case(kind, factor if seed % 2 else 1.0 / factor, seed)


def make_case(kind: str, factor: float, seed: int) -> Case:
    """One case; the limit of the uplink is between what all-cloud sends and the least there is."""
    rng = np.random.default_rng([seed, KINDS.index(kind), round(1e3 * factor)])
    network = fog_cloud(
        4,
        seed=seed,
        fog_mips=(30.0, 60.0),
        fog_memory_bytes=(60e6, 120e6),
        fog_latency_s=(0.02, 0.04),
        fog_bandwidth_bps=(4e6, 4e6),
        cloud_mips=4000.0,
    )
    rates = {("rides", f"fog-{k}"): float(rng.uniform(300.0, 900.0)) for k in range(4)}
    true = _draw_application(rng, sum(rates.values()))
    raw_bps = 8.0 * sum(rates.values()) * (true.operator("rides").event_size or 0.0)
    limits = Limits(response_time_s=5.0, uplink_bps=float(rng.uniform(0.4, 0.9)) * raw_bps)
    true = replace(true, limits=limits)
    wrong = _declare(true, kind, factor, rng)
    return Case(
        kind=kind,
        factor=factor,
        seed=seed,
        network=network,
        true=true,
        declared=wrong,
        rates=rates,
    )


def _draw_application(rng: np.random.Generator, rate: float) -> Application:
    window = TimeWindow("2 s", "1 s")

    def operator(name: str, selectivity: float, compression: float, **more: object) -> Operator:
        figures = {
            "selectivity": selectivity * float(rng.uniform(0.8, 1.2)),
            "compression": compression * float(rng.uniform(0.8, 1.2)),
            "cpu_per_event": float(rng.uniform(2e3, 1e4)),
            "memory": float(rng.uniform(1e6, 8e6)),
            "replicable": True,
        }
        return Operator(name=name, **(figures | more))  # type: ignore[arg-type]

    return Application(
        name="fares",
        operators=[
            Operator(name="rides", kind="source", rate=rate, event_size=60.0, pin=Pin(tier="fog")),
            operator("parse", 1.0, 1.2),
            operator("clean", 0.7, 1.0),
            operator("enrich", 1.0, 1.3),
            operator("speed", 0.05, 0.7, window=window),
            operator("fares", 0.05, 0.7, window=window),
            operator("join", 0.5, 1.4, window=window, replicable=False),
            Operator(name="board", kind="sink", pin=Pin(tier="cloud")),
        ],
        streams=[Stream(source=source, target=target) for source, target in EDGES],
    )


def _declare(true: Application, kind: str, factor: float, rng: np.random.Generator) -> Application:
    """The application with declarations that are off by this factor."""
    transforms = [o.name for o in true.operators if o.kind == "transform"]
    chosen = {str(rng.choice(transforms[:5]))}
    if kind == "CPU of a site":
        chosen = set(transforms[:5])

    def declared(operator: Operator) -> Operator:
        if kind == "event size" and operator.kind == "source":
            return replace(operator, event_size=(operator.event_size or 0.0) * factor)
        if operator.name not in chosen:
            return operator
        if kind == "selectivity":
            return replace(operator, selectivity=operator.selectivity * factor)
        if kind.startswith("CPU"):
            return replace(operator, cpu_per_event=operator.cpu_per_event * factor)
        return operator

    return replace(true, operators=[declared(operator) for operator in true.operators])


class Plant:
    """What runs, and what it counts."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._rng = np.random.default_rng([case.seed, 77])
        self._arrived = dict.fromkeys(case.rates, 0)
        self._problem = Problem(application=case.true, network=case.network, rates=case.rates)
        self._fixed = {site: float(self._rng.uniform(1e5, 1e6)) for site in case.network.site_names}

    def run(self, placement: Placement, begin_s: float) -> Iterator[Arrived | BatchDone]:
        """The events of one interval."""
        deployment = deploy(self._problem, placement)
        part_s = INTERVAL_S / BATCHES
        for batch in range(1, BATCHES + 1):
            now_s = begin_s + batch * part_s
            for pair, rate in self._case.rates.items():
                self._arrived[pair] += int(self._rng.poisson(rate * part_s))
            yield Arrived(time_s=now_s, events=dict(self._arrived))
            yield from self._batches(deployment, now_s, part_s)

    def _batches(self, deployment: Deployment, now_s: float, part_s: float) -> Iterator[BatchDone]:
        rates, net = estimate_rates(deployment), self._case.network
        site_of = net.node_site[deployment.node]
        graph = deployment.graph
        # Batches differ in size.
        scale = self._rng.uniform(0.5, 1.5)
        for site in np.unique(site_of).tolist():
            came: dict[str, int] = {}
            went: dict[str, int] = {}
            outputs: dict[str, Output] = {}
            work = self._fixed[net.site_names[site]]
            for instance in np.flatnonzero(site_of == site).tolist():
                operator = self._case.true.operators[int(deployment.operator[instance])]
                name = operator.name
                count = int(self._rng.poisson(rates.events_in[instance] * part_s * scale))
                put = int(
                    self._rng.poisson(count * operator.selectivity)
                    if operator.kind == "transform"
                    else count
                )
                came[name], went[name] = came.get(name, 0) + count, went.get(name, 0) + put
                window = operator.window
                passes = window.length / window.slide if isinstance(window, TimeWindow) else 1.0
                work += count * passes * operator.cpu_per_event
                crosses = bool(np.any((graph.source == instance) & (site_of[graph.target] != site)))
                size = float(rates.size_out[instance]) * put
                if put and operator.kind != "sink":
                    link = size if crosses else None
                    outputs[name] = Output(events=put, data_bytes=size, link_bytes=link)
            measured = work * float(self._rng.normal(1.0, NOISE))
            yield BatchDone(
                time_s=now_s,
                site=net.site_names[site],
                events_in=came,
                events_out=went,
                outputs=outputs,
                instructions=max(0.0, measured),
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a case went: the intervals until all was right, None if it never was."""

    intervals: int | None
    changes: int
    reachable: bool
    """Whether the strategy keeps every limit when it is told the truth."""


def run_case(case: Case, *, intervals: int = INTERVALS) -> Outcome:
    """Drive the controller through a case."""
    controller = Controller(
        application=case.declared,
        network=case.network,
        strategy=STRATEGY,
        trigger=LIVE_TRIGGER,
        interval_s=INTERVAL_S,
    )
    state, plant = ControllerState(), Plant(case)
    declared = Problem(application=case.declared, network=case.network, rates=case.rates)
    running = controller.find(declared, None).placement
    right_since: int | None = None
    changes = 0
    told = _plan_told(case, running)
    reachable = told.feasible
    for interval in range(1, intervals + 1):
        for event in plant.run(running, (interval - 1) * INTERVAL_S):
            state, _ = controller.handle(state, event)
        cycle = Cycle(time_s=interval * INTERVAL_S, running=running)
        state, (said,) = controller.handle(state, cycle)
        if isinstance(said, Adapt):
            # The strategy that is told the truth begins with the same placement.
            told = _plan_told(case, running)
            running, changes = said.plan.placement, changes + 1
        if not _is_right(case, running, told):
            right_since = None
        elif right_since is None:
            right_since = interval
    return Outcome(intervals=right_since, changes=changes, reachable=reachable)


def _plan_told(case: Case, running: Placement) -> Plan:
    """What the same strategy plans from what runs, with the true figures."""
    return find_plan(case.true, case.network, STRATEGY, rates=case.rates, current=running)


def _is_right(case: Case, running: Placement, told: Plan) -> bool:
    """Whether every limit is kept that can be, and RU is what the strategy gets to, within 2 %."""
    problem = Problem(application=case.true, network=case.network, rates=case.rates)
    if told.feasible and check(running, problem):
        return False
    return _evaluate(problem, running).estimate.usage <= told.estimate.usage * 1.02


def _evaluate(problem: Problem, placement: Placement) -> Plan:
    return make_plan(problem, placement, strategy=STRATEGY, objective_name="usage")


def run(settings: Settings) -> Result:
    """Every kind of error, by the factor that it has."""
    seeds = settings.pick(full=100, quick=20, smoke=2)
    found: dict[tuple[str, float], list[Outcome]] = {}
    for case in cases(seeds):
        settings.tell(f"{case.kind}, {case.factor:g} ×, seed {case.seed}")
        factor = max(case.factor, 1.0 / case.factor)
        found.setdefault((case.kind, factor), []).append(run_case(case))
    rows = []
    for (kind, factor), outcomes in found.items():
        at = {"wrong": kind, "factor": f"{factor:g} ×"}
        taken = [float(o.intervals or INTERVALS + 1) for o in outcomes]
        in_time = sum(value <= TARGET_INTERVALS for value in taken) / len(taken)
        rows += [
            Row(
                measure="intervals until right, median",
                value=float(np.median(taken)),
                target=TARGET_INTERVALS,
                at=at,
            ),
            Row(measure="cases right within 3 intervals", value=in_time, at=at),
            Row(
                measure="changes, mean", value=float(np.mean([o.changes for o in outcomes])), at=at
            ),
        ]
    notes = [f"{seeds} deployments for each kind and factor, half of them with figures too small"]
    return Result(rows=rows, notes=notes)


def _mean(counts: list[int]) -> float:
    return sum(counts) / len(counts)


REGISTER.add(
    Benchmark(
        name="measured_figures",
        question="How soon does a run keep its limits where its declarations are wrong?",
        run=run,
    )
)
