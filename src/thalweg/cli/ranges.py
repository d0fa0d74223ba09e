"""The rates at which a plan is simulated: `--vary rates=1..4`, read as for a study."""

from __future__ import annotations

from collections.abc import Sequence

_MAX_VALUES = 1_000
_MAX_FACTOR = 1e9


def read_rate_factors(texts: Sequence[str]) -> list[float]:
    """By what the rates are multiplied, one run each; empty without `--vary`.

    >>> read_rate_factors(["rates=1..3"]), read_rate_factors(["rates=0.5,2"])
    ([1.0, 2.0, 3.0], [0.5, 2.0])
    """
    from thalweg.errors import Defects, nearest
    from thalweg.study.variation import parse_variations

    defects, factors = Defects(), list[float]()
    for name, values in parse_variations(texts).items():
        if name != "rates":
            defects.add("--vary", name, "rates=VALUES", nearest(name, ["rates"]))
            continue
        for value in values:
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            good = number and 0 <= value <= _MAX_FACTOR
            defects.require(good, "--vary", value, f"a number from 0 to {_MAX_FACTOR:g}")
            factors += [float(value)] if good else []
        defects.require(len(values) <= _MAX_VALUES, "--vary", len(values), "at most 1,000 values")
    defects.raise_if_any()
    return list(dict.fromkeys(factors))
