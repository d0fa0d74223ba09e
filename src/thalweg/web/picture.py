"""A placement as a page draws it: chips on sites, flows between them, and how full all is."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from thalweg.estimate.evaluate import Evaluation, evaluate, make_plan
from thalweg.model import Placement, Plan, Problem
from thalweg.model.figures import sum_at
from thalweg.web.grouping import Grouping

Plain = dict[str, Any]
_MOST_FLOWS = 400
_MOST_VIOLATIONS = 20
GAUGES = ("response_time_s", "uplink_bps", "usage")


def plain_number(value: float | None) -> float | str | None:
    """A number for JSON; ∞ is "inf".

    >>> plain_number(float("inf")), plain_number(1.5), plain_number(float("nan"))
    ('inf', 1.5, None)
    """
    if value is None or math.isnan(value):
        return None
    return float(value) if math.isfinite(value) else ("inf" if value > 0 else "-inf")


def sites_in_use(problem: Problem, placement: Placement) -> list[int]:
    """The sites where more than sources run, those with most instances first; ties: lower index.

    Sites where sources alone are come after them.
    """
    deployment = evaluate(problem, placement).deployment
    site = problem.network.node_site[deployment.node]
    is_source = problem.application.columns.is_source[deployment.operator]
    count = np.bincount(site[~is_source], minlength=problem.network.site_count)
    working = np.flatnonzero(count)
    working = working[np.argsort(-count[working], kind="stable")]
    return list(dict.fromkeys([*working.tolist(), *np.unique(site).tolist()]))


def gather_links(on_links: Iterable[tuple[str, float, float]]) -> dict[str, Plain]:
    """Between what is shown: the sum of bits/s, and the load of the fullest link.

    Given are ends, bits/s and load of directed links; without ends, both sites are one group.

    >>> gather_links([("a>b", 10.0, 0.1), ("a>b", 20.0, 0.4), ("", 5.0, 0.9)])
    {'a>b': {'bps': 30.0, 'load': 0.4}}
    """
    found: dict[str, Plain] = {}
    for ends, bps, load in on_links:
        if ends:
            told = found.setdefault(ends, {"bps": 0.0, "load": 0.0})
            told["bps"] += bps
            told["load"] = max(told["load"], load)
    return {
        ends: {name: plain_number(value) for name, value in told.items()}
        for ends, told in found.items()
    }


def _shares(need: np.ndarray, have: np.ndarray) -> np.ndarray:
    """Which part of what there is is needed; ∞ where something is needed of nothing."""
    share = np.where(need > 0, np.inf, 0.0)
    np.divide(need, have, out=share, where=have > 0)
    return share


@dataclass(frozen=True, eq=False, kw_only=True)
class Picture:
    """A placement at the rates of a problem, drawn with a grouping of sites."""

    problem: Problem
    placement: Placement
    grouping: Grouping

    @cached_property
    def evaluation(self) -> Evaluation:
        """Every estimate of it."""
        return evaluate(self.problem, self.placement)

    @cached_property
    def plan(self) -> Plan:
        """What it costs and violates; the reasons are with whoever found it."""
        return make_plan(self.problem, self.placement, strategy="as it is", objective_name="usage")

    @cached_property
    def _shown(self) -> np.ndarray:
        """For each instance what stands for its site."""
        site = self.problem.network.node_site[self.evaluation.deployment.node]
        return np.asarray(self.grouping.shown[site])

    @cached_property
    def chips(self) -> Counter[tuple[str, str]]:
        """How many instances of each operator are shown at each site."""
        app, deployment = self.problem.application, self.evaluation.deployment
        return Counter(
            (app.operators[operator].name, self.grouping.names[shown])
            for operator, shown in zip(
                deployment.operator.tolist(), self._shown.tolist(), strict=True
            )
        )

    def instances(self) -> list[Plain]:
        """A chip for each operator at each shown site, in the application's order."""
        app, net, deployment = (
            self.problem.application,
            self.problem.network,
            self.evaluation.deployment,
        )
        found: dict[tuple[int, int], Plain] = {}
        for k in range(deployment.size):
            operator, shown = int(deployment.operator[k]), int(self._shown[k])
            known = found.get((operator, shown))
            if known is not None:
                known["count"] += 1
                known["node"], known["origin"] = None, None
                continue
            origin = int(deployment.origin[k])
            found[operator, shown] = {
                "operator": app.operators[operator].name,
                "site": self.grouping.names[shown],
                "node": net.node_name(int(deployment.node[k])),
                "origin": None if origin < 0 else net.site_names[origin],
                "count": 1,
            }
        return [found[key] for key in sorted(found)]

    def flows(self) -> list[Plain]:
        """Streams between shown sites, the largest first."""
        app, deployment = self.problem.application, self.evaluation.deployment
        graph = deployment.graph
        total: dict[tuple[int, int, int], float] = {}
        ends = zip(
            deployment.stream.tolist(),
            self._shown[graph.source].tolist(),
            self._shown[graph.target].tolist(),
            self.evaluation.rates.flow_bps.tolist(),
            strict=True,
        )
        for stream, a, b, bps in ends:
            if a != b:
                total[stream, a, b] = total.get((stream, a, b), 0.0) + bps
        largest = sorted(total.items(), key=lambda item: (-item[1], item[0]))[:_MOST_FLOWS]
        names = self.grouping.names
        return [
            {
                "source": app.streams[stream].source,
                "target": app.streams[stream].target,
                "a": names[a],
                "b": names[b],
                "bps": plain_number(bps),
                "load": self._load_between(names[a], names[b]),
            }
            for (stream, a, b), bps in largest
        ]

    def _load_between(self, a: str, b: str) -> float | str | None:
        """The load of the fullest link on the way; None where several sites are an end of it."""
        one, other = self.grouping.members(a), self.grouping.members(b)
        if one.size != 1 or other.size != 1:
            return None
        way = self.problem.network.wan.route(int(one[0]), int(other[0])).tolist()
        return plain_number(max((self._loads.get(link, 0.0) for link in way), default=0.0))

    @cached_property
    def _loads(self) -> dict[int, float]:
        """The share of each directed link in use that is taken of what is free."""
        links, bps = self._traffic
        free = self.problem.network.wan.link_available_bps(links)
        return dict(zip(links.tolist(), _shares(bps, free).tolist(), strict=True))

    @cached_property
    def _traffic(self) -> tuple[np.ndarray, np.ndarray]:
        """Every directed link in use, and bits/s on it."""
        net, deployment = self.problem.network, self.evaluation.deployment
        site = net.node_site[deployment.node]
        a, b = site[deployment.graph.source], site[deployment.graph.target]
        return net.wan.link_loads(a, b, self.evaluation.rates.flow_bps)

    def links(self) -> dict[str, Plain]:
        """Bits/s and load of every directed link in use, between what is shown."""
        links, bps = self._traffic
        return gather_links(
            (self.grouping.ends_of(link), on_it, self._loads[link])
            for link, on_it in zip(links.tolist(), bps.tolist(), strict=True)
        )

    def sites(self) -> dict[str, Plain]:
        """CPU and memory of the fullest node of each shown site, as shares of what is free."""
        net, deployment = self.problem.network, self.evaluation.deployment
        demand = self.evaluation.demand
        nodes, position = np.unique(deployment.node, return_inverse=True)
        found: dict[str, Plain] = {
            name: {"state": "up", "cpu": 0.0, "memory": 0.0} for name in self.grouping.names
        }
        for name, needed, free in (
            ("cpu", demand.cpu_ips, net.node_cpu_available_ips),
            ("memory", demand.memory_bytes, net.node_memory_available_bytes),
        ):
            need = sum_at(position, needed, nodes.size)
            have = free[nodes]
            for node, value in zip(nodes.tolist(), _shares(need, have).tolist(), strict=True):
                told = found[self.grouping.name_of(int(net.node_site[node]))]
                told[name] = max(told[name], value)
        return {
            site: {key: v if isinstance(v, str) else plain_number(v) for key, v in told.items()}
            for site, told in found.items()
        }

    def gauges(self) -> Plain:
        """T, B and RU by the formulas, with events/s born and at sinks."""
        estimate, deployment = self.evaluation.estimate, self.evaluation.deployment
        rates = self.evaluation.rates
        sink = np.array([o.kind == "sink" for o in self.problem.application.operators])
        return {
            **{name: plain_number(getattr(estimate, name)) for name in GAUGES},
            "events_in_per_s": plain_number(float(deployment.birth_rate.sum())),
            "events_out_per_s": plain_number(
                float(rates.events_in[sink[deployment.operator]].sum())
            ),
        }

    def violations(self) -> list[str]:
        """What it violates, in words; of very many the first ones."""
        told = [str(violation) for violation in self.plan.violations]
        more = len(told) - _MOST_VIOLATIONS
        return told[:_MOST_VIOLATIONS] + ([f"and {more:,} more"] if more > 0 else [])

    def frame(self, at_s: float, identity: str) -> Plain:
        """How full everything is by the formulas, at a moment."""
        return {
            "at_s": at_s,
            "placement": identity,
            "gauges": self.gauges(),
            "sites": self.sites(),
            "links": self.links(),
        }

    def describe(
        self,
        identity: str,
        *,
        at_s: float = 0.0,
        strategy: str = "",
        text: str = "",
        before: Picture | None = None,
    ) -> Plain:
        """The placement with what is new in it against the one before."""
        changed = (
            [] if before is None else [chip for chip in self.chips if chip not in before.chips]
        )
        gauges: Mapping[str, Any] = self.gauges()
        return {
            "id": identity,
            "at_s": at_s,
            "strategy": strategy,
            "text": text,
            "instances": self.instances(),
            "flows": self.flows(),
            "changed": [{"operator": operator, "site": site} for operator, site in changed],
            "expected": {name: gauges[name] for name in GAUGES},
            "feasible": self.plan.feasible,
            "violations": self.violations(),
        }
