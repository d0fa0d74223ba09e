"""Who runs where, who sends to whom: read off the placement, instance by instance."""

from __future__ import annotations

from dataclasses import dataclass

from thalweg.model.network import Tier
from thalweg.model.operator import Operator
from thalweg.model.placement import Placement
from thalweg.model.plan import Violation
from thalweg.model.problem import Problem

Copy = tuple[str, str | None]
"""(operator, origin): an operator, for the events of one site or (None) for all."""


@dataclass(frozen=True)
class Unfolded:
    """The node of every copy, and for every copy who sends to it, along which stream."""

    node: dict[Copy, int]
    senders: dict[Copy, list[tuple[Copy, float]]]
    births: dict[Copy, float]
    """Events/s born in each copy of a source."""


def label(copy: Copy) -> str:
    """How a copy is called in messages."""
    return copy[0] if copy[1] is None else f"{copy[0]}@{copy[1]}"


def unfold(problem: Problem, placement: Placement) -> tuple[Unfolded, list[Violation]]:
    """The deployment that a placement describes, and what is missing for it to be one."""
    app, net = problem.application, problem.network
    broken: list[Violation] = []
    node: dict[Copy, int] = {}
    for instance in placement:
        copy = (instance.operator, instance.origin)
        if instance.operator not in app.index:
            broken.append(_broken(instance.operator, f"is no operator of {app.name}"))
        elif instance.origin is not None and instance.origin not in net.site_index:
            broken.append(_broken(instance.origin, f"is no site of {net.name}"))
        elif copy in node:
            broken.append(_broken(label(copy), "is placed twice"))
        else:
            try:
                node[copy] = net.node_index(instance.node)
            except KeyError:
                broken.append(_broken(instance.node, f"is no node of {net.name}"))
    placed = {operator for operator, _ in node}
    broken += [_broken(o.name, "is not placed") for o in app.operators if o.name not in placed]
    births = _find_births(problem)
    for copy in births:
        if copy not in node:
            broken.append(_broken(label(copy), "is not placed"))
    for copy in node:
        if app.operator(copy[0]).kind == "source" and copy not in births:
            broken.append(_broken(label(copy), "is no site where the source is born"))
    if broken:
        return Unfolded({}, {}, {}), broken
    senders: dict[Copy, list[tuple[Copy, float]]] = {copy: [] for copy in node}
    copies: dict[str, list[Copy]] = {}
    for copy in node:
        copies.setdefault(copy[0], []).append(copy)
    for stream in app.streams:
        for sender in copies[stream.source]:
            receiver: Copy = (stream.target, sender[1])
            if receiver not in node:
                receiver = (stream.target, None)
            if receiver not in node:
                broken.append(_broken(label(sender), f"sends to no copy of {stream.target}"))
            else:
                senders[receiver].append((sender, stream.probability))
    for copy, sending in senders.items():
        if not sending and copy not in births:
            broken.append(_broken(label(copy), "gets no events"))
    return Unfolded(node, senders, births), broken


def check_positions(problem: Problem, unfolded: Unfolded) -> list[Violation]:
    """Copies outside their pin, and copies of operators that must not be replicated."""
    found = []
    for copy, node in unfolded.node.items():
        operator = problem.application.operator(copy[0])
        site = problem.network.site_names[problem.network.node_site[node]]
        complaint = ""
        if not _pin_allows(problem, operator, node):
            complaint = f"must run in {operator.pin}"
        elif operator.kind == "source" and site != copy[1]:
            complaint = "runs outside the site it is born in"
        if complaint:
            found.append(_misplaced(problem, "pin", copy, node, complaint))
        if copy[1] is not None and operator.kind != "source" and not operator.replicable:
            complaint = "runs as a replica but is not replicable"
            found.append(_misplaced(problem, "replicable", copy, node, complaint))
    return found


def _pin_allows(problem: Problem, operator: Operator, node: int) -> bool:
    pin, net = operator.pin, problem.network
    if pin is None:
        return True
    site = int(net.node_site[node])
    if pin.node is not None:
        return net.node_index(pin.node) == node
    if pin.site is not None:
        return net.site_names[site] == pin.site
    return Tier(int(net.site_tier[site])).label == pin.tier


def _find_births(problem: Problem) -> dict[Copy, float]:
    """Every source in every site that its pin names, with its events/s."""
    births: dict[Copy, float] = {}
    for operator in problem.application.sources:
        sites = _birth_sites(problem, operator)
        for site in sites:
            given = (problem.rates or {}).get((operator.name, site))
            even = (operator.rate or 0.0) / len(sites)
            births[operator.name, site] = even if given is None else given
    return births


def _birth_sites(problem: Problem, operator: Operator) -> list[str]:
    net, pin = problem.network, operator.pin
    if pin is not None and pin.node is not None:
        return [net.site_names[net.node_site[net.node_index(pin.node)]]]
    return [
        name
        for site, name in enumerate(net.site_names)
        if net.first_node[site] < net.first_node[site + 1]
        and _pin_allows(problem, operator, int(net.first_node[site]))
    ]


def _broken(who: str, complaint: str) -> Violation:
    return Violation(
        constraint="placed", place=who, resource=complaint, need=1.0, have=0.0, unit=""
    )


def _misplaced(
    problem: Problem, constraint: str, copy: Copy, node: int, complaint: str
) -> Violation:
    return Violation(
        constraint=constraint,
        place=problem.network.node_name(node),
        resource=complaint,
        need=1.0,
        have=0.0,
        unit="",
        operators=(label(copy),),
    )
