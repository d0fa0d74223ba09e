from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from spark.site_session import MANY_PLANS
from thalweg.errors import InvalidInput
from thalweg.model import Limits, Pin, TimeWindow
from thalweg.scheduling.cuts import list_cuts
from thalweg.spark.pipeline import DEAD_LETTERS, Pipeline, load_pipeline
from thalweg.spark.pipeline.mergeable import count, max_of, mean_of, min_of, sum_of
from thalweg.spark.session import SparkUnavailable
from thalweg.testing import OperatorError, check_operator

pytest.importorskip("pyspark")
from pyspark.sql import functions as sql

pytestmark = pytest.mark.jvm

SCHEMA = "ride long, zone int, time timestamp, fare double"
START = datetime(2024, 1, 1, tzinfo=UTC)
WINDOW = TimeWindow("60 s", "30 s")


@pytest.fixture(scope="module")
def session(shared_session: Callable[..., Any]) -> Any:
    return shared_session(MANY_PLANS)


def rides(count: int = 60) -> pa.Table:
    """Rides of seven zones in five minutes, with fares that floating point cannot add exactly."""
    return pa.table(
        {
            "ride": pa.array(range(count), pa.int64()),
            "zone": pa.array([n * n % 7 for n in range(count)], pa.int32()),
            "time": pa.array(
                [START + timedelta(seconds=5 * n) for n in range(count)], pa.timestamp("us", "UTC")
            ),
            "fare": pa.array([0.1 * (n % 11) - 0.1 for n in range(count)], pa.float64()),
        }
    )


def new_pipeline() -> tuple[Pipeline, Any]:
    pipeline = Pipeline("taxi")
    source = pipeline.source(
        "rides", schema=SCHEMA, key="zone", determines_key="ride", time="time", delay="10 s"
    )
    return pipeline, source


def keep(frame: Any) -> Any:
    return frame


def listed(frame: Any) -> list[str]:
    return sorted(map(str, frame.collect()))


def told(error: pytest.ExceptionInfo[InvalidInput]) -> str:
    return str(error.value)


# Definition


def test_an_operator_is_named_after_its_function_and_is_still_one() -> None:
    pipeline, source = new_pipeline()

    @pipeline.operator(source, kind="row-wise", selectivity=0.5)
    def far_rides(rides: Any) -> Any:
        return [rides]

    assert far_rides.name == "far-rides"
    assert far_rides("x") == ["x"]
    assert pipeline.function_of("far-rides")("x") == ["x"]
    assert pipeline.inputs_of("far-rides") == ("rides",)
    pipeline.sink("board", far_rides)
    assert pipeline.application.operator("far-rides").selectivity == 0.5


def test_the_application_has_the_graph_the_figures_and_what_may_run_at_the_sites() -> None:
    pipeline = Pipeline("taxi", limits=Limits(response_time_s=2.0))
    source = pipeline.source("rides", schema=SCHEMA, key="zone", rate=70.0, event_size=40.0)
    clean = pipeline.operator(source, kind="row-wise", name="clean", cpu_per_event=9.0)(keep)
    zones = pipeline.operator(
        clean, kind="partitioned", name="zones", by=["zone", "ride"], window=WINDOW
    )(keep)
    whole = pipeline.operator(
        clean,
        kind="mergeable",
        name="whole",
        merge=keep,
        selectivity=0.1,
        merge_figures={"selectivity": 0.2},
    )(keep)
    every = pipeline.operator(zones, whole, kind="global", name="every")(lambda a, b: a)
    last = pipeline.operator(every, kind="row-wise", name="last")(keep)
    pipeline.sink("board", last)
    app = pipeline.application
    assert app.limits == Limits(response_time_s=2.0)
    assert app.operator("rides").pin == Pin(tier="fog")
    assert app.operator("board").pin == Pin(tier="cloud")
    assert (app.operator("rides").rate, app.operator("rides").event_size) == (70.0, 40.0)
    assert app.operator("clean").cpu_per_event == 9.0
    assert app.operator("zones").window == WINDOW
    assert app.operator("whole-partial").selectivity == 0.1
    assert app.operator("whole").selectivity == 0.2
    # What comes after a global operator has all rows, so it stays where they are.
    assert [o.name for o in app.operators if o.replicable] == ["clean", "zones", "whole-partial"]
    assert [(s.source, s.target) for s in app.streams] == [
        ("rides", "clean"),
        ("clean", "zones"),
        ("clean", "whole-partial"),
        ("whole-partial", "whole"),
        ("zones", "every"),
        ("whole", "every"),
        ("every", "last"),
        ("last", "board"),
    ]
    assert len(list_cuts(app)) == 5
    assert pipeline.crossing_edges({"clean", "whole-partial"}) == (
        ("clean", "zones"),
        ("whole-partial", "whole"),
    )
    assert pipeline.crossing_edges(()) == (("rides", "clean"),)


def test_a_wrong_source_is_told_all_that_is_wrong() -> None:
    pipeline, _ = new_pipeline()
    with pytest.raises(InvalidInput) as error:
        pipeline.source(
            "rides",
            schema=SCHEMA,
            key="zonne",
            time="when",
            delay="10",
            rate=-1.0,
            determines_key="trip",
        )
    text = told(error)
    for part in (
        "a name of its own",
        'rides.key: got "zonne"',
        'did you mean "zone"?',
        'rides.time: got "when"',
        "rides.delay",
        "rides.rate: got -1.0",
        'rides.determines_key: got "trip"',
    ):
        assert part in text
    with pytest.raises(InvalidInput, match="columns as in SQL"):
        pipeline.source("other", schema="", key="zone")


def test_a_wrong_operator_is_told_all_that_is_wrong() -> None:
    pipeline, source = new_pipeline()
    pipeline.sink("board", source)
    define = pipeline.operator(
        "ridez",
        "board",
        kind="rowwise",
        name="dead letters",
        must="",
        selectivty=0.5,
        cpu_per_event=-1.0,
    )
    with pytest.raises(InvalidInput) as error:
        define(lambda one: one)
    text = told(error)
    for part in (
        'inputs: got "ridez"',
        'did you mean "rides"?',
        "nothing flows out of a sink",
        'kind: got "rowwise"',
        'did you mean "row-wise"?',
        'take out " "',
        "a function of 2 DataFrames",
        "a condition in SQL",
        "an operator with one input",
        'did you mean "selectivity"?',
        "cpu_per_event: got -1.0",
    ):
        assert part in text


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"kind": "partitioned"}, "x.by: got nothing, need at least one column"),
        ({"kind": "partitioned", "by": "fare"}, 'a partition that holds the key "zone" of rides'),
        ({"kind": "row-wise", "by": "zone"}, "no columns here"),
        ({"kind": "row-wise", "window": WINDOW}, "no window here"),
        ({"kind": "mergeable"}, "x.merge: got nothing"),
        ({"kind": "global", "merge": keep}, "no function here"),
        ({"kind": "global", "name": DEAD_LETTERS}, "need another name"),
        ({"kind": "global", "replicable": True}, "a field of an operator"),
        ({"kind": "mergeable", "merge": keep, "merge_figures": {"state": -1.0}}, "state: got -1.0"),
    ],
)
def test_what_a_kind_needs_and_cannot_have_is_told(options: dict[str, Any], rule: str) -> None:
    pipeline, source = new_pipeline()
    with pytest.raises(InvalidInput) as error:
        pipeline.operator(source, **{"name": "x", **options})(keep)
    assert rule in told(error)
    assert [step.name for step in pipeline.steps] == ["rides"]


def test_a_partition_may_be_finer_than_the_key() -> None:
    pipeline, source = new_pipeline()
    for name, by in (("a", "zone"), ("b", ("fare", "zone")), ("c", "ride")):
        assert pipeline.operator(source, name=name, kind="partitioned", by=by)(keep).by


def test_operators_of_another_pipeline_and_unknown_ones_are_refused() -> None:
    (pipeline, _), (_, stranger) = new_pipeline(), new_pipeline()
    with pytest.raises(InvalidInput, match="of taxi, defined before"):
        pipeline.operator(stranger, kind="row-wise")(keep)
    with pytest.raises(InvalidInput, match="at least one input"):
        pipeline.sink("board")
    with pytest.raises(InvalidInput, match=r'got "ride", need .* did you mean "rides"'):
        pipeline.inputs_of("ride")


def test_a_cut_must_be_complete_and_only_of_operators_that_may_be_split() -> None:
    pipeline, source = new_pipeline()
    clean = pipeline.operator(source, kind="row-wise", name="clean")(keep)
    zones = pipeline.operator(clean, kind="partitioned", by="zone", name="zones")(keep)
    rank = pipeline.operator(zones, kind="global", name="rank")(keep)
    pipeline.operator(rank, kind="row-wise", name="last")(keep)
    with pytest.raises(InvalidInput) as error:
        pipeline.crossing_edges({"zones", "rank", "cleen", "last", "rides"})
    for part in (
        "it is global",
        "it is source",
        "it comes after one that needs all rows",
        "clean is not in it",
        'did you mean "clean"?',
    ):
        assert part in told(error)


def test_defining_and_planning_load_no_spark() -> None:
    program = (
        "import sys; from thalweg.spark.pipeline.pipeline import Pipeline; p = Pipeline('taxi');"
        f"s = p.source('rides', schema={SCHEMA!r}, key='zone'); p.sink('board', s);"
        "p.application; print('pyspark' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (run.stdout.strip(), run.stderr) == ("False", "")


# References


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("thalweg.spark.examples.taxi", "package.module:attribute"),
        ("thalweg/spark:taxi", "package.module:attribute"),
        ("thalweg.no_such_module:taxi", "No module named"),
        ("thalweg.spark.examples.taxi:taxi_fare", 'did you mean "taxi_fares"?'),
        ("thalweg.spark.examples.taxi:parse", "parse is of type function"),
        ("thalweg.errors:taxi", "thalweg.errors defines no pipeline"),
        ("broken_pipeline:taxi", "raised ZeroDivisionError"),
    ],
)
def test_a_wrong_reference_is_told(
    reference: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_pipeline.py").write_text("1 / 0")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InvalidInput) as error:
        load_pipeline(reference)
    assert said in told(error)


# Execution


def small_pipeline() -> Pipeline:
    pipeline, source = new_pipeline()

    @pipeline.operator(source, kind="row-wise", must=("fare >= 0", "ride % 5 > 0"))
    def clean(rides: Any) -> Any:
        return rides.where("fare > 0")

    @pipeline.operator(clean, kind="partitioned", by="zone", window=WINDOW)
    def busiest(clean: Any) -> Any:
        return clean.groupBy("window", "zone").agg(sql.max("fare").alias("fare"))

    measured = pipeline.aggregate(
        "measured",
        clean,
        window=TimeWindow("60 s"),
        columns={
            "rides": count(),
            "sum": sum_of("fare"),
            "least": min_of("fare"),
            "most": max_of("fare"),
            "mean": mean_of("fare"),
        },
    )

    @pipeline.operator(busiest, measured, kind="global")
    def compare(busiest: Any, measured: Any) -> Any:
        return busiest.join(measured, "window").where("fare >= mean")

    pipeline.sink("board", compare)
    return pipeline


def test_only_some_operators_and_an_inbox_for_the_rest_give_the_whole(session: Any) -> None:
    pipeline = small_pipeline()
    frame = session.createDataFrame(rides())
    whole = pipeline.run({"rides": frame})
    assert list(whole) == [
        "rides",
        "clean",
        "busiest",
        "measured-partial",
        "measured",
        "compare",
        "board",
        DEAD_LETTERS,
    ]
    halves = [frame.where("zone < 2"), frame.where("zone >= 2")]
    site, rest = pipeline.run({"rides": halves[0]}, only={"clean", "measured-partial"}), halves[1]
    assert set(site) == {"rides", "clean", "measured-partial", DEAD_LETTERS}
    inbox = {
        ("clean", "busiest"): site["clean"],
        ("measured-partial", "measured"): site["measured-partial"],
    }
    both = pipeline.run({"rides": rest}, inbox=inbox)
    assert listed(both["board"]) == listed(whole["board"]) != []


def test_helpers_give_the_measures_of_the_rows_they_are_given(session: Any) -> None:
    pipeline = small_pipeline()
    found = pipeline.run({"rides": session.createDataFrame(rides())})["measured"].collect()
    fares: dict[datetime, list[float]] = {}
    for row in rides().to_pylist():
        if row["fare"] > 0 and row["ride"] % 5:
            start = row["time"].replace(second=0)
            fares.setdefault(start.replace(tzinfo=None), []).append(row["fare"])
    assert {row.window.start for row in found} == set(fares)
    for row in found:
        of = fares[row.window.start]
        assert (row.rides, row.least, row.most) == (len(of), min(of), max(of))
        assert float(row.sum) == pytest.approx(sum(of), abs=1e-8)
        assert row.mean == pytest.approx(sum(of) / len(of))


def test_rows_that_break_a_condition_are_dead_letters_with_the_first_reason(session: Any) -> None:
    pipeline = small_pipeline()
    table = rides(12).set_column(3, "fare", pa.array([-1.0, None, *[1.0] * 10]))
    made = pipeline.run({"rides": session.createDataFrame(table)})
    letters = {row.row: row for row in made[DEAD_LETTERS].collect()}
    reasons = {int(row.split(":")[1].split(",")[0]): letters[row].reason for row in letters}
    assert reasons == {
        0: "clean needs fare >= 0",
        1: "clean needs fare >= 0",
        5: "clean needs ride % 5 > 0",
        10: "clean needs ride % 5 > 0",
    }
    assert {(row.operator, row.input) for row in letters.values()} == {("clean", "rides")}
    assert sorted(row.ride for row in made["clean"].collect()) == [2, 3, 4, 6, 7, 8, 9, 11]


def test_without_rows_nothing_is_built_and_missing_inputs_are_empty(session: Any) -> None:
    pipeline = small_pipeline()
    assert pipeline.run({}) == {}
    frame = session.createDataFrame(rides())
    busiest = pipeline.run({"rides": frame})["busiest"]
    made = pipeline.run({}, inbox={("busiest", "compare"): busiest})
    assert set(made) == {"compare", "board"}
    assert listed(made["board"]) == []


def test_frames_that_do_not_fit_are_told_before_anything_runs(session: Any) -> None:
    pipeline = small_pipeline()
    wrong = session.createDataFrame(rides()).select(
        "ride", sql.col("zone").cast("long").alias("zone"), sql.col("time").alias("tyme"), "fare"
    )
    with pytest.raises(InvalidInput) as error:
        pipeline.run(
            {"rides": wrong, "ridez": wrong},
            only={"busiest", "cleen"},
            inbox={("clean", "measured"): wrong, ("rides", "clean"): wrong.drop("fare")},
        )
    text = told(error)
    for part in (
        'frames[rides].zone: got "bigint", need the type int',
        'frames[rides].time: got "no such column"',
        'did you mean "tyme"?',
        "frames[ridez]",
        "inbox[clean → measured]",
        "inbox[rides → clean].fare",
        'only: got "cleen"',
        "add clean, or an inbox for clean → busiest",
    ):
        assert part in text


def test_functions_that_do_not_fit_are_all_told_before_anything_runs(
    session: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    pipeline, source = new_pipeline()
    wrong = pipeline.operator(source, kind="row-wise", name="wrong")(lambda f: f.select("cost"))
    pipeline.operator(wrong, kind="row-wise", name="after")(keep)
    pipeline.operator(source, kind="row-wise", name="none")(lambda f: None)
    pipeline.operator(source, kind="row-wise", name="must", must="nowhere > 0")(keep)
    pipeline.operator(source, kind="row-wise", name="raises")(lambda f: f.no_such_method())
    gone = pipeline.operator(source, kind="row-wise", name="gone")(lambda f: f.drop("zone"))
    pipeline.operator(gone, kind="partitioned", by="zone", name="by")(keep)
    with pytest.raises(InvalidInput) as error:
        pipeline.run({"rides": session.createDataFrame(rides())})
    text = told(error)
    paths = [defect.path for defect in error.value.defects]
    assert paths == ["wrong", "none", "must.must", "raises", "by.by"]
    for part in ("`cost`", "NoneType", "`nowhere`", "no_such_method", "a column of gone"):
        assert part in text
    assert capfd.readouterr().err == ""


def test_a_schema_is_that_of_the_output(session: Any) -> None:
    schema = small_pipeline().schema_of("busiest", session)
    assert [field.name for field in schema] == ["window", "zone", "fare"]


def test_a_schema_needs_a_session(monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark.sql import SparkSession

    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    with pytest.raises(SparkUnavailable, match="open_session"):
        small_pipeline().schema_of("clean")


# Streams


def stream_of(session: Any, table: pa.Table, folder: Path) -> Any:
    folder.mkdir()
    import pyarrow.parquet as pq

    pq.write_table(table, folder / "1.parquet")
    return session.readStream.schema(session.createDataFrame(table).schema).parquet(str(folder))


def delays(frame: Any) -> dict[str, int]:
    key = "spark.watermarkDelayMs"
    return {f.name: f.metadata[key] for f in frame.schema if key in f.metadata}


def test_streams_get_one_watermark_where_a_stateful_operator_reads(
    session: Any, tmp_path: Path
) -> None:
    pipeline = small_pipeline()
    stream = stream_of(session, rides(), tmp_path / "rides")
    made = pipeline.run({"rides": stream})
    assert delays(made["clean"]) == {}
    assert delays(made["busiest"]) == delays(made["board"]) == {"window": 10_000}
    # Batch frames have no use for one.
    assert delays(pipeline.run({"rides": session.createDataFrame(rides())})["busiest"]) == {}
    # One that is there already is kept.
    early = pipeline.run({"rides": stream.withWatermark("time", "3 seconds")})
    assert delays(early["clean"]) == {"time": 3000}
    assert delays(early["board"]) == {"window": 3000}


def test_rows_of_an_inbox_behind_a_stateful_operator_get_a_watermark_of_their_own(
    session: Any, tmp_path: Path
) -> None:
    pipeline = small_pipeline()
    windows = pipeline.run({"rides": session.createDataFrame(rides())})["busiest"].toArrow()
    inbox = {("busiest", "compare"): stream_of(session, windows, tmp_path / "busiest")}
    stream = stream_of(session, rides(), tmp_path / "rides")
    made = pipeline.run({"rides": stream}, inbox=inbox)
    plan = made["compare"]._jdf.queryExecution().analyzed().toString()
    assert plan.count("EventTimeWatermark") == 3
    assert delays(made["compare"]) == {"window": 10_000}


def test_streams_and_tables_are_not_mixed_and_no_input_of_a_stream_is_left_out(
    session: Any, tmp_path: Path
) -> None:
    pipeline = small_pipeline()
    table = session.createDataFrame(rides())
    stream = stream_of(session, rides(), tmp_path / "rides")
    clean = pipeline.run({"rides": table})["clean"]
    with pytest.raises(InvalidInput, match="all of them streams, or none"):
        pipeline.run({"rides": stream}, inbox={("clean", "busiest"): clean})
    arrived = stream_of(session, clean.toArrow(), tmp_path / "clean")
    with pytest.raises(InvalidInput, match="nothing for measured → compare"):
        pipeline.run({}, inbox={("clean", "busiest"): arrived})


def test_an_operator_that_loses_the_time_of_a_stream_is_told(session: Any, tmp_path: Path) -> None:
    pipeline, source = new_pipeline()

    @pipeline.operator(source, kind="partitioned", by="zone", window=WINDOW)
    def busiest(rides: Any) -> Any:
        return rides.groupBy("window", "zone").agg(sql.max("fare").alias("fare")).drop("window")

    last = pipeline.operator(busiest, kind="global", name="last")(keep)
    pipeline.sink("board", last)
    pipeline.run({"rides": session.createDataFrame(rides())})
    with pytest.raises(InvalidInput, match=r'busiest: got "zone, fare".*last can tell how far'):
        pipeline.run({"rides": stream_of(session, rides(), tmp_path / "rides")})


# What operators promise


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("clean", "row-wise"),
        ("busiest", "partitioned"),
        ("measured", "mergeable"),
        ("compare", "global"),
    ],
)
def test_operators_that_keep_their_promise_pass(session: Any, name: str, kind: str) -> None:
    report = check_operator(small_pipeline(), name, rides(), splits=2)
    assert (report.operator, report.kind, report.splits) == (name, kind, 2)
    assert report.rows > 0


def _count_all(frame: Any) -> Any:
    return frame.groupBy().agg(sql.count(sql.lit(1)).alias("rides"))


def _count_by_hidden_key(frame: Any) -> Any:
    # The column has the name of the key, but no longer its values.
    hidden = frame.withColumn("zone", (sql.col("ride") % 2).cast("int"))
    return hidden.groupBy("zone").agg(sql.count(sql.lit(1)).alias("rides"))


def _mean(frame: Any) -> Any:
    return frame.groupBy("zone").agg(sql.avg("fare").alias("fare"))


def _first(frame: Any) -> Any:
    return frame.limit(1)


@pytest.mark.parametrize(
    ("function", "options"),
    [
        (_count_all, {"kind": "row-wise"}),
        (_count_by_hidden_key, {"kind": "partitioned", "by": "zone"}),
        (_mean, {"kind": "mergeable", "merge": _mean}),
        (_first, {"kind": "global"}),
    ],
)
def test_operators_that_break_their_promise_are_told(
    session: Any, function: Any, options: dict[str, Any]
) -> None:
    pipeline, source = new_pipeline()
    pipeline.sink("board", pipeline.operator(source, name="bad", **options)(function))
    with pytest.raises(OperatorError, match=rf"bad \({options['kind']}\).*rows (missing|too many)"):
        check_operator(pipeline, "bad", rides())


def test_a_wrong_check_is_told(session: Any) -> None:
    pipeline = small_pipeline()
    with pytest.raises(InvalidInput) as error:
        check_operator(pipeline, "board", {"ridez": rides()}, splits=0)
    for part in ("it is a sink", "splits: got 0", "none for rides", 'did you mean "rides"?'):
        assert part in told(error)
    with pytest.raises(InvalidInput, match='did you mean "clean"'):
        check_operator(pipeline, "cleen", rides())
