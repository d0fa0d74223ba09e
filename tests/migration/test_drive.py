from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from migration.city_cases import random_city
from migration.random_trees import random_brokers
from thalweg.errors import InvalidInput
from thalweg.migration.approaches import drive_migcep
from thalweg.migration.baselines import drive_greedy, drive_lookahead, drive_static
from thalweg.migration.city import City, draw_city
from thalweg.migration.drive import Drive, Effort
from thalweg.migration.fan import NOWHERE
from thalweg.migration.policies import KShortest, Naive, Temporal, weighted_sum
from thalweg.migration.predictors.perfect import Perfect
from thalweg.migration.settings import Settings

seeds = st.integers(0, 2**32 - 1)


def cost_by_hand(city: City, instance: int, hosts: np.ndarray) -> float:
    """Every stream at every tick, every change of host, one by one."""
    delay, graph = city.brokers.delay_s, city.graph
    first, end = city.life[instance]
    place = {
        name: city.connections.leaf[city.vehicles[instance, k], first:end]
        for k, name in enumerate(graph.users)
    } | {o.name: hosts[k] for k, o in enumerate(graph.operators)}
    total = 0.0
    for number, stream in enumerate(graph.streams):
        for t in range(end - first):
            factor = 1.0 if city.factor is None else city.factor[instance, number, first + t]
            carried = stream.bytes_per_s * city.tick_s * factor
            total += carried * delay[place[stream.source][t], place[stream.target][t]]
    for k, operator in enumerate(graph.operators):
        for a, b in zip(hosts[k], hosts[k][1:], strict=False):
            total += operator.state_bytes * delay[a, b]
    return float(total)


def total_by_hand(drive: Drive) -> float:
    city = drive.city
    return sum(
        cost_by_hand(city, k, drive.hosts[k, :, first:end])
        for k, (first, end) in enumerate(city.life)
    )


@given(seeds, st.booleans())
@settings(max_examples=30)
def test_costs_are_those_counted_by_hand(seed: int, varying: bool) -> None:
    city = random_city(seed, varying=varying)
    for drive in (drive_static(city), drive_greedy(city, 2.0), drive_lookahead(city)):
        assert drive.total == pytest.approx(total_by_hand(drive))


@given(seeds)
@settings(max_examples=25)
def test_lookahead_costs_what_the_best_pair_of_sequences_costs(seed: int) -> None:
    city = random_city(seed, brokers=3, ticks=7, instances=1)
    first, end = city.life[0]
    if end - first > 5:
        return
    a, b = city.start[0]
    rest = list(product(range(3), repeat=int(end - first) - 1))
    least = min(cost_by_hand(city, 0, np.array([[a, *x], [b, *y]])) for x, y in product(rest, rest))
    assert drive_lookahead(city).total == pytest.approx(least)


@given(seeds)
@settings(max_examples=25)
def test_one_operator_looks_ahead_alone(seed: int) -> None:
    city = random_city(seed, brokers=4, ticks=6, instances=1, operators=1)
    first, end = city.life[0]
    rest = product(range(4), repeat=int(end - first) - 1)
    least = min(cost_by_hand(city, 0, np.array([[city.start[0, 0], *x]])) for x in rest)
    assert drive_lookahead(city).total == pytest.approx(least)


def test_looking_ahead_for_three_is_refused() -> None:
    with pytest.raises(InvalidInput, match="two operators"):
        drive_lookahead(random_city(0, operators=3))


@given(seeds, st.integers(1, 4))
@settings(max_examples=30)
def test_greedy_takes_the_cheapest_broker_of_the_moment(seed: int, every: int) -> None:
    city = random_city(seed, instances=1)
    drive = drive_greedy(city, float(every))
    (first, end), delay = city.life[0], city.brokers.delay_s
    hosts = drive.hosts[0, :, first:end]
    leaf = city.leaves_of(0)
    bandwidth = city.graph.bytes_per_s
    at = city.start[0].tolist()
    for t in range(end - first):
        assert hosts[:, t].tolist() == at
        if t % every == 0:
            now, target = list(at), list(at)
            for k, (into, out) in enumerate(((0, 1), (1, 2))):
                ends = (leaf[0, t], now[1]) if k == 0 else (now[0], leaf[1, t])
                price = bandwidth[into] * delay[ends[0]] + bandwidth[out] * delay[ends[1]]
                if price.min() < price[now[k]]:
                    target[k] = int(price.argmin())
            at = target


@given(seeds, st.integers(1, 3), st.booleans())
@settings(max_examples=40)
def test_the_bound_below_all_is_never_undercut(seed: int, stride: int, varying: bool) -> None:
    city = random_city(seed, varying=varying)
    optimal = drive_lookahead(city).total
    perfect = Perfect(city.connections)
    plans = drive_migcep(city, perfect, settings=Settings(step_ticks=stride, horizon=20))
    for drive in (plans, drive_static(city), drive_greedy(city, 1.0)):
        assert drive.total >= optimal - 1e-6 * (1 + optimal)
    assert plans.total == pytest.approx(total_by_hand(plans))
    alive = plans.hosts[0, :, city.life[0, 0] : city.life[0, 1]]
    assert (alive != NOWHERE).all()
    assert (alive[:, 0] == city.start[0]).all()


@given(seeds)
@settings(max_examples=40)
def test_with_all_known_plans_cost_no_more_than_staying(seed: int) -> None:
    """One plan to the end: its operators stay unless that is dearer."""
    city = random_city(seed)
    known = Settings(horizon=50, refresh=1.0, adaptive=False)
    plans = drive_migcep(city, Perfect(city.connections), settings=known)
    assert plans.total <= drive_static(city).total * (1 + 1e-9)


@given(seeds)
@settings(max_examples=30)
def test_compiled_turns_give_what_policies_give_in_turns(seed: int) -> None:
    city = random_city(seed, instances=1)
    perfect, few = Perfect(city.connections), Settings(horizon=6)
    compiled = drive_migcep(city, perfect, settings=few)
    # A limit that never bites sends everything through the policies.
    plain = drive_migcep(city, perfect, settings=Settings(horizon=6, decay_s=1e18))
    for policy in (Naive(), Temporal()):
        certain = drive_migcep(city, perfect, policy, settings=few)
        assert certain.total == pytest.approx(compiled.total)
    assert plain.total == pytest.approx(compiled.total, rel=1e-6)


def test_rates_that_change_are_noticed() -> None:
    city = random_city(7, varying=True, ticks=30)
    eager = drive_migcep(city, Perfect(city.connections), settings=Settings(rate_threshold=0.0))
    calm = drive_migcep(city, Perfect(city.connections), settings=Settings(rate_threshold=100.0))
    assert eager.effort.coordinations > calm.effort.coordinations


def test_nobody_moves_beyond_the_range() -> None:
    city = random_city(3, brokers=8, ticks=40)
    near = drive_migcep(city, Perfect(city.connections), settings=Settings(range_m=1.0))
    for _, _, _, source, target in near.moves:
        assert city.brokers.distance_m(int(source))[target] <= 1.0


@given(seeds)
@settings(max_examples=20)
def test_brokers_are_never_fuller_than_they_can_be(seed: int) -> None:
    city = random_city(seed, instances=3, demand_ips=4e8, ticks=20)
    starts = np.array([[0, 1], [2, 3], [4, 0]], dtype=np.int32)
    city = City(
        brokers=city.brokers,
        connections=city.connections,
        graph=city.graph,
        vehicles=city.vehicles,
        start=starts,
    )
    drive = drive_migcep(city, Perfect(city.connections), settings=Settings(horizon=8))
    for tick in range(city.ticks):
        load = np.zeros(city.brokers.count)
        for host in drive.hosts[:, :, tick].ravel():
            if host != NOWHERE:
                load[host] += 4e8
        assert drive.effort.crowded or (load <= city.brokers.capacity_ips * (1 + 1e-9)).all()


def test_a_latency_nobody_can_keep_is_counted() -> None:
    city = random_city(5, latency_s=1e-6)
    drive = drive_migcep(city, Perfect(city.connections), settings=Settings(horizon=8))
    assert drive.effort.late > 0
    loose = random_city(5, latency_s=1e6)
    assert drive_migcep(loose, Perfect(loose.connections)).effort.late == 0


def test_efforts_add_up() -> None:
    both = Effort(plans=2, left_out=0.5) + Effort(plans=3, left_out=0.2)
    assert both == Effort(plans=5, left_out=0.5)


def test_settings_name_all_that_is_wrong() -> None:
    with pytest.raises(InvalidInput) as caught:
        Settings(horizon=0, refresh=2.0, range_m=-1.0)
    assert all(name in str(caught.value) for name in ("horizon", "refresh", "range_m"))


def test_vehicles_that_never_meet_are_refused() -> None:
    city = random_city(1)
    leaf = city.connections.leaf.copy()
    leaf[0, 6:], leaf[1, :6] = NOWHERE, NOWHERE
    apart = type(city.connections)(
        **{
            name: getattr(city.connections, name) if name != "leaf" else leaf
            for name in city.connections.__dataclass_fields__
        }
    )
    with pytest.raises(InvalidInput, match="never meet"):
        City(
            brokers=city.brokers,
            connections=apart,
            graph=city.graph,
            vehicles=np.array([[0, 1]], dtype=np.int32),
            start=city.start[:1],
        )


def slowly(city: City, bandwidth_bps: float) -> City:
    """The same city with links so thin that moves take several ticks."""
    thin = np.full(city.brokers.count, bandwidth_bps)
    return replace(city, brokers=replace(city.brokers, link_bandwidth_bps=thin))


@given(seeds, st.sampled_from([0.0, 200.0, 500.0]), st.integers(1, 3), st.booleans())
@settings(max_examples=40)
def test_moves_of_several_steps_arrive_and_nobody_undercuts_the_bound(
    seed: int, bandwidth_bps: float, stride: int, varying: bool
) -> None:
    city = slowly(random_city(seed, ticks=30, varying=varying), bandwidth_bps)
    optimal = drive_lookahead(city).total
    perfect = Perfect(city.connections)
    for policy in (weighted_sum, Naive(), Temporal(), KShortest(), Temporal(skewed=True)):
        few = Settings(horizon=8, step_ticks=stride)
        drive = drive_migcep(city, perfect, policy, settings=few)
        assert drive.total >= optimal - 1e-6 * (1 + optimal)
        for instance, operator, tick, source, target in drive.moves.tolist():
            state = city.graph.operators[operator].state_bytes
            if bandwidth_bps == 0.0:
                assert state == 0.0
                continue
            took = state * 8 / bandwidth_bps + city.brokers.delay_s[source, target]
            row = drive.hosts[instance, operator, : int(tick)]
            assert (row[-int(np.ceil(took - 1e-9)) :] == source).all()


def test_a_transfer_that_has_begun_is_finished() -> None:
    """Users that never move; plans that end, or have to be made anew, while state is on its way."""
    for seed in range(20):
        city = random_city(seed, brokers=4, ticks=60, instances=1, operators=1, varying=True)
        state = city.graph.operators[0].state_bytes
        leaf = np.where(city.connections.leaf >= 0, 1, NOWHERE).astype(np.int32)
        still = replace(city.connections, leaf=leaf)
        city = replace(city, connections=still, start=np.array([[3]], dtype=np.int32))
        # Seven steps for whatever there is to send.
        city = slowly(city, max(state, 1.0) * 8 / 6.5)
        quick = Settings(horizon=10, rate_threshold=0.01)
        drive = drive_migcep(city, Perfect(still), settings=quick)
        assert drive.effort.wasted_transfers == 0
        if state <= 20:  # Pays within the ten steps of a plan.
            assert (drive.hosts[0, 0, city.life[0, 1] - 1]) == 1


@given(seeds, st.integers(1, 3))
@settings(max_examples=15)
def test_longer_steps_do_not_overfill_brokers(seed: int, stride: int) -> None:
    city = random_city(seed, instances=3, demand_ips=4e8, ticks=30)
    roomy = random_brokers(np.random.default_rng(seed), 5, bandwidth_bps=1e9)
    city = replace(city, brokers=roomy, start=np.array([[0, 1], [2, 3], [4, 0]], dtype=np.int32))
    few = Settings(horizon=8, step_ticks=stride)
    drive = drive_migcep(city, Perfect(city.connections), settings=few)
    if drive.effort.crowded:
        return
    for tick in range(city.ticks):
        here = drive.hosts[:, :, tick].ravel()
        load = np.bincount(here[here >= 0], minlength=5) * 4e8
        assert (load <= roomy.capacity_ips * (1 + 1e-9)).all()


def test_an_operator_that_fits_nowhere_is_refused_and_one_on_a_closed_broker_leaves() -> None:
    with pytest.raises(InvalidInput, match="largest broker"):
        random_city(3, demand_ips=1e12)
    city = random_city(3, ticks=30)
    capacity = city.brokers.capacity_ips.copy()
    capacity[city.start[0, 0]] = 0.0
    city = replace(city, brokers=replace(city.brokers, capacity_ips=capacity))
    drive = drive_migcep(city, Perfect(city.connections))
    first, end = city.life[0]
    assert (drive.hosts[0, 0, first + 1 : end] != city.start[0, 0]).all()


def test_who_meets_nobody_is_named_and_not_dropped() -> None:
    city = random_city(1, ticks=20)
    leaf = city.connections.leaf.copy()
    leaf[0] = NOWHERE
    leaf[0, 0], leaf[1:, :3] = 1, NOWHERE
    there = replace(city.connections, leaf=leaf)
    drawn = draw_city(city.graph, city.brokers, there, np.random.default_rng(0))
    assert drawn.lonely == ("v0",)
    assert drawn.instances == 3


def test_a_pilot_always_gets_to_the_end() -> None:
    city = random_city(11, ticks=30, varying=True)
    drive = drive_migcep(city, Perfect(city.connections), settings=Settings(horizon=3, doubt=1.0))
    assert drive.effort.coordinations > 0


@given(seeds)
@settings(max_examples=60)
def test_what_operators_do_together_never_costs_more_than_what_each_does_alone(seed: int) -> None:
    """One plan to the end; better in some cases, and never below what is possible."""
    city = random_city(seed)
    one = {"horizon": 50, "refresh": 1.0, "adaptive": False}
    perfect = Perfect(city.connections)
    alone = drive_migcep(city, perfect, settings=Settings(**one))  # type: ignore[arg-type]
    both = drive_migcep(city, perfect, settings=Settings(**one, together=True))  # type: ignore[arg-type]
    assert both.total <= alone.total * (1 + 1e-9)
    assert both.total >= drive_lookahead(city).total * (1 - 1e-9)


def test_together_operators_leave_where_none_would_alone() -> None:
    better = 0
    for seed in range(40):
        city = random_city(seed, ticks=40)
        perfect = Perfect(city.connections)
        alone = drive_migcep(city, perfect, settings=Settings())
        both = drive_migcep(city, perfect, settings=Settings(together=True))
        better += both.total < alone.total * 0.99
    assert better > 5


def test_state_that_was_sent_to_another_branch_for_nothing_is_counted() -> None:
    wasted = 0
    for seed in range(40):
        city = slowly(random_city(seed, ticks=40, varying=True), 300.0)
        few = Settings(horizon=10, rate_threshold=0.5)
        effort = drive_migcep(city, Perfect(city.connections), KShortest(), few).effort
        assert (effort.wasted_bytes > 0) == (effort.wasted_transfers > 0)
        wasted += effort.wasted_transfers
    assert wasted > 0
