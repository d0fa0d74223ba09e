from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generators.problems import random_problem
from thalweg.errors import InvalidInput
from thalweg.model import (
    Application,
    Link,
    Network,
    Node,
    Operator,
    Pin,
    Problem,
    Site,
    Stream,
    Tier,
    build_network,
)


def network() -> Network:
    def node(name: str) -> Node:
        return Node(name=name, cpu_ips=1e6, memory_bytes=1e6)

    sites = [
        Site(name="e1", tier="edge", nodes=(node("a"), node("b"))),
        Site(name="hollow", tier="edge", nodes=()),
        Site(name="e2", tier="edge", nodes=(node("a"),)),
        Site(name="dc", tier="cloud", nodes=(node("vm"),)),
    ]
    links = [Link(a=site.name, b="dc", latency_s=0.1, bandwidth_bps=1e6) for site in sites[:-1]]
    return build_network("net", sites, links)


def application(born: Pin, rate: float = 12.0, **changes: Any) -> Application:
    return Application(
        name="app",
        operators=[
            Operator(name="s", kind="source", rate=rate, event_size=10.0, pin=born),
            Operator(**{"name": "t", **changes}),
            Operator(name="z", kind="sink", pin=Pin(tier="cloud")),
        ],
        streams=[Stream(source="s", target="t"), Stream(source="t", target="z")],
    )


def problem(born: Pin, rates: Any = None, **changes: Any) -> Problem:
    return Problem(application=application(born, **changes), network=network(), rates=rates)


def births(made: Problem) -> list[tuple[str, str, float]]:
    """(site, node, rate) of each birth."""
    found = made.births
    return [
        (made.network.site_names[s], made.network.node_name(n), rate)
        for s, n, rate in zip(
            found.site.tolist(), found.node.tolist(), found.rate.tolist(), strict=True
        )
    ]


def messages(run: Callable[[], Any]) -> list[str]:
    with pytest.raises(InvalidInput) as refused:
        run()
    return [str(defect) for defect in refused.value.defects]


def test_a_source_is_born_evenly_on_the_first_node_of_every_site_of_its_tier_that_has_one() -> None:
    assert births(problem(Pin(tier="edge"))) == [("e1", "e1/a", 6.0), ("e2", "e2/a", 6.0)]


def test_a_source_pinned_to_a_site_or_node_is_born_there() -> None:
    assert births(problem(Pin(site="e1"))) == [("e1", "e1/a", 12.0)]
    assert births(problem(Pin(node="e1/b"))) == [("e1", "e1/b", 12.0)]


def test_given_rates_replace_the_even_split_for_their_sites_alone() -> None:
    made = problem(Pin(tier="edge"), {("s", "e2"): 100.0})
    assert births(made) == [("e1", "e1/a", 6.0), ("e2", "e2/a", 100.0)]
    assert births(problem(Pin(tier="edge"), {("s", "e1"): 0}))[0][2] == 0.0


@pytest.mark.parametrize(
    "pair", [("s", "hollow"), ("s", "dc"), ("s", "nowhere"), ("t", "e1"), ("x", "e1")]
)
def test_rates_are_for_sources_and_their_sites(pair: tuple[str, str]) -> None:
    (found,) = messages(lambda: problem(Pin(tier="edge"), {pair: 1.0}))
    assert found.startswith(f"rates[{pair[0]}, {pair[1]}]: ")
    assert found.endswith("need a source and one of its sites")


@pytest.mark.parametrize("rate", [-1.0, math.nan, math.inf, "7", None, True, 10**400, 1e16])
def test_rates_are_finite_numbers_from_zero_on(rate: Any) -> None:
    (found,) = messages(lambda: problem(Pin(tier="edge"), {("s", "e1"): rate}))
    assert found.endswith("need a finite number of events/s >= 0")


@pytest.mark.parametrize(
    ("pin", "message"),
    [
        (Pin(site="hollo"), 'pin.site: got "hollo", need a site of net. '
                            'Hint: did you mean "hollow"?'),
        (Pin(site="hollow"), 'pin.site: got "hollow", need a site that has nodes'),
        (Pin(tier="fog"), 'pin.tier: got "fog", need a tier that net has.'),
        (Pin(node="e1/c"), 'pin.node: got "e1/c", need a node of net. '
                           'Hint: nodes there are named like "e1/a".'),
        (Pin(node="e1"), 'pin.node: got "e1", need a node of net.'),
        (Pin(node="e22/a"), 'pin.node: got "e22/a", need a node of net. Hint: did you mean "e2"?'),
    ],
)  # fmt: skip
def test_a_pin_to_nowhere_is_refused_with_a_hint(pin: Pin, message: str) -> None:
    (source,) = messages(lambda: problem(pin))
    assert source.startswith(f"operators[0].{message}")
    (transform,) = messages(lambda: problem(Pin(site="e1"), pin=pin))
    assert transform.startswith(f"operators[1].{message}")


def test_all_pins_to_nowhere_are_named_at_once() -> None:
    found = messages(lambda: problem(Pin(tier="fog"), pin=Pin(site="x")))
    assert [line.split(": ")[0] for line in found] == [
        "operators[0].pin.tier",
        "operators[1].pin.site",
    ]


@given(st.integers(0, 2**32 - 1))
def test_allowed_nodes_are_those_that_the_pin_matches_one_by_one(seed: int) -> None:
    made = random_problem(np.random.default_rng(seed))
    net = made.network
    for index, operator in enumerate(made.application.operators):
        pin, allowed = operator.pin, made.allowed_nodes(index)
        if pin is None:
            assert allowed is None
            continue
        expected = []
        for node in range(net.node_count):
            site = int(net.node_site[node])
            if (
                (pin.node is not None and net.node_name(node) == pin.node)
                or (pin.site is not None and net.site_names[site] == pin.site)
                or (pin.tier is not None and Tier(int(net.site_tier[site])).label == pin.tier)
            ):
                expected.append(node)
        assert allowed is not None
        assert allowed.tolist() == expected


@given(st.integers(0, 2**32 - 1))
def test_births_are_one_for_each_matching_site_and_rates_add_up(seed: int) -> None:
    made = random_problem(np.random.default_rng(seed))
    net, app = made.network, made.application
    rows = list(
        zip(
            made.births.operator.tolist(),
            made.births.site.tolist(),
            made.births.node.tolist(),
            made.births.rate.tolist(),
            strict=True,
        )
    )
    expected = []
    for index, operator in enumerate(app.operators):
        if operator.kind != "source":
            continue
        allowed = made.allowed_nodes(index)
        assert allowed is not None
        sites = sorted({int(net.node_site[n]) for n in allowed.tolist()})
        for site in sites:
            node = min(n for n in allowed.tolist() if net.node_site[n] == site)
            assert operator.rate is not None
            rate = (made.rates or {}).get(
                (operator.name, net.site_names[site]), operator.rate / len(sites)
            )
            expected.append((index, site, node, rate))
    assert rows == expected


def test_an_operator_that_multiplies_without_end_is_refused_not_overflown() -> None:
    def chain(**growth: float) -> Application:
        names = [f"t{k}" for k in range(40)]
        path = ["s", *names, "z"]
        return Application(
            name="app",
            operators=[
                Operator(name="s", kind="source", rate=1.0, event_size=1.0, pin=Pin(tier="edge")),
                *(Operator(name=name, **growth) for name in names),
                Operator(name="z", kind="sink"),
            ],
            streams=[Stream(source=a, target=b) for a, b in itertools.pairwise(path)],
        )

    for growth in ({"selectivity": 1e9}, {"compression": 1e9}):
        (found,) = messages(
            lambda growth=growth: Problem(application=chain(**growth), network=network())
        )
        assert found.startswith("operators[5]: got ")
        assert "look at the selectivity and compression" in found
    assert Problem(application=chain(selectivity=5.0), network=network()).births.rate[0] == 0.5
