"""`thalweg verify` on runs with rows that were set aside: each letter once, and no other."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest

from spark.site_session import site_session
from spark.taxi_run import wait_for
from thalweg.cli.entry import run as run_command
from thalweg.errors import InvalidInput, ThalwegError
from thalweg.history import FAULTS
from thalweg.spark.deployment.folder import RunFolder
from thalweg.spark.deployment.manifest import RunManifest
from thalweg.spark.deployment.one_place import (
    Compared,
    _due_column,
    _judge_letters,
    await_last_row,
    verify,
)
from thalweg.spark.deployment.plan import fingerprint_graph
from thalweg.spark.deployment.publications import Letters, complete_ms
from thalweg.spark.log import Log
from thalweg.spark.log.writer import LogWriter
from thalweg.spark.pipeline import DEAD_LETTERS, load_pipeline
from thalweg.spark.pipeline.code import PipelineCode, code_of
from thalweg.spark.query.clock import END_OF_TIME_MS, SOURCE_CLOCK, clock_table
from thalweg.spark.query.queries import start_query
from thalweg.spark.query.set_aside import LETTER_SCHEMA
from thalweg.spark.query.spec import QuerySpec

pytest.importorskip("pyspark")
pytestmark = pytest.mark.jvm

READINGS = "spark.bad_row_pipelines:readings"
BRANCHES = "spark.bad_row_pipelines:branches"
SCHEMA = pa.schema([("n", pa.int64()), ("sensor", pa.int32()), ("text", pa.string())])
# Good ones, one that breaks a condition, and some that make operators fail.
TEXTS = ["1", "broken", "x2", "3", "13", "5", "13"]


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    # With the master that one place has: it is lent.
    with site_session(tmp_path_factory.mktemp("session"), master="local[2]") as session:
        yield session


def publish(folder: Path, stream: str, rows: Sequence[dict[str, Any]], batch: int = 0) -> None:
    table = pa.Table.from_pylist(list(rows), schema=SCHEMA)
    LogWriter(folder / "log", stream, "fog-1", 0, durable=False).publish(batch, table)


def readings(texts: Sequence[str]) -> list[dict[str, Any]]:
    sensors = [None if text == "broken" else 1 for text in texts]
    return [
        {"n": n, "sensor": sensor, "text": text}
        for n, (sensor, text) in enumerate(zip(sensors, texts, strict=True))
    ]


def make_folder(path: Path, reference: str, texts: Sequence[str]) -> Path:
    """The folder of a run of which all rows have come, and nothing was worked on."""
    publish(path, "sources/readings", readings(texts))
    clock = LogWriter(path / "log", SOURCE_CLOCK, "fog-1", 0, time="time", durable=False)
    clock.publish(0, clock_table(END_OF_TIME_MS))
    graph = fingerprint_graph(load_pipeline(reference))
    manifest = RunManifest(
        pipeline=reference,
        graph=graph,
        network="one",
        fogs=("fog-1",),
        cloud="cloud",
        code=code_of(load_pipeline(reference)),
    )
    RunFolder(path).write_manifest(manifest)
    return path


def work(session: Any, folder: Path, reference: str, cut: tuple[str, ...]) -> Path:
    """Work on all rows in a fog with this cut and in a cloud."""
    given: dict[str, Any] = {
        "epoch": 0,
        "pipeline": reference,
        "log": folder / "log",
        "trigger": "50 ms",
        "durable": False,
        "watched": False,
    }
    checkpoints = folder / "checkpoints"
    specs = [
        QuerySpec(site="fog-1", role="fog", cut=cut, checkpoint=checkpoints / "fog-1@0", **given),
        QuerySpec(
            site="cloud",
            role="cloud",
            sites=("fog-1",),
            checkpoint=checkpoints / "cloud@0",
            **given,
        ),
    ]
    queries = [start_query(session, spec) for spec in specs]

    def has_ended() -> bool:
        for query in queries:
            assert query.error is None or query.mend(), query.error
        return (complete_ms(Log(folder / "log")) or 0) >= END_OF_TIME_MS

    try:
        wait_for(has_ended)
    finally:
        for query in queries:
            query.stop()
    return folder


@pytest.fixture(scope="module")
def split(session: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose site has set one row aside, and whose cloud two others."""
    folder = make_folder(tmp_path_factory.mktemp("split") / "run", READINGS, TEXTS)
    return work(session, folder, READINGS, cut=("parse",))


def letters_of(folder: Path) -> list[dict[str, Any]]:
    log = Log(folder / "log")
    return [row for k in ("edges", "sinks") for row in log.read(f"{k}/{DEAD_LETTERS}").to_pylist()]


def faults_of(found: Compared, sink: str = DEAD_LETTERS) -> dict[str, int]:
    told = found.verdicts[sink].to_dict()
    return {f: n for f, n in told.items() if f not in ("expected", "found", "examples") and n}


def test_rows_that_were_set_aside_are_left_out_and_each_has_its_letter(
    split: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    places = [(letter["operator"], letter["input"]) for letter in letters_of(split)]
    assert sorted(places) == [
        ("parse", "readings"),
        ("parse", "readings"),
        ("weigh", "parse"),
        ("weigh", "parse"),
    ]
    found = verify(READINGS, split)
    assert found.same, found
    assert (found.born, found.rows, found.letters, found.ended) == (7, 3, 4, True)
    assert str(found).startswith("7 rows in, 3 rows out, 4 set aside: the same as in one place")
    assert run_command(["verify", READINGS, str(split), "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["sinks"][DEAD_LETTERS]["expected"] == 4
    digest = code_of(load_pipeline(READINGS)).digest
    assert told["code"]["rows"] == [{"digest": digest, "since_s": None}]
    assert (told["code"]["here"], told["code"]["same"]) == (digest, True)


def test_the_code_of_the_rows_is_said_before_they_are_compared_with_what_other_code_gives(
    split: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, here = Path(shutil.copytree(split, tmp_path / "run")), code_of(load_pipeline(READINGS))
    steps = {**here.steps, "parse": replace(here.steps["parse"], function="0" * 16)}
    code = PipelineCode(steps=steps, definitions=here.definitions)
    manifest = RunFolder(folder).read_manifest()
    RunFolder(folder).write_manifest(replace(manifest, code=code))
    assert run_command(["verify", READINGS, str(folder)]) == 0
    head, change, verdict, *_ = capsys.readouterr().out.splitlines()
    assert head.startswith(f"the rows were made with code {code.digest[:12]}; this is other code,")
    assert here.digest[:12] in head
    assert change == "operator parse: its function has changed"
    assert "3 rows out, 4 set aside: by OTHER code, the same as in one place" in verdict
    lose_letters(folder)
    assert run_command(["verify", READINGS, str(folder), "--format", "json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["code"]["same"], told["code"]["changes"]) == (False, [change])
    RunFolder(folder).write_manifest(replace(manifest, code=None))
    assert run_command(["verify", READINGS, str(folder)]) == 1
    head, verdict, *_ = capsys.readouterr().out.splitlines()
    assert head.startswith("the rows were made with code unknown; whether all are of the code here")
    assert "by code unknown for some rows, NOT as in one place" in verdict


def lose_letters(folder: Path) -> None:
    shutil.rmtree(folder / "log" / "sinks" / DEAD_LETTERS)


def write_letter(folder: Path, letter: dict[str, Any]) -> None:
    writer = LogWriter(folder / "log", f"sinks/{DEAD_LETTERS}", "cloud", 9, durable=False)
    writer.publish(0, pa.Table.from_pylist([letter]))


def double_letter(folder: Path) -> None:
    write_letter(folder, letters_of(folder)[-1])


def blame_a_good_row(folder: Path) -> None:
    row = '{"n":5,"sensor":1,"value":5}'
    letter = {"operator": "weigh", "input": "parse", "reason": "no", "row": row}
    write_letter(folder, letter)


def blame_nobody(folder: Path) -> None:
    letter = {"operator": "nobody", "input": "nothing", "reason": "no", "row": "{"}
    write_letter(folder, letter)


@pytest.mark.parametrize(
    ("spoil", "faults"),
    [
        (lose_letters, {"lost": 2}),
        (double_letter, {"duplicated": 1}),
        (blame_a_good_row, {"unknown": 1}),
        (blame_nobody, {"unknown": 1}),
    ],
)
def test_letters_that_are_lost_doubled_or_of_good_rows_are_told(
    split: Path, tmp_path: Path, spoil: Callable[[Path], None], faults: dict[str, int]
) -> None:
    folder = Path(shutil.copytree(split, tmp_path / "run"))
    spoil(folder)
    found = verify(READINGS, folder)
    assert faults_of(found) == faults
    assert faults_of(found, "list") == {}
    assert not found.same


def test_a_good_row_that_was_set_aside_is_lost(split: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(split, tmp_path / "run"))
    blame_a_good_row(folder)
    kept = Log(folder / "log").read("sinks/list").to_pylist()
    shutil.rmtree(folder / "log" / "sinks" / "list")
    rows = pa.Table.from_pylist([row for row in kept if row["n"] != 5])
    LogWriter(folder / "log", "sinks/list", "cloud", 9, durable=False).publish(0, rows)
    found = verify(READINGS, folder)
    assert (faults_of(found), faults_of(found, "list")) == ({"unknown": 1}, {"lost": 1})


@pytest.mark.parametrize("cut", [(), ("double", "invert")], ids=["in the cloud", "at the site"])
def test_a_row_is_left_out_where_it_was_set_aside_and_counts_elsewhere(
    session: Any, tmp_path: Path, cut: tuple[str, ...]
) -> None:
    """In the cloud only the branch that fails goes without it; a site leaves it out of both."""
    folder = make_folder(tmp_path / "run", BRANCHES, ["4", "0", "2"])
    work(session, folder, BRANCHES, cut)
    assert [letter["operator"] for letter in letters_of(folder)] == ["invert"]
    assert Log(folder / "log").read("sinks/doubles").num_rows == (2 if cut else 3)
    found = verify(BRANCHES, folder)
    assert found.same, found
    assert (found.rows, found.letters) == (4 if cut else 5, 1)


def test_what_is_no_fault_of_a_row_is_told_with_what_to_do(
    session: Any, split: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path(shutil.copytree(split, tmp_path / "run"))
    publish(folder, "sources/readings", readings(["404"]), batch=1)
    with pytest.raises(ThalwegError, match=r"FileNotFoundError.*Hint: "):
        verify(READINGS, folder)
    assert run_command(["verify", READINGS, str(folder)]) == 2
    assert "error: the pipeline cannot work on these rows" in capsys.readouterr().err


def test_results_of_other_code_are_refused_with_their_columns(
    session: Any, split: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(split, tmp_path / "run"))
    shutil.rmtree(folder / "log" / "sinks" / "list")
    rows = pa.table({"n": [1], "mass": [2]})
    LogWriter(folder / "log", "sinks/list", "cloud", 9, durable=False).publish(0, rows)
    with pytest.raises(InvalidInput, match=r'sinks\.list: got "mass, n", need columns.*n, weight'):
        verify(READINGS, folder)


def test_a_run_of_which_nothing_has_come_is_told_with_what_to_do(
    split: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(split, tmp_path / "run"))
    shutil.rmtree(folder / "log" / "sources" / "readings")
    with pytest.raises(ThalwegError, match=r"no row of readings has come.*`thalweg status .*/run`"):
        verify(READINGS, folder)
    with pytest.raises(InvalidInput, match=f"Hint: `thalweg verify {READINGS} .*/run`"):
        verify("taxi-fares", folder)


# Without Spark


def test_of_a_live_run_letters_may_be_still_to_come_but_none_comes_twice() -> None:
    rows = pa.table({name: ["a", "b"] for name in LETTER_SCHEMA.names}, schema=LETTER_SCHEMA)
    none, first = rows.slice(0, 0), rows.slice(0, 1)
    for ended, faults in ((True, {"lost": 1, "duplicated": 1}), (False, {"duplicated": 1})):
        came = Letters(of_sites=first, of_cloud=pa.concat_tables([none, first]))
        verdict = _judge_letters(rows, came, ended=ended)
        assert {f: getattr(verdict, f) for f in FAULTS if getattr(verdict, f)} == faults
        assert set(verdict.examples) == set(faults)


def test_a_column_says_when_rows_happened_if_it_has_a_time_in_every_row() -> None:
    pipeline, at = load_pipeline("spark.site_pipelines:rides"), pa.timestamp("us", "UTC")
    whole, some = (pa.table({"at": pa.array(times, at)}) for times in ([1, 2], [1, None]))
    assert _due_column(pipeline, "list", [whole, pa.table({}), whole]) == "at"
    for other in (some, pa.table({"at": ["noon"]}), pa.table({"n": [1]})):
        assert _due_column(pipeline, "list", [whole, other]) is None
        assert _due_column(pipeline, "list", [other, whole]) is None


def test_who_waits_for_the_last_row_in_vain_is_told_what_to_do(tmp_path: Path) -> None:
    spec = SimpleNamespace(log=tmp_path / "log", folder=tmp_path)
    run = SimpleNamespace(prepared=SimpleNamespace(spec=spec), is_active=False, exception=None)
    with pytest.raises(ThalwegError, match=rf"before its last row.*`thalweg doctor {tmp_path}`"):
        await_last_row(cast("Any", run))
    run.is_active = True
    with pytest.raises(ThalwegError, match=rf"after 0 s.*`thalweg status {tmp_path}`"):
        await_last_row(cast("Any", run), patience_s=0.0)
