"""What one worker of the tests does as a whole."""

from __future__ import annotations

SPLIT = (
    "tests/benchmarks/test_smoke.py",
    "tests/campaign/test_faults.py",
    "tests/docs/test_examples.py",
)
"""Files whose tests share nothing, and take too long for one worker."""
ONE_SESSION = tuple(
    f"tests/spark/test_{name}.py"
    for name in (
        *("log_source", "observation", "pipeline", "profile"),
        *("quarantine", "queries", "transitions", "widths"),
    )
)
"""Files that share a Spark session: `shared_session` in tests/spark/conftest.py."""


def part_of(nodeid: str) -> str:
    """A file; a test of one that is split; or the files that share a session."""
    file = nodeid.partition("::")[0]
    if file in ONE_SESSION:
        return "tests/spark: one session"
    return nodeid if file in SPLIT else file
