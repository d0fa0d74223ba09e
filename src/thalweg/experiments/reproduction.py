"""A published evaluation, run again: sweep, figures and claims, kept in one folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import pyarrow as pa

from thalweg.experiments.claims import Claim, claims_as_dicts
from thalweg.plotting import require_plotting
from thalweg.spark.sweep import SweepFailure, sweep

Draw = Callable[[pa.Table, Path], Sequence[Path]]
"""Makes figures and tables of the results in a folder; gives the files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """What is run, and what is made of it."""

    name: str
    points: Sequence[Mapping[str, object]]
    run: Callable[[Mapping[str, Any]], list[dict[str, object]]]
    columns: pa.Schema
    settings: Mapping[str, object]
    judge: Callable[[pa.Table], list[Claim]]
    draw: Draw


@dataclass(frozen=True, slots=True, kw_only=True)
class Reproduction:
    """What came out, and where it is kept."""

    claims: list[Claim]
    failures: tuple[SweepFailure, ...]
    points: int
    resumed: int
    rows: int
    seconds: float
    into: Path
    files: list[Path]

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain data."""
        return {
            "points": self.points,
            "resumed": self.resumed,
            "rows": self.rows,
            "seconds": round(self.seconds, 3),
            "into": str(self.into),
            "files": [str(path) for path in self.files],
            "failures": [str(failure) for failure in self.failures],
            "claims": claims_as_dicts(self.claims),
        }


def run_again(
    evaluation: Evaluation,
    into: Path,
    *,
    master: str | None = None,
    restart: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
) -> Reproduction:
    """Run every point, or go on where an earlier call stopped; then judge and draw.

    Where a point failed there are no claims: they would be of something else.
    """
    require_plotting()
    started = perf_counter()
    result = sweep(
        evaluation.points,
        evaluation.run,
        into=into,
        columns=evaluation.columns,
        name=evaluation.name,
        settings=evaluation.settings,
        master=master,
        restart=restart,
        on_progress=on_progress,
    )
    claims: list[Claim] = []
    files = [into / "results.parquet"]
    if not result.failures:
        claims = evaluation.judge(result.table)
        files += evaluation.draw(result.table, into)
        (into / "claims.json").write_text(
            json.dumps(claims_as_dicts(claims), indent=2, ensure_ascii=False), encoding="utf-8"
        )
        files.append(into / "claims.json")
    return Reproduction(
        claims=claims,
        failures=result.failures,
        points=result.points,
        resumed=result.resumed,
        rows=result.table.num_rows,
        seconds=perf_counter() - started,
        into=into,
        files=files,
    )
