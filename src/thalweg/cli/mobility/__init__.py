"""`thalweg mobility`: operators that follow moving users."""

from __future__ import annotations

import typer

from thalweg.cli.mobility.handover import handover
from thalweg.cli.mobility.learn import learn
from thalweg.cli.mobility.plan import plan
from thalweg.cli.mobility.predict import predict
from thalweg.cli.mobility.run import run
from thalweg.cli.mobility.trace import trace

mobility = typer.Typer(
    help="Let operators follow moving vehicles, from broker to broker.", no_args_is_help=True
)
for verb in (trace, predict, learn, plan, run, handover):
    mobility.command()(verb)


@mobility.callback()
def _mobility() -> None:
    """Let operators follow moving vehicles, from broker to broker."""
