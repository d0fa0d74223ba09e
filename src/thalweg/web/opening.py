"""From files and folders to what a page is about."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thalweg.errors import Defect, Defects, InvalidInput
from thalweg.files.load import load_any, load_workload
from thalweg.model import Application, Network, Plan, Workload
from thalweg.planning import plan as find_plan

if TYPE_CHECKING:
    import pyarrow as pa

    from thalweg.web.subject import Subject


@dataclass
class _Case:
    """The files of one problem, as far as they were named."""

    application: Application | None = None
    network: Network | None = None
    plan: Plan | None = None
    workload: Workload | None = None
    steps: pa.Table | None = None

    @property
    def is_empty(self) -> bool:
        return all(getattr(self, name) is None for name in vars(self))


def open_subjects(paths: Sequence[Path | str], *, strategy: str | None = None) -> list[Subject]:
    """What is to be seen at these places, one subject for each folder or table of results.

    Files of an application, a network, a plan, a workload and the steps of a schedule belong
    together: they are one subject. Without a plan, `strategy` makes one.

    Raises:
        InvalidInput: for every place that cannot be shown.
    """
    defects, case = Defects(), _Case()
    subjects: list[Subject] = []
    for place in map(Path, paths):
        if not place.exists():
            rule = "an existing file or folder"
            defects.absorb(InvalidInput([Defect(file=str(place), path="", value=None, rule=rule)]))
            continue
        found = defects.attempt("", partial(_open_place, place, case))
        if found is not None:
            subjects.append(found)
    if not case.is_empty:
        planned = defects.attempt("", partial(_open_case, case, strategy))
        subjects += [] if planned is None else [planned]
    defects.require(bool(subjects) or bool(defects), "PATH", "nothing", "something to look at")
    defects.raise_if_any()
    return subjects


def _open_place(place: Path, case: _Case) -> Subject | None:
    """The subject of a place; None where it is a file of the case, which then has it."""
    from thalweg.web.subjects.city import CitySubject, is_city
    from thalweg.web.subjects.results import ResultsSubject

    if place.is_dir() and not (place / "sites.parquet").is_file():
        if (place / "run.json").is_file():
            from thalweg.web.subjects.run import RunSubject

            return RunSubject(place)
        if is_city(place):
            return CitySubject(place)
        from thalweg.web.subjects.simulation import SimulationSubject, is_simulation

        return SimulationSubject(place) if is_simulation(place) else ResultsSubject(place)
    if place.suffix == ".html":
        return CitySubject(place)
    if place.suffix == ".parquet":
        from thalweg.web.subjects.schedule import read_steps

        steps = read_steps(place)
        if steps is not None:
            _add(case, "steps", steps, place)
            return None
        with suppress(InvalidInput):
            _add(case, "workload", load_workload(place), place)
            return None
        return ResultsSubject(place)
    found = load_any(place)
    _add(case, type(found).__name__.lower(), found, place)
    return None


def _add(case: _Case, name: str, found: Any, place: Path) -> None:
    if getattr(case, name) is not None:
        rule = f"one file with the {name} on a page"
        raise InvalidInput([Defect(file=str(place), path="", value="another", rule=rule)])
    setattr(case, name, found)


def _open_case(case: _Case, strategy: str | None) -> Subject:
    from thalweg.web.subjects.plan import PlanSubject

    defects = Defects()
    for name in ("application", "network"):
        there = getattr(case, name) is not None
        defects.require(there, "PATH", "none", f"a file with the {name}, too")
    defects.raise_if_any()
    application, network = case.application, case.network
    assert application is not None and network is not None  # noqa: S101 - told above
    if case.steps is not None:
        from thalweg.web.subjects.schedule import ScheduleSubject

        return ScheduleSubject(application, network, case.steps, case.workload)
    plan = case.plan
    if plan is None:
        plan = find_plan(application, network, strategy)
    return PlanSubject(application, network, plan)
