from __future__ import annotations

from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generators.problems import random_instances, random_problem
from thalweg.errors import InvalidInput
from thalweg.model import Instance, Placement, deploy

seeds = st.integers(0, 2**32 - 1)


def test_a_mapping_puts_each_operator_on_its_node() -> None:
    placement = Placement.of({"a": "fog/1", "b": "cloud"})
    assert list(placement) == [
        Instance(operator="a", node="fog/1"),
        Instance(operator="b", node="cloud"),
    ]
    assert (len(placement), placement.node_of("b")) == (2, "cloud")
    with pytest.raises(KeyError):
        placement.node_of("c")


def test_an_operator_with_several_nodes_has_no_single_one() -> None:
    placement = Placement.of(
        [
            Instance(operator="a", node="f1", origin="f1"),
            Instance(operator="a", node="f2", origin="f2"),
            Instance(operator="a", node="cloud"),
        ]
    )
    assert placement.nodes_of("a") == ("cloud", "f1", "f2")
    assert placement.nodes_of("b") == ()
    with pytest.raises(KeyError):
        placement.node_of("a")


@given(seeds)
def test_a_placement_holds_its_instances_and_no_others(seed: int) -> None:
    rng = np.random.default_rng(seed)
    instances = random_instances(rng, random_problem(rng))
    placement = Placement.of(instances)
    assert len(placement) == len(instances)
    assert set(placement) == set(instances)


@given(seeds)
def test_equal_placements_are_equal_however_they_were_made(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = random_problem(rng)
    instances = random_instances(rng, problem)
    placement = Placement.of(instances)
    shuffled = Placement.of([instances[int(k)] for k in rng.permutation(len(instances))])
    unfolded = deploy(problem, placement)
    by_index = Placement.from_indices(problem, unfolded.operator, unfolded.node, unfolded.origin)
    for other in (shuffled, by_index):
        assert other == placement
        assert hash(other) == hash(placement)
        assert other.fingerprint == placement.fingerprint
        assert set(other) == set(placement)


@given(seeds)
def test_placements_that_differ_in_one_instance_differ(seed: int) -> None:
    rng = np.random.default_rng(seed)
    instances = random_instances(rng, random_problem(rng))
    placement = Placement.of(instances)
    changed = int(rng.integers(len(instances)))
    old = instances[changed]
    for new in (
        [],
        [Instance(operator=old.operator, node="elsewhere", origin=old.origin)],
        [Instance(operator=old.operator, node=old.node, origin="elsewhere")],
        [Instance(operator="other", node=old.node, origin=old.origin)],
    ):
        other = Placement.of([*instances[:changed], *new, *instances[changed + 1 :]])
        assert other != placement
        assert other.fingerprint != placement.fingerprint


def test_a_placement_is_frozen() -> None:
    placement = Placement.of({"a": "x"})
    with pytest.raises(FrozenInstanceError):
        placement.node_names = ()  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        placement.node[0] = 1
    assert placement != {"a": "x"}


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(InvalidInput) as refused:
        Placement(
            operator_names=("a",),
            node_names=("x",),
            origin_names=(),
            operator=np.zeros(2, dtype=np.int32),
            node=np.zeros(1, dtype=np.int32),
            origin=np.zeros(3, dtype=np.int32),
        )
    assert [defect.path for defect in refused.value.defects] == ["node", "origin"]


def test_nothing_placed_is_a_placement_too() -> None:
    empty = Placement.of({})
    assert (len(empty), list(empty)) == (0, [])
    assert empty == Placement.of([])
    assert repr(empty) == "<Placement of 0 instances on 0 nodes>"
