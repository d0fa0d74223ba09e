"""`thalweg schedule`: what does a strategy do with a workload, step by step?"""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from thalweg.cli.inputs import ApplicationArgument, NetworkArgument, load_case, read_options
from thalweg.cli.output import (
    Format,
    FormatOption,
    print_json,
    print_table,
    progress,
    tell,
    tell_wrapped,
)
from thalweg.cli.output_files import require_place, write_beside

if TYPE_CHECKING:
    from thalweg.adapt import Forecaster, Replay, Trigger
    from thalweg.model import Problem
    from thalweg.model.workload import Workload


class Forecast(StrEnum):
    """How rates are forecast."""

    NONE = "none"
    LAST = "last"
    SEASONAL = "seasonal"
    SMOOTHING = "smoothing"


def schedule(
    application: ApplicationArgument,
    network: NetworkArgument,
    workload: Annotated[
        Path,
        typer.Option("--workload", "-w", help="Workload file (YAML, JSON, CSV or Parquet)."),
    ],
    strategy: Annotated[
        str, typer.Option("--strategy", "-s", help="Name of a strategy; see `thalweg strategies`.")
    ] = "atsoo",
    option: Annotated[
        list[str] | None,
        typer.Option("--option", metavar="NAME=VALUE", help="Option of the strategy; repeatable."),
    ] = None,
    trigger: Annotated[
        bool,
        typer.Option("--trigger/--every-step", help="Adapt when there is a cause, or every time."),
    ] = True,
    usage_most: Annotated[
        float | None, typer.Option(help="Adapt above this usage; default: the application's limit.")
    ] = None,
    patience: Annotated[int, typer.Option(help="Bad steps in a row before adapting.")] = 1,
    rest: Annotated[
        str, typer.Option(help="How long adaptations that can wait do so after the last one.")
    ] = "10 min",
    forecast: Annotated[
        Forecast, typer.Option(help="Look ahead, by this kind of forecast.")
    ] = Forecast.NONE,
    period: Annotated[
        str, typer.Option(help="When rates repeat, for seasonal forecasts and smoothing.")
    ] = "1 d",
    ahead: Annotated[int, typer.Option(help="How many steps to look ahead.")] = 1,
    plot: Annotated[
        Path | None, typer.Option(help="Draw it into this file (.png, .svg or .pdf).")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Also save all steps here (.parquet).")] = None,
    all_rows: Annotated[
        bool, typer.Option("--all", help="Show the steps that change nothing, too.")
    ] = False,
    format: FormatOption = Format.TABLE,  # noqa: A002 - the name of the option
) -> None:
    """Replay a workload step by step: what it costs, what is violated, what moves and why."""
    from thalweg.adapt import replay
    from thalweg.adapt.plot import plot_replay
    from thalweg.errors import Defects
    from thalweg.plotting import PLOT_ENDINGS, require_plotting
    from thalweg.strategy import find_strategy, require_options

    if plot is not None:
        require_plotting()
    defects = Defects()
    with progress("loading"):
        case = defects.attempt("", lambda: load_case(application, network, workload))
        options = defects.attempt("", lambda: read_options(option or [])) or {}
        if defects.attempt("", lambda: find_strategy(strategy)) is not None:
            defects.attempt("", lambda: require_options(strategy, options))
        chosen = defects.attempt("", lambda: _trigger(trigger, usage_most, patience, rest))
        load = case[1] if case else None
        forecaster = defects.attempt("", lambda: _forecaster(forecast, period, load))
        defects.require(ahead >= 1, "--ahead", ahead, "a whole number >= 1")
        for path, endings in ((plot, PLOT_ENDINGS), (out, (".parquet",))):
            require_place(defects, path, endings)
    defects.raise_if_any()
    problem, load = cast("tuple[Problem, Workload]", case)
    with progress("replaying"):
        found = replay(
            problem.application,
            problem.network,
            load,
            strategy,
            trigger=chosen,
            forecaster=forecaster,
            ahead_steps=ahead,
            options=options,
        )
    if out is not None:
        write_beside(out, partial(_save, found))
    if plot is not None:
        with progress("drawing"):
            write_beside(plot, partial(plot_replay, found))
    if format is Format.JSON:
        print_json(found.to_dict())
    else:
        columns, rows = found.table(all_steps=all_rows)
        print_table(columns, rows, title=found.headline)
        tell_wrapped(found.outcome)
        if len(rows) < len(found.steps):
            tell(f"{len(found.steps) - len(rows)} steps that change nothing are left out; "
                 "--all shows them")  # fmt: skip


def _trigger(wanted: bool, usage_most: float | None, patience: int, rest: str) -> Trigger | None:
    from thalweg.adapt import Trigger
    from thalweg.errors import Defects
    from thalweg.units import DURATION, parse_quantity

    defects = Defects()
    rest_s = defects.attempt("", lambda: parse_quantity(rest, DURATION, path="--rest"))
    made = defects.attempt(
        "", lambda: Trigger(usage_most=usage_most, patience=patience, rest_s=rest_s or 0.0)
    )
    defects.raise_if_any()
    return made if wanted else None


def _forecaster(kind: Forecast, period: str, load: Workload | None) -> Forecaster | None:
    """The forecaster of that kind; the period counts in steps of the workload."""
    import numpy as np

    from thalweg.adapt import ExponentialSmoothing, LastValue, SeasonalNaive
    from thalweg.errors import Defect, InvalidInput
    from thalweg.units import DURATION, parse_quantity, show_quantity

    period_s = parse_quantity(period, DURATION, path="--period")
    if kind is Forecast.NONE or load is None:
        return None
    if kind is Forecast.LAST:
        return LastValue()
    step_s = float(np.median(np.diff(load.time_s))) if len(load) > 1 else period_s
    steps = round(period_s / step_s) if step_s > 0 else 0
    if steps < 2:
        rule = f"at least two steps of the workload, of {show_quantity(step_s, DURATION)} each"
        raise InvalidInput([Defect(path="--period", value=period, rule=rule)])
    if kind is Forecast.SEASONAL:
        return SeasonalNaive(steps)
    return ExponentialSmoothing(period_steps=steps)


def _save(found: Replay, path: Path) -> None:
    import pyarrow.parquet as pq

    pq.write_table(found.to_arrow(), path)
