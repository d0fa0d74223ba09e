"""What a workload refers to: sources of an application, sites of a network."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from thalweg.errors import Defect, Defects, InvalidInput, nearest
from thalweg.files.validation import Hints, list_of
from thalweg.files.workload_table import first_row, is_csv, is_table, read_table_contents
from thalweg.model import Application, Network, Problem
from thalweg.model.workload import ALL_SITES, Workload

_BIRTH = re.compile(r"births\[([0-9]+)\]\.(source|site)")


def require_workload(workload: Workload, application: Application, network: Network) -> Workload:
    """The same workload with every site of every source it names, in the order of births.

    What is born in all sites together is spread evenly over them; a site that the workload does
    not name has rate 0. Sources that it does not name keep the rate of the application.

    Raises:
        InvalidInput: for every source and site that is none, with the nearest name.
    """
    births = Problem(application=application, network=network).births
    places: dict[str, dict[str, int]] = {}
    for operator, site in zip(births.operator.tolist(), births.site.tolist(), strict=True):
        name = application.operators[operator].name
        places.setdefault(name, {})[network.site_names[site]] = 0
    defects = Defects()
    hints = Hints()
    told: set[str] = set()
    for position, (source, site) in enumerate(workload.births):
        if source not in places:
            if source not in told:
                _tell_source(defects, f"births[{position}].source", source, application, places)
            told.add(source)
        elif site != ALL_SITES and site not in places[source]:
            rule = f"a site of {network.name} where {source} is born"
            hint = hints.nearest(site, places[source])
            if site in network.site_index:
                hint = f"{site} is a site, but the pin of {source} leaves it out"
            defects.add(f"births[{position}].site", site, rule, hint)
    defects.raise_if_any()
    return _spread(workload, places)


def locate_births(
    error: InvalidInput, path: str | os.PathLike[str], workload: Workload
) -> InvalidInput:
    """The problems that `require_workload` tells, with the lines of the file they come from."""
    if is_table(path):
        contents = read_table_contents(path)
        found = (_in_table(defect, workload, contents, path) for defect in error.defects)
        return InvalidInput(found).in_file(os.fspath(path))
    from thalweg.files.text import read_document

    document = read_document(path)
    steps = list_of(document.data, "steps") or []
    found = (_in_steps(defect, workload, steps) for defect in error.defects)
    return InvalidInput(found).in_file(document.file, document.line_of)


def _tell_source(
    defects: Defects,
    path: str,
    source: str,
    application: Application,
    places: Mapping[str, Mapping[str, int]],
) -> None:
    hint = nearest(source, places)
    if source in application.index:
        kind = application.operators[application.index[source]].kind
        hint = f"it is a {kind}; sources are {', '.join(list(places)[:5])}"
    defects.add(path, source, f"a source of {application.name}", hint)


def _spread(workload: Workload, places: Mapping[str, Mapping[str, int]]) -> Workload:
    named = {source for source, _ in workload.births}
    births = [(a, b) for a, sites in places.items() if a in named for b in sites]
    column = {pair: position for position, pair in enumerate(births)}
    rate = np.zeros((len(workload), len(births)))
    single = [k for k, (_, site) in enumerate(workload.births) if site != ALL_SITES]
    rate[:, [column[workload.births[k]] for k in single]] = workload.rate[:, single]
    for k, (source, site) in enumerate(workload.births):
        if site == ALL_SITES:
            into = [column[source, place] for place in places[source]]
            rate[:, into] += workload.rate[:, [k]] / len(into)
    return replace(workload, births=tuple(births), rate=rate)


def _pair(defect: Defect, workload: Workload) -> tuple[str, str, str] | None:
    """The source, the site, and which of the two a defect is about; None if about neither."""
    found = _BIRTH.fullmatch(defect.path)
    return (*workload.births[int(found[1])], found[2]) if found else None


def _in_table(
    defect: Defect, workload: Workload, contents: bytes, path: str | os.PathLike[str]
) -> Defect:
    if (pair := _pair(defect, workload)) is None:
        return defect
    source, site, column = pair
    row = first_row(contents, path, source, site)
    if is_csv(path):
        return replace(defect, path=column, line=row)
    return replace(defect, path=f"{column}[{row}]")


def _in_steps(defect: Defect, workload: Workload, steps: list[Any]) -> Defect:
    if (pair := _pair(defect, workload)) is None:
        return defect
    source, site, which = pair
    for position, step in enumerate(steps):
        by_site = step["rates"].get(source)
        path = f"steps[{position}].rates.{source}"
        if by_site is not None and which == "source":
            return replace(defect, path=path)
        if isinstance(by_site, dict) and site in by_site:
            return replace(defect, path=f"{path}.{site}")
    return defect
