"""Reads a plan from plain data: exactly what `Plan.to_dict` gives."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter

import numpy as np

from thalweg.errors import Defects, InvalidInput, nearest
from thalweg.files.kinds import require_kind
from thalweg.files.plan_document import InstanceEntry, PlanDocument
from thalweg.files.validation import as_written, validate
from thalweg.model import Estimate, Placement, Plan, Reason, Violation


def read_plan(data: object) -> Plan:
    """The plan that plain data describes; raises `InvalidInput` with all its defects."""
    require_kind(data, "plan")
    verdict = validate(PlanDocument, data)
    defects = Defects()
    if verdict.defects:
        defects.absorb(InvalidInput(verdict.defects))
    document = verdict.document
    if document is not None:
        _check_verdict(defects, document)
        _check_placement(defects, document)
    try:
        defects.raise_if_any()
    except InvalidInput as error:
        raise as_written(error, data) from None
    return _plan(document)  # type: ignore[arg-type]


def _check_verdict(defects: Defects, document: PlanDocument) -> None:
    count = len(document.violations)
    agrees = document.feasible == (count == 0)
    rule = (
        "true, as no constraint is violated" if count == 0 else "false, as constraints are violated"
    )
    hint = "" if count == 0 else f"violations lists {count}"
    defects.require(agrees, "feasible", document.feasible, rule, hint)
    stated = getattr(document.estimate, document.objective_name, None)
    if stated is not None:
        rule = f"the {document.objective_name} of the estimate, {stated:g}"
        defects.require(document.objective == stated, "objective", document.objective, rule)


def _check_placement(defects: Defects, document: PlanDocument) -> None:
    """Nobody runs twice for the same events, and every row agrees with the rest of the plan."""
    placed = dict.fromkeys(row.operator for row in document.placement)
    defects.require(bool(placed), "placement", "no instances", "at least one instance")
    for position, reason in enumerate(document.reasons):
        if reason.operator not in placed:
            path, rule = f"reasons[{position}].operator", "an operator of the placement"
            defects.add(path, reason.operator, rule, nearest(reason.operator, placed))
    why = {reason.operator: reason.why for reason in document.reasons}
    first: dict[tuple[str, str | None], int] = {}
    tiers: dict[str, tuple[int, str]] = {}
    for position, row in enumerate(document.placement):
        path = f"placement[{position}]"
        key = (row.operator, row.origin)
        if key in first:
            shown = row.operator if row.origin is None else f"{row.operator} for {row.origin}"
            hint = f"placement[{first[key]}] is the same"
            defects.add(path, shown, "one instance of an operator for each origin", hint)
        first.setdefault(key, position)
        defects.require(
            row.node.partition("/")[0] == row.site,
            f"{path}.site",
            row.site,
            f"the site of the node {row.node}",
        )
        at, tier = tiers.setdefault(row.site, (position, row.tier))
        rule, hint = f"{tier}, as the site has one tier", f"placement[{at}] says so"
        defects.require(row.tier == tier, f"{path}.tier", row.tier, rule, hint)
        told = why.get(row.operator, "")
        rule = "the reason that is given under reasons" if told else "no reason without reasons"
        defects.require(row.why == told, f"{path}.why", row.why, rule)


def _plan(document: PlanDocument) -> Plan:
    return Plan(
        application=document.application,
        network=document.network,
        strategy=document.strategy,
        placement=_placement(document.placement),
        hosts={row.node: (row.site, row.tier) for row in document.placement},
        objective_name=document.objective_name,
        objective=document.objective,
        estimate=Estimate(**dict(document.estimate)),
        violations=tuple(
            Violation(**{**dict(entry), "operators": tuple(entry.operators)})
            for entry in document.violations
        ),
        reasons=tuple(Reason(**dict(entry)) for entry in document.reasons),
        seconds=document.seconds,
        candidates=document.candidates,
        gap=document.gap,
    )


def _placement(rows: list[InstanceEntry]) -> Placement:
    operators = list(dict.fromkeys(row.operator for row in rows))
    nodes = list(dict.fromkeys(row.node for row in rows))
    origins = _origin_order(rows)
    at_operator = {name: k for k, name in enumerate(operators)}
    at_node = {name: k for k, name in enumerate(nodes)}
    at_origin: dict[str | None, int] = {name: k for k, name in enumerate(origins)}
    return Placement(
        operator_names=tuple(operators),
        node_names=tuple(nodes),
        origin_names=tuple(origins),
        operator=np.array([at_operator[row.operator] for row in rows], dtype=np.int32),
        node=np.array([at_node[row.node] for row in rows], dtype=np.int32),
        origin=np.array([at_origin.get(row.origin, -1) for row in rows], dtype=np.int32),
    )


def _origin_order(rows: list[InstanceEntry]) -> list[str]:
    """An order of origins in which the rows of every operator ascend, as a placement keeps them.

    Without it, the rows of a plan would change places from one saving to the next.
    """
    order: TopologicalSorter[str] = TopologicalSorter()
    before: InstanceEntry | None = None
    for row in rows:
        if row.origin is not None:
            order.add(row.origin)
            if before is not None and before.origin is not None and before.operator == row.operator:
                order.add(row.origin, before.origin)
        before = row
    try:
        return list(order.static_order())
    except CycleError:  # Rows in an order of somebody's own.
        return list(dict.fromkeys(row.origin for row in rows if row.origin is not None))
