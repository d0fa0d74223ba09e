"""Plans, comparisons, simulations, cities and results in a real browser, wide, narrow and dark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("fastapi")

import thalweg as tw
from thalweg.cli.entry import run
from thalweg.model import Application, Operator, Pin, Stream
from thalweg.model.assembly import build_network
from thalweg.model.views import Link, Node, Site
from thalweg.web.opening import open_subjects
from thalweg.web.server import PageServer
from thalweg.web.subjects.plan import PlanSubject

EVIL = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageServer]:
    """A plan, a simulation, and a city, on one page."""
    folder = tmp_path_factory.mktemp("served")
    app, net = tw.scenarios.small_taxi(), tw.scenarios.small_city()
    for name, value in (("app.yaml", app), ("net.yaml", net)):
        tw.save(value, folder / name)
    tw.save(tw.plan(app, net, "aels"), folder / "plan.json")
    files = [str(folder / name) for name in ("app.yaml", "net.yaml", "plan.json")]
    out, city = str(folder / "sim"), str(folder / "city")
    assert run(["simulate", *files, "--for", "10", "--output", out]) == 0
    asked = ["mobility", "run", "--vehicles", "200", "--for", "120", "--output", city]
    assert run([*asked, "--approach", "static", "--approach", "migcep"]) == 0
    with PageServer(open_subjects([*files, out, city])) as page:
        yield page


def at(server: PageServer, subject: int, view: str) -> str:
    return f"{server.address}&subject={subject}&view={view}"


def press(page, key: str) -> str:
    """Press a key on the slider; gives what the clock says when the page has drawn that."""
    page.keyboard.press(key)
    page.wait_for_timeout(300)
    return page.inner_text("#clock")


LOOKS = [
    pytest.param("wide", 1400, 900, "light", id="wide-light"),
    pytest.param("phone", 390, 844, "dark", id="phone-dark"),
    pytest.param("wide", 1400, 900, "dark", id="wide-dark", marks=pytest.mark.slow),
    pytest.param("phone", 390, 844, "light", id="phone-light", marks=pytest.mark.slow),
]
SUBJECTS = {"simulation": 0, "city": 1, "plan": 2}


@pytest.mark.parametrize(("size", "width", "height", "scheme"), LOOKS)
def test_every_view_is_drawn_and_nothing_sticks_out(
    served, open_page, shoot, size, width, height, scheme
):
    views = [
        ("plan", "map", '[data-chip="clean@cloud"]'),
        ("plan", "compare", "#panel button"),
        ("plan", "what-if", "#what-if-ask"),
        ("simulation", "charts", "#panel svg, #panel canvas"),
        ("simulation", "results", "#panel table"),
        ("city", "city", "#panel canvas >> visible=true"),
        ("city", "results", "#panel table"),
    ]
    page = open_page(at(served, 2, "map"), width=width, height=height, scheme=scheme)
    for kind, view, selector in views:
        page.goto(at(served, SUBJECTS[kind], view))
        page.wait_for_selector(f'#panel[data-view="{view}"]')
        page.wait_for_selector(selector)
        page.wait_for_timeout(800)
        shoot(page, f"{kind}-{view}-{size}-{scheme}")
        wide = page.evaluate("() => document.documentElement.scrollWidth")
        assert wide <= width + 1, f"{kind} {view} is {wide} px wide"


def test_strategies_are_compared_and_one_is_drawn(served, open_page, shoot):
    page = open_page(at(served, 2, "compare"))
    for name in ("aels", "tcep", "tsoo"):
        page.check(f'input[type="checkbox"][value="{name}"]')
    page.click("#compare-run")
    page.wait_for_selector('[data-row="tsoo"]')
    table = page.inner_text("#panel")
    assert "refus" in table.lower() or "no plan" in table.lower()
    page.click("[data-show]")
    page.wait_for_selector('#panel [data-site="cloud"]')
    shoot(page, "plan-compared")


def test_a_simulation_is_replayed_by_keys(served, open_page):
    page = open_page(at(served, 0, "map"))
    page.wait_for_function("() => Number(document.querySelector('#time').max) > 5")
    page.focus("#time")
    first = press(page, "Home")
    page.keyboard.press("ArrowRight")
    page.wait_for_function(
        "first => document.querySelector('#clock').textContent !== first", arg=first
    )
    last = press(page, "End")
    assert last != first
    page.keyboard.press("Home")
    page.click("#play")
    page.wait_for_function(
        "first => document.querySelector('#clock').textContent !== first", arg=first
    )


def test_everything_can_be_reached_by_tab_and_says_its_name(served, open_page):
    page = open_page(at(served, 2, "map"))
    page.wait_for_selector('[data-chip="clean@cloud"]')
    nameless = page.evaluate(
        """() => [...document.querySelectorAll('button, input, select, [role=tab], a[href]')]
          .filter(e => e.offsetParent !== null)
          .filter(e => !(e.textContent.trim() || e.getAttribute('aria-label') || e.title
                         || e.labels?.[0]?.textContent.trim()))
          .map(e => e.outerHTML.slice(0, 120))"""
    )
    assert nameless == []
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("() => document.activeElement.dataset.chip || ''"))
    assert "clean@cloud" in reached


def test_names_from_files_are_shown_and_never_run(tmp_path: Path, open_page):
    """Names are checked when files are read; texts that are not names are escaped."""
    app = tw.scenarios.small_taxi()
    net = tw.scenarios.small_city()
    subject = PlanSubject(app, net, tw.plan(app, net, "cloud-only"))
    subject.title = EVIL
    scene = subject.scene()
    scene["sites"][0]["name"] = EVIL
    scene["operators"][0]["facts"] = [[EVIL, EVIL]]
    subject.scene = lambda: scene  # type: ignore[method-assign]
    with PageServer([subject]) as server:
        page = open_page(server.address)
        page.on("dialog", lambda dialog: pytest.fail(dialog.message))
        page.wait_for_selector('[data-chip="clean@cloud"]')
        assert EVIL in page.inner_text("body")
        assert page.query_selector('img[src="x"]') is None


def test_sites_with_places_are_put_on_a_map(open_page, shoot):
    sites, links = [], []
    for k in range(4):
        area = (1000.0 * k, 700.0 * (k % 2), 1000.0 * k + 900.0, 700.0 * (k % 2) + 600.0)
        nodes = (Node(name="server", cpu_ips=1e9, memory_bytes=1e9),)
        sites.append(Site(name=f"fog-{k}", tier="fog", parent="cloud", area_m=area, nodes=nodes))
        links.append(Link(a=f"fog-{k}", b="cloud", latency_s=0.01, bandwidth_bps=1e7))
    nodes = (Node(name="vm", cpu_ips=1e10, memory_bytes=1e10),)
    sites.append(Site(name="cloud", tier="cloud", nodes=nodes))
    net = build_network("placed", sites, links)
    app = Application(
        name="count",
        operators=[
            Operator(name="cars", kind="source", rate=400.0, event_size=100.0, pin=Pin(tier="fog")),
            Operator(name="count", cpu_per_event=1e4, selectivity=0.1),
            Operator(name="board", kind="sink", pin=Pin(tier="cloud")),
        ],
        streams=[Stream(source="cars", target="count"), Stream(source="count", target="board")],
    )
    with PageServer([PlanSubject(app, net, tw.plan(app, net, "cloud-only"))]) as server:
        page = open_page(server.address)
        page.wait_for_selector('[data-site="fog-3"]')
        page.click('#layout input[value="map"] + span')
        page.wait_for_timeout(300)
        boxes = [page.locator(f'[data-site="fog-{k}"]').bounding_box() for k in (0, 3)]
        assert boxes[0]["x"] < boxes[1]["x"]
        shoot(page, "plan-on-a-map")


def test_a_quarter_of_a_million_nodes_are_shown_by_site(open_page, shoot):
    net = tw.scenarios.cloud_edge(clouds=500, sites=500, devices_per_site=500, seed=0)
    app = tw.scenarios.random_application("large-1", net, seed=3)
    with PageServer([PlanSubject(app, net, tw.plan(app, net, "aels-rp-la"))]) as server:
        page = open_page(server.address)
        page.wait_for_selector("[data-chip]")
        assert "250,500 nodes in 1,000 sites" in page.inner_text("#panel")
        assert page.locator("[data-site]").count() < 150
        shoot(page, "large-map")


def test_a_thousand_points_move_smoothly_in_the_city(tmp_path: Path, open_page, shoot):
    city = str(tmp_path / "city")
    asked = ["mobility", "run", "--vehicles", "1000", "--for", "60", "--output", city]
    assert run([*asked, "--approach", "static"]) == 0
    with PageServer(open_subjects([city])) as server:
        page = open_page(server.address)
        page.wait_for_selector("#panel canvas >> visible=true")
        page.click("#panel button:has-text('Play')")
        drawn = page.evaluate(
            """() => new Promise(done => {
                 let count = 0;
                 const began = performance.now();
                 const step = () => {
                   count += 1;
                   if (performance.now() - began < 2000) requestAnimationFrame(step);
                   else done(count);
                 };
                 requestAnimationFrame(step);
               })"""
        )
        # How many a second a page draws, `python -m benchmarks page` measures.
        assert drawn > 0
        shoot(page, "city-thousand")
