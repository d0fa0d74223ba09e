"""Documents about runs."""

from __future__ import annotations

from typing import Literal, NotRequired

from typing_extensions import TypedDict

from thalweg.cli.documents.common import Document, Figure, Scalar
from thalweg.files.plan_document import PlanDocument

Cuts = dict[str, list[str]]
Rates = dict[str, dict[str, float]]


class Outline(Document):
    """What a run would do."""

    cuts: Cuts
    steps: list[str]
    plan: PlanDocument


class Query(TypedDict):
    """What a query of a site does."""

    name: str
    state: str
    batch: int
    input_rows_per_s: float
    processed_rows_per_s: float
    batch_s: float | None
    watermark: str | None
    error: str | None


class Site(TypedDict):
    """A site, and what its queries do."""

    alive: bool
    state: str
    since_s: float | None
    pid: int | None
    silent_s: float
    queries: list[Query]


class LastChange(TypedDict):
    """The last change of cuts."""

    at_s: float
    cause: str
    seconds: float


class UnderWay(TypedDict):
    """What is under way now."""

    kind: str
    site: str | None
    what: str
    began_at_s: float


class Deviation(TypedDict):
    """A figure that is not as it was declared."""

    operator: str
    site: str | None
    figure: str
    declared: float
    measured: float
    low: float
    high: float


class Characteristic(TypedDict):
    """A measured figure of an operator, with an interval."""

    declared: float
    value: float
    low: float
    high: float
    count: float


class Figures(TypedDict, total=False):
    """The figures that decisions rest on; `broken` names the limits that are exceeded."""

    usage: Figure
    uplink_bps: Figure
    response_time_s: Figure
    passing_bps: float
    measured_at_s: float
    broken: list[str]


# `from` is a word of Python's own.
Decision = TypedDict(
    "Decision",
    {
        "at_s": float,
        "begin_s": float,
        "end_s": float,
        "code": str | None,
        "cause": str,
        "changed": bool,
        "reason": str,
        "from": Cuts,
        "to": Cuts,
        "plan": str | None,
        "steps": list[str],
        "seconds": float,
        "rates": Rates | None,
        "figures": Figures,
        "expected": NotRequired[Figures],
    },
)


class About(TypedDict):
    """Which run it is."""

    pipeline: str
    network: str
    code: str | None
    code_since_s: float | None
    strategy: str
    interval_s: float
    link: str | None


class State(About):
    """How a run is doing, or did."""

    state: str
    began_s: float
    cuts: Cuts
    sites: dict[str, Site]
    figures: Figures
    estimated: Figures
    measured: Figures
    deviations: list[Deviation]
    characteristics: dict[str, dict[str, Characteristic]]
    rows_in: int
    rows_in_by_source: dict[str, int]
    rows_in_by_site: dict[str, int]
    rows_out: dict[str, int]
    dead_rows: int
    sent_bytes: dict[str, int]
    sent_rows: dict[str, dict[str, int]]
    changes_by_cause: dict[str, int]
    last_change: LastChange | None
    restarts_by_site: dict[str, int]
    error: str | None


class Restart(TypedDict):
    """A site that was started again."""

    site: str
    at_s: float
    cause: str


class Compared(TypedDict):
    """What was planned beside what was measured."""

    kind: str
    name: str
    site: str
    planned: float
    measured: float
    difference: float | None


class Summary(State):
    """What came out of a run."""

    seconds: float
    changes: list[Decision]
    restarts: list[Restart]
    planned_and_measured: NotRequired[list[Compared]]


class Report(Document, Summary):
    """What came out of a run."""


class Finding(TypedDict):
    """One thing that was found, and the command that helps."""

    level: Literal["good", "note", "warning", "problem"]
    where: str
    what: str
    remedy: str


class Starting(Document, About):
    """How a run is doing; while it starts, or where it could not, only that."""

    alive: bool
    heartbeat_s: float
    heartbeat_age_s: float
    worst: Finding | None
    state: str
    error: NotRequired[str | None]
    under_way: NotRequired[UnderWay | None]


class Running(Document, State):
    """How a run is doing, or did when it was last heard of."""

    alive: bool
    heartbeat_s: float
    heartbeat_age_s: float
    worst: Finding | None
    pid: int
    under_way: UnderWay | None
    rates: Rates | None
    changes: int
    restarts: int
    last_decision: Decision | None
    note: str


Status = Running | Starting


class Health(Document):
    """What is wrong with a run or a machine, what helps, and what was done."""

    done: list[str]
    well: bool
    findings: list[Finding]


class CodeSpan(TypedDict):
    """The code that rows were made with, and since when that is known."""

    digest: str | None
    since_s: float | None


class Code(TypedDict):
    """The code of a run's rows, beside the code at hand."""

    rows: list[CodeSpan]
    here: str
    same: bool | None
    changes: list[str]


class Verdict(TypedDict):
    """The rows of a sink beside those of a single-site run."""

    expected: int
    found: int
    lost: int
    duplicated: int
    wrong: int
    unknown: int
    late: int
    examples: dict[str, list[str]]


class Verification(Document):
    """Whether every row of a run counted once."""

    code: Code
    rows_in: int
    ended: bool
    same: bool
    sinks: dict[str, Verdict]


class Stop(Document):
    """Whether something ran until now."""

    folder: str
    stopped: bool


class Rollback(Document):
    """Whether a rollback is in force already, and what came of it."""

    folder: str
    done: bool
    outcome: str


class Surge(TypedDict):
    """Seconds from the first ride at the higher rate; null: that did not happen."""

    at_s: float
    detected_s: float | None
    decided_s: float | None
    in_force_s: float | None
    change_s: float | None
    changes: int


class Kill(TypedDict):
    """What was killed, and how many seconds later it was seen down and was back."""

    site: str
    at_s: float
    seen_down_s: float | None
    back_s: float | None


class Durations(TypedDict):
    """Where the demo's time went."""

    setup: float
    show: float
    waiting: float
    comparison: float
    without_setup: float


class Demo(Document):
    """What came out of the demo."""

    settings: str
    strategy: str
    rides: int
    rows: int
    lost: int
    duplicated: int
    sent_bytes: int
    all_cloud_bytes: int
    saved: float
    sent_since_bytes: int | None
    all_cloud_since_bytes: int | None
    saved_since: float | None
    longest_pause_s: float
    restarts: int
    options: dict[str, Scalar]
    surge: Surge | None
    kill: Kill | None
    seconds: Durations
    adaptations: list[Decision]
    report: Summary


class RatePlan(TypedDict):
    """The plan at a rate, and the one with all operators in the cloud."""

    rides_per_s: float
    plan: PlanDocument
    all_cloud: PlanDocument


class DemoPlan(Document):
    """What the demo deploys, before and in its surge."""

    settings: str
    plans: list[RatePlan]
