"""What each instance needs of the node it runs on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thalweg.estimate.rates import Rates
from thalweg.model.columns import OperatorColumns
from thalweg.model.deployment import Deployment
from thalweg.model.graph import Floats


@dataclass(frozen=True, eq=False)
class Demand:
    """One entry for each instance."""

    window_bytes: Floats
    """Data of one window: events × size, or length × rate × size; 0 without a window."""
    memory_bytes: Floats
    """Fixed memory + memory factor × window data."""
    work_per_event: Floats
    """Instructions for one event: per event + per byte × size."""
    passes: Floats
    """How often each event is worked on: length / slide for a sliding window, else once."""
    cpu_ips: Floats
    """Instructions/s."""


def estimate_demand(deployment: Deployment, rates: Rates) -> Demand:
    """Window data, memory, work and CPU load of every instance."""
    columns, operator = deployment.problem.application.columns, deployment.operator
    length = columns.window_length_s[operator]
    window_events = columns.window_events[operator] + length * rates.events_in
    window_bytes = window_events * rates.size_in
    work = columns.cpu_per_event[operator] + columns.cpu_per_byte[operator] * rates.size_in
    passes = window_passes(columns)[operator]
    return Demand(
        window_bytes=window_bytes,
        memory_bytes=columns.memory[operator] + columns.memory_factor[operator] * window_bytes,
        work_per_event=work,
        passes=passes,
        cpu_ips=work * rates.events_in * passes,
    )


def window_passes(columns: OperatorColumns) -> Floats:
    """How often each operator works on an event: length / slide for a sliding window, else once."""
    length, slide = columns.window_length_s, columns.window_slide_s
    return np.divide(length, slide, out=np.ones_like(length), where=slide > 0)
