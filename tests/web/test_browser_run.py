"""The page of a live run in a real browser: a surge, an adaptation, a what-if that is applied."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("fastapi")

from thalweg.web.server import PageServer
from thalweg.web.subjects.run import RunSubject
from web.played_run import SITES, SURGE_PER_S, PlayedRun


@pytest.fixture
def live(tmp_path: Path) -> Iterator[tuple[PlayedRun, PageServer]]:
    with (
        PlayedRun(tmp_path / "run") as run,
        PageServer([RunSubject(tmp_path / "run")]) as page,
    ):
        yield run, page


def test_a_surge_an_adaptation_and_a_death_are_seen(live, open_page, shoot):
    run, server = live
    page = open_page(server.address)
    assert "token" not in page.url
    for site in SITES:
        page.wait_for_selector(f'[data-site="{site}"]')
    page.wait_for_selector('[data-chip="rides@fog-0"]')
    before = read_number(page, "events_in_per_s")
    run.rate_per_s = SURGE_PER_S
    page.wait_for_function(
        """least => Number(document.querySelector('[data-gauge="events_in_per_s"]')
             .dataset.value) > least""",
        arg=3 * max(before, 300.0),
    )
    page.wait_for_selector('[data-mark="adapt"]')
    page.wait_for_selector("[data-chip] .new")
    shoot(page, "run-map")
    run.sites.kill("fog-1")
    page.wait_for_selector('[data-mark="failure"]')
    page.wait_for_selector('[data-mark="restart"]')
    page.click('[data-tab="charts"]')
    for chart in ("response-time", "uplink", "usage", "events", "cpu", "memory-used", "link-lag"):
        page.wait_for_selector(f'[data-chart="{chart}"]', state="attached")
    page.wait_for_timeout(500)
    shoot(page, "run-charts")


def test_the_why_of_a_chip_a_link_and_a_site_is_a_click_away(live, open_page, shoot):
    _, server = live
    page = open_page(server.address)
    page.click('[data-chip="parse@cloud"]')
    page.wait_for_selector("#details:not([hidden])")
    wait_for_text(page, "#details", "deployment")
    shoot(page, "run-why")
    page.keyboard.press("Escape")
    page.wait_for_selector("#details", state="hidden")
    page.focus('[data-chip="fare-board@cloud"]')
    page.keyboard.press("Enter")
    wait_for_text(page, "#details", "fare-board")


def test_a_what_if_changes_the_plan_and_is_applied_after_a_yes(live, open_page, shoot):
    run, server = live
    page = open_page(server.address)
    page.click('[data-tab="what-if"]')
    for fog in SITES[:3]:
        page.fill(f'input[aria-label="Events per second of rides at {fog}"]', "1500")
    before = dict(run.sites.cuts)
    page.click("#what-if-ask")
    page.wait_for_selector('#what-if-result[data-asked="3"]')
    page.wait_for_selector("#moves tbody tr")
    shoot(page, "run-what-if")
    assert dict(run.sites.cuts) == before
    page.click("#what-if-apply")
    page.wait_for_selector("#confirm-apply")
    shoot(page, "run-what-if-confirm")
    assert dict(run.sites.cuts) == before
    page.click("#confirm-apply")
    wait_for_text(page, "#apply-result", "moved to")
    assert dict(run.sites.cuts) != before
    page.click('[data-tab="map"]')
    page.wait_for_selector('[data-mark="move"]')


def test_the_slider_goes_back_in_time_and_live_goes_to_the_end(live, open_page):
    run, server = live
    page = open_page(server.address)
    page.wait_for_function("() => Number(document.querySelector('#time').max) > 5")
    page.focus("#time")
    first = press(page, "Home")
    page.wait_for_timeout(1500)
    assert page.inner_text("#clock") == first
    page.click("#live")
    page.wait_for_function(f"() => document.querySelector('#clock').textContent !== {first!r}")
    run.deployment.stop()
    wait_for_text(page, "#connection", "ended")


def test_without_the_token_the_page_asks_for_it_and_tells_nothing(live, open_page, shoot):
    _, server = live
    bare = server.address.partition("#")[0]
    page = open_page(bare)
    page.wait_for_selector("#token-form")
    assert page.query_selector("[data-site]") is None
    page.fill("#token", "not-the-token-at-all")
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.querySelector('#token-problems').textContent")
    shoot(page, "token")
    assert page.query_selector("[data-site]") is None
    page.fill("#token", server.token)
    page.keyboard.press("Enter")
    page.wait_for_selector('[data-site="cloud"]')
    # The browser itself says that a request was refused; the page says nothing else.
    refused = [text for text in open_page.complaints if "401" in text]
    assert refused == open_page.complaints
    open_page.complaints.clear()


def test_another_host_name_and_another_origin_are_refused(live, browser):
    _, server = live
    context = browser.new_context()
    page = context.new_page()
    answer = page.goto(f"http://0.0.0.0:{server.port}/")
    assert answer is not None
    assert answer.status == 403
    page.goto("about:blank")
    outcome = page.evaluate(
        """async ([port, token]) => {
             try {
               const got = await fetch(`http://127.0.0.1:${port}/api/subjects`,
                 {headers: {authorization: `Bearer ${token}`}});
               return got.status;
             } catch (error) { return "refused"; }
           }""",
        [server.port, server.token],
    )
    assert outcome in ("refused", 403)
    context.close()


def press(page, key: str) -> str:
    """Press a key on the slider; gives what the clock says when the page has drawn that."""
    page.keyboard.press(key)
    page.wait_for_timeout(300)
    return page.inner_text("#clock")


def wait_for_text(page, selector: str, text: str) -> None:
    page.wait_for_function(
        "([selector, text]) => document.querySelector(selector)?.textContent.includes(text)",
        arg=[selector, text],
    )


def read_number(page, gauge: str) -> float:
    found = page.get_attribute(f'[data-gauge="{gauge}"]', "data-value")
    return float(found or 0.0)
