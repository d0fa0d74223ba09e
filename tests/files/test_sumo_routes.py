"""SUMO's map and routes as tables of ours."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from tools import sumo_routes
from tools.sumo_routes import main, read_routes

from thalweg.errors import InvalidInput
from thalweg.files.routes_reader import load_routes

NET = """<?xml version="1.0" encoding="UTF-8"?>
<net version="1.20">
    <location netOffset="0.00,0.00" convBoundary="0.00,0.00,200.00,100.00"/>
    <edge id=":b_0" function="internal">
        <lane id=":b_0_0" index="0" speed="8.00" length="4.00" shape="98.00,0.00 102.00,0.00"/>
    </edge>
    <edge id="ab" from="a" to="b" priority="-1">
        <lane id="ab_0" index="0" speed="13.89" length="98.00" shape="0.00,-1.60 98.00,-1.60"/>
        <lane id="ab_1" index="1" speed="13.89" length="97.00" shape="0.00,1.60 98.00,1.60"/>
    </edge>
    <edge id="bc" from="b" to="c" priority="-1">
        <lane id="bc_0" index="0" speed="13.89" length="120.50"
              shape="102.00,0.00,3.00 150.00,0.00,3.00 200.00,50.00,3.00"/>
    </edge>
    <junction id="b" type="priority" x="100.00" y="0.00" shape="98.00,0.00 102.00,0.00"/>
</net>
"""
ROUTES = """<routes>
    <vType id="car" length="4.3"/>
    <vehicle id="v10" depart="3.50">
        <route edges="bc" exitTimes="12.25"/>
    </vehicle>
    <vehicle id="v2" depart="0.00" type="car">
        <route edges="ab bc" exitTimes="7.10 16.00"/>
    </vehicle>
    <route id="of nobody" edges="ab"/>
</routes>
"""


def write(folder: Path, net: str = NET, routes: str = ROUTES) -> tuple[Path, Path]:
    map_file, routes_file = folder / "city.net.xml.gz", folder / "planned.rou.xml"
    map_file.write_bytes(gzip.compress(net.encode()))
    routes_file.write_text(routes, encoding="utf-8")
    return map_file, routes_file


def test_what_is_written_is_what_load_routes_reads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    net, routes = write(tmp_path)
    assert main([str(net), str(routes), str(tmp_path / "out")]) == 0
    assert "2 routes, 3 steps, 2 roads" in capsys.readouterr().out
    found = load_routes(tmp_path / "out" / "planned_routes.parquet")
    assert found.names == ("v2", "v10")
    assert found.depart_s.tolist() == [0.0, 3.5]
    assert found.first_step.tolist() == [0, 2, 3]
    assert [found.edge_names[k] for k in found.edge] == ["ab", "bc", "bc"]
    assert found.exit_s.tolist() == [7.1, 16.0, 12.25]
    length_m = dict(zip(found.edge_names, found.length_m.tolist(), strict=True))
    assert length_m == {"ab": 98.0, "bc": 120.5}  # the first lane, without junctions
    bent = found.edge_names.index("bc")
    corners = slice(found.first_corner[bent], found.first_corner[bent + 1])
    assert found.corner_x_m[corners].tolist() == [102.0, 150.0, 200.0]
    assert found.corner_y_m[corners].tolist() == [0.0, 0.0, 50.0]
    assert np.isfinite(found.exit_s).all()


@pytest.mark.parametrize(
    ("routes", "told"),
    [
        (ROUTES.replace(' exitTimes="12.25"', ""), "duarouter with --exit-times"),
        (ROUTES.replace("7.10 16.00", "7.10"), "2 edges, 1 exit times"),
        (ROUTES.replace('"ab bc"', '"ab bd"'), "an edge of the map"),
        (ROUTES.replace('"v10"', '"v2"'), "one route for each vehicle"),
        (ROUTES.replace('depart="3.50"', 'depart="triggered"'), "line 3"),
        (ROUTES.replace(' depart="3.50"', ""), "line 3"),
        (ROUTES[:-12], "unclosed token"),
        ("<routes/>", "no vehicle with a route"),
    ],
)
def test_bad_routes_are_refused_with_what_is_wrong(tmp_path: Path, routes: str, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        read_routes(*write(tmp_path, routes=routes))


def test_entities_are_not_expanded(tmp_path: Path) -> None:
    bomb = '<!DOCTYPE routes [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>' + ROUTES
    with pytest.raises(InvalidInput, match="DOCTYPE"):
        read_routes(*write(tmp_path, routes=bomb))


def test_a_file_that_unpacks_to_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sumo_routes, "LARGEST_BYTES", 1_000)
    net, routes = write(tmp_path, net="<net>" + " " * 5_000_000 + "</net>")
    assert net.stat().st_size < 10_000
    with pytest.raises(InvalidInput, match="more than 1000 bytes"):
        read_routes(net, routes)


@pytest.mark.parametrize("damage", ["missing", "cut short", "no map"])
def test_a_map_that_is_none_ends_with_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], damage: str
) -> None:
    net, routes = write(tmp_path, net="<net/>" if damage == "no map" else NET)
    if damage == "missing":
        net = tmp_path / "nowhere.net.xml"
    elif damage == "cut short":
        net.write_bytes(net.read_bytes()[:-20])
    assert main([str(net), str(routes), str(tmp_path / "out")]) == 2
    assert str(net) in capsys.readouterr().err
    assert main([str(net)]) == 2
