"""The networks of the published table, by name."""

from __future__ import annotations

from collections import Counter

import pytest

from thalweg.errors import InvalidInput
from thalweg.scenarios import TOPOLOGIES, topology

# Clouds, edge sites, devices per site, nodes in all: as printed in the paper, row by row.
TABLE_3 = {
    "regular": """
        10 10 10 110
        100 10 10 200
        500 10 10 600
        10 10 100 1,010
        10 100 10 1,010
        100 10 100 1,100
        100 100 10 1,100
        500 10 100 1,500
        500 100 10 1,500
        10 10 500 5,010
        10 500 10 5,010
        100 10 500 5,100
        100 500 10 5,100
        500 10 500 5,500
        500 500 10 5,500
    """,
    "large": """
        10 100 100 10,010
        100 100 100 10,100
        500 100 100 10,500
        10 100 500 50,010
        10 500 100 50,010
        100 100 500 50,100
        100 500 100 50,100
        500 100 500 50,500
        500 500 100 50,500
    """,
    "extra-large": """
        10 500 500 250,010
        100 500 500 250,100
        500 500 500 250,500
    """,
}


def test_all_rows_of_the_table_are_there_in_its_order():
    rows = [
        (group, *(int(figure.replace(",", "")) for figure in line.split()))
        for group, text in TABLE_3.items()
        for line in text.strip().splitlines()
    ]
    assert [
        (t.group, t.clouds, t.sites, t.devices_per_site, t.node_count) for t in TOPOLOGIES.values()
    ] == rows


def test_there_are_fifteen_regular_nine_large_and_three_extra_large_ones():
    groups = Counter(shape.group for shape in TOPOLOGIES.values())
    assert groups == {"regular": 15, "large": 9, "extra-large": 3}


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_a_topology_is_built_with_the_table_s_node_count(name):
    network = topology(name)
    assert (network.name, network.node_count) == (name, TOPOLOGIES[name].node_count)
    assert network.cloud_nodes.size == TOPOLOGIES[name].clouds


def test_the_seed_and_the_cloud_s_speed_are_passed_on():
    first, other = topology("regular-10x10x10", 1), topology("regular-10x10x10", 2)
    assert (first.node_lan_latency_s[:100] != other.node_lan_latency_s[:100]).all()
    assert topology("regular-10x10x10", cloud_mips=3_045.1).node("cloud-9").cpu_ips == 3_045.1e6


@pytest.mark.parametrize("name", ["regular-10x10x1", "", None, 7, ["large"]])
def test_an_unknown_name_is_refused(name):
    with pytest.raises(InvalidInput, match="the name of a topology"):
        topology(name)


def test_the_nearest_name_is_offered():
    with pytest.raises(InvalidInput, match='did you mean "regular-10x10x10"'):
        topology("regular-10x10x1")
