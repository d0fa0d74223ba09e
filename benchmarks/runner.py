"""What a benchmark is, which ones there are, and where their answers go."""

from __future__ import annotations

import json
import pkgutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.machine import describe_machine, find_commit, find_versions
from thalweg.errors import nearest
from thalweg.units import DURATION, SIZE, show_quantity

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "results" / "benchmarks"
SMOKE_NOTE = (
    "smoke: shows that every part runs and counts right; the figures answer nothing, do not quote "
    "them"
)

Choice = TypeVar("Choice")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One measured figure; with a target it also says whether it was met.

    A target is the most that is good enough, or the least where `at_least` is true. `at` tells
    the point of a sweep that the figure belongs to.

    >>> Row(measure="import", value=0.2, unit="s", target=0.35).met
    True
    """

    measure: str
    value: float | int | str | None
    unit: str = ""
    target: float | None = None
    at_least: bool = False
    at: Mapping[str, object] = field(default_factory=dict)
    note: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the target was met; None without a target. No figure meets no target."""
        if self.target is None:
            return None
        if not isinstance(self.value, (int, float)):
            return False
        return self.value >= self.target if self.at_least else self.value <= self.target

    def to_dict(self) -> dict[str, object]:
        """The row as it is saved."""
        bound = None if self.target is None else "at least" if self.at_least else "at most"
        return {
            "measure": self.measure,
            "value": self.value,
            "unit": self.unit,
            "target": self.target,
            "bound": bound,
            "met": self.met,
            "at": dict(self.at),
            "note": self.note,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """A number that has to come out exactly, or every figure beside it is worthless.

    >>> Count(name="rides counted", expected=9_000, counted=0).holds
    False
    """

    name: str
    expected: int
    counted: int

    @property
    def holds(self) -> bool:
        """Whether as many were counted as expected."""
        return self.counted == self.expected

    def to_dict(self) -> dict[str, object]:
        """The count as it is saved."""
        return {"name": self.name, "expected": self.expected, "counted": self.counted}


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The findings of a benchmark: rows, the counts that vouch for them, notes and details.

    Details are saved with the rest, but are too many for a table.
    """

    rows: Sequence[Row]
    notes: Sequence[str] = ()
    details: Sequence[Mapping[str, object]] = ()
    counts: Sequence[Count] = ()

    def sweep(self, measure: str, by: str) -> tuple[list[float], list[float]]:
        """One measure over the points of its sweep, for drawing; empty where it was not taken."""
        rows = [row for row in self.rows if row.measure == measure and by in row.at]
        return [float(str(row.at[by])) for row in rows], [float(str(row.value)) for row in rows]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The form in which a benchmark runs, and where the measured data sets are.

    `quick` measures less; `smoke` measures nothing that counts, and only runs every part once.
    """

    quick: bool
    data: Path
    smoke: bool = False

    def __post_init__(self) -> None:
        if self.quick and self.smoke:
            raise ValueError("a benchmark is quick or a smoke run, not both")

    def pick(self, *, full: Choice, quick: Choice, smoke: Choice) -> Choice:
        """The value for this form of the benchmark.

        >>> Settings(quick=False, smoke=True, data=Path()).pick(full=500, quick=60, smoke=2)
        2
        """
        return smoke if self.smoke else quick if self.quick else full

    def tell(self, text: str) -> None:
        """Show a person who waits what is being measured; never on standard output."""
        if sys.stderr.isatty():
            print(f"  … {text}", file=sys.stderr)


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """A question and how it is answered; `plot` draws a result into a file."""

    name: str
    question: str
    run: Callable[[Settings], Result]
    plot: Callable[[Result, Path], None] | None = None


class WrongCount(Exception):
    """A count of a benchmark does not hold; the message has all that do not."""


class UnknownBenchmark(Exception):
    """There is no benchmark of that name; the message names the nearest one."""


class Register:
    """Benchmarks by name."""

    def __init__(self) -> None:
        self._known: dict[str, Benchmark] = {}

    @property
    def names(self) -> list[str]:
        """All names, in alphabetical order."""
        return sorted(self._known)

    def add(self, benchmark: Benchmark) -> Benchmark:
        """Make a benchmark known; a name can be used once."""
        if benchmark.name in self._known:
            raise ValueError(f"two benchmarks are named {benchmark.name!r}")
        self._known[benchmark.name] = benchmark
        return benchmark

    def find(self, name: str) -> Benchmark:
        """The benchmark of that name."""
        if name not in self._known:
            hint = nearest(name, self.names)
            raise UnknownBenchmark(
                f'no benchmark is named "{name}"' + (f"; {hint}" if hint else "")
            )
        return self._known[name]


REGISTER = Register()


def find_benchmarks() -> Register:
    """Every benchmark in this folder: each file adds its own to the register when imported."""
    for module in pkgutil.iter_modules([str(Path(__file__).parent)]):
        if not module.name.startswith("_"):
            import_module(f"benchmarks.{module.name}")
    return REGISTER


def run_benchmark(
    benchmark: Benchmark, settings: Settings, *, command: str
) -> tuple[Result, dict[str, Any]]:
    """The answer, and the document that is saved: with machine, versions, commit and command.

    Raises:
        WrongCount: where a count does not hold; then there is no answer.
    """
    machine = describe_machine()
    began = datetime.now(UTC)
    start = time.perf_counter()
    result = benchmark.run(settings)
    _require_counts(benchmark.name, result.counts)
    rows = [row.to_dict() for row in result.rows]
    notes = list(result.notes)
    if settings.smoke:
        # Whether a target is met cannot be said of so little.
        rows = [row | {"met": None} for row in rows]
        notes.insert(0, SMOKE_NOTE)
    document = {
        "benchmark": benchmark.name,
        "question": benchmark.question,
        "quick": settings.quick,
        "smoke": settings.smoke,
        "command": command,
        "date": began.isoformat(timespec="seconds"),
        "commit": find_commit(ROOT),
        "machine": machine,
        "versions": find_versions(),
        "seconds": round(time.perf_counter() - start, 3),
        "notes": notes,
        "rows": rows,
        "counts": [count.to_dict() for count in result.counts],
        "details": [dict(detail) for detail in result.details],
    }
    return result, document


def _require_counts(name: str, counts: Sequence[Count]) -> None:
    wrong = [each for each in counts if not each.holds]
    if wrong:
        told = "; ".join(f"{c.name}: counted {c.counted:,}, need {c.expected:,}" for c in wrong)
        raise WrongCount(f"{name} gives no answer: {told}")


def save_document(document: Mapping[str, Any], folder: Path) -> Path:
    """Write the document to `folder/NAME.json`, whole or not at all.

    That of a smoke run goes to `folder/smoke`: it must not replace an answer.
    """
    folder = folder / "smoke" if document.get("smoke") else folder
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{document['benchmark']}.json"
    unfinished = path.with_suffix(".json.part")
    unfinished.write_text(to_json(document), encoding="utf-8")
    return unfinished.replace(path)


def to_json(document: Mapping[str, Any]) -> str:
    """The document as standard JSON; a figure that is not finite is an error, not a NaN."""
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def to_table(document: Mapping[str, Any]) -> str:
    """The document for people: the question, a row for each figure, and the notes."""
    heading = ("measure", "value", "target", "met", "")
    lines = [heading, *(_cells(row) for row in document["rows"])]
    widths = [max(len(line[column]) for line in lines) for column in range(len(heading))]
    rule = tuple("─" * width for width in widths)
    text = [f"{document['benchmark']}: {document['question']}", ""]
    text += [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in (heading, rule, *lines[1:])
    ]
    machine = document["machine"]
    text += ["", *(f"- {note}" for note in document["notes"])]
    text.append(
        f"- {machine['cpu']}, {machine['cores']} cores, "
        f"{show_quantity(machine['memory_bytes'], SIZE)}; measured in {document['seconds']:.1f} s"
        + (" (quick)" if document["quick"] else " (smoke)" if document.get("smoke") else "")
    )
    return "\n".join(text) + "\n"


def _cells(row: Mapping[str, Any]) -> tuple[str, str, str, str, str]:
    target = ""
    if row["target"] is not None:
        sign = "≥" if row["bound"] == "at least" else "≤"
        target = f"{sign} {show_figure(row['target'], row['unit'])}"
    met = {True: "yes", False: "NO", None: ""}[row["met"]]
    point = ", ".join(f"{name} {_plain(value)}" for name, value in row["at"].items())
    aside = "; ".join(part for part in (point, row["note"]) if part)
    return row["measure"], show_figure(row["value"], row["unit"]), target, met, aside


def show_figure(value: float | int | str | None, unit: str) -> str:
    """A figure with its unit, rounded for people.

    >>> show_figure(0.00123, "s"), show_figure(250500, "nodes"), show_figure(7.36, "%")
    ('1.23 ms', '250,500 nodes', '7.36 %')
    """
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    if unit in ("s", "B"):
        return show_quantity(value, DURATION if unit == "s" else SIZE)
    return f"{_plain(value)} {unit}".rstrip()


def _plain(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return str(value)
