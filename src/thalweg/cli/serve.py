"""`thalweg serve`: the page of a run, a plan, a simulation, a city, or stored results."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from thalweg.cli.output import say
from thalweg.cli.signals import upon_signal

if TYPE_CHECKING:
    from thalweg.web.server import PageServer
    from thalweg.web.subject import Subject

_MOST_TOKEN_BYTES = 1_000

PortOption = Annotated[
    int, typer.Option("--port", min=0, max=65535, help="Port of the page; 0 takes any free one.")
]
OpenOption = Annotated[
    bool, typer.Option("--open/--no-open", help="Show the page in a browser, if there is a screen.")
]
PageOption = Annotated[
    bool, typer.Option("--page/--no-page", help="Serve a live page on this machine, or none.")
]


def serve(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH...",
            help="Folders of runs, simulations, cities or results; or an application and a "
            "network, with a plan, or with the steps of a schedule and its workload.",
        ),
    ],
    strategy: Annotated[
        str | None,
        typer.Option("--strategy", "-s", help="Makes the plan, where none is given."),
    ] = None,
    port: PortOption = 0,
    token_file: Annotated[
        Path | None,
        typer.Option("--token-file", help="File with the token to use; else a random one."),
    ] = None,
    open_page: OpenOption = True,
) -> None:
    """Serve a page on 127.0.0.1: what runs where and why, over time, what if, side by side."""
    from thalweg.errors import Defects
    from thalweg.web.opening import open_subjects

    defects = Defects()
    token = defects.attempt("", lambda: _read_token(token_file))
    subjects = defects.attempt("", lambda: open_subjects(paths, strategy=strategy)) or []
    defects.raise_if_any()
    ended = threading.Event()
    with open_page_of(subjects, port=port, token=token, show=open_page):
        say("Ctrl-C ends it")
        with upon_signal(lambda _number: ended.set()):
            ended.wait()


@contextmanager
def open_page_of(
    subjects: Sequence[Subject], *, port: int = 0, token: str | None = None, show: bool = True
) -> Iterator[PageServer]:
    """Serve these subjects for the length of the block; prints the address first."""
    from thalweg.web.server import PageServer

    with PageServer(subjects, port=port, token=token) as page:
        say(f"page: {page.address}")
        if show:
            page.open_browser()
        yield page


@contextmanager
def show_run(folder: Path, *, port: int, show: bool) -> Iterator[None]:
    """Serve the page of a run for the length of the block; what keeps it away ends no run."""
    with ExitStack() as page:
        # Whatever it is: the run matters more.
        try:
            page.enter_context(_page_of_run(folder, port=port, show=show))
        except Exception as error:
            say(f"no page: {error}")
        yield


@contextmanager
def _page_of_run(folder: Path, *, port: int, show: bool) -> Iterator[None]:
    from thalweg.spark.deployment.folder import RunFolder
    from thalweg.web.subjects.run import RunSubject

    run = RunFolder(folder)
    with open_page_of([RunSubject(folder)], port=port, show=show) as page:
        run.write_page(page.address)
        yield
    with suppress(OSError):
        run.write_page(None)


def require_page(port: int) -> None:
    """Raise `InvalidInput` for a port that is taken, before anything else is begun."""
    from thalweg.web.server import require_free

    require_free(port)


def _read_token(file: Path | None) -> str | None:
    from thalweg.errors import Defect, InvalidInput

    if file is None:
        return None
    try:
        with file.open("rb") as opened:
            return opened.read(_MOST_TOKEN_BYTES).decode("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        rule = "a file with a token in it"
        defect = Defect(file=str(file), path="--token-file", value=str(error), rule=rule)
        raise InvalidInput([defect]) from None
