"""Faults on Spark sites that really run: a representative part here, the whole matrix when slow.

Nothing is lost and nothing is twice at any sink, and every fault heals or is refused with a reason.
`python -m campaign` runs the same and prints the table.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from campaign.faults import all_faults, few_faults, inject
from campaign.outcome import Outcome

pytest.importorskip("pyspark")
pytestmark = pytest.mark.jvm
FEW, ALL = few_faults(), all_faults()


def require_right(outcome: Outcome) -> None:
    if outcome.skipped:
        pytest.skip(outcome.skipped)
    assert outcome.problems == ()


@pytest.mark.parametrize("name", FEW)
def test_a_few_faults(tmp_path: Path, name: str) -> None:
    require_right(inject(name, FEW, tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_every_fault(tmp_path: Path, name: str) -> None:
    require_right(inject(name, ALL, tmp_path))
