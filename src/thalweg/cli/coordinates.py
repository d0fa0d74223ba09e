"""`thalweg coordinates`: how well do network coordinates predict measured latencies?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from thalweg.cli.options import SeedOption
from thalweg.cli.output import Format, FormatOption, print_json, print_table, progress


def coordinates(
    matrix: Annotated[
        Path, typer.Argument(metavar="MATRIX", help="Round-trip times: .npz, .npy or .csv.")
    ],
    unit: Annotated[
        str | None,
        typer.Option("--unit", help="Unit of the times (s, ms, us) where the file has none."),
    ] = None,
    dimensions: Annotated[int, typer.Option("--dimensions", help="Dimensions of the space.")] = 5,
    seed: SeedOption = 0,
    format: FormatOption = Format.TABLE,  # noqa: A002 - the name of the option
) -> None:
    """Fit Vivaldi coordinates with heights to measured round-trip times and report the error."""
    import numpy as np

    from thalweg.errors import Defects, InvalidInput
    from thalweg.estimate.coordinates import fit_report
    from thalweg.files.latency_matrix import load_rtt_matrix

    defects = Defects()
    defects.require(seed >= 0, "--seed", seed, "a whole number >= 0")
    defects.raise_if_any()
    with progress("fitting coordinates"):
        rtt_s = load_rtt_matrix(matrix, unit=unit)
        try:
            report = fit_report(rtt_s, rng=np.random.default_rng(seed), dimensions=dimensions)
        except InvalidInput as error:
            raise error.in_file(str(matrix)) from None
    figures = {name: getattr(report, name) for name in report.__slots__ if name != "coordinates"}
    if format is Format.JSON:
        print_json(
            {
                **figures,
                "seed": seed,
                "position_s": report.coordinates.position.tolist(),
                "height_s": report.coordinates.height_s.tolist(),
            }
        )
        return
    rows = [
        [name.replace("_", " "), f"{value:.1%}" if isinstance(value, float) else f"{value:,}"]
        for name, value in figures.items()
    ]
    print_table(["figure", "value"], rows, title=f"coordinates for {matrix}, seed {seed}")
