"""The thirteen graphs: published dataflows edge by edge, random ones by their properties."""

from __future__ import annotations

from collections import Counter
from zlib import crc32

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thalweg.errors import InvalidInput
from thalweg.scenarios import GRAPHS, GraphShape, grow_shape

RANDOM = [name for name in GRAPHS if name not in ("etl", "stats", "pred", "train")]


def longest_paths(shape: GraphShape) -> dict[str, int]:
    """Operators on the longest path that ends in each sink, by walking all paths."""
    after: dict[str, list[str]] = {}
    for a, b in shape.edges:
        after.setdefault(a, []).append(b)
    longest: dict[str, int] = {}
    walks = [(source, 1) for source in shape.sources]
    while walks:
        vertex, length = walks.pop()
        if vertex in shape.sinks:
            longest[vertex] = max(longest.get(vertex, 0), length)
        walks += [(target, length + 1) for target in after.get(vertex, [])]
    return longest


def test_there_are_five_medium_seven_large_and_one_extra_large_graph():
    assert Counter(shape.size for shape in GRAPHS.values()) == {
        "medium": 5,
        "large": 7,
        "extra-large": 1,
    }
    counts = {name: len(shape.transforms) for name, shape in GRAPHS.items()}
    assert counts == {
        "etl": 8,
        "stats": 7,
        "pred": 7,
        "train": 6,
        "medium-9": 9,
        **{f"large-{k}": 25 for k in range(1, 8)},
        "extra-large": 50,
    }
    assert len(GRAPHS) == 13


def test_etl_is_a_chain():
    assert GRAPHS["etl"].edges == (
        ("observations", "parse"),
        ("parse", "range-filter"),
        ("range-filter", "bloom-filter"),
        ("bloom-filter", "interpolate"),
        ("interpolate", "join"),
        ("join", "annotate"),
        ("annotate", "convert"),
        ("convert", "publish"),
        ("publish", "archive"),
    )


def test_stats_has_three_branches_between_the_filter_and_publishing():
    assert set(GRAPHS["stats"].edges) == {
        ("observations", "parse"),
        ("parse", "bloom-filter"),
        ("bloom-filter", "kalman-filter"),
        ("kalman-filter", "linear-regression"),
        ("linear-regression", "publish"),
        ("bloom-filter", "second-order-moment"),
        ("second-order-moment", "publish"),
        ("bloom-filter", "distinct-count"),
        ("distinct-count", "publish"),
        ("publish", "dashboard"),
    }
    assert len(GRAPHS["stats"].edges) == 10


def test_pred_has_three_branches_and_models_that_a_second_source_renews():
    assert set(GRAPHS["pred"].edges) == {
        ("observations", "parse"),
        ("parse", "decision-tree"),
        ("parse", "regression"),
        ("parse", "block-average"),
        ("regression", "error-estimate"),
        ("block-average", "error-estimate"),
        ("error-estimate", "publish"),
        ("decision-tree", "publish"),
        ("model-updates", "read-model"),
        ("read-model", "decision-tree"),
        ("read-model", "regression"),
        ("publish", "alerts"),
    }
    assert len(GRAPHS["pred"].edges) == 12


def test_train_has_two_branches_that_meet_at_the_upload():
    assert set(GRAPHS["train"].edges) == {
        ("timer", "table-range"),
        ("table-range", "train-regression"),
        ("train-regression", "upload"),
        ("table-range", "annotate"),
        ("annotate", "train-tree"),
        ("train-tree", "upload"),
        ("upload", "publish"),
        ("publish", "subscribers"),
    }
    assert len(GRAPHS["train"].edges) == 8


@pytest.mark.parametrize("name", GRAPHS)
def test_the_critical_sink_ends_a_path_with_most_operators(name):
    shape = GRAPHS[name]
    longest = longest_paths(shape)
    most = max(longest.values())
    assert shape.critical_sink == next(sink for sink in shape.sinks if longest[sink] == most)


@pytest.mark.parametrize("name", RANDOM)
def test_a_random_graph_has_splitters_mergers_and_more_than_one_sink(name):
    shape = GRAPHS[name]
    leaving, arriving = (Counter(edge[end] for edge in shape.edges) for end in (0, 1))
    assert any(leaving[t] > 1 for t in shape.transforms)
    assert any(arriving[t] > 1 for t in shape.transforms)
    assert len(shape.sinks) > 1
    assert len(shape.sources) > 1 or shape.size == "medium"


def test_names_give_the_graphs_that_they_always_gave():
    # Results that name a graph stay comparable only while it stays the same, edge by edge.
    prints = {name: f"{crc32(repr(GRAPHS[name].edges).encode()):08x}" for name in RANDOM}
    assert prints == {
        "medium-9": "8c84590b",
        "large-1": "b28ce544",
        "large-2": "1091d532",
        "large-3": "dc15ce51",
        "large-4": "3340c61e",
        "large-5": "19ea2cc8",
        "large-6": "53b285ed",
        "large-7": "e99fad34",
        "extra-large": "a002fbd7",
    }


def test_an_unknown_name_is_a_key_error_and_no_member():
    assert "large-8" not in GRAPHS
    with pytest.raises(KeyError):
        GRAPHS["large-8"]


@pytest.mark.parametrize(
    ("given", "paths"),
    [
        ({"transforms": 0, "sources": True, "sinks": -1}, ["transforms", "sources", "sinks"]),
        ({"transforms": 10**6}, ["transforms"]),
    ],
)
def test_bad_sizes_are_refused_all_at_once(given, paths):
    good = {"transforms": 3, "sources": 1, "sinks": 1}
    with pytest.raises(InvalidInput) as error:
        grow_shape("g", "large", np.random.default_rng(0), **good | given)
    assert [defect.path for defect in error.value.defects] == paths


sizes = st.tuples(st.integers(1, 40), st.integers(1, 5), st.integers(1, 5))


@settings(max_examples=150, deadline=None)
@given(size=sizes, seed=st.integers(0, 2**32))
def test_a_grown_graph_is_connected_and_free_of_cycles_with_every_vertex_between_ends(size, seed):
    transforms, sources, sinks = size
    shape = grow_shape(
        "g",
        "large",
        np.random.default_rng(seed),
        transforms=transforms,
        sources=sources,
        sinks=sinks,
    )
    assert (len(shape.transforms), len(shape.sources), len(shape.sinks)) == size
    vertices = [*shape.sources, *shape.transforms, *shape.sinks]
    assert len(set(vertices)) == len(vertices)
    assert len(set(shape.edges)) == len(shape.edges)
    # Numbered upstream before downstream: no edge goes back, so there is no cycle.
    position = {vertex: k for k, vertex in enumerate(vertices)}
    assert all(position[a] < position[b] for a, b in shape.edges)
    leaving, arriving = (Counter(edge[end] for edge in shape.edges) for end in (0, 1))
    assert all(leaving[s] == 1 and arriving[s] == 0 for s in shape.sources)
    assert all(arriving[s] == 1 and leaving[s] == 0 for s in shape.sinks)
    assert all(leaving[t] >= 1 and arriving[t] >= 1 for t in shape.transforms)
    reached, joined = set(), {vertices[0]}
    while reached != joined:
        reached = set(joined)
        joined |= {v for edge in shape.edges if reached & set(edge) for v in edge}
    assert joined == set(vertices)


@settings(max_examples=60, deadline=None)
@given(size=sizes, seed=st.integers(0, 2**32))
def test_a_transform_is_named_after_what_it_does_in_the_graph(size, seed):
    transforms, sources, sinks = size
    rng = np.random.default_rng(seed)
    shape = grow_shape("g", "large", rng, transforms=transforms, sources=sources, sinks=sinks)
    for name in shape.transforms:
        before = [a for a, b in shape.edges if b == name]
        after = [b for a, b in shape.edges if a == name]
        role = name.rpartition("-")[0]
        if any(vertex in shape.sources for vertex in before):
            assert role == "parse"
        elif len(before) > 1:
            assert role == "merge"
        elif len(after) > 1:
            assert role == "split"
        else:
            assert role in ("map", "filter", "enrich", "aggregate")
