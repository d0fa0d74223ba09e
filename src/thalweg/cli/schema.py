"""`thalweg schema`: what may stand in a file, and what a command prints."""

from __future__ import annotations

from typing import Annotated

import typer

from thalweg.cli.completion import complete_schema
from thalweg.cli.output import Format, FormatOption, print_plain


def schema(
    kind: Annotated[
        str,
        typer.Argument(
            metavar="KIND",
            help="A file (application, network, plan, workload, changes) or a document of "
            "`--format json` (report, status, …); the reference page lists them all.",
            autocompletion=complete_schema,
        ),
    ],
    format: FormatOption = Format.JSON,  # noqa: A002 - the name of the option
) -> None:
    """Print the JSON Schema of a file, or of what a command prints as JSON."""
    from thalweg.cli.documents import document_schema

    del format  # A schema is JSON, whatever is asked for.
    print_plain(document_schema(kind))
