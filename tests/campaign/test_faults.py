"""Faults on Spark sites that really run: the shortest part, and the whole matrix when slow.

Nothing is lost and nothing is twice at any sink, and every fault heals or is refused with a reason.
`python -m campaign` runs the same and prints the table.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from campaign.faults import all_faults, few_faults, inject, shortest_faults
from campaign.outcome import Outcome

pytest.importorskip("pyspark")
pytestmark = pytest.mark.jvm
SHORTEST, FEW, ALL = shortest_faults(), few_faults(), all_faults()
NEED_RIGHTS = {"disk-full"}
"""Only who may mount a small disk can fill it."""


def require_right(outcome: Outcome) -> None:
    if outcome.skipped:
        pytest.skip(outcome.skipped)
    assert outcome.problems == ()


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[pytest.mark.slow] if n.startswith("replan") else []) for n in SHORTEST],
)
def test_two_faults_of_each_kind_of_change(tmp_path: Path, name: str) -> None:
    require_right(inject(name, SHORTEST, tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("name", FEW)
def test_a_few_faults(tmp_path: Path, name: str) -> None:
    require_right(inject(name, FEW, tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[pytest.mark.rights] if n in NEED_RIGHTS else []) for n in ALL],
)
def test_every_fault(tmp_path: Path, name: str) -> None:
    require_right(inject(name, ALL, tmp_path))
