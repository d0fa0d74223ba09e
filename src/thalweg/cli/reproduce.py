"""`thalweg reproduce`: published evaluations, run again."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from thalweg.cli.inputs import name_options
from thalweg.cli.options import on_option, output_option
from thalweg.cli.output import Format, FormatOption, counting, print_json, print_table, say

if TYPE_CHECKING:
    from thalweg.experiments.reproduction import Reproduction

reproduce = typer.Typer(
    help="Run a published evaluation again, in parallel on Spark.", no_args_is_help=True
)

_OPTIONS = {
    "into": "--output",
    "limit": "--limit",
    "master": "--on",
    "repetitions": "--seeds",
    "seeds": "--seeds",
}

OutputOption = Annotated[
    Path | None, output_option("results", "; the next call goes on in this folder")
]
OnOption = Annotated[str | None, on_option("this machine's cores")]
QuickOption = Annotated[
    bool, typer.Option("--quick", help="Few seeds: shows that it works, in about a minute.")
]
RestartOption = Annotated[
    bool, typer.Option("--restart", help="Discard what an earlier run left in the folder.")
]


def _seeds_option(otherwise: str) -> Any:
    help_text = f"Seeds 0 to N - 1; else {otherwise} with --quick."
    return typer.Option("--seeds", metavar="N", min=1, max=10_000, help=help_text)


@reproduce.callback()
def _reproduce() -> None:
    """Run a published evaluation again, in parallel on Spark."""


@reproduce.command()
def tsoo(
    output: OutputOption = None,
    on: OnOption = None,
    quick: QuickOption = False,
    seeds: Annotated[int | None, _seeds_option("20, or 2")] = None,
    restart: RestartOption = False,
    format: FormatOption = Format.TABLE,  # noqa: A002 - the name of the option
) -> None:
    """Adaptive scheduling between fog and cloud: Ntumba et al. 2024, Figures 8-12."""
    from thalweg.experiments.tsoo.reproduce import reproduce as run

    folder = output or Path("results") / ("tsoo-quick" if quick else "tsoo")
    with counting("tsoo") as on_progress:
        found = name_options(
            partial(
                run,
                folder,
                master=on,
                quick=quick,
                seeds=seeds,
                restart=restart,
                on_progress=on_progress,
            ),
            _OPTIONS,
        )
    _tell(found, "decisions", format)


@reproduce.command()
def aels(
    output: OutputOption = None,
    on: OnOption = None,
    quick: QuickOption = False,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit", metavar="N", min=1, help="About how many runs; else all 3,510, or 54."
        ),
    ] = None,
    restart: RestartOption = False,
    format: FormatOption = Format.TABLE,  # noqa: A002 - the name of the option
) -> None:
    """Latency-aware placement on large networks: da Silva Veith et al., Figures 5-10."""
    from thalweg.experiments.aels.reproduce import reproduce as run

    folder = output or Path("results") / ("aels-quick" if quick else "aels")
    with counting("aels") as on_progress:
        found = name_options(
            partial(
                run,
                folder,
                master=on,
                quick=quick,
                limit=limit,
                restart=restart,
                on_progress=on_progress,
            ),
            _OPTIONS,
        )
    _tell(found, "plans", format)


@reproduce.command()
def migcep(
    output: OutputOption = None,
    on: OnOption = None,
    quick: QuickOption = False,
    seeds: Annotated[int | None, _seeds_option("5, or 1")] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            metavar="FOLDER",
            help="Folder with SUMO's tables, for workers too; else vehicles are made.",
        ),
    ] = None,
    restart: RestartOption = False,
    format: FormatOption = Format.TABLE,  # noqa: A002 - the name of the option
) -> None:
    """Operators that move with their users: Ottenwälder et al. 2013, Figures 9 and 10."""
    from thalweg.experiments.migcep.reproduce import reproduce as run

    folder = output or Path("results") / ("migcep-quick" if quick else "migcep")
    with counting("migcep") as on_progress:
        found = name_options(
            partial(
                run,
                folder,
                data=data,
                master=on,
                quick=quick,
                repetitions=seeds,
                restart=restart,
                on_progress=on_progress,
            ),
            _OPTIONS,
        )
    _tell(found, "drives", format)


def _tell(found: Reproduction, rows: str, format: Format) -> None:  # noqa: A002
    """Print what came out; exit with 1 where something did not."""
    from thalweg.experiments.claims import claims_table

    if format is Format.JSON:
        print_json(found.to_dict())
    else:
        kept = f", {found.resumed} of them kept from an earlier call" if found.resumed else ""
        title = f"{found.points} points{kept}; {found.rows:,} {rows} in {found.seconds:.1f} s"
        print_table(*claims_table(found.claims), title=title)
    for path in found.files:
        say(f"wrote {path}")
    for failure in found.failures:
        say(f"failed: {failure}")
    if found.failures:
        raise typer.Exit(1)
