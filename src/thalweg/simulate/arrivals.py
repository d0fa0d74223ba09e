"""When events are born: the same times, whatever the pieces in which one asks for them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from thalweg.errors import Defects
from thalweg.simulate.compiled.births import bear
from thalweg.simulate.compiled.draws import draw_factors, draw_uniforms
from thalweg.simulate.seeds import Seeds

Floats = npt.NDArray[np.float64]
_EXPONENTIAL, _ONE = 1, np.ones(1)


def _as_numbers(values: npt.ArrayLike) -> Floats:
    """The values as numbers; NaN where they are none."""
    try:
        return np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        return np.array([np.nan])


class Births(Protocol):
    """The births of one source, from the beginning on."""

    def before(self, until_s: float, rate: float) -> Floats:
        """The times of the next births, up to but without a time, at so many a second."""
        ...


class Arrivals(Protocol):
    """A process by which events are born."""

    def begin(self, seeds: Seeds) -> Births:
        """The births of one source."""
        ...


@dataclass(frozen=True, slots=True)
class Poisson:
    """Events are born independently of each other."""

    def begin(self, seeds: Seeds) -> Births:
        """The births of one source."""
        return _Renewals(seeds, poisson=True)


@dataclass(frozen=True, slots=True)
class Periodic:
    """An event is born after every 1 / rate seconds; the first one at a random part of that."""

    def begin(self, seeds: Seeds) -> Births:
        """The births of one source."""
        return _Renewals(seeds, poisson=False)


class _Renewals:
    """Births after gaps that are counted in mean gaps, so that the rate may change at any time."""

    def __init__(self, seeds: Seeds, *, poisson: bool) -> None:
        self._poisson, self._key = poisson, seeds.key("gaps")
        self._number, self._position = 1, 0.0
        first = float(draw_uniforms(self._key, 0, 1)[0])
        self._position = first if not poisson else float(self._gap())
        self._begin_s = self._now_s = self._begin = 0.0
        self._rate: float | None = None

    def _gap(self) -> float:
        return float(draw_factors(_EXPONENTIAL, self._key, 0, 1, _ONE)[0])

    def before(self, until_s: float, rate: float) -> Floats:
        if rate != self._rate:
            # Where the new rate begins; what has passed of a gap has passed.
            passed = (self._now_s - self._begin_s) * (self._rate or 0.0)
            self._begin, self._begin_s, self._rate = self._begin + passed, self._now_s, rate
        self._now_s = until_s
        if rate <= 0.0:
            return np.empty(0)
        end = self._begin + (until_s - self._begin_s) * rate
        found = []
        while self._position < end:
            room = end - self._position
            times = np.empty(min(int(room + 6.0 * np.sqrt(room)) + 16, 1 << 22))
            count, self._number, self._position = bear(
                self._poisson, self._key, self._number, self._position, end,
                self._begin_s, self._begin, rate, times,
            )  # fmt: skip
            found.append(times[:count])
        if not found:
            return np.empty(0)
        together = found[0] if len(found) == 1 else np.concatenate(found)
        # Rounding must not put an event into the next piece.
        if together[-1] >= until_s:
            together = np.minimum(together, np.nextafter(until_s, -np.inf))
        return together


@dataclass(frozen=True, slots=True, kw_only=True)
class OnOff:
    """Bursts: events come as a Poisson process for a while, then none do; both times are random.

    `on_s` and `off_s` are means; the rate of a burst is such that the mean rate is that of the
    source.
    """

    on_s: float
    off_s: float

    def __post_init__(self) -> None:
        defects = Defects()
        for name in ("on_s", "off_s"):
            value = getattr(self, name)
            number = isinstance(value, int | float) and not isinstance(value, bool)
            good = number and np.isfinite(value) and value >= 1e-6
            defects.require(bool(good), name, value, "a duration >= 1 us")
        defects.raise_if_any()

    def begin(self, seeds: Seeds) -> Births:
        """The births of one source."""
        return _Bursts(seeds, self.on_s, self.off_s)


class _Bursts:
    """A Poisson process on the time that belongs to bursts."""

    def __init__(self, seeds: Seeds, on_s: float, off_s: float) -> None:
        self._spans, self._on_s, self._off_s = seeds.key("spans"), on_s, off_s
        self._births = _Renewals(seeds, poisson=True)
        self._now_s = self._begin_s = self._worked_s = 0.0
        self._number = 1
        first = float(draw_uniforms(self._spans, 0, 1)[0])
        self._is_on = first < on_s / (on_s + off_s)
        self._change_s = self._draw_span()

    def before(self, until_s: float, rate: float) -> Floats:
        loud = rate * (self._on_s + self._off_s) / self._on_s
        found = [np.empty(0)]
        while self._now_s < until_s:
            end_s = min(until_s, self._change_s)
            if self._is_on:
                # From the beginning of the burst, so that sums do not depend on the pieces.
                shift_s = self._begin_s - self._worked_s
                found.append(shift_s + self._births.before(end_s - shift_s, loud))
            self._now_s = end_s
            if end_s == self._change_s:
                if self._is_on:
                    self._worked_s += end_s - self._begin_s
                self._begin_s, self._is_on = end_s, not self._is_on
                self._change_s = end_s + self._draw_span()
        return np.minimum(np.concatenate(found), np.nextafter(until_s, -np.inf))

    def _draw_span(self) -> float:
        mean_s = self._on_s if self._is_on else self._off_s
        draw = float(draw_factors(_EXPONENTIAL, self._spans, self._number, 1, _ONE)[0])
        self._number += 1
        return mean_s * draw


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trace:
    """Events are born when a list says so; the rate of the source does not matter."""

    time_s: npt.ArrayLike = field(default_factory=lambda: np.empty(0))

    def __post_init__(self) -> None:
        defects = Defects()
        times = _as_numbers(self.time_s)
        good = times.ndim == 1 and bool(np.isfinite(times).all()) and bool((times >= 0).all())
        good = good and bool((np.diff(times) >= 0).all())
        rule = "finite times >= 0, none before the one ahead of it"
        defects.require(good, "time_s", f"{times.size} times", rule)
        defects.raise_if_any()
        frozen = times.copy()
        frozen.setflags(write=False)
        object.__setattr__(self, "time_s", frozen)

    def begin(self, seeds: Seeds) -> Births:
        """The births of one source."""
        del seeds
        return _Listed(np.asarray(self.time_s))


class _Listed:
    def __init__(self, times: Floats) -> None:
        self._times = times

    def before(self, until_s: float, rate: float) -> Floats:
        del rate
        place = int(np.searchsorted(self._times, until_s, side="left"))
        now, self._times = self._times[:place], self._times[place:]
        return now
