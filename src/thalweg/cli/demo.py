"""`thalweg demo`: the main job on the embedded default."""

from __future__ import annotations

import typer

from thalweg.cli.output import Format, FormatOption, print_json, print_plan


def demo(format: FormatOption = Format.TABLE) -> None:  # noqa: A002 - the name of the option
    """Plan a small taxi application on a small city, explain the plan and check it."""
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
