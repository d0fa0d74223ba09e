"""The files of a command, loaded together so that the problems of all are told at once."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, cast

import typer

if TYPE_CHECKING:
    from thalweg.model import Application, Network, Problem, Workload

Made = TypeVar("Made")

# What `thalweg.plan` takes besides options of the strategy.
_ARGUMENTS = frozenset(("application", "network", "strategy", "rates", "current"))

ApplicationArgument = Annotated[
    Path, typer.Argument(metavar="APP", help="Application file (YAML or JSON).")
]
NetworkArgument = Annotated[
    Path, typer.Argument(metavar="NETWORK", help="Network file (YAML or JSON) or Parquet folder.")
]


def load_problem(application: Path, network: Path) -> Problem:
    """The problem that the two files pose; raises the problems of both files together."""
    from thalweg.errors import Defects
    from thalweg.files.load import load_application, load_network

    defects = Defects()
    app = defects.attempt("", lambda: load_application(application))
    net = defects.attempt("", lambda: load_network(network))
    defects.raise_if_any()
    return pose(application, cast("Application", app), cast("Network", net))


def load_case(
    application: Path, network: Path, workload: Path | None
) -> tuple[Problem, Workload | None]:
    """The problem and the workload on it; raises the problems of all files together.

    The workload has a rate for every site of every source that it names.
    """
    from thalweg.errors import Defects
    from thalweg.files.load import load_workload

    defects = Defects()
    posed = defects.attempt("", lambda: load_problem(application, network))
    load = None if workload is None else defects.attempt("", lambda: load_workload(workload))
    defects.raise_if_any()
    problem = cast("Problem", posed)
    if workload is None or load is None:
        return problem, None
    return problem, require_births(workload, load, problem)


def require_births(path: Path, workload: Workload, problem: Problem) -> Workload:
    """The workload held against what it was made for, with the lines of what does not fit."""
    from thalweg.errors import InvalidInput
    from thalweg.files.workload_references import locate_births, require_workload

    try:
        return require_workload(workload, problem.application, problem.network)
    except InvalidInput as error:
        raise locate_births(error, path, workload) from None


def pose(application: Path, app: Application, net: Network) -> Problem:
    """The problem of putting the application on the network; pins are checked against it."""
    from thalweg.errors import InvalidInput
    from thalweg.files.load import find_lines
    from thalweg.model import Problem

    try:
        return Problem(application=app, network=net)
    except InvalidInput as error:
        raise find_lines(error, application) from None


def read_duration(text: str, option: str) -> float:
    """A duration such as `30 s`, `2 min` or `30`, in seconds: a bare number means seconds.

    >>> read_duration("2 min", "--for"), read_duration("30", "--for")
    (120.0, 30.0)
    """
    from dataclasses import replace

    from thalweg.errors import InvalidInput
    from thalweg.units import DURATION, parse_quantity

    try:
        return parse_quantity(with_unit(text), DURATION, path=option)
    except InvalidInput as error:
        rule = 'a duration >= 0, such as "30 s" or 30'
        raise InvalidInput(replace(d, value=text, rule=rule) for d in error.defects) from None


def with_unit(text: str) -> str:
    """The duration with its unit, where it is a bare number of seconds."""
    try:
        number = float(text)
    except ValueError:
        return text
    return f"{number!r} s" if math.isfinite(number) else text


def name_options(make: Callable[[], Made], names: Mapping[str, str]) -> Made:
    """What `make` returns; its problems name the options that its arguments came from."""
    from dataclasses import replace

    from thalweg.errors import InvalidInput

    try:
        return make()
    except InvalidInput as error:
        raise InvalidInput(
            replace(defect, path=names.get(defect.path, defect.path)) for defect in error.defects
        ) from None


def read_options(pairs: list[str]) -> dict[str, Any]:
    """NAME=VALUE pairs; a value is read as JSON where it is JSON, else as text."""
    from thalweg.errors import Defects

    defects = Defects()
    options: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        name = name.replace("-", "_")
        defects.require(bool(equals and name), "--option", pair, "NAME=VALUE")
        taken = name in _ARGUMENTS or name in options
        rule = "the name of an option of the strategy, once"
        defects.require(not taken, "--option", pair, rule)
        try:
            options[name] = json.loads(value)
        except (ValueError, RecursionError):
            options[name] = value
    defects.raise_if_any()
    return options
