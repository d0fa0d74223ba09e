"""The links of a run as a page draws them, from what each site measured on its way to the cloud."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

from thalweg.model import Network
from thalweg.web.grouping import Grouping
from thalweg.web.picture import gather_links
from thalweg.web.run_frame import UP, age_of, known_lag, known_number

Plain = dict[str, Any]


class RunLinks:
    """Gives bits/s, load and lag of the links between the sites of a run and its cloud."""

    def __init__(
        self, network: Network, fogs: Iterable[str], cloud: str, grouping: Grouping
    ) -> None:
        self._network, self._grouping = network, grouping
        index = network.site_index
        self._ways = {
            fog: network.wan.route(index[fog], index[cloud]).tolist()
            for fog in fogs
            if fog != cloud
        }

    @cached_property
    def _links(self) -> dict[int, tuple[str, float]]:
        """The ends of each of these links, and what is free on it."""
        links = sorted({link for way in self._ways.values() for link in way})
        free = self._network.wan.link_available_bps(links).tolist()
        return {k: (self._grouping.ends_of(k), bps) for k, bps in zip(links, free, strict=True)}

    def describe(self, line: Mapping[str, Any], stale_s: float) -> dict[str, Plain]:
        """The links at the moment of a line; a site that is not up sends nothing that is known."""
        at_s, sites = float(line["at_s"]), line.get("sites") or {}
        states = {s: (sites.get(s) or {}).get("state", UP) for s in self._ways}
        told = {s: {"bps": None} for s, state in states.items() if state != UP}
        told |= {s: of for s, of in (line.get("links") or {}).items() if self._ways.get(s)}
        up = {s for s in told if states[s] == UP}
        sent = {s: known_number(told[s]["bps"]) for s in up}
        links = self._loads({s: bps for s, bps in sent.items() if bps is not None})
        for site, of in told.items():
            first = self._links[self._ways[site][0]][0]
            if not first:
                continue
            link = links.setdefault(first, {"bps": None, "load": None})
            lag_s = known_lag(of.get("lag_s"), at_s) if site in up else None
            # Where one line stands for several sites, the one that is furthest behind counts.
            link["lag_s"] = max(
                (s for s in (link.get("lag_s"), lag_s) if s is not None), default=None
            )
            if link["bps"] is None and site not in up:
                link["state"] = str(states[site])
            age = age_of(of.get("renewed_at_s"), at_s, stale_s) if site in up else {}
            if age.get("age_s", -1.0) > link.get("age_s", -1.0):
                link |= age
        return links

    def _loads(self, sent: Mapping[str, float]) -> dict[str, Plain]:
        """Bits/s and load of every link on the ways of these sites; sites that share one add up."""
        on_link: dict[int, float] = {}
        for site, bps in sent.items():
            for link in self._ways[site]:
                on_link[link] = on_link.get(link, 0.0) + bps
        ends_and_free = ((*self._links[link], bps) for link, bps in sorted(on_link.items()))
        return gather_links(
            (ends, bps, bps / free if free > 0 else math.inf if bps else 0.0)
            for ends, free, bps in ends_and_free
        )
