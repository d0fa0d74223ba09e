"""What a user sees: tables and JSON on standard output, words about it on standard error."""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from enum import StrEnum
from threading import Timer
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from thalweg.errors import InvalidInput
    from thalweg.model import Plan
    from thalweg.plan_summary import PlanSummary

_LISTED_VIOLATIONS = 10


class Format(StrEnum):
    """How a result is printed."""

    TABLE = "table"
    JSON = "json"


FormatOption = Annotated[
    Format, typer.Option("--format", help="Print a table for people or JSON for programs.")
]


def say(text: str) -> None:
    """Tell the user something that is not the result."""
    typer.echo(_harmless(text), err=True)


def tell(text: str) -> None:
    """Print a part of the result for people."""
    typer.echo(_harmless(text))


def tell_wrapped(text: str) -> None:
    """Print lines in lines that fit, what is too long for one indented below; nothing if empty."""
    from thalweg.model.table import wrap

    if not text:
        return
    width = _terminal_columns()
    for line in text.split("\n"):
        indent = " " * (len(line) - len(line.lstrip()) + 2)
        tell("\n".join(wrap(line, width, indent=indent)))


def _harmless(text: str) -> str:
    """The text without anything that a terminal could obey: it may quote a file."""
    from thalweg.errors import printable

    return "\n".join(printable(line) for line in text.split("\n"))


VERSION = 1
"""The version of the documents that `--format json` prints: their field `thalweg`."""


def print_json(document: Mapping[str, Any]) -> None:
    """Print a result for programs, with the version of its format first."""
    print_plain({"thalweg": VERSION, **document})


def print_plain(data: Mapping[str, Any]) -> None:
    """Print a document of a format that is not Thalweg's own, such as a JSON Schema."""
    text = json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False)
    if not text.replace("\n", "").isprintable():
        # A name from a file must not command the terminal.
        text = json.dumps(data, indent=2, allow_nan=False)
    typer.echo(text)


def print_table(names: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> None:
    """Print a result for people: with lines and colour on a terminal, plain elsewhere.

    It fits the terminal, or 100 columns where there is none.
    """
    from thalweg.model.table import fit_columns, format_table

    width = _terminal_columns()
    tell_wrapped(title)
    if sys.stdout.isatty() and "NO_COLOR" not in os.environ:
        # Between two columns stand a space, a line and a space, and half of that at both ends.
        widths = fit_columns(names, rows, width - 4, gap=3)
        if widths is not None:
            _print_rich(names, rows, widths)
            return
    tell(format_table(names, rows, width=width))


def _print_rich(names: Sequence[str], rows: Sequence[Sequence[str]], widths: Sequence[int]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table()
    for name, width in zip(names, widths, strict=True):
        table.add_column(name, width=width)
    for row in rows:
        # Text, not markup: a name from a file must not style the terminal.
        table.add_row(*(Text(_harmless(cell)) for cell in row))
    Console().print(table)


def _terminal_columns() -> int:
    """How many columns a table may take: the terminal's, or those of a page without one."""
    from thalweg.model.table import WIDTH

    if not sys.stdout.isatty():
        return WIDTH
    return shutil.get_terminal_size((WIDTH, 24)).columns


def print_plan(plan: Plan, summary: PlanSummary, *, all_rows: bool = False) -> None:
    """Print a plan for people, and what it costs.

    With `all_rows` there is a row for each instance and a line for each violation.
    """
    print_table(*plan.table(all_rows=all_rows), title=plan.headline)
    shown = plan.violations if all_rows else plan.violations[:_LISTED_VIOLATIONS]
    for violation in shown:
        tell_wrapped(str(violation))
    if len(shown) < len(plan.violations):
        tell(f"and {len(plan.violations) - len(shown):,} more violations; --all shows them")
    tell("")
    print_table(*summary.table())
    tell_wrapped(summary.refusal)


def report_problems(error: InvalidInput, *, as_json: bool) -> int:
    """Print every defect of an input; returns the exit code for bad input."""
    defects = error.defects
    if as_json:
        problems = [{**asdict(d), "value": _plain(d.value), "message": str(d)} for d in defects]
        print_json({"problems": problems})
    for defect in defects:
        say(str(defect))
    say(f"{len(defects)} problem{'s' if len(defects) != 1 else ''}")
    return 2


@contextmanager
def progress(what: str) -> Iterator[None]:
    """A moving bar on a terminal while something runs that may take more than a second."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    bar.add_task(what, total=None)
    # What is done within a second needs no bar.
    patience = Timer(1.0, bar.start)
    patience.daemon = True
    patience.start()
    try:
        yield
    finally:
        patience.cancel()
        bar.stop()


@contextmanager
def counting(what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on a terminal that says how many of how many are done; call it with both."""
    if not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _plain(value: object) -> object:
    from thalweg.errors import show_value

    is_plain = isinstance(value, (str, bool, int, type(None)))
    if is_plain or (isinstance(value, float) and math.isfinite(value)):
        return value
    return show_value(value)
