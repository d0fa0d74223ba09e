"""Any graph of links, routed by least latency."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from thalweg.errors import Defects
from thalweg.model.figures import freeze, less, require_figures, require_no_more
from thalweg.model.graph import Floats, Index, distinct
from thalweg.model.routes import RouteTable, shortest_routes
from thalweg.model.wan import Links, Sites


@dataclass(frozen=True, eq=False, kw_only=True)
class LinkWan:
    """Any graph of links, routed by least latency. Link 2k goes from a to b, 2k+1 back.

    The way back is the way there. Ties: fewer links, then the lower site index at every step
    towards the end that has more links of its own (or the higher index), as clouds have. Seen
    from there one search serves all sites, however many want to know their way to the cloud.
    """

    site_count: int
    a: Index
    b: Index
    latency: Floats
    bandwidth: Floats
    available: Floats
    """Shape (links, 2): what is free from a to b, and from b to a."""
    _tables: dict[int, RouteTable] = field(default_factory=dict, repr=False)
    _narrowest: dict[tuple[int, str, bool], Floats] = field(
        default_factory=dict, init=False, repr=False
    )
    _rank: Index = field(init=False, repr=False)

    def __post_init__(self) -> None:
        defects = Defects()
        m = len(self.a)
        require_figures(defects, "latency", self.latency, (m,), finite=True)
        good = require_figures(defects, "bandwidth", self.bandwidth, (m,))
        if require_figures(defects, "available", self.available, (m, 2)) and good:
            require_no_more(defects, "available", self.available, self.bandwidth[:, None])
        for name in ("a", "b"):
            ends = np.asarray(getattr(self, name))
            known = ends.shape == (m,) and bool(((ends >= 0) & (ends < self.site_count)).all())
            defects.require(known, name, "an unknown site", f"{m} indices of sites")
        defects.raise_if_any()
        links = np.bincount(np.concatenate([self.a, self.b]), minlength=self.site_count)
        order = np.lexsort((np.arange(self.site_count), links))
        object.__setattr__(self, "_rank", np.argsort(order).astype(np.int32))
        freeze(self)

    def _table(self, site: int) -> RouteTable:
        if site not in self._tables:
            self._tables[site] = shortest_routes(
                site, self.site_count, self.a, self.b, self.latency
            )
        return self._tables[site]

    def _look_up(self, a: Sites, b: Sites, figure: str) -> Floats:
        starts, ends = np.broadcast_arrays(np.asarray(a), np.asarray(b))
        outward = self._rank[starts] >= self._rank[ends]
        roots, others = np.where(outward, starts, ends), np.where(outward, ends, starts)
        found = np.empty(starts.shape)
        for root in distinct(roots.ravel()).tolist():
            at = roots == root
            if figure == "latency":
                found[at] = self._table(root).latency_s[others[at]]
            else:
                found[at] = np.where(
                    outward[at],
                    self._narrowest_from(root, figure, outward=True)[others[at]],
                    self._narrowest_from(root, figure, outward=False)[others[at]],
                )
        return found

    def _narrowest_from(self, root: int, figure: str, *, outward: bool) -> Floats:
        """The narrowest link between the root and each site, in one direction."""
        key = (root, figure, outward)
        if key not in self._narrowest:
            both = np.repeat(self.bandwidth[:, None], 2, axis=1)
            figures = both if figure == "bandwidth" else self.available
            # Towards the root every link of the table is used the other way round.
            per_link = (figures if outward else figures[:, ::-1]).reshape(-1)
            self._narrowest[key] = self._table(root).narrowest(per_link)
        return self._narrowest[key]

    def latency_s(self, a: Sites, b: Sites) -> Floats:
        """One-way latency between sites."""
        return self._look_up(a, b, "latency")

    def bandwidth_bps(self, a: Sites, b: Sites) -> Floats:
        """Capacity of the narrowest link between sites; 0 where no route leads."""
        return self._look_up(a, b, "bandwidth")

    def available_bps(self, a: Sites, b: Sites) -> Floats:
        """What is free between sites, at the narrowest link; 0 where no route leads."""
        return self._look_up(a, b, "available")

    def route(self, a: int, b: int) -> Links:
        """The links on the least-latency way from a to b; empty where none leads."""
        if self._rank[a] >= self._rank[b]:
            return self._table(a).links_to(b)
        return self._table(b).links_to(a)[::-1] ^ 1

    def link_loads(
        self, a: npt.NDArray[np.integer[Any]], b: npt.NDArray[np.integer[Any]], bps: Floats
    ) -> tuple[Links, Floats]:
        """The load on each link that the flows use."""
        loads: dict[int, float] = {}
        for start, end, flow in zip(a.tolist(), b.tolist(), bps.tolist(), strict=True):
            for link in self.route(start, end).tolist():
                loads[link] = loads.get(link, 0.0) + flow
        links = sorted(loads)
        return np.array(links, dtype=np.int64), np.array([loads[link] for link in links])

    def link_ends(self, link: int) -> tuple[int, int]:
        """The two sites of a directed link."""
        k, backwards = divmod(int(link), 2)
        ends = int(self.a[k]), int(self.b[k])
        return ends[::-1] if backwards else ends

    def link_available_bps(self, links: npt.ArrayLike) -> Floats:
        """What is free on each of these links."""
        free: Floats = self.available.reshape(-1)[np.asarray(links)]
        return free

    def reserved(self, links: npt.ArrayLike, bps: npt.ArrayLike) -> LinkWan:
        """The same graph with less free on these links."""
        # Routes depend on latency alone, so the tables stay true.
        return replace(self, available=less(self.available, links, bps))

    def scaled(self, *, latency: float = 1.0, bandwidth: float = 1.0) -> LinkWan:
        """The same with every latency and every bandwidth times these factors."""
        return replace(
            self,
            latency=self.latency * latency,
            bandwidth=self.bandwidth * bandwidth,
            available=self.available * bandwidth,
            _tables={},  # Sums of scaled latencies may tie otherwise.
        )
