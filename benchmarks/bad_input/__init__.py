"""Is bad input answered quickly and in little memory?

Every file under `tests/bad_inputs/`, and files that are too large or too hostile to be kept there,
each given to the real command line in a process of its own.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.bad_input.cases import Case, find_kept_cases, make_hostile_cases
from benchmarks.measure import ROOT, Run, run_command
from benchmarks.runner import REGISTER, Benchmark, Count, Result, Row, Settings, show_figure

KEPT = ROOT / "tests" / "bad_inputs"
SECONDS_TARGET, MEMORY_TARGET_BYTES = 1.0, 200e6
TIMEOUT_S = 10.0
QUICK_BUDGET_S = 12.0  # For each of the two groups.
SMOKE_FILES = 1  # Of each of the two groups.
NO_MESSAGE = "no message"
_NAMES_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """How the command line answered one bad input."""

    case: Case
    seconds: float
    cpu_s: float
    peak_bytes: int
    fault: str
    """What is wrong with the answer; empty where it is refused as it should be."""


def run(settings: Settings) -> Result:
    """Measure a good input for comparison, then all bad ones."""
    thalweg = _command_line()
    with tempfile.TemporaryDirectory(prefix="thalweg-bench-") as folder:
        turns = 1 if settings.smoke else 3
        rows = _measure_good_input(thalweg, Path(folder) / "good", turns)
        settings.tell("writing hostile files")
        groups = {
            "tests/bad_inputs": _in_any_order(find_kept_cases(KEPT)),
            "generated": _in_any_order(make_hostile_cases(Path(folder))),
        }
        if settings.smoke:
            groups = {group: cases[:SMOKE_FILES] for group, cases in groups.items()}
        hurried = settings.quick or settings.smoke
        details: list[dict[str, object]] = []
        notes = ["CPU time is without the waiting on a busy machine"]
        if not hurried:
            notes.append("an answer after one to three seconds is asked for twice more; median")
        for group, cases in groups.items():
            answers = []
            start = time.perf_counter()
            for case in cases:
                if settings.quick and time.perf_counter() - start > QUICK_BUDGET_S:
                    break
                settings.tell(case.name)
                answers.append(_ask(thalweg, case, tries=1 if hurried else 3))
            if len(answers) < len(cases):
                notes.append(f"quick: {len(cases) - len(answers)} files of {group} were left out")
            rows += _summarise(group, answers)
            details += [_detail(group, answer) for answer in answers]
    silent = sum(detail["fault"] == NO_MESSAGE for detail in details)
    counts = [Count(name="files refused without a message", expected=0, counted=silent)]
    return Result(rows=rows, notes=notes, details=details, counts=counts)


def _command_line() -> str:
    script = Path(sys.executable).with_name("thalweg")
    if not script.is_file():
        raise RuntimeError(f"the command `thalweg` is not installed beside {sys.executable}")
    return str(script)


def _measure_good_input(thalweg: str, folder: Path, turns: int) -> list[Row]:
    """What a start of the command line takes when there is nothing to complain about."""
    made = run_command([thalweg, "init", str(folder)])
    files = [str(folder / "app.yaml"), str(folder / "network.yaml")]
    runs = [run_command([thalweg, "validate", *files]) for _ in range(1 + turns)][1:]
    for one in (made, *runs):
        if one.exit_code != 0:
            raise RuntimeError(f"a good input is refused: {one.stderr.strip()[-500:]}")
    return [
        Row(
            measure="a good input, for comparison",
            value=median(r.seconds for r in runs),
            unit="s",
            note=f"CPU time {show_figure(median(r.cpu_s for r in runs), 's')}",
        ),
        Row(
            measure="a good input, peak memory",
            value=max(r.peak_bytes for r in runs),
            unit="B",
        ),
    ]


def _ask(thalweg: str, case: Case, tries: int) -> Answer:
    command = [thalweg, *case.arguments]
    runs = [run_command(command, timeout_s=TIMEOUT_S)]
    if SECONDS_TARGET < runs[0].seconds < 3 * SECONDS_TARGET:  # Slower than that is no chance.
        runs += [run_command(command, timeout_s=TIMEOUT_S) for _ in range(tries - 1)]
    faults = [fault for one in runs if (fault := find_fault(one))]
    return Answer(
        case=case,
        seconds=median(one.seconds for one in runs),
        cpu_s=median(one.cpu_s for one in runs),
        peak_bytes=max(one.peak_bytes for one in runs),
        fault=faults[0] if faults else "",
    )


def find_fault(answer: Run) -> str:
    """What is wrong with the way in which a bad input was answered; empty where nothing is."""
    if answer.timed_out:
        return f"no answer within {TIMEOUT_S:g} s"
    if answer.exit_code != 2:
        return f"exit code {answer.exit_code}, need 2"
    if "Traceback (most recent call last)" in answer.stdout + answer.stderr:
        return "a traceback"
    if not (answer.stdout + answer.stderr).strip():
        return NO_MESSAGE
    return ""


def _summarise(group: str, answers: Sequence[Answer]) -> list[Row]:
    count = Row(measure=f"{group}: files", value=len(answers), unit="files")
    if not answers:
        return [count]
    seconds = [answer.seconds for answer in answers]
    slowest = max(answers, key=lambda answer: answer.seconds)
    busiest = max(answers, key=lambda answer: answer.cpu_s)
    largest = max(answers, key=lambda answer: answer.peak_bytes)
    slow = [answer for answer in answers if answer.seconds > SECONDS_TARGET]
    large = [answer for answer in answers if answer.peak_bytes > MEMORY_TARGET_BYTES]
    wrong = [answer for answer in answers if answer.fault]
    return [
        count,
        Row(
            measure=f"{group}: slowest answer",
            value=slowest.seconds,
            unit="s",
            target=SECONDS_TARGET,
            note=slowest.case.name,
        ),
        Row(
            measure=f"{group}: 95th percentile of the answers",
            value=float(np.quantile(seconds, 0.95)),
            unit="s",
        ),
        Row(
            measure=f"{group}: most CPU time of an answer",
            value=busiest.cpu_s,
            unit="s",
            note=busiest.case.name,
        ),
        Row(
            measure=f"{group}: most memory",
            value=largest.peak_bytes,
            unit="B",
            target=MEMORY_TARGET_BYTES,
            note=largest.case.name,
        ),
        _count(f"{group}: answered too late", slow),
        _count(f"{group}: answered with too much memory", large),
        _count(f"{group}: not answered with exit code 2 and a message", wrong),
    ]


def _count(measure: str, answers: Sequence[Answer]) -> Row:
    names = [a.case.name + (f" ({a.fault})" if a.fault else "") for a in answers]
    more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    note = ", ".join(names[:_NAMES_SHOWN]) + more
    return Row(measure=measure, value=len(names), unit="files", target=0, note=note)


def _detail(group: str, answer: Answer) -> dict[str, object]:
    return {
        "group": group,
        "file": answer.case.name,
        "seconds": answer.seconds,
        "cpu_s": answer.cpu_s,
        "peak_bytes": answer.peak_bytes,
        "fault": answer.fault,
    }


def _in_any_order(cases: Iterable[Case]) -> list[Case]:
    """Shuffled, always the same way: a quick run that leaves some out still sees all sorts."""
    listed = list(cases)
    return [listed[k] for k in np.random.default_rng(0).permutation(len(listed)).tolist()]


def plot(result: Result, path: Path) -> None:
    """Draw time and memory of every answer, with the targets as lines."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.add_subplot(xlabel="seconds", ylabel="peak memory [MB]")
    axes.set_title("Answers to bad input")
    for group in dict.fromkeys(str(detail["group"]) for detail in result.details):
        ours = [detail for detail in result.details if detail["group"] == group]
        seconds = [float(str(detail["seconds"])) for detail in ours]
        megabytes = [float(str(detail["peak_bytes"])) / 1e6 for detail in ours]
        axes.plot(seconds, megabytes, "o", alpha=0.6, label=group)
    axes.axvline(SECONDS_TARGET, color="grey", linewidth=0.8)
    axes.axhline(MEMORY_TARGET_BYTES / 1e6, color="grey", linewidth=0.8, label="targets")
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=150)


REGISTER.add(
    Benchmark(
        name="bad_input",
        question="Is bad input answered quickly and in little memory?",
        run=run,
        plot=plot,
    )
)
