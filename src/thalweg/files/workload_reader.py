"""Reads a workload from plain data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from thalweg.errors import Defects, InvalidInput
from thalweg.files.kinds import require_kind
from thalweg.files.validation import list_of, validate
from thalweg.files.workload_document import MOST_RATES, WorkloadDocument
from thalweg.model.workload import Workload
from thalweg.units import DURATION, parse_quantity


def read_workload(data: object) -> Workload:
    """The workload that plain data describes; raises `InvalidInput` with all its defects."""
    require_kind(data, "workload")
    verdict = validate(WorkloadDocument, data)
    defects = Defects()
    if verdict.defects:
        defects.absorb(InvalidInput(verdict.defects))
    items = list_of(data, "steps")
    if items == []:
        defects.add("steps", [], "at least one step", "write - {at: 0 s, rates: {…}}")
    # Also of steps whose rates are defective.
    known = (k for k in range(len(items or [])) if verdict.is_sound("steps", k, "at"))
    _require_rising(defects, {k: items[k] for k in known} if items else {})
    document = verdict.document
    if document is not None:
        pairs = {pair for step in document.steps for pair in step.rates}
        require_few(defects, "steps", len(document.steps), len(pairs))
    defects.raise_if_any()
    document = cast(WorkloadDocument, document)
    return Workload.of({step.at: step.rates for step in document.steps}, name=document.workload)


def require_few(defects: Defects, path: str, moments: int, pairs: int) -> None:
    """Remember a defect where a workload would have more rates than memory is meant for."""
    defects.require(
        moments * pairs <= MOST_RATES,
        path,
        f"{moments} moments of {pairs} pairs of source and site",
        f"at most {MOST_RATES} rates (moments × pairs)",
    )


def _require_rising(defects: Defects, steps: dict[int, object]) -> None:
    """Every moment is after the one before, as far as moments are known."""
    last: tuple[float, str] | None = None
    for position, step in steps.items():
        if not isinstance(step, Mapping) or "at" not in step:
            continue
        moment = parse_quantity(step["at"], DURATION)
        if last is not None and moment <= last[0]:
            rule, hint = f"a moment after that of {last[1]}", "steps stand in order of time"
            defects.add(f"steps[{position}].at", step["at"], rule, hint)
        else:
            last = (moment, f"steps[{position}], {step['at']}")
