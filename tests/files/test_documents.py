"""What documents may say: every rule, where its breach is told, and no crash on anything."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thalweg.errors import InvalidInput
from thalweg.files.application_reader import read_application
from thalweg.files.network_reader import read_network
from thalweg.files.plan_reader import read_plan
from thalweg.model import (
    Application,
    CountWindow,
    Limits,
    Operator,
    Pin,
    Stream,
    TimeWindow,
    TreeWan,
    build_network,
)
from thalweg.model import Link as ModelLink
from thalweg.model import Node as ModelNode
from thalweg.model import Site as ModelSite

TAXI: dict[str, Any] = {
    "thalweg": 1,
    "application": "taxi",
    "operators": [
        {
            "name": "rides",
            "kind": "source",
            "rate": "3000 events/s",
            "event_size": "120 B",
            "pin": {"tier": "fog"},
        },
        {
            "name": "clean",
            "selectivity": 0.9,
            "compression": "40 %",
            "cpu_per_event": "2000 instr",
            "cpu_per_byte": "1.2 instr/B",
            "memory": "10 MB",
            "memory_factor": 1.3,
            "window": {"length": "60 s", "slide": "30 s"},
            "state": "5 MB",
            "replicable": True,
        },
        {"name": "store", "kind": "sink", "pin": {"node": "cloud/vm"}, "window": {"events": 100}},
    ],
    "streams": [
        {"source": "rides", "target": "clean", "probability": 0.5},
        {"source": "clean", "target": "store"},
    ],
    "limits": {"response_time": "1 s", "uplink": "125 MB/s", "uplink_least": "50 MB/s", "usage": 1},
}
CITY: dict[str, Any] = {
    "thalweg": 1,
    "network": "city",
    "sites": [
        {
            "name": "fog-1",
            "tier": "fog",
            "parent": "cloud",
            "spark": "sc://spark.example:15002",
            "edge_delay": "40 ms",
            "area": {"west": "-250 m", "south": "0 m", "east": "1 km", "north": "1 km"},
            "nodes": [
                {
                    "name": "gw",
                    "count": 3,
                    "cpu": "4000 MIPS",
                    "cpu_available": "3000 MIPS",
                    "memory": "2 GB",
                    "memory_available": "1.5 GB",
                    "lan_latency": "0.2 ms",
                    "lan_bandwidth": "100 Mbps",
                    "lan_available": "80 Mbps",
                    "operators": 2,
                }
            ],
        },
        {
            "name": "cloud",
            "tier": "cloud",
            "nodes": [{"name": "vm", "cpu": "unlimited", "memory": "1 TB"}],
        },
    ],
    "links": [{"a": "fog-1", "b": "cloud", "latency": "120 ms", "bandwidth": "200 Mbps"}],
}
MESH: dict[str, Any] = {
    **{key: value for key, value in CITY.items() if key != "links"},
    "mesh": {
        "latency": [["0 ms", "70 ms"], ["75 ms", "0 ms"]],
        "bandwidth": "1 Gbps",
        "bandwidth_available": [["1 Gbps", "2 Mbps"], ["3 Mbps", "1 Gbps"]],
    },
}
MAP: dict[str, Any] = {
    **{key: value for key, value in CITY.items() if key not in ("links", "sites")},
    "sites": [
        {**CITY["sites"][0], "position": ["12.5 ms", "-3 ms"], "height": "1 ms"},
        {**CITY["sites"][1], "position": ["0 s", "0 s"]},
    ],
    "coordinates": {
        "bandwidth": "1 Gbps",
        "taken": [{"a": "cloud", "b": "fog-1", "bandwidth": "5 Mbps"}],
    },
}
PLAN: dict[str, Any] = {
    "thalweg": 1,
    "application": "taxi",
    "network": "city",
    "strategy": "by-hand",
    "feasible": False,
    "objective_name": "aggregate_latency_s",
    "objective": "inf",
    "seconds": 0.25,
    "candidates": 7,
    "gap": None,
    "placement": [
        {
            "operator": "rides",
            "node": "fog-1/gw-0",
            "site": "fog-1",
            "tier": "fog",
            "origin": "fog-1",
            "why": "",
        },
        {
            "operator": "store",
            "node": "cloud/vm",
            "site": "cloud",
            "tier": "cloud",
            "why": "it is pinned",
        },
    ],
    "estimate": {
        "aggregate_latency_s": "inf",
        "worst_latency_s": 0.125,
        "path_count": 1.0,
        "response_time_s": 0.5,
        "uplink_bps": 1e6,
        "usage": 0.1,
        "delay_product_bits": 10,
    },
    "violations": [
        {
            "constraint": "memory",
            "place": "fog-1/gw-0",
            "resource": "memory",
            "need": "inf",
            "have": 5.0,
            "unit": "B",
            "operators": ["rides"],
        }
    ],
    "reasons": [
        {
            "operator": "store",
            "why": "it is pinned",
            "cost": None,
            "cost_name": "",
            "considered": 1,
            "runner_up": None,
            "runner_up_cost": None,
        }
    ],
}


def changed(document: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """The document with another value at a path such as `sites.0.name`; `...` takes it out."""
    made = copy.deepcopy(document)
    *steps, last = [int(step) if step.isdecimal() else step for step in path.split(".")]
    here: Any = made
    for step in steps:
        here = here[step]
    if value is ...:
        del here[last]
    elif isinstance(here, list) and last == len(here):
        here.append(value)
    else:
        here[last] = value
    return made


def told(read: Callable[[object], object], data: object) -> list[str]:
    with pytest.raises(InvalidInput) as caught:
        read(data)
    return [str(defect) for defect in caught.value.defects]


def paths_told(read: Callable[[object], object], data: object) -> list[str]:
    """Where the defects are; each that is at a single value shows that value as it is written."""
    with pytest.raises(InvalidInput) as caught:
        read(data)
    for defect in caught.value.defects:
        written = value_at(data, defect.path)
        if not isinstance(written, (dict, list)) and written is not ...:
            assert defect.value is written
    return sorted(defect.path for defect in caught.value.defects)


def value_at(data: Any, path: str) -> Any:
    for step in path.replace("[", ".").replace("]", "").split("."):
        try:
            data = data[int(step) if step.isdecimal() else step]
        except (LookupError, TypeError):
            return ...
    return data


# --- What documents mean --------------------------------------------------------------------------


def test_an_application_is_read_in_base_units() -> None:
    assert read_application(TAXI) == Application(
        name="taxi",
        operators=[
            Operator(
                name="rides", kind="source", rate=3000.0, event_size=120.0, pin=Pin(tier="fog")
            ),
            Operator(
                name="clean",
                selectivity=0.9,
                compression=0.4,
                cpu_per_event=2000.0,
                cpu_per_byte=1.2,
                memory=1e7,
                memory_factor=1.3,
                window=TimeWindow(60.0, 30.0),
                state=5e6,
                replicable=True,
            ),
            Operator(name="store", kind="sink", pin=Pin(node="cloud/vm"), window=CountWindow(100)),
        ],
        streams=[
            Stream(source="rides", target="clean", probability=0.5),
            Stream(source="clean", target="store"),
        ],
        limits=Limits(response_time_s=1.0, uplink_bps=1e9, uplink_least_bps=4e8, usage=1.0),
    )


def test_what_an_application_leaves_out_has_its_default() -> None:
    plain = changed(changed(TAXI, "limits", ...), "operators.1", {"name": "clean"})
    application = read_application(plain)
    assert application.limits == Limits()
    assert application.operator("clean") == Operator(name="clean")


def test_a_network_is_read_in_base_units() -> None:
    network = read_network(CITY)
    assert repr(network) == "<Network city: 4 nodes in 1 fog, 1 cloud sites>"
    assert [network.node_name(k) for k in range(4)] == [
        "fog-1/gw-0",
        "fog-1/gw-1",
        "fog-1/gw-2",
        "cloud/vm",
    ]
    assert network.node(1) == ModelNode(
        name="fog-1/gw-1",
        cpu_ips=4e9,
        cpu_available_ips=3e9,
        memory_bytes=2e9,
        memory_available_bytes=1.5e9,
        lan_latency_s=0.0002,
        lan_bandwidth_bps=1e8,
        lan_available_bps=8e7,
        operators=2,
    )
    assert network.node(3).cpu_ips == math.inf
    fog = network.site("fog-1")
    assert fog.spark == network.address_of("fog-1") == "sc://spark.example:15002"
    assert network.address_of("cloud") == "local"
    assert (fog.parent, fog.edge_delay_s, fog.area_m) == ("cloud", 0.04, (-250.0, 0.0, 1e3, 1e3))
    assert network.link("fog-1", "cloud").latency_s == 0.12
    assert network.link("cloud", "fog-1").bandwidth_available_bps == 2e8


def test_links_are_joined_as_the_model_joins_them() -> None:
    node = ModelNode(name="n", cpu_ips=1.0, memory_bytes=1.0)
    names = ["a", "b", "c", "d"]
    links = [("d", "b", 3), ("a", "b", 5), ("c", "d", 7)]
    expected = build_network(
        "net",
        [ModelSite(name=name, tier="edge", nodes=(node,)) for name in names],
        [ModelLink(a=a, b=b, latency_s=n / 8, bandwidth_bps=8.0 * n) for a, b, n in links],
    ).wan
    found = read_network(
        {
            "thalweg": 1,
            "network": "net",
            "sites": [
                {"name": n, "tier": "edge", "nodes": [{"cpu": "1 IPS", "memory": "1 B"}]}
                for n in names
            ],
            "links": [
                {"a": a, "b": b, "latency": f"{n / 8} s", "bandwidth": f"{n} B/s"}
                for a, b, n in links
            ],
        }
    ).wan
    assert isinstance(expected, TreeWan)
    assert isinstance(found, TreeWan)
    for name in ("parent", "latency", "bandwidth", "available"):
        assert np.array_equal(getattr(found, name), getattr(expected, name)), name


@pytest.mark.parametrize(("a", "b"), [("fog-1", "cloud"), ("cloud", "fog-1")])
@pytest.mark.parametrize("root", ["fog-1", "cloud"])
def test_what_is_available_may_differ_by_direction(a: str, b: str, root: str) -> None:
    link = {**CITY["links"][0], "a": a, "b": b, "bandwidth_available": ["1 Mbps", "2 Mbps"]}
    network = read_network({**CITY, "links": [link], "root": root})
    assert network.link(a, b).bandwidth_available_bps == 1e6
    assert network.link(b, a).bandwidth_available_bps == 2e6
    assert isinstance(network.wan, TreeWan)
    assert network.wan.parent[network.site_index[root]] == -1


def test_a_mesh_is_read_from_the_row_to_the_column() -> None:
    network = read_network(MESH)
    there, back = network.link("fog-1", "cloud"), network.link("cloud", "fog-1")
    assert (there.latency_s, back.latency_s) == (0.07, 0.075)
    assert (there.bandwidth_bps, back.bandwidth_bps) == (1e9, 1e9)
    assert (there.bandwidth_available_bps, back.bandwidth_available_bps) == (2e6, 3e6)


def test_coordinates_give_latency_by_distance_and_height() -> None:
    network = read_network(MAP)
    there = network.link("fog-1", "cloud")
    assert there.latency_s == math.sqrt(0.0125**2 + 0.003**2) + 0.001
    assert there.bandwidth_available_bps == 1e9
    assert network.link("cloud", "fog-1").bandwidth_available_bps == 1e9 - 5e6


def test_one_site_needs_no_links_and_its_node_no_name() -> None:
    node = {"cpu": "1 GIPS", "memory": "1 GB"}
    site = {"name": "here", "tier": "edge", "nodes": [node]}
    network = read_network({"thalweg": 1, "network": "small", "sites": [site]})
    assert network.node_name(0) == "here"


def test_a_plan_is_read_as_it_is_written() -> None:
    plan = read_plan(PLAN)
    assert plan.to_dict() == PLAN
    assert plan.objective == math.inf
    assert plan.hosts == {"fog-1/gw-0": ("fog-1", "fog"), "cloud/vm": ("cloud", "cloud")}
    assert not plan.feasible


# --- What is refused, and where -------------------------------------------------------------------

APPLICATION_RULES: list[tuple[Any, ...]] = [
    ("thalweg", ..., ["thalweg"]),
    ("thalweg", "1", ["thalweg"]),
    ("thalweg", True, ["thalweg"]),
    ("thalweg", 2, ["thalweg"]),
    ("application", "../taxi", ["application"]),
    ("application", 7, ["application"]),
    ("operators", {}, ["operators"]),
    (
        "operators",
        [],
        [
            "operators",
            "operators",
            "streams[0].source",
            "streams[0].target",
            "streams[1].source",
            "streams[1].target",
        ],
    ),
    ("operators.1", 5, ["operators[1]"]),
    ("operators.1.name", ..., ["operators[1].name"]),
    ("operators.1.memroy", "1 B", ["operators[1].memroy"]),
    ("operators.1.memory", 10, ["operators[1].memory"]),
    ("operators.1.memory", None, ["operators[1].memory"]),
    ("operators.1.memory", True, ["operators[1].memory"]),
    ("operators.1.memory", "unlimited", ["operators[1].memory"]),
    ("operators.1.selectivity", True, ["operators[1].selectivity"]),
    ("operators.1.selectivity", "0.4", ["operators[1].selectivity"]),
    ("operators.1.selectivity", "5 ms", ["operators[1].selectivity"]),
    ("operators.1.replicable", "yes", ["operators[1].replicable"]),
    ("operators.1.replicable", 1, ["operators[1].replicable"]),
    ("operators.1.kind", "sorce", ["operators[1].kind"]),
    ("operators.1.rate", "5 /s", ["operators[1].rate"]),
    ("operators.0.rate", "100 MB", ["operators[0].rate"]),
    ("operators.0.pin", ..., ["operators[0].pin"]),
    ("operators.0.pin", {}, ["operators[0].pin"]),
    ("operators.0.pin", None, ["operators[0].pin"]),
    ("operators.0.pin.tier", "fogg", ["operators[0].pin.tier"]),
    ("operators.0.pin", {"node": "a/b/c"}, ["operators[0].pin.node"]),
    ("operators.1.window", {"events": 5, "slide": "1 s"}, ["operators[1].window"]),
    ("operators.1.window", {}, ["operators[1].window"]),
    ("operators.1.window.slide", "90 s", ["operators[1].window.slide"]),
    ("operators.1.window.length", "0 s", ["operators[1].window.length"]),
    ("operators.2.window.events", 2.0, ["operators[2].window.events"]),
    ("operators.2.name", "clean", ["operators[2].name", "streams[1].target"]),
    ("streams.0.probability", 1.5, ["streams[0].probability"]),
    ("streams.0.target", "claen", ["streams[0].target"]),
    ("streams.2", {"source": "clean", "target": "clean"}, ["streams"]),
    ("streams.1", ..., ["operators[1]", "operators[0]", "operators[2]"]),
    ("limits.uplink", "125 MB", ["limits.uplink"]),
    ("limits.uplink_least", "2 Gbps", ["limits.uplink_least"]),
]


@pytest.mark.parametrize(("path", "value", "paths"), APPLICATION_RULES)
def test_an_application_that_breaks_a_rule_is_told_which(
    path: str, value: Any, paths: list[str]
) -> None:
    assert paths_told(read_application, changed(TAXI, path, value)) == sorted(paths)


NETWORK_RULES: list[tuple[Any, ...]] = [
    (CITY, "network", "a..b", ["network"]),
    (CITY, "sites", [], ["sites", "links[0].a", "links[0].b"]),
    (CITY, "sites.0.tier", "Fog", ["sites[0].tier"]),
    (CITY, "sites.0.parent", "clod", ["sites[0].parent"]),
    (CITY, "sites.1.parent", "fog-1", ["sites[0].parent"]),
    (CITY, "sites.1.name", "fog-1", ["sites[1].name", "sites[0].parent", "links[0].b"]),
    (CITY, "sites.0.edge_delay", "-1 ms", ["sites[0].edge_delay"]),
    (CITY, "sites.0.spark", "spark.example:7077", ["sites[0].spark"]),
    (CITY, "sites.0.spark", "local[0]", ["sites[0].spark"]),
    (CITY, "sites.0.spark", None, ["sites[0].spark"]),
    (CITY, "sites.1.spark", "sc://a b", ["sites[1].spark"]),
    (CITY, "sites.0.area.west", "2 km", ["sites[0].area.west"]),
    (CITY, "sites.0.area.north", "-1 km", ["sites[0].area.south"]),
    (CITY, "sites.0.area.west", "--1 m", ["sites[0].area.west"]),
    (CITY, "sites.0.area.west", ..., ["sites[0].area.west"]),
    (CITY, "sites.0.position", ["1 ms"], ["sites[0].position"]),
    (CITY, "sites.0.nodes.0.cpu", "4 GHz", ["sites[0].nodes[0].cpu"]),
    (CITY, "sites.0.nodes.0.cpu_available", "5 GIPS", ["sites[0].nodes[0].cpu_available"]),
    (CITY, "sites.0.nodes.0.memory_available", "unlimited", ["sites[0].nodes[0].memory_available"]),
    (CITY, "sites.0.nodes.0.lan_available", "1 Gbps", ["sites[0].nodes[0].lan_available"]),
    (CITY, "sites.0.nodes.0.operators", -1, ["sites[0].nodes[0].operators"]),
    (CITY, "sites.0.nodes.0.count", 0, ["sites[0].nodes[0].count"]),
    (CITY, "sites.0.nodes.0.count", 100000, ["sites"]),
    (CITY, "sites.0.nodes.0.name", ..., ["sites[0].nodes[0].name"]),
    (CITY, "sites.0.nodes.0.name", "x" * 63, ["sites[0].nodes[0].name"]),
    (CITY, "links", ..., ["links"]),
    (CITY, "links", [], ["sites[0]"]),
    (CITY, "mesh", {}, ["mesh.latency", "mesh.bandwidth", "mesh"]),
    (CITY, "links.0.latency", "unlimited", ["links[0].latency"]),
    (CITY, "links.0.b", "clouds", ["links[0].b"]),
    (CITY, "links.0.b", "fog-1", ["links[0]"]),
    (CITY, "links.1", CITY["links"][0], ["links[1]"]),
    (CITY, "links.0.bandwidth_available", ["1 Mbps", "1 Gbps"], ["links[0].bandwidth_available"]),
    (CITY, "links.0.bandwidth_available", ["1 Mbps", 5], ["links[0].bandwidth_available[1]"]),
    (CITY, "root", "clod", ["root"]),
    (MESH, "root", "cloud", ["root"]),
    (MESH, "mesh.latency.1", ["0 ms"], ["mesh.latency[1]"]),
    (MESH, "mesh.latency.1.0", 7, ["mesh.latency[1][0]"]),
    (MESH, "mesh.latency", [["0 s"]], ["mesh.latency"]),
    (MESH, "mesh.latency.1.1", "5 ms", ["mesh.latency[1][1]"]),
    (MESH, "mesh.bandwidth", "2500 kbps", ["mesh.bandwidth_available[0][0]"]),
    (MESH, "mesh.bandwidth_available", "2 Gbps", ["mesh.bandwidth_available"]),
    (MAP, "sites.1.position", ..., ["sites[1].position"]),
    (MAP, "sites.1.position", ["1 s"], ["sites[1].position"]),
    (MAP, "sites.1.position", [], ["sites[1].position"]),
    (MAP, "coordinates.taken.0.a", "clod", ["coordinates.taken[0].a"]),
    (MAP, "coordinates.taken.0.a", "fog-1", ["coordinates.taken[0]"]),
    (MAP, "coordinates.taken.1", MAP["coordinates"]["taken"][0], ["coordinates.taken[1]"]),
]


@pytest.mark.parametrize(("document", "path", "value", "paths"), NETWORK_RULES)
def test_a_network_that_breaks_a_rule_is_told_which(
    document: dict[str, Any], path: str, value: Any, paths: list[str]
) -> None:
    assert paths_told(read_network, changed(document, path, value)) == sorted(paths)


PLAN_RULES: list[tuple[Any, ...]] = [
    ("feasible", True, ["feasible"]),
    ("violations", [], ["feasible"]),
    ("violations.0.operators", "rides", ["violations[0].operators"]),
    ("objective", "nan", ["objective"]),
    ("objective", True, ["objective"]),
    ("gap", "wide", ["gap"]),
    ("gap", ..., ["gap"]),
    ("seconds", -1.0, ["seconds"]),
    ("candidates", 1.5, ["candidates"]),
    ("estimate", [], ["estimate"]),
    ("estimate.usage", ..., ["estimate.usage"]),
    ("placement", [], ["placement", "reasons[0].operator"]),
    ("placement.0.node", "../gw", ["placement[0].node"]),
    ("placement.0.site", "cloud", ["placement[0].site", "placement[1].tier"]),
    ("placement.0.why", "luck", ["placement[0].why"]),
    ("placement.1.why", "luck", ["placement[1].why"]),
    ("placement.2", PLAN["placement"][1], ["placement[2]"]),
    ("placement.0.origin", None, ["placement[0].origin"]),
    ("reasons.0.operator", "stoer", ["reasons[0].operator", "placement[1].why"]),
]


@pytest.mark.parametrize(("path", "value", "paths"), PLAN_RULES)
def test_a_plan_that_breaks_a_rule_is_told_which(path: str, value: Any, paths: list[str]) -> None:
    assert paths_told(read_plan, changed(PLAN, path, value)) == sorted(paths)


@pytest.mark.parametrize(
    ("read", "document", "path", "value", "meant"),
    [
        (read_application, TAXI, "operators.1.memroy", "1 B", "memory"),
        (read_application, TAXI, "operators.1.kind", "tranform", "transform"),
        (read_application, TAXI, "operators.0.pin.tier", "fogg", "fog"),
        (read_application, TAXI, "streams.0.target", "claen", "clean"),
        (read_application, TAXI, "limit", {}, "limits"),
        (read_network, CITY, "sites.0.nodes.0.lan_bandwith", "1 bps", "lan_bandwidth"),
        (read_network, CITY, "sites.0.tier", "Fog", "fog"),
        (read_network, CITY, "sites.0.parent", "clod", "cloud"),
        (read_network, CITY, "links.0.b", "clouds", "cloud"),
        (read_plan, PLAN, "estimate.usages", 1, "usage"),
        (read_plan, PLAN, "reasons.0.operator", "stoer", "store"),
    ],
)
def test_an_unknown_word_is_answered_with_the_nearest_known_one(
    read: Callable[[object], object], document: dict[str, Any], path: str, value: Any, meant: str
) -> None:
    messages = told(read, changed(document, path, value))
    assert any(message.endswith(f'Hint: did you mean "{meant}"?') for message in messages)


@pytest.mark.parametrize(
    ("names", "counts", "second"),
    [
        (("gw", "gw"), (None, None), 1),
        (("gw", "gw"), (2, 3), 1),
        (("gw", "gw-1"), (2, None), 1),
        (("gw-1", "gw"), (None, 2), 1),
    ],
)
def test_counted_names_take_part_in_being_unique(
    names: tuple[str, str], counts: tuple[int | None, int | None], second: int
) -> None:
    nodes = [
        {"name": name, "cpu": "1 IPS", "memory": "1 B", **({"count": count} if count else {})}
        for name, count in zip(names, counts, strict=True)
    ]
    site = {"name": "here", "tier": "edge", "nodes": nodes}
    messages = told(read_network, {"thalweg": 1, "network": "n", "sites": [site]})
    assert messages == [
        f'sites[0].nodes[{second}].name: got "{names[second]}", need a name of its own. Hint: '
        f"nodes[{1 - second}] has it already."
    ]


@pytest.mark.parametrize(("name", "count"), [("gw-2", 2), ("gw-01", 2), ("gw", 2), ("gw-0-0", 1)])
def test_a_name_next_to_counted_ones_is_free(name: str, count: int) -> None:
    figures = {"cpu": "1 IPS", "memory": "1 B"}
    nodes = [{"name": "gw", "count": count, **figures}, {"name": name, **figures}]
    site = {"name": "here", "tier": "edge", "nodes": nodes}
    network = read_network({"thalweg": 1, "network": "n", "sites": [site]})
    assert network.node_name(count) == f"here/{name}"


# --- Everything at once ---------------------------------------------------------------------------


def test_defects_of_fields_parts_names_and_the_graph_are_told_in_one_run() -> None:
    broken = changed(TAXI, "operators.1.memory", 10)
    broken = changed(broken, "operators.2.rate", "5 /s")
    broken = changed(broken, "streams.0.target", "claen")
    broken = changed(broken, "streams.2", {"source": "clean", "target": "clean", "propability": 1})
    broken = changed(broken, "streams.3", {"source": "clean", "target": "store"})
    paths = {message.split(": ")[0] for message in told(read_application, broken)}
    # Only the last needs the streams to be counted as they stand in the file.
    assert paths == {
        "operators[1].memory",
        "operators[2].rate",
        "streams[0].target",
        "streams[2].propability",
        "streams[3]",
    }
    (twice,) = [m for m in told(read_application, broken) if m.startswith("streams[3]: ")]
    assert twice.endswith("Hint: streams[1] is the same.")


def test_a_broken_part_raises_no_false_alarm_about_the_rest() -> None:
    unknown_kind = changed(TAXI, "operators.2.kind", "sinc")
    assert [m.split(": ")[0] for m in told(read_application, unknown_kind)] == ["operators[2].kind"]
    no_name = changed(TAXI, "operators.1.name", ...)
    assert [m.split(": ")[0] for m in told(read_application, no_name)] == ["operators[1].name"]
    no_target = changed(TAXI, "streams.1.target", ...)
    assert [m.split(": ")[0] for m in told(read_application, no_target)] == ["streams[1].target"]
    no_site_name = changed(CITY, "sites.1.name", 5)
    assert [m.split(": ")[0] for m in told(read_network, no_site_name)] == ["sites[1].name"]
    no_end = changed(CITY, "links.0.b", ...)
    assert [m.split(": ")[0] for m in told(read_network, no_end)] == ["links[0].b"]


def test_links_keep_their_numbers_where_others_are_broken() -> None:
    link = CITY["links"][0]
    broken = changed(CITY, "links", [{**link, "b": "moon"}, link, {**link, "latency": 5}])
    messages = told(read_network, broken)
    assert [m.split(": ")[0] for m in messages] == ["links[2].latency", "links[0].b", "links[2]"]
    assert messages[2].endswith("Hint: links[1] joins them already.")


@pytest.mark.parametrize("count", [150, 900])
def test_many_dangling_names_are_told_without_comparing_each_with_all(count: int) -> None:
    operators = [{"name": f"step-{k}"} for k in range(count)]
    streams = [{"source": f"stpe-{k}", "target": f"step-{k}"} for k in range(count)]
    data = {**TAXI, "operators": operators, "streams": streams}
    messages = told(read_application, data)
    assert sum("need the name of an operator" in message for message in messages) == count
    hinted = sum("did you mean" in message for message in messages)
    # 20,000 comparisons are made at most, as each takes some microseconds.
    assert hinted == min(count, 20_000 // count)


def test_sites_in_several_pieces_are_those_outside_the_largest() -> None:
    node = {"cpu": "1 IPS", "memory": "1 B"}
    sites = [{"name": name, "tier": "edge", "nodes": [node]} for name in "abcdefg"]
    links = [
        {"a": a, "b": b, "latency": "1 ms", "bandwidth": "1 bps"} for a, b in ["ab", "cd", "de"]
    ]
    data = {"thalweg": 1, "network": "pieces", "sites": sites, "links": links}
    paths = [message.split(": ")[0] for message in told(read_network, data)]
    assert paths == ["sites[0]", "sites[1]", "sites[5]", "sites[6]"]


def test_of_two_pieces_alike_the_one_with_the_last_site_is_the_network() -> None:
    node = {"cpu": "1 IPS", "memory": "1 B"}
    sites = [{"name": name, "tier": "edge", "nodes": [node]} for name in "abcd"]
    links = [{"a": a, "b": b, "latency": "1 ms", "bandwidth": "1 bps"} for a, b in ["ab", "cd"]]
    data = {"thalweg": 1, "network": "pieces", "sites": sites, "links": links}
    assert [m.split(": ")[0] for m in told(read_network, data)] == ["sites[0]", "sites[1]"]


# --- Nothing but the documented error -------------------------------------------------------------

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 5),
    st.integers(-(10**40), 10**40),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(
        ["5 ms", "-5 m", "1 Gbps", "unlimited", "40 %", "inf", "cloud", "clean", "a/b"]
    ),
)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


def places(data: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [here] if here else []
    items = data.items() if isinstance(data, dict) else enumerate(data)
    for key, value in items:
        inner = places(value, (*here, key)) if isinstance(value, (dict, list)) else []
        found += inner or [(*here, key)]
    return found


@settings(max_examples=400, deadline=None)
@given(data=st.data())
def test_a_document_with_a_few_parts_replaced_by_anything_is_read_or_refused(
    data: st.DataObject,
) -> None:
    document, read = data.draw(
        st.sampled_from(
            [
                (TAXI, read_application),
                (CITY, read_network),
                (MESH, read_network),
                (MAP, read_network),
                (PLAN, read_plan),
            ]
        ),
        label="document",
    )
    made = copy.deepcopy(document)
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.sampled_from(places(made) or [("thalweg",)]))
        here: Any = made
        for step in place[:-1]:
            here = here[step]
        if data.draw(st.booleans()) and isinstance(here, dict):
            del here[place[-1]]
        else:
            here[place[-1]] = data.draw(ANYTHING)
    try:
        read(made)
    except InvalidInput as error:
        assert error.defects
        assert all(defect.rule for defect in error.defects)


@given(ANYTHING)
def test_anything_else_is_refused(data: object) -> None:
    for read in (read_application, read_network, read_plan):
        assert told(read, data)
