"""A city that senses: neighbourhoods behind mobile links, a few cloudlets, a cloud far away."""

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
class UrbanFigures:
    """How many machines a neighbourhood, a cloudlet and the cloud have, and how they are linked.

    Pairs are the bounds of uniform draws. The figures are nominal: plausible, not measured.
    """

    sensors: Counts = (6, 12)
    cameras: Counts = (1, 3)
    cloudlet_servers: int = 2
    cloud_machines: int = 4
    lan_latency_s: Range = (1e-3, 5e-3)
    lan_bandwidth_bps: float = 100e6
    mobile_latency_s: Range = (15e-3, 45e-3)
    mobile_bandwidth_bps: Range = (20e6, 60e6)
    metro_latency_s: Range = (1e-3, 4e-3)
    metro_bandwidth_bps: float = 10e9
    cloud_latency_s: Range = (20e-3, 60e-3)
    cloud_bandwidth_bps: float = 1e9

    def __post_init__(self) -> None:
        defects = Defects()
        for name in ("sensors", "cameras"):
            require_counts(defects, name, getattr(self, name), 0, 1_000)
        for name in ("cloudlet_servers", "cloud_machines"):
            require_count(defects, name, getattr(self, name), 1, 1_000)
        for name in ("lan_bandwidth_bps", "metro_bandwidth_bps", "cloud_bandwidth_bps"):
            require_amounts(defects, **{name: getattr(self, name)})
        require_ranges(
            defects,
            lan_latency_s=self.lan_latency_s,
            mobile_latency_s=self.mobile_latency_s,
            mobile_bandwidth_bps=self.mobile_bandwidth_bps,
            metro_latency_s=self.metro_latency_s,
            cloud_latency_s=self.cloud_latency_s,
        )
        defects.raise_if_any()


URBAN_FIGURES = UrbanFigures()


def urban(
    neighbourhoods: int = 12,
    seed: int = 0,
    *,
    cloudlets: int = 3,
    name: str = "urban",
    figures: UrbanFigures = URBAN_FIGURES,
) -> Network:
    """Neighbourhoods (edge) behind mobile links to cloudlets (fog), those in a ring, and a cloud.

    - `neighbourhood-k`: on one LAN a gateway (mini-pc), single-board computers on poles
      (`sensor-0…`) and GPU boards (`camera-0…`).
    - `cloudlet-k`: servers in the city; each serves neighbourhoods of neighbouring numbers. Three
      or more cloudlets form a ring of metro links, two have one between them.
    - `cloud`: virtual machines, linked to every cloudlet.

    >>> urban(neighbourhoods=4, figures=UrbanFigures(sensors=(8, 8), cameras=(1, 1)))
    <Network urban: 50 nodes in 4 edge, 3 fog, 1 cloud sites>
    """
    defects = Defects()
    require_count(defects, "neighbourhoods", neighbourhoods, 1, 1_000)
    require_count(defects, "cloudlets", cloudlets, 1, 100)
    require_seed(defects, seed)
    defects.raise_if_any()
    serving = [f"cloudlet-{k * cloudlets // neighbourhoods}" for k in range(neighbourhoods)]
    sites = [_neighbourhood(k, above, seed, figures) for k, above in enumerate(serving)]
    links = [_mobile_link(k, above, seed, figures) for k, above in enumerate(serving)]
    for k in range(cloudlets):
        servers = tuple(SERVER.node(f"server-{m}") for m in range(figures.cloudlet_servers))
        sites.append(Site(name=f"cloudlet-{k}", tier="fog", nodes=servers, parent="cloud"))
        links += _cloudlet_links(k, cloudlets, seed, figures)
    machines = tuple(CLOUD_VM.node(f"vm-{m}") for m in range(figures.cloud_machines))
    sites.append(Site(name="cloud", tier="cloud", nodes=machines))
    return build_network(name, sites, links)


def _neighbourhood(number: int, parent: str, seed: int, figures: UrbanFigures) -> Site:
    rng = random_stream(seed, "neighbourhood", number)
    sensors = rng.integers(*figures.sensors, endpoint=True)
    cameras = rng.integers(*figures.cameras, endpoint=True)
    boards = [
        *((SINGLE_BOARD, f"sensor-{m}") for m in range(sensors)),
        *((GPU_BOARD, f"camera-{m}") for m in range(cameras)),
    ]
    bandwidth_bps = figures.lan_bandwidth_bps
    nodes = [MINI_PC.node("gateway", lan_bandwidth_bps=bandwidth_bps)]
    for sort, name in boards:
        latency_s = rng.uniform(*figures.lan_latency_s)
        nodes.append(sort.node(name, lan_latency_s=latency_s, lan_bandwidth_bps=bandwidth_bps))
    return Site(name=f"neighbourhood-{number}", tier="edge", nodes=tuple(nodes), parent=parent)


def _mobile_link(number: int, cloudlet: str, seed: int, figures: UrbanFigures) -> Link:
    rng = random_stream(seed, "mobile", number)
    return Link(
        a=f"neighbourhood-{number}",
        b=cloudlet,
        latency_s=rng.uniform(*figures.mobile_latency_s),
        bandwidth_bps=rng.uniform(*figures.mobile_bandwidth_bps),
    )


def _cloudlet_links(number: int, cloudlets: int, seed: int, figures: UrbanFigures) -> list[Link]:
    """The link to the cloud, and the one to the next cloudlet of the ring."""
    rng = random_stream(seed, "cloudlet", number)
    up = Link(
        a=f"cloudlet-{number}",
        b="cloud",
        latency_s=rng.uniform(*figures.cloud_latency_s),
        bandwidth_bps=figures.cloud_bandwidth_bps,
    )
    if number + 1 == cloudlets <= 2:  # The last of a ring closes it; two have one link.
        return [up]
    onward = Link(
        a=f"cloudlet-{number}",
        b=f"cloudlet-{(number + 1) % cloudlets}",
        latency_s=rng.uniform(*figures.metro_latency_s),
        bandwidth_bps=figures.metro_bandwidth_bps,
    )
    return [up, onward]
