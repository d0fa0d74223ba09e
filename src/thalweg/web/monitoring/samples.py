"""The samples that a run's files give: what is not known has none."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from thalweg.model import Limits
from thalweg.spark.deployment.told_status import settle_status

RUN_STATES = ("starting", "running", "waiting", "stopping", "ended", "failed", "killed")
SITE_STATES = ("up", "down", "restarting", "ended")
UNDER_WAY = ("change", "restart")
# Runs of older versions measured the lag from a watermark of 1970 where there was none yet.
_MAX_LAG_S = 10 * 365 * 86_400.0


class Sample(NamedTuple):
    """A value of a family, with the values of its labels in the family's order."""

    name: str
    labels: tuple[str, ...]
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReading:
    """What a run's folder says at one moment: `frame` is the newest of its timeline, if any."""

    is_live: bool
    status: Mapping[str, Any] = field(default_factory=dict)
    frame: Mapping[str, Any] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)


def find_samples(reading: RunReading) -> Iterator[Sample]:
    """Yield the samples of a run; of one that is over, what is of the whole run and its states."""
    status = settle_status(reading.status, is_alive=reading.is_live)
    reading = replace(reading, status=status)
    yield from _lifecycle(reading)
    yield from _totals(reading.status)
    yield from _limits(reading.limits)
    yield from _site_states(reading.status)
    if reading.is_live:
        yield from _under_way(reading.status)
        yield from _figures(reading)
        yield from _rates_of_sources(reading.frame)
        away = _find_away(reading)
        yield from _sites(_leave_out(away, reading.frame.get("sites")))
        yield from _links(_leave_out(away, reading.frame.get("links")))
        yield from _operators(_leave_out(away, reading.frame.get("operators")))
        yield from _deviations(reading.frame.get("deviations"))


def _lifecycle(reading: RunReading) -> Iterator[Sample]:
    status, frame = reading.status, reading.frame
    names = [str(status.get(name) or "") for name in ("pipeline", "network", "strategy")]
    if any(names):
        yield Sample("thalweg_run_info", tuple(names), 1.0)
    yield Sample("thalweg_run_up", (), float(reading.is_live))
    state = status.get("state")
    if isinstance(state, str) and state:
        for name in dict.fromkeys((*RUN_STATES, state)):
            yield Sample("thalweg_run_state", (name,), float(name == state))
    yield from _maybe("thalweg_run_start_timestamp_seconds", status.get("began_s"))
    yield from _maybe("thalweg_run_heartbeat_timestamp_seconds", status.get("heartbeat_s"))
    yield from _maybe("thalweg_run_figures_timestamp_seconds", frame.get("at_s"))


def _totals(status: Mapping[str, Any]) -> Iterator[Sample]:
    for name, key in (
        ("thalweg_rows_in_total", "rows_in_by_source"),
        ("thalweg_rows_out_total", "rows_out"),
        ("thalweg_sent_bytes_total", "sent_bytes"),
        ("thalweg_changes_total", "changes_by_cause"),
    ):
        yield from _by_label(name, status.get(key))
    yield from _maybe("thalweg_dead_letter_rows_total", status.get("dead_rows"))
    if isinstance(status.get("restarts_by_site"), dict):
        # From zero on: a counter that appears with its first restart shows no increase.
        none = dict.fromkeys(_table(status.get("sites")), 0)
        yield from _by_label("thalweg_site_restarts_total", {**none, **status["restarts_by_site"]})
    last = _table(status.get("last_change"))
    yield from _maybe("thalweg_last_change_timestamp_seconds", last.get("at_s"))
    yield from _maybe("thalweg_last_change_duration_seconds", last.get("seconds"))


def _limits(limits: Limits) -> Iterator[Sample]:
    yield from _maybe("thalweg_uplink_limit_bytes_per_second", limits.uplink_bps, 1 / 8)
    yield from _maybe("thalweg_response_time_limit_seconds", limits.response_time_s)
    yield from _maybe("thalweg_usage_limit_ratio", limits.usage)


def _state_of_site(told: Mapping[str, Any]) -> str:
    """The state that a site is in; empty where nothing says so.

    >>> _state_of_site({"state": "restarting", "alive": True}), _state_of_site({"alive": False})
    ('restarting', 'down')
    """
    state = told.get("state")
    if not isinstance(state, str) and isinstance(told.get("alive"), bool):
        state = "up" if told["alive"] else "down"
    return state if isinstance(state, str) else ""


def _find_away(reading: RunReading) -> set[str]:
    """The sites that are not up, by what was written last: what they measured is of the past."""
    tables = (_table(of.get("sites")) for of in (reading.status, reading.frame))
    states = [(site, _state_of_site(_table(about))) for of in tables for site, about in of.items()]
    return {site for site, state in states if state not in ("up", "")}


def _leave_out(sites: set[str], by_site: object) -> dict[str, Any]:
    return {site: about for site, about in _table(by_site).items() if site not in sites}


def _site_states(status: Mapping[str, Any]) -> Iterator[Sample]:
    for site, about in _table(status.get("sites")).items():
        told = _table(about)
        state = _state_of_site(told)
        if not state:
            continue
        for name in dict.fromkeys((*SITE_STATES, state)):
            yield Sample("thalweg_site_state", (site, name), float(name == state))
        since = "thalweg_site_state_since_timestamp_seconds"
        yield from _maybe(since, told.get("since_s"), labels=(site,))


def _under_way(status: Mapping[str, Any]) -> Iterator[Sample]:
    if "under_way" not in status:
        return
    about = _table(status["under_way"])
    for kind in UNDER_WAY:
        yield Sample("thalweg_under_way", (kind,), float(about.get("kind") == kind))
    if about.get("kind") in UNDER_WAY:
        since = "thalweg_under_way_since_timestamp_seconds"
        yield from _maybe(since, about.get("began_at_s"), labels=(about["kind"],))


def _figures(reading: RunReading) -> Iterator[Sample]:
    figures = _table(reading.frame.get("figures"))
    estimated = _table(reading.frame.get("estimated"))
    measured = _table(reading.frame.get("measured"))
    for family, key, factor in (
        ("thalweg_uplink{}_bytes_per_second", "uplink_bps", 1 / 8),
        ("thalweg_response_time{}_seconds", "response_time_s", 1.0),
        ("thalweg_usage{}_ratio", "usage", 1.0),
    ):
        yield from _maybe(family.format(""), _bounded(figures, key), factor, allow_inf=True)
        yield from _maybe(family.format("_estimated"), estimated.get(key), factor)
    name = "thalweg_uplink_measured_{}"
    yield from _maybe(name.format("bytes_per_second"), measured.get("uplink_bps"), 1 / 8)
    passing = "thalweg_uplink_passing_bytes_per_second"
    yield from _maybe(passing, measured.get("passing_bps"), 1 / 8)
    yield from _maybe(name.format("timestamp_seconds"), measured.get("measured_at_s"))
    if isinstance(figures.get("broken"), list):
        yield Sample("thalweg_broken_constraints", (), float(len(figures["broken"])))


def _bounded(figures: Mapping[str, Any], key: str) -> object:
    """A figure; one that grows without bound, which a run leaves out, is infinite.

    >>> _bounded({"usage": 0.2, "broken": ["T is without bound"]}, "response_time_s")
    inf
    """
    if key in figures or not figures.get("broken"):
        return figures.get(key)
    return math.inf


def _sites(sites: Mapping[str, Any]) -> Iterator[Sample]:
    for site, about in sites.items():
        told = _table(about)
        for name, key in (
            ("thalweg_site_cpu_ratio", "cpu"),
            ("thalweg_site_memory_bytes", "memory_bytes"),
            ("thalweg_site_load_ratio", "load"),
            ("thalweg_site_figures_timestamp_seconds", "renewed_at_s"),
        ):
            yield from _maybe(name, told.get(key), labels=(site,))
        yield from _lag("thalweg_site_lag_seconds", told.get("lag_s"), site)


def _links(links: Mapping[str, Any]) -> Iterator[Sample]:
    for site, about in links.items():
        told = _table(about)
        yield from _maybe("thalweg_link_bytes_per_second", told.get("bps"), 1 / 8, labels=(site,))
        yield from _lag("thalweg_link_lag_seconds", told.get("lag_s"), site)
        renewed = "thalweg_link_figures_timestamp_seconds"
        yield from _maybe(renewed, told.get("renewed_at_s"), labels=(site,))


def _lag(name: str, lag_s: object, site: str) -> Iterator[Sample]:
    for sample in _maybe(name, lag_s, labels=(site,)):
        if sample.value < _MAX_LAG_S:
            yield sample


def _rates_of_sources(frame: Mapping[str, Any]) -> Iterator[Sample]:
    """Yield what arrives, which it does at a site that is down, too."""
    for source, rates in _table(frame.get("rates")).items():
        for site, rate in _table(rates).items():
            yield from _maybe("thalweg_source_rows_per_second", rate, labels=(source, site))


def _operators(by_site: Mapping[str, Any]) -> Iterator[Sample]:
    for site, operators in by_site.items():
        for operator, pair in _table(operators).items():
            if isinstance(pair, list) and len(pair) == 2:
                for way, rate in zip(("in", "out"), pair, strict=True):
                    name = f"thalweg_operator_rows_{way}_per_second"
                    yield from _maybe(name, rate, labels=(site, operator))


def _deviations(deviations: object) -> Iterator[Sample]:
    for about in deviations if isinstance(deviations, list) else []:
        told = _table(about)
        declared, measured = _number(told.get("declared")), _number(told.get("measured"))
        operator, figure = told.get("operator"), told.get("figure")
        if declared and measured is not None and isinstance(operator, str):
            labels = (operator, str(told.get("site") or ""), str(figure or ""))
            yield Sample("thalweg_deviation_ratio", labels, measured / declared)


def _by_label(name: str, values: object) -> Iterator[Sample]:
    for label, value in _table(values).items():
        yield from _maybe(name, value, labels=(label,))


def _maybe(
    name: str,
    value: object,
    factor: float = 1.0,
    *,
    labels: tuple[str, ...] = (),
    allow_inf: bool = False,
) -> Iterator[Sample]:
    """Yield the sample of a value that is known; none of another."""
    number = _number(value)
    if number is None and allow_inf and value == math.inf:
        number = math.inf
    if number is not None:
        yield Sample(name, labels, number * factor)


def _number(value: object) -> float | None:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number and math.isfinite(value) else None  # type: ignore[arg-type]


def _table(value: object) -> Mapping[str, Any]:
    """A mapping as it is; of anything else, as old and damaged lines have it, none."""
    return value if isinstance(value, dict) else {}
