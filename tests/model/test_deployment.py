from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generators.problems import random_instances, random_placement, random_problem
from thalweg.errors import InvalidInput
from thalweg.model import (
    Application,
    Instance,
    Link,
    Node,
    Operator,
    Pin,
    Placement,
    Problem,
    Site,
    Stream,
    build_network,
    deploy,
    deploy_indices,
)

seeds = st.integers(0, 2**32 - 1)

Flow = tuple[tuple[str, str | None], tuple[str, str | None], int]


def flows_of(problem: Problem, placement: Placement) -> set[Flow]:
    """Who sends to whom along which stream, from dictionaries."""
    running = {(i.operator, i.origin): i.node for i in placement}
    flows: set[Flow] = set()
    for number, stream in enumerate(problem.application.streams):
        for sender in running:
            if sender[0] == stream.source:
                own = (stream.target, sender[1])
                receiver = own if own in running else (stream.target, None)
                assert receiver in running
                flows.add((sender, receiver, number))
    return flows


@given(seeds)
def test_every_instance_is_joined_to_those_that_serve_its_events(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = random_problem(rng)
    placement = random_placement(rng, problem)
    unfolded = deploy(problem, placement)
    app, net = problem.application, problem.network

    def name(instance: int) -> tuple[str, str | None]:
        origin = int(unfolded.origin[instance])
        site = net.site_names[origin] if origin >= 0 else None
        return app.operators[int(unfolded.operator[instance])].name, site

    assert unfolded.size == len(placement)
    assert {(*name(k), net.node_name(int(unfolded.node[k]))) for k in range(unfolded.size)} == {
        (i.operator, i.origin, i.node) for i in placement
    }
    graph = unfolded.graph
    found = [
        (name(s), name(t), k)
        for s, t, k in zip(
            graph.source.tolist(), graph.target.tolist(), unfolded.stream.tolist(), strict=True
        )
    ]
    assert len(set(found)) == len(found)
    assert set(found) == flows_of(problem, placement)
    births = problem.births
    rates = {
        (app.operators[o].name, net.site_names[s]): rate
        for o, s, rate in zip(
            births.operator.tolist(), births.site.tolist(), births.rate.tolist(), strict=True
        )
    }
    for k in range(unfolded.size):
        assert unfolded.birth_rate[k] == rates.get(name(k), 0.0)  # type: ignore[arg-type]
        label = name(k)[0] if name(k)[1] is None else f"{name(k)[0]}@{name(k)[1]}"
        assert unfolded.instance_name(k) == label


@given(seeds)
def test_every_path_of_one_copy_of_each_is_a_path_of_the_application(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = random_problem(rng)
    births = problem.births
    if len(set(births.operator.tolist())) < births.operator.size:
        return
    others = [k for k, o in enumerate(problem.application.operators) if o.kind != "source"]
    unfolded = deploy_indices(
        problem,
        [*births.operator.tolist(), *others],
        [*births.node.tolist(), *[0] * len(others)],
        [*births.site.tolist(), *[-1] * len(others)],
    )
    assert unfolded.graph is problem.application.graph
    assert unfolded.stream.tolist() == list(range(len(problem.application.streams)))


def small(**operator: Any) -> Problem:
    """A source in two fogs, one transform, one sink in the cloud."""
    node = Node(name="n", cpu_ips=1e6, memory_bytes=1e6)
    sites = [Site(name=name, tier="fog", nodes=(node,)) for name in ("f1", "f2")]
    sites.append(Site(name="dc", tier="cloud", nodes=(node,)))
    links = [Link(a=f, b="dc", latency_s=0.1, bandwidth_bps=1e6) for f in ("f1", "f2")]
    app = Application(
        name="app",
        operators=[
            Operator(name="s", kind="source", rate=10.0, event_size=8.0, pin=Pin(tier="fog")),
            Operator(name="t", replicable=True, **operator),
            Operator(name="z", kind="sink"),
        ],
        streams=[Stream(source="s", target="t"), Stream(source="t", target="z")],
    )
    return Problem(application=app, network=build_network("net", sites, links))


def instances(text: str) -> Placement:
    """`"s@f1:f1/n t:dc/n"` as a placement."""
    made = []
    for part in text.split():
        who, node = part.split(":")
        operator, _, origin = who.partition("@")
        made.append(Instance(operator=operator, node=node, origin=origin or None))
    return Placement.of(made)


SOURCES = "s@f1:f1/n s@f2:f2/n"


def refusals(text: str) -> list[str]:
    with pytest.raises(InvalidInput) as refused:
        deploy(small(), instances(text))
    return [str(defect) for defect in refused.value.defects]


@pytest.mark.parametrize(
    "text",
    [
        f"{SOURCES} t:dc/n z:dc/n",
        f"{SOURCES} t@f1:f1/n t@f2:f2/n z:dc/n",
        f"{SOURCES} t@f1:f1/n t:dc/n z:dc/n",
        f"{SOURCES} t@f1:dc/n t@f2:dc/n z@f1:f1/n z:dc/n",
        f"{SOURCES} t@f1:dc/n t@f2:dc/n z@f1:f1/n z@f2:f1/n",
    ],
)
def test_replicas_for_all_for_some_or_for_no_origins_deploy(text: str) -> None:
    assert deploy(small(), instances(text)).size == len(text.split())


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        ("", ['got "s", need every operator', 'got "t", need every', 'got "z", need every']),
        (f"{SOURCES} t:dc/n", ['got "z", need every operator of app placed']),
        (
            f"{SOURCES} t:nowhere z:dc/n u:dc/n q@f1:dc/n z@f9:dc/n",
            [
                'got "u", need an operator of app',
                'got "q", need an operator of app',
                'got "nowhere", need a node of net',
                'got "f9", need a site of net. Hint: known: f1, f2, dc',
            ],
        ),
        ("s@f1:f1/n t:dc/n z:dc/n", ['got "no s for f2"', "1 instances of sources"]),
        ("s:f1/n s@f1:f1/n t:dc/n z:dc/n", ['got "no s for f2"']),
        (
            f"{SOURCES} s@dc:dc/n t:dc/n z:dc/n",
            ['got "3 instances of sources", need 2, one in each site where a source is born'],
        ),
        (
            f"{SOURCES} t@f1:f1/n z:dc/n",
            ['got "nobody takes the events of s for f2", need an instance of t for f2'],
        ),
        (
            f"{SOURCES} t:dc/n z@f1:f1/n z@f2:f2/n",
            ['got "nobody takes the events of t for all sites", need an instance of z for all'],
        ),
        (
            f"{SOURCES} t@f1:f1/n t@f2:f2/n t:dc/n z:dc/n",
            ['got "t", need an instance that gets events'],
        ),
        (f"{SOURCES} t@dc:dc/n t:dc/n z:dc/n", ['got "t for dc", need an instance that gets']),
        (f"{SOURCES} t:dc/n t:f1/n z:dc/n", ['got "t", need one instance for each origin']),
        (
            f"{SOURCES} t@f1:dc/n t@f1:f1/n t:dc/n z:dc/n",
            ['got "t for f1", need one instance for each origin'],
        ),
        (f"{SOURCES} s@f1:dc/n t:dc/n z:dc/n", ["3 instances of sources"]),
    ],
)
def test_what_is_no_deployment_is_refused_with_all_reasons(text: str, messages: list[str]) -> None:
    found = refusals(text)
    assert len(found) == len(messages)
    for line, wanted in zip(found, messages, strict=True):
        assert line.startswith("placement: ")
        assert wanted in line


def test_a_deployment_and_its_births_cannot_be_written_to() -> None:
    made = small()
    unfolded = deploy(made, instances(f"{SOURCES} t:dc/n z:dc/n"))
    for array in (unfolded.operator, unfolded.node, unfolded.birth_rate, made.births.rate):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_nothing_at_all_is_refused() -> None:
    nothing = np.empty(0, dtype=np.int32)
    with pytest.raises(InvalidInput):
        deploy_indices(small(), nothing, nothing, nothing)


@given(seeds)
def test_a_deployment_without_one_of_its_instances_is_refused(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = random_problem(rng)
    whole = random_instances(rng, problem)
    gone = int(rng.integers(len(whole)))
    rest = [*whole[:gone], *whole[gone + 1 :]]
    missing = whole[gone]
    backed = missing.origin is not None and any(
        i.operator == missing.operator and i.origin is None for i in rest
    )
    try:
        deploy(problem, Placement.of(rest))
    except InvalidInput:
        # Without a replica its site's events go to the instance for all, where there is one; but
        # then further replicas downstream may get nothing.
        pass
    else:
        assert backed
        assert problem.application.operator(missing.operator).kind != "source"


def test_ten_thousand_replicas_are_joined_to_their_own() -> None:
    count = 10_000
    node = Node(name="n", cpu_ips=1e6, memory_bytes=1e6)
    sites = [Site(name=f"f{k}", tier="fog", nodes=(node,)) for k in range(count)]
    sites.append(Site(name="dc", tier="cloud", nodes=(node,)))
    links = [Link(a=f"f{k}", b="dc", latency_s=0.1, bandwidth_bps=1e6) for k in range(count)]
    problem = Problem(application=small().application, network=build_network("wide", sites, links))
    every = np.arange(count)
    unfolded = deploy_indices(
        problem,
        np.concatenate([np.zeros(count), np.ones(count), [2]]).astype(int),
        np.concatenate([every, every, [count]]),
        np.concatenate([every, every, [-1]]),
    )
    own = unfolded.stream == 0
    assert np.array_equal(
        unfolded.origin[unfolded.graph.source[own]], unfolded.origin[unfolded.graph.target[own]]
    )
    assert (unfolded.graph.target[~own] == 2 * count).all()
    assert unfolded.birth_rate.sum() == pytest.approx(10.0)
