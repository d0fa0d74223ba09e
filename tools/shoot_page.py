"""Draws the pictures of the page in README.md and docs: `thalweg demo`, seen in a browser.

    python tools/shoot_page.py [FOLDER]

Writes `page-map.png`, `page-charts.png` and `page-what-if.png` into docs/assets; with a folder, the
run of the demo is left there.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tools.chromium import find_chromium  # noqa: E402 - the repository is on the path now

ASSETS = ROOT / "docs" / "assets"
ADDRESS = re.compile(r"page: (http://127\.0\.0\.1:\d+/#token=\S+)")
_ADAPTATION_TIMEOUT_MS = 240_000
_WIDTH, _HEIGHT = 1200, 780


def main() -> None:
    """Run the demo, look at it while it runs, and keep what was seen."""
    program, how = find_chromium()
    if program is None:
        sys.exit(how)
    with tempfile.TemporaryDirectory(prefix="thalweg-page-") as temporary:
        folder = sys.argv[1] if len(sys.argv) > 1 else str(Path(temporary) / "run")
        demo = subprocess.Popen(  # nosec B603  # Thalweg itself
            [sys.executable, "-m", "thalweg", "demo", "--no-open", folder],
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            _shoot_all(program, _wait_for_address(demo))
        finally:
            # The rest of what it says must not fill the pipe.
            _, told = demo.communicate(timeout=600)
            print(told, file=sys.stderr)


def _wait_for_address(demo: subprocess.Popen[str]) -> str:
    assert demo.stderr is not None  # noqa: S101 - it was asked for
    for line in demo.stderr:
        print(line, end="", file=sys.stderr)
        if found := ADDRESS.search(line):
            return found[1]
    sys.exit("the demo has printed no address")


def _shoot_all(program: str, address: str) -> None:
    from playwright.sync_api import sync_playwright

    ASSETS.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": _WIDTH, "height": _HEIGHT})
        page.goto(address)
        page.wait_for_selector('#marks [data-mark="adapt"]', timeout=_ADAPTATION_TIMEOUT_MS)
        page.wait_for_selector("[data-chip] .new")
        page.wait_for_timeout(6_000)
        _shoot(page, "page-map")
        page.click("#tab-what-if")
        page.fill("#all-factor", "2")
        page.click("#all-set")
        page.click("#what-if-ask")
        page.wait_for_selector('#what-if-result[data-asked="3"]')
        _shoot(page, "page-what-if")
        page.click("#tab-charts")
        page.wait_for_selector('#marks [data-mark="restart"]', timeout=_ADAPTATION_TIMEOUT_MS)
        page.wait_for_timeout(8_000)
        _shoot(page, "page-charts")
        browser.close()


def _shoot(page: Any, name: str) -> None:
    page.screenshot(path=ASSETS / f"{name}.png")
    print(f"wrote docs/assets/{name}.png", file=sys.stderr)


if __name__ == "__main__":
    main()
