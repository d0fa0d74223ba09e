"""How plans are to be made: what `mobility plan` and `mobility run` are told alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from thalweg.cli.options import DURATION

if TYPE_CHECKING:
    from thalweg.errors import Defects
    from thalweg.migration.policies import Policy
    from thalweg.migration.settings import Settings

TICK_S = 1.0
"""How often positions are looked at."""

StepOption = Annotated[
    str,
    typer.Option(
        "--step",
        metavar=DURATION,
        help="Time from one moment at which operators may move to the next.",
    ),
]
FixedOption = Annotated[
    bool,
    typer.Option(
        "--fixed-horizon/--adaptive-horizon", help="Always that far, or less when predictions fail."
    ),
]
RangeOption = Annotated[
    str | None,
    typer.Option("--range", metavar="LENGTH", help="Only to brokers this near; else to any."),
]
DecayOption = Annotated[
    str | None,
    typer.Option(
        "--decay",
        metavar=DURATION,
        help="Time in which the cost of leaving falls to nothing; else never.",
    ),
]
TogetherOption = Annotated[
    bool,
    typer.Option("--together", help="Operators also try to move as one where none would alone."),
]
InstancesOption = Annotated[
    int | None,
    typer.Option("--instances", help="Operator graphs between vehicles; else one for each."),
]


def read_settings(
    defects: Defects,
    *,
    step: str,
    horizon: int,
    fixed: bool,
    range_: str | None,
    decay: str | None,
    together: bool,
) -> Settings | None:
    """The settings, or None and everything that is wrong with them remembered."""
    import math

    from thalweg.cli.mobility.quantities import read_metres, read_seconds
    from thalweg.migration.settings import Settings

    before = bool(defects)
    step_s = read_seconds(defects, "--step", step)
    ticks = round(step_s / TICK_S)
    whole = ticks >= 1 and math.isclose(ticks * TICK_S, step_s)
    if before == bool(defects):
        defects.require(whole, "--step", step, "a whole number of seconds, at least one")
    range_m = math.inf if range_ is None else read_metres(defects, "--range", range_)
    decay_s = math.inf if decay is None else read_seconds(defects, "--decay", decay)
    good = 2 <= horizon <= 1_000_000
    defects.require(good, "--horizon", horizon, "a whole number from 2 to 1,000,000")
    if not (good and whole):
        return None
    return defects.attempt(
        "",
        lambda: Settings(
            step_ticks=ticks,
            horizon=horizon,
            least_horizon=min(horizon, Settings().least_horizon),
            adaptive=not fixed,
            range_m=range_m,
            decay_s=decay_s,
            together=together,
        ),
    )


def read_policy(defects: Defects, name: str) -> Policy | None:
    """The policy of this name."""
    from thalweg.errors import nearest
    from thalweg.migration.policies import POLICIES, policy

    if name not in POLICIES:
        defects.add("--policy", name, " or ".join(POLICIES), nearest(name, POLICIES))
        return None
    return policy(name)
