"""Plans as cuts, and cuts as placements: what the planner says and what sites run.

Rows are born at fog sites and results leave at one cloud site. A cut says which operators run at a
fog on the rows born there; everything runs in the cloud for the rows of other fogs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

import numpy as np

from thalweg.errors import Defects
from thalweg.model import Network, Placement, Problem
from thalweg.model.network import Tier
from thalweg.model.placement import Instance

if TYPE_CHECKING:
    from thalweg.spark.pipeline import Pipeline

Cuts = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSites:
    """Where a pipeline runs: the fogs where its rows are born, in the network's order."""

    fogs: tuple[str, ...]
    cloud: str


def find_sites(problem: Problem) -> RunSites:
    """The sites that take part; raises `InvalidInput` where there is no such deployment."""
    net = problem.network
    tiers = {name: Tier(net.site_tier[k]) for k, name in enumerate(net.site_names)}
    born = [net.site_names[s] for s in dict.fromkeys(problem.births.site.tolist())]
    clouds = [name for name, tier in tiers.items() if tier is Tier.CLOUD]
    defects = Defects()
    rule = "one cloud site, where results leave"
    defects.require(len(clouds) == 1, "network", clouds, rule)
    for site in born:
        rule = "a source whose rows are born at fog sites"
        defects.require(tiers[site] is Tier.FOG, "pipeline", f"a source at {site}", rule)
    defects.require(bool(born), "network", net.name, "a fog site where rows are born")
    defects.raise_if_any()
    order = net.site_index
    return RunSites(fogs=tuple(sorted(born, key=order.__getitem__)), cloud=clouds[0])


def cuts_of(placement: Placement, problem: Problem, sites: RunSites) -> dict[str, tuple[str, ...]]:
    """The operators at each fog, in the order of the application.

    Raises:
        InvalidInput: for every instance that is neither in the cloud nor at a fog for the rows
            that are born there.
    """
    net, app = problem.network, problem.application
    found: dict[str, list[str]] = {fog: [] for fog in sites.fogs}
    defects = Defects()
    for instance in placement:
        if app.operators[app.index[instance.operator]].kind == "source":
            continue
        site = _site_of(net, instance.node)
        if site == sites.cloud:
            continue
        if site in found and instance.origin == site:
            found[site].append(instance.operator)
        else:
            rule = "operators in the cloud, or at fogs for the rows that are born there"
            whose = f"for the rows of {instance.origin}" if instance.origin else "for all rows"
            hint = (
                "take a strategy that cuts streams between fog and cloud, such as atsoo-both-ways"
            )
            defects.add(
                f"plan.{instance.operator}", f"{instance.operator} on {site} {whose}", rule, hint
            )
    defects.raise_if_any()
    order = app.index
    return {fog: tuple(sorted(cut, key=order.__getitem__)) for fog, cut in found.items()}


def placement_of(cuts: Cuts, problem: Problem, sites: RunSites) -> Placement:
    """The placement that these cuts are: what runs at a fog does not count in the cloud for it."""
    net, app, births = problem.network, problem.application, problem.births
    node_of = {
        net.site_names[site]: net.node_name(node)
        for site, node in zip(births.site.tolist(), births.node.tolist(), strict=True)
    }
    fed = _fed_operators(problem)
    instances = [
        Instance(
            operator=app.operators[operator].name,
            node=net.node_name(node),
            origin=net.site_names[site],
        )
        for operator, node, site in zip(
            births.operator.tolist(), births.node.tolist(), births.site.tolist(), strict=True
        )
    ]
    in_cloud: dict[str, None] = {}
    cloud = net.node_name(int(net.nodes_in_site(net.site_index[sites.cloud])[0]))
    for fog in sites.fogs:
        for operator in app.operators:
            if operator.kind == "source" or operator.name not in fed[fog]:
                continue
            if operator.name in cuts.get(fog, ()):
                instances.append(Instance(operator=operator.name, node=node_of[fog], origin=fog))
            else:
                in_cloud[operator.name] = None
    instances += [Instance(operator=name, node=cloud) for name in in_cloud]
    return Placement.of(instances)


def require_cuts(pipeline: Pipeline, sites: RunSites, cuts: Cuts) -> None:
    """Raise `InvalidInput` unless the sites can run these cuts; all that is wrong at once."""
    defects = Defects()
    for site in sorted(cuts):
        if site not in sites.fogs:
            rule = f"a fog site of the run: {', '.join(sites.fogs)}"
            defects.add(f"cuts.{site}", site, rule)
        else:
            cut = tuple(cuts[site])
            defects.attempt(f"cuts.{site}", lambda cut=cut: pipeline.crossing_edges(cut))  # type: ignore[misc]
    defects.raise_if_any()


def fingerprint_graph(pipeline: Pipeline) -> str:
    """A text that is the same for pipelines with the same steps: names, kinds, inputs, columns."""
    lines = [
        "\t".join((step.name, step.role, step.schema, *(sender.name for sender in step.inputs)))
        for step in pipeline.steps
    ]
    return sha256("\n".join(lines).encode()).hexdigest()[:16]


def _site_of(net: Network, node: str) -> str:
    return net.site_names[int(net.node_site[net.node_index(node)])]


def _fed_operators(problem: Problem) -> dict[str, set[str]]:
    """For each site the operators that rows born there reach."""
    app, net = problem.application, problem.network
    reach: dict[int, np.ndarray] = {}
    for operator in app.graph.order.tolist()[::-1]:
        flags = np.zeros(len(app.operators), dtype=bool)
        flags[operator] = True
        for target in app.graph.target[app.graph.source == operator].tolist():
            flags |= reach[target]
        reach[operator] = flags
    fed: dict[str, set[str]] = {}
    for operator, site in zip(
        problem.births.operator.tolist(), problem.births.site.tolist(), strict=True
    ):
        names = {app.operators[k].name for k in np.flatnonzero(reach[operator]).tolist()}
        fed.setdefault(net.site_names[site], set()).update(names)
    return fed
