"""A simulation for people: tables with a title each."""

from __future__ import annotations

import math
from typing import NamedTuple

from thalweg.simulate.figures import Row
from thalweg.simulate.simulation import Simulation
from thalweg.units import BANDWIDTH, DURATION, SIZE, show_number, show_quantity, show_share

_MOST_ROWS = 12
_UNITS = {"_s": DURATION, "_bps": BANDWIDTH, "_bytes": SIZE}
_TITLES = {
    "aggregate_latency_s": "aggregate latency AL",
    "worst_latency_s": "slowest path",
    "response_time_s": "response time T (windows left out)",
    "uplink_bps": "uplink B",
    "usage": "resource usage RU",
    "delay_product_bits": "bits under way (bdp)",
}


class Table(NamedTuple):
    """One table of a report."""

    title: str
    names: list[str]
    rows: list[list[str]]


def report(found: Simulation) -> list[Table]:
    """What most people want to know, the most important first."""
    tables = [_latency(found), _comparison(found)]
    tables += [
        _stations(found, "operators", "operators, the busiest first"),
        _stations(found, "links", "links, the busiest first"),
    ]
    if len(found.runs[0].segments) > 1:
        tables.append(_segments(found))
    if found.runs[0].moves:
        tables.append(_moves(found))
    if found.runs[0].decisions:
        tables.append(_decisions(found))
    return [table for table in tables if table.rows]


def headline(found: Simulation) -> str:
    """What was run, for how long, and how it ended."""
    runs = "" if found.replications == 1 else f" × {found.replications} runs"
    by = " and ".join(dict.fromkeys(name for name in found.strategies if name))
    hops = found.totals["hops"]
    speed = f" in {found.wall_s:.2f} s" if found.wall_s else ""
    return (
        f"{' and '.join(found.applications)} on {found.network}{f' by {by}' if by else ''}: "
        f"{found.seconds:g} s ({found.warm_up_s:g} s of warm-up){runs}, seed {found.seed}: "
        f"{found.totals['born']:,} events born, {hops:,} hops{speed}"
    )


def balance(found: Simulation) -> str:
    """Where all events are."""
    total = found.totals
    made = f" + {total['made']:,} copied" if total["made"] else ""
    parts = [
        f"{total['ended']:,} at sinks",
        f"{total['filtered']:,} filtered",
        f"{total['queued']:,} queued",
        f"{total['under_way']:,} under way",
        f"{total['lost']:,} lost",
    ]
    verdict = "=" if found.conserved else "DOES NOT EQUAL"
    return f"{total['born']:,} born{made} {verdict} {' + '.join(parts)}"


def warnings(found: Simulation) -> list[str]:
    """Queues that cannot keep up, and a run that ended early."""
    lines = [
        f"unstable: {row['name']} gets {_ratio(row['load'])} times the work that it can do; "
        f"{row['queue_end']:,.0f} events wait at the end "
        f"({row['growth_per_s']:,.1f} more every second)"
        for row in found.unstable[:_MOST_ROWS]
    ]
    if len(found.unstable) > _MOST_ROWS:
        lines.append(f"unstable: {len(found.unstable) - _MOST_ROWS} more queues")
    if found.stopped_s is not None:
        lines.append(
            f"ended early, at {found.stopped_s:g} s: more events waited than memory is given for"
        )
    return lines


def point_titles() -> list[str]:
    """Names of the columns of `point_row`."""
    return ["events", "rate", "latency", "p95", "p99", "busiest", "queued", "unstable"]


def point_row(found: Simulation) -> list[str]:
    """A simulation as one row of a table of several."""
    row = found.rows("applications")[0]
    stations = [*found.rows("operators"), *found.rows("links")]
    busiest = max(stations, key=lambda each: each["utilisation"])
    return [
        f"{row['events']:,.0f}",
        f"{row['throughput_per_s']:,.1f}/s",
        _with_ci(row, "latency_s"),
        _show(row["latency_p95_s"], DURATION),
        _show(row["latency_p99_s"], DURATION),
        f"{busiest['name']} {busiest['utilisation']:.1%}",
        f"{sum(each['queue_end'] for each in stations):,.0f}",
        ", ".join(each["name"] for each in found.unstable[:3]),
    ]


def _latency(found: Simulation) -> Table:
    rows = [
        [
            row["name"],
            f"{row['events']:,.0f}",
            f"{row['throughput_per_s']:,.1f}/s",
            _with_ci(row, "latency_s"),
            *(_show(row[f"latency_{share}_s"], DURATION) for share in ("p50", "p95", "p99", "max")),
            _with_ci(row, "response_s"),
        ]
        for row in found.rows("applications")
    ]
    names = ["application", "events", "rate", "latency", "p50", "p95", "p99", "max", "response"]
    return Table("at the sinks, after the warm-up", names, rows)


def _comparison(found: Simulation) -> Table:
    several = len(found.applications) > 1
    rows: list[list[str]] = []
    for row in found.rows("comparison"):
        estimated, measured = row["estimated"], row["measured"]
        far = (measured - estimated) / estimated if 0 < estimated < math.inf else math.nan
        name = _TITLES.get(row["name"], str(row["name"]))
        rows.append(
            [
                f"{row['application']}: {name}" if several else name,
                _figure(row["name"], estimated),
                _figure(row["name"], measured) + _plus_minus(row, "measured", row["name"]),
                "" if math.isnan(far) else f"{far:+.1%}",
            ]
        )
    return Table("estimated and measured", ["figure", "estimated", "measured", "difference"], rows)


def _stations(found: Simulation, table: str, title: str) -> Table:
    listed = sorted(found.rows(table), key=lambda row: (-row["utilisation"], row["name"]))
    listed = [row for row in listed if row["utilisation"] > 0 or row["queue_end"] > 0]
    rows = []
    for row in listed[:_MOST_ROWS]:
        cells = [
            row["name"],
            f"{row['throughput_per_s']:,.1f}/s",
            f"{row['utilisation']:.1%}",
            _with_ci(row, "latency_s"),
            _show(row["latency_p99_s"], DURATION),
            f"{row['queue_mean']:.3g}",
            f"{row['queue_end']:,.0f}",
        ]
        if table == "operators":
            cells.append(_show(row["estimated_s"], DURATION))
        rows.append(cells)
    more = f" ({len(listed) - _MOST_ROWS} more)" if len(listed) > _MOST_ROWS else ""
    names = [table[:-1], "rate", "busy", "time there", "p99", "queue", "at the end"]
    return Table(title + more, names + (["estimated"] if table == "operators" else []), rows)


def _segments(found: Simulation) -> Table:
    rows = [
        [
            f"{row['begin_s']:g}–{row['end_s']:g} s",
            row["cause"],
            f"{row['events']:,}",
            _show(row["latency_s"], DURATION),
            _beside(_show(row["uplink_bps"], BANDWIDTH), row["uplink_estimated_bps"]),
            f"{_figure('usage', row['usage'])} ({_figure('usage', row['usage_estimated'])})",
        ]
        for row in found.runs[0].segments
    ]
    names = ["time", "since", "events", "latency", "uplink (estimated)", "usage (estimated)"]
    return Table("what changed (first run)", names, rows)


def _moves(found: Simulation) -> Table:
    rows = [
        [
            f"{row['at_s']:g} s",
            row["operator"],
            f"{row['from']} → {row['to']}",
            _show(row["sent_bytes"], SIZE),
            _show(row["downtime_s"], DURATION),
            f"{row['delayed_events']:,}",
        ]
        for row in found.runs[0].moves
    ]
    names = ["at", "operator", "way", "sent", "downtime", "events delayed"]
    return Table("what moved (first run)", names, rows)


def _decisions(found: Simulation) -> Table:
    rows = [
        [
            f"{row['at_s']:g} s",
            f"{row['rate_seen']:,.1f}/s",
            "changed" if row["changed"] else ("asked" if row["adapted"] else "kept"),
            row["reason"],
        ]
        for row in found.runs[0].decisions
    ]
    return Table("what the strategy saw (first run)", ["at", "rate seen", "did", "reason"], rows)


def _beside(measured: str, estimated_bps: float) -> str:
    return f"{measured} ({_show(estimated_bps, BANDWIDTH)})"


def _with_ci(row: Row, name: str) -> str:
    return _show(row[name], DURATION) + _plus_minus(row, name, "_s")


def _plus_minus(row: Row, name: str, figure: str) -> str:
    half = row.get(f"{name}_ci", math.nan)
    return "" if math.isnan(half) else f" ± {_figure(figure, half)}"


def _figure(name: str, value: float) -> str:
    for ending, dimension in _UNITS.items():
        if name.endswith(ending):
            return _show(value, dimension)
    if name == "usage" and not math.isnan(value):
        return show_share(value)
    return f"{value:.4g}"


def _show(value: float, dimension: object) -> str:
    if math.isnan(value):
        return "-"
    return show_quantity(value, dimension)  # type: ignore[arg-type]


def _ratio(value: float) -> str:
    return "∞" if math.isinf(value) else show_number(round(value, 3))
