"""`thalweg serve`: the page of a run, a plan, a simulation, a city, or stored results."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from thalweg.cli.options import strategy_option
from thalweg.cli.output import Format, FormatOption, print_json, say
from thalweg.cli.signals import upon_signal
from thalweg.errors import Defect, Defects, InvalidInput

if TYPE_CHECKING:
    from thalweg.web.server import PageServer
    from thalweg.web.subject import Subject

_MAX_TOKEN_BYTES = 1_000

PortOption = Annotated[
    int, typer.Option("--port", min=0, max=65535, help="Port of the page; 0 takes any free one.")
]
OpenOption = Annotated[
    bool, typer.Option("--open/--no-open", help="Show the page in a browser, if there is a screen.")
]
PageOption = Annotated[
    bool, typer.Option("--page/--no-page", help="Serve a live page on this machine, or none.")
]
MetricsOption = Annotated[
    int | None,
    typer.Option(
        "--metrics",
        metavar="PORT",
        min=0,
        max=65535,
        help="Serve metrics for Prometheus at this port, with the page if there is one.",
    ),
]
TokenFileOption = Annotated[
    Path | None,
    typer.Option("--token-file", help="File with the token to use; else a random one."),
]


def serve(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH",
            help="Folders of runs, simulations, cities or results; or an application and a "
            "network, with a plan, or with the steps of a schedule and its workload.",
        ),
    ],
    strategy: Annotated[
        str | None, strategy_option("Name of the strategy that plans, where no plan is given")
    ] = None,
    port: PortOption = 0,
    token_file: TokenFileOption = None,
    open_page: OpenOption = True,
    format: FormatOption = Format.TABLE,  # noqa: A002 - the name of the option
) -> None:
    """Serve a page on 127.0.0.1: what runs where and why, over time, what if, side by side."""
    from thalweg.web.opening import open_subjects

    defects = Defects()
    token = defects.attempt("", lambda: read_token(token_file))
    subjects = defects.attempt("", lambda: open_subjects(paths, strategy=strategy)) or []
    defects.raise_if_any()
    ended = threading.Event()
    with open_page_of(subjects, port=port, token=token, show=open_page) as page:
        if format is Format.JSON:
            print_json({"address": page.address})
            sys.stdout.flush()
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
        _announce(page, show=show)
        yield page


def _announce(page: PageServer, *, show: bool) -> None:
    say(f"page: {page.address}")
    if show:
        page.open_browser()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunServer:
    """What is served of a run while it goes on: its page, and its metrics at the same port."""

    page: bool = True
    port: int = 0
    metrics: int | None = None
    """The port of the metrics, where they are asked for."""
    token: str | None = None
    show: bool = True
    """Whether a browser is opened."""

    def __post_init__(self) -> None:
        rule = "the port of --metrics, or none: the page and the metrics have one"
        good = not self.port or not self.metrics or self.port == self.metrics
        defects = Defects()
        defects.require(good, "--port", self.port, rule)
        defects.raise_if_any()

    @property
    def is_wanted(self) -> bool:
        """Whether anything is served."""
        return self.page or self.metrics is not None

    @property
    def own_port(self) -> int:
        """The port at which all of it is served; 0 is any free one."""
        return self.metrics or self.port

    def require_ready(self) -> None:
        """Raise unless it can be served, before anything else is begun.

        Raises:
            InvalidInput: for a port that is taken.
            MissingExtra: where metrics are asked for that nothing installed can serve.
        """
        from thalweg.web.server import require_free, require_installed

        if self.is_wanted:
            require_free(self.own_port, option="--metrics" if self.metrics else "--port")
        if self.metrics is not None:
            require_installed()


@contextmanager
def show_run(folder: Path, server: RunServer) -> Iterator[None]:
    """Serve a run for the length of the block; what keeps that from working ends no run."""
    with ExitStack() as page:
        # Whatever it is: the run matters more.
        try:
            page.enter_context(_serve_run(folder, server))
        except Exception as error:
            say(f"no page: {error}")
        yield


@contextmanager
def _serve_run(folder: Path, server: RunServer) -> Iterator[None]:
    from thalweg.spark.deployment.folder import RunFolder
    from thalweg.web.server import PageServer
    from thalweg.web.subjects.run import RunSubject

    run, token_file = RunFolder(folder), TokenFile(folder / "control" / "metrics-token")
    with PageServer(
        [RunSubject(folder)],
        port=server.own_port,
        token=server.token,
        only_metrics=not server.page,
    ) as page:
        token_file.write(page.token)
        if server.page:
            _announce(page, show=server.show)
            run.write_page(page.address)
        if server.metrics is not None:
            say(f"metrics: {page.metrics_address}, token in {token_file.path}")
        yield
    with suppress(OSError):
        run.write_page(None)
        token_file.remove()


@dataclass(frozen=True, slots=True)
class TokenFile:
    """A file that holds the token of a run's server and nothing else, for its owner alone."""

    path: Path

    def write(self, token: str) -> None:
        """Write the token into a new file, in place of any that is there."""
        self.path.parent.mkdir(mode=0o700, exist_ok=True)
        self.remove()
        # Nobody else may have opened it before: so it is made for its owner, not changed later.
        number = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(number, "w", encoding="ascii") as opened:
            opened.write(token)

    def remove(self) -> None:
        """Remove the file, if it is there."""
        self.path.unlink(missing_ok=True)


def read_token(file: Path | None) -> str | None:
    """Read the token in a file; None where no file is named.

    Raises:
        InvalidInput: where it cannot be read, or holds no token.
    """
    from thalweg.web.server import require_token

    if file is None:
        return None
    try:
        with file.open("rb") as opened:
            token = opened.read(_MAX_TOKEN_BYTES).decode("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        rule = "a file with a token in it"
        defect = Defect(file=str(file), path="--token-file", value=str(error), rule=rule)
        raise InvalidInput([defect]) from None
    require_token(token)
    return token
