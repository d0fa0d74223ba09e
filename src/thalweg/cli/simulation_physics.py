"""What a command asks of how events are born and operators work."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from thalweg.cli.inputs import read_duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from thalweg.model import Plan
    from thalweg.simulate import Control, Physics


class Arriving(StrEnum):
    """How events are born."""

    POISSON = "poisson"
    PERIODIC = "periodic"
    ON_OFF = "on-off"


class Serving(StrEnum):
    """How times of service vary."""

    ESTIMATED = "estimated"
    EXPONENTIAL = "exponential"
    DETERMINISTIC = "deterministic"


class Sharing(StrEnum):
    """Who has the CPU of a node."""

    ESTIMATED = "estimated"
    WHOLE = "whole"
    SHARED = "shared"


class Asked(NamedTuple):
    """What is asked of how operators and links work."""

    arrivals: Arriving
    burst: str
    trace: Path | None
    service: Serving
    service_times: Path | None
    cpu: Sharing
    even: bool


_NOTHING = (Arriving.POISSON, None, Serving.ESTIMATED, None, Sharing.ESTIMATED, False)


def choose_physics(asked: Asked, plans: Sequence[Plan]) -> list[Physics] | None:
    """How each plan's operators and links work, as its estimate has it but for what is asked."""
    from dataclasses import replace

    from thalweg.simulate.physics import physics_of

    if (asked.arrivals, *asked[2:]) == _NOTHING or not plans:
        return None
    made: dict[str, Any] = {"even": asked.even, "arrivals": _arrivals(asked)}
    service = _service(asked)
    if service is not None:
        made["service"] = service
    if asked.cpu is not Sharing.ESTIMATED:
        made["cpu"] = asked.cpu.value
    return [replace(physics_of(placed), **made) for placed in plans]


def _arrivals(asked: Asked) -> Any:
    from thalweg.errors import Defects
    from thalweg.files.sample_table import load_births
    from thalweg.simulate import OnOff, Periodic, Poisson, Trace

    if asked.trace is not None:
        return {pair: Trace(time_s=times) for pair, times in load_births(asked.trace).items()}
    if asked.arrivals is Arriving.POISSON:
        return Poisson()
    if asked.arrivals is Arriving.PERIODIC:
        return Periodic()
    defects = Defects()
    on, colon, off = asked.burst.partition(":")
    defects.require(bool(colon), "--burst", asked.burst, "ON:OFF, such as 1 s:4 s")
    defects.raise_if_any()
    on_s = read_duration(on.strip(), "--burst")
    return OnOff(on_s=on_s, off_s=read_duration(off.strip(), "--burst"))


def _service(asked: Asked) -> Any:
    from thalweg.files.sample_table import load_service_times
    from thalweg.simulate import Deterministic, Empirical, Exponential

    if asked.service_times is not None:
        times = load_service_times(asked.service_times)
        return {operator: Empirical(values) for operator, values in times.items()}
    if asked.service is Serving.ESTIMATED:
        return None
    return Exponential() if asked.service is Serving.EXPONENTIAL else Deterministic()


def choose_control(strategy: str | None, interval: str) -> Control | None:
    """The strategy that watches, if one is to."""
    from thalweg.simulate import Control

    interval_s = read_duration(interval, "--interval")
    return None if strategy is None else Control(strategy=strategy, interval_s=interval_s)
