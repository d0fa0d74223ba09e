"""How benchmarks are found, run, shown and saved; what they measure is no matter for a test."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.machine import describe_machine, find_commit, find_cpu_model, find_versions
from benchmarks.runner import (
    ROOT,
    SMOKE_NOTE,
    Benchmark,
    Count,
    Register,
    Result,
    Row,
    Settings,
    UnknownBenchmark,
    find_benchmarks,
    to_table,
)

ROWS = (
    Row(measure="walk", value=0.25, unit="s", target=1.0, at={"nodes": 2000}, note="once"),
    Row(measure="hold", value=300, unit="B", target=100),
)


def fake(
    name: str = "fake",
    *,
    run: Callable[[Settings], Result] | None = None,
    plot: Callable[[Result, Path], None] | None = None,
) -> Register:
    register = Register()
    answer = run or (lambda settings: Result(rows=ROWS, notes=["a note"], details=[{"k": 1}]))
    register.add(Benchmark(name=name, question="Is it fake?", run=answer, plot=plot))
    return register


@pytest.fixture(autouse=True)
def no_data_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("THALWEG_DATA", raising=False)


@pytest.mark.parametrize(
    ("value", "target", "at_least", "met"),
    [
        (1.0, 1.0, False, True),
        (1.01, 1.0, False, False),
        (1.0, 1.0, True, True),
        (0.99, 1.0, True, False),
        (None, 1.0, False, False),
        (math.nan, 1.0, False, False),
        (5.0, None, False, None),
    ],
)
def test_a_target_is_met_up_to_and_including_it(
    value: float | None, target: float | None, at_least: bool, met: bool | None
) -> None:
    assert Row(measure="m", value=value, target=target, at_least=at_least).met is met


def test_a_sweep_gives_the_points_of_one_measure_only() -> None:
    rows = [
        Row(measure="a", value=1.5, at={"n": 10}),
        Row(measure="b", value=7.0, at={"n": 10}),
        Row(measure="a", value=2.5, at={"n": 20}),
        Row(measure="a", value=9.0),
    ]
    assert Result(rows=rows).sweep("a", by="n") == ([10.0, 20.0], [1.5, 2.5])
    assert Result(rows=rows).sweep("c", by="n") == ([], [])


def test_every_question_of_the_folder_is_registered() -> None:
    assert {"bad_input", "coordinates", "foundation"} <= set(find_benchmarks().names)


def test_two_benchmarks_cannot_share_a_name() -> None:
    register = fake("twin")
    with pytest.raises(ValueError, match="twin"):
        register.add(Benchmark(name="twin", question="?", run=lambda settings: Result(rows=[])))


def test_an_unknown_name_gets_the_nearest_known_one() -> None:
    with pytest.raises(UnknownBenchmark, match='"foundatoin"; did you mean "foundation"'):
        fake("foundation").find("foundatoin")


def test_list_prints_one_name_per_line(capsys: pytest.CaptureFixture[str]) -> None:
    register = fake("second")
    register.add(Benchmark(name="first", question="?", run=lambda settings: Result(rows=[])))
    assert main(["--list"], register=register) == 0
    assert capsys.readouterr().out == "first\nsecond\n"


def test_the_command_lists_names_and_refuses_unknown_ones() -> None:
    command = [sys.executable, "-m", "benchmarks"]
    listed = subprocess.run([*command, "--list"], cwd=ROOT, capture_output=True, text=True)
    assert listed.returncode == 0, listed.stderr
    assert listed.stdout.splitlines() == find_benchmarks().names
    refused = subprocess.run([*command, "foundatoin"], cwd=ROOT, capture_output=True, text=True)
    assert refused.returncode == 2
    assert refused.stdout == ""
    assert 'did you mean "foundation"?' in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.parametrize("arguments", [[], ["fake", "--format", "xml"], ["fake", "--quik-ly"]])
def test_a_wrong_call_ends_with_2(arguments: list[str], tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments, register=fake(), results=tmp_path)
    assert ended.value.code == 2
    assert list(tmp_path.iterdir()) == []


def test_the_answer_is_printed_as_json_and_saved_with_all_that_it_depends_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "results" / "benchmarks"
    arguments = ["fake", "--quick", "--format", "json"]
    assert main(arguments, register=fake(), results=results) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads((results / "fake.json").read_text(encoding="utf-8"))
    assert [path.name for path in results.iterdir()] == ["fake.json"]
    assert printed["benchmark"] == "fake"
    assert printed["question"] == "Is it fake?"
    assert printed["quick"] is True
    assert printed["command"] == "python -m benchmarks fake --quick --format json"
    assert {"date", "commit", "machine", "versions", "seconds"} <= set(printed)
    assert printed["notes"] == ["a note"]
    assert printed["details"] == [{"k": 1}]
    assert printed["rows"] == [
        {
            "measure": "walk",
            "value": 0.25,
            "unit": "s",
            "target": 1.0,
            "bound": "at most",
            "met": True,
            "at": {"nodes": 2000},
            "note": "once",
        },
        {
            "measure": "hold",
            "value": 300,
            "unit": "B",
            "target": 100,
            "bound": "at most",
            "met": False,
            "at": {},
            "note": "",
        },
    ]


def test_the_table_shows_figures_targets_and_what_was_missed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fake"], register=fake(), results=tmp_path) == 0, "a missed target is no error"
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "fake: Is it fake?"
    walk = next(line for line in lines if line.startswith("walk"))
    hold = next(line for line in lines if line.startswith("hold"))
    assert walk.split("  ")[0] == "walk"
    assert "250 ms" in walk
    assert "≤ 1 s" in walk
    assert "yes" in walk
    assert "nodes 2,000; once" in walk
    assert "≤ 100 B" in hold
    assert "NO" in hold
    assert "- a note" in lines


def test_a_table_can_be_made_from_a_saved_answer(tmp_path: Path) -> None:
    main(["fake"], register=fake(), results=tmp_path)
    assert "≤ 100 B" in to_table(json.loads((tmp_path / "fake.json").read_text(encoding="utf-8")))


def test_a_benchmark_that_fails_leaves_the_last_answer_alone(tmp_path: Path) -> None:
    def fail(settings: Settings) -> Result:
        raise RuntimeError("the loaded network differs")

    (tmp_path / "fake.json").write_text("the last answer")
    with pytest.raises(RuntimeError, match="differs"):
        main(["fake"], register=fake(run=fail), results=tmp_path)
    assert (tmp_path / "fake.json").read_text() == "the last answer"


COUNTS = (Count(name="rides", expected=9, counted=9), Count(name="rows", expected=5, counted=5))


def test_a_smoke_run_says_what_it_is_and_leaves_the_last_answer_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "fake.json").write_text("the last answer")
    assert main(["fake", "--smoke", "--format", "json"], register=fake(), results=tmp_path) == 0
    printed = json.loads(capsys.readouterr().out)
    assert (tmp_path / "fake.json").read_text() == "the last answer"
    assert json.loads((tmp_path / "smoke" / "fake.json").read_text()) == printed
    assert (printed["smoke"], printed["quick"]) == (True, False)
    assert printed["notes"] == [SMOKE_NOTE, "a note"]
    assert [row["met"] for row in printed["rows"]] == [None, None]
    assert "NO" not in to_table(printed)
    assert "(smoke)" in to_table(printed)


def test_a_run_is_quick_or_smoke_or_neither(tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["fake", "--quick", "--smoke"], register=fake(), results=tmp_path)
    assert ended.value.code == 2
    with pytest.raises(ValueError, match="not both"):
        Settings(quick=True, smoke=True, data=tmp_path)
    forms = [(False, False), (True, False), (False, True)]
    settings = [Settings(quick=quick, smoke=smoke, data=tmp_path) for quick, smoke in forms]
    assert [one.pick(full=3, quick=2, smoke=1) for one in settings] == [3, 2, 1]


def test_counts_that_hold_are_saved(tmp_path: Path) -> None:
    register = fake(run=lambda settings: Result(rows=ROWS, counts=COUNTS))
    assert main(["fake"], register=register, results=tmp_path) == 0
    assert json.loads((tmp_path / "fake.json").read_text())["counts"] == [
        {"name": "rides", "expected": 9, "counted": 9},
        {"name": "rows", "expected": 5, "counted": 5},
    ]


def test_there_is_no_answer_where_a_count_does_not_hold(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lost = Count(name="rides counted", expected=9_000, counted=0)
    register = fake(run=lambda settings: Result(rows=ROWS, counts=[*COUNTS, lost]))
    assert main(["fake"], register=register, results=tmp_path) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err == "benchmarks: fake gives no answer: rides counted: counted 0, need 9,000\n"
    assert list(tmp_path.iterdir()) == []


def test_a_figure_that_is_no_number_is_not_saved(tmp_path: Path) -> None:
    rows = [Row(measure="m", value=math.nan, unit="s")]
    register = fake(run=lambda settings: Result(rows=rows))
    with pytest.raises(ValueError, match="JSON"):
        main(["fake"], register=register, results=tmp_path)
    assert not (tmp_path / "fake.json").exists()


def test_plot_draws_beside_the_saved_answer(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    drawn: list[tuple[int, Path]] = []
    register = fake(plot=lambda result, path: drawn.append((len(result.rows), path)))
    assert main(["fake"], register=register, results=tmp_path) == 0
    assert drawn == []
    assert main(["fake", "--plot"], register=register, results=tmp_path) == 0
    assert drawn == [(2, tmp_path / "fake.png")]


def test_plot_without_matplotlib_is_refused_before_anything_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("benchmarks.__main__.find_spec", lambda name: None)
    register = fake(plot=lambda result, path: None)
    assert main(["fake", "--plot"], register=register, results=tmp_path) == 2
    assert "thalweg[plot]" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_settings_reach_the_benchmark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Settings] = []

    def look(settings: Settings) -> Result:
        seen.append(settings)
        return Result(rows=[])

    register = fake(run=look)
    by_option, by_variable = tmp_path / "option", tmp_path / "variable"
    by_option.mkdir()
    by_variable.mkdir()
    main(["fake"], register=register, results=tmp_path)
    monkeypatch.setenv("THALWEG_DATA", str(by_variable))
    main(["fake", "--quick"], register=register, results=tmp_path)
    main(["fake", "--data", str(by_option)], register=register, results=tmp_path)
    assert [one.data for one in seen] == [ROOT.parent / "shared" / "data", by_variable, by_option]
    assert [one.quick for one in seen] == [False, True, False]


def test_a_data_folder_that_is_not_there_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = str(tmp_path / "gone")
    assert main(["fake", "--data", gone], register=fake(), results=tmp_path) == 2
    assert "no such folder" in capsys.readouterr().err


def test_the_machine_is_described() -> None:
    machine = describe_machine()
    assert {"cpu", "cores", "memory_bytes", "os", "architecture"} <= set(machine)
    assert isinstance(machine["cores"], int)
    assert machine["cores"] >= 1
    assert machine["cpu"]
    json.dumps(machine, allow_nan=False)


def test_the_cpu_is_named_as_the_kernel_names_it(tmp_path: Path) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("processor\t: 0\nmodel name\t: Fast CPU @ 9 GHz\nmodel name\t: other\n")
    assert find_cpu_model(cpuinfo) == "Fast CPU @ 9 GHz"
    assert find_cpu_model(tmp_path / "gone")


def test_versions_name_python_and_say_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.machine._PACKAGES", ("numpy", "no-such-package"))
    versions = find_versions()
    assert versions["python"] == ".".join(str(part) for part in sys.version_info[:3])
    assert versions["numpy"]
    assert versions["no-such-package"] is None


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_the_commit_says_whether_files_differ_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Inside a hook these name the repository that is being committed to.
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    assert find_commit(tmp_path) is None, "a folder outside git has no commit"
    git = ["git", "-C", str(tmp_path), "-c", "user.name=t", "-c", "user.email=t@example.org"]
    subprocess.run([*git, "init", "--quiet"], check=True)
    (tmp_path / "file").write_text("one")
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "--quiet", "--message", "one"], check=True)
    commit = find_commit(tmp_path)
    assert commit is not None
    assert len(commit) == 40
    (tmp_path / "file").write_text("two")
    assert find_commit(tmp_path) == f"{commit}+changes"
