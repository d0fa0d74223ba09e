"""A Chromium for tests, benchmarks and figures: the machine's, or one installed now."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_INSTALL_TIMEOUT_S = 600


@cache
def find_chromium() -> tuple[str | None, str]:
    """The program, and how it was found; None with the reason where there is none to be had."""
    wanted = os.environ.get("THALWEG_CHROMIUM")
    if wanted:
        return wanted, "named by THALWEG_CHROMIUM"
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is not None:
        return found, "found on this machine"
    reason = _install()
    found = shutil.which(NAMES[0])
    return (found, "installed with apt-get") if found else (None, reason)


def _install() -> str:
    """Install Debian's Chromium, as root where there is apt-get; says why not."""
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        return "no Chromium, and apt-get needs root. Hint: apt-get install chromium"
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    print("installing Chromium …", file=sys.stderr)
    for words in (["update"], ["install", "-y", "--no-install-recommends", "chromium"]):
        done = subprocess.run(  # nosec B603 B607  # root's own apt-get, words as above
            ["apt-get", *words],
            capture_output=True,
            text=True,
            check=False,
            timeout=_INSTALL_TIMEOUT_S,
            env=environment,
        )
        if done.returncode:
            return f"apt-get {words[0]} failed: {done.stderr.strip()[-300:]}"
    return "apt-get has installed no chromium"
