"""What the generators require of their parameters; every defect is reported at once."""

from __future__ import annotations

import math
from collections.abc import Sequence

from thalweg.errors import Defects

Range = tuple[float, float]
Counts = tuple[int, int]
LARGEST = 1e18


def require_count(defects: Defects, path: str, value: object, least: int, most: int) -> bool:
    """Remember a defect unless the value is a whole number from `least` to `most`."""
    good = isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
    defects.require(good, path, value, f"a whole number from {least:,} to {most:,}")
    return good


def require_seed(defects: Defects, seed: object, path: str = "seed") -> None:
    """Remember a defect unless the seed can start a random generator."""
    require_count(defects, path, seed, 0, 2**64 - 1)


def require_amounts(defects: Defects, *, most: float = LARGEST, **amounts: object) -> None:
    """Remember a defect for each parameter that is not a number above 0, at most `most`."""
    for path, value in amounts.items():
        good = _is_finite(value) and 0 < value <= most  # type: ignore[operator]
        defects.require(good, path, value, f"a number > 0, at most {most:g}")


def require_ranges(defects: Defects, *, most: float = LARGEST, **ranges: object) -> None:
    """Remember a defect for each parameter that is not (smallest, largest), from 0 to `most`."""
    rule = f"two numbers (smallest, largest) from 0 to {most:g}"
    for path, value in ranges.items():
        pair = isinstance(value, Sequence) and not isinstance(value, str) and len(value) == 2
        good = pair and all(_is_finite(end) for end in value)  # type: ignore[attr-defined]
        good = good and 0 <= value[0] <= value[1] <= most  # type: ignore[index]
        defects.require(good, path, value, rule)


def require_counts(defects: Defects, path: str, value: object, least: int, most: int) -> bool:
    """Remember a defect unless the value is (smallest, largest), whole numbers in these bounds."""
    pair = isinstance(value, Sequence) and not isinstance(value, str) and len(value) == 2
    good = pair and all(isinstance(end, int) and not isinstance(end, bool) for end in value)  # type: ignore[attr-defined]
    good = good and least <= value[0] <= value[1] <= most  # type: ignore[index]
    rule = f"two whole numbers (smallest, largest) from {least:,} to {most:,}"
    defects.require(good, path, value, rule)
    return good


def _is_finite(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
