"""`thalweg metrics`: what Prometheus and Grafana need to watch runs."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from thalweg.cli.output import Format, FormatOption, print_json


class Shipped(StrEnum):
    """A file for Prometheus or Grafana."""

    RULES = "rules"
    DASHBOARD = "dashboard"
    PROMETHEUS = "prometheus"


def metrics(
    file: Annotated[
        Shipped,
        typer.Argument(help="Alert rules; a dashboard for Grafana; an example of prometheus.yml."),
    ],
    format: FormatOption = Format.TABLE,  # noqa: A002 - the name of the option
) -> None:
    """Print a file for Prometheus or Grafana; `thalweg run --metrics PORT` serves the metrics."""
    from thalweg.web.monitoring import read_shipped

    text = read_shipped(file.value)
    if format is Format.JSON:
        print_json({"file": file.value, "text": text})
    else:
        typer.echo(text, nl=False)
