"""`thalweg simulate`: run a plan event by event."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Sequence
from enum import StrEnum
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from thalweg.cli.inputs import ApplicationArgument, NetworkArgument, WorkloadOption
from thalweg.cli.output import Format, FormatOption, counting, print_json, print_table, say
from thalweg.cli.output_files import require_place, write_beside

if TYPE_CHECKING:
    from thalweg.errors import Defects, InvalidInput
    from thalweg.model import Application, Network, Plan
    from thalweg.model.changes import Change
    from thalweg.simulate import Experiment, Physics, Simulation

_STEPS = 1000


class Arriving(StrEnum):
    """How events are born."""

    POISSON = "poisson"
    PERIODIC = "periodic"
    ON_OFF = "on-off"


class Serving(StrEnum):
    """How times of service vary."""

    ESTIMATED = "estimated"
    EXPONENTIAL = "exponential"
    DETERMINISTIC = "deterministic"


class Sharing(StrEnum):
    """Who has the CPU of a node."""

    ESTIMATED = "estimated"
    WHOLE = "whole"
    SHARED = "shared"


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
    case = _Case(defects, application, network, plan, beside or [])
    options = case.read(workload, changes)
    asked = _Asked(arrivals, burst, trace, service, service_times, cpu, even)
    options["physics"] = defects.attempt("", lambda: _physics(asked, case))
    options["control"] = defects.attempt("", lambda: _control(adapt, interval))
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


class _Case:
    """What the files say."""

    def __init__(
        self, defects: Defects, application: Path, network: Path, plan: Path, beside: Sequence[str]
    ) -> None:
        from thalweg.files.load import load_application, load_network, load_plan

        self._defects = defects
        self._paths = (application, network, plan)
        pairs = [(application, plan)]
        self._plan_files = [plan]
        for text in beside:
            app, colon, placed = text.partition(":")
            defects.require(bool(app and colon and placed), "--beside", text, "APP:PLAN")
            if app and colon and placed:
                pairs.append((Path(app), Path(placed)))
                self._plan_files.append(Path(placed))
        self.network: Network | None = defects.attempt("", lambda: load_network(network))
        loaded = [
            (
                defects.attempt("", partial(load_application, app)),
                defects.attempt("", partial(load_plan, placed)),
            )
            for app, placed in pairs
        ]
        self.applications: list[Application] = [app for app, _ in loaded if app is not None]
        self.plans: list[Plan] = [placed for _, placed in loaded if placed is not None]
        self._changes: Path | None = None

    def read(self, workload: Path | None, changes: Path | None) -> dict[str, Any]:
        """The options that are in files."""
        from thalweg.cli.inputs import pose, require_births
        from thalweg.files.load import load_changes, load_workload

        defects = self._defects
        options: dict[str, Any] = {}
        if workload is not None:
            load = defects.attempt("", lambda: load_workload(workload))
            if load is not None and self.applications and self.network is not None:
                app, net = self.applications[0], self.network
                posed = defects.attempt("", lambda: pose(self._paths[0], app, net))
                if posed is not None:
                    load = defects.attempt("", partial(require_births, workload, load, posed))
            options["workload"] = load
        if changes is not None:
            self._changes = changes
            options["changes"] = defects.attempt("", lambda: load_changes(changes)) or ()
        return options

    def prepare(self, factor: float, options: dict[str, Any]) -> Experiment:
        """The experiment at so many times the rates, with the files that errors come from."""
        from thalweg.errors import InvalidInput
        from thalweg.simulate import prepare

        net = self.network
        if net is None or not self.applications:  # Told before.
            raise InvalidInput([])
        if factor != 1.0:
            options = {**options, **_scaled(self.applications[0], net, factor, options)}
        try:
            return prepare(self.applications, net, self.plans, **options)
        except InvalidInput as error:
            raise self._with_files(error) from None

    def _with_files(self, error: InvalidInput) -> InvalidInput:
        """The same problems, each with the file and line that it comes from, if it does."""
        from dataclasses import replace

        from thalweg.errors import InvalidInput
        from thalweg.files.load import find_lines

        found = []
        for defect in error.defects:
            path, file = defect.path, None
            number, which = 0, re.match(r"plans\[(\d+)\]\.", path)
            if which is not None:
                number, path = int(which[1]), path[which.end() :]
            if path.startswith("changes["):
                file = self._changes
            elif path.startswith(("placement", "plan.")):
                file = self._plan_files[number]
                path = path.removeprefix("plan.")
            if file is None:
                found.append(defect)
                continue
            found += find_lines(InvalidInput([replace(defect, path=path)]), file).defects
        return InvalidInput(found)


def _scaled(
    app: Application, net: Network, factor: float, options: dict[str, Any]
) -> dict[str, Any]:
    """The first application's rates, and those of its workload, times a factor."""
    from dataclasses import replace

    from thalweg.model import Problem

    load, scaled = options.get("workload"), {}
    if options.get("changes"):
        scaled["changes"] = tuple(_scale(change, app.name, factor) for change in options["changes"])
    if load is not None:
        return {**scaled, "workload": replace(load, rate=load.rate * factor)}
    births = Problem(application=app, network=net).births
    rates = {
        (app.operators[o].name, net.site_names[s]): rate * factor
        for o, s, rate in zip(
            births.operator.tolist(), births.site.tolist(), births.rate.tolist(), strict=True
        )
    }
    return {**scaled, "rates": rates}


def _scale(change: Change, application: str, factor: float) -> Change:
    """A change of the first application's rates, times a factor; others as they are."""
    from dataclasses import replace

    from thalweg.model.changes import RateChange

    own = isinstance(change, RateChange) and change.application in (None, application)
    if not (own and isinstance(change, RateChange)):
        return change
    return replace(change, rates={pair: rate * factor for pair, rate in change.rates.items()})


class _Asked(NamedTuple):
    """What is asked of how operators and links work."""

    arrivals: Arriving
    burst: str
    trace: Path | None
    service: Serving
    service_times: Path | None
    cpu: Sharing
    even: bool


_NOTHING = (Arriving.POISSON, None, Serving.ESTIMATED, None, Sharing.ESTIMATED, False)


def _physics(asked: _Asked, case: _Case) -> list[Physics] | None:
    """How each plan's operators and links work, as its estimate has it but for what is asked."""
    from dataclasses import replace

    from thalweg.simulate.physics import physics_of

    if (asked.arrivals, *asked[2:]) == _NOTHING or not case.plans:
        return None
    made: dict[str, Any] = {"even": asked.even, "arrivals": _arrivals(asked)}
    service = _service(asked)
    if service is not None:
        made["service"] = service
    if asked.cpu is not Sharing.ESTIMATED:
        made["cpu"] = asked.cpu.value
    return [replace(physics_of(placed), **made) for placed in case.plans]


def _arrivals(asked: _Asked) -> Any:
    from thalweg.errors import Defects
    from thalweg.files.sample_table import load_births
    from thalweg.simulate import OnOff, Periodic, Poisson, Trace
    from thalweg.units import DURATION, parse_quantity

    if asked.trace is not None:
        return {pair: Trace(time_s=times) for pair, times in load_births(asked.trace).items()}
    if asked.arrivals is Arriving.POISSON:
        return Poisson()
    if asked.arrivals is Arriving.PERIODIC:
        return Periodic()
    defects = Defects()
    on, colon, off = asked.burst.partition(":")
    defects.require(bool(colon), "--burst", asked.burst, "ON:OFF, such as 1 s:4 s")
    defects.raise_if_any()
    on_s = parse_quantity(on.strip(), DURATION, path="--burst")
    return OnOff(on_s=on_s, off_s=parse_quantity(off.strip(), DURATION, path="--burst"))


def _service(asked: _Asked) -> Any:
    from thalweg.files.sample_table import load_service_times
    from thalweg.simulate import Deterministic, Empirical, Exponential

    if asked.service_times is not None:
        times = load_service_times(asked.service_times)
        return {operator: Empirical(values) for operator, values in times.items()}
    if asked.service is Serving.ESTIMATED:
        return None
    return Exponential() if asked.service is Serving.EXPONENTIAL else Deterministic()


def _control(strategy: str | None, interval: str) -> Any:
    from thalweg.simulate import Control
    from thalweg.units import DURATION, parse_quantity

    interval_s = parse_quantity(interval, DURATION, path="--interval")
    return None if strategy is None else Control(strategy=strategy, interval_s=interval_s)


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


def _print(found: Simulation) -> None:
    from thalweg.simulate.report import balance, headline, report, warnings

    typer.echo(headline(found))
    for table in report(found):
        typer.echo("")
        print_table(table.names, table.rows, title=table.title)
    typer.echo("")
    typer.echo(balance(found))
    for line in warnings(found):
        typer.echo(line)


def _print_points(factors: Sequence[float], found: list[Simulation]) -> None:
    from thalweg.simulate.report import point_row, point_titles

    rows = [[f"{f:g}", *point_row(each)] for f, each in zip(factors, found, strict=True)]
    print_table(["rate factor", *point_titles()], rows)
