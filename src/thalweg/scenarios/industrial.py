"""Factories: machines with their gateways, a server room on the premises, a leased line out."""

from __future__ import annotations

from dataclasses import dataclass

from thalweg.errors import Defects
from thalweg.model import Link, Network, Site, build_network
from thalweg.scenarios.devices import CLOUD_VM, GPU_BOARD, MINI_PC, SERVER, SINGLE_BOARD
from thalweg.scenarios.parameters import (
    Counts,
    Range,
    require_amounts,
    require_count,
    require_counts,
    require_ranges,
    require_seed,
)
from thalweg.scenarios.randomness import random_stream


@dataclass(frozen=True, slots=True, kw_only=True)
class IndustrialFigures:
    """How many machines a floor and the cloud have, and how they are linked.

    Pairs are the bounds of uniform draws. The figures are nominal: plausible, not measured.
    """

    machines: Counts = (8, 16)
    inspection_cameras: Counts = (1, 4)
    cloud_machines: int = 4
    lan_latency_s: Range = (0.2e-3, 1e-3)
    lan_bandwidth_bps: float = 1e9
    floor_latency_s: Range = (0.5e-3, 2e-3)
    floor_bandwidth_bps: float = 1e9
    leased_latency_s: Range = (10e-3, 40e-3)
    leased_bandwidth_bps: Range = (50e6, 200e6)

    def __post_init__(self) -> None:
        defects = Defects()
        require_counts(defects, "machines", self.machines, 1, 1_000)
        require_counts(defects, "inspection_cameras", self.inspection_cameras, 0, 1_000)
        require_count(defects, "cloud_machines", self.cloud_machines, 1, 1_000)
        require_amounts(
            defects,
            lan_bandwidth_bps=self.lan_bandwidth_bps,
            floor_bandwidth_bps=self.floor_bandwidth_bps,
        )
        require_ranges(
            defects,
            lan_latency_s=self.lan_latency_s,
            floor_latency_s=self.floor_latency_s,
            leased_latency_s=self.leased_latency_s,
            leased_bandwidth_bps=self.leased_bandwidth_bps,
        )
        defects.raise_if_any()


INDUSTRIAL_FIGURES = IndustrialFigures()


def industrial(
    premises: int = 4,
    seed: int = 0,
    *,
    name: str = "industrial",
    figures: IndustrialFigures = INDUSTRIAL_FIGURES,
) -> Network:
    """Factory floors (edge), each behind the server room of its premises (fog), and a cloud.

    - `floor-k`: on one LAN a gateway for each machine (single-board computers `machine-0…`) and
      GPU boards that inspect what was made (`inspection-0…`).
    - `premises-k`: a server and a mini-pc, reached over the factory's own network.
    - `cloud`: virtual machines, reached from each of the premises over a leased line.

    The links form a tree.

    >>> industrial(2, figures=IndustrialFigures(machines=(8, 8), inspection_cameras=(2, 2)))
    <Network industrial: 28 nodes in 2 edge, 2 fog, 1 cloud sites>
    """
    defects = Defects()
    require_count(defects, "premises", premises, 1, 1_000)
    require_seed(defects, seed)
    defects.raise_if_any()
    floors = [_floor(k, seed, figures) for k in range(premises)]
    room = (SERVER.node("server"), MINI_PC.node("mini-pc"))
    rooms = [
        Site(name=f"premises-{k}", tier="fog", nodes=room, parent="cloud") for k in range(premises)
    ]
    virtual = tuple(CLOUD_VM.node(f"vm-{m}") for m in range(figures.cloud_machines))
    cloud = Site(name="cloud", tier="cloud", nodes=virtual)
    links = [link for k in range(premises) for link in _lines(k, seed, figures)]
    return build_network(name, [*floors, *rooms, cloud], links)


def _floor(number: int, seed: int, figures: IndustrialFigures) -> Site:
    rng = random_stream(seed, "floor", number)
    machines = rng.integers(*figures.machines, endpoint=True)
    cameras = rng.integers(*figures.inspection_cameras, endpoint=True)
    boards = [
        *((SINGLE_BOARD, f"machine-{m}") for m in range(machines)),
        *((GPU_BOARD, f"inspection-{m}") for m in range(cameras)),
    ]
    nodes = [
        sort.node(
            name,
            lan_latency_s=rng.uniform(*figures.lan_latency_s),
            lan_bandwidth_bps=figures.lan_bandwidth_bps,
        )
        for sort, name in boards
    ]
    return Site(
        name=f"floor-{number}", tier="edge", nodes=tuple(nodes), parent=f"premises-{number}"
    )


def _lines(number: int, seed: int, figures: IndustrialFigures) -> list[Link]:
    """From the floor to the server room, and from there to the cloud."""
    rng = random_stream(seed, "lines", number)
    within = Link(
        a=f"floor-{number}",
        b=f"premises-{number}",
        latency_s=rng.uniform(*figures.floor_latency_s),
        bandwidth_bps=figures.floor_bandwidth_bps,
    )
    leased = Link(
        a=f"premises-{number}",
        b="cloud",
        latency_s=rng.uniform(*figures.leased_latency_s),
        bandwidth_bps=rng.uniform(*figures.leased_bandwidth_bps),
    )
    return [within, leased]
