"""The shape of a study as JSON; rows have a column more for each swept parameter."""

from __future__ import annotations

from typing import Literal, NotRequired

from pydantic import ConfigDict, with_config
from typing_extensions import TypedDict

_WITH_SWEPT = ConfigDict(extra="allow")

Number = float | Literal["inf", "-inf"] | None
"""What is infinite is written as a word; null is what there is not."""


@with_config(_WITH_SWEPT)
class StudyRow(TypedDict):
    """A strategy on a problem at a seed: one point of the study."""

    case: str
    application: str
    network: str
    seed: int | None
    strategy: str
    feasible: bool | None
    violations: str | None
    objective_name: str | None
    objective: Number
    aggregate_latency_s: Number
    latency_without_windows_s: Number
    worst_latency_s: Number
    response_time_s: Number
    uplink_bps: Number
    usage: Number
    delay_product_bits: Number
    moved: int | None
    seconds: float | None
    candidates: int | None
    gap: Number
    simulated_latency_s: float | None
    simulated_p99_s: float | None
    refusal: str | None
    note: str | None


@with_config(_WITH_SWEPT)
class StudyMean(TypedDict):
    """The mean of a figure over the seeds at which the plan is feasible."""

    case: str
    strategy: str
    figure: str
    planned: int
    feasible: int
    n: int
    mean: Number
    low: Number
    high: Number
    best: bool


@with_config(_WITH_SWEPT)
class StudyTest(TypedDict):
    """How a figure differs from the baseline's, over the seeds at which both are feasible."""

    case: str
    strategy: str
    figure: str
    baseline: str
    n: int
    difference: Number
    low: Number
    high: Number
    relative: Number
    t_p: float
    wilcoxon_p: float
    t_p_holm: float
    wilcoxon_p_holm: float


class StudyRank(TypedDict):
    """The mean rank of a strategy by a figure, in a case or (null) in all."""

    case: str | None
    figure: str
    strategy: str
    mean_rank: float
    first: int
    blocks: int
    friedman_chi2: float | None
    friedman_p: float | None


class ComparedStrategy(TypedDict):
    """A strategy on the one problem of a comparison."""

    strategy: str
    aggregate_latency_s: Number
    worst_latency_s: Number
    uplink_bps: Number
    response_time_s: Number
    usage: Number
    seconds: float
    candidates: int
    feasible: bool
    violations: list[str]
    gap: Number


class StudyDocument(TypedDict):
    """A study: its points, and what they say together."""

    thalweg: Literal[1]
    family: Literal["placement", "scheduling"]
    minimised: str
    baseline: str | None
    cases: list[str]
    seeds: list[int | None]
    vary: dict[str, list[float | int | str | bool | None]]
    simulate_s: float | None
    rows: list[StudyRow]
    summary: list[StudyMean]
    tests: list[StudyTest]
    ranks: list[StudyRank]
    refusals: dict[str, str]
    application: NotRequired[str]
    """This and what follows: of a single problem as it is declared."""
    network: NotRequired[str]
    best: NotRequired[str | None]
    all_best: NotRequired[list[str]]
    strategies: NotRequired[list[ComparedStrategy]]
