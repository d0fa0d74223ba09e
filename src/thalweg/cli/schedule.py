"""`thalweg schedule`: what does a strategy do with a workload, step by step?"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from thalweg.cli.inputs import (
    ApplicationArgument,
    NetworkArgument,
    load_case,
    name_options,
    read_duration,
    read_options,
)
from thalweg.cli.options import (
    DURATION,
    Forecast,
    HorizonOption,
    OptionOption,
    PlotOption,
    StrategyOption,
    forecast_option,
    output_option,
)
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
from thalweg.planning import SCHEDULING_STRATEGY

if TYPE_CHECKING:
    from thalweg.adapt import Forecaster, Replay, Trigger
    from thalweg.model import Problem
    from thalweg.model.workload import Workload


def schedule(
    application: ApplicationArgument,
    network: NetworkArgument,
    workload: Annotated[
        Path,
        typer.Option(
            "--workload", "-w", metavar="FILE", help="Workload file (YAML, JSON, CSV or Parquet)."
        ),
    ],
    strategy: StrategyOption = SCHEDULING_STRATEGY,
    option: OptionOption = None,
    every_step: Annotated[
        bool,
        typer.Option("--every-step", help="Adapt at every step, not only when there is a cause."),
    ] = False,
    max_usage: Annotated[
        float | None,
        typer.Option("--max-usage", help="Adapt above this usage; else the application's limit."),
    ] = None,
    consecutive: Annotated[
        int, typer.Option("--consecutive", metavar="N", help="Bad steps in a row before adapting.")
    ] = 1,
    cooldown: Annotated[
        str,
        typer.Option(
            "--cooldown",
            metavar=DURATION,
            help="How long adaptations that can wait do so after the last one.",
        ),
    ] = "10 min",
    forecast: Annotated[
        Forecast, forecast_option("none, last, seasonal or smoothing")
    ] = Forecast.NONE,
    period: Annotated[
        str,
        typer.Option(
            "--period",
            metavar=DURATION,
            help="When rates repeat, for seasonal forecasts and smoothing.",
        ),
    ] = "1 d",
    horizon: HorizonOption = 1,
    plot: PlotOption = None,
    output: Annotated[Path | None, output_option("all steps (.parquet)")] = None,
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
        chosen = defects.attempt("", lambda: _trigger(every_step, max_usage, consecutive, cooldown))
        load = case[1] if case else None
        forecaster = defects.attempt("", lambda: _forecaster(forecast, period, load))
        defects.require(horizon >= 1, "--horizon", horizon, "a whole number >= 1")
        for path, endings in ((plot, PLOT_ENDINGS), (output, (".parquet",))):
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
            ahead_steps=horizon,
            options=options,
        )
    if output is not None:
        write_beside(output, partial(_save, found))
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


def _trigger(
    every_step: bool, max_usage: float | None, consecutive: int, cooldown: str
) -> Trigger | None:
    from thalweg.adapt import Trigger
    from thalweg.errors import Defects

    defects = Defects()
    rest_s = defects.attempt("", lambda: read_duration(cooldown, "--cooldown"))
    names = {"usage_most": "--max-usage", "patience": "--consecutive", "rest_s": "--cooldown"}
    made = defects.attempt(
        "",
        lambda: name_options(
            lambda: Trigger(usage_most=max_usage, patience=consecutive, rest_s=rest_s or 0.0), names
        ),
    )
    defects.raise_if_any()
    return None if every_step else made


def _forecaster(kind: Forecast, period: str, load: Workload | None) -> Forecaster | None:
    """The forecaster of that kind; the period counts in steps of the workload."""
    import numpy as np

    from thalweg import units
    from thalweg.adapt import ExponentialSmoothing, LastValue, SeasonalNaive
    from thalweg.errors import Defect, InvalidInput

    period_s = read_duration(period, "--period")
    if kind is Forecast.NONE or load is None:
        return None
    if kind is Forecast.LAST:
        return LastValue()
    step_s = float(np.median(np.diff(load.time_s))) if len(load) > 1 else period_s
    steps = round(period_s / step_s) if step_s > 0 else 0
    if steps < 2:
        step = units.show_quantity(step_s, units.DURATION)
        rule = f"at least two steps of the workload, of {step} each"
        raise InvalidInput([Defect(path="--period", value=period, rule=rule)])
    if kind is Forecast.SEASONAL:
        return SeasonalNaive(steps)
    return ExponentialSmoothing(period_steps=steps)


def _save(found: Replay, path: Path) -> None:
    import pyarrow.parquet as pq

    pq.write_table(found.to_arrow(), path)
