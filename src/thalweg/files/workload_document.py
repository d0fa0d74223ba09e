"""A workload as it stands in a file: the fields, what each needs, and what it means."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, ClassVar

from pydantic import ConfigDict, Field

from thalweg.errors import Defects
from thalweg.files.fields import FieldKind, Name, Version, refuse
from thalweg.files.quantities import Duration, quantity
from thalweg.files.validation import Entry
from thalweg.model.names import LONGEST_NAME, NAME_RULE, is_name, name_hint
from thalweg.model.workload import ALL_SITES
from thalweg.units import EVENT_RATE, parse_quantity

MOST_RATES = 10_000_000
"""Moments times pairs of source and site, in a workload that is read: some 80 MB of figures."""

Rates = dict[tuple[str, str], float]

_RULE = (
    "a mapping of sources; each has an event rate for all its sites together, or a mapping of "
    "sites to event rates"
)
_SOURCE_RULE = f"{EVENT_RATE.rule}, or a mapping of sites to event rates"
_SITE_RULE = f'the name of a site, or "{ALL_SITES}" for all sites together'


def _rates() -> FieldKind:
    def read(value: object) -> Rates:
        if not isinstance(value, dict):
            hint = "write rates: {} where nothing is born" if value is None else _EXAMPLE
            refuse(value, _RULE, hint)
        defects = Defects()
        found: Rates = {}
        for source, by_site in value.items():
            defects.require(is_name(source), source, source, NAME_RULE, name_hint(source))
            found |= _read_source(defects, source, by_site)
        defects.raise_if_any()
        return found

    return FieldKind(read, _RULE, _schema())


_EXAMPLE = "write rates: {rides: {fog-0: 1200 events/s, fog-1: 800 events/s}}"


def _read_source(defects: Defects, source: str, by_site: object) -> Rates:
    if not isinstance(by_site, dict):
        if isinstance(by_site, list) or by_site is None:
            defects.add(source, by_site, _SOURCE_RULE)
            return {}
        rate = defects.attempt(source, lambda: parse_quantity(by_site, EVENT_RATE))
        return {(source, ALL_SITES): rate or 0.0}
    if not by_site:
        defects.add(source, by_site, _SOURCE_RULE, "name at least one site")
    found: Rates = {}
    for site, written in by_site.items():
        path = f"{source}.{site}"
        defects.require(site == ALL_SITES or is_name(site), path, site, _SITE_RULE, name_hint(site))
        rate = defects.attempt(path, partial(parse_quantity, written, EVENT_RATE))
        found[source, site] = rate or 0.0
    return found


def _schema() -> dict[str, Any]:
    rate = dict(quantity(EVENT_RATE).schema)
    name = rf"[A-Za-z0-9](?!.*\.\.)[A-Za-z0-9_.-]{{0,{LONGEST_NAME - 1}}}"
    sites = {
        "type": "object",
        "patternProperties": {rf"^({name}|\{ALL_SITES})$": rate},
        "additionalProperties": False,
        "minProperties": 1,
    }
    return {
        "type": "object",
        "patternProperties": {f"^{name}$": {"anyOf": [rate, sites]}},
        "additionalProperties": False,
    }


class StepEntry(Entry):
    """What is born from a moment on, until the next step."""

    model_config = ConfigDict(title="Step")
    noun: ClassVar[str] = "a step"
    plural: ClassVar[str] = "steps"

    at: Duration = Field(description="From this moment on; later than the step before.")
    rates: Annotated[Rates, _rates()] = Field(
        description="Events born, by source and site; 0 for what only other steps name."
    )


class WorkloadDocument(Entry):
    """A workload: how many events are born where, from which moment on."""

    model_config = ConfigDict(title="Thalweg workload")
    noun: ClassVar[str] = "a workload"

    thalweg: Version = Field(description="The version of the format.")
    workload: Name = Field(description="The name of the workload.")
    steps: list[StepEntry] = Field(description="The rates and when they change; at least one.")
