"""`thalweg mobility learn`: how vehicles went from leaf to leaf, counted with Spark."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from thalweg.cli.mobility.case import NetworkOption
from thalweg.cli.mobility.planning import StepOption
from thalweg.cli.options import on_option, output_option
from thalweg.cli.output import Format, FormatOption, print_json, print_table, progress, say

if TYPE_CHECKING:
    from thalweg.files.transitions_table import TransitionTable

_MOST_LEAVES = 40


def learn(
    tracks: Annotated[
        list[Path], typer.Argument(metavar="TRACKS", help="Past traces, each a trace of its own.")
    ],
    output: Annotated[Path, output_option("the counts (.parquet)")],
    network: NetworkOption = None,
    step: StepOption = "1 s",
    on: Annotated[str | None, on_option("this machine's cores")] = None,
    format: FormatOption = Format.TABLE,  # noqa: A002 - the name of the option
) -> None:
    """Count with Spark where vehicles go next and how long they stay, for `--learn-from`."""
    from thalweg.cli.mobility.case import read_brokers
    from thalweg.cli.mobility.quantities import read_seconds
    from thalweg.cli.output_files import require_place
    from thalweg.errors import Defects

    defects = Defects()
    brokers = read_brokers(defects, network)
    step_s = read_seconds(defects, "--step", step)
    require_place(defects, output, (".parquet",))
    for path in tracks:
        defects.require(path.exists(), "TRACKS", str(path), "an existing file or folder")
        good = not path.is_file() or path.suffix == ".parquet"
        hint = "give a .csv to --learn-from as it is"
        defects.require(good, "TRACKS", str(path), "a .parquet file, or a folder of them", hint)
    defects.raise_if_any()
    assert brokers is not None  # noqa: S101 - told before
    from thalweg.spark.transitions.count import count_transitions

    with progress("counting"):
        found = count_transitions(tracks, brokers, master=on, into=output, step_s=step_s)
    if format is Format.JSON:
        rows = [
            {"previous": a, "leaf": b, "next": c, "count": n, "stay_s": stay, "spread_s": spread}
            for (a, b, c), (n, stay, spread) in found.rows().items()
        ]
        print_json({"stays": int(found.count.sum()), "transitions": rows})
    else:
        _print(found)
    say(f"wrote {output}")


def _print(found: TransitionTable) -> None:
    """A row for each leaf: how often and how long vehicles stayed, and where most went."""
    stays: defaultdict[str, int] = defaultdict(int)
    seconds: defaultdict[str, float] = defaultdict(float)
    after: defaultdict[str, defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))
    for (_, leaf, following), (count, stay_s, _) in found.rows().items():
        stays[leaf] += count
        seconds[leaf] += count * stay_s
        after[leaf][following] += count
    rows = []
    for leaf in [leaf for leaf in found.leaves if stays[leaf]][:_MOST_LEAVES]:
        likeliest, count = max(after[leaf].items(), key=lambda pair: pair[1])
        share = f"{count / stays[leaf]:.0%}"
        mean = f"{seconds[leaf] / stays[leaf]:.1f} s"
        rows.append([leaf, f"{stays[leaf]:,}", mean, likeliest or "(trip ends)", share])
    more = len(stays) - len(rows)
    title = f"{int(found.count.sum()):,} stays in {len(stays)} leaves"
    title += f"; the first {len(rows)} of them" if more > 0 else ""
    print_table(["leaf", "stays", "mean stay", "mostly to", "share"], rows, title=title)
