"""The network between sites: how long a message takes, how much fits, which links it crosses.

Four shapes, one interface: a full mesh given as a matrix, coordinates (a mesh too, in which the
distance is the latency), a tree, and any other graph of links, routed by least latency. Every
function takes arrays of site indices and broadcasts them. A link has two directions, each a
number of its own; latencies along a route add, its bandwidth is the smallest on it.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from thalweg.model.graph import Floats

Sites = int | npt.NDArray[np.integer[Any]]
Links = npt.NDArray[np.int64]


class Wan(Protocol):
    """What every shape of wide-area network answers."""

    @property
    def site_count(self) -> int:
        """How many sites it joins."""
        ...

    def latency_s(self, a: Sites, b: Sites) -> Floats:
        """One-way latency; 0 within a site, infinite where no route leads."""
        ...

    def bandwidth_bps(self, a: Sites, b: Sites) -> Floats:
        """Capacity of the narrowest link of the route; infinite within a site."""
        ...

    def available_bps(self, a: Sites, b: Sites) -> Floats:
        """What is free on the route, at its narrowest; infinite within a site."""
        ...

    def route(self, a: int, b: int) -> Links:
        """The directed links from site a to site b, in order; empty within a site."""
        ...

    def link_loads(
        self, a: npt.NDArray[np.integer[Any]], b: npt.NDArray[np.integer[Any]], bps: Floats
    ) -> tuple[Links, Floats]:
        """What flows bps[k] from site a[k] to site b[k] put on each directed link that they use.

        Flows within a site use none. Returns the links, ascending, and their loads.
        """
        ...

    def link_ends(self, link: int) -> tuple[int, int]:
        """The two sites that a directed link joins."""
        ...

    def link_available_bps(self, links: npt.ArrayLike) -> Floats:
        """What is free on each of these directed links."""
        ...

    def reserved(self, links: npt.ArrayLike, bps: npt.ArrayLike) -> Wan:
        """The same network with this much less free on these links (never below 0)."""
        ...

    def scaled(self, *, latency: float = 1.0, bandwidth: float = 1.0) -> Wan:
        """The same network, every latency and every bandwidth times these factors."""
        ...
