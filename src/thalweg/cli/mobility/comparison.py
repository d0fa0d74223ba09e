"""What came of each approach, as data and as tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer

from thalweg.cli.output import print_table

if TYPE_CHECKING:
    from thalweg.cli.mobility.run import Outcome
    from thalweg.migration.city import City


def to_plain(outcome: Outcome, static_bdp: float) -> dict[str, Any]:
    """One approach as plain data."""
    drive = outcome.drive
    placement, migration = drive.costs.sum(axis=0).tolist()
    bdp = drive.mean_bdp_bytes
    return {
        "approach": outcome.trip.name,
        "knowledge": outcome.trip.knowledge,
        "policy": outcome.trip.policy,
        "mean_bdp_bytes": bdp,
        "relative_to_static": bdp / static_bdp if static_bdp > 0 else None,
        "placement_byte_s": placement,
        "migration_byte_s": migration,
        "effort": asdict(drive.effort),
        "executed": outcome.execution.to_dict(),
        "wall_s": outcome.seconds,
    }


def print_comparison(city: City, found: list[dict[str, Any]]) -> None:
    """What each approach costs and moves, and what became of the events."""
    from thalweg.cli.mobility.quantities import show_bytes, show_cost, show_seconds

    rows, more = [], []
    for each in found:
        ran, relative = each["executed"], each["relative_to_static"]
        rows.append(
            [
                each["approach"],
                show_bytes(each["mean_bdp_bytes"]),
                "-" if relative is None else f"{relative:.1%}",
                show_cost(each["placement_byte_s"]),
                show_cost(each["migration_byte_s"]),
                f"{ran['moves']:,}",
                show_bytes(ran["sent_bytes"]),
                show_bytes(ran["wasted_bytes"]),
                f"{each['wall_s']:.2f} s",
            ]
        )
        latency = ran["latency_mean_s"], ran["latency_p95_s"]
        more.append(
            [
                each["approach"],
                f"{ran['born']:,}",
                f"{ran['delivered']:,}",
                f"{ran['lost']:,}",
                f"{ran['duplicated']:,}",
                show_seconds(ran["downtime_mean_s"]),
                show_seconds(ran["downtime_max_s"]),
                *("-" if value is None else show_seconds(value) for value in latency),
            ]
        )
    title = (
        f"{city.graph.name}: {city.instances:,} instances between {city.connections.vehicles:,} "
        f"vehicles on {city.brokers.count:,} brokers, {city.ticks * city.tick_s:g} s"
    )
    names = ["approach", "on the way", "of static", "placement", "migration", "moves", "sent"]
    print_table([*names, "wasted", "decided in"], rows, title=title)
    typer.echo("")
    names = ["approach", "born", "delivered", "lost", "twice", "downtime", "at most"]
    print_table([*names, "latency", "95 %"], more, title="events")
    for line in _warnings(found):
        typer.echo(line)


def _warnings(found: list[dict[str, Any]]) -> Iterator[str]:
    """Limits that were not kept, and what was not looked at."""
    for each in found:
        name, effort, ran = each["approach"], each["effort"], each["executed"]
        if effort["late"]:
            yield f"{name}: {effort['late']:,} plans could not keep the latency"
        if effort["crowded"]:
            yield f"{name}: {effort['crowded']:,} plans had to run where there was no room"
        if effort["left_out"] > 0:
            yield f"{name}: combinations of up to {effort['left_out']:.0%} were not looked at"
        if ran["short_of_state"]:
            yield f"{name}: {ran['short_of_state']:,} events found only a part of their window"
