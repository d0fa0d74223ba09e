"""Numbers with units on the command line: a bare number is in seconds or metres."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from thalweg.errors import Defects


def read_seconds(defects: Defects, option: str, text: str) -> float:
    """A duration such as `5`, `5 s` or `2 min`, in seconds; 0 and a defect where it is none."""
    from thalweg.cli.inputs import read_duration

    return defects.attempt("", lambda: read_duration(text, option)) or 0.0


def read_metres(defects: Defects, option: str, text: str) -> float:
    """A length such as `2500`, `2500 m` or `2.5 km`, in metres; 0 and a defect where it is none."""
    from thalweg.units import LENGTH, parse_quantity

    plain = _plain(text)
    if plain is not None:
        text = f"{plain!r} m"
    return defects.attempt("", lambda: parse_quantity(text, LENGTH, path=option)) or 0.0


def _plain(text: str) -> float | None:
    with suppress(ValueError):
        value = float(text)
        return value if math.isfinite(value) else None
    return None


def show_seconds(seconds: float) -> str:
    """A duration for people."""
    from thalweg.units import DURATION, show_quantity

    return show_quantity(seconds, DURATION)


def show_bytes(count: float) -> str:
    """A size for people."""
    from thalweg.units import SIZE, show_quantity

    return show_quantity(count, SIZE)


def show_cost(byte_s: float) -> str:
    """Bytes times the seconds that they are on their way, for people."""
    return f"{show_bytes(byte_s)}·s"
