"""What a user sees: tables and JSON on standard output, words about it on standard error."""

from __future__ import annotations

import json
import math
import os
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
    """Print a result for people: with lines and colour on a terminal, plain elsewhere."""
    if sys.stdout.isatty() and "NO_COLOR" not in os.environ:
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table(*names, title=title or None, title_justify="left")
        for row in rows:
            # Text, not markup: a name from a file must not style the terminal.
            table.add_row(*(Text(_harmless(cell)) for cell in row))
        Console().print(table)
        return
    from thalweg.model.table import format_table

    tell("\n".join(part for part in (title, format_table(names, rows)) if part))


def print_plan(plan: Plan) -> None:
    """Print a plan for people."""
    print_table(*plan.table(), title=plan.headline)
    for violation in plan.violations:
        tell(str(violation))


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
