"""`thalweg profile`: what do the operators of a pipeline do to events, and what do they cost?"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from thalweg.cli.inputs import name_options
from thalweg.cli.options import (
    PipelineArgument,
    PlotOption,
    SeedOption,
    on_option,
    output_option,
)
from thalweg.cli.output import Format, FormatOption, counting, print_json, print_table, say
from thalweg.cli.output_files import require_place

if TYPE_CHECKING:
    from thalweg.errors import Defects
    from thalweg.spark.pipeline import Pipeline

_OPTIONS = {"master": "--on", "rate": "--rate", "repeat": "--repetitions", "sites": "--sites"}


def profile(
    pipeline: PipelineArgument,
    folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FOLDER]", help="Take what this run has measured; measure nothing now."
        ),
    ] = None,
    rows: Annotated[
        int | None,
        typer.Option(
            "--rows", metavar="N", help="Rows of each source; else enough for some windows."
        ),
    ] = None,
    data: Annotated[
        list[Path] | None,
        typer.Option(
            "--data",
            metavar="[SOURCE=]FILE",
            help="A source's rows (.parquet, .csv or .json); repeatable. Else they are generated.",
        ),
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option("--rate", help="Events per second of event time; else as declared."),
    ] = None,
    sites: Annotated[
        int,
        typer.Option("--sites", metavar="N", help="Over how many sites the rows are split."),
    ] = 1,
    repetitions: Annotated[
        int,
        typer.Option(
            "--repetitions", metavar="N", help="How often each operator's CPU is measured."
        ),
    ] = 5,
    seed: SeedOption = 0,
    output: Annotated[
        Path | None, output_option("the application with measured figures (YAML or JSON)")
    ] = None,
    plot: PlotOption = None,
    on: Annotated[str | None, on_option("local[1]; a local one")] = None,
    format: FormatOption = Format.TABLE,  # noqa: A002 - the name of the option
) -> None:
    """Run each operator on a sample with Spark: selectivity, event sizes, CPU, state."""
    if folder is not None:
        _profile_run(pipeline, folder, output, format)
        return
    from thalweg.errors import Defects
    from thalweg.files.save import require_place as require_model_place
    from thalweg.plotting import PLOT_ENDINGS, require_plotting
    from thalweg.spark.profile import profile as measure
    from thalweg.spark.profile.report import (
        plot_profile,
        profile_table,
        save_application,
        show_difference,
    )

    if plot is not None:
        require_plotting()
    defects = Defects()
    found = defects.attempt("", lambda: _find_pipeline(pipeline))
    if output is not None:
        defects.attempt("--output", lambda: require_model_place(output))
    require_place(defects, plot, PLOT_ENDINGS)
    files = _read_data(defects, [os.fspath(each) for each in data or []], found)
    defects.raise_if_any()
    with counting("profiling") as on_progress:
        run = partial(
            measure,
            cast("Pipeline", found),
            rows,
            data=files,
            rate=rate,
            sites=sites,
            repeat=repetitions,
            seed=seed,
            master=on,
            on_progress=on_progress,
        )
        result = name_options(run, _OPTIONS)
    if output is not None:
        save_application(result, output)
    if plot is not None:
        plot_profile(result, plot)
    if format is Format.JSON:
        print_json(result.to_dict())
    else:
        print_table(*profile_table(result), title=f"declared → measured at {result.calibration}")
        for difference in result.differences():
            typer.echo(show_difference(difference))
    for path in (output, plot):
        if path is not None:
            say(f"wrote {path}")


def _profile_run(
    pipeline: str,
    folder: Path,
    output: Path | None,
    format: Format,  # noqa: A002
) -> None:
    """What a run has measured of a pipeline, beside what is declared."""
    from thalweg.errors import Defects
    from thalweg.files.save import require_place
    from thalweg.spark.profile.measured_run import figure_rows, read_measured, save_measured

    defects = Defects()
    found = defects.attempt("", lambda: _find_pipeline(pipeline))
    if output is not None:
        defects.attempt("--output", lambda: require_place(output))
    measured = None
    if found is not None:
        application = found.application
        measured = defects.attempt("", lambda: read_measured(application, folder))
    defects.raise_if_any()
    if measured is None:
        return
    if output is not None:
        save_measured(measured, output)
    if format is Format.JSON:
        print_json(measured.to_dict())
    else:
        columns = ["operator", "figure", "declared", "measured", "from", "to"]
        print_table(columns, figure_rows(measured), title=f"measured by {folder}")
    if output is not None:
        say(f"wrote {output}")


def _find_pipeline(name: str) -> Pipeline:
    """The example of that name, or the pipeline of that module."""
    from thalweg.errors import Defect, InvalidInput, nearest
    from thalweg.spark.examples import EXAMPLES
    from thalweg.spark.pipeline.reference import load_pipeline

    if ":" not in name and name not in EXAMPLES:
        rule = "the name of an example, or package.module:attribute"
        hint = nearest(name, EXAMPLES)
        raise InvalidInput([Defect(path="pipeline", value=name, rule=rule, hint=hint)])
    return load_pipeline(EXAMPLES.get(name, name))


def _read_data(defects: Defects, words: list[str], pipeline: Pipeline | None) -> dict[str, str]:
    """The file of each source; one without a name is for the only source."""
    sources = [] if pipeline is None else [s.name for s in pipeline.steps if s.role == "source"]
    files: dict[str, str] = {}
    for word in words:
        name, equals, path = word.partition("=")
        if equals and name in sources:
            source, file = name, path
        elif len(sources) == 1:
            source, file = sources[0], word
        else:
            rule = f"SOURCE=FILE with one of the sources {', '.join(sources)}"
            if pipeline is not None:
                defects.add("--data", word, rule)
            continue
        defects.require(source not in files, "--data", word, "one file for each source")
        files[source] = file
    return files
