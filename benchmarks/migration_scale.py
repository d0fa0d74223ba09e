"""How fast are plans for operators that follow moving users, and how does that grow?

A plan is the whole job of an operator that knows its two neighbours' plans: what each step costs at
each broker, and the cheapest way through the time graph. The city is that of the MigCEP experiment:
1,000 vehicles for 1,000 s, an instance of two operators for each, 21 brokers.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import TypeVar

import numpy as np

from benchmarks.measure import median_seconds, timed
from benchmarks.migration_plain import draw_graph, try_every_sequence
from benchmarks.runner import REGISTER, Benchmark, Count, Result, Row, Settings
from thalweg.files.tracks_reader import load_tracks
from thalweg.migration.approaches import could_be_full, drive_migcep
from thalweg.migration.baselines import drive_greedy, drive_lookahead, drive_static
from thalweg.migration.brokers import Brokers
from thalweg.migration.city import City, draw_city
from thalweg.migration.connections import Connections
from thalweg.migration.drive import Drive
from thalweg.migration.fan import Fan
from thalweg.migration.leaves import LeafIndex
from thalweg.migration.mobility import predictor
from thalweg.migration.operators import MobileGraph
from thalweg.migration.outlook import Outlook, Tie
from thalweg.migration.policies import weighted_sum
from thalweg.migration.time_graph import Moves, MoveTime, cheapest_path
from thalweg.model.graph import Index
from thalweg.model.vehicles import VehicleTracks
from thalweg.scenarios import BrokerFigures, broker_tree, nearby_friends
from thalweg.scenarios.vehicles import city_vehicles
from thalweg.simulate.moving import execute

LEVELS = (3, 4, 5, 6, 7)
"""21, 85, 341, 1,365 and 5,461 brokers."""
QUICK_LEVELS, SMOKE_LEVELS = (3, 4, 5, 6), (3, 4, 5)
STEPS = (50, 100, 200, 400, 800, 1_600, 3_200)
QUICK_STEPS, SMOKE_STEPS = (50, 200, 800), (50, 100)
GROWTH_STEPS, GROWTH_LEVELS, PAIRS_LEVELS = 100, 5, (3, 4, 5)
LARGE_LEVELS, LARGE_STEPS = 6, 500
SMOKE_LARGE_LEVELS, SMOKE_LARGE_STEPS = 4, 50
HOP_STEPS_S = (0.03, 0.005)
"""Steps so short that the longest move takes 2 and 11 of them."""
OPERATORS, SMOKE_OPERATORS, OPERATOR_STEPS = 1_000, 10, 100
INSTANCES, QUICK_INSTANCES, SMOKE_INSTANCES = 1_000, 200, 20
SMOKE_SECONDS = 100.0
"""Of the generated city; a recorded one is replayed whole."""
PLAN_TARGET_S, OPERATORS_TARGET_S, CITY_TARGET_S = 0.05, 1.0, 5.0
EXPONENT_TARGET, LOOK_UP_TARGET = 1.1, 1e6
EVENT_BYTES, MAP_BYTES = 250.0, 30_000.0
TRACE = Path("sumo_luxembourg") / "fcd_compact.parquet"
LINEAR, QUADRATIC = "a plan, whole job", "a plan, all pairs of brokers"

MIGCEP = "migcep, perfect knowledge"
ROOMY_MIPS, SCARCE_MIPS = 100_000.0, 200.0
"""Of a leaf: with room for everybody, as in the experiment; and for two instances in three."""

Answer = TypeVar("Answer")


def run(settings: Settings) -> Result:
    """Time plans, their growth, a city and look-ups; compare plans with every sequence."""
    city, city_counts, source = _measure_city(settings)
    compared, compared_counts = _compare_with_every_sequence(settings)
    rows = [
        *_measure_large_plans(settings),
        _measure_many_operators(settings),
        *_measure_growth(settings),
        *city,
        *_measure_look_ups(settings),
        *compared,
    ]
    notes = [
        "a plan: costs of all steps at all brokers from two neighbours' plans, and the search",
        f"quad-trees with equal latencies; {MAP_BYTES:,.0f} bytes of state and a window; medians",
        "of the city, CPU seconds of one process; compiled code is warm everywhere",
        source,
        "beyond 2,048 brokers a plan makes the delays that it needs, below they are kept",
    ]
    return Result(rows=rows, notes=notes, counts=[*city_counts, *compared_counts])


def _tree(levels: int, **figures: float) -> Brokers:
    return Brokers.of(broker_tree(levels, figures=BrokerFigures(latency_growth=1.0, **figures)))


def _walk(brokers: Brokers, steps: int, rng: np.random.Generator) -> Index:
    """From leaf to leaf, ten steps at each in the mean, mostly to one nearby."""
    leaps = rng.integers(-2, 3, steps) * (rng.uniform(size=steps) < 0.1)
    place = (int(rng.integers(brokers.leaves.size)) + np.cumsum(leaps)) % brokers.leaves.size
    return brokers.leaves[place]


def _fan(brokers: Brokers, steps: int, rng: np.random.Generator, sequences: int) -> Fan:
    hosts = np.stack([_walk(brokers, steps, rng) for _ in range(sequences)])
    return Fan(weight=np.full(sequences, 1.0 / sequences), hosts=hosts)


def _outlook(moves: Moves, steps: int, seed: int = 0, sequences: int = 1) -> Outlook:
    """An operator between two neighbours whose plans are known."""
    rng, brokers = np.random.default_rng(seed), moves.brokers
    operator = MobileGraph.of(nearby_friends(EVENT_BYTES, MAP_BYTES)).operators[0]
    ties = tuple(
        Tie(
            neighbour=name,
            fan=_fan(brokers, steps, rng, sequences),
            carried_bytes=np.full(steps, carried * moves.step_s),
            incoming=incoming,
        )
        for name, carried, incoming in (
            ("position", EVENT_BYTES, True),
            ("friends", EVENT_BYTES / 2, False),
        )
    )
    start = int(rng.integers(brokers.count))
    return Outlook(operator=operator, moves=moves, ties=ties, start=start)


def _plan_again(outlook: Outlook) -> None:
    """Plan as if for the first time: nothing that an outlook keeps is there."""
    weighted_sum(
        Outlook(
            operator=outlook.operator, moves=outlook.moves, ties=outlook.ties, start=outlook.start
        )
    )


def _moves(levels: int) -> Moves:
    return Moves.of(_tree(levels), state_bytes=MAP_BYTES, step_s=1.0)


def _measure_large_plans(settings: Settings) -> list[Row]:
    repeats = settings.pick(full=31, quick=5, smoke=1)
    levels, steps = (
        (SMOKE_LARGE_LEVELS, SMOKE_LARGE_STEPS) if settings.smoke else (LARGE_LEVELS, LARGE_STEPS)
    )
    fast = _moves(levels)
    settings.tell(f"plans on {fast.brokers.count:,} brokers")
    alike = _tree(levels, bandwidth_growth=1.0)
    cases = [(fast, 1), (fast, 4)]
    for step_s in HOP_STEPS_S:
        slow = Moves.of(alike, state_bytes=MAP_BYTES, step_s=step_s)
        if slow.time is not MoveTime.HOPS:
            raise RuntimeError("hops were to decide how long these moves take")
        cases.append((slow, 1))
    rows = []
    for moves, sequences in cases:
        outlook = _outlook(moves, steps, sequences=sequences)
        longest = 1 if moves is fast else int(moves.steps_of_hops.max())
        rows.append(
            Row(
                measure=LINEAR,
                value=median_seconds(partial(_plan_again, outlook), repeats=repeats, warm_up=2),
                unit="s",
                target=PLAN_TARGET_S,
                at={
                    "brokers": moves.brokers.count,
                    "steps": steps,
                    "sequences of a neighbour": sequences,
                    "steps of the longest move": longest,
                },
                note=f"median of {repeats}",
            )
        )
    rows.append(_measure_fresh_brokers(levels, steps, min(repeats, 5)))
    return rows


def _measure_fresh_brokers(levels: int, steps: int, repeats: int) -> Row:
    """What the first plan on a tree costs more: delays between all brokers."""
    seconds = []
    for _ in range(repeats):
        moves = _moves(levels)
        seconds.append(timed(partial(_plan_again, _outlook(moves, steps)))[1])
    return Row(
        measure="the first plan on a tree, delays of all pairs included",
        value=median(seconds),
        unit="s",
        at={"brokers": moves.brokers.count, "steps": steps},
        note=f"median of {repeats}",
    )


def _measure_many_operators(settings: Settings) -> Row:
    operators = SMOKE_OPERATORS if settings.smoke else OPERATORS
    settings.tell(f"{operators:,} operators on 21 brokers")
    moves = _moves(LEVELS[0])
    outlooks = [_outlook(moves, OPERATOR_STEPS, seed) for seed in range(operators)]

    def plan_all() -> None:
        for outlook in outlooks:
            _plan_again(outlook)

    repeats = settings.pick(full=9, quick=3, smoke=1)
    return Row(
        measure=f"plans of {operators:,} operators",
        value=median_seconds(plan_all, repeats=repeats),
        unit="s",
        target=OPERATORS_TARGET_S,
        at={"brokers": moves.brokers.count, "steps": OPERATOR_STEPS},
        note=f"median of {repeats}",
    )


def _measure_growth(settings: Settings) -> list[Row]:
    """Sizes in turns, so that a machine that gets busy does not bend the line."""
    settings.tell("growth with brokers and steps")
    levels = settings.pick(full=LEVELS, quick=QUICK_LEVELS, smoke=SMOKE_LEVELS)
    repeats = settings.pick(full=31, quick=7, smoke=1)
    trees = {tree: _outlook(_moves(tree), GROWTH_STEPS) for tree in levels}
    brokers = {tree: outlook.moves.brokers.count for tree, outlook in trees.items()}
    calls: dict[int, Callable[[], object]] = {
        brokers[tree]: partial(_plan_again, outlook) for tree, outlook in trees.items()
    }
    pairs: dict[int, Callable[[], object]] = {}
    for tree in PAIRS_LEVELS:
        graph = trees[tree].graph(trees[tree].place_cost())
        pairs[brokers[tree]] = partial(cheapest_path, graph, all_pairs=True)
        calls[-brokers[tree]] = partial(cheapest_path, graph)
    by_brokers = _in_turns(calls, repeats)
    by_pairs = _in_turns(pairs, min(repeats, 3))
    wide = _moves(GROWTH_LEVELS)
    by_steps = _in_turns(
        {
            steps: partial(_plan_again, _outlook(wide, steps))
            for steps in settings.pick(full=STEPS, quick=QUICK_STEPS, smoke=SMOKE_STEPS)
        },
        repeats,
    )
    rows = [
        *(_time_row(LINEAR, by_brokers[brokers[k]], brokers[k], GROWTH_STEPS) for k in levels),
        *(_time_row(LINEAR, by_steps[k], wide.brokers.count, k) for k in by_steps),
        *(_time_row(QUADRATIC, by_pairs[k], k, GROWTH_STEPS) for k in by_pairs),
    ]
    linear = {size: by_brokers[size] for size in brokers.values()}
    rows += _growths("brokers", linear, LINEAR, EXPONENT_TARGET)
    rows += _growths("steps", by_steps, LINEAR, EXPONENT_TARGET)
    rows += _growths("brokers", by_pairs, QUADRATIC, None)
    rows += [
        Row(
            measure="all pairs take as long as the search over the tree",
            value=by_pairs[size] / by_brokers[-size],
            unit="times",
            at={"brokers": size, "steps": GROWTH_STEPS},
        )
        for size in by_pairs
    ]
    return rows


def _in_turns(calls: dict[int, Callable[[], object]], repeats: int) -> dict[int, float]:
    """The median of each call, all called one after the other in every turn."""
    seconds: dict[int, list[float]] = {size: [] for size in calls}
    for turn in range(repeats + 1):
        for size, call in calls.items():
            _, elapsed = timed(call)
            if turn:
                seconds[size].append(elapsed)
    return {size: median(times) for size, times in seconds.items()}


def _time_row(measure: str, seconds: float, brokers: int, steps: int) -> Row:
    at = {"brokers": brokers, "steps": steps}
    # Past some size the arrays leave the processor's cache, and each vertex takes longer.
    note = f"{1e9 * seconds / (brokers * steps):.1f} ns for each vertex"
    return Row(measure=measure, value=seconds, unit="s", at=at, note=note)


def _growths(by: str, seconds: dict[int, float], measure: str, target: float | None) -> list[Row]:
    """Over all sizes, and between the largest two: at small sizes most of the time is fixed."""
    sizes = sorted(seconds)
    return [
        Row(
            measure=f"growth with the {by}",
            value=_exponent(some, [seconds[size] for size in some]),
            unit="exponent",
            target=target,
            at={"of": measure, "from": some[0], "to": some[-1]},
            note=f"slope of log time over log {by}",
        )
        for some in (sizes, sizes[-2:])
    ]


def _exponent(sizes: list[int], seconds: list[float]) -> float:
    slope, _ = np.polyfit(np.log(sizes), np.log(seconds), 1)
    return float(slope)


def _cpu_timed(call: Callable[[], Answer]) -> tuple[Answer, float]:
    start = time.process_time()
    answer = call()
    return answer, time.process_time() - start


def _measure_city(settings: Settings) -> tuple[list[Row], list[Count], str]:
    """The MigCEP experiment at one point; rows, counts, and where the vehicles come from."""
    path = settings.data / TRACE
    real = path.exists()
    settings.tell("a city of 1,000 vehicles")

    def load() -> VehicleTracks:
        if real:
            return load_tracks(path)
        if settings.smoke:
            return city_vehicles(SMOKE_INSTANCES, SMOKE_SECONDS)[0]
        return city_vehicles()[0]

    brokers = _tree(LEVELS[0], leaf_mips=ROOMY_MIPS)
    load()
    vehicles, loading_s = _cpu_timed(load)
    connect = partial(Connections.of, vehicles.names, vehicles.tracks, brokers)
    connect()
    connections, connecting_s = _cpu_timed(connect)
    graph = MobileGraph.of(nearby_friends(EVENT_BYTES, MAP_BYTES))
    instances = settings.pick(full=INSTANCES, quick=QUICK_INSTANCES, smoke=SMOKE_INSTANCES)
    city = draw_city(graph, brokers, connections, np.random.default_rng(0), instances=instances)
    measures = {
        "the trace, read and checked" if real else "the trace, generated": loading_s,
        "leaves of all vehicles at all moments": connecting_s,
    }
    rows = [
        Row(measure=name, value=value, unit="s", note="CPU") for name, value in measures.items()
    ]
    driven, counts = _measure_drives(city, settings)
    rows += driven
    scarce = replace(city, brokers=_tree(LEVELS[0], leaf_mips=SCARCE_MIPS * instances / INSTANCES))
    rows.append(_measure_scarce(scarce, settings))
    there = f"{connections.vehicles:,} vehicles, {connections.steps:,} moments"
    known = f"{path.name} of {path.parent.name}" if real else "generated vehicles"
    return rows, counts, f"the city: {known}, {there}, {city.instances:,} instances, 21 brokers"


def _measure_scarce(city: City, settings: Settings) -> Row:
    """On slower leaves: whoever plans has to look where there is room."""
    settings.tell("the city where brokers can become full")
    if not could_be_full(city):
        raise RuntimeError("these leaves were to be too slow for everybody at once")
    knowing = predictor("perfect", city.connections, city.brokers)
    done, seconds = _cpu_timed(partial(drive_migcep, city, knowing))
    return Row(
        measure="an approach decides for the city",
        value=seconds,
        unit="s",
        target=CITY_TARGET_S if city.instances == INSTANCES else None,
        at={"approach": f"{MIGCEP}, brokers can become full", "instances": city.instances},
        note=f"CPU; {len(done.moves):,} moves",
    )


def _measure_drives(city: City, settings: Settings) -> tuple[list[Row], list[Count]]:
    knowing = predictor("perfect", city.connections, city.brokers)
    drives: dict[str, Callable[[], Drive]] = {
        MIGCEP: lambda: drive_migcep(city, knowing),
        "static": partial(drive_static, city),
        "greedy": partial(drive_greedy, city),
        "lookahead-optimal": partial(drive_lookahead, city),
    }
    rows, counts = [], []
    for name, drive in drives.items():
        settings.tell(f"{name} in the city")

        def decide_and_price(drive: Callable[[], Drive] = drive) -> Drive:
            done = drive()
            _ = done.total
            return done

        done = decide_and_price()
        seconds = [
            _cpu_timed(decide_and_price)[1] for _ in range(settings.pick(full=3, quick=1, smoke=1))
        ]
        execute(done)
        executed, executing_s = _cpu_timed(partial(execute, done))
        at = {"approach": name, "instances": city.instances}
        has_target = name == MIGCEP and city.instances == INSTANCES
        rows += [
            Row(
                measure="an approach decides for the city",
                value=median(seconds),
                unit="s",
                target=CITY_TARGET_S if has_target else None,
                at=at,
                note=f"CPU; {len(done.moves):,} moves",
            ),
            Row(
                measure="its hosts executed, event by event",
                value=executing_s,
                unit="s",
                at=at,
                note=f"CPU; {executed.born:,} events born, {executed.lost} lost",
            ),
        ]
        counts.append(Count(name=f"events lost, {name}", expected=0, counted=executed.lost))
    return rows, counts


def _measure_look_ups(settings: Settings) -> list[Row]:
    settings.tell("leaves of positions")
    positions = settings.pick(full=2_000_000, quick=100_000, smoke=1_000)
    rng, rows = np.random.default_rng(0), []
    for levels in (3, 5, 7):
        brokers = _tree(levels)
        areas = brokers.area_m[brokers.leaves]
        index = LeafIndex(areas)
        x = rng.uniform(areas[:, 0].min(), areas[:, 2].max(), positions)
        y = rng.uniform(areas[:, 1].min(), areas[:, 3].max(), positions)
        rows.append(
            Row(
                measure="positions whose leaf is found",
                value=positions / median_seconds(partial(index.find, x, y), repeats=7),
                unit="per s",
                target=LOOK_UP_TARGET,
                at_least=True,
                at={"leaves": len(index)},
            )
        )
    return rows


def _compare_with_every_sequence(settings: Settings) -> tuple[list[Row], list[Count]]:
    """On small random trees, the cost of the plan and the least of all sequences."""
    settings.tell("every sequence of hosts on small trees")
    rng = np.random.default_rng(0)
    trees, most = settings.pick(full=(300, np.inf), quick=(30, 1e5), smoke=(3, 1e3))
    graphs = [draw_graph(rng, most_sequences=most) for _ in range(trees)]
    took: Counter[str] = Counter()
    sequences, largest, better = 0, 0.0, 0
    for graph in graphs:
        best, path = try_every_sequence(graph), cheapest_path(graph)
        if path is None:
            raise RuntimeError("staying at the start is always possible here")
        took[graph.moves.time.value] += 1
        sequences += best.sequences
        largest = max(largest, abs(path.cost - best.cost) / max(best.cost, 1.0))
        better += path.cost < best.cost - 1e-9 * max(best.cost, 1.0)
    shown = ", ".join(f"{number} by {name}" for name, number in sorted(took.items()))
    return [
        Row(measure="plans compared with every sequence of hosts", value=trees, note=shown),
        Row(measure="sequences tried", value=sequences),
        Row(
            measure="largest difference in cost",
            value=largest,
            target=1e-9,
            note="relative",
        ),
    ], [Count(name="plans cheaper than every sequence of hosts", expected=0, counted=better)]


def plot(result: Result, path: Path) -> None:
    """Draw the time of a plan over brokers, with the search over all pairs."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 5), layout="constrained")
    axes = figure.subplots()
    for measure in (LINEAR, QUADRATIC):
        # One size is measured over brokers and over steps; the first of both is drawn.
        seconds: dict[object, object] = {}
        for row in result.rows:
            if row.measure == measure and row.at.get("steps") == GROWTH_STEPS:
                seconds.setdefault(row.at["brokers"], row.value)
        axes.loglog(*zip(*seconds.items(), strict=True), marker="o", markersize=4, label=measure)
    axes.set_xlabel("brokers")
    axes.set_ylabel(f"seconds for a plan of {GROWTH_STEPS} steps")
    axes.grid(alpha=0.3, which="both")
    axes.legend()
    figure.savefig(path, dpi=130)


REGISTER.add(
    Benchmark(
        name="migration_scale",
        question="How fast are plans for operators that follow users, and how do they grow?",
        run=run,
        plot=plot,
    )
)
