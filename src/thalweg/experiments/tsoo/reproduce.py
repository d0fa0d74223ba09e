"""The whole evaluation: sweep, figures and claims, kept in one folder."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from thalweg.experiments.claims import Claim, claims_as_dicts
from thalweg.experiments.tsoo.claims import compare_with_paper
from thalweg.experiments.tsoo.figures import draw_figures, require_drawing
from thalweg.experiments.tsoo.results import Results
from thalweg.experiments.tsoo.run import COLUMNS, list_points, run_point
from thalweg.experiments.tsoo.setting import REPETITIONS
from thalweg.spark.sweep import SweepFailure, sweep

SEEDS, QUICK_SEEDS, QUICK_REPETITIONS = 20, 2, 2


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


def reproduce(
    into: Path,
    *,
    master: str | None = None,
    quick: bool = False,
    seeds: int | None = None,
    restart: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
) -> Reproduction:
    """Run both experiments for all seeds, or go on where an earlier call stopped.

    `quick` takes fewer seeds and repetitions: enough to see that everything works.
    """
    require_drawing()
    started = perf_counter()
    result = sweep(
        list_points(seeds or (QUICK_SEEDS if quick else SEEDS)),
        run_point,
        into=into,
        columns=COLUMNS,
        name="tsoo",
        settings={"repetitions": QUICK_REPETITIONS if quick else REPETITIONS},
        master=master,
        restart=restart,
        on_progress=on_progress,
    )
    claims: list[Claim] = []
    files = [into / "results.parquet"]
    if not result.failures:
        results = Results.of(result.table)
        claims = compare_with_paper(results)
        files += draw_figures(results, into)
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
