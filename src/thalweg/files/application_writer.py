"""Writes an application as plain data, without what is at its default."""

from __future__ import annotations

import math
from typing import Any

from thalweg.files.fields import FORMAT_VERSION
from thalweg.files.quantities import write_quantity
from thalweg.model import Application, CountWindow, Operator, TimeWindow
from thalweg.units import BANDWIDTH, DURATION, EVENT_RATE, SIZE, WORK, WORK_PER_BYTE, Dimension


def application_data(application: Application) -> dict[str, Any]:
    """The application as plain data, without what is at its default."""
    limits = application.limits
    kept = {
        "response_time": _unless(limits.response_time_s, math.inf, DURATION),
        "uplink": _unless(limits.uplink_bps, math.inf, BANDWIDTH),
        "uplink_least": _unless(limits.uplink_least_bps, 0, BANDWIDTH),
        "usage": None if limits.usage == math.inf else float(limits.usage),
    }
    data = {
        "thalweg": FORMAT_VERSION,
        "application": application.name,
        "operators": [_operator_data(operator) for operator in application.operators],
        "streams": [
            _given(
                source=stream.source,
                target=stream.target,
                probability=None if stream.probability == 1 else float(stream.probability),
            )
            for stream in application.streams
        ],
        "limits": _given(**kept) or None,
    }
    return _given(**data)


def _operator_data(operator: Operator) -> dict[str, Any]:
    window: dict[str, Any] | None = None
    if isinstance(operator.window, CountWindow):
        window = {"events": operator.window.events}
    elif isinstance(operator.window, TimeWindow):
        slide = operator.window.slide
        window = _given(
            length=write_quantity(operator.window.length, DURATION),
            slide=_unless(slide, operator.window.length, DURATION),
        )
    pin = operator.pin
    return _given(
        name=operator.name,
        kind=None if operator.kind == "transform" else operator.kind,
        rate=None if operator.rate is None else write_quantity(operator.rate, EVENT_RATE),
        event_size=None
        if operator.event_size is None
        else write_quantity(operator.event_size, SIZE),
        selectivity=None if operator.selectivity == 1 else float(operator.selectivity),
        compression=None if operator.compression == 1 else float(operator.compression),
        cpu_per_event=_unless(operator.cpu_per_event, 0, WORK),
        cpu_per_byte=_unless(operator.cpu_per_byte, 0, WORK_PER_BYTE),
        memory=_unless(operator.memory, 0, SIZE),
        memory_factor=None if operator.memory_factor == 1 else float(operator.memory_factor),
        window=window,
        state=_unless(operator.state, 0, SIZE),
        replicable=operator.replicable or None,
        pin=None if pin is None else _given(node=pin.node, site=pin.site, tier=pin.tier),
    )


def _given(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _unless(value: float, default: float, dimension: Dimension) -> str | None:
    return None if value == default else write_quantity(value, dimension)
