"""`thalweg simulate`: run a plan event by event."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from thalweg.cli.inputs import ApplicationArgument, NetworkArgument, name_options, read_duration
from thalweg.cli.options import (
    DURATION,
    PlotOption,
    SeedOption,
    VaryOption,
    WorkloadOption,
    also_option,
    for_option,
    interval_option,
    on_option,
    output_option,
    strategy_option,
)
from thalweg.cli.output import (
    Format,
    FormatOption,
    counting,
    print_json,
    print_table,
    say,
    tell_wrapped,
)
from thalweg.cli.output_files import require_folder, require_place, write_beside
from thalweg.cli.ranges import read_rate_factors
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
_OPTIONS = {
    "seconds": "--for",
    "seed": "--seed",
    "replications": "--replications",
    "warm_up_s": "--warm-up",
}


def simulate(
    application: ApplicationArgument,
    network: NetworkArgument,
    plan: Annotated[Path, typer.Argument(metavar="PLAN", help="Plan file (JSON or YAML).")],
    length: Annotated[str, for_option("events come in")] = "60 s",
    seed: SeedOption = 0,
    replications: Annotated[
        int,
        typer.Option(
            "--replications",
            metavar="N",
            help="Runs with random numbers of their own; intervals from two on.",
        ),
    ] = 1,
    warm_up: Annotated[
        str | None,
        typer.Option(
            "--warm-up",
            metavar=DURATION,
            help="Time at the start that does not count; else a tenth.",
        ),
    ] = None,
    workload: WorkloadOption = None,
    changes: Annotated[
        Path | None,
        typer.Option(
            "--changes", metavar="FILE", help="What changes on the way: plans, rates, failures."
        ),
    ] = None,
    also: Annotated[
        list[Path] | None, also_option("APP:PLAN", "that runs on the same network")
    ] = None,
    strategy: Annotated[
        str | None, strategy_option("Name of a strategy that adapts the plan on the way")
    ] = None,
    interval: Annotated[str, interval_option("observation by the strategy")] = "10 s",
    arrivals: Annotated[
        Arriving, typer.Option("--arrivals", help="How events arrive at their sources.")
    ] = Arriving.POISSON,
    burst: Annotated[
        str,
        typer.Option("--burst", metavar="ON:OFF", help="Mean lengths of bursts and of silence."),
    ] = "1 s:4 s",
    trace: Annotated[
        Path | None,
        typer.Option(
            "--trace",
            metavar="FILE",
            help="When events arrive: .csv or .parquet with source, site, time_s.",
        ),
    ] = None,
    service: Annotated[
        Serving,
        typer.Option("--service", help="How service times vary; else as in the plan's estimate."),
    ] = Serving.ESTIMATED,
    service_times: Annotated[
        Path | None,
        typer.Option(
            "--service-times",
            metavar="FILE",
            help="Measured service times: .csv or .parquet with operator, seconds.",
        ),
    ] = None,
    cpu: Annotated[
        Sharing,
        typer.Option("--cpu", help="How operators share a CPU; else as in the plan's estimate."),
    ] = Sharing.ESTIMATED,
    even: Annotated[
        bool, typer.Option("--even", help="Let every n-th event through, not random ones.")
    ] = False,
    vary: VaryOption = None,
    on: Annotated[str | None, on_option("one run after the other, without Spark")] = None,
    output: Annotated[Path | None, output_option("all tables and a manifest")] = None,
    plot: PlotOption = None,
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
    beside = [os.fspath(pair) for pair in also or []]
    files = [*given_files, *(Path(part) for text in beside for part in text.split(":", 1))]
    case = SimulationCase(defects, application, network, plan, beside)
    options = case.read(workload, changes)
    asked = Asked(arrivals, burst, trace, service, service_times, cpu, even)
    options["physics"] = defects.attempt("", lambda: choose_physics(asked, case.plans))
    options["control"] = defects.attempt("", lambda: choose_control(strategy, interval))
    require_place(defects, plot, PLOT_ENDINGS)
    require_folder(defects, output)
    factors = defects.attempt("", lambda: read_rate_factors(vary or [])) or [1.0]
    given: dict[str, Any] = {"seed": seed, "replications": replications}
    given["seconds"] = defects.attempt("", lambda: read_duration(length, "--for"))
    if warm_up is not None:
        given["warm_up_s"] = defects.attempt("", lambda: read_duration(warm_up, "--warm-up"))
    defects.raise_if_any()
    everything = {**given, **options}
    experiments = [
        name_options(partial(case.prepare, factor, everything), _OPTIONS) for factor in factors
    ]
    found = _run(experiments, on)
    if output is not None:
        _save(found, factors, output, files)
        _save_case(case, _folders(output, factors))
    if plot is not None:
        write_beside(plot, partial(plot_simulation, found[0]))
    if format is Format.JSON:
        listed = [
            {"rate_factor": factor, **result.to_dict()}
            for factor, result in zip(factors, found, strict=True)
        ]
        print_json(found[0].to_dict() if len(found) == 1 else {"points": listed})
    elif len(found) == 1:
        _print(found[0])
    else:
        _print_points(factors, found)


def _run(experiments: list[Experiment], master: str | None) -> list[Simulation]:
    if master is not None:
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
    for folder, factor, result in zip(_folders(out, factors), factors, found, strict=True):
        more = {"rate_factor": factor}
        save_simulation(result, folder, inputs=inputs, command=command, settings=more)
        say(f"wrote {folder}")


def _folders(out: Path, factors: Sequence[float]) -> list[Path]:
    """The folder of each result."""
    return [out] if len(factors) == 1 else [out / f"rate-{factor:g}" for factor in factors]


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
