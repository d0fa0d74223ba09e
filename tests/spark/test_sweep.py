from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import thalweg
from spark import sweep_functions as functions
from spark.connect_server import connect_server
from spark.sweep_and_hang import POINTS as HANGING_POINTS
from spark.sweep_and_hang import QUICK_START
from spark.sweep_functions import COLUMNS, measure
from thalweg.errors import InvalidInput, MissingExtra
from thalweg.spark.session import SparkUnavailable, open_session
from thalweg.spark.sweep import IN_PROCESS, sweep
from thalweg.spark.sweep.crew import SparkCrew, WorkerMismatch
from thalweg.spark.sweep.points import point_key

pytestmark = pytest.mark.jvm

SPARK = "local[2]"
POINTS = [{"seed": seed, "load": seed / 8} for seed in range(30)]


@pytest.fixture(scope="module")
def spark() -> Iterator[str]:
    """One session for all tests here: a sweep with its master uses it."""
    pytest.importorskip("pyspark")
    with open_session(SPARK, config=QUICK_START):
        yield SPARK


@pytest.fixture(params=[IN_PROCESS, SPARK])
def master(request: pytest.FixtureRequest) -> str:
    return IN_PROCESS if request.param == IN_PROCESS else request.getfixturevalue("spark")


def plain_loop(points: list[dict[str, Any]], run: Any = measure, **constants: Any) -> pa.Table:
    """The oracle: what a sweep is, without anything that makes it fast or safe."""
    parameters = pa.Table.from_pylist(points).schema
    rows = [{**point, **row} for point in points for row in run({**constants, **point})]
    return pa.Table.from_pylist(rows, schema=pa.schema([*parameters, *COLUMNS]))


def runs_of(folder: Path) -> Counter[int]:
    """How often each point ran, by what `touch` left behind."""
    return Counter(int(file.name.split("-")[0]) for file in folder.glob("*-*"))


# Results


@pytest.mark.parametrize("points_per_task", [None, 1, 7, 1000])
def test_a_sweep_gives_what_a_plain_loop_gives(
    master: str, points_per_task: int | None, tmp_path: Path
) -> None:
    result = sweep(
        POINTS,
        measure,
        into=tmp_path,
        columns=COLUMNS,
        master=master,
        points_per_task=points_per_task,
    )
    assert result.table.equals(plain_loop(POINTS))
    assert (result.failures, result.points, result.resumed) == ((), len(POINTS), 0)
    assert pq.read_table(tmp_path / "results.parquet").equals(result.table)


def test_tables_in_and_tables_out_are_the_same_as_lists(master: str, tmp_path: Path) -> None:
    result = sweep(
        pa.Table.from_pylist(POINTS),
        functions.measure_as_table,
        into=tmp_path,
        columns=COLUMNS,
        master=master,
    )
    assert result.table.equals(plain_loop(POINTS))


def test_numpy_values_and_lists_arrive_as_plain_python(tmp_path: Path) -> None:
    points = [{"seed": np.int64(3), "load": np.float32(0.5), "tail": (1, 2)}]
    result = sweep(points, measure, into=tmp_path, columns=COLUMNS, master=IN_PROCESS)
    plain = [{"seed": 3, "load": 0.5, "tail": [1, 2]}]
    assert result.table.equals(plain_loop(plain))


@pytest.mark.parametrize("points", [[], pa.table({"seed": pa.array([], pa.int64())})])
def test_no_points_give_an_empty_table_and_start_no_spark(points: Any, tmp_path: Path) -> None:
    # A master that nobody answers: it must not be asked.
    result = sweep(points, measure, into=tmp_path, columns=COLUMNS, master="sc://127.0.0.1:1")
    parameters = points.schema if isinstance(points, pa.Table) else []
    assert result.table.equals(pa.schema([*parameters, *COLUMNS]).empty_table())


@settings(max_examples=25)
@given(data=st.data())
def test_a_sweep_stopped_anywhere_and_resumed_gives_what_a_plain_loop_gives(
    data: st.DataObject,
) -> None:
    loads = st.floats(-1e6, 1e6)
    point = st.fixed_dictionaries({"seed": st.integers(0, 40), "load": loads})
    points = data.draw(st.lists(point, unique_by=point_key, min_size=1, max_size=12))
    with tempfile.TemporaryDirectory() as folder:

        def stop(done: int, total: int) -> None:
            if done and data.draw(st.booleans()):
                raise KeyboardInterrupt

        for _ in range(3):
            size = data.draw(st.integers(1, 4))
            asked = data.draw(st.permutations(points))
            arguments = {"columns": COLUMNS, "master": IN_PROCESS, "points_per_task": size}
            try:
                sweep(asked, measure, into=folder, on_progress=stop, **arguments)
            except KeyboardInterrupt:
                continue
        result = sweep(points, measure, into=folder, **arguments)
    assert result.table.equals(plain_loop(points))


def test_settings_reach_every_point_and_are_no_columns(master: str, tmp_path: Path) -> None:
    seeds = [{"seed": seed} for seed in range(6)]
    result = sweep(
        seeds, measure, into=tmp_path, columns=COLUMNS, settings={"load": 0.25}, master=master
    )
    assert result.table.equals(plain_loop(seeds, load=0.25))


# Resuming


def test_finished_points_do_not_run_again(master: str, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    runs.mkdir()
    told = list[tuple[int, int]]()
    arguments = {
        "into": tmp_path / "sweep",
        "columns": COLUMNS,
        "master": master,
        "settings": {"folder": str(runs)},
        "on_progress": lambda done, total: told.append((done, total)),
    }
    first = sweep(POINTS[:12], functions.touch, **arguments)
    assert told[0] == (0, 12)
    assert told[-1] == (12, 12)
    assert told == sorted(told)
    again = sweep(POINTS[:12], functions.touch, **arguments)
    assert again.table.equals(first.table)
    assert again.resumed == 12
    told.clear()
    # More points, in another order, and one that is not asked for any more.
    more = sweep(POINTS[:0:-1], functions.touch, **arguments)
    assert told[0] == (11, 29)
    assert told[-1] == (29, 29)
    assert runs_of(runs) == Counter(range(30))
    assert more.table.equals(plain_loop(POINTS[:0:-1]))


def test_restart_runs_everything_again_and_leaves_other_files_alone(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    runs.mkdir()
    into = tmp_path / "sweep"
    arguments = {"into": into, "columns": COLUMNS, "master": IN_PROCESS}
    sweep(POINTS[:5], functions.touch, settings={"folder": str(runs)}, **arguments)
    (into / "notes.txt").write_text("mine")
    sweep(POINTS[:3], functions.touch, settings={"folder": str(runs)}, restart=True, **arguments)
    assert runs_of(runs) == Counter([0, 1, 2, 0, 1, 2, 3, 4])
    assert (into / "notes.txt").read_text() == "mine"
    assert json.loads((into / "manifest.json").read_text())["points"] == 3


def test_a_killed_driver_leaves_what_is_finished_and_another_goes_on(
    spark: str, tmp_path: Path
) -> None:
    runs = tmp_path / "runs"
    runs.mkdir()
    program = Path(__file__).with_name("sweep_and_hang.py")
    environment = os.environ | {"PYTHONPATH": str(program.parents[1])}
    driver = subprocess.Popen(
        [sys.executable, program, tmp_path], env=environment, stdout=subprocess.PIPE, text=True
    )
    with driver:
        assert driver.stdout
        java = psutil.Process(int(driver.stdout.readline()))
        assert driver.stdout.readline() == "hanging\n"
        driver.send_signal(signal.SIGKILL)
    assert driver.returncode == -signal.SIGKILL
    java.wait(timeout=60)

    part = tmp_path / "part"
    assert sum(pq.read_table(file).num_rows for file in part.glob("part-*.parquet"))
    (part / ".draft-part-0.parquet").write_bytes(b"half a pa")
    before = runs_of(runs)
    result = sweep(
        HANGING_POINTS,
        functions.touch,
        into=part,
        columns=COLUMNS,
        settings={"folder": str(runs)},
        master=spark,
    )
    assert 6 <= result.resumed < len(HANGING_POINTS)
    # Only points that were under way when the driver was killed can have run twice.
    twice = sum(count > 1 for count in runs_of(runs).values())
    assert twice == len(before) - result.resumed
    assert result.table.equals(plain_loop(HANGING_POINTS))
    assert not list(part.glob(".draft-*"))
    # One worker, two workers, killed or not: the same bytes.
    whole = (tmp_path / "whole" / "results.parquet").read_bytes()
    assert (part / "results.parquet").read_bytes() == whole


def test_an_error_in_the_driver_stops_what_is_running(spark: str, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    runs.mkdir()

    def stop(done: int, total: int) -> None:
        # Two waves of four are done, the third has started.
        if done == 8:
            while not (runs / "start-9").exists():
                time.sleep(0.05)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep(
            POINTS[1:14],
            functions.touch_before_and_after,
            into=tmp_path / "sweep",
            columns=COLUMNS,
            settings={"folder": str(runs)},
            master=spark,
            points_per_task=1,
            on_progress=stop,
        )
    assert {file.name for file in runs.glob("end-*")} == {f"end-{seed}" for seed in range(1, 9)}


# Failures


def test_a_failing_point_is_reported_and_tried_again(master: str, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    runs.mkdir()
    into = tmp_path / "sweep"
    arguments = {
        "into": into,
        "columns": COLUMNS,
        "master": master,
        "settings": {"folder": str(runs)},
    }
    first = sweep(POINTS[:8], functions.fail_until_repaired, **arguments)
    (failure,) = first.failures
    assert failure.point == {"seed": 3, "load": 0.375}
    assert str(failure) == "seed=3, load=0.375: RuntimeError: no way through at load 0.375"
    assert "in fail_until_repaired" in failure.traceback
    assert "run_points" not in failure.traceback
    assert json.loads((into / "failures.json").read_text())[0]["point"] == failure.point
    assert first.table.equals(plain_loop([point for point in POINTS[:8] if point["seed"] != 3]))
    (runs / "repaired").touch()
    second = sweep(POINTS[:8], functions.fail_until_repaired, **arguments)
    assert (second.failures, second.resumed) == ((), 7)
    assert second.table.equals(plain_loop(POINTS[:8]))
    assert runs_of(runs) == Counter([0, 1, 2, 3, 3, 4, 5, 6, 7])
    assert json.loads((into / "failures.json").read_text()) == []


def test_a_point_that_ends_its_worker_is_found_and_reported(spark: str, tmp_path: Path) -> None:
    points = POINTS[4:8]
    result = sweep(points, functions.end_worker, into=tmp_path, columns=COLUMNS, master=spark)
    (failure,) = result.failures
    assert failure.point == POINTS[5]
    assert failure.error == "WorkerLost"
    assert failure.message.startswith("Python worker exited unexpectedly")
    assert result.table.equals(plain_loop([point for point in points if point["seed"] != 5]))


def test_what_a_function_may_not_return_is_a_failure_that_says_so(tmp_path: Path) -> None:
    told = {
        "nothing": "TypeError: returned NoneType, need a list of mappings or a pyarrow table",
        "number": "TypeError: returned int, need a list of mappings or a pyarrow table",
        "mapping": "TypeError: returned dict, need a list of mappings or a pyarrow table",
        "list of numbers": "TypeError: returned a row that is int, need a mapping",
        "missing": "ValueError: returned rows without label; need the columns step, value, label",
        "unknown": "ValueError: returned rows with colour; need the columns step, value, label",
        "type": "Arrow",
        "null": "ValueError: returned nothing for label, which must not be null",
        "table": "ValueError: returned rows without value, label; "
        "need the columns step, value, label",
    }
    columns = pa.schema([*list(COLUMNS)[:2], pa.field("label", pa.string(), nullable=False)])
    points = [{"kind": [kind]} for kind in told]
    result = sweep(points, functions.spoil, into=tmp_path, columns=columns, master=IN_PROCESS)
    assert [failure.point for failure in result.failures] == points
    for failure in result.failures:
        kind = failure.point["kind"][0]  # type: ignore[index]
        assert f"{failure.error}: {failure.message}".startswith(told[kind])
    assert result.table.num_rows == 0
    assert not list(tmp_path.glob("part-*"))


def test_a_point_that_wants_to_exit_fails_alone(tmp_path: Path) -> None:
    result = sweep(
        POINTS[:2], functions.exit_process, into=tmp_path, columns=COLUMNS, master=IN_PROCESS
    )
    assert [failure.error for failure in result.failures] == ["SystemExit", "SystemExit"]


# Refusals


def refused(*arguments: Any, **named: Any) -> dict[str, str]:
    with pytest.raises(InvalidInput) as caught:
        sweep(*arguments, **named)
    return {defect.path: str(defect) for defect in caught.value.defects}


def test_all_defects_of_a_call_are_told_at_once(tmp_path: Path) -> None:
    columns = pa.schema([("seed", pa.int64()), ("gap", pa.float64())])
    defects = refused(
        [{"seed": 1}, {"seed": 2}, {"seed": 1.0}],
        lambda point: [],
        into="",
        columns=columns,
        name="",
        settings={"when": date(2026, 1, 1), "seed": 3},
        master="cluster-7",
        config={"spark.cores.max": 4},
        points_per_task=0,
        on_progress="loudly",
    )
    assert sorted(defects) == [
        "columns",
        "config",
        "into",
        "master",
        "name",
        "on_progress",
        "points[2]",
        "points_per_task",
        "run",
        "settings",
        "settings.when",
    ]
    assert "points[0] is the same" in defects["points[2]"]
    assert "leave them out" in defects["columns"]


@pytest.mark.parametrize(
    ("points", "path"),
    [
        (7, "points"),
        ("seeds", "points"),
        ({"seed": 1}, "points"),
        ([{"seed": 1}, 5], "points[1]"),
        ([{}], "points[0]"),
        ([{1: 2}], "points[0]"),
        ([{"seed": 1}, {"speed": 1}], "points[1]"),
        ([{"seed": 1}, {"seed": "one"}], "points.seed"),
        ([{"seed": 2**80}], "points.seed"),
        ([{"seed": object()}], "points.seed"),
        ([{"seed": {"a": 1}}], "points[0].seed"),
        ([{"seed": [[1]]}], "points[0].seed"),
        ([{"seed": date(2026, 1, 1)}], "points[0].seed"),
        (pa.table([[1], [2]], names=["seed", "seed"]), "points"),
        (pa.table({"day": [date(2026, 1, 1)]}), "points[0].day"),
    ],
)
def test_points_that_are_none_are_refused(points: Any, path: str, tmp_path: Path) -> None:
    assert list(refused(points, measure, into=tmp_path, columns=COLUMNS)) == [path]


@pytest.mark.parametrize(
    "columns",
    [None, {"step": "int64"}, pa.schema([]), pa.schema([("a", pa.int64()), ("a", pa.int64())])],
)
def test_columns_that_are_none_are_refused(columns: Any, tmp_path: Path) -> None:
    assert list(refused(POINTS, measure, into=tmp_path, columns=columns)) == ["columns"]


def test_another_sweep_is_refused_and_told_what_differs(tmp_path: Path) -> None:
    arguments = {"into": tmp_path, "master": IN_PROCESS}
    sweep(POINTS, measure, columns=COLUMNS, **arguments)
    manifest = (tmp_path / "manifest.json").read_bytes()
    other = pa.schema([*COLUMNS, ("more", pa.int64())])
    points = [{**point, "size": 1} for point in POINTS]
    defects = refused(
        points, functions.measure_as_table, columns=other, settings={"a": math.inf}, **arguments
    )
    assert sorted(defects) == ["columns", "name", "parameters", "run", "settings"]
    assert '"spark.sweep_functions.measure", as in' in defects["run"]
    assert all("restart=True" in text for text in defects.values())
    assert (tmp_path / "manifest.json").read_bytes() == manifest


def test_another_version_of_thalweg_does_not_add_to_a_sweep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = {"into": tmp_path, "columns": COLUMNS, "master": IN_PROCESS}
    sweep(POINTS[:2], measure, **arguments)
    monkeypatch.setattr(thalweg, "__version__", "99.0")
    assert list(refused(POINTS[:2], measure, **arguments)) == ["thalweg"]


def test_folders_that_hold_something_else_are_refused(tmp_path: Path) -> None:
    arguments = {"columns": COLUMNS, "master": IN_PROCESS}
    (tmp_path / "file").touch()
    assert list(refused(POINTS, measure, into=tmp_path / "file", **arguments)) == ["into"]

    broken = tmp_path / "broken"
    sweep(POINTS, measure, into=broken, **arguments)
    part, *others = sorted(broken.glob("part-*"))
    content = part.read_bytes()
    part.write_bytes(content[:-20])
    others[0].write_bytes((broken / "results.parquet").read_bytes())
    assert list(refused(POINTS, measure, into=broken, **arguments)) == [str(part), str(others[0])]
    (broken / "manifest.json").write_text("[]")
    manifest = str(broken / "manifest.json")
    assert list(refused(POINTS, measure, into=broken, **arguments)) == [manifest]
    (broken / "manifest.json").unlink()
    assert list(refused(POINTS, measure, into=broken, **arguments)) == ["into"]


def test_two_sweeps_at_once_in_one_folder_are_refused(tmp_path: Path) -> None:
    arguments = {"into": tmp_path, "columns": COLUMNS, "master": IN_PROCESS}
    refusals = list[dict[str, str]]()

    def sweep_too(done: int, total: int) -> None:
        refusals.append(refused(POINTS, measure, **arguments))

    sweep(POINTS, measure, on_progress=sweep_too, **arguments)
    assert refusals
    assert {path for refusal in refusals for path in refusal} == {"into"}


# Keys


VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3), st.just(2.0**60)
)
PARAMETERS = st.dictionaries(st.text(max_size=2), VALUES | st.lists(VALUES, max_size=3), max_size=3)


def slow_form(value: Any) -> Any:
    """The oracle: what makes two parameters the same, by Python's own comparison."""
    if isinstance(value, list):
        return ("list", *map(slow_form, value))
    if isinstance(value, float) and math.isnan(value):
        return "not a number"
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return ("number" if number else type(value).__name__, value)


@given(PARAMETERS, PARAMETERS)
def test_points_have_one_key_if_and_only_if_they_are_the_same(a: Any, b: Any) -> None:
    same = {k: slow_form(v) for k, v in a.items()} == {k: slow_form(v) for k, v in b.items()}
    assert (point_key(a) == point_key(b)) == same
    assert point_key(dict(reversed(a.items()))) == point_key(a)


def test_equal_numbers_are_one_point_and_everything_else_differs() -> None:
    assert point_key({"x": 2**60}) == point_key({"x": 2.0**60}) != point_key({"x": 2**60 + 1})
    different = [0, False, "0", None, "", [], [0], ["0"], "null", math.nan, math.inf, 0.1, "a:b"]
    assert len({point_key({"x": value}) for value in different}) == len(different)
    assert point_key({"a": 'b"', "c": 1}) != point_key({"a": 'b"\n"c":1'})


# Spark


def test_importing_the_module_does_not_load_pyspark() -> None:
    program = "import sys, thalweg.spark.sweep.runner; print('pyspark' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (run.stdout, run.stderr) == ("False\n", "")


def test_without_pyspark_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    arguments = {"into": tmp_path, "columns": COLUMNS}
    with pytest.raises(MissingExtra, match=r"thalweg\[spark\]"):
        sweep(POINTS, measure, **arguments)
    # The refusal leaves nothing behind that would keep the next call from running.
    result = sweep(POINTS, measure, master=IN_PROCESS, **arguments)
    assert result.table.equals(plain_loop(POINTS))


def test_workers_have_one_thread_each(spark: str, tmp_path: Path) -> None:
    columns = pa.schema({"threads": pa.string(), "process": pa.int64()})
    result = sweep(
        POINTS[:4], functions.show_environment, into=tmp_path, columns=columns, master=spark
    )
    assert set(result.table.column("threads").to_pylist()) == {"1"}
    assert os.getpid() not in result.table.column("process").to_pylist()


def test_workers_that_lack_the_function_are_told_before_anything_runs(
    spark: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "only_on_the_driver"
    (tmp_path / f"{name}.py").write_text("def measure(point):\n    return []\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    module = __import__(name)
    try:
        with pytest.raises(WorkerMismatch, match=f"No module named '{name}'"):
            sweep(POINTS, module.measure, into=tmp_path / "a", columns=COLUMNS, master=spark)
        monkeypatch.setattr(thalweg, "__version__", "99.0")
        with pytest.raises(WorkerMismatch, match=r"a worker has thalweg 0\.2\.0, this is 99\.0"):
            sweep(POINTS, measure, into=tmp_path / "b", columns=COLUMNS, master=spark)
    finally:
        del sys.modules[name]


def test_spark_that_ends_during_a_sweep_ends_it_and_keeps_what_is_finished(
    spark: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_job, waves = SparkCrew._run_job, list[Any]()

    def lose(crew: SparkCrew, wave: Any) -> Any:
        waves.append(wave)
        if len(waves) > 2:
            monkeypatch.setattr(type(crew._session), "range", None)
        return run_job(crew, wave)

    arguments = {"into": tmp_path, "columns": COLUMNS, "master": spark, "points_per_task": 1}
    with monkeypatch.context() as patch:
        patch.setattr(SparkCrew, "_run_job", lose)
        with pytest.raises(SparkUnavailable, match="start the sweep again"):
            sweep(POINTS, measure, **arguments)
    monkeypatch.undo()
    result = sweep(POINTS, measure, **arguments)
    assert result.resumed > 0
    assert result.table.equals(plain_loop(POINTS))


def test_a_connect_server_that_does_not_answer_is_named(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    with pytest.raises(SparkUnavailable, match=r"sc://127\.0\.0\.1:1\b"):
        sweep(POINTS, measure, into=tmp_path, columns=COLUMNS, master="sc://127.0.0.1:1")


@pytest.mark.slow
def test_a_sweep_through_spark_connect_is_a_sweep_like_any_other(tmp_path: Path) -> None:
    with connect_server(tmp_path / "server.log") as address:
        arguments = {"columns": COLUMNS, "master": address}
        result = sweep(POINTS, measure, into=tmp_path / "a", **arguments)
        assert result.table.equals(plain_loop(POINTS))
        points = POINTS[4:8]
        result = sweep(points, functions.end_worker, into=tmp_path / "b", **arguments)
        (failure,) = result.failures
        assert (failure.point, failure.error) == (POINTS[5], "WorkerLost")
        rest = [point for point in points if point["seed"] != 5]
        assert result.table.equals(plain_loop(rest))
