"""Documents that are about no run and no plan."""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict

Figure = float | Literal["inf", "-inf", "nan"]
"""A number; JSON has no infinity, and nothing that is no number."""

Scalar = str | int | float | bool | None


class Document(TypedDict):
    """What every document begins with."""

    thalweg: Literal[1]


class ProblemRow(TypedDict):
    """One thing that is wrong with an input or a call."""

    path: str
    value: Scalar
    rule: str
    hint: str
    file: str
    line: int | None
    message: str


class Problems(Document):
    """Everything that is wrong; the exit code is 2."""

    problems: list[ProblemRow]


class Init(Document):
    """The example that was written."""

    folder: str
    files: list[str]


class ValidFile(TypedDict):
    """A file without a problem, and what it holds."""

    file: str
    kind: Literal["application", "network", "plan", "workload", "changes"]
    holds: str


class Validation(Document):
    """Files without a problem, alone and together."""

    files: list[ValidFile]


class Strategies(Document):
    """What can plan, by name; and what is installed but cannot be loaded, with the reason."""

    strategies: dict[str, str]
    broken: dict[str, str]


class Coordinates(Document):
    """Network coordinates, and how far they are from what was measured."""

    nodes: int
    pairs: int
    dimensions: int
    median_relative_error: float
    p90_relative_error: float
    vivaldi_median_relative_error: float
    vivaldi_p90_relative_error: float
    seed: int
    position_s: list[list[float]]
    height_s: list[float]


class MetricsFile(Document):
    """A file for Prometheus or Grafana."""

    file: Literal["rules", "dashboard", "prometheus"]
    text: str


class Page(Document):
    """Where the page is, with its token."""

    address: str


class Claim(TypedDict):
    """What a paper says and what was measured."""

    about: str
    paper: str
    measured: str
    agrees: bool | None
    reason: str


class Reproduction(Document):
    """A published evaluation that was run again."""

    points: int
    resumed: int
    rows: int
    seconds: float
    into: str
    files: list[str]
    failures: list[str]
    claims: list[Claim]
