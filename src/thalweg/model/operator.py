"""One operator: what it does to the events that pass, what it needs, where it may run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from thalweg.errors import Defects, nearest
from thalweg.model.names import require_name
from thalweg.units import DURATION, format_quantity, parse_quantity

_KINDS = ("source", "transform", "sink")
_TIERS = ("edge", "fog", "cloud")
_LARGEST_RATIO = 1e9
_LARGEST_AMOUNT = 1e18
# Length / slide is how often each event is worked on; it must be a number.
_SHORTEST_WINDOW_S = 1e-9
_LONGEST_WINDOW_S = 3.2e9


@dataclass(frozen=True, slots=True)
class CountWindow:
    """The operator works on every `events` events together."""

    events: int

    def __post_init__(self) -> None:
        defects = Defects()
        whole = isinstance(self.events, int) and not isinstance(self.events, bool)
        defects.require(
            whole and 1 <= self.events <= 10**12, "events", self.events, "a whole number >= 1"
        )
        defects.raise_if_any()


@dataclass(frozen=True, slots=True, init=False)
class TimeWindow:
    """Every `slide` seconds the operator works on the events of the last `length` seconds.

    >>> TimeWindow("60 s", "30 s")
    TimeWindow(length=60.0, slide=30.0)
    >>> TimeWindow("1 min")  # tumbling
    TimeWindow(length=60.0, slide=60.0)
    """

    length: float
    slide: float

    def __init__(self, length: float | str, slide: float | str | None = None) -> None:
        defects = Defects()
        length_s = _seconds(defects, "length", length)
        slide_s = length_s if slide is None else _seconds(defects, "slide", slide)
        if length_s is not None and slide_s is not None and slide_s > length_s:
            longest = format_quantity(length_s, DURATION)
            defects.add("slide", slide, f"at most the window's length, {longest}")
        defects.raise_if_any()
        object.__setattr__(self, "length", length_s)
        object.__setattr__(self, "slide", slide_s)


Window = CountWindow | TimeWindow


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """Where an operator must run: on one node, within one site, or somewhere in one tier."""

    node: str | None = None
    site: str | None = None
    tier: Literal["edge", "fog", "cloud"] | None = None

    def __post_init__(self) -> None:
        defects = Defects()
        given = [name for name in ("node", "site", "tier") if getattr(self, name) is not None]
        shown = " and ".join(given) or "none of them"
        defects.require(len(given) == 1, "", shown, "exactly one of node, site and tier")
        if self.tier is not None and self.tier not in _TIERS:
            defects.add("tier", self.tier, "edge, fog or cloud", nearest(str(self.tier), _TIERS))
        if self.site is not None:
            require_name(defects, "site", self.site)
        if self.node is not None:
            parts = self.node.split("/", maxsplit=1) if isinstance(self.node, str) else [self.node]
            for part in parts:
                require_name(defects, "node", part)
        defects.raise_if_any()

    def __str__(self) -> str:
        if self.node is not None:
            return f"node {self.node}"
        return f"site {self.site}" if self.site is not None else f"tier {self.tier}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """One operator of an application.

    - `selectivity`: events out / events in; `compression`: event size out / in.
    - `cpu_per_event`, `cpu_per_byte`: instructions for each event, and for each byte of it.
    - `memory`: bytes it needs by being there; `memory_factor`: bytes per byte of window data.
    - `state`: bytes of read-only state that travel with it when it moves.
    - `replicable`: may run as one replica per site, each on that site's events alone.
    - `pin`: where it must run. A source needs one: it is born in every site the pin names.
    - `rate` [events/s, over all the sites where it is born] and `event_size` [bytes]: sources only.
    """

    name: str
    kind: Literal["source", "transform", "sink"] = "transform"
    selectivity: float = 1.0
    compression: float = 1.0
    cpu_per_event: float = 0.0
    cpu_per_byte: float = 0.0
    memory: float = 0.0
    memory_factor: float = 1.0
    window: Window | None = None
    state: float = 0.0
    replicable: bool = False
    pin: Pin | None = None
    rate: float | None = None
    event_size: float | None = None

    def __post_init__(self) -> None:
        defects = Defects()
        require_name(defects, "name", self.name)
        if self.kind not in _KINDS:
            defects.add(
                "kind", self.kind, "source, transform or sink", nearest(str(self.kind), _KINDS)
            )
        for field in ("selectivity", "compression", "memory_factor"):
            value = getattr(self, field)
            defects.require(
                _is_within(value, _LARGEST_RATIO), field, value, "a number from 0 to 1e9"
            )
        for field in ("cpu_per_event", "cpu_per_byte", "memory", "state"):
            value = getattr(self, field)
            defects.require(
                _is_within(value, _LARGEST_AMOUNT), field, value, "a number from 0 to 1e18"
            )
        defects.require(
            isinstance(self.replicable, bool), "replicable", self.replicable, "true or false"
        )
        for field, sort, rule in (
            ("window", CountWindow | TimeWindow, "a CountWindow or a TimeWindow"),
            ("pin", Pin, "a Pin"),
        ):
            value = getattr(self, field)
            defects.require(value is None or isinstance(value, sort), field, value, rule)
        self._require_birth(defects)
        defects.raise_if_any()

    def _require_birth(self, defects: Defects) -> None:
        """A source says where, how often and how large its events are born; no one else does."""
        if self.kind != "source":
            for field in ("rate", "event_size"):
                defects.require(
                    getattr(self, field) is None,
                    field,
                    getattr(self, field),
                    "no such field here",
                    "only sources have it",
                )
            return
        defects.require(
            self.rate is not None and _is_within(self.rate, 1e15),
            "rate",
            self.rate,
            "events per second, from 0 to 1e15",
            "a source says how many events it puts out",
        )
        defects.require(
            self.event_size is not None
            and _is_within(self.event_size, 1e15)
            and self.event_size > 0,
            "event_size",
            self.event_size,
            "a size above 0 bytes",
            "a source says how large its events are",
        )
        defects.require(
            self.pin is not None,
            "pin",
            self.pin,
            "a node, site or tier",
            "a source says where its events are born",
        )


def _is_within(value: object, largest: float) -> bool:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    # Compared as it is: a whole number of 400 digits has no float.
    return number and 0 <= value <= largest  # type: ignore[operator]


def _seconds(defects: Defects, path: str, value: float | str) -> float | None:
    """The duration, or None and the defect remembered."""
    seconds: object = value
    if isinstance(value, str):
        seconds = defects.attempt("", lambda: parse_quantity(value, DURATION, path=path))
        if seconds is None:
            return None
    if _is_within(seconds, _LONGEST_WINDOW_S) and seconds >= _SHORTEST_WINDOW_S:  # type: ignore[operator]
        return float(seconds)  # type: ignore[arg-type]
    defects.add(path, value, "a duration > 0, from 1 ns to a century")
    return None
