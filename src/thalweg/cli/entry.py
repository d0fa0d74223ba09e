"""Puts the verbs together, and turns every error into words and an exit code.

0: done. 1: points of a sweep failed, or a run has a problem. 2: bad input or a bad call, every
problem listed. 3: the plan is not feasible.
70: an error inside Thalweg or a strategy. 130: interrupted.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from itertools import pairwise
from typing import Any

import typer

from thalweg.cli.old_spellings import rewrite
from thalweg.cli.output import report_problems, say
from thalweg.cli.usage import UsageError, is_help, read_problem, show_usage
from thalweg.cli.version import show_version
from thalweg.compiling import report_compiling
from thalweg.errors import InvalidInput, StrategyError, ThalwegError

VERBS = {
    "demo": "demo:demo",
    "init": "init:init",
    "validate": "validate:validate",
    "plan": "plan:plan",
    "schedule": "schedule:schedule",
    "explain": "explain:explain",
    "diff": "diff:diff",
    "strategies": "strategies:strategies",
    "schema": "schema:schema",
    "coordinates": "coordinates:coordinates",
    "simulate": "simulate:simulate",
    "compare": "compare:compare",
    "profile": "profile:profile",
    "run": "run:run",
    "status": "status:status",
    "doctor": "doctor:doctor",
    "verify": "verify:verify",
    "stop": "stop:stop",
    "rollback": "rollback:rollback",
    "serve": "serve:serve",
    "metrics": "metrics:metrics",
    "reproduce": "reproduce:reproduce",
    "mobility": "mobility:mobility",
}
"""Every verb, in the order of the help, with the place of its function in `thalweg.cli`."""


def make_app(verbs: Iterable[str] = tuple(VERBS)) -> typer.Typer:
    """The command line with these verbs."""
    app = typer.Typer(
        name="thalweg",
        help="Decide where stream operators run, and prove what that costs.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(show_version)
    for verb in verbs:
        module, _, name = VERBS[verb].partition(":")
        found = getattr(import_module(f"thalweg.cli.{module}"), name)
        if isinstance(found, typer.Typer):
            app.add_typer(found, name=verb)
        else:
            app.command(verb)(found)
    return app


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command line; returns the exit code, raises nothing."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    _let_print_anything()
    words, warnings = rewrite(given)
    for warning in warnings:
        say(warning)
    try:
        # Other verbs than the one that is asked for need not be loaded.
        app = make_app(words[:1]) if words and words[0] in VERBS else make_app()
        with report_compiling(_say_once("compiling loops, once: they are kept for the next time")):
            return int(app(words, prog_name="thalweg", standalone_mode=False) or 0)
    except UsageError as error:
        return _report_usage(error, words)
    except SystemExit as left:
        return left.code if isinstance(left.code, int) else int(left.code is not None)
    except InvalidInput as error:
        return report_problems(error, as_json=_wants_json(words))
    except StrategyError as error:
        say(f"error in a strategy: {error}")
        return 70
    except ThalwegError as error:
        say(f"error: {error}")
        return 2
    except (KeyboardInterrupt, typer.Abort):
        say("interrupted")
        return 130
    except BrokenPipeError:
        # The reader has seen enough; Python would complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        return _report_own_error(error)


def _report_usage(error: Any, words: Sequence[str]) -> int:
    """Say how the command is called and what is wrong; returns the exit code."""
    if is_help(error):
        # Its text is the help that was asked for by naming no command.
        typer.echo(error.format_message(), err=True)
        return 2
    if usage := show_usage(error):
        say(usage)
    return report_problems(read_problem(error, words), as_json=_wants_json(words))


def _say_once(text: str) -> Callable[[], None]:
    """Says it the first time that it is called, unless people want no notes on progress."""
    left = [] if os.environ.get("THALWEG_QUIET") else [text]
    return lambda: say(left.pop()) if left else None


def _let_print_anything() -> None:
    """A character that the terminal or the encoding does not know is shown as its number."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _wants_json(words: Sequence[str]) -> bool:
    return "--format=json" in words or any(
        a == "--format" and b == "json" for a, b in pairwise(words)
    )


def _report_own_error(error: Exception) -> int:
    if os.environ.get("THALWEG_DEBUG"):
        raise error
    try:
        told = str(error)
    except Exception:
        told = "(nobody can say any more what it was)"
    say(f"error inside Thalweg: {type(error).__name__}: {told}")
    say("Hint: run again with THALWEG_DEBUG=1 for details, and report it.")
    return 70
