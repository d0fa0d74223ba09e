"""Sites, nodes and links as objects for people; the network itself is arrays."""

from __future__ import annotations

import math
from dataclasses import dataclass

from thalweg.errors import Defects

# A whole number of 400 digits has no float.
_LARGEST = 1e300


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A machine in a site. What is not said to be taken is available."""

    name: str
    cpu_ips: float
    memory_bytes: float
    cpu_available_ips: float | None = None
    memory_available_bytes: float | None = None
    lan_latency_s: float = 0.0
    lan_bandwidth_bps: float = math.inf
    lan_available_bps: float | None = None
    operators: int = 0

    def __post_init__(self) -> None:
        defects = Defects()
        _require_available(defects, self, "cpu_ips", "cpu_available_ips")
        _require_available(defects, self, "memory_bytes", "memory_available_bytes")
        _require_available(defects, self, "lan_bandwidth_bps", "lan_available_bps")
        _require_amount(defects, "lan_latency_s", self.lan_latency_s, finite=True)
        whole = isinstance(self.operators, int) and not isinstance(self.operators, bool)
        defects.require(
            whole and 0 <= self.operators < 2**31,
            "operators",
            self.operators,
            "a whole number >= 0",
        )
        defects.raise_if_any()


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A place with nodes: an edge LAN behind a gateway, a fog site, a cloud."""

    name: str
    tier: str
    nodes: tuple[Node, ...]
    parent: str | None = None
    edge_delay_s: float = 0.0
    area_m: tuple[float, float, float, float] | None = None
    """West, south, east, north."""
    spark: str | None = None
    """Where its Spark is reached; None: on this machine."""

    def __post_init__(self) -> None:
        defects = Defects()
        _require_amount(defects, "edge_delay_s", self.edge_delay_s, finite=True)
        if self.area_m is not None:
            west, south, east, north = self.area_m
            defects.require(west < east, "area", self.area_m, "a west below its east")
            defects.require(south < north, "area", self.area_m, "a south below its north")
        defects.raise_if_any()


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """The line between two sites; both directions have this bandwidth."""

    a: str
    b: str
    latency_s: float
    bandwidth_bps: float
    bandwidth_available_bps: float | None = None

    def __post_init__(self) -> None:
        defects = Defects()
        _require_amount(defects, "latency_s", self.latency_s)
        _require_available(defects, self, "bandwidth_bps", "bandwidth_available_bps")
        defects.raise_if_any()


def _require_amount(defects: Defects, path: str, value: float, *, finite: bool = False) -> bool:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    good = number and value >= 0 and (value <= _LARGEST or (value == math.inf and not finite))
    defects.require(good, path, value, "a finite number >= 0" if finite else "a number >= 0")
    return good


def _require_available(
    defects: Defects, view: Node | Link, capacity_name: str, available_name: str
) -> None:
    capacity, available = getattr(view, capacity_name), getattr(view, available_name)
    good = _require_amount(defects, capacity_name, capacity)
    if available is None:
        object.__setattr__(view, available_name, capacity)
    elif _require_amount(defects, available_name, available) and good and available > capacity:
        defects.add(available_name, available, f"at most the capacity, {capacity:g}")
