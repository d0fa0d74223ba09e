"""Settings of all tests, and how long every file of them takes."""

import json
import os
from collections import Counter
from pathlib import Path

from hypothesis import HealthCheck, settings

# A busy machine must not make a right answer fail.
settings.register_profile("thalweg", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("thalweg")

# Whether a loop was compiled before is chance, and so is a note about it.
os.environ.setdefault("THALWEG_QUIET", "1")

# `make check` runs what it has the time for.
SECONDS_FILE = Path(__file__).resolve().parents[1] / ".cache" / "test-seconds.json"
_seconds = Counter()


def pytest_collection_modifyitems(items):
    """What starts a JVM goes first: those files take longest, and the others fill the gaps."""
    items.sort(key=lambda item: item.get_closest_marker("jvm") is None)


def pytest_runtest_logreport(report):
    """Add up the time of a test file."""
    _seconds[report.nodeid.partition("::")[0]] += report.duration


def pytest_sessionfinish(session):
    """Keep how long the files took, of those that were run as a whole."""
    if hasattr(session.config, "workerinput") or session.config.option.keyword:
        return
    try:
        known = json.loads(SECONDS_FILE.read_text())
    except (OSError, ValueError):
        known = {}
    asked = {
        str(argument).partition("::")[0]
        for argument in session.config.args
        if "::" in str(argument)
    }
    known |= {file: round(s, 2) for file, s in _seconds.items() if file not in asked}
    SECONDS_FILE.parent.mkdir(exist_ok=True)
    SECONDS_FILE.write_text(json.dumps(dict(sorted(known.items())), indent=0))
