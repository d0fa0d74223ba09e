"""What changes while a run is on: plans, rates, and how well nodes and links work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite

from thalweg.errors import Defects, nearest
from thalweg.model.network import Network
from thalweg.model.placement import Placement
from thalweg.model.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanChange:
    """Another plan from a moment on; operators that move take their state along."""

    at_s: float
    plan: Plan | Placement
    application: str | None = None
    """Whose; not needed where there is one application."""

    def __post_init__(self) -> None:
        defects = Defects()
        _require_time(defects, self.at_s)
        good = isinstance(self.plan, Plan | Placement)
        defects.require(good, "plan", type(self.plan).__name__, "a Plan or a Placement")
        defects.raise_if_any()


@dataclass(frozen=True, slots=True, kw_only=True)
class RateChange:
    """Other rates from a moment on, for (source, site); those not named stay as they are."""

    at_s: float
    rates: Mapping[tuple[str, str], float]
    application: str | None = None

    def __post_init__(self) -> None:
        defects = Defects()
        _require_time(defects, self.at_s)
        for key, rate in self.rates.items():
            good = isinstance(rate, int | float) and isfinite(rate) and 0 <= rate <= 1e15
            defects.require(good, f"rates[{key}]", rate, "events/s, from 0 to 1e15")
        defects.raise_if_any()


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedChange:
    """A node, or the link between two sites, works at a part of its speed from a moment on.

    0 is a failure and 1 the recovery from it. What waits there goes on waiting; with `loses` a
    failure loses it, and all that comes until the recovery.
    """

    at_s: float
    node: str | None = None
    link: tuple[str, str] | None = None
    """Both directions."""
    speed: float = 0.0
    loses: bool = False

    def __post_init__(self) -> None:
        defects = Defects()
        _require_time(defects, self.at_s)
        one = (self.node is None) != (self.link is None)
        shown = "both" if self.node is not None else "neither"
        defects.require(one, "", shown, "a node or a link")
        good = isinstance(self.speed, int | float) and 0 <= self.speed <= 1e6
        defects.require(good, "speed", self.speed, "a number from 0 (down) over 1 (as planned) up")
        if self.loses and good:
            defects.require(self.speed == 0, "loses", True, "only with speed 0")
        defects.raise_if_any()

    def find(self, defects: Defects, path: str, network: Network) -> tuple[list[int], list[int]]:
        """The numbers of the nodes and directed links that change."""
        if self.node is not None:
            try:
                return [network.node_index(self.node)], []
            except KeyError:
                names = [network.node_name(k) for k in range(min(network.node_count, 500))]
                hint = nearest(self.node, names)
                defects.add(f"{path}.node", self.node, f"a node of {network.name}", hint)
                return [], []
        a, b = self.link or ("", "")
        for name in (a, b):
            if name not in network.site_index:
                hint = nearest(name, network.site_names)
                defects.add(f"{path}.link", name, f"a site of {network.name}", hint)
                return [], []
        ends = network.site_index[a], network.site_index[b]
        there, back = network.wan.route(*ends).tolist(), network.wan.route(*ends[::-1]).tolist()
        if len(there) != 1 or len(back) != 1:
            rule = "two sites that one link joins"
            defects.add(f"{path}.link", f"{a}, {b}", rule, f"{len(there)} links lead there")
            return [], []
        return [], [*there, *back]


Change = PlanChange | RateChange | SpeedChange


def _require_time(defects: Defects, at_s: float) -> None:
    good = isinstance(at_s, int | float) and isfinite(at_s) and at_s >= 0
    defects.require(good, "at_s", at_s, "a time >= 0 s")
