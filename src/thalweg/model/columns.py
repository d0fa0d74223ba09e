"""The figures of all operators as columns, for estimators that work on arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from thalweg.model.figures import freeze
from thalweg.model.graph import Floats
from thalweg.model.operator import CountWindow, Operator, TimeWindow

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class OperatorColumns:
    """One entry for each operator; windows are 0 where the operator has none of that sort."""

    is_source: Flags
    is_sink: Flags
    replicable: Flags
    selectivity: Floats
    compression: Floats
    cpu_per_event: Floats
    cpu_per_byte: Floats
    memory: Floats
    memory_factor: Floats
    state: Floats
    event_size: Floats
    window_events: Floats
    window_length_s: Floats
    window_slide_s: Floats

    def __post_init__(self) -> None:
        freeze(self)

    @property
    def is_transform(self) -> Flags:
        """Neither source nor sink."""
        return ~(self.is_source | self.is_sink)


def operator_columns(operators: Sequence[Operator]) -> OperatorColumns:
    """The operators' figures as columns, in their order."""

    def column(name: str) -> Floats:
        return np.array([getattr(o, name) or 0.0 for o in operators], dtype=float)

    windows = [o.window for o in operators]
    return OperatorColumns(
        is_source=np.array([o.kind == "source" for o in operators]),
        is_sink=np.array([o.kind == "sink" for o in operators]),
        replicable=np.array([o.replicable for o in operators]),
        selectivity=column("selectivity"),
        compression=column("compression"),
        cpu_per_event=column("cpu_per_event"),
        cpu_per_byte=column("cpu_per_byte"),
        memory=column("memory"),
        memory_factor=column("memory_factor"),
        state=column("state"),
        event_size=column("event_size"),
        window_events=np.array(
            [float(w.events) if isinstance(w, CountWindow) else 0.0 for w in windows]
        ),
        window_length_s=np.array([w.length if isinstance(w, TimeWindow) else 0.0 for w in windows]),
        window_slide_s=np.array([w.slide if isinstance(w, TimeWindow) else 0.0 for w in windows]),
    )
