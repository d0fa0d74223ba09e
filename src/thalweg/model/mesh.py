"""Every ordered pair of sites has a link of its own: a matrix, or coordinates."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from thalweg.errors import Defects
from thalweg.model.figures import freeze, less, require_figures, require_no_more
from thalweg.model.graph import Floats
from thalweg.model.wan import Links, Sites


@dataclass(frozen=True, eq=False, kw_only=True)
class MeshWan:
    """Every ordered pair of sites has a link of its own; figures come from n × n matrices."""

    latency: Floats
    bandwidth: Floats
    available: Floats

    def __post_init__(self) -> None:
        defects = Defects()
        n = len(self.latency)
        require_figures(defects, "latency", self.latency, (n, n))
        require_figures(defects, "bandwidth", self.bandwidth, (n, n))
        require_figures(defects, "available", self.available, (n, n))
        if not defects and self.available is not self.bandwidth:
            require_no_more(defects, "available", self.available, self.bandwidth)
        defects.raise_if_any()
        freeze(self)

    @property
    def site_count(self) -> int:
        """How many sites it joins."""
        return len(self.latency)

    def latency_s(self, a: Sites, b: Sites) -> Floats:
        """One-way latency between sites."""
        return np.where(np.equal(a, b), 0.0, self.latency[a, b])

    def bandwidth_bps(self, a: Sites, b: Sites) -> Floats:
        """Capacity of the link between sites."""
        return np.where(np.equal(a, b), np.inf, self.bandwidth[a, b])

    def available_bps(self, a: Sites, b: Sites) -> Floats:
        """What is free on the link between sites."""
        return np.where(np.equal(a, b), np.inf, self.available[a, b])

    def route(self, a: int, b: int) -> Links:
        """The one link from a to b."""
        return _mesh_route(a, b, self.site_count)

    def link_loads(
        self, a: npt.NDArray[np.integer[Any]], b: npt.NDArray[np.integer[Any]], bps: Floats
    ) -> tuple[Links, Floats]:
        """The load on each link that the flows use."""
        return _mesh_loads(a, b, bps, self.site_count)

    def link_ends(self, link: int) -> tuple[int, int]:
        """The two sites of a link."""
        return divmod(int(link), self.site_count)

    def link_available_bps(self, links: npt.ArrayLike) -> Floats:
        """What is free on each of these links."""
        a, b = np.divmod(links, self.site_count)
        return self.available[a, b]

    def reserved(self, links: npt.ArrayLike, bps: npt.ArrayLike) -> MeshWan:
        """The same mesh with less free on these links."""
        return replace(self, available=less(self.available, links, bps))

    def scaled(self, *, latency: float = 1.0, bandwidth: float = 1.0) -> MeshWan:
        """The same with every latency and every bandwidth times these factors."""
        return replace(
            self,
            latency=self.latency * latency,
            bandwidth=self.bandwidth * bandwidth,
            available=self.available * bandwidth,
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class CoordinateWan:
    """A mesh whose latencies are distances between network coordinates with heights (Vivaldi).

    `position_s` is (n, d) and `height_s` (n,); latency(a, b) = |p_a − p_b| + h_a + h_b, one way.
    All links have the same capacity; what is reserved on single links is kept apart.
    """

    position_s: Floats
    height_s: Floats
    capacity_bps: float
    taken_links: Links = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    taken_bps: Floats = field(default_factory=lambda: np.empty(0))

    def __post_init__(self) -> None:
        defects = Defects()
        n = len(self.height_s)
        shape = np.shape(self.position_s)
        defects.require(
            len(shape) == 2 and shape[0] == n and bool(np.isfinite(self.position_s).all()),
            "position_s",
            shape,
            f"finite numbers in the shape ({n}, dimensions)",
        )
        require_figures(defects, "height_s", self.height_s, (n,), finite=True)
        require_figures(defects, "capacity_bps", self.capacity_bps, ())
        require_figures(defects, "taken_bps", self.taken_bps, self.taken_links.shape)
        defects.require(
            bool((np.diff(self.taken_links) > 0).all()), "taken_links", "out of order", "ascending"
        )
        defects.raise_if_any()
        freeze(self)

    @property
    def site_count(self) -> int:
        """How many sites it joins."""
        return len(self.height_s)

    def latency_s(self, a: Sites, b: Sites) -> Floats:
        """One-way latency between sites."""
        distance = np.sqrt(((self.position_s[a] - self.position_s[b]) ** 2).sum(axis=-1))
        return np.where(np.equal(a, b), 0.0, distance + self.height_s[a] + self.height_s[b])

    def bandwidth_bps(self, a: Sites, b: Sites) -> Floats:
        """Capacity of the link between sites."""
        return np.where(np.equal(a, b), np.inf, self.capacity_bps)

    def available_bps(self, a: Sites, b: Sites) -> Floats:
        """What is free on the link between sites."""
        link = np.asarray(a, dtype=np.int64) * self.site_count + np.asarray(b)
        return np.where(np.equal(a, b), np.inf, self.link_available_bps(link))

    def route(self, a: int, b: int) -> Links:
        """The one link from a to b."""
        return _mesh_route(a, b, self.site_count)

    def link_loads(
        self, a: npt.NDArray[np.integer[Any]], b: npt.NDArray[np.integer[Any]], bps: Floats
    ) -> tuple[Links, Floats]:
        """The load on each link that the flows use."""
        return _mesh_loads(a, b, bps, self.site_count)

    def link_ends(self, link: int) -> tuple[int, int]:
        """The two sites of a link."""
        return divmod(int(link), self.site_count)

    def link_available_bps(self, links: npt.ArrayLike) -> Floats:
        """What is free on each of these links."""
        wanted = np.asarray(links)
        if not self.taken_links.size:
            return np.full(wanted.shape, self.capacity_bps)
        at = np.minimum(np.searchsorted(self.taken_links, wanted), self.taken_links.size - 1)
        taken = np.where(self.taken_links[at] == wanted, self.taken_bps[at], 0.0)
        return np.maximum(self.capacity_bps - taken, 0.0)

    def reserved(self, links: npt.ArrayLike, bps: npt.ArrayLike) -> CoordinateWan:
        """The same mesh with less free on these links."""
        ids = np.concatenate([self.taken_links, np.atleast_1d(links)])
        taken_links, position = np.unique(ids, return_inverse=True)
        amounts = np.concatenate([self.taken_bps, np.broadcast_to(bps, np.shape(links)).ravel()])
        taken = np.bincount(position, weights=amounts, minlength=taken_links.size)
        return replace(self, taken_links=taken_links, taken_bps=taken.astype(float))

    def scaled(self, *, latency: float = 1.0, bandwidth: float = 1.0) -> CoordinateWan:
        """The same mesh with every latency and every bandwidth times these factors."""
        return replace(
            self,
            position_s=self.position_s * latency,
            height_s=self.height_s * latency,
            capacity_bps=self.capacity_bps * bandwidth,
            taken_bps=self.taken_bps * bandwidth,
        )


def _mesh_route(a: int, b: int, site_count: int) -> Links:
    return np.array([] if a == b else [a * site_count + b], dtype=np.int64)


def _mesh_loads(
    a: npt.NDArray[np.integer[Any]],
    b: npt.NDArray[np.integer[Any]],
    bps: Floats,
    site_count: int,
) -> tuple[Links, Floats]:
    apart = a != b
    used = a[apart].astype(np.int64) * site_count + b[apart]
    links, position = np.unique(used, return_inverse=True)
    return links, np.bincount(position, weights=bps[apart], minlength=links.size).astype(float)
