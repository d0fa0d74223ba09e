"""A browser, and pages that may not complain; screenshots go to results/screenshots."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tools.chromium import find_chromium

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

SHOTS = Path(__file__).parents[2] / "results" / "screenshots"


# For a file at a time: as long as it is there, no other test of its process can run a loop.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    playwright = pytest.importorskip("playwright.sync_api")
    program, how = find_chromium()
    if program is None:
        pytest.skip(how)
    print(f"Chromium: {program}, {how}")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Opens addresses at a size and in a scheme; at the end no page may have complained."""
    contexts, complaints = [], []

    def open_at(
        address: str, *, width: int = 1400, height: int = 900, scheme: str = "light"
    ) -> Page:
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(30_000)
        page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
        page.on(
            "console",
            lambda message: (
                message.type in ("error", "warning")
                and complaints.append(f"{message.type}: {message.text}")
            ),
        )
        page.goto(address)
        return page

    open_at.complaints = complaints  # type: ignore[attr-defined]
    yield open_at
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture
def shoot() -> Callable[[Page, str], None]:
    """Keeps a picture of a page, to be looked at."""

    def take(page: Page, name: str) -> None:
        SHOTS.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=SHOTS / f"{name}.png")

    return take
