"""What a run tells: figures of every station, node and path, and what estimators say to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from thalweg.estimate.delay_product import delay_product_bits
from thalweg.estimate.demand import estimate_demand
from thalweg.estimate.evaluate import evaluate
from thalweg.estimate.latency import window_time_s
from thalweg.estimate.rates import Rates
from thalweg.estimate.usage import estimate_usage
from thalweg.model.deployment import Deployment
from thalweg.model.graph import Floats
from thalweg.simulate.building import Program
from thalweg.simulate.compiled.recording import (
    COUNT,
    HELD_S,
    MOST_S,
    SQUARES,
    TOTAL_S,
    quantiles_s,
)
from thalweg.simulate.compiled.serving import (
    AREA_S,
    BUSY_S,
    BYTES,
    SERVED,
    STAYED_S,
    WAITED_S,
    WORK_S,
)
from thalweg.simulate.server import Server
from thalweg.simulate.session import Segment, Session

Row = dict[str, Any]
_SHARES = (0.5, 0.95, 0.99)


@dataclass(frozen=True, eq=False, kw_only=True)
class RunFigures:
    """One run as plain rows, ready to be sent and averaged."""

    operators: list[Row]
    links: list[Row]
    nodes: list[Row]
    paths: list[Row]
    applications: list[Row]
    """Latency over all paths of each application."""
    comparison: list[Row]
    """What estimators say, and what was measured."""
    segments: list[Row]
    moves: list[Row]
    queues: list[Row]
    totals: Row
    histogram: list[Row] = field(default_factory=list)
    """How many events of each application took how long."""
    decisions: list[Row] = field(default_factory=list)
    """What a strategy in the loop saw and said."""
    stopped_s: float | None = None


def tell(session: Session) -> RunFigures:
    """All figures of a run that is over."""
    servers = [*session.engine.servers, *session.engine.retired.values()]
    operators = [s for s in servers if s.station.sort == "operator"]
    links = [s for s in servers if s.station.sort == "link"]
    estimated_s = _estimated_stays_s(session.segments[0].programs)
    return RunFigures(
        operators=[_operator_row(session, server, estimated_s) for server in operators],
        links=[_station_row(session, server) for server in links],
        nodes=_node_rows(session, operators),
        paths=_path_rows(session),
        applications=[_application_row(session, k) for k in range(len(session.programs))],
        comparison=_comparison(session),
        segments=[_segment_row(session, k) for k in range(len(session.segments))],
        moves=[_move_row(move) for move in session.moves],
        queues=_queue_rows(session, servers),
        totals=_totals(session, servers),
        histogram=_histogram_rows(session),
        decisions=session.decisions,
        stopped_s=session.stopped_s,
    )


def _counted_s(session: Session, server: Server | None = None) -> float:
    """How much time has been counted: less than asked for where the run ended early.

    ∞, so that rates are 0, where it ended before anything was counted. A station may have been
    ahead of the others by then.
    """
    now_s = session.engine.now_s
    if server is not None:
        now_s = max(now_s, min(server.free_s, session.setting.seconds))
    counted_s = now_s - session.setting.warm_s
    return counted_s if counted_s > 0 else float("inf")


def _station_row(session: Session, server: Server) -> Row:
    figures, tally = server.tally.figures, server.tally
    counted_s = _counted_s(session, server)
    served = figures[SERVED]
    each = max(served, 1.0)
    p50, p95, p99 = quantiles_s(tally.histogram, _SHARES)
    return {
        "name": server.station.name,
        "events": tally.come,
        "throughput_per_s": float(served) / counted_s,
        "utilisation": float(figures[BUSY_S]) / counted_s,
        "load": _load(session, server),
        "wait_s": float(figures[WAITED_S]) / each,
        "latency_s": float(figures[STAYED_S]) / each,
        "latency_p50_s": p50,
        "latency_p95_s": p95,
        "latency_p99_s": p99,
        "queue_mean": float(figures[AREA_S]) / counted_s,
        "queue_end": server.waiting.count + int(server.jobs.size.sum()),
        "sent_bytes": float(figures[BYTES]),
        "lost": tally.lost,
    }


def _load(session: Session, server: Server) -> float:
    """The work that has come, warm-up included, over the time there was for it."""
    station, figures = server.station, server.tally.figures
    if station.halted:
        return float("inf") if server.held else 0.0
    waiting = server.waiting.count + len(server.jobs)
    if figures[SERVED]:
        mean_s = float(figures[WORK_S] / figures[SERVED])
    elif len(server.jobs):
        mean_s = float(server.jobs.work_s.mean())
    else:
        # Nobody was served whose service counts: what those who wait will take.
        sizes = [session.engine.layout.sizes[part.token].mean() for part in server.waiting]
        mean_s = station.fixed_s + station.per_byte_s * float(np.mean(sizes or [0.0]))
    return (server.number + waiting) * mean_s / max(session.engine.now_s, 1e-300)


def _operator_row(session: Session, server: Server, estimated_s: dict[str, float]) -> Row:
    row = _station_row(session, server)
    del row["sent_bytes"]
    station = server.station
    hall = server.hall
    return {
        "name": row.pop("name"),
        "application": session.programs[station.application].problem.application.name,
        "node": session.programs[0].problem.network.node_name(station.place),
        **row,
        "window_wait_s": 0.0 if hall is None else hall.held_s / max(server.tally.gone, 1),
        "window_end": 0 if hall is None else hall.count,
        "estimated_s": estimated_s.get(station.key, float("nan")),
    }


def _estimated_stays_s(programs: Sequence[Program]) -> dict[str, float]:
    """What the estimator that fits the physics says about each instance; windows left out."""
    found = {}
    for program in programs:
        known = evaluate(program.problem, program.placement)
        deployment = known.deployment
        if program.physics.windows == "work":
            stays_s = known.response.operator_s
        else:
            stays_s = known.latencies.service_s - window_time_s(deployment, known.rates)
        for instance, stay_s in enumerate(stays_s.tolist()):
            found[f"{program.number}:{deployment.instance_name(instance)}"] = stay_s
    return found


def _node_rows(session: Session, operators: Sequence[Server]) -> list[Row]:
    net = session.programs[0].problem.network
    counted_s = _counted_s(session)
    busy: dict[int, float] = {}
    events: dict[int, int] = {}
    hosted: dict[int, int] = {}
    works: dict[int, int] = {}
    for server in operators:
        node, station = server.station.place, server.station
        hosted[node] = hosted.get(node, 0) + 1
        events[node] = events.get(node, 0) + server.tally.come
        busy[node] = busy.get(node, 0.0) + float(server.tally.figures[BUSY_S])
        works[node] = works.get(node, 0) + bool(station.takes_time)
    shared = session.programs[0].physics.cpu == "shared"
    rows = []
    for node in sorted(hosted):
        parts = max(works[node] + int(net.node_operators[node]), 1) if shared else 1
        rows.append(
            {
                "name": net.node_name(node),
                "tier": net.site(int(net.node_site[node])).tier,
                "operators": hosted[node],
                "throughput_per_s": events[node] / max(session.engine.now_s, 1e-300),
                # Of all the CPU: operators that share it evenly have a part each.
                "utilisation": busy[node] / counted_s / parts,
            }
        )
    return rows


def _latency_row(sums: Floats, histogram: np.ndarray[Any, Any]) -> Row:
    count = float(sums[COUNT])
    each = count if count else float("nan")
    mean_s = float(sums[TOTAL_S]) / each
    p50, p95, p99 = quantiles_s(histogram, _SHARES)
    spread = max(float(sums[SQUARES]) / each - mean_s * mean_s, 0.0) if count else float("nan")
    return {
        "events": int(count),
        "latency_s": mean_s,
        "latency_sd_s": spread**0.5,
        "latency_p50_s": p50,
        "latency_p95_s": p95,
        "latency_p99_s": p99,
        "latency_max_s": float(sums[MOST_S]) if count else float("nan"),
        # Without the time that events wait for windows to fill.
        "response_s": mean_s - float(sums[HELD_S]) / each,
    }


def _path_rows(session: Session) -> list[Row]:
    record = session.record
    names = [program.problem.application.name for program in session.programs]
    return [
        {
            "name": row.name,
            "application": names[row.application],
            "source": row.source,
            "sink": row.sink,
            "ways": row.ways,
            **_latency_row(record.sums[k], record.histogram[k]),
        }
        for k, row in enumerate(session.book.rows)
    ]


def _own_rows(session: Session, application: int) -> list[int]:
    return [k for k, row in enumerate(session.book.rows) if row.application == application]


def _application_row(session: Session, application: int) -> Row:
    record, own = session.record, _own_rows(session, application)
    sums = record.sums[own].sum(axis=0)
    sums[MOST_S] = record.sums[own, MOST_S].max(initial=0.0)
    counted_s = _counted_s(session)
    row = _latency_row(sums, record.histogram[own].sum(axis=0))
    return {
        "name": session.programs[application].problem.application.name,
        "throughput_per_s": row["events"] / counted_s,
        **row,
    }


def _histogram_rows(session: Session) -> list[Row]:
    from thalweg.simulate.compiled.recording import bin_edges_s

    edges = bin_edges_s()
    rows: list[Row] = []
    for number, program in enumerate(session.programs):
        counts = session.record.histogram[_own_rows(session, number)].sum(axis=0)
        name = program.problem.application.name
        rows += [
            {
                "application": name,
                "from_s": float(edges[k]),
                "to_s": float(edges[k + 1]),
                "events": int(counts[k]),
            }
            for k in np.flatnonzero(counts).tolist()
        ]
    return rows


def _segment_row(session: Session, number: int) -> Row:
    segment = session.segments[number]
    before = session.segments[number - 1].path_sums if number else np.zeros_like(segment.path_sums)
    sums = segment.path_sums - before
    count = float(sums[:, COUNT].sum())
    measured = [_measured(session, segment, k) for k in range(len(segment.programs))]
    estimates = [evaluate(p.problem, p.placement).estimate for p in segment.programs]
    return {
        "begin_s": segment.begin_s,
        "end_s": segment.end_s,
        "cause": segment.cause,
        "events": int(count),
        "latency_s": float(sums[:, TOTAL_S].sum()) / count if count else float("nan"),
        "uplink_bps": sum(found["uplink_bps"] for found in measured),
        "uplink_estimated_bps": sum(estimate.uplink_bps for estimate in estimates),
        "usage": sum(found["usage"] for found in measured),
        "usage_estimated": sum(estimate.usage for estimate in estimates),
        "response_estimated_s": max(estimate.response_time_s for estimate in estimates),
    }


def _move_row(move: Any) -> Row:
    return {
        "at_s": move.at_s,
        "operator": move.operator,
        "from": move.source,
        "to": move.target,
        "sent_bytes": move.sent_bytes,
        "downtime_s": move.downtime_s,
        "delayed_events": move.delayed_events,
    }


def _queue_rows(session: Session, servers: Sequence[Server]) -> list[Row]:
    edges = session.span.edges
    rows = []
    for server in servers:
        tally = server.tally
        if not server.station.takes_time and server.hall is None:
            continue
        length = tally.arrived - tally.departed - tally.lost
        if not length.any():
            continue
        rows.append(
            {
                "name": server.station.name,
                "sort": server.station.sort,
                "time_s": edges.tolist(),
                "queue": np.maximum(length, 0).tolist(),
            }
        )
    return rows


def _totals(session: Session, servers: Sequence[Server]) -> Row:
    engine = session.engine
    return {
        "born": sum(spring.born for spring in engine.springs),
        "made": sum(server.router.made for server in servers),
        "ended": sum(s.tally.gone for s in servers if s.station.is_sink),
        "filtered": sum(server.router.dropped for server in servers),
        "queued": engine.held,
        "under_way": engine.under_way,
        "lost": sum(server.tally.lost for server in servers),
        "hops": engine.hops,
    }


def _comparison(session: Session) -> list[Row]:
    """Estimated and measured, of each application.

    Where something changed, of the longest time in which nothing did, and without latencies.
    """
    rows: list[Row] = []
    segment = max(session.segments, key=lambda each: _counted_in(session, each))
    several = len(session.segments) > 1
    for number, program in enumerate(segment.programs):
        estimate = evaluate(program.problem, program.placement).estimate
        measured = _measured(session, segment, number) | measure_latencies(session, number)
        for name in (
            "aggregate_latency_s",
            "worst_latency_s",
            "response_time_s",
            "uplink_bps",
            "usage",
            "delay_product_bits",
        ):
            if several and name in ("aggregate_latency_s", "worst_latency_s", "response_time_s"):
                continue
            rows.append(
                {
                    "application": program.problem.application.name,
                    "name": name,
                    "estimated": float(getattr(estimate, name)),
                    "measured": float(measured[name]),
                }
            )
    return rows


def measure_latencies(session: Session, application: int) -> Row:
    """Aggregate and worst latency, and response time, over the paths that events came along."""
    sums = session.record.sums
    total_s = worst_s = response_s = window_s = paths = 0.0
    for k in _own_rows(session, application):
        count = sums[k, COUNT]
        if not count:
            continue
        mean_s = float(sums[k, TOTAL_S] / count)
        ways = session.book.rows[k].ways
        total_s += mean_s * ways
        window_s += float(sums[k, HELD_S] / count) * ways
        paths += ways
        worst_s = max(worst_s, mean_s)
        response_s = max(response_s, mean_s - float(sums[k, HELD_S] / count))
    return {
        "aggregate_latency_s": total_s,
        "worst_latency_s": worst_s,
        "response_time_s": response_s,
        "aggregate_window_s": window_s,
        "paths": paths,
    }


def _measured(session: Session, segment: Segment, number: int) -> Row:
    """Usage, uplink and bits under way, by the estimators' formulas at what was measured."""
    program = segment.programs[number]
    deployment = program.deployment
    first = sum(p.deployment.stream.size for p in segment.programs[:number])
    own = slice(first, first + deployment.stream.size)
    seconds = _counted_in(session, segment)
    if not seconds:
        return dict.fromkeys(("uplink_bps", "usage", "delay_product_bits"), float("nan"))
    rates = _measured_rates(deployment, segment.edge_events[own], segment.edge_bytes[own], seconds)
    usage = estimate_usage(deployment, rates, estimate_demand(deployment, rates))
    return {
        "uplink_bps": usage.uplink_bps,
        "usage": usage.total,
        "delay_product_bits": delay_product_bits(deployment, rates),
    }


def _counted_in(session: Session, segment: Segment) -> float:
    """How much of a segment is after the warm-up."""
    return max(segment.end_s - max(segment.begin_s, session.setting.warm_s), 0.0)


def _measured_rates(
    deployment: Deployment, events: Floats, carried_bytes: Floats, seconds: float
) -> Rates:
    """Rates and sizes as they were, in place of those that estimators foresee."""
    graph = deployment.graph
    flow = events / seconds
    size = np.divide(carried_bytes, events, out=np.zeros_like(events), where=events > 0)
    come = np.bincount(graph.target, weights=events, minlength=deployment.size)
    come_bytes = np.bincount(graph.target, weights=carried_bytes, minlength=deployment.size)
    columns = deployment.problem.application.columns
    source = columns.is_source[deployment.operator]
    born = np.zeros(deployment.size)
    np.maximum.at(born, graph.source, flow)
    events_in = np.where(source, born, come / seconds)
    mean = np.divide(come_bytes, come, out=np.zeros_like(come), where=come > 0)
    size_in = np.where(source, columns.event_size[deployment.operator], mean)
    size_out = size_in * np.where(source, 1.0, columns.compression[deployment.operator])
    share = np.where(source, 1.0, columns.selectivity[deployment.operator])
    return Rates(events_in, events_in * share, size_in, size_out, flow, size)
