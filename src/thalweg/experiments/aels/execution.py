"""Placements executed for a minute of simulated time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from time import perf_counter

import numpy as np
import numpy.typing as npt

from thalweg.model.graph import Floats
from thalweg.model.placement import Placement
from thalweg.model.problem import Problem
from thalweg.simulate.measured import measure_paths
from thalweg.simulate.physics import placement_physics
from thalweg.simulate.program import number_programs
from thalweg.simulate.run import WARM_UP_SHARE
from thalweg.simulate.seeds import Seeds
from thalweg.simulate.session import Session, Setting

SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """What a run of a placement found, over the paths that events came along in all of them."""

    simulated_latency_s: float
    """Aggregate end-to-end latency: the sum over the paths of the mean over their events."""
    simulated_window_s: float
    """The part of it that events waited for windows to fill."""
    simulated_paths: float
    """How many paths events came along to the end."""
    hops: int
    simulation_s: float


NOT_EXECUTED = dict.fromkeys(field.name for field in fields(Execution))
"""The figures of a placement that breaks a constraint: some queue of it would never end."""


@dataclass(frozen=True, slots=True, eq=False)
class _Run:
    """Latency and wait for windows of each path, NaN where no event came; and how many it is."""

    latency_s: Floats
    window_s: Floats
    ways: Floats
    hops: int
    seconds: float


def execute_all(problem: Problem, placements: Sequence[Placement], seed: str) -> list[Execution]:
    """A minute of each placement of a problem; the same placement is run once.

    All of them see the same events: random numbers belong to operators, wherever they run. Which
    rare paths are seen is chance all the same, so only those count that all of them have seen.
    """
    known: dict[str, _Run] = {}
    for placement in placements:
        key = placement.fingerprint
        if key not in known:
            known[key] = _run(problem, placement, Seeds(seed))
    if not known:
        return []
    seen = np.all([np.isfinite(run.latency_s) for run in known.values()], axis=0)
    return [_summarise(known[placement.fingerprint], seen) for placement in placements]


def _run(problem: Problem, placement: Placement, seeds: Seeds) -> _Run:
    started = perf_counter()
    programs = number_programs([problem], [placement], [placement_physics()])
    setting = Setting(
        programs=programs, seconds=SECONDS, warm_s=WARM_UP_SHARE * SECONDS, brief=True
    )
    session = Session(setting, seeds)
    session.run()
    latency_s, window_s, ways = measure_paths(session, 0)
    if session.stopped_s is not None:  # More waited than there is room for: no latency is known.
        latency_s = np.full_like(latency_s, np.nan)
    return _Run(latency_s, window_s, ways, session.engine.hops, perf_counter() - started)


def _summarise(run: _Run, seen: npt.NDArray[np.bool_]) -> Execution:
    ways = run.ways[seen]
    return Execution(
        simulated_latency_s=float(run.latency_s[seen] @ ways),
        simulated_window_s=float(run.window_s[seen] @ ways),
        simulated_paths=float(ways.sum()),
        hops=run.hops,
        simulation_s=run.seconds,
    )
