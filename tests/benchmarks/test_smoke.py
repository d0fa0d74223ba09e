"""Every benchmark in its smoke form: it runs, counts right, and has the figures it promises."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.__main__ import main
from benchmarks.runner import ROOT, SMOKE_NOTE, find_benchmarks

JVM = {"spark_state": False, "spark_runtime": True}
"""Benchmarks that start a JVM; whether their smoke form is too long for `make test`."""
OWN_PROCESS = {*JVM, "page"}
"""JVMs and browsers of a benchmark must not meet those of other tests in the same process."""
FIELDS = {
    *("benchmark", "question", "quick", "smoke", "command", "date", "seconds"),
    *("commit", "machine", "versions", "rows", "counts", "notes", "details"),
}
ROW_FIELDS = {"measure", "value", "unit", "target", "bound", "met", "at", "note"}
DOCUMENTED = {
    "adaptation": (
        "steps that began with a violation",
        "violations avoided against reactive",
        "operators started and stopped",
        "MAPE, half an hour ahead",
    ),
    "bad_input": (
        "tests/bad_inputs: slowest answer",
        "tests/bad_inputs: most memory",
        "tests/bad_inputs: not answered with exit code 2 and a message",
        "generated: slowest answer",
        "generated: most memory",
        "generated: not answered with exit code 2 and a message",
    ),
    "coordinates": (
        "Vivaldi: median relative error",
        "Vivaldi: 90th percentile of the relative error",
        "Vivaldi, polished: median relative error",
        "Vivaldi, polished, by dimensions: median relative error",
    ),
    "first_minutes": (
        "first plan",
        "a plan, CPU",
        "a plan against the imports",
        "a plan on many nodes, CPU",
        "a plan on many nodes, memory",
        "study, fresh installation",
    ),
    "foundation": (
        "import thalweg",
        "import numpy, beside it",
        "import thalweg, without byte code",
        "heavy packages that import thalweg loads",
        "network generated",
        "network held",
        "network held, traced",
        "network held, resident",
        "network loaded from Parquet",
        "aggregate latency of a deployment",
        "the same by walking every path",
    ),
    "measured_figures": (
        "intervals until right, median",
        "cases right within 3 intervals",
        "changes, mean",
    ),
    "migration_scale": (
        "a plan, whole job",
        "a plan, all pairs of brokers",
        "growth with the brokers",
        "growth with the steps",
        "an approach decides for the city",
        "its hosts executed, event by event",
        "positions whose leaf is found",
        "sequences tried",
        "largest difference in cost",
    ),
    "page": (
        "all assets, gzip",
        "first paint",
        "operators on their sites",
        "large network drawn",
        "longest time without an answer",
        "updates of 10 moving points",
    ),
    "placement_quality": ("mean gap", "95th percentile of the gap", "proven by exact"),
    "placement_scale": (
        "resolution time",
        "candidates",
        "growth with the nodes",
        "memory of network and index per node",
        "plain algorithm",
    ),
    "scheduling_optimum": (
        "combinations of cuts tried",
        "tsoo-optimal equals the best combination",
        "mean gap to the best",
        "solvable but not solved",
    ),
    "scheduling_scale": (
        "a decision, plan included",
        "a decision, the search alone",
        "growth with the fogs",
        "largest proven gap",
    ),
    "simulator_speed": (
        "event-hops per second on one core",
        "hops/s against SimPy",
        "share of the time",
        "most memory of a long run",
        "time of a large application",
    ),
    "simulator_theory": (
        "M/M/1 at 0.3: waiting time [s] of queue",
        "M/D/1 at 0.6: waiting time [s] of queue",
        "D/M/1 at 0.9: waiting time [s] of queue",
        "figures that are within the 95 % confidence interval",
    ),
    "spark_runtime": (
        "throughput against one place, the cuts of atsoo-both-ways",
        "throughput against one place, all in the cloud",
        "throughput of one place against plain Spark",
        "monitoring, CPU seconds more",
        "monitoring, throughput less",
        "pause at a cut move beyond one micro-batch, longest",
        "step of a move: prepare the next epoch, while the old one runs",
        "step of a move: drain the old epoch",
        "step of a move: hand over open windows",
        "uplink, measured against planned",
        "move of state: pause beyond one micro-batch, longest",
    ),
    "spark_state": (
        "pause beyond one micro-batch, longest",
        "pause beyond one micro-batch",
        "between two outputs while the target prepares, longest",
        "whole move",
    ),
}
"""The measures that `docs/reference/benchmarks.md` promises."""
MAY_LACK = {
    # Where no output falls into the time of a move, there is no longest gap.
    ("spark_state", "between two outputs while the target prepares, longest"),
    # The plan has no rows on a link that nothing crosses.
    ("spark_runtime", "uplink, measured against planned"),
}
"""Figures that so small a run need not have."""


def every_benchmark() -> Iterator[Any]:
    for name in find_benchmarks().names:
        marks = [pytest.mark.jvm] if name in JVM else []
        yield pytest.param(name, marks=[*marks, pytest.mark.slow] if JVM.get(name) else marks)


@pytest.mark.parametrize("name", list(every_benchmark()))
def test_a_benchmark_runs_in_its_smoke_form(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delenv("THALWEG_DATA", raising=False)
    if name in JVM:
        pytest.importorskip("pyspark")
    arguments = [name, "--smoke", "--format", "json"]
    if name in OWN_PROCESS:
        command = [sys.executable, "-m", "benchmarks", *arguments]
        ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        exit_code, out, err = ended.returncode, ended.stdout, ended.stderr
    else:
        exit_code = main(arguments, results=tmp_path)
        out, err = capsys.readouterr()
    assert exit_code == 0, err
    document = json.loads(out, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    check_form(document)
    if lacking := [note for note in document["notes"] if "no browser" in note]:
        pytest.skip(lacking[0])
    check_figures(document)


def check_form(document: dict[str, Any]) -> None:
    """All fields are there, the figures are marked, and every count holds."""
    assert set(document) == FIELDS
    assert document["smoke"] is True
    assert document["notes"][0] == SMOKE_NOTE
    for row in document["rows"]:
        assert set(row) == ROW_FIELDS
        assert row["met"] is None, "so little is no answer to whether a target is met"
    for count in document["counts"]:
        assert count["counted"] == count["expected"], count["name"]


def check_figures(document: dict[str, Any]) -> None:
    """Every measure that the documentation names is there, and has a figure."""
    name = document["benchmark"]
    found: dict[str, list[object]] = {}
    for row in document["rows"]:
        found.setdefault(row["measure"], []).append(row["value"])
    assert set(DOCUMENTED[name]) <= set(found)
    for measure, values in found.items():
        missing = sum(value is None for value in values)
        assert not missing or (name, measure) in MAY_LACK, f"{measure}: no figure"


def test_every_benchmark_is_documented() -> None:
    names = set(find_benchmarks().names)
    assert set(DOCUMENTED) == names, "say in DOCUMENTED which measures a benchmark promises"
    page = (ROOT / "docs" / "reference" / "benchmarks.md").read_text(encoding="utf-8")
    headings = {line.split("`")[1] for line in page.splitlines() if line.startswith("### `")}
    assert headings == names
