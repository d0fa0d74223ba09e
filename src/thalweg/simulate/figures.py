"""What a run tells: figures of every station, node and path, and what estimators say to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from thalweg.estimate.evaluate import evaluate
from thalweg.estimate.latency import window_time_s
from thalweg.model.graph import Floats
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
from thalweg.simulate.events import concatenate
from thalweg.simulate.measured import compare_estimates, own_rows, tell_segment
from thalweg.simulate.program import Program, count_operators
from thalweg.simulate.server import Server
from thalweg.simulate.session import Session

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
    placements: list[Row] = field(default_factory=list)
    """Where everything ran at first, and after each change of a plan."""
    rates: list[Row] = field(default_factory=list)
    """What was born per second at first, and after each change of that."""
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
        comparison=compare_estimates(session),
        segments=[tell_segment(session, k) for k in range(len(session.segments))],
        moves=[_move_row(move) for move in session.moves],
        queues=_queue_rows(session, servers),
        placements=[] if session.setting.brief else _placement_rows(session),
        rates=[] if session.setting.brief else _rate_rows(session),
        totals=_totals(session, servers),
        histogram=_histogram_rows(session),
        decisions=session.decisions,
        stopped_s=session.stopped_s,
    )


def _placement_rows(session: Session) -> list[Row]:
    """Every instance, for each segment that began with another placement."""
    rows: list[Row] = []
    known: dict[str, object] = {}
    for segment in session.segments:
        for program in segment.programs:
            name = program.problem.application.name
            if known.get(name) is program.placement:
                continue
            known[name] = program.placement
            rows += [
                {
                    "begin_s": segment.begin_s,
                    "application": name,
                    "operator": instance.operator,
                    "node": instance.node,
                    "origin": instance.origin,
                }
                for instance in program.placement
            ]
    return rows


def _rate_rows(session: Session) -> list[Row]:
    """Every source at every site at first, and those that changed as each segment began."""
    rows: list[Row] = []
    known: dict[tuple[str, str, str], float] = {}
    for segment in session.segments:
        for program in segment.programs:
            name = program.problem.application.name
            for (source, site), rate in program.problem.birth_rates.items():
                if known.get((name, source, site)) == rate:
                    continue
                known[name, source, site] = rate
                told = {"application": name, "source": source, "site": site}
                rows.append({"begin_s": segment.begin_s, **told, "rate_per_s": float(rate)})
    return rows


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
        token = concatenate(list(server.waiting)).token
        size = float(session.engine.layout.sizes[token].mean()) if token.size else 0.0
        mean_s = station.fixed_s + station.per_byte_s * size
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
    counted_s, now_s = _counted_s(session), max(session.engine.now_s, 1e-300)
    busy: dict[int, float] = {}
    events: dict[int, int] = {}
    hosted: dict[int, int] = {}
    for server in operators:
        tally = server.tally
        end = (server.station.place, float(tally.figures[BUSY_S]), tally.come)
        busy_s, come = 0.0, 0
        for node, until_busy_s, until_come in [*server.stays, end]:
            busy[node] = busy.get(node, 0.0) + until_busy_s - busy_s
            events[node] = events.get(node, 0) + until_come - come
            busy_s, come = until_busy_s, until_come
        hosted[server.station.place] = hosted.get(server.station.place, 0) + 1
    shared = session.programs[0].physics.cpu == "shared"
    sharing = count_operators(session.programs, net) if shared else np.ones(net.node_count)
    return [
        {
            "name": net.node_name(node),
            "tier": net.site(int(net.node_site[node])).tier,
            "operators": hosted.get(node, 0),
            "throughput_per_s": events[node] / now_s,
            # Of all the CPU: operators that share it evenly have a part each.
            "utilisation": busy[node] / counted_s / max(float(sharing[node]), 1.0),
        }
        for node in sorted(busy)
    ]


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


def _application_row(session: Session, application: int) -> Row:
    record, own = session.record, own_rows(session, application)
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
        counts = session.record.histogram[own_rows(session, number)].sum(axis=0)
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
        length = tally.arrived - tally.departed
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
        "queued": engine.held + session.shipper.held,
        "under_way": engine.under_way,
        "lost": sum(server.tally.lost for server in servers),
        "hops": engine.hops,
    }
