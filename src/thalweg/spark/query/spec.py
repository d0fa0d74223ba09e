"""What a site is told to run, and what it tells of it: plain data that travels as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thalweg.errors import Defects, nearest
from thalweg.model.names import require_name
from thalweg.spark.link import parse_link
from thalweg.spark.pipeline.code import PipelineCode, code_of
from thalweg.spark.query.checkpoint import Offsets
from thalweg.units import DURATION, parse_quantity

if TYPE_CHECKING:
    from thalweg.spark.pipeline import Pipeline

ROLES = ("fog", "cloud", "own")
DEAD_LETTER, FAIL = BAD_ROWS = ("dead-letter", "fail")


@dataclass(frozen=True, slots=True, kw_only=True)
class QuerySpec:
    """One streaming query on one site.

    Role `fog`: the operators of the cut on the rows born at the site; what crosses the cut is
    published in the log. Role `cloud`: the whole graph with an inbox at every edge; the sinks are
    published. Role `own`: `pipeline` names a function `(session, spec) -> StreamingQuery`.
    """

    site: str
    epoch: int
    role: str
    pipeline: str
    """`package.module:attribute`."""
    log: Path
    checkpoint: Path
    cut: tuple[str, ...] = ()
    """The operators that run here; of role fog only."""
    start: Offsets | None = None
    """The offsets after which streams of the log are read, by stream; None: all of them."""
    trigger: str = "200 ms"
    rows_per_batch: int | None = None
    """The most rows that a batch takes of each stream, as long as no segment has more."""
    durable: bool = True
    """Whether what is published survives a power cut, at the price of waiting for the disk."""
    sites: tuple[str, ...] = ()
    """Of role cloud: the sites that send rows; time goes on when it does at all of them."""
    clock_ms: int | None = None
    """How far event time had come when the epoch before this one ended."""
    gates: Mapping[str, int] = field(default_factory=dict)
    """Operator of the cut → the last end of a window [ms] that is still the cloud's to compute."""
    carried: Mapping[str, str] = field(default_factory=dict)
    """Edge `x+y` into an operator of the cut → a folder with the rows of its open windows."""
    link: str | None = None
    """How rows come from a fog to the cloud, see `parse_link`; None: they share one log."""
    watched: bool = True
    """Whether rows are counted at every operator."""
    bad_rows: str = DEAD_LETTER
    """What becomes of a row that makes an operator fail: a dead letter, or the query fails."""
    code: PipelineCode | None = None
    """The code that the pipeline has to have at the site; None: any."""
    options: Mapping[str, object] = field(default_factory=dict)
    """For functions of role `own`."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "log", Path(self.log))
        object.__setattr__(self, "checkpoint", Path(self.checkpoint))
        object.__setattr__(self, "cut", tuple(self.cut))
        object.__setattr__(self, "sites", tuple(self.sites))
        defects = Defects()
        require_name(defects, "site", self.site)
        whole = isinstance(self.epoch, int) and not isinstance(self.epoch, bool)
        defects.require(whole and self.epoch >= 0, "epoch", self.epoch, "a whole number >= 0")
        defects.require(self.role in ROLES, "role", self.role, f"one of {', '.join(ROLES)}")
        is_reference = isinstance(self.pipeline, str) and self.pipeline.count(":") == 1
        hint = "for example my_package.taxi:pipeline"
        defects.require(is_reference, "pipeline", self.pipeline, "package.module:attribute", hint)
        defects.require(
            self.role == "fog" or not self.cut, "cut", self.cut, "nothing except for the role fog"
        )
        for path, value in (("log", self.log), ("checkpoint", self.checkpoint)):
            rule = "a path from the root: the site's process has a folder of its own"
            defects.require(value.is_absolute(), path, str(value), rule)
        is_limit = self.rows_per_batch is None or (
            isinstance(self.rows_per_batch, int) and self.rows_per_batch > 0
        )
        defects.require(is_limit, "rows_per_batch", self.rows_per_batch, "a whole number > 0")
        require_bad_rows(defects, self.bad_rows)
        defects.attempt("trigger", lambda: self.trigger_s)
        defects.attempt("", lambda: self.link is None or parse_link(self.link))
        plain_start = self.start is None or _is_json(self.start)
        defects.require(plain_start, "start", self.start, "a mapping of plain data, or nothing")
        for path in ("gates", "carried", "options"):
            value = getattr(self, path)
            defects.require(_is_json(value), path, value, "a mapping of plain data")
        code: object = self.code
        if code is not None and not isinstance(code, PipelineCode):
            self._read_code(defects, code)
        defects.raise_if_any()

    def _read_code(self, defects: Defects, values: Any) -> None:
        """Take the code from plain data, or remember a defect."""
        try:
            object.__setattr__(self, "code", PipelineCode.from_dict(values))
        except ValueError as error:
            defects.add("code", type(values).__name__, "the code of a pipeline", str(error))

    def require_code(self, pipeline: Pipeline) -> None:
        """Raise `InvalidInput` with all that differs unless the pipeline has the code it has to."""
        if self.code is not None:
            code_of(pipeline).require_same(self.code)

    @property
    def name(self) -> str:
        """The query's name, its own within the site: `fog-1@3` is epoch 3 of fog-1."""
        return f"{self.site}@{self.epoch}"

    @property
    def trigger_s(self) -> float:
        """The least time from one batch to the next."""
        return parse_quantity(self.trigger, DURATION)

    @property
    def ships(self) -> bool:
        """Whether its rows go over a link, or come over one."""
        return self.role != "own" and self.link is not None and parse_link(self.link).ships

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        return asdict(self) | {"log": str(self.log), "checkpoint": str(self.checkpoint)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> QuerySpec:
        """The query spec that `to_dict` gave these values for; unknown fields are refused."""
        known = {item.name for item in fields(cls)}
        needed = {"site", "epoch", "role", "pipeline", "log", "checkpoint"}
        defects = Defects()
        for name in sorted(set(values) - known):
            defects.add(name, values[name], "a field of a query", nearest(name, known))
        for name in sorted(needed - set(values)):
            defects.add(name, None, "a value for every query")
        defects.raise_if_any()
        return cls(**values)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryStatus:
    """What a query is doing: from its progress, its checkpoint and what it published."""

    name: str
    id: str
    site: str
    epoch: int
    role: str
    state: str
    """`running`, `failed` or `stopped`."""
    batch: int
    """The last batch finished; -1: none yet."""
    input_rows_per_s: float
    processed_rows_per_s: float
    offsets: Offsets
    sink_rows: Mapping[str, int]
    """Rows published in this epoch, by stream of the log."""
    state_rows: int
    batch_s: float
    """How long the last batch took."""
    watermark: str | None
    error: str | None
    is_idle: bool = False
    """Whether no batch is under way and no row that it may take waits for one."""

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> QueryStatus:
        """The status that `asdict` gave these values for."""
        return cls(**values)


def require_bad_rows(defects: Defects, value: object) -> None:
    """Remember a defect unless it says what becomes of bad rows."""
    hint = nearest(str(value), BAD_ROWS)
    defects.require(value in BAD_ROWS, "bad_rows", value, f"one of {', '.join(BAD_ROWS)}", hint)


def rate_of(value: object) -> float:
    """A rate as Spark reports it: missing or not a number before there is one, then 0."""
    return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else 0.0


def _is_json(value: object) -> bool:
    if not isinstance(value, Mapping):
        return False
    try:
        json.dumps(dict(value), allow_nan=False)
    except (TypeError, ValueError):
        return False
    return True
