"""Placements executed for a minute of simulated time."""

from __future__ import annotations

from dataclasses import dataclass, fields
from time import perf_counter

from thalweg.model.placement import Placement
from thalweg.model.problem import Problem
from thalweg.simulate.measured import measure_latencies
from thalweg.simulate.physics import placement_physics
from thalweg.simulate.program import number_programs
from thalweg.simulate.run import WARM_UP_SHARE
from thalweg.simulate.seeds import Seeds
from thalweg.simulate.session import Session, Setting

SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """What a run of a placement found, over the paths that events came along."""

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


class Executor:
    """Executes placements of one problem; the same placement once.

    All of them see the same events: random numbers belong to operators, wherever they run.
    """

    def __init__(self, problem: Problem, seed: str) -> None:
        self._problem, self._seeds = problem, Seeds(seed)
        self._known: dict[str, Execution] = {}

    def run(self, placement: Placement) -> Execution:
        """A minute of this placement."""
        key = placement.fingerprint
        if key not in self._known:
            self._known[key] = self._execute(placement)
        return self._known[key]

    def _execute(self, placement: Placement) -> Execution:
        started = perf_counter()
        programs = number_programs([self._problem], [placement], [placement_physics()])
        setting = Setting(
            programs=programs, seconds=SECONDS, warm_s=WARM_UP_SHARE * SECONDS, brief=True
        )
        session = Session(setting, self._seeds)
        session.run()
        found = measure_latencies(session, 0)
        return Execution(
            simulated_latency_s=found["aggregate_latency_s"],
            simulated_window_s=found["aggregate_window_s"],
            simulated_paths=found["paths"],
            hops=session.engine.hops,
            simulation_s=perf_counter() - started,
        )
