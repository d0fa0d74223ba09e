"""What documents may say: each rule with the message that tells it, and no crash on anything."""

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


def test_what_is_available_may_differ_by_direction() -> None:
    network = read_network(changed(CITY, "links.0.bandwidth_available", ["1 Mbps", "2 Mbps"]))
    assert network.link("fog-1", "cloud").bandwidth_available_bps == 1e6
    assert network.link("cloud", "fog-1").bandwidth_available_bps == 2e6


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


# --- What is refused, in which words --------------------------------------------------------------

NEEDS_NAME = (
    "need a name of letters, digits, '_', '-' or '.', at most 64, starting with a letter or digit"
)

APPLICATION_RULES = [
    ("thalweg", ..., ["thalweg: got nothing, need the version of the format, 1. Hint: write "
                      '"thalweg: 1" as the first line.']),
    ("thalweg", "1", ['thalweg: got "1", need the version of the format, 1. Hint: write '
                      '"thalweg: 1" as the first line.']),
    ("thalweg", True, ["thalweg: got true, need the version of the format, 1. Hint: write "
                       '"thalweg: 1" as the first line.']),
    ("thalweg", 2, ["thalweg: got 2, need the version of the format, 1. Hint: this Thalweg reads "
                    "version 1 only."]),
    ("application", "../taxi", [f'application: got "../taxi", {NEEDS_NAME}. Hint: a name is never '
                                "a path."]),
    ("application", 7, [f"application: got 7, {NEEDS_NAME}. Hint: put it in quotes."]),
    ("operators", {}, ["operators: got a mapping with 0 fields, need a list of operators"]),
    ("operators", [], ['operators: got "no source", need at least one operator of kind source',
                       'operators: got "no sink", need at least one operator of kind sink',
                       'streams[0].source: got "rides", need the name of an operator',
                       'streams[0].target: got "clean", need the name of an operator',
                       'streams[1].source: got "clean", need the name of an operator',
                       'streams[1].target: got "store", need the name of an operator']),
    ("operators.1", 5, ["operators[1]: got 5, need a mapping that describes an operator. Hint: its "
                        "fields are name, kind, rate, event_size, selectivity, compression, "
                        "cpu_per_event, cpu_per_byte, memory, memory_factor, window, state, "
                        "replicable, pin."]),
    ("operators.1.name", ..., [f"operators[1].name: got nothing, {NEEDS_NAME}"]),
    ("operators.1.memroy", "1 B", ['operators[1].memroy: got "1 B", need a known field of an '
                                   'operator. Hint: did you mean "memory"?']),
    ("operators.1.memory", 10, ['operators[1].memory: got 10, need a size >= 0 with its unit, such '
                                'as "2 GiB". Hint: write the unit, e.g. "10 B".']),
    ("operators.1.memory", None, ["operators[1].memory: got nothing, need a size >= 0 with its "
                                  'unit, such as "2 GiB"']),
    ("operators.1.memory", True, ["operators[1].memory: got true, need a size >= 0 with its unit, "
                                  'such as "2 GiB"']),
    ("operators.1.memory", "unlimited", ['operators[1].memory: got "unlimited", need a size >= 0 '
                                         'with its unit, such as "2 GiB". Hint: write a number, a '
                                         "space and a unit."]),
    ("operators.1.selectivity", True, ["operators[1].selectivity: got true, need a number from 0 "
                                       'to 1e9, such as 0.4 or "40 %"']),
    ("operators.1.selectivity", "0.4", ['operators[1].selectivity: got "0.4", need a number from 0 '
                                        'to 1e9, such as 0.4 or "40 %". Hint: write it without '
                                        "quotes."]),
    ("operators.1.selectivity", "5 ms", ['operators[1].selectivity: got "5 ms", need a number from '
                                         '0 to 1e9, such as 0.4 or "40 %". Hint: it is a ratio, so '
                                         "it has no unit."]),
    ("operators.1.replicable", "yes", ['operators[1].replicable: got "yes", need true or false. '
                                       "Hint: write true."]),
    ("operators.1.replicable", 1, ["operators[1].replicable: got 1, need true or false"]),
    ("operators.1.kind", "sorce", ['operators[1].kind: got "sorce", need source, transform or '
                                   'sink. Hint: did you mean "source"?']),
    ("operators.1.rate", "5 /s", ['operators[1].rate: got "5 /s", need no such field here. Hint: '
                                  "only sources have it."]),
    ("operators.0.rate", "100 MB", ['operators[0].rate: got "100 MB", need an event rate >= 0 with '
                                    'its unit, such as "1000 events/s". Hint: "MB" is a unit of a '
                                    "size."]),
    ("operators.0.pin", ..., ["operators[0].pin: got nothing, need a node, site or tier. Hint: a "
                              "source says where its events are born."]),
    ("operators.0.pin", {}, ["operators[0].pin: got [], need exactly one of node, site and tier"]),
    ("operators.0.pin", None, ["operators[0].pin: got nothing, need a mapping that describes a "
                               "pin. Hint: its fields are node, site, tier."]),
    ("operators.0.pin.tier", "fogg", ['operators[0].pin.tier: got "fogg", need edge, fog or cloud. '
                                      'Hint: did you mean "fog"?']),
    ("operators.0.pin", {"node": "a/b/c"}, ['operators[0].pin.node: got "a/b/c", need the name of '
                                            'a node, such as "fog-1/gw"']),
    ("operators.1.window", {"events": 5, "slide": "1 s"}, [
        'operators[1].window: got "events, slide", need either events, or length with or without '
        "slide"]),
    ("operators.1.window", {}, ['operators[1].window: got "none of them", need either events, or '
                                "length with or without slide"]),
    ("operators.1.window.slide", "90 s", ['operators[1].window.slide: got "90 s", need at most the '
                                          "window's length"]),
    ("operators.1.window.length", "0 s", ['operators[1].window.length: got "0 s", need a duration '
                                          "> 0, from 1 ns to a century"]),
    ("operators.2.window.events", 2.0, ["operators[2].window.events: got 2.0, need a whole number "
                                        "from 1 to 1000000000000"]),
    ("operators.2.name", "clean", ['operators[2].name: got "clean", need a name of its own. Hint: '
                                   "operators[1] has it already.",
                                   'streams[1].target: got "store", need the name of an operator. '
                                   "Hint: known: rides, clean."]),
    ("streams.0.probability", 1.5, ["streams[0].probability: got 1.5, need a number in (0, 1]"]),
    ("streams.0.target", "claen", ['streams[0].target: got "claen", need the name of an operator. '
                                   'Hint: did you mean "clean"?']),
    ("streams.2", {"source": "clean", "target": "clean"}, [
        'streams: got "clean → clean", need a graph without cycles. Hint: take out one of these '
        "streams."]),
    ("streams.1", ..., ['operators[1]: got "clean", need an operator that reaches a sink. Hint: '
                        "add a stream out of it, or take it out.",
                        'operators[0]: got "rides", need an operator that reaches a sink. Hint: '
                        "add a stream out of it, or take it out.",
                        'operators[2]: got "store", need an operator that a source reaches. Hint: '
                        "add a stream into it, or take it out."]),
    ("limits.uplink", "125 MB", ['limits.uplink: got "125 MB", need a bandwidth >= 0 with its '
                                 'unit, such as "100 Mbps". Hint: "MB" is a unit of a size; did '
                                 'you mean "MB/s"?']),
    ("limits.uplink_least", "2 Gbps", ['limits.uplink_least: got "2 Gbps", need at most the '
                                       "uplink, 1 Gbps"]),
]  # fmt: skip


@pytest.mark.parametrize(("path", "value", "messages"), APPLICATION_RULES)
def test_an_application_that_breaks_a_rule_is_told_which(
    path: str, value: Any, messages: list[str]
) -> None:
    assert sorted(told(read_application, changed(TAXI, path, value))) == sorted(messages)


NODE = "sites.0.nodes.0"
NETWORK_RULES = [
    (CITY, "network", "a..b", [f'network: got "a..b", {NEEDS_NAME}']),
    (CITY, "sites", [], ['sites: got "no sites", need at least one site']),
    (CITY, "sites.0.tier", "Fog", ['sites[0].tier: got "Fog", need edge, fog or cloud. Hint: did '
                                   'you mean "fog"?']),
    (CITY, "sites.0.parent", "clod", ['sites[0].parent: got "clod", need the name of a site. Hint: '
                                      'did you mean "cloud"?']),
    (CITY, "sites.1.parent", "fog-1", ['sites[0].parent: got "cloud", need parents that do not go '
                                       "round"]),
    (CITY, "sites.1.name", "fog-1", ['sites[1].name: got "fog-1", need a name of its own. Hint: '
                                     "sites[0] has it already.",
                                     'sites[0].parent: got "cloud", need the name of a site. Hint: '
                                     "known: fog-1.",
                                     'links[0].b: got "cloud", need the name of a site. Hint: '
                                     "known: fog-1."]),
    (CITY, "sites.0.edge_delay", "-1 ms", ['sites[0].edge_delay: got "-1 ms", need a duration >= 0 '
                                           'with its unit, such as "5 ms". Hint: negative and '
                                           "infinite quantities have no meaning here."]),
    (CITY, "sites.0.area.west", "2 km", ['sites[0].area.west: got "2 km", need a length below '
                                         "east, 1 km"]),
    (CITY, "sites.0.area.north", "-1 km", ['sites[0].area.south: got "0 m", need a length below '
                                           "north, -1 km"]),
    (CITY, "sites.0.area.west", "--1 m", ['sites[0].area.west: got "--1 m", need a length with its '
                                          'unit, such as "-250 m". Hint: write a number, a space '
                                          "and a unit."]),
    (CITY, "sites.0.area.west", ..., ["sites[0].area.west: got nothing, need a length with its "
                                      'unit, such as "-250 m"']),
    (CITY, "sites.0.position", ["1 ms"], ['sites[0].position: got "a value", need no position '
                                          "here. Hint: only a network with coordinates has it."]),
    (CITY, f"{NODE}.cpu", "4 GHz", ['sites[0].nodes[0].cpu: got "4 GHz", need a CPU speed >= 0 '
                                    'with its unit, such as "4.74 MIPS", or "unlimited". Hint: '
                                    "known units: IPS, kIPS, MIPS, GIPS, TIPS."]),
    (CITY, f"{NODE}.cpu_available", "5 GIPS", ['sites[0].nodes[0].cpu_available: got "5 GIPS", '
                                               "need at most the cpu, 4 GIPS"]),
    (CITY, f"{NODE}.memory_available", "unlimited", ["sites[0].nodes[0].memory_available: got "
                                                     '"unlimited", need at most the memory, 2 GB']),
    (CITY, f"{NODE}.lan_available", "1 Gbps", ['sites[0].nodes[0].lan_available: got "1 Gbps", '
                                               "need at most the lan_bandwidth, 100 Mbps"]),
    (CITY, f"{NODE}.operators", -1, ["sites[0].nodes[0].operators: got -1, need a whole number "
                                     "from 0 to 1000000"]),
    (CITY, f"{NODE}.count", 0, ["sites[0].nodes[0].count: got 0, need a whole number from 1 to "
                                "100000"]),
    (CITY, f"{NODE}.count", 100_000, ['sites: got "100001 nodes", need at most 100000 nodes in a '
                                      "text file. Hint: keep a large network in a Parquet folder."]),
    (CITY, f"{NODE}.name", ..., ["sites[0].nodes[0].name: got nothing, need a name, as other nodes "
                                 "have one. Hint: name every node, or none."]),
    (CITY, f"{NODE}.name", "x" * 63, [f'sites[0].nodes[0].name: got "{"x" * 63}", need a name that '
                                      "stays within 64 characters with its number"]),
    (CITY, "links", ..., ["links: got nothing, need links, a mesh or coordinates. Hint: say how "
                          "the sites are joined."]),
    (CITY, "links", [], ['sites[0]: got "fog-1", need a site that a link reaches. Hint: add a link '
                         "between it and the other sites, or take it out."]),
    (CITY, "mesh", {}, ["mesh.latency: got nothing, need a square matrix of durations: one row, "
                        "and in it one value, for each site",
                        "mesh.bandwidth: got nothing, need a bandwidth >= 0 with its unit, such as "
                        '"100 Mbps", or "unlimited", or a square matrix of bandwidths: one row, '
                        "and in it one value, for each site",
                        'mesh: got "links and mesh", need only one of links, mesh and coordinates. '
                        "Hint: links is given already."]),
    (CITY, "links.0.latency", "unlimited", ['links[0].latency: got "unlimited", need a duration >= '
                                            '0 with its unit, such as "5 ms". Hint: write a '
                                            "number, a space and a unit."]),
    (CITY, "links.0.b", "clouds", ['links[0].b: got "clouds", need the name of a site. Hint: did '
                                   'you mean "cloud"?']),
    (CITY, "links.0.b", "fog-1", ['links[0]: got "fog-1 – fog-1", need a link between two '
                                  "different sites"]),
    (CITY, "links.1", CITY["links"][0], ['links[1]: got "fog-1 – cloud", need one link between two '
                                         "sites. Hint: links[0] joins them already."]),
    (CITY, "links.0.bandwidth_available", ["1 Mbps", "1 Gbps"], [
        'links[0].bandwidth_available: got "1 Gbps", need at most the bandwidth, 200 Mbps']),
    (CITY, "links.0.bandwidth_available", ["1 Mbps", 5], [
        "links[0].bandwidth_available[1]: got 5, need a bandwidth >= 0 with its unit, such as "
        '"100 Mbps", or "unlimited". Hint: write the unit, e.g. "5 bps".']),
    (CITY, "root", "clod", ['root: got "clod", need the name of a site. Hint: did you mean '
                            '"cloud"?']),
    (MESH, "root", "cloud", ['root: got "cloud", need no root without links. Hint: only a tree of '
                             "links has one."]),
    (MESH, "mesh.latency.1", ["0 ms"], ['mesh.latency[1]: got "a row of 1", need 2 durations. '
                                        "Hint: there are 2 rows, so each has 2 values."]),
    (MESH, "mesh.latency.1.0", 7, ["mesh.latency[1][0]: got 7, need a duration >= 0 with its unit, "
                                   'such as "5 ms". Hint: write the unit, e.g. "7 s".']),
    (MESH, "mesh.latency", [["0 s"]], ['mesh.latency: got "1 × 1", need 2 × 2, as there are 2 '
                                       "sites"]),
    (MESH, "mesh.latency.1.1", "5 ms", ['mesh.latency[1][1]: got "5 ms", need 0 s, as a site is at '
                                        "no distance from itself"]),
    (MESH, "mesh.bandwidth", "2500 kbps", ['mesh.bandwidth_available[0][0]: got "1 Gbps", need at '
                                           "most the bandwidth, 2.5 Mbps"]),
    (MESH, "mesh.bandwidth_available", "2 Gbps", ['mesh.bandwidth_available: got "2 Gbps", need at '
                                                  "most the bandwidth, 1 Gbps"]),
    (MAP, "sites.1.position", ..., ["sites[1].position: got nothing, need a position, as the "
                                    "network has coordinates"]),
    (MAP, "sites.1.position", ["1 s"], ['sites[1].position: got "1 durations", need 2 durations, '
                                        "as before"]),
    (MAP, "sites.1.position", [], ["sites[1].position: got [], need a list of 1 to 16 durations"]),
    (MAP, "coordinates.taken.0.a", "clod", ['coordinates.taken[0].a: got "clod", need the name of '
                                            'a site. Hint: did you mean "cloud"?']),
    (MAP, "coordinates.taken.0.a", "fog-1", ['coordinates.taken[0]: got "fog-1 → fog-1", need two '
                                             "different sites"]),
    (MAP, "coordinates.taken.1", MAP["coordinates"]["taken"][0], [
        'coordinates.taken[1]: got "cloud → fog-1", need one entry for each way between two '
        "sites"]),
]  # fmt: skip


@pytest.mark.parametrize(("document", "path", "value", "messages"), NETWORK_RULES)
def test_a_network_that_breaks_a_rule_is_told_which(
    document: dict[str, Any], path: str, value: Any, messages: list[str]
) -> None:
    assert sorted(told(read_network, changed(document, path, value))) == sorted(messages)


PLAN_RULES = [
    ("feasible", True, ["feasible: got true, need false, as constraints are violated. Hint: "
                        "violations lists 1."]),
    ("violations", [], ["feasible: got false, need true, as no constraint is violated"]),
    ("violations.0.operators", "rides", ['violations[0].operators: got "rides", need a list of '
                                         "texts"]),
    ("objective", "nan", ['objective: got "nan", need a number, or "inf"']),
    ("objective", True, ['objective: got true, need a number, or "inf"']),
    ("gap", "wide", ['gap: got "wide", need a number, or "inf", or null']),
    ("gap", ..., ['gap: got nothing, need a number, or "inf", or null']),
    ("seconds", -1.0, ['seconds: got -1.0, need a number >= 0, or "inf"']),
    ("candidates", 1.5, ["candidates: got 1.5, need a whole number from 0 to 1000000000000000"]),
    ("estimate", [], ["estimate: got [], need a mapping that describes an estimate. Hint: its "
                      "fields are aggregate_latency_s, worst_latency_s, path_count, "
                      "response_time_s, uplink_bps, usage, delay_product_bits."]),
    ("estimate.usage", ..., ['estimate.usage: got nothing, need a number >= 0, or "inf"']),
    ("placement", [], ['placement: got "no instances", need at least one instance',
                       'reasons[0].operator: got "store", need an operator of the placement']),
    ("placement.0.node", "../gw", ['placement[0].node: got "../gw", need the name of a node, such '
                                   'as "fog-1/gw"']),
    ("placement.0.site", "cloud", ['placement[0].site: got "cloud", need the site of the node '
                                   "fog-1/gw-0",
                                   'placement[1].tier: got "cloud", need fog, as the site has one '
                                   "tier. Hint: placement[0] says so."]),
    ("placement.0.why", "luck", ['placement[0].why: got "luck", need no reason without reasons']),
    ("placement.1.why", "luck", ['placement[1].why: got "luck", need the reason that is given '
                                 "under reasons"]),
    ("placement.2", PLAN["placement"][1], ['placement[2]: got "store", need one instance of an '
                                           "operator for each origin. Hint: placement[1] is the "
                                           "same."]),
    ("placement.0.origin", None, [f"placement[0].origin: got nothing, {NEEDS_NAME}"]),
    ("reasons.0.operator", "stoer", ['reasons[0].operator: got "stoer", need an operator of the '
                                     'placement. Hint: did you mean "store"?',
                                     'placement[1].why: got "it is pinned", need no reason without '
                                     "reasons"]),
]  # fmt: skip


@pytest.mark.parametrize(("path", "value", "messages"), PLAN_RULES)
def test_a_plan_that_breaks_a_rule_is_told_which(
    path: str, value: Any, messages: list[str]
) -> None:
    assert sorted(told(read_plan, changed(PLAN, path, value))) == sorted(messages)


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


@pytest.mark.parametrize("count", [150, 4000])
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
