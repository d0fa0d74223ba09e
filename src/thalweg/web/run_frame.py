"""A moment of a run as a page draws it: unknown stays unknown, and what is stale says so."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from thalweg.units import SIZE, WORK, WORK_PER_BYTE, Dimension, show_quantity
from thalweg.web.picture import GAUGES, plain_number

Plain = dict[str, Any]
UP, DOWN, RESTARTING, ENDED = "up", "down", "restarting", "ended"
_STALE_INTERVALS, _LEAST_STALE_S = 3.0, 6.0
_DEFAULT_INTERVAL_S = 2.0
# A watermark of 1970 is the one that a query has before it has any.
_FIRST_DAY_S, _LONG_AGO_S = 86_400.0, 1e9
_MOST_DEVIATIONS = 200
_DIMENSIONS: dict[str, Dimension] = {
    "event_size": SIZE,
    "cpu_per_event": WORK,
    "cpu_per_byte": WORK_PER_BYTE,
    "memory": SIZE,
    "state": SIZE,
}


def stale_after_s(interval_s: object) -> float:
    """The age from which on a measured figure is stale: three intervals, but at least 6 s.

    >>> stale_after_s(5.0), stale_after_s(0.2), stale_after_s(None)
    (15.0, 6.0, 6.0)
    """
    known = known_number(interval_s)
    interval = known if known is not None and known > 0 else _DEFAULT_INTERVAL_S
    return max(_STALE_INTERVALS * interval, _LEAST_STALE_S)


def known_number(value: object) -> float | None:
    """A finite number; None for whatever else a line may hold.

    >>> known_number(0), known_number(True), known_number("1"), known_number(float("inf"))
    (0.0, None, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    # Python's whole numbers have no end; those of JSON have one.
    return float(value) if abs(value) < 1e300 else None


def known_lag(value: object, at_s: float) -> float | None:
    """A lag in seconds; None until there is a watermark.

    >>> known_lag(0, 1.8e9), known_lag(1.8e9, 1.8e9), known_lag(None, 1.8e9)
    (0.0, None, None)
    """
    lag_s = known_number(value)
    if lag_s is None or (lag_s > _LONG_AGO_S and at_s - lag_s < _FIRST_DAY_S):
        return None
    return lag_s


def age_of(renewed_at_s: object, at_s: float, stale_s: float) -> Plain:
    """How old a measured figure is at a moment, and whether it is stale; empty where unknown.

    >>> age_of(7.0, 10.0, 6.0), age_of(None, 10.0, 6.0)
    ({'age_s': 3.0, 'stale': False}, {})
    """
    renewed = known_number(renewed_at_s)
    if renewed is None:
        return {}
    age_s = max(at_s - renewed, 0.0)
    return {"age_s": round(age_s, 3), "stale": age_s > stale_s}


def read_frame(line: Mapping[str, Any], stale_s: float) -> Plain:
    """A moment but for its links: estimated and measured apart, the latter with their age."""
    at_s = float(line["at_s"])
    return {
        "at_s": line["at_s"],
        **_read_gauges(line, at_s, stale_s),
        "broken": [str(text) for text in _list(_mapping(line.get("figures")).get("broken"))],
        "sites": {
            name: _read_site(_mapping(told), at_s, stale_s)
            for name, told in _mapping(line.get("sites")).items()
        },
        "rates": line.get("rates"),
        "under_way": _read_under_way(line),
        "deviations": _read_deviations(line.get("deviations")),
    }


def _read_site(told: Mapping[str, Any], at_s: float, stale_s: float) -> Plain:
    """State and figures of a site; a site that is not up has no figures of now."""
    state = told.get("state")
    found: Plain = {"state": state if isinstance(state, str) else ""}
    since_s = known_number(told.get("since_s"))
    if since_s is not None:
        found["since_s"] = since_s
    if found["state"] not in (UP, ""):
        return found
    for name in ("memory_bytes", "load"):
        if name in told:
            found[name] = known_number(told[name])
    if "cpu" in told:
        cpu = known_number(told["cpu"])
        # A process is not read at the very moment of the clock.
        found["cpu"] = None if cpu is None else min(max(cpu, 0.0), 1.0)
    if "lag_s" in told:
        found["lag_s"] = known_lag(told["lag_s"], at_s)
    return found | age_of(told.get("renewed_at_s"), at_s, stale_s)


def _read_gauges(line: Mapping[str, Any], at_s: float, stale_s: float) -> Plain:
    """What decisions rest on, what the model estimates, and what the links measured."""
    figures = _mapping(line.get("figures"))
    gauges = {name: known_number(figures.get(name)) for name in GAUGES}
    estimated = line.get("estimated")
    # Runs of older versions had estimates alone, and decided by them.
    model = figures if estimated is None else _mapping(estimated)
    counted = _mapping(line.get("measured"))
    measured: Plain = {name: known_number(counted[name]) for name in GAUGES if name in counted}
    if "passing_bps" in counted:
        measured["passing_bps"] = known_number(counted["passing_bps"])
    measured |= age_of(counted.get("measured_at_s"), at_s, stale_s)
    rates = {name: known_number(line.get(name)) for name in ("events_in_per_s", "events_out_per_s")}
    return {
        "gauges": {**gauges, **rates},
        "estimated": {name: known_number(model.get(name)) for name in GAUGES},
        "measured": measured,
    }


def _read_under_way(line: Mapping[str, Any]) -> Plain | None:
    """The change or restart that goes on at a moment; None where none does."""
    told = _mapping(line.get("under_way"))
    began_s = known_number(told.get("began_at_s"))
    if began_s is None:
        return None
    site = told.get("site")
    return {
        "kind": str(told.get("kind", "change")),
        "site": site if isinstance(site, str) else None,
        "what": str(told.get("what", "")),
        "began_at_s": began_s,
    }


def _read_deviations(told: object) -> list[Plain]:
    """Declared figures that differ from the measured ones, in words; those of no sense left out."""
    return list(_deviations(_list(told)[:_MOST_DEVIATIONS]))


def _deviations(rows: list[Any]) -> Iterator[Plain]:
    for row in map(_mapping, rows):
        operator, figure, site = row.get("operator"), row.get("figure"), row.get("site")
        declared, measured = known_number(row.get("declared")), known_number(row.get("measured"))
        if not (isinstance(operator, str) and isinstance(figure, str)):
            continue
        if declared is None or measured is None:
            continue
        low, high = (known_number(row.get(end)) for end in ("low", "high"))
        yield {
            "operator": operator,
            "site": site if isinstance(site, str) else None,
            "figure": figure.replace("_", " ").replace("cpu", "CPU"),
            "declared": _show(figure, declared),
            "measured": _show(figure, measured),
            "low": None if low is None else _show(figure, low),
            "high": None if high is None else _show(figure, high),
            "ratio": plain_number(_ratio(measured, declared)),
        }


def _ratio(measured: float, declared: float) -> float:
    if declared:
        return measured / declared
    return math.inf if measured else 1.0


def _show(figure: str, value: float) -> str:
    dimension = _DIMENSIONS.get(figure)
    return f"{value:.4g}" if dimension is None else show_quantity(value, dimension)


def closing_line(line: Mapping[str, Any], at_s: float, state: str) -> Plain:
    """The moment after the last line of a run: its sites have that state, and no figures."""
    sites = {name: {"state": state, "since_s": at_s} for name in _mapping(line.get("sites"))}
    links = {name: {"bps": None} for name in _mapping(line.get("links"))}
    told = {"kind": "frame", "at_s": at_s, "sites": sites, "links": links}
    return {**told, "deviations": line.get("deviations")}


def is_over(line: Mapping[str, Any]) -> bool:
    """Whether the run wrote down itself that all of its sites have ended."""
    sites = [_mapping(of) for of in _mapping(line.get("sites")).values()]
    return bool(sites) and all(site.get("state") == ENDED for site in sites)


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
