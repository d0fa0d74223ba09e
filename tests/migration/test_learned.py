from __future__ import annotations

import math
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import lognorm

from migration.test_mobility import BROKERS, drives
from thalweg.errors import InvalidInput
from thalweg.files.transitions_table import TransitionTable
from thalweg.migration.compiled.predicting import rests
from thalweg.migration.connections import Connections
from thalweg.migration.fan import NOWHERE, Fan
from thalweg.migration.predictors.learned import Graph, Learned, Order, Transitions

Change = tuple[int, int, int]
Path = tuple[list[int], float]


def slow_stays(connections: Connections) -> dict[Change, list[float]]:
    """Stays by (previous, leaf, next), one vehicle and tick after the other."""
    found: dict[Change, list[float]] = defaultdict(list)
    for row in connections.leaf.tolist():
        runs: list[list[int]] = []
        for tick, leaf in enumerate(row):
            if runs and runs[-1][0] == leaf:
                runs[-1][2] = tick + 1
            else:
                runs.append([leaf, tick, tick + 1])
        for k, (leaf, begin, end) in enumerate(runs):
            if leaf != NOWHERE and end < len(row):
                before = runs[k - 1][0] if k else NOWHERE
                found[before, leaf, runs[k + 1][0]].append((end - begin) * connections.step_s)
    return found


@given(st.integers(0, 10**6))
def test_stays_are_counted(seed: int) -> None:
    connections = drives(seed)
    names = (*BROKERS.names, "")
    expected = slow_stays(connections)
    found = Transitions.of(connections, BROKERS).rows()
    assert found.keys() == {(names[a], names[b], names[c]) for a, b, c in expected}
    for (a, b, c), stays in expected.items():
        count, mean_s, spread_s = found[names[a], names[b], names[c]]
        assert count == len(stays)
        assert mean_s == pytest.approx(np.mean(stays))
        assert spread_s == pytest.approx(np.std(stays), abs=1e-9)


def test_only_the_vehicles_asked_for_are_counted() -> None:
    connections = drives(4)
    whole = Transitions.of(connections, BROKERS).rows()
    parts = [Transitions.of(connections, BROKERS, vehicles=[n]).rows() for n in connections.names]
    assert {key for part in parts for key in part} == set(whole)
    for key, (count, _, _) in whole.items():
        assert sum(part[key][0] for part in parts if key in part) == count
    with pytest.raises(InvalidInput, match="nobody"):
        Transitions.of(connections, BROKERS, vehicles=["nobody"])


def slow_paths(
    rows: dict[Change, tuple[int, float]],
    order: Order,
    previous: int,
    leaf: int,
    time_s: float,
    rest_s: float,
    ends_s: float,
) -> list[tuple[list[tuple[int, float]], float]]:
    """All paths from a leaf as (host, when it begins) and their probability, by recursion."""
    mine = {k: v for k, v in rows.items() if k[0] == previous and k[1] == leaf}
    if order == 1 or not mine:
        mine = {k: v for k, v in rows.items() if k[1] == leaf}
    count, total_s = defaultdict[int, int](int), defaultdict[int, float](float)
    for (_, _, after), (times, mean_s) in mine.items():
        count[after] += times
        total_s[after] += times * mean_s
    if time_s >= ends_s or not count:
        return [([(leaf, time_s)], 1.0)]
    found = []
    for after, times in count.items():
        leaves_s = time_s + max(total_s[after] / times - rest_s, 1.0)
        for path, chance in slow_paths(rows, order, leaf, after, leaves_s, 0.0, ends_s):
            found.append(([(leaf, time_s), *path], chance * times / sum(count.values())))
    return found


def slow_fan(paths: list[tuple[list[tuple[int, float]], float]], steps: int, pace_s: float) -> Fan:
    hosts = [
        [[host for host, since in path if since <= k * pace_s + 1e-9][-1] for k in range(steps)]
        for path, _ in paths
    ]
    return Fan.of([chance for _, chance in paths], hosts)


@given(st.integers(0, 10**6), st.sampled_from([1, 2]), st.integers(1, 3), st.data())
def test_paths_are_followed_as_far_as_the_mean_stays_reach(
    seed: int, order: Order, stride: int, data: st.DataObject
) -> None:
    past, connections = drives(seed), drives(seed + 1)
    table = Transitions.of(past, BROKERS)
    vehicle = data.draw(st.integers(0, connections.vehicles - 1))
    ticks = np.flatnonzero(connections.there[vehicle])
    tick = int(ticks[data.draw(st.integers(0, len(ticks) - 1))])
    row = connections.leaf[vehicle].tolist()
    begun = tick
    while begun and row[begun - 1] == row[tick]:
        begun -= 1
    number = BROKERS.number | {"": NOWHERE}
    changes = {
        (number[a], number[b], number[c]): (count, mean_s)
        for (a, b, c), (count, mean_s, _) in table.rows().items()
        if c
    }
    steps = 8
    before = row[begun - 1] if begun else NOWHERE
    ends_s = (steps - 1) * stride + 1e-9
    paths = slow_paths(changes, order, before, row[tick], 0.0, float(tick - begun), ends_s)
    expected = slow_fan(paths, steps, float(stride))
    learned = Learned(
        connections, BROKERS, table, order=order, stays="mean", threshold=1e-4, most=10**6
    )
    found = learned.predict(vehicle, tick, steps, stride)
    for step in range(steps):
        assert found.distribution(step) == pytest.approx(expected.distribution(step), abs=1e-3)
    assert len(found.weight) <= len(expected.weight)


@given(st.integers(0, 10**6), st.floats(0.02, 1.0), st.integers(1, 8), st.integers(1, 20))
def test_thresholds_keep_what_is_likely(seed: int, threshold: float, parts: int, most: int) -> None:
    past, connections = drives(seed), drives(seed + 1)
    table = Transitions.of(past, BROKERS)
    options = {"threshold": threshold, "parts": parts, "most": most}
    fan = Learned(connections, BROKERS, table, **options).predict(0, 20, 30)  # type: ignore[arg-type]
    assert 1 <= len(fan.weight) <= most
    wide = Learned(connections, BROKERS, table, threshold=threshold, parts=parts, most=10**6)
    assert len(wide.predict(0, 20, 30).weight) <= parts * (1 / threshold + 1)


@given(
    st.lists(
        st.tuples(st.floats(0.05, 1), st.floats(0, 5), st.floats(0.1, 1.5)), min_size=1, max_size=4
    ),
    st.floats(0, 300),
    st.integers(1, 5),
)
def test_rests_are_those_of_log_normal_stays_that_go_on(
    edges: list[tuple[float, float, float]], spent_s: float, parts: int
) -> None:
    share, log_mean, log_spread = np.array(edges).T.copy()
    share /= share.sum()
    chance, rest_s = rests(0, len(edges), spent_s, parts, share, log_mean, log_spread)
    stays = [lognorm(s=s, scale=math.exp(m)) for m, s in zip(log_mean, log_spread, strict=True)]
    left = np.array([stay.sf(spent_s) for stay in stays])
    if (share * left).sum() < 1e-6:
        spent_s, left = 0.0, np.ones(len(edges))
    np.testing.assert_allclose(chance, share * left / (share * left).sum(), rtol=1e-6, atol=1e-12)
    for k, stay in enumerate(stays):
        if left[k] > 1e-12:
            turns = (np.arange(parts) + 0.5) / parts
            expected = stay.isf(left[k] * (1 - turns)) - spent_s
            np.testing.assert_allclose(rest_s[k], expected, rtol=1e-4, atol=1e-4)


def test_where_a_pair_was_never_seen_the_leaf_alone_counts() -> None:
    a, b, c, d = (BROKERS.names[leaf] for leaf in BROKERS.leaves[:4])
    rows = {(a, b, c): (3, 5.0, 1.0), (c, b, d): (1, 9.0, 0.0), ("", d, ""): (2, 4.0, 0.0)}
    table = TransitionTable.of_rows(rows)
    graph = Graph.of(table, BROKERS, 2, ends=False)
    one, two, three, four = (int(leaf) for leaf in BROKERS.leaves[:4])
    seen, alone = graph.at(one, two), graph.at(four, two)
    assert graph.share[graph.first[seen] : graph.first[seen + 1]].tolist() == [1.0]
    assert graph.share[graph.first[alone] : graph.first[alone + 1]].tolist() == [0.75, 0.25]
    assert graph.after[graph.first[alone] : graph.first[alone + 1]].tolist() == [three, four]
    assert graph.at(two, four) == -1
    ends = Graph.of(table, BROKERS, 2, ends=True)
    assert ends.after[ends.first[ends.at(two, four)]] == NOWHERE


def test_where_nothing_was_learned_vehicles_stay() -> None:
    connections = drives(2)
    learned = Learned(connections, BROKERS, TransitionTable.of_rows({}))
    fan = learned.predict(0, 5, 4)
    assert fan.hosts.tolist() == [[int(connections.leaf[0, 5])] * 4]


def test_leaves_of_other_brokers_and_bad_options_are_refused() -> None:
    connections = drives(2)
    table = TransitionTable.of_rows({("", "cloud", "mars"): (1, 1.0, 0.0)})
    with pytest.raises(InvalidInput, match=r'"cloud"[^\n]*\n[^\n]*"mars"'):
        Learned(connections, BROKERS, table)
    with pytest.raises(InvalidInput) as caught:
        Learned(connections, BROKERS, table, order=3, stays="long", parts=0, threshold=0, most=0)  # type: ignore[arg-type]
    assert len(caught.value.defects) == 5
