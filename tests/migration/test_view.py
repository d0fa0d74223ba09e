"""The page: everything is in it, names do nothing, and its figures are those of the drives."""

from __future__ import annotations

import json
import re
import subprocess
from base64 import b64decode, b64encode
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from tools.provide import NODE

from thalweg.errors import InvalidInput
from thalweg.migration.approaches import drive_migcep
from thalweg.migration.baselines import drive_greedy, drive_static
from thalweg.migration.brokers import Brokers
from thalweg.migration.city import draw_city
from thalweg.migration.connections import Connections
from thalweg.migration.mobility import predictor
from thalweg.migration.operators import MobileGraph
from thalweg.migration.view import packed
from thalweg.migration.view.packed import costs_by_tick, pack
from thalweg.migration.view.page import render_page, to_script
from thalweg.model import Application, Operator, Stream
from thalweg.scenarios import broker_tree, flat_brokers, nearby_friends
from thalweg.scenarios.vehicles import city_vehicles

HOSTILE = "</script><script>alert(1)</script><!--&{{data}}\u2028"


def make_city(*, seed=0, network=None, vehicles=25, seconds=90, app=None):
    brokers = Brokers.of(network or broker_tree())
    tracks, _ = city_vehicles(vehicles, seconds, seed=seed)
    connections = Connections.of(tracks.names, tracks.tracks, brokers)
    graph = MobileGraph.of(app or nearby_friends(map_bytes=300.0))
    return draw_city(graph, brokers, connections, np.random.default_rng(seed), instances=12)


@pytest.fixture(scope="module")
def city():
    return make_city()


@pytest.fixture(scope="module")
def drives(city):
    known = predictor("perfect", city.connections, city.brokers)
    return [drive_static(city), drive_greedy(city), drive_migcep(city, known)]


@pytest.fixture(scope="module")
def page(drives):
    return render_page(drives, title="a town")


class Reader(HTMLParser):
    """Elements in their order, with attributes, and the text inside of scripts and styles."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.found, self.text, self.inside = [], [], False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        self.text.append("")
        self.inside = True

    def handle_endtag(self, tag):
        self.inside = False

    def handle_data(self, data):
        if self.inside:
            self.text[-1] += data

    def of(self, tag):
        return [
            (attrs, text)
            for (name, attrs), text in zip(self.found, self.text, strict=True)
            if name == tag
        ]


def data_of(text):
    (found,) = (inner for attrs, inner in Reader(text).of("script") if attrs.get("id") == "data")
    return json.loads(found)


def unpack(figures):
    return np.frombuffer(b64decode(figures["data"]), dtype=f"<{figures['kind']}")


def test_the_page_refers_to_nothing_outside_of_itself(page):
    shown = Reader(page)
    for tag, attrs in shown.found:
        assert not {"src", "href", "srcset", "action", "data", "style"} & attrs.keys(), tag
        assert not any(name.startswith("on") for name in attrs)
        assert tag not in ("link", "iframe", "object", "embed", "base", "img")
    code = "".join(text for tag in ("script", "style") for _, text in shown.of(tag))
    for word in ("http:", "https:", "//cdn", "url(", "@import", "fetch(", "import(", "eval("):
        assert word not in code
    assert "innerHTML" not in code


def test_only_its_own_script_and_style_may_run(page):
    shown = Reader(page)
    (policy,) = (
        attrs["content"]
        for attrs, _ in shown.of("meta")
        if attrs.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    (script,) = (text for attrs, text in shown.of("script") if "type" not in attrs)
    ((_, style),) = shown.of("style")
    for kind, text in (("script-src", script), ("style-src", style)):
        digest = b64encode(sha256(text.encode()).digest()).decode()
        assert f"{kind} 'sha256-{digest}'" in policy


def test_the_same_drives_give_the_same_bytes(page, drives):
    again = make_city()
    known = predictor("perfect", again.connections, again.brokers)
    others = [drive_static(again), drive_greedy(again), drive_migcep(again, known)]
    assert render_page(others, title="a town").encode() == page.encode()
    assert render_page(drives[:1], title="a town") != page


def test_hostile_names_are_shown_and_do_nothing(city, page):
    names = (HOSTILE, *city.connections.names[1:])
    brokers = replace(city.brokers, names=("'\"><img src=x>", *city.brokers.names[1:]))
    bad = replace(city, connections=replace(city.connections, names=names), brokers=brokers)
    drive = replace(drive_static(bad), approach=HOSTILE)
    text = render_page([drive], title=HOSTILE)
    assert [tag for tag, _ in Reader(text).found] == [tag for tag, _ in Reader(page).found]
    assert text.count("alert(1)") == page.count("alert(1)") + 5  # Title twice, and thrice as data.
    data = data_of(text)
    assert data["title"] == HOSTILE
    assert data["vehicles"]["names"][0] == HOSTILE
    assert data["brokers"]["names"][0] == "'\"><img src=x>"
    assert data["approaches"][0]["name"] == HOSTILE
    ((_, title),) = Reader(text).of("title")
    assert title.startswith(HOSTILE)


def test_data_of_a_script_element_cannot_close_it():
    text = to_script({"a": "</SCRIPT> <!-- ]]> & \u2028"})
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == {"a": "</SCRIPT> <!-- ]]> & \u2028"}


@pytest.mark.parametrize("values", [[0, 255], [0, 256], [70_000], [-1, 3], [], [0.5, 1e9]])
def test_packed_numbers_come_back(values):
    given = np.array(values)
    assert np.allclose(unpack(pack(given)), given)
    if values == [0, 255]:
        assert pack(given)["kind"] == "u1"


def test_hosts_replayed_from_the_page_are_those_of_the_drive(city, drives, page):
    for drive, told in zip(drives, data_of(page)["approaches"], strict=True):
        assert told["name"] == drive.approach
        moves = {name: unpack(column) for name, column in told["moves"].items()}
        assert (np.diff(moves["tick"].astype(int)) >= 0).all()
        for k, (first, end) in enumerate(city.life.tolist()):
            for o in range(len(city.graph.operators)):
                host = int(unpack(told["start"])[k * len(city.graph.operators) + o])
                mine = (moves["instance"] == k) & (moves["operator"] == o)
                changes = dict(zip(moves["tick"][mine], moves["target"][mine], strict=True))
                for tick in range(first, end):
                    host = int(changes.get(tick, host))
                    assert host == drive.hosts[k, o, tick]
    assert len(unpack(data_of(page)["approaches"][1]["moves"]["tick"])) > 0


def test_positions_on_the_page_are_those_of_the_vehicles(city, page):
    data = data_of(page)
    west, south, east, north = data["box"]
    first, count = (unpack(data["vehicles"][name]) for name in ("first", "count"))
    x, y = (unpack(data["vehicles"][name]).astype(float) for name in ("x", "y"))
    at = 0
    for v, name in enumerate(data["vehicles"]["names"]):
        row = city.connections.number[name]
        there = np.flatnonzero(city.connections.there[row])
        assert (first[v], first[v] + count[v]) == (there[0], there[-1] + 1)
        mine = slice(at, at + int(count[v]))
        at += int(count[v])
        seen_x = west + x[mine] / 65534 * (east - west)
        seen_y = south + y[mine] / 65534 * (north - south)
        assert np.abs(seen_x - city.connections.x_m[row, there]).max() < (east - west) / 65534
        assert np.abs(seen_y - city.connections.y_m[row, there]).max() < (north - south) / 65534
    assert at == x.size


def direct_app():
    """A source that also tells its sink directly: a stream that no operator is part of."""
    base = nearby_friends(map_bytes=300.0)
    return Application(
        name="direct",
        operators=[*base.operators, Operator(name="log", kind="sink", pin=base.operators[0].pin)],
        streams=[*base.streams, Stream(source="position", target="log")],
    )


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["tree", "flat", "direct"])
def test_costs_by_tick_are_those_of_the_drive(seed, kind):
    found = make_city(
        seed=seed,
        network=flat_brokers(7) if kind == "flat" else None,
        app=direct_app() if kind == "direct" else None,
    )
    drive = drive_greedy(found)
    placement, migration = costs_by_tick(drive)
    assert drive.moves.size > 0
    assert [placement.sum(), migration.sum()] == pytest.approx(drive.costs.sum(axis=0))


def test_sums_on_the_page_end_with_those_of_the_drives(drives, page):
    for drive, told in zip(drives, data_of(page)["approaches"], strict=True):
        assert unpack(told["cost"])[-1] == pytest.approx(drive.total, rel=1e-5)
        assert unpack(told["moved"])[-1] == len(drive.moves)


def test_what_is_too_much_to_draw_is_left_out_and_told(monkeypatch, drives, page):
    assert data_of(page)["notes"] == []
    monkeypatch.setattr(packed, "MOST_POSITIONS", 500)
    monkeypatch.setattr(packed, "MOST_INSTANCES", 3)
    monkeypatch.setattr(packed, "MOST_VEHICLES", 8)
    text = render_page(drives)
    data = data_of(text)
    assert len(text) < len(page)
    assert data["stride"] == 2
    assert len(data["vehicles"]["names"]) == 8
    assert unpack(data["instances"]["life"]).size == 6
    assert unpack(data["vehicles"]["x"]).size <= 500
    assert [note.split(" ")[0] for note in data["notes"]] == ["The", "The", "Positions"]
    for drive, told in zip(drives, data["approaches"], strict=True):
        assert unpack(told["cost"])[-1] == pytest.approx(drive.total, rel=1e-5)
    users = unpack(data["instances"]["vehicles"])
    assert users.max() < 8


def test_drives_of_one_city_with_names_of_their_own_are_needed(drives):
    other = drive_static(make_city(seed=5))
    with pytest.raises(InvalidInput, match="at least one"):
        render_page([])
    with pytest.raises(InvalidInput) as error:
        render_page([*drives, other])
    assert len(error.value.defects) == 2


@pytest.mark.skipif(not NODE.is_there(), reason=NODE.missing)
def test_the_script_plays_the_drives(tmp_path, city, drives, page):
    (tmp_path / "page.html").write_text(page, encoding="utf-8")
    last = city.ticks - 1
    steps = [
        ["time", "input", str(last)],
        ["key", "", "Home"],
        ["instance", "change", "4"],
        ["approach", "change", "-1"],
        ["key", "", " "],
        ["frame", "", 1000],
        ["frame", "", 1100],
        ["play", "click", None],
        ["time", "change", None],
    ]
    program = Path(__file__).with_name("page_without_browser.js")
    run = subprocess.run(
        ["node", str(program), str(tmp_path / "page.html"), json.dumps(steps)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert run.returncode == 0, run.stderr
    begin, end, home, one, beside, playing, _, later, paused, _ = json.loads(run.stdout)
    assert (begin["clock"], end["clock"], home["clock"]) == ("0 s", f"{last} s", "0 s")
    assert begin["maps"] == [False, False, True]
    assert beside["maps"] == [True, True, True]
    for drive, row in zip(drives, end["totals"], strict=True):
        assert row[0] == drive.approach
        assert row[3] == f"{len(drive.moves):,}"
        number, unit = re.fullmatch(r"([0-9.]+) (k?)B·s", row[2]).groups()
        assert float(number) * (1000 if unit else 1) == pytest.approx(drive.total, rel=6e-3)
    assert home["totals"][1][3] == "0"
    names = [city.connections.names[v] for v in city.vehicles[4]]
    assert begin["options"][5] == f"4: {' → '.join(names)}"
    first = int(city.life[4, 0])
    assert one["clock"] == f"{first} s"
    for drive, caption in zip(drives, beside["captions"], strict=True):
        hosts = (city.brokers.names[host] for host in drive.hosts[4, :, first])
        words = zip(("distance", "friends"), hosts, strict=True)
        assert caption == ", ".join(f"{name} is at {host}" for name, host in words)
    alive = int(((city.life[:, 0] <= last) & (city.life[:, 1] > last)).sum())
    assert end["captions"][2] == f"{alive} instances have all their vehicles on the map"
    assert playing["play"] == "Pause"
    # A tenth of a second at ten times the speed.
    assert later["clock"] == f"{first + 1} s"
    assert paused["play"] == "Play"
    assert paused["status"].startswith(f"At {first + 1} s: static ")
    assert later["calls"] > begin["calls"]
