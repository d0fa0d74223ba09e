"""Values of a swept parameter: `rates=1..4` and `rates=1,2,4`."""

from __future__ import annotations

from collections.abc import Sequence

_MAX_VALUES = 1_000
_MAX_FACTOR = 1e9
_RULE = "rates=1..4 or rates=1,2,4: numbers from 0 to 1e9, at most 1,000 of them"


def read_rate_factors(texts: Sequence[str]) -> list[float]:
    """By what the rates are multiplied, one run each; empty without `--vary`.

    >>> read_rate_factors(["rates=1..3"]), read_rate_factors(["rates=0.5,2"])
    ([1.0, 2.0, 3.0], [0.5, 2.0])
    """
    from thalweg.errors import Defects, nearest

    defects, factors = Defects(), list[float]()
    for text in texts:
        name, _, values = text.partition("=")
        if name != "rates":
            defects.add("--vary", text, "rates=VALUES", nearest(name, ["rates"]))
            continue
        found = read_values(values)
        good = bool(found) and all(0 <= value <= _MAX_FACTOR for value in found)
        defects.require(good, "--vary", text, _RULE)
        factors += found
    distinct = list(dict.fromkeys(factors))
    defects.require(len(distinct) <= _MAX_VALUES, "--vary", len(distinct), "at most 1,000 values")
    defects.raise_if_any()
    return distinct


def read_values(text: str) -> list[float]:
    """The numbers of a list such as `1,2,4`, or of a range of steps of one; empty if it is neither.

    >>> read_values("1..3"), read_values("0.5,8"), read_values("1..x")
    ([1.0, 2.0, 3.0], [0.5, 8.0], [])
    """
    first, dots, last = text.partition("..")
    try:
        if not dots:
            return [float(part) for part in text.split(",")]
        low, high = float(first), float(last)
        count = high - low + 1
        if not 1 <= count <= _MAX_VALUES:
            return []
        return [low + step for step in range(int(count))]
    except ValueError:
        return []
