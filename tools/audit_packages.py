"""Ask PyPI for known vulnerabilities of every package in a list of requirements.

pip-audit asks for each version by itself. Mirrors that have no such page are asked for the package
instead: what they tell is of its newest version, so it counts where that is the one we have.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

_PAGE = "https://pypi.org/pypi/{name}/json"
_TIMEOUT_S = 60.0
_AT_ONCE = 4
Ask = Callable[[str], dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What is known of one package; without a reason it was looked up."""

    name: str
    version: str
    vulnerabilities: tuple[str, ...] = ()
    unknown: str = ""

    def __str__(self) -> str:
        told = self.unknown or ", ".join(self.vulnerabilities)
        return f"{self.name} {self.version}: {told}"


def main(arguments: Sequence[str]) -> int:
    """Look up what a file of requirements names; 0 where all is known and nothing is wrong."""
    if len(arguments) != 1:
        print("usage: audit_packages.py REQUIREMENTS", file=sys.stderr)
        return 2
    file = Path(arguments[0])
    wanted = read_requirements(file.read_text(encoding="utf-8").splitlines())
    by_version = read_report(run_pip_audit(file))
    audited = {(answer.name, answer.version) for answer in by_version}
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        rest = [each for each in wanted if each not in audited]
        by_name = list(pool.map(lambda each: ask_package(*each, ask_pypi), rest))
    return tell(by_version, by_name)


def tell(by_version: Sequence[Answer], by_name: Sequence[Answer]) -> int:
    """Print what was found; 1 where something is vulnerable or unknown."""
    answers = [*by_version, *by_name]
    vulnerable = [answer for answer in answers if answer.vulnerabilities]
    unknown = [answer for answer in answers if answer.unknown]
    for answer in (*vulnerable, *unknown):
        print(answer)
    print(
        f"{len(answers)} packages: {len(by_version)} looked up by version, "
        f"{len(by_name) - len(unknown)} as the newest of their name, {len(unknown)} not; "
        f"{len(vulnerable)} vulnerable"
    )
    return 1 if vulnerable or unknown or not answers else 0


def read_requirements(lines: Iterable[str]) -> list[tuple[str, str]]:
    """The names and versions that a list pins; comments and hashes aside.

    >>> read_requirements(["Rich==13.7.0 ; os_name == 'nt' \\\\", "    --hash=sha256:00"])
    [('rich', '13.7.0')]
    """
    found = []
    for line in lines:
        text = line.partition("#")[0].partition("--hash")[0].rstrip(" \\")
        if text and not text.startswith((" ", "-")):
            requirement = Requirement(text)
            (pin,) = requirement.specifier
            found.append((canonicalize_name(requirement.name), pin.version))
    return found


def run_pip_audit(file: Path) -> dict[str, Any]:
    """What pip-audit says of the list, as data."""
    words = ["--requirement", str(file), "--require-hashes", "--disable-pip", "--format", "json"]
    ran = subprocess.run(  # nosec B603  # our own environment's pip-audit
        [sys.executable, "-m", "pip_audit", *words, "--progress-spinner", "off"],
        stdout=subprocess.PIPE,
        # It says that nothing was found also where it could look up nobody.
        stderr=subprocess.DEVNULL,
        text=True,
        check=False,
    )
    # Without an answer at all nothing is looked up by version, which `tell` says.
    return json.loads(ran.stdout) if ran.stdout.strip() else {"dependencies": []}


def read_report(report: dict[str, Any]) -> list[Answer]:
    """What pip-audit says of whom it has looked up."""
    return [
        Answer(
            name=canonicalize_name(each["name"]),
            version=each["version"],
            vulnerabilities=tuple(vulnerability["id"] for vulnerability in each["vulns"]),
        )
        for each in report["dependencies"]
        if "skip_reason" not in each
    ]


def ask_package(name: str, version: str, ask: Ask) -> Answer:
    """What the page of a package says of its newest version, if that is the one meant."""
    try:
        page = ask(name)
        newest, listed = page["info"]["version"], page["vulnerabilities"]
        known = tuple(each["id"] for each in listed if not each.get("withdrawn"))
    except (OSError, ValueError, KeyError, TypeError) as error:
        return Answer(name=name, version=version, unknown=f"not looked up: {error!r}")
    if newest != version:
        reason = f"not looked up: PyPI tells of the newest version alone here, which is {newest}"
        return Answer(name=name, version=version, unknown=reason)
    return Answer(name=name, version=version, vulnerabilities=known)


def ask_pypi(name: str) -> dict[str, Any]:
    """The page of a package, as data."""
    page = _PAGE.format(name=canonicalize_name(name))
    with urlopen(page, timeout=_TIMEOUT_S) as answer:  # noqa: S310  # nosec B310  # https alone
        found: dict[str, Any] = json.load(answer)
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
