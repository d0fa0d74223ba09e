"""`thalweg run`: plan, deploy, watch and adapt a pipeline on its sites, until stopped."""

from __future__ import annotations

import signal
import time
from contextlib import ExitStack
from dataclasses import fields
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from thalweg.cli.inputs import (
    NetworkArgument,
    name_options,
    read_duration,
    read_options,
    require_births,
    with_unit,
)
from thalweg.cli.options import (
    DURATION,
    Forecast,
    OptionOption,
    PipelineArgument,
    SeedOption,
    StrategyOption,
    WorkloadOption,
    for_option,
    forecast_option,
    interval_option,
)
from thalweg.cli.output import Format, FormatOption, print_json, print_table, say
from thalweg.cli.serve import (
    MetricsOption,
    OpenOption,
    PageOption,
    PortOption,
    RunServer,
    TokenFileOption,
    read_token,
    show_run,
)
from thalweg.cli.signals import upon_signal
from thalweg.planning import SCHEDULING_STRATEGY

if TYPE_CHECKING:
    from thalweg.adapt import Forecaster
    from thalweg.spark.deployment import Deployment, StartFeed
    from thalweg.spark.deployment.check import RunWishes

_DEFAULT_RIDES_PER_S = 1000.0
_OPTIONS = {
    "bad_rows": "--bad-rows",
    "interval": "--interval",
    "link": "--link",
    "profile": "--profile",
    "trigger": "--trigger",
}


def run(
    pipeline: PipelineArgument,
    network: NetworkArgument,
    folder: Annotated[
        Path,
        typer.Argument(metavar="[FOLDER]", help="Folder of the run; the same one resumes it."),
    ] = Path("run"),
    strategy: StrategyOption = SCHEDULING_STRATEGY,
    option: OptionOption = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Go on with the run in the folder, or not at all."),
    ] = False,
    interval: Annotated[str, interval_option("monitoring cycle")] = "2 s",
    trigger: Annotated[
        str,
        typer.Option("--trigger", metavar=DURATION, help="Least time from one batch to the next."),
    ] = "1 s",
    link: Annotated[
        str | None,
        typer.Option(
            "--link",
            metavar="ADDRESS",
            help="How rows come to the cloud: kafka://host:port/topic; else all share one log.",
        ),
    ] = None,
    bad_rows: Annotated[
        str,
        typer.Option(
            "--bad-rows",
            metavar="dead-letter|fail",
            help="What becomes of a row on which an operator fails.",
        ),
    ] = "dead-letter",
    length: Annotated[str | None, for_option("it runs; else until it is stopped")] = None,
    adapt: Annotated[
        bool,
        typer.Option("--adapt/--no-adapt", help="Change cuts when there is a cause, or never."),
    ] = True,
    forecast: Annotated[Forecast, forecast_option("none, last or smoothing")] = Forecast.SMOOTHING,
    profile: Annotated[
        Path | None,
        typer.Option(
            "--profile",
            metavar="FILE",
            help="Begin with the figures of this file, as `thalweg profile` writes it.",
        ),
    ] = None,
    workload: WorkloadOption = None,
    feed: Annotated[
        str | None,
        typer.Option("--feed", metavar="rides:N", help="Send N generated taxi rides per second."),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            "--data", metavar="FILE", help="Send the rides of this trip file instead (Parquet)."
        ),
    ] = None,
    seed: SeedOption = 0,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only print the plan and the steps.")
    ] = False,
    page: PageOption = True,
    port: PortOption = 0,
    metrics: MetricsOption = None,
    token_file: TokenFileOption = None,
    open_page: OpenOption = True,
    format: FormatOption = Format.TABLE,  # noqa: A002 - the name of the option
) -> None:
    """Run a pipeline on Spark at the sites of a network. Called again, it goes on where it was."""
    from thalweg.errors import Defects, ThalwegError
    from thalweg.spark.deployment.check import RunWishes

    defects = Defects()
    options = defects.attempt("", lambda: read_options(option or [])) or {}
    length_s = defects.attempt("", lambda: _length(length))
    start_feed = defects.attempt("", lambda: _feed(pipeline, feed, data, seed))
    rates = defects.attempt("", lambda: _rates(pipeline, network, workload))
    from thalweg.adapt.trigger import LIVE_TRIGGER

    wishes = RunWishes(
        pipeline=pipeline,
        network=network,
        folder=folder,
        strategy=strategy,
        options=options,
        rates=rates,
        interval=defects.attempt("", lambda: _require_duration(interval, "--interval")) or "2 s",
        trigger=defects.attempt("", lambda: _require_duration(trigger, "--trigger")) or "1 s",
        link=link,
        bad_rows=bad_rows,
        adapt=LIVE_TRIGGER if adapt else None,
        forecast=defects.attempt("", lambda: _forecaster(forecast)),
        profile=profile,
        resume=resume,
    )
    token = defects.attempt("", lambda: read_token(token_file))
    make_server = partial(
        RunServer, page=page, port=port, metrics=metrics, token=token, show=open_page
    )
    server = defects.attempt("", make_server)
    if server is not None and not dry_run:
        defects.attempt("", server.require_ready)
    if dry_run or defects or server is None:
        _outline(wishes, defects, format)
        return
    from thalweg.spark.deployment import Deployment

    asked = {item.name: getattr(wishes, item.name) for item in fields(wishes)}
    deployment = name_options(partial(Deployment, **asked, feed=start_feed), _OPTIONS)
    say(f"starting {pipeline} in {folder}; `thalweg stop {folder}` ends it")
    with upon_signal(partial(_ask_to_stop, deployment)), ExitStack() as beside:
        deployment.start(wait=False)
        if server.is_wanted:
            beside.enter_context(show_run(deployment.folder.path, server))
        try:
            deployment.await_deployment()
            say(_describe_start(deployment))
            _wait(deployment, length_s)
        except ThalwegError:
            say(f"the run has ended; `thalweg doctor {folder}` says what state it is in")
            raise
    _print_report(deployment.report, format)


def _outline(wishes: RunWishes, defects: Any, format: Format) -> None:  # noqa: A002
    """Print what a run would do; or raise everything that keeps it from being done."""
    from thalweg.spark.deployment.check import prepare

    make = partial(prepare, wishes, dry=True)
    prepared = defects.attempt("", lambda: name_options(make, _OPTIONS))
    defects.raise_if_any()
    steps = prepared.outline()
    if format is Format.JSON:
        cuts = {site: list(cut) for site, cut in prepared.cuts.items()}
        print_json({"cuts": cuts, "steps": list(steps), "plan": prepared.plan.to_dict()})
        return
    typer.echo(prepared.plan.headline)
    for number, step in enumerate(steps, start=1):
        typer.echo(f"{number}. {step}")


def _require_duration(text: str, option: str) -> str:
    """The duration with its unit, for whoever reads it again."""
    read_duration(text, option)
    return with_unit(text)


def _length(text: str | None) -> float | None:
    return None if text is None else read_duration(text, "--for")


def _forecaster(kind: Forecast) -> Forecaster | None:
    from thalweg.adapt import LastValue
    from thalweg.errors import Defect, InvalidInput
    from thalweg.spark.deployment.decisions import LIVE_FORECASTER

    if kind is Forecast.SEASONAL:
        rule, hint = "none, last or smoothing", "a live run has not seen a period yet"
        raise InvalidInput([Defect(path="--forecast", value=kind.value, rule=rule, hint=hint)])
    if kind is Forecast.LAST:
        return LastValue()
    return LIVE_FORECASTER if kind is Forecast.SMOOTHING else None


def _rates(pipeline: str, network: Path, workload: Path | None) -> Any:
    """The rates at the beginning of a workload, if there is one."""
    if workload is None:
        return None
    from thalweg.files.load import load_network, load_workload
    from thalweg.model import Problem
    from thalweg.spark.deployment.check import find_pipeline

    load = load_workload(workload)
    app, net = find_pipeline(pipeline).application, load_network(network)
    complete = require_births(workload, load, Problem(application=app, network=net))
    return complete.rates_at(float(complete.time_s[0]))


def _feed(pipeline: str, feed: str | None, data: Path | None, seed: int) -> StartFeed | None:
    """What sends rows while the pipeline runs, checked as far as it can be."""
    if feed is None and data is None:
        return None
    from thalweg.errors import Defect, Defects, InvalidInput
    from thalweg.spark.deployment.check import find_pipeline
    from thalweg.spark.feed.rides import MOST_PER_S, feed_rides, feed_trips, require_ride_source

    defects, rate_per_s = Defects(), _DEFAULT_RIDES_PER_S
    if feed is not None:
        kind, _, number = feed.partition(":")
        try:
            rate_per_s = float(number)
        except ValueError:
            rate_per_s = -1.0
        good = kind == "rides" and 0 < rate_per_s <= MOST_PER_S
        rule = f"rides:N, where N are rides per second, at most {MOST_PER_S:g}"
        defects.require(good, "--feed", feed, rule)
    defects.require(0 <= seed < 2**31, "--seed", seed, "a whole number >= 0")
    try:
        found = find_pipeline(pipeline)
        source = next(step for step in found.steps if step.role == "source")
        require_ride_source(source, "--data" if feed is None else "--feed")
    except InvalidInput as error:
        # What is wrong with the pipeline's name is told by whoever starts it.
        defects.absorb(InvalidInput(d for d in error.defects if d.path != "pipeline"))
    if data is not None and not data.is_file():
        missing = Defect(file=str(data), path="", value=None, rule="an existing trip file")
        defects.absorb(InvalidInput([missing]))
    defects.raise_if_any()
    if data is not None:
        return partial(feed_trips, file=data, rate_per_s=rate_per_s)
    return partial(feed_rides, rate_per_s=rate_per_s, seed=seed)


def _ask_to_stop(deployment: Deployment, number: int) -> None:
    """Ask the run to stop, in order; a second interrupt ends it at once."""
    say("stopping" if number == signal.SIGTERM else "stopping; once more to end at once")
    deployment.request_stop()
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _wait(deployment: Deployment, length_s: float | None) -> None:
    deadline = None if length_s is None else time.monotonic() + length_s
    while not deployment.await_termination(0.2):
        if deadline is not None and time.monotonic() >= deadline:
            deployment.request_stop()


def _describe_start(deployment: Deployment) -> str:
    from thalweg.spark.deployment.status import describe_cuts

    reason = deployment.status.get("last_decision", {}).get("reason", "")
    return f"running, {reason}: {describe_cuts(deployment.cuts)}"


def _print_report(report: dict[str, Any], format: Format) -> None:  # noqa: A002
    if format is Format.JSON:
        print_json(report)
        return
    rows = [["rows in", f"{report['rows_in']:,}"]]
    rows += [[f"rows out of {sink}", f"{count:,}"] for sink, count in report["rows_out"].items()]
    if report["dead_rows"]:
        rows.append(["rows that broke a condition", f"{report['dead_rows']:,}"])
    rows += [
        [f"sent by {site}", f"{size / 1e6:.3f} MB"] for site, size in report["sent_bytes"].items()
    ]
    rows.append(["restarts", str(len(report["restarts"]))])
    print_table(["figure", "value"], rows, title=f"{report['seconds']:.0f} s, {report['state']}")
    for change in report["changes"]:
        moment = datetime.fromtimestamp(change["at_s"]).astimezone()
        took = f" ({change['seconds']:.1f} s)"
        typer.echo(f"{moment:%H:%M:%S} {change['cause']}: {change['reason']}{took}")
