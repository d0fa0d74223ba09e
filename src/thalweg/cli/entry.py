"""Puts the verbs together, and turns every error into words and an exit code.

0: done. 1: points of a sweep failed, or a run has a problem. 2: bad input or a bad call, every
problem listed. 3: the plan is not feasible.
70: an error inside Thalweg or a strategy. 130: interrupted.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from itertools import pairwise

import typer

from thalweg.cli.compare import compare
from thalweg.cli.coordinates import coordinates
from thalweg.cli.demo import demo
from thalweg.cli.diff import diff
from thalweg.cli.doctor import doctor
from thalweg.cli.explain import explain
from thalweg.cli.init import init
from thalweg.cli.metrics import metrics
from thalweg.cli.mobility import mobility
from thalweg.cli.output import report_problems, say
from thalweg.cli.plan import plan
from thalweg.cli.profile import profile
from thalweg.cli.reproduce import reproduce
from thalweg.cli.rollback import rollback
from thalweg.cli.run import run as run_pipeline
from thalweg.cli.schedule import schedule
from thalweg.cli.schema import schema
from thalweg.cli.serve import serve
from thalweg.cli.simulate import simulate
from thalweg.cli.status import status
from thalweg.cli.stop import stop
from thalweg.cli.strategies import strategies
from thalweg.cli.validate import validate
from thalweg.cli.verify import verify
from thalweg.cli.version import show_version
from thalweg.errors import InvalidInput, StrategyError, ThalwegError

app = typer.Typer(
    name="thalweg",
    help="Decide where stream operators run, and prove what that costs.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.callback()(show_version)
for verb in (demo, init, validate, plan, schedule, explain, diff, strategies, schema, coordinates):
    app.command()(verb)
app.command()(simulate)
app.command()(compare)
app.command()(profile)
app.command("run")(run_pipeline)
app.command()(status)
app.command()(doctor)
app.command()(verify)
app.command()(stop)
app.command()(rollback)
app.command()(serve)
app.command()(metrics)
app.add_typer(reproduce, name="reproduce")
app.add_typer(mobility, name="mobility")


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command line; returns the exit code, raises nothing."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    _let_print_anything()
    try:
        app(words, prog_name="thalweg")
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
    except KeyboardInterrupt:
        say("interrupted")
        return 130
    except BrokenPipeError:
        # The reader has seen enough; Python would complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        return _report_own_error(error)
    return 0


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
