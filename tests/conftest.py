"""Settings of all tests: how many cases, what goes first, and what may be skipped where."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from parts import SPLIT, part_of

# A busy machine must not make a right answer fail. `make test` draws FEW cases for a property,
# `make test-all` as many as stand at the test: `--hypothesis-profile full`.
for _profile in ("few", "full"):
    settings.register_profile(_profile, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("few")
FEWEST, FEW = 10, 25

# Whether a loop was compiled before is chance, and so is a note about it.
os.environ.setdefault("THALWEG_QUIET", "1")

# Where everything is to be had, what lacks is a fault: a skip is a failure.
IN_CI = os.environ.get("CI") == "true"
MAY_SKIP = ("data", "rights")

# `make check` runs what it has the time for, and what takes longest goes first.
SECONDS_FILE = Path(__file__).resolve().parents[1] / ".cache" / "test-seconds.json"
JVM_S, BROWSER_S, UNKNOWN_S = 30.0, 20.0, 1.0
"""What counts as the time of a file that was never timed."""
_seconds: Counter[str] = Counter()
_skipped: Counter[str] = Counter()


def _read_seconds() -> dict[str, float]:
    try:
        return {str(unit): float(s) for unit, s in json.loads(SECONDS_FILE.read_text()).items()}
    except (OSError, ValueError, AttributeError):
        return {}


# What is run, and in which order


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give the workers whole parts, in the order of the tests."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class Parts(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return part_of(nodeid)

    return Parts(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Draw fewer cases; among workers, the parts that take longest go first, others fill gaps."""
    for item in items:
        _draw_few(item)
    if not hasattr(config, "workerinput"):
        return
    known, taken_s = _read_seconds(), dict[str, float]()
    for item in items:
        unit = _unit_of(item.nodeid)
        taken_s[unit] = known.get(unit) or max(taken_s.get(unit, 0.0), _guess_s(item))
    parts_s: Counter[str] = Counter()
    for unit, s in taken_s.items():
        parts_s[part_of(unit)] += s
    items.sort(key=lambda item: (-parts_s[part_of(item.nodeid)], part_of(item.nodeid)))


def _unit_of(nodeid: str) -> str:
    """What is timed: a file, or a test of one that is split."""
    file = nodeid.partition("::")[0]
    return nodeid if file in SPLIT else file


def _guess_s(item: pytest.Item) -> float:
    if item.get_closest_marker("jvm") is not None:
        return JVM_S
    return BROWSER_S if "browser" in getattr(item, "fixturenames", ()) else UNKNOWN_S


def _draw_few(item: pytest.Item) -> None:
    """A quarter of the cases that stand at a property, FEW at most; what is slow keeps them all."""
    test = getattr(item, "obj", None)
    stands: settings | None = getattr(test, "_hypothesis_internal_use_settings", None)
    is_full = settings.get_current_profile_name() == "full"
    if stands is None or is_full or item.get_closest_marker("slow") is not None:
        return
    few = min(FEW, max(FEWEST, stands.max_examples // 4))
    if few < stands.max_examples:
        # Hypothesis has no other way to say this for a test that names its own number.
        test._hypothesis_internal_use_settings = settings(stands, max_examples=few)  # type: ignore[union-attr]


# What was skipped


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a test that CI may not skip."""
    report = yield
    if not any(item.get_closest_marker(mark) for mark in MAY_SKIP):
        _refuse_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Fail a file that CI may not skip."""
    report = yield
    _refuse_skip(report)
    return report


def _refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    if IN_CI and report.skipped and not hasattr(report, "wasxfail"):
        report.longrepr = f"CI=true, so this may not be skipped: {_reason(report)}"
        report.outcome = "failed"


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    told = report.longrepr
    return str(told[2] if isinstance(told, tuple) else told).removeprefix("Skipped: ")


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Count a file that was skipped."""
    if report.skipped:
        _skipped[f"{report.nodeid}: {_reason(report)}"] += 1


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what was skipped, and why."""
    if not _skipped:
        return
    terminalreporter.section("skipped, by reason")
    for reason, count in _skipped.most_common():
        terminalreporter.line(f"{count:4} × {reason}")


# How long it took


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add up the time of a file, and count what was skipped."""
    _seconds[_unit_of(report.nodeid)] += report.duration
    if report.skipped and not hasattr(report, "wasxfail"):
        _skipped[_reason(report)] += 1


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Keep how long the files took, of those that were run as a whole."""
    was_broken_off = exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
    is_worker = hasattr(session.config, "workerinput")
    if was_broken_off or is_worker or session.config.option.keyword:
        return
    asked = {
        str(argument).partition("::")[0]
        for argument in session.config.args
        if "::" in str(argument)
    }
    found = {
        unit: round(s, 2) for unit, s in _seconds.items() if unit.partition("::")[0] not in asked
    }
    known = {unit: s for unit, s in _read_seconds().items() if unit not in SPLIT}
    SECONDS_FILE.parent.mkdir(exist_ok=True)
    SECONDS_FILE.write_text(json.dumps(dict(sorted((known | found).items())), indent=0))
