"""Buses that drag their operators across the city: where they move, when, why, and what it costs.

    python examples/bus_across_the_city.py --page buses.html

Every bus counts its passengers. An operator with a timetable and the counts of the last ten seconds
foretells how full it will be, and tells the bus. The operator runs on one of 21 brokers over the
city and has to send its state when it moves. Line 1 crosses the city; line 2 goes to and fro across
the border between two brokers, where whoever is always nearest pays for moves that are not worth
it.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

from thalweg.migration import (
    Brokers,
    City,
    Connections,
    Drive,
    MobileGraph,
    drive_greedy,
    drive_migcep,
    drive_static,
    predictor,
)
from thalweg.model import Application, Operator, Pin, Stream, TimeWindow
from thalweg.model.workload import Tracks
from thalweg.scenarios import BrokerFigures, broker_tree
from thalweg.simulate.moving import execute

SPEED_MS, STOP_EVERY_M, STOP_S = 9.0, 500.0, 20.0
TIMETABLE_BYTES = 150_000.0
# Corners of each line, in metres; the city is 7,670 × 3,500 m, and a broker's area 1,917 × 875 m.
LINES = {
    "line-1": [(100, 400), (5500, 400), (5500, 2900), (7500, 2900)],
    "line-2": [(1600 + 700 * (k % 2), 1000 + 80 * k) for k in range(10)],
}


def main() -> int:
    """Print every move, and what staying, chasing and planning cost."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--page", type=Path, help="also draw the moving city (.html)")
    wanted = parser.parse_args()
    city = buses()
    drives = drive_all(city)
    planned = drives[-1]
    print(f"moves by {planned.approach}:")
    for line in tell_moves(planned):
        print(f"  {line}")
    print("\napproach   moves  placement     migration     both           lost  latency")
    for drive in drives:
        placement, migration = drive.costs.sum(axis=0)
        events = execute(drive).to_dict()
        print(
            f"{drive.approach:9}  {len(drive.moves):5}  {placement:6,.0f} byte·s"
            f"  {migration:6,.0f} byte·s  {drive.total:6,.0f} byte·s"
            f"  {events['lost']:5}  {1e3 * events['latency_mean_s']:4.1f} ms"
        )
    if wanted.page:
        from thalweg.migration.view.page import render_page

        wanted.page.write_text(render_page(drives, title="buses"), encoding="utf-8")
        print(f"\nwrote {wanted.page}")
    return 0


def buses(state_bytes: float = TIMETABLE_BYTES) -> City:
    """A bus on each line, each with an operator of its own that begins where the bus does."""
    brokers = Brokers.of(broker_tree(figures=BrokerFigures(latency_growth=1.0)))
    ways = [drive_along(corners) for corners in LINES.values()]
    tracks = Tracks(
        user=np.repeat(np.arange(len(ways)), [len(way) for way in ways]),
        time_s=np.concatenate([np.arange(len(way), dtype=float) for way in ways]),
        x_m=np.concatenate([way[:, 0] for way in ways]),
        y_m=np.concatenate([way[:, 1] for way in ways]),
    )
    connections = Connections.of(tuple(LINES), tracks, brokers)
    lines = np.arange(len(LINES))
    return City(
        brokers=brokers,
        connections=connections,
        graph=MobileGraph.of(crowding(state_bytes)),
        vehicles=np.stack([lines, lines], axis=1),  # The bus is both, source and sink.
        start=connections.leaf[:, :1],
    )


def crowding(state_bytes: float) -> Application:
    """Door counts of a bus, the operator that foretells, and the display in the bus."""
    bus = Pin(tier="fog")
    return Application(
        name="crowding",
        operators=[
            Operator(name="doors", kind="source", rate=4.0, event_size=250.0, pin=bus),
            Operator(
                name="foretell",
                selectivity=0.5,
                cpu_per_event=2e5,
                state=state_bytes,
                window=TimeWindow(10.0, 1.0),
            ),
            Operator(name="display", kind="sink", pin=bus),
        ],
        streams=[
            Stream(source="doors", target="foretell"),
            Stream(source="foretell", target="display"),
        ],
    )


def drive_along(corners: list[tuple[float, float]]) -> np.ndarray:
    """Where a bus is at every second: along straight roads, with a stop every 500 m."""
    points = np.array(corners, dtype=float)
    along = np.append(0.0, np.cumsum(np.hypot(*np.diff(points, axis=0).T)))
    drive_s = STOP_EVERY_M / SPEED_MS
    seconds = np.arange(along[-1] / SPEED_MS + STOP_S * (along[-1] // STOP_EVERY_M))
    stops, rest = np.divmod(seconds, drive_s + STOP_S)
    way_m = np.minimum(stops * STOP_EVERY_M + np.minimum(rest, drive_s) * SPEED_MS, along[-1])
    return np.stack([np.interp(way_m, along, points[:, axis]) for axis in (0, 1)], axis=1)


def drive_all(city: City) -> list[Drive]:
    """Never moving, always to the cheapest broker, and by plans along the known line."""
    ahead = predictor("perfect", city.connections, city.brokers)
    return [drive_static(city), drive_greedy(city), drive_migcep(city, ahead)]


def tell_moves(drive: Drive) -> list[str]:
    """When each operator moves, from where to where, with how much."""
    city, told = drive.city, []
    for bus, operator, tick, source, target in drive.moves.tolist():
        size = city.graph.operators[operator].state_bytes
        cost = size * city.brokers.delay_s[source, target]
        told.append(
            f"{tick * city.tick_s:5,.0f} s  {city.connections.names[bus]}  "
            f"{city.brokers.names[source]:>10} → {city.brokers.names[target]:10}  "
            f"{size / 1e3:.0f} kB, {cost:.0f} byte·s"
        )
    return told


if __name__ == "__main__":
    sys.exit(main())
