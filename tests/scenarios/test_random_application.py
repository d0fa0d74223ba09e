"""Random applications: ranges, pins, windows, independence of draws, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thalweg.errors import InvalidInput
from thalweg.model import CountWindow, Problem, Tier
from thalweg.scenarios import (
    GRAPHS,
    OperatorRanges,
    applications,
    cloud_edge,
    fog_cloud,
    random_application,
)

NETWORK = cloud_edge(3, 4, 5, seed=1)


@pytest.fixture(scope="module")
def all_of_them():
    return list(applications(NETWORK, seed=5))


def test_there_are_thirteen_times_ten_applications_each_with_its_own_name(all_of_them):
    assert [app.name for app in all_of_them] == [f"{g}-{k}" for g in GRAPHS for k in range(10)]


def test_every_figure_is_in_its_range_of_the_table(all_of_them):
    for app in all_of_them:
        for operator in app.operators:
            if operator.kind == "source":
                assert 1_000 <= operator.rate <= 10_000
                assert 100 <= operator.event_size <= 2_500
            if operator.kind == "transform":
                assert 1_000 <= operator.cpu_per_event <= 10_000
                assert 0.1 <= operator.compression <= 1.0
                assert 100 <= operator.memory <= 7_500
                assert 0.1 <= operator.selectivity <= 1.0
                assert operator.pin is None
                assert operator.window is None or 1 <= operator.window.events <= 100


def test_figures_are_spread_evenly_over_their_ranges(all_of_them):
    transforms = [o for app in all_of_them for o in app.operators if o.kind == "transform"]
    assert len(transforms) == 10 * (8 + 7 + 7 + 6 + 9 + 7 * 25 + 50)
    for field, low, high in (
        ("cpu_per_event", 1_000, 10_000),
        ("compression", 0.1, 1.0),
        ("memory", 100, 7_500),
        ("selectivity", 0.1, 1.0),
    ):
        values = np.array([getattr(operator, field) for operator in transforms])
        counts, _ = np.histogram(values, bins=10, range=(low, high))
        expected = len(transforms) / 10
        assert ((counts - expected) ** 2 / expected).sum() < 27.9
    windows = {o.window.events for o in transforms if o.window is not None}
    assert min(windows) <= 5 and max(windows) >= 96


def test_a_fifth_of_the_operators_have_windows_exactly(all_of_them):
    wanted = {6: 1, 7: 1, 8: 2, 9: 2, 25: 5, 50: 10}
    places = set()
    for app in all_of_them:
        transforms = [o for o in app.operators if o.kind == "transform"]
        windowed = [o.name for o in transforms if isinstance(o.window, CountWindow)]
        assert len(windowed) == wanted[len(transforms)]
        if app.name.startswith("etl"):
            places.update(windowed)
    assert len(places) > 2  # Which ones they are differs from draw to draw.


def test_ends_are_at_the_edge_but_for_the_critical_sink_in_a_cloud(all_of_them):
    used = set()
    for app in all_of_them:
        critical = GRAPHS[app.name.rpartition("-")[0]].critical_sink
        for operator in (*app.sources, *app.sinks):
            node = NETWORK.node_index(operator.pin.node)
            tier = NETWORK.site_tier[NETWORK.node_site[node]]
            assert tier == (Tier.CLOUD if operator.name == critical else Tier.EDGE)
            used.add(node)
        Problem(application=app, network=NETWORK)
    assert used == set(range(NETWORK.node_count))


@pytest.mark.parametrize("graph", GRAPHS)
def test_the_application_has_exactly_the_graph_s_operators_and_streams(graph):
    app, shape = random_application(graph, NETWORK), GRAPHS[graph]
    by_kind = {
        kind: tuple(o.name for o in app.operators if o.kind == kind)
        for kind in ("source", "transform", "sink")
    }
    assert by_kind == {
        "source": shape.sources,
        "transform": shape.transforms,
        "sink": shape.sinks,
    }
    assert tuple((s.source, s.target) for s in app.streams) == shape.edges


@pytest.mark.parametrize("graph", GRAPHS)
def test_splitters_share_their_events_out_or_copy_them(graph):
    shared = random_application(graph, NETWORK)
    copied = random_application(graph, NETWORK, splitters="copy")
    for operator in shared.operators:
        if operator.kind != "sink":
            total = sum(s.probability for s in shared.streams if s.source == operator.name)
            assert total == pytest.approx(1.0)
    assert {stream.probability for stream in copied.streams} == {1.0}
    assert copied.operators == shared.operators


@settings(max_examples=30, deadline=None)
@given(
    graph=st.sampled_from(sorted(GRAPHS)), seed=st.integers(0, 2**64 - 1), draw=st.integers(0, 9)
)
def test_the_same_seed_gives_the_same_application_and_other_draws_differ(graph, seed, draw):
    first = random_application(graph, NETWORK, seed, draw=draw)
    assert first == random_application(graph, NETWORK, seed, draw=draw)
    other = random_application(graph, NETWORK, seed, draw=draw + 1)
    changed = random_application(graph, NETWORK, (seed + 1) % 2**64, draw=draw)
    for another in (other, changed):
        pairs = zip(first.operators, another.operators, strict=True)
        assert all(a.selectivity != b.selectivity for a, b in pairs if a.kind == "transform")


def test_the_figures_do_not_depend_on_the_network():
    here = random_application("large-3", NETWORK, 7)
    there = random_application("large-3", cloud_edge(9, 9, 9), 7)
    assert [o for o in here.operators if o.kind == "transform"] == [
        o for o in there.operators if o.kind == "transform"
    ]
    assert [(o.rate, o.event_size) for o in here.sources] == [
        (o.rate, o.event_size) for o in there.sources
    ]


def test_ranges_are_parameters():
    ranges = OperatorRanges(
        cpu_per_event=(5, 5),
        compression=(0.5, 0.5),
        memory_bytes=(7, 7),
        event_bytes=(9, 9),
        selectivity=(0.25, 0.25),
        rate=(11, 11),
        window_events=(13, 13),
        window_share=1.0,
    )
    app = random_application("etl", NETWORK, ranges=ranges)
    parse, source = app.operator("parse"), app.operator("observations")
    assert (parse.cpu_per_event, parse.compression, parse.memory) == (5, 0.5, 7)
    assert (parse.selectivity, parse.window) == (0.25, CountWindow(13))
    assert (source.event_size, source.rate) == (9, 11)
    plain = random_application("etl", NETWORK, ranges=OperatorRanges(window_share=0.0))
    assert all(operator.window is None for operator in plain.operators)


def test_an_unknown_graph_is_refused_with_the_nearest_name():
    with pytest.raises(InvalidInput, match='did you mean "stats"'):
        random_application("stat", NETWORK)


@pytest.mark.parametrize(
    ("given", "paths"),
    [
        ({"graph": None}, ["graph"]),
        ({"graph": ["etl"]}, ["graph"]),
        ({"network": fog_cloud(2)}, ["network"]),
        ({"network": cloud_edge(0, 2, 2)}, ["network"]),
        ({"network": cloud_edge(2, 0, 0)}, ["network"]),
        (
            {"graph": "x", "seed": -1, "draw": 1.5, "splitters": "both"},
            ["graph", "seed", "draw", "splitters"],
        ),
    ],
)
def test_bad_parameters_are_refused_all_at_once(given, paths):
    with pytest.raises(InvalidInput) as error:
        random_application(**{"graph": "etl", "network": NETWORK} | given)
    assert [defect.path for defect in error.value.defects] == paths


@pytest.mark.parametrize(
    ("given", "paths"),
    [
        ({"rate": (10, 1), "selectivity": (0.5, 0.1)}, ["rate", "selectivity"]),
        ({"window_events": (0, 5), "event_bytes": (0, 5)}, ["event_bytes", "window_events"]),
        ({"cpu_per_event": (1.5, 2)}, ["cpu_per_event"]),
        ({"window_share": 1.5}, ["window_share"]),
        ({"window_share": True}, ["window_share"]),
        ({"compression": (0.0, float("inf"))}, ["compression"]),
    ],
)
def test_bad_ranges_are_refused_all_at_once(given, paths):
    with pytest.raises(InvalidInput) as error:
        OperatorRanges(**given)
    assert [defect.path for defect in error.value.defects] == paths
