"""What was measured, as the planner sees it, and beside what was planned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from thalweg.errors import Defects, nearest
from thalweg.estimate.rates import estimate_rates
from thalweg.model import Application
from thalweg.model.deployment import deploy
from thalweg.model.network import Network, Tier
from thalweg.model.placement import Instance, Placement
from thalweg.model.problem import Problem
from thalweg.spark.monitor.figures import Figures, Flow

_BITS = 8.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One figure, planned and measured."""

    kind: str
    """`rows in` or `rows out` of an operator [events/s], or a `link` to the cloud [bytes/s]."""
    name: str
    """The operator; of a link, where it leads."""
    site: str
    planned: float
    measured: float

    @property
    def difference(self) -> float | None:
        """How far the measured figure is above the planned one, as a part of it; None of 0."""
        return (self.measured - self.planned) / self.planned if self.planned > 0 else None


def measured_problem(application: Application, network: Network, figures: Figures) -> Problem:
    """What a strategy is asked at the rates that were measured.

    Where nothing has been measured yet, the application's own rates stand.
    """
    plain = Problem(application=application, network=network)
    births = plain.births
    rates = {}
    for operator, site in zip(births.operator.tolist(), births.site.tolist(), strict=True):
        key = (application.operators[operator].name, network.site_names[site])
        if key in figures.sources:
            rates[key] = figures.sources[key]
    return Problem(application=application, network=network, rates=rates)


def place_cuts(
    application: Application, network: Network, cuts: Mapping[str, tuple[str, ...]]
) -> Placement:
    """The placement that these cuts mean: a copy of every operator of a cut on its site's first
    node, all others on the first node of the cloud.

    Raises:
        InvalidInput: for sites and operators that there are not.
    """
    _require_cuts(application, network, cuts)
    births = Problem(application=application, network=network).births
    born: dict[str, set[str]] = {operator.name: set() for operator in application.operators}
    instances = []
    for operator, site, node in zip(
        births.operator.tolist(), births.site.tolist(), births.node.tolist(), strict=True
    ):
        name, origin = application.operators[operator].name, network.site_names[site]
        born[name].add(origin)
        instances.append(Instance(operator=name, node=network.node_name(node), origin=origin))
    cloud = network.node_name(int(network.nodes_in_tier(Tier.CLOUD)[0]))
    for index in application.graph.order.tolist():
        operator = application.operators[index]
        if operator.kind == "source":
            continue
        for stream in application.streams:
            if stream.target == operator.name:
                born[operator.name] |= born[stream.source]
        served = [site for site in cuts if operator.name in cuts[site]]
        for site in served:
            first = network.first_node[network.site_index[site]]
            node = network.node_name(int(first))
            instances.append(Instance(operator=operator.name, node=node, origin=site))
        # Where all events are served by copies, nothing would reach the cloud's.
        if born[operator.name] - set(served):
            instances.append(Instance(operator=operator.name, node=cloud))
    return Placement.of(instances)


def compare_planned(
    application: Application, network: Network, placement: Placement, figures: Figures
) -> tuple[Comparison, ...]:
    """Planned and measured, at the measured rates of the sources.

    Rows in and out of every operator at every site where it is planned or was seen at work, in the
    application's order, then by site; then what every site sends to the cloud. A sink's rows out
    are no part of the model.
    """
    problem = measured_problem(application, network, figures)
    flows, links = _plan_flows(problem, placement)
    index = application.index
    at_work = {
        key
        for key, flow in figures.operators.items()
        if key[0] in index and (flow.rows_in_per_s > 0 or flow.rows_out_per_s > 0)
    }
    rows = []
    for name, site in sorted(flows.keys() | at_work, key=lambda key: (index[key[0]], key[1])):
        planned = flows.get((name, site), Flow())
        measured = figures.operators.get((name, site), Flow())
        pairs = [("rows in", planned.rows_in_per_s, measured.rows_in_per_s)]
        if application.operators[index[name]].kind != "sink":
            pairs.append(("rows out", planned.rows_out_per_s, measured.rows_out_per_s))
        rows += [
            Comparison(kind=kind, name=name, site=site, planned=before, measured=after)
            for kind, before, after in pairs
        ]
    sent = figures.links
    for site in sorted(links.keys() | {site for site, rate in sent.items() if rate > 0}):
        before, after = links.get(site, 0.0), sent.get(site, 0.0)
        rows.append(
            Comparison(kind="link", name="cloud", site=site, planned=before, measured=after)
        )
    return tuple(rows)


def _plan_flows(
    problem: Problem, placement: Placement
) -> tuple[dict[tuple[str, str], Flow], dict[str, float]]:
    """The flow of every operator at every site, and bytes/s from every site to the cloud."""
    deployment, net = deploy(problem, placement), problem.network
    rates = estimate_rates(deployment)
    sites = net.node_site[deployment.node]
    flows: dict[tuple[str, str], Flow] = {}
    for instance in range(deployment.size):
        operator = problem.application.operators[int(deployment.operator[instance])]
        if operator.kind == "source":
            continue
        key = (operator.name, net.site_names[int(sites[instance])])
        before = flows.get(key, Flow())
        flows[key] = Flow(
            rows_in_per_s=before.rows_in_per_s + float(rates.events_in[instance]),
            rows_out_per_s=before.rows_out_per_s + float(rates.events_out[instance]),
        )
    sender, reader = sites[deployment.graph.source], sites[deployment.graph.target]
    is_cloud = net.site_tier == Tier.CLOUD
    crossing = np.flatnonzero(~is_cloud[sender] & is_cloud[reader])
    links: dict[str, float] = {}
    for edge in crossing.tolist():
        site = net.site_names[int(sender[edge])]
        links[site] = links.get(site, 0.0) + float(rates.flow_bps[edge]) / _BITS
    return flows, links


def _require_cuts(
    application: Application, network: Network, cuts: Mapping[str, tuple[str, ...]]
) -> None:
    defects = Defects()
    for site, names in cuts.items():
        if site not in network.site_index:
            hint = nearest(site, network.site_names)
            defects.add(f"cuts[{site}]", site, f"a site of {network.name}", hint)
        for name in names:
            if name not in application.index:
                rule = f"an operator of {application.name}"
                defects.add(f"cuts[{site}]", name, rule, nearest(name, application.index))
    has_cloud = bool(network.nodes_in_tier(Tier.CLOUD).size)
    defects.require(has_cloud, "network", network.name, "a network with a cloud")
    defects.raise_if_any()
