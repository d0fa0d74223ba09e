"""The files of a command, loaded together so that the problems of all are told at once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

if TYPE_CHECKING:
    from thalweg.model import Application, Network, Problem

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


def pose(application: Path, app: Application, net: Network) -> Problem:
    """The problem of putting the application on the network; pins are checked against it."""
    from thalweg.errors import InvalidInput
    from thalweg.files.load import find_lines
    from thalweg.model import Problem

    try:
        return Problem(application=app, network=net)
    except InvalidInput as error:
        raise find_lines(error, application) from None
