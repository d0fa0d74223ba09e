"""`thalweg schema`: what may stand in a file?"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from thalweg.cli.output import print_json


class Kind(StrEnum):
    """What a file describes."""

    APPLICATION = "application"
    NETWORK = "network"
    PLAN = "plan"
    WORKLOAD = "workload"
    CHANGES = "changes"


def schema(
    kind: Annotated[Kind, typer.Argument(help="Which sort of file.")],
) -> None:
    """Print the JSON Schema of a file, for editors and other tools."""
    from thalweg.files.schema import json_schema

    print_json(json_schema(kind.value))
