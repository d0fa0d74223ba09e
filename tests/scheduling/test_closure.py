from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import thalweg as tw
from scheduling.problems import random_fog_problem
from thalweg.estimate.response import ResponseModel
from thalweg.scenarios import fog_cloud
from thalweg.scheduling.closure import CutGraph, least_cut, sweep_front
from thalweg.scheduling.costs import cost_cuts
from thalweg.scheduling.cuts import TooManyCuts, list_cuts
from thalweg.scheduling.traffic import measure_streams
from thalweg.scheduling.usage_bound import _describe_streams, _Part, _Search, usage_bound

seeds = st.integers(0, 10**6)


def weigh(cuts, operator_weight, edge_weight):
    """What every listed cut weighs, one by one."""
    return np.array(
        [
            operator_weight[members].sum() + edge_weight[crossing].sum()
            for members, crossing in zip(cuts.members, cuts.crossing, strict=True)
        ]
    )


def uneven_problem(seed, *, transforms=8, fogs=3):
    """Fogs of very different rates; operators that need enough memory to make it matter."""
    problem = random_fog_problem(seed, fogs=fogs, transforms=transforms)
    rng = np.random.default_rng(seed)
    rate = float(rng.choice([2e4, 2e5]))
    operators = [
        replace(o, memory_factor=20 * o.memory_factor) if o.kind == "transform" else o
        for o in problem.application.operators
    ]
    share = rng.exponential(size=fogs) ** 2
    names = problem.network.site_names
    return tw.Problem(
        application=replace(problem.application, operators=operators),
        network=problem.network,
        rates={("source", names[k]): rate * float(x) for k, x in enumerate(share / share.sum())},
    )


def wide_problem(chains, length, *, fogs=4, seed=0, window=True):
    """Chains side by side that join again: (length + 1) ** chains cuts and one more.

    Without windows emissions are single events, so that the delay hardly depends on the cut.
    """
    rng = np.random.default_rng(seed)
    rows = [[f"chain-{k}-{i}" for i in range(length)] for k in range(chains)]
    transforms = [
        tw.Operator(
            name=name,
            replicable=True,
            selectivity=float(rng.uniform(0.5, 1.1)),
            memory=float(rng.uniform(0, 1e6 if window else 1e8)),
            memory_factor=float(rng.uniform(0, 30)),
            window=tw.TimeWindow(1.0, float(rng.choice([0.25, 0.5]))) if window else None,
        )
        for name in [*(name for row in rows for name in row), "join"]
    ]
    source = tw.Operator(
        name="source", kind="source", rate=1.0, event_size=200.0, pin=tw.Pin(tier="fog")
    )
    sink = tw.Operator(name="sink", kind="sink", pin=tw.Pin(tier="cloud"))
    ways = [["source", *row, "join"] for row in rows]
    pairs = [*(pair for way in ways for pair in pairwise(way)), ("join", "sink")]
    app = tw.Application(
        name="wide",
        operators=[source, *transforms, sink],
        streams=[tw.Stream(source=a, target=b) for a, b in pairs],
    )
    net = fog_cloud(fogs, seed=seed)
    rates = {("source", net.site_names[k]): 1e3 * 3.0**k for k in range(fogs)}
    return tw.Problem(application=app, network=net, rates=rates)


def usage_of(traffic, cuts):
    costs = cost_cuts(traffic, cuts)
    return 0.5 * costs.compute_usage + 0.5 * costs.network_usage, costs


@example(15825, 9, 12.0)
@settings(deadline=None, max_examples=150)
@given(seeds, st.integers(1, 9), st.sampled_from([0.0, 3.0, 12.0]))
def test_least_cut_weighs_what_the_least_listed_cut_weighs(seed, transforms, decades):
    app = random_fog_problem(seed, transforms=transforms).application
    rng = np.random.default_rng(seed)

    def draw(size, forbidden):
        weight = rng.uniform(size=size) * 10.0 ** rng.uniform(-decades, decades, size)
        weight[rng.random(size) < 0.2] = 0.0
        weight[rng.random(size) < forbidden] = np.inf
        return weight

    operator_weight, edge_weight = draw(len(app.operators), 0.2), draw(len(app.streams), 0.1)
    cuts = list_cuts(app)
    weights = weigh(cuts, operator_weight, edge_weight)
    cut = least_cut(CutGraph.of(app), operator_weight, edge_weight)
    if np.isinf(weights.min()):
        assert cut.value == cut.bound == np.inf
        return
    assert weights[cuts.find(cut.members[None])[0]] == pytest.approx(weights.min(), rel=1e-9, abs=0)
    assert cut.value == pytest.approx(weights.min(), rel=1e-9, abs=0)
    assert cut.bound <= weights.min() * (1 + 1e-12)
    assert cut.bound >= weights.min() * (1 - 1e-10)


@settings(deadline=None, max_examples=150)
@given(seeds, st.integers(1, 9))
def test_of_equal_cuts_the_one_in_all_others_is_taken(seed, transforms):
    app = random_fog_problem(seed, transforms=transforms).application
    rng = np.random.default_rng(seed)
    operator_weight = rng.integers(0, 3, len(app.operators)).astype(float)
    edge_weight = rng.integers(0, 4, len(app.streams)).astype(float)
    cuts = list_cuts(app)
    weights = weigh(cuts, operator_weight, edge_weight)
    cut = least_cut(CutGraph.of(app), operator_weight, edge_weight)
    assert cut.value == cut.bound == weights.min()
    expected = cuts.members[weights == weights.min()].all(axis=0)
    assert cut.members.tolist() == expected.tolist()


@settings(deadline=None, max_examples=100)
@given(seeds, st.integers(2, 9))
def test_least_cut_between_two_sets_is_the_least_listed_one_between_them(seed, transforms):
    app = random_fog_problem(seed, transforms=transforms).application
    rng = np.random.default_rng(seed)
    operator_weight, edge_weight = rng.uniform(size=(2, 40))
    operator_weight, edge_weight = (
        operator_weight[: len(app.operators)],
        edge_weight[: len(app.streams)],
    )
    cuts = list_cuts(app)
    inside = cuts.members[rng.integers(len(cuts))]
    outside = (rng.random(inside.size) < 0.2) & ~inside
    between = (cuts.members | ~inside).all(axis=1) & ~(cuts.members & outside).any(axis=1)
    weights = np.where(between, weigh(cuts, operator_weight, edge_weight), np.inf)
    cut = least_cut(CutGraph.of(app), operator_weight, edge_weight, inside=inside, outside=outside)
    assert cut.value == pytest.approx(weights.min(), rel=1e-9, abs=0)
    assert cut.members.tolist() == cuts.members[weights.argmin()].tolist()


def test_what_is_downstream_of_an_operator_that_stays_in_the_cloud_stays_there_too():
    app = wide_problem(2, 1).application
    names = [operator.name for operator in app.operators]
    edges = [(stream.source, stream.target) for stream in app.streams]
    operator_weight, edge_weight = np.zeros(len(names)), np.ones(len(edges))
    operator_weight[names.index("chain-0-0")] = np.inf
    edge_weight[edges.index(("chain-1-0", "join"))] = 100.0
    cut = least_cut(CutGraph.of(app), operator_weight, edge_weight)
    assert (cut.value, cut.members.sum()) == (2.0, 0)


@settings(deadline=None, max_examples=60)
@given(seeds, st.integers(1, 10))
def test_the_front_holds_the_best_cut_for_every_trade_of_memory_for_uplink(seed, transforms):
    problem = uneven_problem(seed, transforms=transforms)
    traffic = measure_streams(problem)
    every, front = list_cuts(problem.application), sweep_front(traffic)
    totals = (traffic.memory_bytes.sum(axis=1), traffic.flow_bps.sum(axis=1))
    singles = zip(traffic.memory_bytes.T, traffic.flow_bps.T, strict=True)
    rng = np.random.default_rng(seed)
    for memory, flow in (totals, *singles):
        for share in (*rng.uniform(size=20), 0.0, 1.0):
            operator_weight = share * memory / max(memory.sum(), 1.0)
            edge_weight = (1 - share) * flow / max(flow.sum(), 1.0)
            best = weigh(every, operator_weight, edge_weight).min()
            listed = weigh(front, operator_weight, edge_weight).min()
            assert listed == pytest.approx(best, rel=1e-6, abs=1e-12)


@settings(deadline=None, max_examples=60)
@given(seeds, st.integers(1, 10))
def test_the_front_is_a_part_of_the_list_in_the_same_order_with_no_step_missing(seed, transforms):
    problem = uneven_problem(seed, transforms=transforms)
    every, front = list_cuts(problem.application), sweep_front(measure_streams(problem))
    position = every.find(front.members)
    assert position[0] == 0
    assert (np.diff(position) > 0).all()
    assert (front.crossing == every.crossing[position]).all()
    assert sorted(set(front.sizes.tolist())) == list(range(int(every.sizes.max()) + 1))
    assert not front.complete


def test_the_front_of_an_application_with_too_many_cuts_is_bounded_and_closed():
    problem = wide_problem(6, 5)
    app = problem.application
    with pytest.raises(TooManyCuts):
        list_cuts(app)
    traffic = measure_streams(problem)
    front = sweep_front(traffic)
    graph = app.graph
    on_fog = front.members | app.columns.is_source
    needed = front.members[:, graph.target] & ~on_fog[:, graph.source]
    assert not needed.any()
    assert len(set(map(bytes, front.members))) == len(front)
    short = sweep_front(traffic, most=7)
    assert len(short) == 7
    assert not short.members[0].any()
    assert (front.find(short.members) >= 0).all()


@settings(deadline=None, max_examples=60)
@given(seeds, st.integers(1, 9))
def test_the_bound_is_the_least_usage_of_all_cuts(seed, transforms):
    problem = uneven_problem(seed, transforms=transforms)
    traffic = measure_streams(problem)
    usage, _ = usage_of(traffic, list_cuts(problem.application))
    least = usage.min(axis=0).sum()
    bound = usage_bound(traffic, sweep_front(traffic))
    assert bound.value <= least * (1 + 1e-12)
    assert bound.value == pytest.approx(least, rel=1e-6)
    found, _ = usage_of(traffic, bound.cuts)
    assert found.min(axis=0).sum() == pytest.approx(least, rel=1e-6)


@settings(deadline=None, max_examples=60)
@given(seeds, st.integers(1, 9), st.integers(0, 20))
def test_the_bound_holds_for_cuts_that_fit_and_however_short_the_search(seed, transforms, flows):
    problem = uneven_problem(seed, transforms=transforms)
    traffic = measure_streams(problem)
    usage, costs = usage_of(traffic, list_cuts(problem.application))
    must_fit = costs.fits.any(axis=0)
    least = np.where(must_fit & ~costs.fits, np.inf, usage).min(axis=0).sum()
    front = sweep_front(traffic)
    short = usage_bound(traffic, front, must_fit=must_fit, most_flows=flows)
    assert short.value <= least * (1 + 1e-12)
    full = usage_bound(traffic, front, must_fit=must_fit, most_flows=5_000)
    assert full.value <= least * (1 + 1e-12)
    assert full.value == pytest.approx(least, rel=1e-6)


@settings(deadline=None, max_examples=40)
@given(seeds, st.booleans(), st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_the_bound_is_exact_where_room_ends_between_corners(seed, window, memory, uplink):
    problem = wide_problem(*((3, 3) if window else (6, 1)), fogs=2, seed=seed, window=window)
    traffic = measure_streams(problem)
    every = list_cuts(problem.application)
    costs = cost_cuts(traffic, every)
    net = problem.network
    free = net.node_memory_bytes.copy()
    most = costs.memory_bytes.max(axis=0)
    free[traffic.node] = np.minimum(memory * most, free[traffic.node])
    wan = net.wan
    span = costs.uplink_bps.min(axis=0), costs.uplink_bps.max(axis=0)
    bandwidth = wan.available.copy()
    bandwidth[traffic.site, 0] = np.minimum(
        span[0] + uplink * (span[1] - span[0]), bandwidth[traffic.site, 0]
    )
    net = net.with_available(
        node_memory_available_bytes=free, wan=replace(wan, available=bandwidth)
    )
    traffic = measure_streams(replace(problem, network=net))
    usage, costs = usage_of(traffic, every)
    must_fit = costs.fits.any(axis=0)
    least = np.where(must_fit & ~costs.fits, np.inf, usage).min(axis=0).sum()
    bound = usage_bound(traffic, sweep_front(traffic), must_fit=must_fit, most_flows=5_000)
    assert bound.value <= least * (1 + 1e-12)
    assert bound.value == pytest.approx(least, rel=1e-6)


@settings(deadline=None, max_examples=60)
@given(seeds, st.integers(1, 8))
def test_a_cut_is_in_exactly_one_of_the_parts_that_its_part_is_divided_into(seed, transforms):
    problem = uneven_problem(seed, transforms=transforms)
    traffic = measure_streams(problem)
    every = list_cuts(problem.application)
    anything = np.zeros(traffic.site.size, dtype=bool)
    stream = next(_describe_streams(traffic, (0.5, 0.5), 0.0, anything, ResponseModel()))
    search = _Search(stream, every.members, 10)
    rng = np.random.default_rng(seed)

    def held(part):
        """Which cuts a part answers for."""
        within = (every.members | ~part.inside).all(axis=1)
        within &= ~(every.members & part.outside).any(axis=1)
        return within & (search.emissions >= part.least) & (search.emissions < part.most)

    nothing = np.zeros(every.members.shape[1], dtype=bool)
    part = _Part(0.0, np.inf, nothing, nothing)
    while held(part).any():
        cuts = rng.choice(np.flatnonzero(held(part)), size=2)
        parts = search.divide(part, float(search.emissions[cuts[0]]), [*every.members[cuts]])
        if not parts:
            assert held(part).sum() == 1
            break
        assert sum(held(each).astype(int) for each in parts).tolist() == held(part).tolist()
        part = parts[int(rng.integers(2))]


@settings(deadline=None, max_examples=40)
@given(seeds, st.integers(1, 5), st.floats(0, 1), st.none() | st.floats(0, 1e-7))
def test_under_a_limit_no_deployment_is_below_the_bound(seed, transforms, share, price):
    problem = uneven_problem(seed, transforms=transforms)
    traffic = measure_streams(problem)
    cuts = list_cuts(problem.application)
    usage, costs = usage_of(traffic, cuts)
    streams = np.arange(traffic.site.size)
    freely = costs.uplink_bps[usage.argmin(axis=0), streams].sum()
    limit = share * freely + (1 - share) * costs.uplink_bps.min(axis=0).sum()
    limit *= 1 + 1e-9
    least = min(
        usage[choice, streams].sum()
        for choice in product(range(len(cuts)), repeat=streams.size)
        if costs.uplink_bps[choice, streams].sum() <= limit
    )
    front = sweep_front(traffic)
    bound = usage_bound(traffic, front, uplink_limit_bps=limit, price=price).value
    assert bound <= least * (1 + 1e-12)
    if price is None:
        assert bound >= usage_bound(traffic, front).value * (1 - 1e-9)


@settings(deadline=None, max_examples=60)
@given(
    seeds, st.tuples(*[st.sampled_from([0.0, 0.5, 1.0])] * 3), st.sampled_from([0.0, 1.0, np.inf])
)
def test_the_bound_holds_where_there_is_nothing_or_no_end_of_something(seed, shares, amount):
    problem = uneven_problem(seed, transforms=5)
    net = problem.network
    memory_bytes = np.full(net.node_count, amount if amount != 1.0 else 1e9)
    bandwidth = np.full(net.site_count, 2e8 if shares[2] else amount)
    finite = np.where(np.isfinite(bandwidth), bandwidth, 1e9)
    wan = replace(
        net.wan,
        latency=net.wan.latency * shares[0],
        bandwidth=bandwidth,
        available=np.repeat(finite[:, None] * shares[1], 2, axis=1),
    )
    free = np.where(np.isfinite(memory_bytes), memory_bytes, 1e9) * shares[2]
    net = replace(net, node_memory_bytes=memory_bytes, node_memory_available_bytes=free, wan=wan)
    problem = replace(problem, network=net)
    traffic = measure_streams(problem)
    usage, costs = usage_of(traffic, list_cuts(problem.application))
    front = sweep_front(traffic)
    assert usage_bound(traffic, front).value <= usage.min(axis=0).sum() * (1 + 1e-12)
    must_fit = costs.fits.any(axis=0)
    least = np.where(must_fit & ~costs.fits, np.inf, usage).min(axis=0).sum()
    bound = usage_bound(traffic, front, must_fit=must_fit)
    assert bound.value <= least * (1 + 1e-12)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_of_too_many_cuts_to_list_the_best_is_found_and_proven(seed):
    traffic = measure_streams(wide_problem(8, 5, seed=seed))
    bound = usage_bound(traffic, sweep_front(traffic))
    usage, _ = usage_of(traffic, bound.cuts)
    assert usage.min(axis=0).sum() == pytest.approx(bound.value, rel=1e-6)
    assert bound.value > 0
