"""The Chromium of this machine, for tests, benchmarks and figures; `make setup` provides one."""

from __future__ import annotations

import os
import shutil
from functools import cache
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MISSING = "needs Chromium. Hint: as root, apt-get install chromium"
# Where `playwright install chromium` puts the ones that it gets.
_OF_PLAYWRIGHT = ("chromium-*/chrome-linux*/chrome", "chromium_*/chrome-*/*headless*shell")


@cache
def find_chromium() -> tuple[str | None, str]:
    """The program, and how it was found; None with the reason where there is none."""
    wanted = os.environ.get("THALWEG_CHROMIUM")
    if wanted:
        return wanted, "named by THALWEG_CHROMIUM"
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is not None:
        return found, "found on this machine"
    cached = os.environ.get("PLAYWRIGHT_BROWSERS_PATH") or "~/.cache/ms-playwright"
    folder = Path(cached).expanduser()
    downloaded = [path for pattern in _OF_PLAYWRIGHT for path in sorted(folder.glob(pattern))]
    return (str(downloaded[-1]), "found at Playwright's") if downloaded else (None, MISSING)
