"""Options that several commands have: one name, one type and one meaning each."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from thalweg.cli.completion import complete_pipeline, complete_strategies, complete_strategy

DURATION = "DURATION"
"""How a duration is shown in help: a number with a unit, or a number of seconds."""

DRAWING = ".png, .svg or .pdf"


class Forecast(StrEnum):
    """How rates are forecast."""

    NONE = "none"
    LAST = "last"
    SEASONAL = "seasonal"
    SMOOTHING = "smoothing"


def output_option(what: str, more: str = "") -> Any:
    """`--output`: the file or folder where a result is written."""
    return typer.Option("--output", "-o", metavar="PATH", help=f"Write {what} here{more}.")


def plot_option(endings: str = DRAWING) -> Any:
    """`--plot`: the file for a drawing of the result."""
    return typer.Option(
        "--plot", metavar="FILE", help=f"Draw the result into this file: {endings}."
    )


def for_option(what: str) -> Any:
    """`--for`: how long something lasts."""
    return typer.Option("--for", metavar=DURATION, help=f"How long {what}.")


def interval_option(what: str) -> Any:
    """`--interval`: the time from one observation to the next."""
    return typer.Option("--interval", metavar=DURATION, help=f"Time from one {what} to the next.")


def strategy_option(what: str = "Name of a strategy", *, several: bool = False) -> Any:
    """`--strategy`: which strategy plans, or which several do."""
    return typer.Option(
        "--strategy",
        "-s",
        metavar="A,B,C" if several else "NAME",
        help=f"{what}; see `thalweg strategies`.",
        autocompletion=complete_strategies if several else complete_strategy,
    )


def on_option(otherwise: str) -> Any:
    """`--on`: the Spark that does the work."""
    return typer.Option(
        "--on",
        metavar="ADDRESS",
        help=f"Spark master or Connect address, such as local[2]; else {otherwise}.",
    )


def vary_option(what: str) -> Any:
    """`--vary`: a parameter that is swept, with its values."""
    more = "rates=1,2,4, rates=1..4, rates=0.5..2:0.5"
    return typer.Option("--vary", metavar="NAME=VALUES", help=f"Sweep {what}: {more}.")


def also_option(metavar: str, what: str) -> Any:
    """`--also`: another application on the same network."""
    return typer.Option("--also", metavar=metavar, help=f"Another application {what}; repeatable.")


def forecast_option(kinds: str) -> Any:
    """`--forecast`: which forecast of the rates is planned with."""
    return typer.Option("--forecast", help=f"Forecast of the rates: {kinds}.")


PipelineArgument = Annotated[
    str,
    typer.Argument(
        metavar="PIPELINE",
        help="Name of an example, or package.module:attribute.",
        autocompletion=complete_pipeline,
    ),
]
RunFolderArgument = Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder of the run.")]
StrategyOption = Annotated[str, strategy_option()]
FamilyStrategyOption = Annotated[
    str | None,
    strategy_option(
        "Name of a strategy, else that of the family: atsoo-both-ways for applications with limits "
        "whose streams can be cut between fog and cloud, aels-rp-la-free for others"
    ),
]
OptionOption = Annotated[
    list[str] | None,
    typer.Option("--option", metavar="NAME=VALUE", help="Option of the strategy; repeatable."),
]
WorkloadOption = Annotated[
    Path | None,
    typer.Option(
        "--workload", "-w", metavar="FILE", help="Workload file (YAML, JSON, CSV or Parquet)."
    ),
]
PlotOption = Annotated[Path | None, plot_option()]
HorizonOption = Annotated[
    int, typer.Option("--horizon", metavar="STEPS", help="Steps to look ahead, at most.")
]
SeedOption = Annotated[int, typer.Option("--seed", help="Seed of all random numbers.")]
VaryOption = Annotated[list[str] | None, vary_option("rates (a factor)")]
