from __future__ import annotations

import math
import sys
from pathlib import Path

import networkx as nx
import pytest

import thalweg as tw
from thalweg.errors import MissingExtra
from thalweg.model import (
    CountWindow,
    Link,
    LinkWan,
    Network,
    Node,
    Operator,
    Pin,
    Site,
    Stream,
    build_network,
)


def ring(count: int) -> Network:
    """Sites of two machines in a circle, each link slower than the one before."""
    here = [
        Node(name=name, cpu_ips=1e9, memory_bytes=1e9, lan_latency_s=latency_s)
        for name, latency_s in (("a", 0.001), ("b", 0.002))
    ]
    sites = [Site(name=f"s{k}", tier="edge", nodes=tuple(here)) for k in range(count)]
    links = [
        Link(a=f"s{k}", b=f"s{(k + 1) % count}", latency_s=0.01 * (k + 1), bandwidth_bps=1e6)
        for k in range(count)
    ]
    return build_network("ring", sites, links)


NETWORKS = {
    "links": ring(6),
    "a small tree": tw.scenarios.small_city(),
    "tree": tw.scenarios.broker_tree(),
    "one machine in each site": tw.scenarios.fog_cloud(4),
    "mesh": tw.scenarios.cloud_edge(2, 3, 4, seed=0),
}
ROUTED = [name for name in NETWORKS if name != "mesh"]


def test_the_ring_is_a_graph_of_links() -> None:
    assert isinstance(NETWORKS["links"].wan, LinkWan)


def vertex_of(network: Network, node: int) -> str:
    name = network.node_name(node)
    return name if "/" in name else f"{name}/0"


@pytest.mark.parametrize("name", ROUTED)
def test_the_shortest_path_takes_as_long_as_a_message(name: str) -> None:
    network = NETWORKS[name]
    graph = network.to_networkx()
    for a in range(network.node_count):
        lengths = nx.single_source_dijkstra_path_length(
            graph, vertex_of(network, a), weight="latency_s"
        )
        for b in range(network.node_count):
            found = lengths.get(vertex_of(network, b), math.inf)
            assert found == pytest.approx(float(network.latency_s(a, b)), rel=1e-9)


@pytest.mark.parametrize("name", NETWORKS)
def test_a_link_has_the_figures_of_the_network_in_both_directions(name: str) -> None:
    network = NETWORKS[name]
    graph = network.to_networkx(machines=False)
    assert list(graph) == list(network.site_names)
    assert all(graph.has_edge(b, a) for a, b in graph.edges)
    index = network.site_index
    for a, b, found in graph.edges(data=True):
        (link,) = network.wan.route(index[a], index[b])
        assert found["available_bps"] == float(network.wan.link_available_bps(link))
        way = network.link(a, b)
        assert (found["latency_s"], found["bandwidth_bps"]) == (way.latency_s, way.bandwidth_bps)


def test_what_is_reserved_in_one_direction_is_missing_there() -> None:
    network = NETWORKS["a small tree"]
    (link,) = network.wan.route(network.site_index["hub-east"], network.site_index["cloud"])
    left = network.with_available(wan=network.wan.reserved([link], [4e6])).to_networkx()
    assert left.edges["hub-east", "cloud"]["available_bps"] == 46e6
    assert left.edges["cloud", "hub-east"]["available_bps"] == 50e6


def test_a_mesh_joins_every_two_sites() -> None:
    assert NETWORKS["mesh"].to_networkx(machines=False).number_of_edges() == 5 * 4


@pytest.mark.parametrize("name", NETWORKS)
def test_every_machine_is_a_vertex_with_its_figures(name: str) -> None:
    network = NETWORKS[name]
    graph = network.to_networkx()
    machines = [vertex for vertex, kind in graph.nodes(data="kind") if kind == "machine"]
    assert [network.node_index(vertex) for vertex in machines] == list(range(network.node_count))
    for vertex in machines:
        node, found = network.node(network.node_index(vertex)), graph.nodes[vertex]
        assert found["cpu_ips"] == node.cpu_ips
        assert found["memory_available_bytes"] == node.memory_available_bytes
        assert found["tier"] == network.site(found["site"]).tier
        assert graph.edges[vertex, found["site"]]["bandwidth_bps"] == node.lan_bandwidth_bps
    assert sum(count for _, count in graph.nodes(data="machines", default=0)) == len(machines)


def test_an_application_has_its_operators_and_streams() -> None:
    app = tw.Application(
        name="count",
        operators=[
            Operator(name="s", kind="source", rate=2.0, event_size=8.0, pin=Pin(tier="edge")),
            Operator(name="t", cpu_per_event=3.0, window=CountWindow(5), state=7.0),
            Operator(name="z", kind="sink"),
        ],
        streams=[Stream(source="s", target="t", probability=0.5), Stream(source="t", target="z")],
    )
    graph = app.to_networkx()
    assert list(graph) == ["s", "t", "z"]
    assert list(graph.edges(data="probability")) == [("s", "t", 0.5), ("t", "z", 1.0)]
    source, transform = graph.nodes["s"], graph.nodes["t"]
    assert (source["rate_per_s"], source["event_size_bytes"]) == (2.0, 8.0)
    assert source["pin"] == "tier edge"
    assert (transform["cpu_per_event_instructions"], transform["state_bytes"]) == (3.0, 7.0)
    assert transform["window_events"] == 5
    assert "rate_per_s" not in transform


def test_paths_are_as_many_as_the_application_counts() -> None:
    app = tw.scenarios.taxi_fares()
    graph = app.to_networkx()
    paths = sum(
        len(list(nx.all_simple_paths(graph, source.name, sink)))
        for source in app.sources
        for sink in (o.name for o in app.operators if o.kind == "sink")
    )
    assert paths == app.path_count


def test_a_graph_can_be_written(tmp_path: Path) -> None:
    nx.write_graphml(NETWORKS["a small tree"].to_networkx(), tmp_path / "city.graphml")
    again = nx.read_graphml(tmp_path / "city.graphml")
    assert dict(again.edges) == dict(NETWORKS["a small tree"].to_networkx().edges)
    nx.write_graphml(tw.scenarios.small_taxi().to_networkx(), tmp_path / "taxi.graphml")


def test_without_networkx_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "networkx", None)
    for made in (tw.scenarios.small_taxi(), NETWORKS["a small tree"]):
        with pytest.raises(MissingExtra, match=r"thalweg\[graph\]"):
            made.to_networkx()
