"""Brokers in a tree over a map: each leaf owns a rectangle, each parent the union of its children.

The two trees of section 6 of Ottenwälder et al. 2013, MigCEP. What the paper leaves open, or gives
in words only, is a parameter here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thalweg.errors import Defects
from thalweg.model import Network
from thalweg.model.graph import Floats, Index
from thalweg.scenarios.parameters import require_amounts, require_count
from thalweg.scenarios.rectangles import Area, cut_rectangles, even_grid, square_grid
from thalweg.scenarios.tree_network import tree_network

MOST_BROKERS = 100_000
CITY_M: Area = (0.0, 0.0, 7_670.0, 3_500.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerFigures:
    """What a leaf broker and its link upwards have, and how much each level above has more.

    Speed and memory grow by `capacity_growth` from a level to the one above, latency and
    bandwidth of the links by `latency_growth` and `bandwidth_growth`. MigCEP's evaluation has
    links of about the same latency everywhere: `latency_growth=1`.
    """

    leaf_mips: float = 2_400.0
    leaf_memory_bytes: float = 1e9
    capacity_growth: float = 4.0
    link_latency_s: float = 5e-3
    latency_growth: float = 2.0
    link_bandwidth_bps: float = 100e6
    bandwidth_growth: float = 4.0

    def __post_init__(self) -> None:
        defects = Defects()
        figures = {name: getattr(self, name) for name in self.__slots__}
        growths = {name: figures.pop(name) for name in self.__slots__ if name.endswith("growth")}
        require_amounts(defects, **figures)
        require_amounts(defects, most=1_000.0, **growths)
        defects.raise_if_any()


BROKER_FIGURES = BrokerFigures()


def broker_tree(
    levels: int = 3,
    fan_out: int = 4,
    *,
    name: str = "broker-tree",
    area_m: Area = CITY_M,
    figures: BrokerFigures = BROKER_FIGURES,
) -> Network:
    """A cloud over `levels − 1` levels of brokers, each with `fan_out` below it.

    By default a quad-tree over a city of 7,670 × 3,500 m: 1 cloud, 4 and 16 brokers. Broker
    `broker-2-5` is the sixth two links below the cloud; its parent is `broker-1-1`. Leaves come
    first, the cloud is last. Where `fan_out` is no square, the longer side is cut more often.
    An area owns its west and south edge, not its east and north edge.

    >>> network = broker_tree()
    >>> network
    <Network broker-tree: 21 nodes in 20 fog, 1 cloud sites>
    >>> network.site("broker-2-0").area_m, network.site("broker-2-0").parent
    ((0.0, 0.0, 1917.5, 875.0), 'broker-1-0')
    """
    defects = Defects()
    good = require_count(defects, "levels", levels, 1, 64)
    good &= require_count(defects, "fan_out", fan_out, 1, MOST_BROKERS)
    if good:
        count = sum(fan_out**depth for depth in range(levels))
        defects.require(
            count <= MOST_BROKERS,
            "levels, fan_out",
            (levels, fan_out),
            f"at most {MOST_BROKERS:,} brokers",
        )
    require_area(defects, area_m)
    defects.raise_if_any()
    areas = [np.array([area_m], dtype=float)]
    for _ in range(1, levels):
        west, south, east, north = areas[-1][0]
        columns, rows = even_grid(fan_out, east - west, north - south)
        areas.append(cut_rectangles(areas[-1], columns, rows))
    return broker_network(name, areas, _even_parents(areas, fan_out), figures)


def flat_brokers(
    leaves: int = 40,
    *,
    name: str = "flat-brokers",
    area_m: Area = CITY_M,
    figures: BrokerFigures = BROKER_FIGURES,
) -> Network:
    """One cloud with leaf brokers `broker-1-0…` right below it, their areas as square as can be.

    >>> flat_brokers()
    <Network flat-brokers: 41 nodes in 40 fog, 1 cloud sites>
    """
    defects = Defects()
    require_count(defects, "leaves", leaves, 1, MOST_BROKERS)
    require_area(defects, area_m)
    defects.raise_if_any()
    whole = np.array([area_m], dtype=float)
    west, south, east, north = area_m
    columns, rows = square_grid(leaves, east - west, north - south)
    areas = [whole, cut_rectangles(whole, columns, rows)]
    return broker_network(name, areas, _even_parents(areas, leaves), figures)


def broker_network(
    name: str, areas: list[Floats], parents: list[Index], figures: BrokerFigures
) -> Network:
    """The tree whose brokers at each depth own these areas; sites from the deepest to the root.

    `parents[depth]` has a number among the brokers one link above, for each of `areas[depth]`.
    """
    _require_room(areas)
    depths = range(len(areas) - 1, -1, -1)
    sizes = np.array([len(areas[depth]) for depth in depths])
    first = np.cumsum(sizes) - sizes
    height = np.repeat(np.arange(len(areas)), sizes).astype(float)
    above = [parents[depth] + first[k + 1] for k, depth in enumerate(depths[:-1])]
    parent = np.concatenate([*above, [-1]])
    capacity = figures.capacity_growth**height
    below_root = [f"broker-{d}-{k}" for d in depths[:-1] for k in range(len(areas[d]))]
    return tree_network(
        name,
        [*below_root, "cloud"],
        parent=parent.astype(np.int32),
        cpu_ips=figures.leaf_mips * 1e6 * capacity,
        memory_bytes=figures.leaf_memory_bytes * capacity,
        latency_s=figures.link_latency_s * figures.latency_growth**height,
        bandwidth_bps=figures.link_bandwidth_bps * figures.bandwidth_growth**height,
        area_m=np.concatenate([areas[depth] for depth in depths]),
    )


def _even_parents(areas: list[Floats], fan_out: int) -> list[Index]:
    return [np.arange(len(rectangles), dtype=np.int32) // fan_out for rectangles in areas]


def require_area(defects: Defects, area_m: Area) -> None:
    """Remember a defect unless the area is west, south, east, north."""
    try:
        west, south, east, north = (float(edge) for edge in area_m)
        good = west < east and south < north and bool(np.isfinite(area_m).all())
    except (TypeError, ValueError):
        good = False
    rule = "west, south, east, north in metres, west below east and south below north"
    defects.require(good, "area_m", area_m, rule)


def _require_room(areas: list[Floats]) -> None:
    """An area far from the origin can be too small for its numbers to be told apart."""
    west, south, east, north = areas[-1].T
    defects = Defects()
    good = bool((west < east).all() and (south < north).all())
    value = areas[-1][0].tolist()
    defects.require(good, "area_m", value, "an area large enough for so many leaves")
    defects.raise_if_any()
