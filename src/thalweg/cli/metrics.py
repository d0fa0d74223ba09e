"""`thalweg metrics`: what Prometheus and Grafana need to watch runs."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer


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
) -> None:
    """Print a file for Prometheus or Grafana; `thalweg run --metrics PORT` serves the metrics."""
    from thalweg.web.monitoring import read_shipped

    typer.echo(read_shipped(file.value), nl=False)
