"""What the measurements of a source or an operator say: its figures, each with its spread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from thalweg.model import CountWindow, Operator, TimeWindow
from thalweg.spark.pipeline.kinds import Step
from thalweg.spark.profile.calibration import Calibration
from thalweg.spark.profile.fit import Measured, fit_line, fit_ratio, measured_from, rounded
from thalweg.spark.profile.run import CpuReading, Part, events_in
from thalweg.spark.profile.state import StateReading


@dataclass(frozen=True, slots=True, kw_only=True)
class StepProfile:
    """What was measured of a source or an operator.

    - `size_in_bytes`, `size_out_bytes`: of one event; `link_bytes` what one takes on a link, after
      compression.
    - `cpu_s`: CPU seconds for one event that comes in; `fixed_s`: for a run at all.
    - `work`: instructions for one event and window that it is in, as `Operator.cpu_per_event`.
    - `window_events`, `window_bytes`: what comes in during one window, at the sample's rate;
      `state_bytes` what Spark keeps in memory for the windows that are open at a time.
    """

    declared: Operator
    measured: Operator
    role: str
    rows_in: int
    rows_out: int
    selectivity: Measured
    size_in_bytes: float
    size_out_bytes: float
    link_bytes: float
    compression: Measured
    cpu_s: Measured
    fixed_s: float
    work: Measured
    window_events: float
    window_bytes: float
    state_bytes: float | None

    @property
    def name(self) -> str:
        """The operator's name."""
        return self.declared.name


def judge_source(step: Step, part: Part) -> StepProfile:
    """What the rows of a source say: how large its events are."""
    flow = part.flows[step.name]
    size = flow.data_bytes / max(1, flow.rows)
    none = Measured(0.0, 0.0, 0.0)
    one = Measured(1.0, 1.0, 1.0)
    return StepProfile(
        declared=step.operator,
        measured=replace(step.operator, event_size=rounded(size)),
        role=step.role,
        rows_in=flow.rows,
        rows_out=flow.rows,
        selectivity=one,
        size_in_bytes=size,
        size_out_bytes=size,
        link_bytes=flow.file_bytes / max(1, flow.rows),
        compression=one,
        cpu_s=none,
        fixed_s=0.0,
        work=none,
        window_events=0.0,
        window_bytes=0.0,
        state_bytes=None,
    )


def judge_operator(
    step: Step,
    parts: Sequence[Part],
    cpu: CpuReading,
    state: StateReading | None,
    machine: Calibration,
    span_s: float,
) -> StepProfile:
    """What the measurements of an operator say; `span_s` is how long the largest part lasts."""
    last = parts[-1]
    rows_in, flow = events_in(step, last), last.flows[step.name]
    size_in = sum(last.flows[sender.name].data_bytes for sender in step.inputs) / max(1, rows_in)
    selectivity = fit_ratio(
        [events_in(step, part) for part in parts], [part.flows[step.name].rows for part in parts]
    )
    compression = _fit_compression(step, parts)
    lines = list(map(fit_line, cpu.events, cpu.seconds))
    cpu_s = measured_from([max(0.0, line.slope) for line in lines])
    work = cpu_s.times(machine.speed_ips.value / _passes(step))
    window_events = _window_events(step.operator, rows_in / span_s if span_s > 0 else 0.0)
    window_bytes = window_events * size_in
    state_bytes = None if state is None else _open_state_bytes(step, state, span_s)
    factor = step.operator.memory_factor
    if state_bytes is not None and window_bytes > 0:
        factor = rounded(state_bytes / window_bytes)
    return StepProfile(
        declared=step.operator,
        measured=replace(
            step.operator,
            selectivity=rounded(selectivity.value),
            compression=rounded(compression.value),
            cpu_per_event=rounded(work.value),
            # All of the work is in what each event takes.
            cpu_per_byte=0.0,
            memory_factor=factor,
        ),
        role=step.role,
        rows_in=rows_in,
        rows_out=flow.rows,
        selectivity=selectivity,
        size_in_bytes=size_in,
        size_out_bytes=flow.data_bytes / max(1, flow.rows),
        link_bytes=flow.file_bytes / max(1, flow.rows),
        compression=compression,
        cpu_s=cpu_s,
        fixed_s=measured_from([max(0.0, line.fixed) for line in lines]).value,
        work=work,
        window_events=window_events,
        window_bytes=window_bytes,
        state_bytes=state_bytes,
    )


def _passes(step: Step) -> float:
    """How often the model counts the work on each event: once for every window that it is in."""
    window = step.operator.window
    return window.length / window.slide if isinstance(window, TimeWindow) else 1.0


def _fit_compression(step: Step, parts: Sequence[Part]) -> Measured:
    """That of the largest part, with the least and the most of all."""
    ratios = [ratio for part in parts if (ratio := _compression(step, part)) is not None]
    # Where nothing comes out, nobody can say how large it would be.
    usual = ratios[-1] if ratios else step.operator.compression
    return Measured(usual, min([usual, *ratios]), max([usual, *ratios]))


def _open_state_bytes(step: Step, state: StateReading, span_s: float) -> float:
    """The share of a sample's state that is kept at a time."""
    window = step.window
    if window is None or span_s <= 0:
        return float(state.memory_bytes)
    delay_s = max(source.delay_s for source in step.sources)
    # Every window of the sample is kept, so those that begin before it and end after it are too.
    return state.memory_bytes * (window.length + delay_s) / (span_s + window.length - window.slide)


def _compression(step: Step, part: Part) -> float | None:
    """The size of events out over that of events in; None where there are none of either."""
    flow = part.flows[step.name]
    rows_in = events_in(step, part)
    bytes_in = sum(part.flows[sender.name].data_bytes for sender in step.inputs)
    if not flow.rows or not bytes_in:
        return None
    return (flow.data_bytes / flow.rows) / (bytes_in / rows_in)


def _window_events(operator: Operator, rate: float) -> float:
    window = operator.window
    if isinstance(window, CountWindow):
        return float(window.events)
    return rate * window.length if isinstance(window, TimeWindow) else 0.0
