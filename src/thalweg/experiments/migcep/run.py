"""One point of the evaluation: every approach that a figure compares, on the same city."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import pyarrow as pa

from thalweg.experiments.migcep.messages import count_messages
from thalweg.experiments.migcep.setting import (
    LEAST_EVENT_BYTES,
    MOST_EVENT_BYTES,
    TREES,
    brokers_of,
    connections_of,
    draw_instances,
    predictor_of,
    with_changing_events,
)
from thalweg.migration.approaches import drive_migcep
from thalweg.migration.baselines import drive_greedy, drive_lookahead, drive_static
from thalweg.migration.city import City
from thalweg.migration.drive import Drive
from thalweg.migration.policies import KShortest, policy
from thalweg.migration.settings import Settings
from thalweg.scenarios.randomness import random_stream

STATES = tuple(range(0, 60_001, 10_000))
STEPS_S = (1, 2, 4, 8, 16)
HORIZONS = (10, 50, 100, 250, 500)
RANGES_M = (0.0, 2_500.0, 5_000.0)
CHANGES_S = (1.25, 2.5, 5.0, 10.0, 20.0)
PATHS = (1, 2, 4, 8)
MIDDLE_STATE = 30_000
"""The state in figures for which the paper names none: half of the most it has."""
LOOK_S = 480
"""How far plans look ahead while the length of steps varies; a multiple of all of these."""
K_ERROR = (MOST_EVENT_BYTES - LEAST_EVENT_BYTES) / (MOST_EVENT_BYTES + LEAST_EVENT_BYTES)
"""How far an event may be off the mean size, as a share of it."""
MESSAGE_STEPS = 50

STATIC, GREEDY, MIGCEP, OURS = "static", "greedy", "migcep", "lookahead-optimal"
TOGETHER = "migcep-together"
"""Ours: operators also try to move as one."""
COORDINATION = "coordination"
CONSTANT = "10c-constant"
UNCERTAIN = (
    # A way that is certain leaves the other policies nothing to do: all of them come to this.
    ("navigation", "weighted-sum"),
    ("dead-reckoning", "weighted-sum"),
    ("dead-reckoning", "naive"),
    ("learned", "weighted-sum"),
    ("learned", "naive"),
    ("learned", "temporal"),
)

COLUMNS = pa.schema(
    [
        ("strategy", pa.string()),
        ("k", pa.int64()),
        # Bytes on their way at any moment of an instance's life, and the part that moves make.
        ("bdp_bytes", pa.float64()),
        ("moving_bytes", pa.float64()),
        ("moves", pa.int64()),
        ("coordinations", pa.int64()),
        ("failed_predictions", pa.int64()),
        # The largest probability of combinations that a cap left out.
        ("left_out", pa.float64()),
        # Of one time graph.
        ("vertices", pa.int64()),
        # Per coordination that sent any; first ones, and those half a plan later.
        ("first_messages", pa.float64()),
        ("next_messages", pa.float64()),
        ("quiet", pa.int64()),
    ]
)
_NOTHING: dict[str, object] = dict.fromkeys(COLUMNS.names)


def uncertain(knowledge: str, how: str) -> str:
    """The name of a policy with a knowledge."""
    return f"{MIGCEP}/{knowledge}/{how}"


def list_points(repetitions: int, instances: Mapping[str, int]) -> list[dict[str, object]]:
    """All figures; those that take longest come first. `instances` by the figure's name."""
    usual: dict[str, object] = {
        "tree": "quad",
        "event_bytes": MOST_EVENT_BYTES,
        "state_bytes": MIDDLE_STATE,
        "step_s": 1,
        "horizon": max(HORIZONS),
        "range_m": None,
        "interval_s": None,
    }
    sizes = (LEAST_EVENT_BYTES, MOST_EVENT_BYTES)
    mean = sum(sizes) / 2
    changed: dict[str, Iterable[dict[str, object]]] = {
        "10c": (
            {"interval_s": interval_s, "event_bytes": mean} for interval_s in CHANGES_S
        ),
        # The same with events that never change: what paths give that is no adaptation.
        CONSTANT: [{"event_bytes": mean}],
        "10ab": ({"state_bytes": state} for state in STATES),
        "9a-d": (
            {"tree": tree, "event_bytes": size, "state_bytes": state}
            for tree, size, state in product(reversed(TREES), sizes, STATES)
        ),
        "9f": ({"horizon": h, "range_m": r} for h, r in product(HORIZONS, RANGES_M)),
        "9e": ({"step_s": s, "horizon": LOOK_S // s} for s in STEPS_S),
        "messages": (
            {"event_bytes": size, "state_bytes": state, "horizon": MESSAGE_STEPS}
            for size, state in product(sizes, STATES)
        ),
    }  # fmt: skip
    return [
        {
            "figure": figure,
            **usual,
            **differs,
            "instances": instances[figure],
            "repetition": repetition,
        }
        for figure, points in changed.items()
        for differs in points
        for repetition in range(repetitions)
    ]


def run_point(point: Mapping[str, Any]) -> list[dict[str, object]]:
    """A row for each approach that the figure compares."""
    figure, tree = point["figure"], point["tree"]
    where = (tree, point["data"], int(point["vehicles"]))
    city = draw_instances(
        connections_of(*where),
        brokers_of(tree),
        event_bytes=point["event_bytes"],
        state_bytes=point["state_bytes"],
        instances=int(point["instances"]),
        repetition=int(point["repetition"]),
        unseen=figure == "10ab",
        stateless=figure in ("10ab", "10c", CONSTANT),
    )
    if figure == "messages":
        return [_messages(city, point)]
    if figure in ("10c", CONSTANT):
        if point["interval_s"] is not None:
            city = with_changing_events(city, point["interval_s"], int(point["repetition"]))
        return _paths(city, point, where)
    settings = Settings(
        step_ticks=int(point["step_s"]),
        horizon=int(point["horizon"]),
        **({} if point["range_m"] is None else {"range_m": point["range_m"]}),
    )
    rows = [_row(drive_static(city)), _row(drive_greedy(city)), _row(drive_lookahead(city))]
    drive = drive_migcep(city, predictor_of("perfect", *where), settings=settings)
    rows.append(_row(drive) | {"vertices": city.brokers.count * settings.horizon})
    if figure in ("9a-d", "10ab"):
        both, known = replace(settings, together=True), predictor_of("perfect", *where)
        rows.append(_row(drive_migcep(city, known, settings=both, name=TOGETHER)))
    if figure == "10ab":
        for knowledge, how in UNCERTAIN:
            known, name = predictor_of(knowledge, *where), uncertain(knowledge, how)
            rows.append(_row(drive_migcep(city, known, policy(how), settings, name=name)))
    return rows


def _paths(
    city: City, point: Mapping[str, Any], where: tuple[str, str, int]
) -> list[dict[str, object]]:
    """Plans for the mean size of events; what is measured picks one of their k paths."""
    # No change of size is beyond this: it is for the paths to adapt to it, not for new plans.
    largest = MOST_EVENT_BYTES / LEAST_EVENT_BYTES - 1
    settings = Settings(horizon=int(point["horizon"]), rate_threshold=largest)
    known = predictor_of("perfect", *where)
    return [
        _row(drive_migcep(city, known, KShortest(k, error=K_ERROR), settings)) | {"k": k}
        for k in PATHS
    ]


def _row(drive: Drive) -> dict[str, object]:
    share = float(drive.costs[:, 1].sum()) / drive.total if drive.total else 0.0
    effort = drive.effort
    return {
        **_NOTHING,
        "strategy": drive.approach,
        "bdp_bytes": drive.mean_bdp_bytes,
        "moving_bytes": drive.mean_bdp_bytes * share,
        "moves": len(drive.moves),
        "coordinations": effort.coordinations,
        "failed_predictions": effort.failed_predictions,
        "left_out": effort.left_out,
    }


def _messages(city: City, point: Mapping[str, Any]) -> dict[str, object]:
    rng = random_stream(int(point["repetition"]), "migcep", "delivery")
    first, next_ = count_messages(city, int(point["horizon"]), rng)
    both = (first[first > 0], next_[next_ > 0])
    return {
        **_NOTHING,
        "strategy": COORDINATION,
        "coordinations": first.size + next_.size,
        "first_messages": float(both[0].mean()) if both[0].size else 0.0,
        "next_messages": float(both[1].mean()) if both[1].size else 0.0,
        "quiet": first.size + next_.size - both[0].size - both[1].size,
    }
