"""The rules for files as JSON Schema, for editors and other programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from thalweg.errors import Defect, InvalidInput, nearest

if TYPE_CHECKING:
    from thalweg.files.validation import Entry

_KINDS = ("application", "network", "plan", "workload", "changes")


def json_schema(
    kind: Literal["application", "network", "plan", "workload", "changes"],
) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of an application, network, plan, workload or changes.

    Loading knows more rules than a schema can say: names that lead nowhere, cycles, sites that no
    link reaches.

    >>> json_schema("application")["required"]
    ['thalweg', 'application', 'operators', 'streams']
    """
    from thalweg.files.schema_generator import Generator

    schema = _document(kind).model_json_schema(schema_generator=Generator)
    return {"$schema": Generator.schema_dialect, **schema}


def _document(kind: str) -> type[Entry]:
    if kind == "application":
        from thalweg.files.application_document import ApplicationDocument

        return ApplicationDocument
    if kind == "network":
        from thalweg.files.network_document import NetworkDocument

        return NetworkDocument
    if kind == "plan":
        from thalweg.files.plan_document import PlanDocument

        return PlanDocument
    if kind == "workload":
        from thalweg.files.workload_document import WorkloadDocument

        return WorkloadDocument
    if kind == "changes":
        from thalweg.files.changes_document import ChangesDocument

        return ChangesDocument
    rule, hint = "application, network, plan, workload or changes", nearest(str(kind), _KINDS)
    raise InvalidInput([Defect(path="kind", value=kind, rule=rule, hint=hint)])
