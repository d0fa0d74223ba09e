"""A surge of taxi rides, event by event: with the first plan kept, and with a strategy that adapts.

    python examples/surge_and_adaptation.py --plot surge.png

Rides at three fogs are worked on in the cloud. Then one fog has thirteen times as many, more than
its uplink carries, and half a minute later as few as before. Both runs see the same events. No
Spark is needed, and it takes seconds.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import thalweg as tw
from thalweg.plotting import COLOURS
from thalweg.scenarios import fog_cloud, taxi_fares
from thalweg.simulate import Control, RateChange
from thalweg.simulate.figures import RunFigures

STRATEGY = "trcs"  # As little as possible on the fogs, as much as the limits ask for.
SECONDS, SURGE_AT_S, CALM_AT_S = 60.0, 15.0, 40.0
CALM = {("rides", f"fog-{k}"): 300.0 for k in range(3)}
SURGE = CALM | {("rides", "fog-1"): 4000.0}
UPLINK = "WAN fog-1 → cloud"


def main() -> int:
    """Print both runs side by side, what was changed and why."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--plot", type=Path, help="also draw both runs (.png, .svg or .pdf)")
    wanted = parser.parse_args()
    runs = {"kept": simulate(adapt=False), "adapted": simulate(adapt=True)}

    print(f"{SURGE_AT_S:g} s: fog-1 has 4,000 rides/s, not 300; {CALM_AT_S:g} s: 300 again\n")
    print("first plan  events  lost  response  95 % of results  most in front of the uplink")
    for name, run in runs.items():
        (sums,) = run.applications
        print(
            f"{name:10}  {sums['events']:,}  {run.totals['lost']:4}  {sums['response_s']:6.2f} s"
            f"  within {sums['latency_p95_s']:5.2f} s   {max(waiting(run)[1]):6,} events"
        )
    print("\nwhat the strategy did:")
    for decision in runs["adapted"].decisions:
        if decision["changed"]:
            print(f"  {decision['at_s']:g} s: {decision['reason']}")
            print(f"        fog-1 runs {', '.join(operators_of_fog_1(runs['adapted']))}")
    if wanted.plot:
        draw(runs, wanted.plot)
        print(f"\nwrote {wanted.plot}")
    return 0


def simulate(*, adapt: bool) -> RunFigures:
    """One run; with `adapt` a strategy looks every five seconds at what came in."""
    application = taxi_fares()
    network = fog_cloud(3, seed=1, fog_bandwidth_bps=(5e6, 5e6), fog_latency_s=(0.02, 0.04))
    found = tw.simulate(
        application,
        network,
        tw.plan(application, network, STRATEGY, rates=CALM),
        seconds=SECONDS,
        rates=CALM,
        changes=[
            RateChange(at_s=SURGE_AT_S, rates=SURGE),
            RateChange(at_s=CALM_AT_S, rates=CALM),
        ],
        control=Control(strategy=STRATEGY, interval_s=5.0) if adapt else None,
    )
    return found.runs[0]


def waiting(run: RunFigures) -> tuple[list[float], list[int]]:
    """Seconds, and how many events wait for the uplink of fog-1 then."""
    (row,) = (row for row in run.queues if row["name"] == UPLINK)
    return row["time_s"], row["queue"]


def operators_of_fog_1(run: RunFigures) -> list[str]:
    """What fog-1 runs after the last change."""
    last_s = max(row["begin_s"] for row in run.placements)
    here = [row for row in run.placements if row["begin_s"] == last_s and row["node"] == "fog-1"]
    return [row["operator"] for row in here if row["operator"] != "rides"]


def draw(runs: dict[str, RunFigures], path: Path) -> None:
    """The queue in front of the uplink over time."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3.6), layout="constrained")
    axes = figure.subplots()
    axes.axvspan(SURGE_AT_S, CALM_AT_S, color="0.92", label="surge at fog-1")
    for (name, run), colour in zip(runs.items(), (COLOURS[2], COLOURS[0]), strict=True):
        axes.plot(*waiting(run), color=colour, linewidth=2, label=f"plan {name}")
    for decision in runs["adapted"].decisions:
        if decision["changed"]:
            axes.axvline(decision["at_s"], color=COLOURS[3], linestyle="--", label="adaptation")
    axes.set_xlabel("time [s]")
    axes.set_ylabel("events in front of the uplink")
    axes.margins(x=0)
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    sys.exit(main())
