"""Bytes on links, lineages of events, and the rows that tell their ways apart."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generators.problems import random_placement, random_problem
from generators.small import fog_problem, place
from thalweg.errors import InvalidInput
from thalweg.estimate.rates import estimate_rates
from thalweg.model import Operator, Stream
from thalweg.simulate.figures import tell
from thalweg.simulate.lineages import trace_lineages
from thalweg.simulate.paths import list_paths
from thalweg.simulate.physics import Physics
from thalweg.simulate.program import number_programs
from thalweg.simulate.seeds import Seeds
from thalweg.simulate.session import Session, Setting

SEED = st.integers(0, 2**32 - 1)


def count_paths(graph):
    """Ways from where nothing comes in to where nothing goes out, counted one by one."""
    after = [[] for _ in range(graph.size)]
    for a, b in zip(graph.source.tolist(), graph.target.tolist(), strict=True):
        after[a].append(b)

    def ways(vertex):
        return sum(ways(other) for other in after[vertex]) if after[vertex] else 1

    return sum(ways(k) for k in set(range(graph.size)) - set(graph.target.tolist()))


def without_waiting(problem):
    """The same on nodes and links so fast that nothing waits and everything gets there."""
    app, net = problem.application, problem.network
    operators = [
        replace(o, cpu_per_event=0.0, cpu_per_byte=0.0, window=None) for o in app.operators
    ]
    return replace(problem, application=replace(app, operators=tuple(operators)), network=net)


def run(problem, placement, *, most=None, seconds=20.0, physics=None):
    programs = number_programs([problem], [placement], [physics or Physics()])
    if most is not None:
        programs = [replace(programs[0], lineages=trace_lineages(problem, most=most))]
    session = Session(Setting(programs=programs, seconds=seconds, warm_s=0.0), Seeds("5"))
    session.run()
    return session


def stuck(session):
    """Whether a link has no bandwidth, or too little: what is behind it is not measured."""
    servers = session.engine.servers
    return any(server.station.halted or server.waiting.count for server in servers)


def diamond(**figures):
    """Two ways of unequal sizes that join: "a" halves events, "b" doubles them."""
    transforms = [
        Operator(name="a", compression=0.5),
        Operator(name="b", compression=2.0, selectivity=0.5),
        Operator(name="c"),
    ]
    pairs = [("s", "a"), ("s", "b"), ("a", "c"), ("b", "c"), ("c", "z")]
    return fog_problem(
        transforms,
        [Stream(source=x, target=y) for x, y in pairs],
        **{"rate": 200.0, "event_size": 100.0, "fogs": 2, **figures},
    )


DIAMOND_HOSTS = {"a": "dc/n", "b": "dc/n", "c": "f1/n", "z": "dc/n"}


def test_bytes_of_every_way_are_told_apart():
    problem = diamond(link={"bandwidth_bps": 1e12, "latency_s": 0.0})
    session = run(problem, place(problem, DIAMOND_HOSTS), seconds=100.0)
    links = {row["name"]: row for row in tell(session).links}
    # 100 events/s in f1: 100 B to a and to b; f2 the same. Then 200 of 50 B and 100 of 200 B.
    assert links["WAN f2 → dc"]["sent_bytes"] / 100 == pytest.approx(2 * 100 * 100, rel=0.04)
    assert links["WAN dc → f1"]["sent_bytes"] / 100 == pytest.approx(200 * 50 + 100 * 200, rel=0.04)
    both = links["WAN f1 → dc"]["sent_bytes"] / 100
    assert both == pytest.approx(2 * 100 * 100 + 200 * 50 + 100 * 200, rel=0.04)


@given(SEED)
@settings(max_examples=25)
def test_bytes_on_edges_are_those_of_the_estimate(seed):
    rng = np.random.default_rng(seed)
    problem = without_waiting(random_problem(rng))
    placement = random_placement(rng, problem)
    seconds = 40.0
    session = run(problem, placement, seconds=seconds)
    program = session.programs[0]
    assert not program.lineages.merged
    rates = estimate_rates(program.deployment)
    if stuck(session):
        return
    segment = session.segments[0]
    # What is under way at the end is at most a second of latency; the rest is chance. Events that
    # come in bunches, copied before they were thinned, vary more than a Poisson process.
    for measured, expected in (
        (segment.edge_events, rates.flow * seconds),
        (segment.edge_bytes, rates.flow_bps / 8 * seconds),
    ):
        each = expected / np.maximum(rates.flow * seconds, 1e-9)
        spread = each * np.sqrt(rates.flow * seconds) * 4
        slack = 5 * spread + 0.05 * expected + 20 * each
        assert (np.abs(measured - expected) <= slack).all()


def test_bytes_on_edges_would_be_found_wrong_by_a_tenth():
    problem = diamond(rate=2000.0, link={"bandwidth_bps": 1e12, "latency_s": 0.0})
    session = run(problem, place(problem, DIAMOND_HOSTS), seconds=50.0)
    rates = estimate_rates(session.programs[0].deployment)
    measured = session.segments[0].edge_bytes * 8 / 50.0
    np.testing.assert_allclose(measured, rates.flow_bps, rtol=0.03)


@given(SEED)
@settings(max_examples=25)
def test_merged_lineages_give_the_same_counts(seed):
    rng = np.random.default_rng(seed)
    # Sizes decide when events get through a link, and so in which order they are drawn for.
    problem = without_waiting(random_problem(rng))
    placement = random_placement(rng, problem)
    exact = run(problem, placement, seconds=5.0)
    try:
        merged = run(problem, placement, most=0, seconds=5.0)
    except InvalidInput:
        return  # Events of one birth go to two instances of an operator: refused, see below.
    assert merged.programs[0].lineages.merged
    a, b = tell(exact), tell(merged)
    assert a.totals["born"] == b.totals["born"]
    assert [row["name"] for row in a.operators] == [row["name"] for row in b.operators]
    if stuck(exact) or stuck(merged):
        return
    # Who is drawn for first may differ where links are crossed, but not by how many.
    for name, count in come_to_operators(a).items():
        assert come_to_operators(b)[name] == pytest.approx(count, rel=0.03, abs=10)


def come_to_operators(figures):
    """Events that came to all instances of each operator."""
    found = {}
    for row in figures.operators:
        name = row["name"].partition("@")[0]
        found[name] = found.get(name, 0) + row["events"]
    return found


@pytest.mark.parametrize("seed", [1000259, 1000261])
def test_merged_lineages_refuse_two_instances_for_events_of_one_birth(seed):
    rng = np.random.default_rng(seed)
    problem = without_waiting(random_problem(rng))
    placement = random_placement(rng, problem)
    run(problem, placement, seconds=5.0)
    with pytest.raises(InvalidInput, match="one instance for all events of a site"):
        run(problem, placement, most=0, seconds=5.0)


def test_merged_lineages_give_the_same_events_and_nearly_the_same_bytes():
    problem = diamond(link={"bandwidth_bps": 1e12, "latency_s": 0.0})
    placement = place(problem, DIAMOND_HOSTS)
    exact = run(problem, placement, seconds=100.0)
    merged = run(problem, placement, most=0, seconds=100.0)
    assert merged.programs[0].lineages.merged
    assert not exact.programs[0].lineages.merged
    assert tell(exact).totals == tell(merged).totals
    np.testing.assert_array_equal(exact.segments[0].edge_events, merged.segments[0].edge_events)
    np.testing.assert_allclose(
        exact.segments[0].edge_bytes, merged.segments[0].edge_bytes, rtol=0.02
    )
    # Behind the join all are as large as the mean: 200 events of 50 B and 100 of 200 B.
    behind = int(merged.programs[0].lineages.stream_first[4])
    assert merged.engine.layout.sizes[behind] == pytest.approx(100.0)
    assert 100.0 not in exact.engine.layout.sizes[int(exact.programs[0].lineages.stream_first[4]) :]


def test_merged_rows_are_told_by_birth_and_count_their_ways():
    problem = diamond()
    session = run(problem, place(problem, DIAMOND_HOSTS), most=0, seconds=5.0)
    rows = tell(session).paths
    assert {row["name"]: row["ways"] for row in rows} == {
        "s@f1 → … → z": 2.0,
        "s@f2 → … → z": 2.0,
    }


def test_rows_of_paths_are_named_after_the_operators_on_them():
    problem = diamond()
    session = run(problem, place(problem, DIAMOND_HOSTS), seconds=5.0)
    rows = tell(session).paths
    assert {row["name"] for row in rows} == {
        f"s@f{k} → {way} → c → z" for k in (1, 2) for way in ("a", "b")
    }
    assert {row["sink"] for row in rows} == {"z"}
    assert {row["source"] for row in rows} == {"s@f1", "s@f2"}
    by_name = {row["name"]: row["events"] for row in rows}
    # Half of those that come by b are dropped there.
    assert by_name["s@f1 → b → c → z"] < 0.65 * by_name["s@f1 → a → c → z"]


@given(SEED, st.sampled_from([None, 0]), st.sampled_from([2000, 3, 0]))
@settings(max_examples=60)
def test_the_ways_of_all_rows_are_the_paths_of_the_deployment(seed, most, rows):
    rng = np.random.default_rng(seed)
    problem = random_problem(rng)
    placement = random_placement(rng, problem)
    programs = number_programs([problem], [placement], [Physics()])
    if most is not None:
        programs = [replace(programs[0], lineages=trace_lineages(problem, most=most))]
    book = list_paths(programs, most=rows)
    assert sum(row.ways for row in book.rows) == count_paths(programs[0].deployment.graph)
    names = [row.name for row in book.rows]
    assert len(set(names)) == len(names)
    assert book.row_of.min(initial=0) >= 0
    assert book.row_of.max(initial=0) < len(book.rows)
