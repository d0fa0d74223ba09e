"""Provide what the tests need beyond Python and Java, where this machine lets us.

    python tools/provide.py [--list]

Each program that is missing is asked of Debian's packages, as root or by `sudo -n`; then the jars
of a Kafka broker are fetched by Maven. What is still missing is named, with what to install: the
tests that need it are skipped for that reason, and fail where `CI=true`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from tools.chromium import find_chromium  # noqa: E402 - the repository is on the path now

_INSTALL_TIMEOUT_S = 900


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """A program of the machine that tests run, and the package of Debian that it comes with."""

    name: str
    package: str
    is_there: Callable[[], bool]

    @property
    def missing(self) -> str:
        """Why a test is skipped without it."""
        return f"needs {self.name}. Hint: as root, apt-get install {self.package}"


def _on_path(*programs: str) -> Callable[[], bool]:
    return lambda: any(shutil.which(program) is not None for program in programs)


CHROMIUM = Need(
    name="Chromium", package="chromium", is_there=lambda: find_chromium()[0] is not None
)
PROMTOOL = Need(name="promtool", package="prometheus", is_there=_on_path("promtool"))
NODE = Need(name="Node.js", package="nodejs", is_there=_on_path("node"))
COMPILER = Need(name="a C compiler", package="gcc libc6-dev", is_there=_on_path("cc", "gcc"))
MAVEN = Need(name="Maven", package="maven", is_there=_on_path("mvn"))
NEEDS = (CHROMIUM, PROMTOOL, NODE, COMPILER)


def list_missing(needs: Iterable[Need]) -> list[Need]:
    """Those of the needs that are not on this machine."""
    return [need for need in needs if not need.is_there()]


def install(needs: Iterable[Need]) -> str | None:
    """Install their packages with apt-get; the reason where that is not possible."""
    if shutil.which("apt-get") is None:
        return "there is no apt-get on this machine"
    rights = _rights()
    if rights is None:
        return "apt-get needs root"
    packages = [package for need in needs for package in need.package.split()]
    # RUNLEVEL=1: the server that promtool comes with is not to be started.
    front = [*rights, "env", "DEBIAN_FRONTEND=noninteractive", "RUNLEVEL=1", "apt-get"]
    for words in (["update"], ["install", "-y", "--no-install-recommends", *packages]):
        done = subprocess.run(  # nosec B603  # apt-get, with words of ours
            [*front, *words],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=_INSTALL_TIMEOUT_S,
        )
        if done.returncode:
            said = (done.stderr or done.stdout).strip().splitlines() or ["it does not say why"]
            return f"apt-get {words[0]} failed: {said[-1]}"
    find_chromium.cache_clear()
    return None


def _rights() -> list[str] | None:
    """What to put in front of a command of root; None where this user may not be root."""
    if os.geteuid() == 0:
        return []
    as_root = ["sudo", "-n"]
    if shutil.which(as_root[0]) is None:
        return None
    asked = subprocess.run([*as_root, "true"], check=False, capture_output=True)  # nosec B603
    return None if asked.returncode else as_root


def main(arguments: list[str]) -> int:
    """Provide what is missing, and name what cannot be had; never fails for that."""
    from spark.kafka_broker import BrokerMissing, fetch_jars, has_jars

    needs = NEEDS if has_jars() else (*NEEDS, MAVEN)
    missing = list_missing(needs)
    if missing and "--list" not in arguments:
        print("installing what the tests need:", *(need.name for need in missing))
        reason = install(missing)
        if reason is not None:
            print(f"that did not work: {reason}")
        missing = list_missing(needs)
    for need in missing:
        print(f"tests: {need.missing}")
    try:
        if "--list" not in arguments:
            fetch_jars()
    except BrokerMissing as error:
        print(f"tests: {error}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
