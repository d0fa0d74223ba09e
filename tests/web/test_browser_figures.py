"""Unknown, stale, down and ended, as a browser shows and says them; pictures are kept."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("fastapi")

from thalweg.web.server import PageServer
from thalweg.web.subjects.run import RunSubject
from web.recorded_run import BEGAN_S, write_recorded_run


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageServer]:
    folder = write_recorded_run(tmp_path_factory.mktemp("recorded") / "run")
    with PageServer([RunSubject(folder)]) as page:
        yield page


@pytest.fixture
def look(server: PageServer, open_page):
    """Opens a view at a second of the story; without one at the end."""

    def at(second: int | None = None, view: str = "map", **size):
        moment = "" if second is None else f"&t={BEGAN_S + second}"
        page = open_page(f"{server.address}&subject=0&view={view}{moment}", **size)
        page.wait_for_selector(f'#panel[data-view="{view}"]')
        page.wait_for_selector('[data-gauge="usage"][data-value]', state="attached")
        page.wait_for_timeout(400)
        return page

    return at


def text(page, selector: str) -> str:
    return page.inner_text(selector).replace("\u00a0", " ")


def label(page, selector: str) -> str:
    return (page.get_attribute(selector, "aria-label") or "").replace("\u00a0", " ")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_killed_site_is_down_then_restarting_and_shows_no_figure(look, shoot, scheme):
    page = look(40, scheme=scheme)
    fog = '[data-site="fog-1"]'
    assert page.get_attribute(fog, "data-state") == "down"
    assert "fog-1, down since" in label(page, fog)
    page = look(44, scheme=scheme)
    assert "restarting 2 s" in text(page, fog)
    assert "%" not in text(page, fog)
    assert "lag" not in text(page, fog)
    assert "42 %" in text(page, '[data-site="fog-0"]')
    assert label(page, '[data-link="fog-1>cloud"]') == "fog-1 to cloud: restarting"
    assert "Restart under way since" in text(page, '[data-notice="under-way"]')
    shoot(page, f"figures-killed-{scheme}")


def test_a_change_under_way_is_shown_and_is_a_span_on_the_axis(look, shoot):
    page = look(22)
    assert "Change under way since" in text(page, '[data-notice="under-way"]')
    spans = page.query_selector_all("#spans .span")
    assert [span.get_attribute("data-span") for span in spans] == ["change", "restart"]
    assert all(span.bounding_box()["width"] > 10 for span in spans)
    assert "to " in label(page, '[data-span="change"]')
    assert "At this moment" in text(page, "#broken")
    shoot(page, "figures-under-way")
    page.click("#live")
    page.wait_for_selector('[data-notice="under-way"]', state="hidden")
    page.click("#tab-charts")
    page.wait_for_selector("#mark-list button")
    assert "took 6 s" in text(page, "#mark-list")


def test_a_stale_figure_says_so_and_how_old_it_is(look, shoot):
    page = look(78)
    assert "measured 254 kbps, stale, 18 s old" in text(page, '[data-gauge="uplink_bps"]')
    assert "lag stale, 20 s old" in label(page, '[data-site="fog-2"]')
    assert "stale, 20 s old" in text(page, '[data-site="fog-2"]')
    assert "stale" not in text(page, '[data-site="fog-0"]')
    assert "stale, 20 s old" in label(page, '[data-link="fog-2>cloud"]')
    shoot(page, "figures-stale")
    page.click("#tab-charts")
    page.wait_for_selector('[data-chart="uplink"] .keys li')
    assert "stale, 18 s old" in text(page, '[data-chart="uplink"] .keys')
    assert "fog-2 stale, 20 s old" in label(page, '[data-chart="site-lag"] canvas.over')


def test_estimated_and_measured_have_names_and_the_limit_beside_them(look):
    page = look(20, view="charts")
    gauge = text(page, '[data-gauge="uplink_bps"]')
    for words in ("estimated 480 kbps", "measured 561 kbps", "over the limit, 300 kbps"):
        assert words in gauge
    for name in ("estimated", "measured"):
        page.wait_for_selector(f'[data-chart="uplink"] .keys li:has-text("{name}")')


def test_an_unknown_lag_is_unknown_and_zero_is_zero(look):
    page = look(2)
    cloud = text(page, '[data-site="cloud"]')
    assert "lag unknown" in cloud
    assert "0 %" in cloud
    assert "0/s" in text(page, '[data-gauge="events_out_per_s"]')
    page.click("#tab-charts")
    page.wait_for_selector('[data-chart="site-lag"] .keys li')
    assert "unknown" in text(page, '[data-chart="site-lag"] .keys')


def test_declared_against_measured_is_a_table(look, shoot):
    page = look(34, height=1250)
    row = text(page, "#deviations tbody tr:first-child")
    for words in ("parse", "all", "event size", "1 B", "84.2 B", "83.9 B to 84.6 B", "× 84.2"):
        assert words in row
    shoot(page, "figures-declared-measured")
    page.click('[data-chip="clean@fog-1"]')
    page.wait_for_selector("#details:not([hidden])")
    assert "declared 0.3" in text(page, "#details")


def test_after_the_end_sites_have_ended_and_nothing_is_live(look, shoot):
    page = look()
    for site in ("fog-0", "fog-1", "fog-2", "cloud"):
        assert page.get_attribute(f'[data-site="{site}"]', "data-state") == "ended"
        assert "%" not in text(page, f'[data-site="{site}"]')
    assert "ended" in text(page, '[data-gauge="uplink_bps"]')
    shoot(page, "figures-ended")


def test_reasons_are_dated(look):
    page = look(44)
    assert "18 s ago" in text(page, "#panel .plan-text")
    page.click('[data-chip="parse@fog-0"]')
    page.wait_for_selector('#details .when:has-text("ago")')
    assert "18 s ago" in text(page, "#details .when")


def test_what_if_and_compare_begin_with_an_answer(look, shoot):
    page = look(view="what-if")
    page.wait_for_selector("#what-if-headline")
    assert "the rates measured at" in text(page, "#what-if-result .when")
    page.click("#tab-compare")
    page.wait_for_selector('[data-row="running"]')
    for row in ("cloud-only", "atsoo"):
        page.wait_for_selector(f'[data-row="{row}"]')
    assert "what runs now" in text(page, '[data-row="running"]')
    shoot(page, "figures-compare")


def test_nothing_sticks_out_on_a_phone(look):
    for second in (22, 44, 78):
        page = look(second, width=390, height=844)
        assert page.evaluate("() => document.documentElement.scrollWidth") <= 391
