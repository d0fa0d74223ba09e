"""The figures of a plan, and which of them a family of problems makes small."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from thalweg.model import Problem
from thalweg.planning import is_scheduling


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A column of figures: its name in rows, and how people see it."""

    name: str
    label: str
    unit: str = ""


FIGURES = (
    Figure(name="aggregate_latency_s", label="AL", unit="s"),
    Figure(name="latency_without_windows_s", label="AL w/o windows", unit="s"),
    Figure(name="worst_latency_s", label="worst", unit="s"),
    Figure(name="response_time_s", label="resp.", unit="s"),
    Figure(name="uplink_bps", label="uplink", unit="bps"),
    Figure(name="usage", label="usage", unit="%"),
    Figure(name="delay_product_bits", label="under way", unit="bit"),
    Figure(name="moved", label="moved"),
    Figure(name="seconds", label="time", unit="s"),
    Figure(name="candidates", label="candidates"),
    Figure(name="gap", label="gap"),
    Figure(name="simulated_latency_s", label="sim. mean", unit="s"),
    Figure(name="simulated_p99_s", label="sim. p99", unit="s"),
)
"""All figures that a study summarises; of each of them less is better."""
BY_NAME = {figure.name: figure for figure in FIGURES}


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Problems of one kind: what is minimised, what is shown first, which strategies are tried."""

    name: str
    minimised: str
    shown: tuple[str, ...]
    strategies: tuple[str, ...]


PLACEMENT = Family(
    name="placement",
    minimised="aggregate_latency_s",
    shown=("aggregate_latency_s", "uplink_bps", "response_time_s", "usage"),
    strategies=(
        "aels",
        "aels-rp",
        "aels-rp-la-free",
        "cloud-only",
        "tcep-best-fit",
        "aels-rp-la-free+improve",
    ),
)
SCHEDULING = Family(
    name="scheduling",
    minimised="usage",
    shown=("usage", "uplink_bps", "response_time_s", "aggregate_latency_s"),
    strategies=("tsoo-both-ways", "atsoo-both-ways", "trcs", "fog-only", "cloud-only"),
)
FAMILIES = {family.name: family for family in (PLACEMENT, SCHEDULING)}


def family_of(problem: Problem) -> Family:
    """Scheduling where streams are to be cut between fog and cloud, else placement."""
    return SCHEDULING if is_scheduling(problem) else PLACEMENT


def common_family(problems: Iterable[Problem]) -> Family:
    """The family of all problems; placement, which takes any, where they differ."""
    found = {family_of(problem).name for problem in problems}
    return SCHEDULING if found == {SCHEDULING.name} else PLACEMENT
