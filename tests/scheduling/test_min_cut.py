from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import thalweg as tw
from scheduling.problems import random_fog_problem
from thalweg.estimate.evaluate import evaluate
from thalweg.scheduling.costs import CPU, MEMORY, STUCK
from thalweg.scheduling.schedule import Table

LOCAL = {"memory", "cpu", "bandwidth", "stability"}


@settings(deadline=None, max_examples=150)
@given(st.integers(0, 10**6), st.integers(1, 6))
def test_the_table_adds_up_to_what_the_estimators_say_of_the_whole(seed, transforms):
    problem = random_fog_problem(seed, transforms=transforms)
    table = Table.of(problem)
    rng = np.random.default_rng(seed)
    choice = rng.integers(len(table.cuts), size=len(table.traffic.site))
    streams = np.arange(choice.size)
    whole = evaluate(problem, table.place(choice))
    assert table.usage[choice, streams].sum() == pytest.approx(whole.usage.total, rel=1e-9)
    assert table.costs.compute_usage[choice, streams].sum() == pytest.approx(
        whole.usage.compute, rel=1e-9
    )
    assert table.costs.uplink_bps[choice, streams].sum() == pytest.approx(
        whole.usage.uplink_bps, rel=1e-9
    )


@settings(deadline=None, max_examples=100)
@given(st.integers(0, 10**6), st.integers(1, 5))
def test_a_cut_fits_where_the_checker_finds_no_fog_or_uplink_too_small(seed, transforms):
    problem = random_fog_problem(seed, transforms=transforms)
    table = Table.of(problem)
    net = problem.network
    for stream, site in enumerate(table.traffic.site):
        for cut in range(len(table.cuts)):
            choice = np.zeros(len(table.traffic.site), dtype=np.int64)
            choice[stream] = cut
            node = net.node_name(int(table.traffic.node[stream]))
            cloud = net.node_name(table.traffic.cloud)
            uplink = {f"{net.site_names[site]} → cloud", f"{node} → {cloud}"}
            broken = {
                violation.constraint
                for violation in tw.check(table.place(choice), problem)
                if violation.constraint in LOCAL and violation.place in uplink | {node}
            }
            assert table.costs.fits[cut, stream] == (not broken)


def least(problem, name):
    """The least sum over all combinations of cuts that fit, by trying them all."""
    table = Table.of(problem)
    cost = {"ru-min-cut": table.usage, "data-min-cut": table.costs.network_usage}[name]
    fitting = [np.flatnonzero(column) for column in table.costs.fits.T]
    if any(not fits.size for fits in fitting):
        return None
    return min(
        sum(cost[cut, stream] for stream, cut in enumerate(choice)) for choice in product(*fitting)
    )


@pytest.mark.parametrize("name", ["ru-min-cut", "data-min-cut"])
@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10**6), st.integers(1, 4))
def test_no_combination_of_fitting_cuts_is_cheaper(name, seed, transforms):
    problem = random_fog_problem(seed, fogs=2, transforms=transforms)
    best = least(problem, name)
    if best is None:
        return
    plan = tw.plan(problem.application, problem.network, name)
    found = evaluate(problem, plan.placement).usage
    assert (found.total if name == "ru-min-cut" else found.network) == pytest.approx(best, rel=1e-9)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10**6), st.integers(1, 5))
def test_fog_only_puts_as_many_operators_on_the_fog_as_fit(seed, transforms):
    problem = random_fog_problem(seed, transforms=transforms)
    table = Table.of(problem)
    plan = tw.plan(problem.application, problem.network, "fog-only")
    for stream, site in enumerate(table.traffic.site):
        fits = table.costs.fits[:, stream]
        if not fits.any():  # Nothing goes through the uplink; what the fog can run is left.
            fits = (table.costs.broken[:, stream] & (MEMORY | CPU | STUCK)) == 0
        fitting = table.cuts.sizes[fits]
        name = problem.network.site_names[site]
        sources = {"source", "second"}
        here = [i for i in plan.placement if i.origin == name and i.operator not in sources]
        assert len(here) == (fitting.max() if fitting.size else 0)


def test_sources_outside_the_fog_and_pinned_operators_are_refused():
    net = tw.scenarios.cloud_edge(1, 2, 3)
    app = tw.scenarios.random_application("etl", net)
    with pytest.raises(tw.InvalidInput, match="a source born in fog sites"):
        tw.plan(app, net, "ru-min-cut")
    city, taxi = tw.scenarios.small_city(), tw.scenarios.small_taxi()
    with pytest.raises(tw.InvalidInput, match=r"operators\[8\].pin: .*a sink that the cloud node"):
        tw.plan(taxi, city, "ru-min-cut")
