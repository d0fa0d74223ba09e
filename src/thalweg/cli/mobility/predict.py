"""`thalweg mobility predict`: how often is each kind of knowledge right?"""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from thalweg.cli.mobility.case import (
    EdgesOption,
    FillOption,
    LearnFromOption,
    LengthOption,
    NetworkOption,
    RoutesOption,
    TracksOption,
    VehiclesOption,
)
from thalweg.cli.options import DURATION, SeedOption, interval_option
from thalweg.cli.output import Format, FormatOption, print_json, print_table, progress, say

if TYPE_CHECKING:
    from thalweg.migration.hit_rate import HitRate

AHEAD = ("5 s", "15 s", "30 s", "60 s")


def predict(
    network: NetworkOption = None,
    tracks: TracksOption = None,
    routes: RoutesOption = None,
    edges: EdgesOption = None,
    fill_gaps: FillOption = False,
    learn_from: LearnFromOption = None,
    ahead: Annotated[
        list[str] | None,
        typer.Option(
            "--ahead",
            metavar=DURATION,
            help="How far to look ahead; repeatable; else 5, 15, 30 and 60 s.",
        ),
    ] = None,
    interval: Annotated[str, interval_option("prediction")] = "10 s",
    vehicles: VehiclesOption = 1000,
    length: LengthOption = "1000 s",
    seed: SeedOption = 0,
    format: FormatOption = Format.TABLE,  # noqa: A002 - the name of the option
) -> None:
    """Ask every predictor whose input is there where vehicles will connect, and count its hits."""
    from thalweg.cli.mobility.case import (
        TraceAsked,
        in_options,
        missing_input,
        read_ground,
        read_predictor,
        read_transitions,
    )
    from thalweg.cli.mobility.quantities import read_seconds
    from thalweg.errors import Defects
    from thalweg.migration.hit_rate import hit_rates
    from thalweg.migration.mobility import KNOWLEDGE

    defects = Defects()
    asked = TraceAsked(
        tracks=tracks,
        routes=routes,
        edges=edges,
        fill_gaps=fill_gaps,
        vehicles=vehicles,
        length=length,
        seed=seed,
    )
    with progress("loading"):
        ground = read_ground(defects, network, asked)
        transitions = read_transitions(defects, learn_from, ground)
        ahead_s = [read_seconds(defects, "--ahead", text) for text in ahead or AHEAD]
        every_s = read_seconds(defects, "--interval", interval)
        defects.raise_if_any()
        assert ground is not None  # noqa: S101 - told before
        missing = {name: missing_input(name, ground, transitions) for name in KNOWLEDGE}
        wanted = [name for name, what in missing.items() if not what]
        made = [read_predictor(defects, name, ground, transitions) for name in wanted]
        defects.raise_if_any()
    with progress("predicting"):
        connections = ground.connections
        asking = [predictor for predictor in made if predictor is not None]
        found = in_options(lambda: hit_rates(asking, connections, ahead_s=ahead_s, every_s=every_s))
    if format is Format.JSON:
        print_json({"hit_rates": [_plain(rate) for rate in found]})
    else:
        _print(found)
    for name, what in missing.items():
        if what:
            say(f"without {name}: {what}")


def _plain(rate: HitRate) -> dict[str, Any]:
    figures = asdict(rate)
    return {
        name: None if isinstance(value, float) and math.isnan(value) else value
        for name, value in figures.items()
    }


def _print(found: list[HitRate]) -> None:
    names = ["predictor", "ahead", "asked", "hits", "probability", "moved", "hits of moved"]
    rows = [
        [
            rate.predictor,
            f"{rate.ahead_s:g} s",
            f"{rate.moments:,}",
            _percent(rate.hits),
            _percent(rate.probability),
            f"{rate.moved:,}",
            _percent(rate.hits_moved),
        ]
        for rate in found
    ]
    print_table(names, rows)


def _percent(share: float) -> str:
    return "-" if math.isnan(share) else f"{share:.1%}"
