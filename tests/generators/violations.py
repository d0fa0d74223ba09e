"""Two lists of violations compared."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from thalweg.model import Violation


def row(violation: Violation) -> tuple[str, str, str, str, tuple[str, ...]]:
    """All but the numbers; operators as a set."""
    return (
        violation.constraint,
        violation.place,
        violation.resource,
        violation.unit,
        tuple(sorted(violation.operators)),
    )


def assert_same_violations(found: Iterable[Violation], checked: Iterable[Violation]) -> None:
    """The same in any order, the numbers to nine digits."""
    ours, theirs = sorted(found, key=row), sorted(checked, key=row)
    assert [row(violation) for violation in ours] == [row(violation) for violation in theirs]
    for one, other in zip(ours, theirs, strict=True):
        assert one.need == pytest.approx(other.need, rel=1e-9)
        assert one.have == pytest.approx(other.have, rel=1e-9)
