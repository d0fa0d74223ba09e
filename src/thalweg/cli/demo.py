"""`thalweg demo`: the main job on the embedded default."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from thalweg.cli.inputs import name_options, read_duration
from thalweg.cli.options import for_option
from thalweg.cli.output import Format, FormatOption, print_json, print_plan, say
from thalweg.cli.serve import OpenOption, PageOption, PortOption, RunServer, show_run


def demo(
    folder: Annotated[
        Path | None,
        typer.Argument(metavar="[FOLDER]", help="Where the run is kept; else it is thrown away."),
    ] = None,
    length: Annotated[str, for_option("rides come in")] = "100 s",
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            metavar="FILE",
            help="A trip file of the NYC Taxi & Limousine Commission to take rides from.",
        ),
    ] = None,
    plan_only: Annotated[
        bool,
        typer.Option("--plan-only", help="Plan what it deploys, beside all-cloud; start nothing."),
    ] = False,
    page: PageOption = True,
    port: PortOption = 0,
    open_page: OpenOption = True,
    format: FormatOption = Format.TABLE,  # noqa: A002 - the name of the option
) -> None:
    """Run taxi rides on three fogs and a cloud: a surge, an adaptation, a kill, nothing lost."""
    if plan_only:
        _plan(format)
        return
    from thalweg.spark.demo import run_demo

    length_s = read_duration(length, "--for")
    server = RunServer(page=page, port=port, show=open_page)
    server.require_ready()
    with tempfile.TemporaryDirectory(prefix="thalweg-demo-") as temporary, ExitStack() as beside:

        def show(run: Path) -> None:
            if server.is_wanted:
                beside.enter_context(show_run(run, server))

        show_all = partial(
            run_demo,
            folder or Path(temporary) / "run",
            seconds=length_s,
            data=data,
            report=_report_since(),
            on_start=show,
        )
        summary = name_options(show_all, {"seconds": "--for", "data": "--data"})
    if format is Format.JSON:
        print_json(summary.to_dict())
    else:
        _print_summary(summary)
        if folder is not None:
            typer.echo(f"`thalweg serve {folder}` shows it again")
    if summary.lost or summary.duplicated:
        raise typer.Exit(70)


def _report_since() -> Any:
    """Prints lines with the time since the first of them, beside what a program would read."""
    import time

    began_s = time.monotonic()

    def report(line: str) -> None:
        say(f"{time.monotonic() - began_s:5.1f} s  {line}")

    return report


def _print_summary(summary: Any) -> None:
    surge, kill, took = summary.surge, summary.kill, summary.durations
    rows = [
        ("rides in", f"{summary.rides:,}"),
        ("rows out", f"{summary.rows:,}"),
        ("lost", str(summary.lost)),
        ("duplicated", str(summary.duplicated)),
        ("uplink", _describe_saving(summary.saved, summary.sent_bytes, summary.all_cloud_bytes)),
    ]
    if summary.saved_since is not None:
        since = (summary.saved_since, summary.sent_since_bytes, summary.all_cloud_since_bytes)
        rows.append(("  since the adaptation", _describe_saving(*since)))
    if surge is not None:
        rows += [
            ("surge: detected", _after(surge.detected_s)),
            ("  decided", _after(surge.decided_s)),
            ("  new cuts in force", _after(surge.in_force_s)),
            ("  changes of cuts", str(surge.changes)),
        ]
    rows.append(("longest output pause", f"{summary.longest_pause_s:.1f} s"))
    if kill is not None:
        rows += [
            (f"kill of {kill.site}: seen down", _after(kill.seen_down_s)),
            ("  back", _after(kill.back_s)),
        ]
    rows.append(("time", f"set-up {took.setup:.0f} s, show {took.show:.0f} s, waiting "
                 f"{took.waiting:.0f} s, comparison {took.comparison:.0f} s"))  # fmt: skip
    rows.append(("settings", f"{summary.settings}, {summary.strategy} with "
                 + ", ".join(f"{k} {v:g}" for k, v in summary.options.items())))  # fmt: skip
    typer.echo("")
    for name, text in rows:
        typer.echo(f"{name:<28}{text}")
    for change in summary.adaptations:
        before, after = change["figures"], change.get("expected") or {}
        typer.echo(f"adaptation: {change['reason']}")
        typer.echo(f"    T {_seconds(before)} -> {_seconds(after)}")
        typer.echo(f"    B {_bandwidth(before)} -> {_bandwidth(after)}")


def _describe_saving(saved: float, sent: int, all_cloud: int) -> str:
    return f"{saved:.0%} saved: {sent / 1e6:.2f} MB, where all-cloud sends {all_cloud / 1e6:.2f} MB"


def _after(seconds: float | None) -> str:
    return "not seen" if seconds is None else f"after {seconds:.1f} s"


def _seconds(figures: dict[str, Any]) -> str:
    from thalweg.units import DURATION, show_quantity

    value = figures.get("response_time_s")
    return "?" if value is None else show_quantity(value, DURATION)


def _bandwidth(figures: dict[str, Any]) -> str:
    from thalweg.units import BANDWIDTH, show_quantity

    value = figures.get("uplink_bps")
    return "?" if value is None else show_quantity(value, BANDWIDTH)


def _plan(format: Format) -> None:  # noqa: A002
    from thalweg.model.plan_figures import PlanFigures
    from thalweg.plan_summary import PlanSummary
    from thalweg.spark.demo import CALM_PER_S, SURGE_PER_S, demo_settings, plan_demo

    found = {rate: plan_demo(rate) for rate in (CALM_PER_S, SURGE_PER_S)}
    if format is Format.JSON:
        plans = [
            {
                "rides_per_s": rate,
                "plan": chosen.to_dict(),
                "all_cloud": all_cloud.to_dict(),
            }
            for rate, (chosen, all_cloud) in found.items()
        ]
        print_json({"settings": demo_settings(), "plans": plans})
        return
    for rate, (chosen, all_cloud) in found.items():
        typer.echo(f"at {rate:g} rides/s:\n")
        beside = PlanSummary(found=PlanFigures(chosen), baseline=PlanFigures(all_cloud))
        print_plan(chosen, beside)
        typer.echo("")
