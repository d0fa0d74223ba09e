"""A change that changes nothing leaves every figure of every station as it was."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.simulate.test_changes_in_runs import run

import thalweg as tw
from generators.problems import random_placement, random_problem
from generators.small import chain_problem, fog_problem, place
from thalweg.model import Operator, Stream
from thalweg.simulate import Control, PlanChange, RateChange, SpeedChange
from thalweg.simulate.figures import tell
from thalweg.simulate.physics import placement_physics, scheduling_physics

FIGURES = ("events", "utilisation", "queue_mean", "wait_s", "latency_s", "throughput_per_s")
CUTS_S = (0.5, 0.77, 2.2, 5.9)


def same_again(problem, placement, way):
    """Changes to what is there already."""
    net, births = problem.network, problem.births
    if way == "nothing":
        return [RateChange(at_s=at_s, rates={}) for at_s in CUTS_S]
    if way == "rates":
        names = problem.application.operators
        now = {
            (names[o].name, net.site_names[s]): float(rate)
            for o, s, rate in zip(births.operator, births.site, births.rate, strict=True)
        }
        return [RateChange(at_s=2.0, rates=now)]
    node = net.node_name(0)
    return [PlanChange(at_s=1.7, plan=placement), SpeedChange(at_s=3.1, node=node, speed=1.0)]


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([placement_physics, scheduling_physics]),
    st.sampled_from(["nothing", "rates", "plan"]),
)
@settings(max_examples=80)
def test_figures_do_not_depend_on_changes_that_change_nothing(seed, physics, way):
    rng = np.random.default_rng(seed)
    problem = random_problem(rng)
    placement = random_placement(rng, problem)
    plain = tell(run(problem, placement, physics(), []))
    other = tell(run(problem, placement, physics(), same_again(problem, placement, way)))
    assert plain.totals == other.totals
    assert plain.queues == other.queues
    for a, b in zip(
        [*plain.operators, *plain.links], [*other.operators, *other.links], strict=True
    ):
        assert a["name"] == b["name"]
        for name in FIGURES:
            np.testing.assert_allclose(a[name], b[name], rtol=1e-6, atol=1e-9, err_msg=name)


def test_the_load_of_a_link_that_served_nobody_does_not_depend_on_pieces():
    """Events of 50 and of 200 B wait for a link on which the first one takes the whole run."""
    transforms = [Operator(name="a", compression=0.5), Operator(name="b", compression=2.0)]
    pairs = [("s", "a"), ("s", "b"), ("a", "z"), ("b", "z")]
    problem = fog_problem(
        transforms,
        [Stream(source=x, target=y, probability=0.5 if x == "s" else 1.0) for x, y in pairs],
        rate=50.0,
        event_size=100.0,
        fogs=1,
        link={"bandwidth_bps": 1.0},
    )
    hosts = {"a": "f1/n", "b": "f1/n", "z": "dc/n"}

    def load(*changes):
        found = tw.simulate(
            problem.application,
            problem.network,
            place(problem, hosts),
            seconds=10.0,
            warm_up_s=5.0,
            changes=changes,
        )
        return next(row["load"] for row in found.rows("links"))

    cut = [RateChange(at_s=at_s, rates={}) for at_s in (5.0, 5.05, 5.1, 5.15)]
    assert load(*cut) == pytest.approx(load(), rel=1e-9)


def test_a_strategy_that_only_looks_changes_nothing():
    problem = chain_problem(
        Operator(name="t", cpu_per_event=5e6),
        rate=100.0,
        event_size=125.0,
        fogs=1,
        fog={"cpu_ips": 1e9},
        cloud={"cpu_ips": 1e9},
    )
    given_ = (problem.application, problem.network, place(problem, {"t": "f1/n", "z": "dc/n"}))
    plain = tw.simulate(*given_, seconds=10.0)
    seen = tw.simulate(*given_, seconds=10.0, control=Control(interval_s=0.7))
    assert len(seen.runs[0].decisions) == 14
    assert not any(row["changed"] for row in seen.runs[0].decisions)
    assert plain.totals == seen.totals
    for a, b in zip(plain.rows("operators"), seen.rows("operators"), strict=True):
        for name in FIGURES:
            assert a[name] == pytest.approx(b[name], rel=1e-9)
