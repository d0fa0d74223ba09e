"""`thalweg mobility trace`: vehicles that drive through a city, generated."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from thalweg.cli.mobility.case import LengthOption, NetworkOption, VehiclesOption
from thalweg.cli.options import SeedOption, output_option
from thalweg.cli.output import Format, FormatOption, print_json, print_table, progress, say

if TYPE_CHECKING:
    from thalweg.cli.mobility.case import Ground

TRACKS_FILE = "tracks.parquet"
ROUTES_FILE = "routes.parquet"
EDGES_FILE = "edges.parquet"


def trace(
    output: Annotated[Path, output_option("tracks, routes and edges", ", in this folder")],
    vehicles: VehiclesOption = 1000,
    length: LengthOption = "1000 s",
    seed: SeedOption = 0,
    network: NetworkOption = None,
    format: FormatOption = Format.TABLE,  # noqa: A002 - the name of the option
) -> None:
    """Generate where vehicles are and mean to drive: tracks, routes and edges as Parquet."""
    from thalweg.cli.mobility.case import TraceAsked, read_ground
    from thalweg.cli.output_files import require_folder
    from thalweg.errors import Defects
    from thalweg.files.tracks_writer import save_routes, save_tracks

    defects = Defects()
    require_folder(defects, output)
    asked = TraceAsked(vehicles=vehicles, length=length, seed=seed)
    with progress("driving"):
        ground = read_ground(defects, network, asked)
        defects.raise_if_any()
        assert ground is not None and ground.routes is not None  # noqa: S101 - told before
        _make(output)
        save_tracks(ground.vehicles, output / TRACKS_FILE)
        save_routes(ground.routes, output / ROUTES_FILE, output / EDGES_FILE)
    told = {**_figures(ground), "seed": seed}
    if format is Format.JSON:
        files = [str(output / name) for name in (TRACKS_FILE, ROUTES_FILE, EDGES_FILE)]
        print_json({**told, "files": files})
    else:
        rows = [[name.replace("_", " "), f"{value:,.6g}"] for name, value in told.items()]
        print_table(["figure", "value"], rows)
    for name in (TRACKS_FILE, ROUTES_FILE, EDGES_FILE):
        say(f"wrote {output / name}")


def _figures(ground: Ground) -> dict[str, Any]:
    there, rows = ground.connections.there, ground.vehicles.tracks.user.size
    return {
        "vehicles": ground.vehicles.count,
        "positions": int(rows),
        "seconds": ground.connections.steps * ground.connections.step_s,
        "most_at_once": int(there.sum(axis=0).max()),
        "hand_overs_each": float(ground.connections.hand_overs().mean()),
    }


def _make(folder: Path) -> None:
    from thalweg.errors import Defect, InvalidInput

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        rule = f"a folder that can be made ({(error.strerror or str(error)).lower()})"
        raise InvalidInput([Defect(path="--output", value=os.fspath(folder), rule=rule)]) from None
