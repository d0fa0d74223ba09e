"""Documents about plans."""

from __future__ import annotations

from typing import NotRequired

from typing_extensions import TypedDict

from thalweg.cli.documents.common import Document, Figure
from thalweg.files.plan_document import (
    InstanceEntry,
    PlanDocument,
    ReasonEntry,
    ViolationEntry,
)


class Plans(Document):
    """A plan of each application, in the order in which they were planned."""

    plans: list[PlanDocument]


class ScheduleSummary(TypedDict):
    """The figures that sum a replay up."""

    steps: int
    adaptations: int
    adaptations_ahead: int
    changes: int
    steps_violated: int
    steps_violated_after: int
    started: int
    stopped: int
    usage_mean: Figure
    uplink_mean_bps: Figure
    seconds: float


class ScheduleStep(TypedDict):
    """One step of a workload."""

    time_s: float
    adapted: bool
    ahead: bool
    reason: str
    usage: Figure
    uplink_bps: Figure
    response_time_s: Figure
    usage_limit: Figure | None
    uplink_limit_bps: Figure | None
    response_time_limit_s: Figure | None
    violations_before: list[str]
    violations_after: list[str]
    started: int
    stopped: int
    cuts: dict[str, list[str]]
    seconds: float


class Schedule(Document):
    """What a strategy does with a workload, step by step."""

    application: str
    network: str
    strategy: str
    summary: ScheduleSummary
    steps: list[ScheduleStep]


class Explanation(Document):
    """Why operators are where they are; of a run, with the change that put them there."""

    change: NotRequired[dict[str, object]]
    strategy: str
    feasible: bool
    placement: list[InstanceEntry]
    reasons: list[ReasonEntry]
    violations: list[ViolationEntry]


class Moved(TypedDict):
    """An operator that runs on another node."""

    operator: str
    origin: str | None
    before: str
    after: str


class Instance(TypedDict):
    """An operator on a node."""

    operator: str
    node: str
    origin: str | None


class Estimates(TypedDict):
    """An estimate of the older and of the newer plan."""

    before: Figure
    after: Figure


class Diff(Document):
    """What changes from one plan to another."""

    moved: list[Moved]
    started: list[Instance]
    stopped: list[Instance]
    estimates: dict[str, Estimates]
