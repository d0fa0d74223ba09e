"""Draws the figures of README and documentation into docs/assets/, from runs made there and then.

`python -m tools.draw_readme_figures` draws all of them, with names only those:

- `plan.svg`: a plan, sites by tier with their operators, and what goes over the uplinks;
- `scale.png`: how long strategies take on 110 to 2.5 million nodes, about two minutes;
- `surge.png`: the picture of `examples/surge_and_adaptation.py`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

import thalweg as tw
from benchmarks import placement_scale
from thalweg.estimate.evaluate import evaluate
from thalweg.plotting import COLOURS
from thalweg.scenarios import cloud_edge, fog_cloud, taxi_fares

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROOT = Path(__file__).parents[1]
ASSETS = ROOT / "docs" / "assets"
DPI = 120
# A city at rush hour: one fog has thirteen times as many rides as the others.
RATES = {("rides", "fog-0"): 300.0, ("rides", "fog-1"): 4000.0, ("rides", "fog-2"): 300.0}
TIER_COLOURS = {"cloud": COLOURS[1], "fog": COLOURS[3], "edge": COLOURS[4]}
GAP, CHIP_HEIGHT, CHIP_GAP = 0.02, 0.062, 0.012
SCALE_OPERATORS = 25
SCALE_SEEDS = 3
SCALE_REPEATS = 5
PLAIN = "aels, node by node in Python"
SCALE_SHAPES = placement_scale.SHAPES
MARKERS = "osD^vP*"


def main() -> int:
    """Draw what is asked for, and say where it is."""
    figures: dict[str, Callable[[Path], None]] = {
        "plan.svg": draw_plan,
        "scale.png": draw_scale,
        "surge.png": draw_surge,
    }
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(figures))
    parser.add_argument("--into", type=Path, default=ASSETS, help="another folder than docs/assets")
    wanted = parser.parse_args()
    if unknown := set(wanted.names) - set(figures):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; known: {', '.join(figures)}")
    wanted.into.mkdir(parents=True, exist_ok=True)
    for name in wanted.names or figures:
        path = wanted.into / name
        figures[name](path)
        print(f"wrote {path} ({path.stat().st_size / 1e3:.0f} kB)")
    return 0


def draw_plan(path: Path) -> None:
    """The taxi application at rush hour: one fog takes over, the others leave it to the cloud."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    application = taxi_fares()
    network = fog_cloud(3, seed=1, fog_bandwidth_bps=(5e6, 5e6), fog_latency_s=(0.02, 0.04))
    problem = tw.Problem(application=application, network=network, rates=RATES)
    plan = tw.plan(application, network, "trcs", rates=RATES)
    figure = Figure(figsize=(8, 4.4))
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set(xlim=(0, 1), ylim=(0, 1))
    axes.axis("off")
    fogs = [name for name in network.site_names if name != "cloud"]
    step = (0.96 + GAP) / len(fogs)
    _draw_site(axes, plan, "cloud", (0.02, 0.67, 0.96, 0.24), "", columns=5)
    for k, fog in enumerate(fogs):
        born = f"{RATES['rides', fog]:,.0f} rides/s"
        _draw_site(axes, plan, fog, (0.02 + k * step, 0.03, step - GAP, 0.43), born, columns=2)
    for k, (fog, bps) in enumerate(_uplinks(problem, plan, fogs).items()):
        at = 0.02 + k * step + (step - GAP) / 2
        free_bps = network.available_bps(network.node_index(fog), network.node_index("cloud"))
        _draw_uplink(axes, at, bps, float(np.asarray(free_bps)))
    took = f"planned by {plan.strategy}, " + ("feasible" if plan.feasible else "not feasible")
    title = f"{plan.application} on {len(fogs)} fogs and a cloud: {took}"
    axes.text(0.5, 0.965, title, ha="center", va="center", fontsize=12)
    # The same plan gives the same file.
    with mpl.rc_context({"svg.hashsalt": "thalweg"}):
        figure.savefig(path, dpi=DPI, metadata={"Date": None} if path.suffix == ".svg" else None)


def _uplinks(problem: tw.Problem, plan: tw.Plan, fogs: list[str]) -> dict[str, float]:
    """Bits per second from each fog to the cloud."""
    found = evaluate(problem, plan.placement)
    site = problem.network.node_site[found.deployment.node]
    sent: dict[str, float] = dict.fromkeys(fogs, 0.0)
    graph = found.deployment.graph
    for source, target, bps in zip(graph.source, graph.target, found.rates.flow_bps, strict=True):
        if site[source] != site[target]:
            sent[problem.network.site_names[site[source]]] += float(bps)
    return sent


def _draw_site(
    axes: Axes,
    plan: tw.Plan,
    site: str,
    box: tuple[float, float, float, float],
    remark: str,
    columns: int,
) -> None:
    """A box with a chip for each operator that runs there, in the order of the application."""
    from matplotlib.patches import FancyBboxPatch

    x, y, width, height = box
    (tier,) = {tier for place, tier in plan.hosts.values() if place == site}
    colour = TIER_COLOURS[tier]
    frame = {"boxstyle": "round,pad=0,rounding_size=0.012", "mutation_aspect": 1.5}
    axes.add_patch(
        FancyBboxPatch((x, y), width, height, fc=(*_rgb(colour), 0.10), ec=colour, lw=1.5, **frame)
    )
    head = y + height - 0.04
    axes.text(x + 0.012, head, site, va="center", fontsize=12, weight="bold")
    axes.text(x + width - 0.012, head, remark, ha="right", va="center", fontsize=10.5)
    names = list(dict.fromkeys(i.operator for i in plan.placement if plan.hosts[i.node][0] == site))
    chip_width = (width - 0.02) / columns
    for k, name in enumerate(names):
        row, column = divmod(k, columns)
        left = x + 0.012 + column * chip_width
        low = y + height - 0.075 - (row + 1) * CHIP_HEIGHT - row * CHIP_GAP
        axes.add_patch(
            FancyBboxPatch(
                (left, low), chip_width - 0.006, CHIP_HEIGHT, fc="white", ec=colour, **frame
            )
        )
        middle = (left + (chip_width - 0.006) / 2, low + CHIP_HEIGHT / 2)
        axes.text(*middle, name, ha="center", va="center", fontsize=9.5)


def _draw_uplink(axes: Axes, x: float, bps: float, free_bps: float) -> None:
    """An arrow from a fog to the cloud; the wider, the more goes over it."""
    load = bps / free_bps
    axes.annotate(
        "",
        (x, 0.67),
        (x, 0.46),
        arrowprops={
            "arrowstyle": "-|>",
            "lw": 1.5 + 6 * load,
            "color": COLOURS[2] if load > 0.8 else "0.45",
            "mutation_scale": 18,
            "shrinkA": 0,
            "shrinkB": 0,
        },
    )
    shown = f"{bps / 1e6:.2f} of {free_bps / 1e6:g} Mbps"
    axes.text(x + 0.025, 0.56, shown, va="center", fontsize=10)


def _rgb(colour: str) -> tuple[float, float, float]:
    from matplotlib.colors import to_rgb

    return to_rgb(colour)


def draw_surge(path: Path) -> None:
    """As the example draws it."""
    example = ROOT / "examples" / "surge_and_adaptation.py"
    subprocess.run(  # nosec B603  # an example of this repository
        [sys.executable, example, "--plot", path], check=True, stdout=subprocess.DEVNULL
    )


def draw_scale(path: Path) -> None:
    """Resolution time over the number of nodes, measured by the benchmark's own functions."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.6), layout="constrained")
    axes = figure.subplots()
    for k, (name, points) in enumerate(measure_scale().items()):
        axes.loglog(
            *zip(*sorted(points.items()), strict=True),
            color=COLOURS[-1] if name == PLAIN else COLOURS[k],
            linestyle="--" if name == PLAIN else "-",
            marker=MARKERS[k],
            markersize=6,
            linewidth=1.8,
            label=name,
        )
    axes.set_xlabel("nodes in the network", fontsize=11)
    axes.set_ylabel("time to plan [s]", fontsize=11)
    about = f"{SCALE_OPERATORS} operators, median of {SCALE_SEEDS} applications"
    axes.set_title(f"{about}; improve may take {placement_scale.IMPROVE_LIMIT_S:g} s", fontsize=12)
    axes.grid(alpha=0.3, which="major")
    axes.legend(fontsize=10, ncols=2)
    figure.savefig(path, dpi=DPI)


def measure_scale() -> dict[str, dict[int, float]]:
    """Median seconds of every strategy, by nodes; the plain algorithm as far as ten seconds go."""
    found: dict[str, dict[int, float]] = defaultdict(dict)
    graph, plain_goes_on = placement_scale.GRAPHS[SCALE_OPERATORS], True
    for shape in SCALE_SHAPES:
        network = cloud_edge(*shape, 0)
        print(f"measuring on {network.node_count:,} nodes", file=sys.stderr)
        cases = placement_scale._cases(network, graph, SCALE_OPERATORS, SCALE_SEEDS)
        for name in placement_scale.STRATEGIES:
            # The least of several runs: what else the machine does is no part of the answer.
            repeats = 1 if name == placement_scale.OURS else SCALE_REPEATS
            runs = [placement_scale._plan_all(name, cases)[1] for _ in range(repeats)]
            found[name][network.node_count] = median(map(min, zip(*runs, strict=True)))
        if plain_goes_on:
            rows, plain_goes_on = placement_scale._plain_row(cases[0], 10.0, 1.0)
            for row in rows[:1]:
                found[PLAIN][network.node_count] = row.value
    return found


if __name__ == "__main__":
    sys.exit(main())
