"""How fast is the page: first paint, a quarter of a million nodes, a thousand moving points?"""

from __future__ import annotations

import gzip
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from statistics import median
from typing import Any

from tools.chromium import find_chromium

import thalweg as tw
from benchmarks.runner import REGISTER, Benchmark, Count, Result, Row, Settings
from thalweg.cli.entry import run as run_command
from thalweg.web.app import read_assets
from thalweg.web.opening import open_subjects
from thalweg.web.server import PageServer
from thalweg.web.subjects.plan import PlanSubject

_BUNDLE_BYTES = 400_000
_FIRST_PAINT_S = 1.0
_FRAMES_PER_S = 15.0
_LONGEST_TASK_S = 0.5
# Clouds, edge sites, devices per site.
_LARGE, _QUICK, _SMOKE = (500, 500, 500), (500, 500, 50), (5, 5, 5)
_PAINTS = "() => performance.getEntriesByType('paint').map(e => [e.name, e.startTime / 1000])"
# The city draws once in each of these, and holds the next one up for as long as that takes.
_COUNT_FRAMES = """seconds => new Promise(done => {
  let frames = 0;
  const began = performance.now();
  const step = () => {
    frames += 1;
    if (performance.now() - began < 1000 * seconds) requestAnimationFrame(step);
    else done(frames / seconds);
  };
  requestAnimationFrame(step);
})"""
_WATCH_TASKS = """() => {
  window.longest = 0;
  new PerformanceObserver(list => {
    for (const {duration} of list.getEntries()) window.longest = Math.max(window.longest, duration);
  }).observe({type: 'longtask', buffered: true});
}"""


def run(settings: Settings) -> Result:
    """Measure in a headless browser that draws without a graphics card."""
    rows = [_weigh()]
    program, how = find_chromium()
    if program is None:
        return Result(rows=rows, notes=[f"no browser: {how}"])
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        settings.tell("first paint")
        painted, counts = _measure_paint(browser, settings.pick(full=9, quick=3, smoke=1))
        rows += painted
        settings.tell("a large network")
        rows += _measure_large(browser, settings.pick(full=_LARGE, quick=_QUICK, smoke=_SMOKE))
        settings.tell("a moving city")
        vehicles = 10 if settings.smoke else 1_000
        rows += _measure_city(browser, vehicles, settings.pick(full=10.0, quick=3.0, smoke=0.5))
        version = browser.version
        browser.close()
    notes = [f"Chromium {version}, headless, {how}; drawn by the CPU, which also serves the page."]
    return Result(rows=rows, notes=notes, counts=counts)


def _weigh() -> Row:
    assets = read_assets()
    packed = sum(len(gzip.compress(content)) for content, _ in assets.values())
    return Row(
        measure="all assets, gzip",
        value=packed,
        unit="B",
        target=_BUNDLE_BYTES,
        note=f"{len(assets)} files",
    )


def _measure_paint(browser: Any, times: int) -> tuple[list[Row], list[Count]]:
    app, net = tw.scenarios.small_taxi(), tw.scenarios.small_city()
    plan = tw.plan(app, net)
    with PageServer([PlanSubject(app, net, plan)]) as server:
        first, drawn = [], []
        for _ in range(times):
            with _new_page(browser) as page:
                page.goto(server.address)
                page.wait_for_selector("[data-chip]")
                drawn.append(page.evaluate("() => performance.now() / 1000"))
                first.append(dict(page.evaluate(_PAINTS))["first-contentful-paint"])
                chips = page.locator("[data-chip]").count()
    told = f"median of {times}, with an empty cache"
    rows = [
        Row(measure="first paint", value=median(first), unit="s", target=_FIRST_PAINT_S, note=told),
        Row(measure="operators on their sites", value=median(drawn), unit="s", note=told),
    ]
    count = Count(name="operators drawn", expected=len(plan.placement), counted=chips)
    return rows, [count]


def _measure_large(browser: Any, shape: tuple[int, int, int]) -> Iterator[Row]:
    net = tw.scenarios.cloud_edge(*shape, seed=0)
    app = tw.scenarios.random_application("large-1", net, seed=3)
    subject = PlanSubject(app, net, tw.plan(app, net, "aels-rp-la-free"))
    at = {"nodes": net.node_count}
    with PageServer([subject]) as server, _new_page(browser) as page:
        page.add_init_script(f"({_WATCH_TASKS})()")
        page.goto(server.address)
        page.wait_for_selector("[data-chip]")
        drawn_s = page.evaluate("() => performance.now() / 1000")
        page.wait_for_timeout(1000)
        longest_s = page.evaluate("() => window.longest / 1000")
        cards = page.locator("[data-site]").count()
    yield Row(measure="large network drawn", value=drawn_s, unit="s", at=at)
    yield Row(
        measure="longest time without an answer",
        value=longest_s,
        unit="s",
        target=_LONGEST_TASK_S,
        at=at,
        note=f"{cards} sites and groups",
    )


def _measure_city(browser: Any, vehicles: int, seconds: float) -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="thalweg-page-") as folder:
        city = str(Path(folder) / "city")
        asked = ["mobility", "run", "--vehicles", str(vehicles), "--for", "120 s"]
        asked += ["--output", city]
        # What the command says is no part of the answer.
        with redirect_stdout(sys.stderr):
            failed = run_command([*asked, "--approach", "static"])
        if failed:
            raise RuntimeError("the city could not be made")
        with PageServer(open_subjects([city])) as server, _new_page(browser) as page:
            page.goto(server.address)
            page.wait_for_selector("#panel canvas >> visible=true")
            page.click("#panel button:has-text('Play')")
            rate = page.evaluate(_COUNT_FRAMES, seconds)
    yield Row(
        measure=f"updates of {vehicles:,} moving points",
        value=rate,
        unit="1/s",
        target=_FRAMES_PER_S,
        at_least=True,
        note=f"over {seconds:g} s",
    )


@contextmanager
def _new_page(browser: Any) -> Iterator[Any]:
    context = browser.new_context(viewport={"width": 1400, "height": 900})
    yield context.new_page()
    context.close()


REGISTER.add(
    Benchmark(
        name="page",
        question="How fast is the page: first paint, large networks, a thousand moving points?",
        run=run,
    )
)
