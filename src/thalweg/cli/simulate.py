"""`thalweg simulate`: run a plan event by event."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from thalweg.cli.inputs import ApplicationArgument, NetworkArgument, WorkloadOption
from thalweg.cli.output import (
    Format,
    FormatOption,
    counting,
    print_json,
    print_table,
    say,
    tell_wrapped,
)
from thalweg.cli.output_files import require_place, write_beside
from thalweg.cli.simulation_case import SimulationCase
from thalweg.cli.simulation_physics import (
    Arriving,
    Asked,
    Serving,
    Sharing,
    choose_control,
    choose_physics,
)

if TYPE_CHECKING:
    from thalweg.simulate import Experiment, Simulation

_STEPS = 1000


def simulate(
    application: ApplicationArgument,
    network: NetworkArgument,
    plan: Annotated[Path, typer.Argument(metavar="PLAN", help="Plan file (JSON or YAML).")],
    seconds: Annotated[float, typer.Option(help="How long to simulate.")] = 60.0,
    seed: Annotated[int, typer.Option(help="Of all random numbers.")] = 0,
    replications: Annotated[
        int, typer.Option(help="Runs with random numbers of their own; intervals from two on.")
    ] = 1,
    warm_up: Annotated[
        float | None, typer.Option(help="Seconds that do not count; default: a tenth.")
    ] = None,
    workload: WorkloadOption = None,
    changes: Annotated[
        Path | None, typer.Option(help="What changes on the way: plans, rates, failures.")
    ] = None,
    beside: Annotated[
        list[str] | None,
        typer.Option(metavar="APP:PLAN", help="Another application that runs beside; repeatable."),
    ] = None,
    adapt: Annotated[
        str | None, typer.Option(help="A strategy that watches and adapts, by name.")
    ] = None,
    interval: Annotated[str, typer.Option(help="How often it looks.")] = "10 s",
    arrivals: Annotated[Arriving, typer.Option(help="How events are born.")] = Arriving.POISSON,
    burst: Annotated[
        str, typer.Option(metavar="ON:OFF", help="Mean lengths of bursts and of silence.")
    ] = "1 s:4 s",
    trace: Annotated[
        Path | None,
        typer.Option(help="When events are born: .csv or .parquet with source, site, time_s."),
    ] = None,
    service: Annotated[
        Serving, typer.Option(help="How times of service vary; as the plan's estimate has it.")
    ] = Serving.ESTIMATED,
    service_times: Annotated[
        Path | None,
        typer.Option(help="Measured times of service: .csv or .parquet with operator, seconds."),
    ] = None,
    cpu: Annotated[
        Sharing, typer.Option(help="Whether operators share a CPU; as the plan's estimate has it.")
    ] = Sharing.ESTIMATED,
    even: Annotated[
        bool, typer.Option("--even", help="Let every so many-th event through, not random ones.")
    ] = False,
    rate_factor: Annotated[
        list[float] | None,
        typer.Option(help="Simulate at so many times the rates; repeatable, a row for each."),
    ] = None,
    spark: Annotated[
        bool, typer.Option("--spark", help="Run side by side on Spark, on this machine's cores.")
    ] = False,
    master: Annotated[
        str | None, typer.Option("--master", help="The same on a Spark master or Connect address.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Also save all tables and a manifest in this folder.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw it into this file (.png, .svg or .pdf).")
    ] = None,
    format: FormatOption = Format.TABLE,  # noqa: A002 - the name of the option
) -> None:
    """Run a plan event by event: latencies, queues and links, beside what was estimated."""
    from thalweg.errors import Defects
    from thalweg.plotting import PLOT_ENDINGS, require_plotting
    from thalweg.simulate.plot import plot_simulation

    if plot is not None:
        require_plotting()
    defects = Defects()
    given_files = [application, network, plan, *(path for path in (workload, changes) if path)]
    given_files += [path for path in (trace, service_times) if path]
    files = [*given_files, *(Path(part) for text in beside or [] for part in text.split(":", 1))]
    case = SimulationCase(defects, application, network, plan, beside or [])
    options = case.read(workload, changes)
    asked = Asked(arrivals, burst, trace, service, service_times, cpu, even)
    options["physics"] = defects.attempt("", lambda: choose_physics(asked, case.plans))
    options["control"] = defects.attempt("", lambda: choose_control(adapt, interval))
    require_place(defects, plot, PLOT_ENDINGS)
    if out is not None:
        rule = "a folder, or a name that is not taken"
        defects.require(not out.exists() or out.is_dir(), "--out", str(out), rule)
    factors = rate_factor or [1.0]
    for factor in factors:
        defects.require(0 <= factor <= 1e9, "--rate-factor", factor, "a number from 0 to 1e9")
    defects.raise_if_any()
    given = {"seconds": seconds, "seed": seed, "replications": replications, "warm_up_s": warm_up}
    experiments = [case.prepare(factor, {**given, **options}) for factor in factors]
    found = _run(experiments, on_spark=spark or master is not None, master=master)
    if out is not None:
        _save(found, factors, out, files)
        _save_case(case, [out] if len(found) == 1 else [out / f"rate-{f:g}" for f in factors])
    if plot is not None:
        write_beside(plot, partial(plot_simulation, found[0]))
    if format is Format.JSON:
        told = [result.to_dict() for result in found]
        listed = [{"rate_factor": f, **each} for f, each in zip(factors, told, strict=True)]
        print_json(told[0] if len(told) == 1 else {"thalweg": 1, "points": listed})
    elif len(found) == 1:
        _print(found[0])
    else:
        _print_points(factors, found)


def _run(experiments: list[Experiment], *, on_spark: bool, master: str | None) -> list[Simulation]:
    if on_spark:
        from thalweg.experiments.simulations import run_on_spark

        with counting("runs") as on_progress:
            return run_on_spark(experiments, master=master, on_progress=on_progress)
    from thalweg.simulate.run import run_all

    found = []
    with counting("simulating") as on_progress:
        for number, experiment in enumerate(experiments):

            def tell(part: float, number: int = number) -> None:
                done = round((number + part) / len(experiments) * _STEPS)
                on_progress(done, _STEPS)

            found.append(run_all(experiment, tell))
    return found


def _save(
    found: list[Simulation], factors: Sequence[float], out: Path, files: Sequence[Path]
) -> None:
    from thalweg.simulate.saving import save_simulation

    listed = [each for path in files for each in (sorted(path.rglob("*")) or [path])]
    inputs = {str(path): sha256(path.read_bytes()).hexdigest() for path in listed if path.is_file()}
    command = shlex.join(["thalweg", *sys.argv[1:]])
    for factor, result in zip(factors, found, strict=True):
        folder = out if len(found) == 1 else out / f"rate-{factor:g}"
        more = {"rate_factor": factor}
        save_simulation(result, folder, inputs=inputs, command=command, settings=more)
        say(f"wrote {folder}")


def _save_case(case: SimulationCase, folders: Sequence[Path]) -> None:
    """Keep what was simulated beside what came out, so that a page can show it."""
    from thalweg.files.model_folder import save_model

    if case.network is not None:
        for folder in folders:
            save_model(folder, case.applications[0], case.network, case.plans[0])


def _print(found: Simulation) -> None:
    from thalweg.simulate.report import balance, headline, report, warnings

    tell_wrapped(headline(found))
    for table in report(found):
        typer.echo("")
        print_table(table.names, table.rows, title=table.title)
    typer.echo("")
    for line in (balance(found), *warnings(found)):
        tell_wrapped(line)


def _print_points(factors: Sequence[float], found: list[Simulation]) -> None:
    from thalweg.simulate.report import point_row, point_titles

    rows = [[f"{f:g}", *point_row(each)] for f, each in zip(factors, found, strict=True)]
    print_table(["rate factor", *point_titles()], rows)
