"""What the commands of `thalweg mobility` print."""

from __future__ import annotations

from typing_extensions import TypedDict

from thalweg.cli.documents.common import Document


class Trace(Document):
    """A generated trace."""

    vehicles: int
    positions: int
    seconds: float
    most_at_once: int
    hand_overs_each: float
    seed: int
    files: list[str]


class HitRate(TypedDict):
    """How often a predictor is right so far ahead."""

    predictor: str
    ahead_s: float
    moments: int
    hits: float | None
    probability: float | None
    moved: int
    hits_moved: float | None


class Predictions(Document):
    """How often each predictor is right."""

    hit_rates: list[HitRate]


class Transition(TypedDict):
    """Where vehicles went after a leaf, and how long they stayed there before."""

    previous: str
    leaf: str
    next: str
    count: int
    stay_s: float
    spread_s: float


class Learned(Document):
    """Where vehicles go next, counted."""

    stays: int
    transitions: list[Transition]


class PlanStep(TypedDict):
    """Where an operator is at a moment."""

    time_s: float
    host: str
    out_bytes_per_s: float
    transfer_begin_s: float
    first_event_s: dict[str, float]
    reserved_latency_s: dict[str, float | None]


class PlannedMove(TypedDict):
    """A move, with its reason, cost and what it saves."""

    at_s: float
    begin_s: float
    source: str
    target: str
    state_bytes: float
    cost: float
    saves: float
    reason: str


class MigrationPlan(TypedDict):
    """Where an operator will be when."""

    operator: str
    begin_s: float
    until_s: float
    step_s: float
    steps: list[PlanStep]
    moves: list[PlannedMove]
    cost: float
    staying_cost: float
    alternatives: list[tuple[float, list[str]]]
    late_s: float
    crowded: bool
    violations: list[str]


class MigrationPlans(Document):
    """The moves of one instance's operators."""

    users: dict[str, str]
    knowledge: str
    policy: str
    seed: int
    plans: list[MigrationPlan]


class Effort(TypedDict):
    """What it took to decide."""

    coordinations: int
    plans: int
    changes: int
    kept: int
    failed_predictions: int
    left_out: float
    late: int
    crowded: int
    wasted_bytes: float
    wasted_transfers: int


class Executed(TypedDict):
    """What became of the events when the moves were made."""

    approach: str
    mean_bdp_bytes: float
    placement_cost: float
    migration_cost: float
    moves: int
    sent_bytes: float
    wasted_bytes: float
    downtime_mean_s: float
    downtime_max_s: float
    born: int
    delivered: int
    lost: int
    duplicated: int
    short_of_state: int
    latency_mean_s: float | None
    latency_p50_s: float | None
    latency_p95_s: float | None
    latency_p99_s: float | None


class Approach(TypedDict):
    """One way to keep operators near their users."""

    approach: str
    knowledge: str | None
    policy: str | None
    mean_bdp_bytes: float
    relative_to_static: float | None
    placement_byte_s: float
    migration_byte_s: float
    effort: Effort
    executed: Executed
    wall_s: float


class CityRun(Document):
    """What each approach costs, moves and delivers in a whole city."""

    instances: int
    brokers: int
    vehicles: int
    seconds: float
    seed: int
    approaches: list[Approach]


class EventCounts(TypedDict):
    """What became of events."""

    sent: int
    delivered: int
    lost: int
    duplicated: int


class Move(TypedDict):
    """One hand-over between two sites."""

    source: str
    target: str
    planned_s: float
    prepared_s: float
    handed_over_s: float
    released_s: float
    ahead_bytes: int
    last_bytes: int
    state_bytes: int
    take_over_s: float
    pause_s: float | None
    events: EventCounts
    sent_bytes: int
    late_s: float


class HandOver(Document):
    """An operator that really moved, and every event counted."""

    sites: list[str]
    vehicles: int
    window_s: float
    speedup: float
    seconds: float
    moves: list[Move]
    events: EventCounts
    outputs_equal: bool
    state_equal: bool
    state_fingerprint: str
    steady_pause_s: float | None
    ok: bool
