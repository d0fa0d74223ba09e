"""Whatever changes on the way, every event is accounted for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generators.problems import random_placement, random_problem
from thalweg.model.changes import PlanChange, RateChange, SpeedChange
from thalweg.simulate.figures import tell
from thalweg.simulate.physics import placement_physics, scheduling_physics
from thalweg.simulate.program import number_programs
from thalweg.simulate.seeds import Seeds
from thalweg.simulate.session import Session, Setting
from thalweg.simulate.simulation import _is_conserved

SECONDS = 6.0


def random_changes(rng, problem):
    """A few changes of all sorts, at random times, some of them at the same moment."""
    net = problem.network
    changes = []
    for _ in range(int(rng.integers(0, 6))):
        at_s = float(rng.choice([0.0, 1.0, 2.5, rng.uniform(0, SECONDS * 0.99)]))
        sort = rng.choice(["plan", "rates", "node", "link"])
        if sort == "plan":
            changes.append(PlanChange(at_s=at_s, plan=random_placement(rng, problem)))
        elif sort == "rates":
            births = problem.births
            rates = {
                (problem.application.operators[o].name, net.site_names[s]): float(
                    rng.uniform(0, 200)
                )
                for o, s in zip(births.operator.tolist(), births.site.tolist(), strict=True)
                if rng.random() < 0.5
            }
            changes.append(RateChange(at_s=at_s, rates=rates))
        elif sort == "node":
            node = net.node_name(int(rng.integers(net.node_count)))
            changes.append(_speed(rng, at_s, node=node))
        else:
            a, b = rng.integers(0, net.site_count, 2).tolist()
            if len(net.wan.route(a, b)) == 1 and len(net.wan.route(b, a)) == 1:
                changes.append(_speed(rng, at_s, link=(net.site_names[a], net.site_names[b])))
    return changes


def _speed(rng, at_s, **where):
    speed = float(rng.choice([0.0, 0.0, 0.3, 1.0, 2.0]))
    return SpeedChange(at_s=at_s, speed=speed, loses=speed == 0 and rng.random() < 0.5, **where)


def run(problem, placement, physics, changes, seconds=SECONDS):
    programs = number_programs([problem], [placement], [physics])
    setting = Setting(programs=programs, seconds=seconds, warm_s=0.5, changes=changes)
    session = Session(setting, Seeds("3"))
    session.run()
    return session


@given(st.integers(0, 2**32 - 1), st.sampled_from([placement_physics, scheduling_physics]))
@settings(max_examples=150, deadline=None)
def test_events_are_conserved_whatever_changes(seed, physics):
    rng = np.random.default_rng(seed)
    problem = random_problem(rng)
    placement = random_placement(rng, problem)
    session = run(problem, placement, physics(), random_changes(rng, problem))
    totals = tell(session).totals
    assert _is_conserved(totals), totals
    assert session.engine.now_s == SECONDS


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_a_change_to_the_same_changes_nothing(seed):
    rng = np.random.default_rng(seed)
    problem = random_problem(rng)
    placement = random_placement(rng, problem)
    node = problem.network.node_name(0)
    same = [PlanChange(at_s=1.7, plan=placement), SpeedChange(at_s=3.1, node=node, speed=1.0)]
    plain = tell(run(problem, placement, placement_physics(), []))
    other = tell(run(problem, placement, placement_physics(), same))
    assert other.moves == []
    assert plain.totals == other.totals
    for a, b in zip(plain.paths, other.paths, strict=True):
        assert a["events"] == b["events"]
        assert a["latency_s"] == pytest.approx(b["latency_s"], rel=1e-9, nan_ok=True)
