"""`thalweg mobility handover`: an operator really moves between two local Sparks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from thalweg.cli.mobility.case import FillOption
from thalweg.cli.options import DURATION
from thalweg.cli.output import Format, FormatOption, print_json, print_table, say

if TYPE_CHECKING:
    from thalweg.errors import Defects
    from thalweg.model.workload import Tracks

SITES = ("broker-a", "broker-b")


def handover(
    tracks: Annotated[
        Path, typer.Argument(metavar="TRACKS", help="Where vehicles were (.parquet or .csv).")
    ],
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="New folder for the log and all else.")
    ],
    move: Annotated[
        list[str],
        typer.Option("--move", metavar="TIME=SITE", help="Move then to there; repeatable."),
    ],
    site: Annotated[
        list[str] | None,
        typer.Option("--site", help="Sites, at least two; repeatable; else broker-a, broker-b."),
    ] = None,
    start: Annotated[
        str | None, typer.Option("--start", help="Where it begins; else the first site.")
    ] = None,
    begin: Annotated[
        str | None,
        typer.Option("--from", metavar=DURATION, help="Leave out what is before in the trace."),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option("--until", metavar=DURATION, help="Leave out what is after in the trace."),
    ] = None,
    speedup: Annotated[
        float, typer.Option("--speedup", help="Seconds of the trace in one second.")
    ] = 1.0,
    lead: Annotated[
        str | None,
        typer.Option(
            "--lead", metavar=DURATION, help="How long before a move its state begins to be sent."
        ),
    ] = None,
    heap_mb: Annotated[int, typer.Option("--heap-mb", help="Memory of each site's Spark.")] = 512,
    fill_gaps: FillOption = False,
    format: FormatOption = Format.TABLE,  # noqa: A002 - the name of the option
) -> None:
    """Run an operator with state on real Sparks, move it, and count what is lost: exit 1 if any."""
    from thalweg.cli.mobility.quantities import read_seconds
    from thalweg.errors import Defects
    from thalweg.files.tracks_reader import load_tracks

    defects = Defects()
    found = defects.attempt("", lambda: load_tracks(tracks, gaps="fill" if fill_gaps else "refuse"))
    moves = [pair for text in move if (pair := _read_move(defects, text)) is not None]
    first_s = None if begin is None else read_seconds(defects, "--from", begin)
    last_s = None if until is None else read_seconds(defects, "--until", until)
    lead_s = None if lead is None else read_seconds(defects, "--lead", lead)
    rows = None if found is None else _cut(defects, found.tracks, first_s, last_s)
    defects.raise_if_any()
    assert rows is not None  # noqa: S101 - told before
    from thalweg.spark.mobility.handover import hand_over

    report = hand_over(
        moves,
        rows,
        folder=folder,
        sites=tuple(site or SITES),
        start=start,
        speedup=speedup,
        lead_s=lead_s,
        heap_mb=heap_mb,
        on_step=lambda at_s, step: say(f"{at_s:8.1f} s  {step}"),
    )
    if format is Format.JSON:
        print_json(report.to_dict())
    else:
        counts = report.events
        title = (
            f"{report.vehicles:,} vehicles, {counts.sent:,} positions in {report.seconds:.1f} s: "
            f"{counts.lost} lost, {counts.duplicated} twice; output and state "
            f"{'as' if report.outputs_equal and report.state_equal else 'not as'} in one place"
        )
        print_table(*report.table(), title=title)
    if not report.ok:
        raise typer.Exit(1)


def _read_move(defects: Defects, text: str) -> tuple[float, str] | None:
    from thalweg.cli.mobility.quantities import read_seconds

    moment, equals, site = text.partition("=")
    if not (equals and moment.strip() and site.strip()):
        defects.add("--move", text, "TIME=SITE", "write 530=broker-b")
        return None
    return read_seconds(defects, "--move", moment.strip()), site.strip()


def _cut(
    defects: Defects, tracks: Tracks, first_s: float | None, last_s: float | None
) -> Tracks | None:
    """The rows from one moment to another."""
    import numpy as np

    from thalweg.model.workload import Tracks

    if first_s is None and last_s is None:
        return tracks
    first = -np.inf if first_s is None else first_s
    last = np.inf if last_s is None else last_s
    keep = (tracks.time_s >= first) & (tracks.time_s <= last)
    if not keep.any():
        span = f"positions from {tracks.time_s.min():g} to {tracks.time_s.max():g} s"
        defects.add("--from, --until", [first_s, last_s], f"some of the {span}")
        return None
    return Tracks(
        user=tracks.user[keep],
        time_s=tracks.time_s[keep],
        x_m=tracks.x_m[keep],
        y_m=tracks.y_m[keep],
    )
