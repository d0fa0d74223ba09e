from itertools import chain, combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduling.problems import random_fog_problem
from thalweg.scenarios import layered_application, taxi_demand
from thalweg.scheduling.cuts import TooManyCuts, list_cuts


def closed_sets(app):
    """Every set of replicable transforms that holds all transforms upstream of its members."""
    transforms = [o.name for o in app.operators if o.kind == "transform" and o.replicable]
    kind = {o.name: o.kind for o in app.operators}
    subsets = chain.from_iterable(
        combinations(transforms, size) for size in range(len(transforms) + 1)
    )
    for subset in map(set, subsets):
        if all(
            stream.source in subset or kind[stream.source] == "source"
            for stream in app.streams
            if stream.target in subset
        ):
            yield frozenset(subset)


@settings(deadline=None, max_examples=100)
@given(st.integers(0, 10**6), st.integers(1, 7))
def test_cuts_are_exactly_the_closed_sets(seed, transforms):
    app = random_fog_problem(seed, transforms=transforms).application
    cuts = list_cuts(app)
    names = [o.name for o in app.operators]
    listed = [frozenset(n for n, on in zip(names, row, strict=True) if on) for row in cuts.members]
    assert len(set(listed)) == len(listed)
    assert set(listed) == set(closed_sets(app))
    order = [(len(cut), sorted(names.index(n) for n in cut)) for cut in listed]
    assert order == sorted(order)


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 10**6))
def test_a_stream_crosses_where_its_ends_are_apart(seed):
    app = random_fog_problem(seed).application
    cuts = list_cuts(app)
    for row, crossing in zip(cuts.members, cuts.crossing, strict=True):
        fog = {o.name for o, on in zip(app.operators, row, strict=True) if on or o.kind == "source"}
        for stream, crosses in zip(app.streams, crossing, strict=True):
            assert crosses == (stream.source in fog and stream.target not in fog)


def test_the_empty_cut_comes_first_and_the_taxi_has_few():
    cuts = list_cuts(taxi_demand())
    assert not cuts.members[0].any()
    assert cuts.sizes.tolist() == sorted(cuts.sizes.tolist())
    assert cuts.sizes[-1] == 11


def test_too_many_cuts_are_refused_not_listed():
    from dataclasses import replace

    wide = layered_application(layers=2, width=12)
    app = replace(wide, operators=[replace(o, replicable=True) for o in wide.operators])
    with pytest.raises(TooManyCuts, match="more than 1,000 cuts"):
        list_cuts(app, most=1_000)
