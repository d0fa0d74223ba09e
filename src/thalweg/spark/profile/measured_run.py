"""The figures that a run has measured, as a profile: read from its folder, written into a file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, FiniteFloat, ValidationError

from thalweg.errors import Defect, InvalidInput
from thalweg.model import Application
from thalweg.spark.profile.fit import rounded

FIGURES = ("event_size", "selectivity", "compression", "cpu_per_event", "cpu_per_byte")
"""The figures that a run measures, by the names that operators have for them."""


class _Figure(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True)

    value: FiniteFloat
    low: FiniteFloat
    high: FiniteFloat
    count: FiniteFloat = 0.0


@dataclass(frozen=True, kw_only=True)
class MeasuredRun:
    """An application with what a run has measured of it."""

    declared: Application
    folder: Path
    figures: Mapping[tuple[str, str], _Figure]
    """By operator and figure."""

    @property
    def application(self) -> Application:
        """The application with measured figures."""
        operators = []
        for operator in self.declared.operators:
            own = {
                figure: rounded(self.figures[operator.name, figure].value)
                for figure in FIGURES
                if (operator.name, figure) in self.figures
            }
            operators.append(replace(operator, **own))  # type: ignore[arg-type]
        return replace(self.declared, operators=operators)

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        return {
            "thalweg": 1,
            "application": self.declared.name,
            "run": str(self.folder),
            "figures": [
                {
                    "operator": operator,
                    "figure": figure,
                    "declared": self._declared(operator, figure),
                    "measured": found.value,
                    "low": found.low,
                    "high": found.high,
                    "count": found.count,
                }
                for (operator, figure), found in self.figures.items()
            ],
        }

    def _declared(self, operator: str, figure: str) -> float:
        return float(getattr(self.declared.operator(operator), figure) or 0.0)


def read_measured(application: Application, folder: Path) -> MeasuredRun:
    """What the run in a folder has measured of an application.

    Raises:
        InvalidInput: where there is no run, it is of another application, or has measured nothing.
    """
    from thalweg.spark.deployment.folder import RunFolder

    status = RunFolder.of_run(folder).read_status()
    told = status.get("characteristics")
    if not isinstance(told, Mapping) or not told:
        hint = "figures come with the first rows; a run of an earlier version has none"
        raise InvalidInput(
            [Defect(path="FOLDER", value=str(folder), rule="a run that has measured", hint=hint)]
        )
    strangers = sorted(set(map(str, told)) - set(application.index))
    if strangers:
        rule = f"a run of {application.name}"
        hint = f"it has measured {', '.join(strangers[:3])}"
        raise InvalidInput([Defect(path="FOLDER", value=str(folder), rule=rule, hint=hint)])
    figures = {
        (operator.name, figure): _figure(folder, told[operator.name][figure])
        for operator in application.operators
        if isinstance(told.get(operator.name), Mapping)
        for figure in FIGURES
        if figure in told[operator.name]
    }
    return MeasuredRun(declared=application, folder=folder, figures=figures)


def _figure(folder: Path, told: object) -> _Figure:
    try:
        return _Figure.model_validate(told)
    except ValidationError:
        rule = "a figure as a run writes it: value, low, high"
        raise InvalidInput(
            [
                Defect(
                    file=str(folder / "status.json"), path="characteristics", value=told, rule=rule
                )
            ]
        ) from None


def figure_rows(measured: MeasuredRun) -> list[list[str]]:
    """A row for every figure: declared, measured, and the interval."""
    return [
        [
            str(row["operator"]),
            str(row["figure"]),
            *(f"{row[name]:.4g}" for name in ("declared", "measured", "low", "high")),
        ]
        for row in measured.to_dict()["figures"]
    ]


def save_measured(measured: MeasuredRun, path: str | os.PathLike[str]) -> None:
    """Save the application with measured figures; in YAML, with their intervals as comments.

    Raises:
        InvalidInput: where the place does not allow it.
    """
    from thalweg.files.save import save

    save(measured.application, path)
    target = Path(path)
    if target.suffix.lower() == ".json":
        return
    with target.open("a", encoding="utf-8") as file:
        file.write(f"# Measured by the run in {measured.folder}.\n")
        for (operator, figure), found in measured.figures.items():
            file.write(f"# {operator}: {figure} {found.low:.4g} to {found.high:.4g}\n")


def with_figures(application: Application, profile: Application) -> Application:
    """The application with the figures of a profile of it.

    Raises:
        InvalidInput: where the profile is of another application.
    """
    edges = {(s.source, s.target) for s in application.streams}
    same = set(profile.index) == set(application.index) and edges == {
        (s.source, s.target) for s in profile.streams
    }
    if not same:
        rule = f"the operators and streams of {application.name}"
        hint = "`thalweg profile … --output FILE` writes such a file"
        raise InvalidInput([Defect(path="profile", value=profile.name, rule=rule, hint=hint)])
    names = (*FIGURES, "cpu_per_byte", "memory", "memory_factor", "state", "rate")
    operators = [
        replace(operator, **{n: getattr(profile.operator(operator.name), n) for n in names})
        for operator in application.operators
    ]
    return replace(application, operators=operators)
