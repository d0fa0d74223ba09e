"""A workload that was replayed with a strategy: `thalweg schedule --output`, step by step."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from thalweg.errors import Defect, InvalidInput
from thalweg.model import Application, Network, Problem, Workload
from thalweg.spark.deployment.plan import find_sites, placement_of
from thalweg.web.picture import GAUGES, Picture, plain_number
from thalweg.web.stored_table import Sort, open_stored, read_stored
from thalweg.web.subject import Plain
from thalweg.web.subjects.planned import PlannedSubject, Present

_COLUMNS: dict[str, Sort] = {
    "time_s": "moment",
    "adapted": "truth",
    "reason": "text",
    "cuts": "cuts",
    "started": "figure",
    "stopped": "figure",
    **dict.fromkeys(GAUGES, "number"),
}
_MOST_STEPS = 2_000


class ScheduleSubject(PlannedSubject):
    """Steps over time; with the workload also what is on every link at each of them."""

    kind = "schedule"
    now_is = "what runs at the end"
    views = ("map", "charts", "what-if", "compare")

    def __init__(
        self,
        application: Application,
        network: Network,
        steps: pa.Table,
        workload: Workload | None = None,
    ) -> None:
        self._application, self._network, self._workload = application, network, workload
        # Of very many, evenly over time, with the first and the last.
        step = -(-steps.num_rows // _MOST_STEPS)
        kept = sorted({*range(0, steps.num_rows, step), steps.num_rows - 1})
        self._left_out = len(kept) < steps.num_rows and (
            f"{len(kept):,} of {steps.num_rows:,} steps are shown."
        )
        self._steps: list[Plain] = [
            {**row, "number": number}
            for number, row in zip(kept, steps.take(kept).to_pylist(), strict=True)
        ]
        told = steps.schema.metadata or {}
        self._strategy = told.get(b"strategy", b"atsoo-both-ways").decode(errors="replace")
        self._plain = Problem(application=application, network=network)
        self._sites = find_sites(self._plain)
        self._drawn: dict[tuple[str, float], Picture] = {}
        super().__init__(f"{application.name} on {network.name} over time, by {self._strategy}")

    def present(self) -> Present:
        """What runs at the end."""
        return self._present(self._steps[-1])

    def scene(self) -> Plain:
        """What stands still."""
        told = super().scene()
        notes = [told["left_out"], self._left_out]
        return {**told, "left_out": " ".join(note for note in notes if note)}

    def find_placed(self, placement: str) -> Present | None:
        """What ran from a step on."""
        found = (step for step in self._changes if _identity(step) == placement)
        return next((self._present(step) for step in found), None)

    def _present(self, step: Plain) -> Present:
        problem = self._plain
        if self._workload is not None:
            rates = self._workload.rates_at(step["time_s"])
            problem = Problem(application=self._application, network=self._network, rates=rates)
        cuts = {site: tuple(cut) for site, cut in step["cuts"]}
        placement = placement_of(cuts, problem, self._sites)
        return Present(
            problem=problem, placement=placement, strategy=self._strategy, text=step["reason"]
        )

    @cached_property
    def _changes(self) -> list[Plain]:
        """The first step, and every one at which something else began to run."""
        found: list[Plain] = []
        for step in self._steps:
            if not found or dict(step["cuts"]) != dict(found[-1]["cuts"]):
                found.append(step)
        return found

    def history(self) -> Plain:
        """A frame for each step."""
        placements: dict[str, Plain] = {}
        frames, marks = [], []
        before: Picture | None = None
        changes = {_identity(step): step for step in self._changes}
        current = ""
        for step in self._steps:
            picture = self._draw(step)
            if _identity(step) in changes:
                current = _identity(step)
                placements[current] = picture.describe(
                    current,
                    at_s=step["time_s"],
                    strategy=self._strategy,
                    text=step["reason"],
                    before=before,
                )
                marks.append(_mark(step, "adapt" if before else "first", current))
                before = picture
            elif step["adapted"]:
                marks.append(_mark(step, "change", None))
            gauges: dict[str, Any] = {
                **picture.gauges(),
                **{name: plain_number(step[name]) for name in GAUGES},
            }
            frame = {**picture.frame(step["time_s"], current), "gauges": gauges}
            frames.append(frame)
        return {"frames": frames, "placements": placements, "marks": marks}

    def _draw(self, step: Plain) -> Picture:
        key = (repr(sorted(step["cuts"])), step["time_s"] if self._workload is not None else 0.0)
        if key not in self._drawn:
            self._drawn[key] = self.picture(self._present(step))
        return self._drawn[key]


def read_steps(file: Path) -> pa.Table | None:
    """The steps in a file; None where it is a table of another kind.

    Raises:
        InvalidInput: where it is no table, or has no steps.
    """
    try:
        # Whoever names a file on the command line may name a link.
        folder = file.resolve().parent
        with open_stored(folder, file) as opened:
            names = set(opened.schema_arrow.names)
    except (OSError, ValueError, pa.ArrowException) as error:
        reason = str(error).partition("\n")[0][:200]
        defect = Defect(file=str(file), path="", value=reason, rule="a Parquet table")
        raise InvalidInput([defect]) from None
    if not names >= set(_COLUMNS):
        return None
    rule = "a table as `thalweg schedule --output` writes it"
    table = read_stored(folder, file, _COLUMNS, rule)
    if not table.num_rows:
        rule = "at least one step"
        raise InvalidInput([Defect(file=str(file), path="", value="no rows", rule=rule)])
    return table


def _identity(step: Plain) -> str:
    return f"t{step['number']}"


def _mark(step: Plain, kind: str, placement: str | None) -> Plain:
    word = {"first": "first plan", "adapt": "adapted", "change": "looked for better"}[kind]
    return {
        "at_s": step["time_s"],
        "kind": kind,
        "title": f"{word}: {step['reason']}",
        "text": f"{step['started']} operators started, {step['stopped']} stopped",
        "placement": placement,
    }
