"""`thalweg demo`: the main job on the embedded default."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from thalweg.cli.output import Format, FormatOption, print_json, print_plan, say
from thalweg.cli.serve import OpenOption, PageOption, PortOption, RunServer, show_run


def demo(
    seconds: Annotated[
        float, typer.Option(help="How long rides come in.", show_default=True)
    ] = 100.0,
    data: Annotated[
        Path | None,
        typer.Option(help="A trip file of the NYC Taxi & Limousine Commission to take rides from."),
    ] = None,
    folder: Annotated[
        Path | None, typer.Option(help="Where the run is kept; else it is thrown away.")
    ] = None,
    plan_only: Annotated[
        bool, typer.Option("--plan-only", help="Plan, explain and check; start nothing.")
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

    server = RunServer(page=page, port=port, show=open_page)
    server.require_ready()
    with tempfile.TemporaryDirectory(prefix="thalweg-demo-") as temporary, ExitStack() as beside:

        def show(run: Path) -> None:
            if server.is_wanted:
                beside.enter_context(show_run(run, server))

        summary = run_demo(
            folder or Path(temporary) / "run",
            seconds=seconds,
            data=data,
            tell=_tell_since(),
            on_start=show,
        )
    if format is Format.JSON:
        print_json(summary.to_dict())
    else:
        _print_summary(summary)
        if folder is not None:
            typer.echo(f"`thalweg serve {folder}` shows it again")
    if summary.lost or summary.doubled:
        raise typer.Exit(70)


def _tell_since() -> Any:
    """Says things with the time since the first of them, beside what a program would read."""
    import time

    began_s = time.monotonic()

    def tell(line: str) -> None:
        say(f"{time.monotonic() - began_s:5.1f} s  {line}")

    return tell


def _print_summary(summary: Any) -> None:
    typer.echo(
        f"\nrides in         {summary.rides}\n"
        f"rows out         {summary.rows}\n"
        f"lost             {summary.lost}\n"
        f"duplicated       {summary.doubled}\n"
        f"uplink           {summary.sent_bytes / 1e6:.2f} MB, where all-cloud sends "
        f"{summary.all_cloud_bytes / 1e6:.2f} MB: {summary.saved:.0%} saved\n"
        f"sites restarted  {summary.restarts}\n"
        f"adaptations      {len(summary.adaptations)}"
    )
    for change in summary.adaptations:
        before, after = change["figures"], change.get("expected") or {}
        typer.echo(f"  {change['reason']}")
        typer.echo(f"    T {_seconds(before)} -> {_seconds(after)}")
        typer.echo(f"    B {_kbps(before)} -> {_kbps(after)}")
    typer.echo(f"in {summary.seconds:.0f} s, everything included")


def _seconds(figures: dict[str, Any]) -> str:
    value = figures.get("response_time_s")
    return "?" if value is None else f"{value:.3f} s"


def _kbps(figures: dict[str, Any]) -> str:
    value = figures.get("uplink_bps")
    return "?" if value is None else f"{value / 1e3:.0f} kbit/s"


def _plan(format: Format) -> None:  # noqa: A002
    import thalweg
    from thalweg.scenarios import small_city, small_taxi

    app, net = small_taxi(), small_city()
    plan = thalweg.plan(app, net)
    violations = thalweg.check(plan, app, net)
    if format is Format.JSON:
        print_json({**plan.to_dict(), "checker_violations": len(violations)})
        return
    estimate = plan.estimate
    typer.echo(f"{len(app.operators)} operators of {app.name} on {net!r}\n")
    print_plan(plan)
    typer.echo(f"\n{plan.explain()}\n")
    typer.echo(f"independent checker: {len(violations)} violations")
    typer.echo(
        f"aggregate latency {estimate.aggregate_latency_s:.3f} s over "
        f"{estimate.path_count:.0f} paths, worst {estimate.worst_latency_s:.3f} s; "
        f"response time {estimate.response_time_s:.3f} s; "
        f"uplink {estimate.uplink_bps / 8e6:.3f} MB/s; "
        f"planned in {plan.seconds * 1e3:.1f} ms, {plan.candidates} candidates"
    )
