"""Small problems with round numbers, for results worked out by hand."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

from thalweg.model import (
    Application,
    Instance,
    Limits,
    Link,
    Node,
    Operator,
    Pin,
    Placement,
    Problem,
    Site,
    Stream,
    build_network,
)


def fog_problem(
    transforms: list[Operator],
    streams: list[Stream],
    *,
    rate: float,
    event_size: float,
    fogs: int = 2,
    fog: Mapping[str, Any] | None = None,
    cloud: Mapping[str, Any] | None = None,
    link: Mapping[str, Any] | None = None,
    site: Mapping[str, Any] | None = None,
    sink: Mapping[str, Any] | None = None,
    limits: Limits | None = None,
    rates: Mapping[tuple[str, str], float] | None = None,
) -> Problem:
    """Source "s" in fogs f1, f2, …; transforms; sink "z". A node "n" each, a link to cloud "dc".

    Without figures nodes are endlessly fast and links take 0.1 s and 1 Mbps.
    """
    ample = {"name": "n", "cpu_ips": 1e18, "memory_bytes": 1e18}
    names = [f"f{k + 1}" for k in range(fogs)]
    sites = [
        Site(
            **{
                "name": name,
                "tier": "fog",
                "nodes": (Node(**{**ample, **(fog or {})}),),
                **(site or {}),
            }
        )
        for name in names
    ]
    sites.append(Site(name="dc", tier="cloud", nodes=(Node(**{**ample, **(cloud or {})}),)))
    links = [
        Link(**{"a": name, "b": "dc", "latency_s": 0.1, "bandwidth_bps": 1e6, **(link or {})})
        for name in names
    ]
    application = Application(
        name="app",
        operators=[
            Operator(
                name="s", kind="source", rate=rate, event_size=event_size, pin=Pin(tier="fog")
            ),
            *transforms,
            Operator(**{"name": "z", "kind": "sink", **(sink or {})}),
        ],
        streams=streams,
        limits=limits or Limits(),
    )
    return Problem(application=application, network=build_network("net", sites, links), rates=rates)


def chain_problem(*transforms: Operator, **figures: Any) -> Problem:
    """The same with the transforms in a row between "s" and "z"."""
    path = ["s", *(operator.name for operator in transforms), "z"]
    streams = [Stream(source=a, target=b) for a, b in itertools.pairwise(path)]
    return fog_problem(list(transforms), streams, **figures)


def place(problem: Problem, hosts: Mapping[str, str]) -> Placement:
    """Sources where they are born; the others as given, `"t@f1"` for a replica."""
    app, net, births = problem.application, problem.network, problem.births
    instances = [
        Instance(operator=app.operators[o].name, node=net.node_name(n), origin=net.site_names[s])
        for o, s, n in zip(
            births.operator.tolist(), births.site.tolist(), births.node.tolist(), strict=True
        )
    ]
    for who, node in hosts.items():
        operator, _, origin = who.partition("@")
        instances.append(Instance(operator=operator, node=node, origin=origin or None))
    return Placement.of(instances)
