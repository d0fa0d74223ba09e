import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduling.problems import random_fog_problem
from thalweg.estimate.evaluate import evaluate
from thalweg.scheduling.compiled.latency import OVERLOAD_S
from thalweg.scheduling.schedule import Table
from thalweg.scheduling.search import Search, steps_of


def random_search(seed, transforms, fogs=3):
    problem = random_fog_problem(seed, fogs=fogs, transforms=transforms)
    table = Table.of(problem)
    rng = np.random.default_rng(seed)
    choice = rng.integers(len(table.cuts), size=len(table.traffic.site))
    return Search(table, choice)


@settings(deadline=None, max_examples=200)
@given(st.integers(0, 10**6), st.integers(1, 6))
def test_streams_take_as_long_as_the_estimator_says_of_the_whole(seed, transforms):
    search = random_search(seed, transforms)
    problem = search.table.problem
    latency = search.latency_s
    assert not np.isnan(latency).any()
    if problem.births.rate.sum() == 0:
        return  # How long nothing takes is nobody's business.
    found = evaluate(problem, search.table.place(search.choice))
    born = found.deployment.origin[found.deployment.graph.roots]
    slowest = [found.response.stream_s[born == site].max() for site in search.table.traffic.site]
    finite = np.where(latency < OVERLOAD_S, latency, np.inf)
    assert finite.tolist() == pytest.approx(slowest, rel=1e-9)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10**6), st.integers(1, 6))
def test_after_any_search_the_figures_are_those_of_a_fresh_start(seed, transforms):
    search = random_search(seed, transforms)
    search.shorten()
    search.improve(search.table.usage)
    fresh = Search(search.table, search.choice)
    assert search.uplink_bps == pytest.approx(fresh.uplink_bps, rel=1e-9)
    assert search.latency_s.tolist() == pytest.approx(fresh.latency_s.tolist(), rel=1e-9)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10**6), st.integers(1, 6), st.booleans())
def test_a_step_moves_the_operator_and_just_what_must_go_with_it(seed, transforms, down):
    table = Table.of(random_fog_problem(seed, transforms=transforms))
    app, cuts = table.problem.application, table.cuts
    listed = {tuple(row): k for k, row in enumerate(cuts.members.tolist())}
    step = steps_of(cuts, app.graph, down=down)
    for cut in range(len(cuts)):
        for x in range(len(app.operators)):
            wanted = set(np.flatnonzero(cuts.members[cut]).tolist())
            frontier = [x]
            while frontier:
                y = frontier.pop()
                (wanted.add if down else wanted.discard)(y)
                for s in app.streams:
                    a, b = app.index[s.source], app.index[s.target]
                    if down and b == y and app.operators[a].kind == "transform":
                        frontier.append(a)
                    if not down and a == y:
                        frontier.append(b)
            row = tuple(k in wanted for k in range(len(app.operators)))
            if app.operators[x].kind == "transform" and cuts.members[:, x].any():
                assert step[cut, x] == listed.get(row, -1)
            else:
                assert step[cut, x] == -1
