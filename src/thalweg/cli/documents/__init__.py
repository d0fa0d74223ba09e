"""The shapes of the documents that `--format json` prints, and the schema of each."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

FILES = ("application", "network", "plan", "workload", "changes")
"""The documents that are files, too: `thalweg.files` knows their rules."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Where the shape of a document is declared, and which commands print it."""

    place: str
    commands: tuple[str, ...]


SHAPES = {
    "problems": Shape("common:Problems", ("every command, for bad input",)),
    "init": Shape("common:Init", ("init",)),
    "validation": Shape("common:Validation", ("validate",)),
    "strategies": Shape("common:Strategies", ("strategies",)),
    "coordinates": Shape("common:Coordinates", ("coordinates",)),
    "metrics": Shape("common:MetricsFile", ("metrics",)),
    "page": Shape("common:Page", ("serve",)),
    "plans": Shape("planning:Plans", ("plan --also",)),
    "schedule": Shape("planning:Schedule", ("schedule",)),
    "explanation": Shape("planning:Explanation", ("explain",)),
    "diff": Shape("planning:Diff", ("diff",)),
    "study": Shape("thalweg.study.documents:StudyDocument", ("compare",)),
    "simulation": Shape("simulation:Simulation", ("simulate",)),
    "simulations": Shape("simulation:Simulations", ("simulate --vary",)),
    "profile": Shape("profiles:Profile", ("profile",)),
    "measured": Shape("profiles:Measured", ("profile PIPELINE FOLDER",)),
    "outline": Shape("runs:Outline", ("run --dry-run",)),
    "report": Shape("runs:Report", ("run",)),
    "status": Shape("runs:Status", ("status",)),
    "health": Shape("runs:Health", ("doctor",)),
    "verification": Shape("runs:Verification", ("verify",)),
    "stop": Shape("runs:Stop", ("stop",)),
    "rollback": Shape("runs:Rollback", ("rollback",)),
    "demo": Shape("runs:Demo", ("demo",)),
    "demo-plan": Shape("runs:DemoPlan", ("demo --plan-only",)),
    "reproduction": Shape("common:Reproduction", ("reproduce",)),
    "mobility-trace": Shape("moving:Trace", ("mobility trace",)),
    "mobility-predict": Shape("moving:Predictions", ("mobility predict",)),
    "mobility-learn": Shape("moving:Learned", ("mobility learn",)),
    "mobility-plan": Shape("moving:MigrationPlans", ("mobility plan",)),
    "mobility-run": Shape("moving:CityRun", ("mobility run",)),
    "mobility-handover": Shape("moving:HandOver", ("mobility handover",)),
}
"""By the name of the document."""

KINDS = (*FILES, *SHAPES)
"""Everything that has a schema."""


def document_schema(kind: str) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a file or of what a command prints.

    >>> document_schema("diff")["required"]
    ['thalweg', 'moved', 'started', 'stopped', 'estimates']
    """
    from thalweg.errors import Defect, InvalidInput, nearest

    if kind in FILES:
        from thalweg.files.schema import json_schema

        return json_schema(kind)  # type: ignore[arg-type]
    if kind not in SHAPES:
        rule, hint = "a document with a schema", nearest(kind, KINDS)
        raise InvalidInput([Defect(path="KIND", value=kind, rule=rule, hint=hint)])
    from thalweg.cli.documents.schema import schema_of

    module, _, name = SHAPES[kind].place.partition(":")
    module = module if "." in module else f"thalweg.cli.documents.{module}"
    return schema_of(getattr(import_module(module), name))
