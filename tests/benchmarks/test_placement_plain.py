"""What `aels` is measured against gives the same answers."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.placement_plain import PlainSearch, TimeIsUp
from thalweg.model import Problem
from thalweg.placement.aels import aels
from thalweg.scenarios import cloud_edge, random_application


def pose(graph: str, seed: int) -> Problem:
    network = cloud_edge(2, 3, 5, seed=seed)
    return Problem(application=random_application(graph, network, seed=seed), network=network)


@settings(max_examples=60)
@given(st.sampled_from(["etl", "stats", "pred", "train", "large-1"]), st.integers(0, 500))
def test_the_plain_algorithm_gives_the_placement_of_aels(graph: str, seed: int) -> None:
    problem = pose(graph, seed)
    plan, plain = aels(problem), PlainSearch(problem).place_all()
    if plain is None:
        assert not plan.feasible
        return
    sources = {source.name for source in problem.application.sources}
    found = {i.operator: i.node for i in plan.placement if i.operator not in sources}
    assert found == plain


def test_some_of_these_problems_have_room_and_some_have_none() -> None:
    found = [PlainSearch(pose("stats", seed)).place_all() is None for seed in range(12)]
    assert any(found)
    assert not all(found)


def test_it_gives_up_at_its_limit() -> None:
    with pytest.raises(TimeIsUp):
        PlainSearch(pose("etl", 0), limit_s=-1.0).place_all()
