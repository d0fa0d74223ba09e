from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.errors import InvalidInput
from thalweg.model import Link, LinkWan, Node, Site, TreeWan, build_network
from thalweg.model.names import NAME_RULE


def node(name: str = "n", **more: Any) -> Node:
    return Node(**{"name": name, "cpu_ips": 1e6, "memory_bytes": 1e6, **more})


def site(name: str, tier: str = "edge", *nodes: Node, **more: Any) -> Site:
    return Site(name=name, tier=tier, nodes=nodes or (node(),), **more)


def link(a: str, b: str, latency_s: float = 0.1, **more: Any) -> Link:
    return Link(**{"a": a, "b": b, "latency_s": latency_s, "bandwidth_bps": 1e6, **more})


def messages(run: Callable[[], Any]) -> list[str]:
    with pytest.raises(InvalidInput) as refused:
        run()
    return [str(defect) for defect in refused.value.defects]


def paths(run: Callable[[], Any]) -> list[str]:
    return [message.split(": ")[0] for message in messages(run)]


def test_sites_nodes_and_links_become_arrays_in_their_order() -> None:
    net = build_network(
        "city",
        [
            site(
                "gate", "edge",
                node("a", cpu_available_ips=5e5, lan_latency_s=0.001, lan_bandwidth_bps=1e7),
                node("b", memory_available_bytes=1e5, operators=3),
                parent="dc", edge_delay_s=0.02, area_m=(0, 0, 10, 20),
            ),
            site("dc", "cloud", node("vm", cpu_ips=1e9)),
        ],
        [link("gate", "dc", 0.05, bandwidth_bps=8e6, bandwidth_available_bps=2e6)],
    )  # fmt: skip
    assert net.site_names == ("gate", "dc")
    assert net.site_tier.tolist() == [0, 2]
    assert net.site_parent.tolist() == [1, -1]
    assert net.site_edge_delay_s.tolist() == [0.02, 0.0]
    assert [net.node_name(k) for k in range(3)] == ["gate/a", "gate/b", "dc/vm"]
    assert net.node_cpu_ips.tolist() == [1e6, 1e6, 1e9]
    assert net.node_cpu_available_ips.tolist() == [5e5, 1e6, 1e9]
    assert net.node_memory_available_bytes.tolist() == [1e6, 1e5, 1e6]
    assert net.node_lan_latency_s.tolist() == [0.001, 0.0, 0.0]
    assert net.node_lan_bandwidth_bps.tolist() == [1e7, math.inf, math.inf]
    assert net.node_operators.tolist() == [0, 3, 0]
    assert net.site("gate").area_m == (0, 0, 10, 20)
    assert net.site("dc").area_m is None
    assert net.link("gate", "dc") == link(
        "gate", "dc", 0.05, bandwidth_bps=8e6, bandwidth_available_bps=2e6
    )
    assert net.link("dc", "gate").bandwidth_available_bps == 2e6


def test_links_that_form_a_tree_are_held_as_one_rooted_at_the_last_site() -> None:
    sites = [site(name) for name in "abcd"]
    wan = build_network("t", sites, [link("a", "b"), link("b", "d"), link("c", "b")]).wan
    assert isinstance(wan, TreeWan)
    assert wan.parent.tolist() == [1, 3, 1, -1]
    alone = build_network("t", sites[:1], []).wan
    assert isinstance(alone, TreeWan)


def test_other_links_are_held_as_a_graph() -> None:
    sites = [site(name) for name in "abcd"]
    ring = [link("a", "b"), link("b", "c"), link("c", "d"), link("d", "a")]
    assert isinstance(build_network("t", sites, ring).wan, LinkWan)
    # As many links as a tree would have, but one site is left out.
    loop = build_network("t", sites, [link("a", "b"), link("b", "c"), link("c", "a")])
    assert isinstance(loop.wan, LinkWan)
    assert math.isinf(loop.link("a", "d").latency_s)
    assert isinstance(build_network("t", sites, []).wan, LinkWan)


@given(st.integers(0, 2**32 - 1), st.integers(1, 7))
def test_routes_are_those_of_floyd_and_warshall(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    names = [f"s{k}" for k in range(count)]
    pairs = [(a, b) for a in range(count) for b in range(a + 1, count) if rng.random() < 0.5]
    # Distinct powers of two: no two ways take equally long, and sums are exact.
    links = [link(names[a], names[b], 2.0**-k) for k, (a, b) in enumerate(pairs)]
    net = build_network("n", [site(name) for name in names], links)
    far = [[0.0 if a == b else math.inf for b in range(count)] for a in range(count)]
    for k, (a, b) in enumerate(pairs):
        far[a][b] = far[b][a] = 2.0**-k
    for middle in range(count):
        for a in range(count):
            for b in range(count):
                far[a][b] = min(far[a][b], far[a][middle] + far[middle][b])
    sites = np.arange(count)
    assert net.wan.latency_s(sites[:, None], sites[None, :]).tolist() == far


def test_an_empty_network_is_refused() -> None:
    assert messages(lambda: build_network("n", [], [])) == [
        'sites: got "no sites", need at least one site'
    ]
    hollow = [Site(name="a", tier="edge", nodes=())]
    assert messages(lambda: build_network("n", hollow, [])) == [
        'sites: got "no nodes", need at least one node'
    ]


def test_a_site_without_nodes_may_stand_between_others() -> None:
    net = build_network(
        "n",
        [site("a"), Site(name="hub", tier="fog", nodes=()), site("b")],
        [link("a", "hub"), link("hub", "b")],
    )
    assert net.latency_s(0, 1) == pytest.approx(0.2)
    assert net.site("hub").nodes == ()


def test_everything_wrong_is_said_at_once() -> None:
    found = messages(
        lambda: build_network(
            "n",
            [
                site("a", "egde", node("x"), node("x")),
                site("a/b", "fog", node("y z"), parent="claud"),
                site("cloud", "cloud"),
                site("cloud", "cloud"),
            ],
            [link("a", "cluod"), link("a", "a"), link("a", "cloud"), link("cloud", "a")],
        )
    )
    expected = [
        'sites[3].name: got "cloud", need a name of its own. Hint: sites[2] has it already.',
        'sites[0].tier: got "egde", need edge, fog or cloud. Hint: did you mean "edge"?',
        'sites[0].nodes[1].name: got "x", need a name of its own. '
        "Hint: sites[0].nodes[0] has it already.",
        f'sites[1].name: got "a/b", need {NAME_RULE}',
        'sites[1].parent: got "claud", need the name of a site. Hint: did you mean "cloud"?',
        f'sites[1].nodes[0].name: got "y z", need {NAME_RULE}',
        'links[0].b: got "cluod", need the name of a site. Hint: did you mean "cloud"?',
        'links[1]: got "a – a", need a link between two different sites',
        'links[3]: got "cloud – a", need one link between two sites. '
        "Hint: links[2] joins them already.",
    ]
    assert [line[: len(wanted)] for line, wanted in zip(found, expected, strict=True)] == expected


def test_parents_that_go_round_are_refused() -> None:
    sites = [site("a", parent="b"), site("b", parent="a")]
    assert paths(lambda: build_network("n", sites, [link("a", "b")])) == ["sites[0].parent"]


@pytest.mark.parametrize("tier", [None, 2, "", ["edge"]])
def test_a_tier_is_one_of_three_words(tier: Any) -> None:
    assert paths(lambda: build_network("n", [site("a", tier)], [])) == ["sites[0].tier"]


BAD = [-1.0, math.nan, "5 GB", None, True, 10**400]


@pytest.mark.parametrize("bad", BAD)
def test_a_node_has_numbers_from_zero_on(bad: Any) -> None:
    found = paths(
        lambda: node(cpu_ips=bad, memory_bytes=bad, lan_latency_s=bad, lan_bandwidth_bps=bad)
    )
    assert found == ["cpu_ips", "memory_bytes", "lan_bandwidth_bps", "lan_latency_s"]


def test_a_node_has_no_more_free_than_it_has_and_all_of_it_unless_said() -> None:
    found = paths(
        lambda: node(
            cpu_available_ips=2e6,
            memory_available_bytes=2e6,
            lan_bandwidth_bps=1.0,
            lan_available_bps=2.0,
        )
    )
    assert found == ["cpu_available_ips", "memory_available_bytes", "lan_available_bps"]
    assert node().cpu_available_ips == 1e6
    assert node().lan_available_bps == math.inf
    assert paths(lambda: node(lan_latency_s=math.inf)) == ["lan_latency_s"]


@pytest.mark.parametrize("operators", [-1, 1.5, math.nan, True, None, 2**31])
def test_a_node_runs_a_whole_number_of_other_operators(operators: Any) -> None:
    assert paths(lambda: node(operators=operators)) == ["operators"]


@pytest.mark.parametrize("bad", BAD)
def test_a_link_has_numbers_from_zero_on(bad: Any) -> None:
    assert paths(lambda: link("a", "b", bad, bandwidth_bps=bad)) == ["latency_s", "bandwidth_bps"]


def test_a_link_has_no_more_free_than_it_has() -> None:
    assert paths(lambda: link("a", "b", bandwidth_available_bps=2e6)) == ["bandwidth_available_bps"]


def test_a_link_that_takes_for_ever_joins_nothing() -> None:
    sites = [site("a"), site("b")]
    assert paths(lambda: build_network("n", sites, [link("a", "b", math.inf)])) == [
        "links[0].latency_s"
    ]


@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf, "1"])
def test_the_way_to_a_site_takes_a_finite_time(bad: Any) -> None:
    assert paths(lambda: site("a", edge_delay_s=bad)) == ["edge_delay_s"]


def test_an_area_has_an_inside() -> None:
    assert paths(lambda: site("a", area_m=(5, 0, 5, 1))) == ["area"]
    assert paths(lambda: site("a", area_m=(0, math.nan, 5, 1))) == ["area"]
