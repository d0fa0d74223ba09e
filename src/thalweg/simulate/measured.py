"""What estimators say, and what a run measured, by the same formulas."""

from __future__ import annotations

from typing import Any

import numpy as np

from thalweg.estimate.delay_product import delay_product_bits
from thalweg.estimate.demand import estimate_demand
from thalweg.estimate.evaluate import evaluate
from thalweg.estimate.rates import Rates
from thalweg.estimate.usage import estimate_usage
from thalweg.model.deployment import Deployment
from thalweg.model.graph import Floats
from thalweg.simulate.compiled.recording import (
    COUNT,
    HELD_S,
    TOTAL_S,
)
from thalweg.simulate.session import Segment, Session

Row = dict[str, Any]


def own_rows(session: Session, application: int) -> list[int]:
    """The rows of paths of an application."""
    return [k for k, row in enumerate(session.book.rows) if row.application == application]


def tell_segment(session: Session, number: int) -> Row:
    """What happened between two changes, beside what estimators say."""
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


def compare_estimates(session: Session) -> list[Row]:
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


def measure_paths(session: Session, application: int) -> tuple[Floats, Floats, Floats]:
    """Mean latency and mean wait for windows on each row of paths, and how many paths it is.

    NaN where no event came.
    """
    own = own_rows(session, application)
    sums = session.record.sums[own]
    count = np.where(sums[:, COUNT] > 0, sums[:, COUNT], np.nan)
    ways = np.array([session.book.rows[k].ways for k in own])
    return sums[:, TOTAL_S] / count, sums[:, HELD_S] / count, ways


def measure_latencies(session: Session, application: int) -> Row:
    """Aggregate and worst latency, and response time, over the paths that events came along."""
    latency_s, window_s, ways = measure_paths(session, application)
    seen = np.isfinite(latency_s)
    latency_s, window_s, ways = latency_s[seen], window_s[seen], ways[seen]
    return {
        "aggregate_latency_s": float(latency_s @ ways),
        "worst_latency_s": float(latency_s.max(initial=0.0)),
        "response_time_s": float((latency_s - window_s).max(initial=0.0)),
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
