"""The law: whatever is cut off to the sites, the sink gets the rows of the run in one place."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from spark.site_session import MANY_PLANS, site_session
from spark.taxi_run import count_rows, wait_for
from thalweg.scenarios import taxi_demand, taxi_fares
from thalweg.scenarios.readings import generate_messages
from thalweg.scenarios.rides import generate_rides, split_by_key
from thalweg.scheduling.cuts import list_cuts
from thalweg.spark.examples import EXAMPLES
from thalweg.spark.feed.gateway import END_OF_TIME, Gateway
from thalweg.spark.log import Log
from thalweg.spark.pipeline import DEAD_LETTERS, Pipeline, load_pipeline
from thalweg.spark.query.clock import SITE_CLOCK
from thalweg.spark.query.queries import start_query
from thalweg.spark.query.running import RunningQuery
from thalweg.spark.query.spec import QuerySpec

pytest.importorskip("pyspark")
pytestmark = pytest.mark.jvm

SITES = ["fog-1", "fog-2", "fog-3"]
CUTS = {"taxi-fares": 13, "taxi-demand": 10, "etl": 9, "stats": 15, "pred": 9}
"""How many legal cuts there are."""
PATIENCE_S = 600.0
LATER = 1_000_000
BAD_RIDES = ["", "no,numbers,at,all,here", "7,600,1.20,9.50"]


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with site_session(tmp_path_factory.mktemp("session"), MANY_PLANS) as session:
        yield session


def rows_of(pipeline: Pipeline) -> pa.Table:
    """Source rows with all that happens: odd values, gaps, lines that cannot be read."""
    if pipeline.name not in ("taxi-fares", "taxi-demand"):
        return generate_messages(400, seed=3, seconds=40.0, sensors=20)
    rides = generate_rides(600, seed=3, seconds=40.0)
    last = rides.column("pickup_time")[-1].as_py()
    bad = pa.table(
        {
            "ride": range(600, 600 + len(BAD_RIDES)),
            "zone": [1, 2, 3],
            "pickup_time": [last] * len(BAD_RIDES),
            "record": BAD_RIDES,
        }
    )
    return pa.concat_tables([rides, bad.cast(rides.schema)])


def in_order(table: pa.Table) -> pa.Table:
    """The rows sorted by all columns; which columns may be null depends on the plan."""
    flat = table.flatten()
    flat = pa.table({name: flat[name] for name in flat.column_names})
    return flat.sort_by([(name, "ascending") for name in flat.column_names])


def listed(frame: Any) -> pa.Table:
    return in_order(frame.toArrow())


@dataclass
class Example:
    """A pipeline with its input, and what the run in one place makes of it."""

    pipeline: Pipeline
    parts: list[Any]
    sink: str
    source: str
    expected: dict[str, pa.Table]


def cuts_of(pipeline: Pipeline) -> list[frozenset[str]]:
    names = [operator.name for operator in pipeline.application.operators]
    return [
        frozenset(name for name, on_fog in zip(names, row, strict=True) if on_fog)
        for row in list_cuts(pipeline.application).members.tolist()
    ]


@pytest.fixture(scope="module", params=EXAMPLES)
def example(request: pytest.FixtureRequest, session: Any) -> Example:
    pipeline = load_pipeline(EXAMPLES[request.param])
    (source,) = pipeline.application.sources
    (sink,) = pipeline.application.sinks
    table = rows_of(pipeline)
    whole = pipeline.run({source.name: session.createDataFrame(table)})
    key = pipeline.step(source.name).key
    return Example(
        pipeline=pipeline,
        parts=[session.createDataFrame(p) for p in split_by_key(table, key, SITES).values()],
        sink=sink.name,
        source=source.name,
        expected={name: listed(whole[name]) for name in (sink.name, DEAD_LETTERS)},
    )


def some(*names: str) -> list[Any]:
    """These examples always, one of rides and one of messages; the others where there is time."""
    names = names or ("taxi-fares", "stats")
    return [
        pytest.param(name, marks=[] if name in names else pytest.mark.slow) for name in EXAMPLES
    ]


def unite(frames: list[Any]) -> Any:
    first, *rest = frames
    for frame in rest:
        first = first.unionByName(frame)
    return first


def run_split(example: Example, cut: frozenset[str]) -> tuple[Any, Any]:
    """The sink's rows and the dead letters of the cloud and of all sites."""
    pipeline = example.pipeline
    sites = [pipeline.run({example.source: part}, only=cut) for part in example.parts]
    inbox = {(a, b): unite([site[a] for site in sites]) for a, b in pipeline.crossing_edges(cut)}
    cloud = pipeline.run({}, inbox=inbox)
    letters = [place[DEAD_LETTERS] for place in (cloud, *sites) if DEAD_LETTERS in place]
    return cloud[example.sink], unite(letters)


@pytest.mark.parametrize("example", some("stats"), indirect=True)
def test_every_cut_gives_the_rows_of_the_run_in_one_place(example: Example, session: Any) -> None:
    """Every legal cut of every example; what the sites put out is computed once for all cuts."""
    pipeline, cuts = example.pipeline, cuts_of(example.pipeline)
    everything = frozenset[str]().union(*cuts)
    sites = [pipeline.run({example.source: part}, only=everything) for part in example.parts]
    crossing = {a for cut in cuts for a, _ in pipeline.crossing_edges(cut)}
    arrived = {
        name: session.createDataFrame(
            unite([site[name] for site in sites]).toArrow(), pipeline.schema_of(name, session)
        )
        for name in sorted(crossing)
    }
    expected = example.expected[example.sink]
    assert expected.num_rows >= 30
    for cut in cuts:
        inbox = {edge: arrived[edge[0]] for edge in pipeline.crossing_edges(cut)}
        cloud = pipeline.run({}, inbox=inbox)
        assert listed(cloud[example.sink]).equals(expected), sorted(cut)


@pytest.mark.parametrize("example", some(), indirect=True)
def test_a_cut_run_from_end_to_end_gives_the_rows_and_the_dead_letters(example: Example) -> None:
    """Sites and cloud as one computation, for the largest cut."""
    check_cut(example, max(cuts_of(example.pipeline), key=lambda cut: (len(cut), sorted(cut))))


@pytest.mark.slow
def test_every_cut_run_from_end_to_end_gives_the_rows(example: Example) -> None:
    for cut in cuts_of(example.pipeline):
        check_cut(example, cut)


def check_cut(example: Example, cut: frozenset[str]) -> None:
    rows, letters = run_split(example, cut)
    assert listed(rows).equals(example.expected[example.sink]), sorted(cut)
    assert listed(letters).equals(example.expected[DEAD_LETTERS]), sorted(cut)


@pytest.mark.parametrize("example", some(), indirect=True)
def test_sites_with_different_cuts_give_the_rows_of_the_run_in_one_place(
    example: Example,
) -> None:
    pipeline, cuts = example.pipeline, cuts_of(example.pipeline)
    inbox: dict[tuple[str, str], Any] = {}
    chosen = (cuts[0], cuts[len(cuts) // 2], cuts[-1])
    for part, cut in zip(example.parts, chosen, strict=True):
        made = pipeline.run({example.source: part}, only=cut)
        for a, b in pipeline.crossing_edges(cut):
            inbox[a, b] = unite([*([inbox[a, b]] if (a, b) in inbox else []), made[a]])
    cloud = pipeline.run({}, inbox=inbox)
    assert listed(cloud[example.sink]).equals(example.expected[example.sink])


def test_examples_have_the_operators_and_kinds_they_should() -> None:
    pipelines = {name: load_pipeline(reference) for name, reference in EXAMPLES.items()}
    count = {
        name: sum(operator.kind == "transform" for operator in pipeline.application.operators)
        for name, pipeline in pipelines.items()
    }
    assert count == {"taxi-fares": 9, "taxi-demand": 11, "etl": 8, "stats": 7, "pred": 7}
    assert {name: len(cuts_of(pipeline)) for name, pipeline in pipelines.items()} == CUTS
    roles = Counter(step.role for pipeline in pipelines.values() for step in pipeline.steps)
    assert all(roles[role] >= 2 for role in ("row-wise", "partitioned", "partial", "global"))
    for pipeline, planned in (
        (pipelines["taxi-fares"], taxi_fares()),
        (pipelines["taxi-demand"], taxi_demand()),
    ):
        graphs = [app.graph for app in (pipeline.application, planned)]
        degrees = [
            sorted(
                zip(
                    np.bincount(g.source, minlength=14),
                    np.bincount(g.target, minlength=14),
                    strict=True,
                )
            )
            for g in graphs
        ]
        assert degrees[0] == degrees[1]


@pytest.mark.parametrize("example", some(), indirect=True)
def test_lines_that_cannot_be_read_become_dead_letters(example: Example) -> None:
    letters = example.expected[DEAD_LETTERS]
    assert set(letters["operator"].to_pylist()) == {"parse"}
    assert all("parse needs" in reason for reason in letters["reason"].to_pylist())
    lost = [json.loads(row) for row in letters["row"].to_pylist()]
    if example.source == "rides":
        assert sorted(row["record"] for row in lost) == sorted(BAD_RIDES)
    else:
        rows = rows_of(example.pipeline).to_pylist()
        broken = [row["message"] for row in rows if not row["senml"].endswith("}")]
        assert broken and sorted(row["message"] for row in lost) == broken


# Streams


def write_in_turn(table: pa.Table, folder: Path, start: int = 1) -> None:
    """A Parquet file, later than those before it."""
    folder.mkdir(exist_ok=True)
    file = folder / f"{start}.parquet"
    pq.write_table(table, file)
    os.utime(file, (1e9 + start, 1e9 + start))


def read_in_turn(session: Any, pipeline: Pipeline, name: str, folder: Path) -> Any:
    schema = pipeline.schema_of(name, session)
    reader = session.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    return reader.parquet(str(folder))


def read_all(frame: Any, folder: Path) -> pa.Table:
    """All that a stream puts out until its sources are used up."""
    got: list[pa.Table] = []
    query = (
        frame.writeStream.foreachBatch(lambda batch, _: got.append(batch.toArrow()))
        .option("checkpointLocation", str(folder))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return in_order(pa.concat_tables(got))


def later_rows(pipeline: Pipeline) -> pa.Table:
    """Rows of an hour later, which make a stream finish the windows before."""
    make = generate_rides if pipeline.name.startswith("taxi") else generate_messages
    start = rows_of(pipeline).column(2)[0].as_py() + timedelta(hours=1)
    return make(40, seed=1, start=start, seconds=1.0, first=LATER)


def without_later(table: pa.Table) -> pa.Table:
    if "message" not in table.column_names:
        return table
    return table.filter(pc.less(table["message"], LATER))


@pytest.mark.parametrize("example", some("taxi-fares"), indirect=True)
def test_a_stream_gives_the_rows_of_the_batch(
    example: Example, session: Any, tmp_path: Path
) -> None:
    pipeline = example.pipeline
    table = rows_of(pipeline)
    half = table.num_rows // 2
    for turn, part in enumerate((table[:half], table[half:])):
        write_in_turn(part, tmp_path / "in", turn)
    write_in_turn(later_rows(pipeline), tmp_path / "in", 2)
    stream = read_in_turn(session, pipeline, example.source, tmp_path / "in")
    out = pipeline.run({example.source: stream})[example.sink]
    found = without_later(read_all(out, tmp_path / "checkpoint"))
    assert found.equals(example.expected[example.sink])


@pytest.mark.parametrize("example", ["taxi-fares"], indirect=True)
def test_a_cloud_stream_with_an_inbox_at_every_edge_gives_the_rows_of_the_batch(
    example: Example, session: Any, tmp_path: Path
) -> None:
    """Windows from one site, parsed rows from another, raw rows from a third; other edges idle."""
    pipeline = example.pipeline
    later = session.createDataFrame(later_rows(pipeline))
    cuts = (set(), {"parse"}, {"parse", "clean", "enrich-zone", "speed-by-zone"})
    for a, b in pipeline.edges:
        (tmp_path / f"{a}--{b}").mkdir()
    for turn, (part, cut) in enumerate(zip(example.parts, cuts, strict=True)):
        made = pipeline.run({example.source: part}, only=cut)
        for a, b in pipeline.crossing_edges(cut):
            write_in_turn(made[a].toArrow(), tmp_path / f"{a}--{b}", turn)
    write_in_turn(later.toArrow(), tmp_path / "rides--parse", 9)
    inbox = {
        (a, b): read_in_turn(session, pipeline, a, tmp_path / f"{a}--{b}")
        for a, b in pipeline.edges
    }
    # An inbox in which nothing happens must not hold the others back.
    session.conf.set("spark.sql.streaming.multipleWatermarkPolicy", "max")
    try:
        out = pipeline.run({}, inbox=inbox)[example.sink]
        found = read_all(out, tmp_path / "checkpoint")
    finally:
        session.conf.unset("spark.sql.streaming.multipleWatermarkPolicy")
    assert found.equals(example.expected[example.sink])


# Sites and cloud as streams, as they run


def start_site(session: Any, example: Example, folder: Path, site: str, **fields: Any) -> Any:
    spec = QuerySpec(
        site=site,
        epoch=0,
        pipeline=EXAMPLES[example.pipeline.name],
        log=folder / "log",
        checkpoint=folder / "checkpoints" / site,
        trigger="20 ms",
        durable=False,
        **fields,
    )
    return start_query(session, spec)


def send_in_turn(example: Example, folder: Path, fogs: Sequence[str]) -> None:
    """The rows of every fog in two batches, and that nothing comes after."""
    pipeline = example.pipeline
    step = pipeline.step(example.source)
    for fog, rows in split_by_key(rows_of(pipeline), step.key, list(fogs)).items():
        gateway = Gateway.of(folder / "log", step, fog, durable=False, founds=True)
        half = rows.num_rows // 2
        for part in (rows[:half], rows[half:]):
            gateway.send(part)
        gateway.close()


def published(example: Example, folder: Path) -> dict[str, Counter[str]]:
    """The rows of the sink, and the dead letters of all places."""
    log = Log(folder / "log")
    letters = [row for kind in ("edges", "sinks") for row in read(log, f"{kind}/{DEAD_LETTERS}")]
    return {
        example.sink: count_rows(read(log, f"sinks/{example.sink}")),
        DEAD_LETTERS: count_rows(letters),
    }


def read(log: Log, stream: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = log.read(stream).flatten().to_pylist()
    return rows


def told_times(folder: Path, fog: str) -> list[datetime]:
    """How far time has come at a fog, batch for batch."""
    return [row["time"] for row in Log(folder / "log").read(SITE_CLOCK, site=fog).to_pylist()]


def run_until(query: RunningQuery, is_done: Callable[[], bool]) -> None:
    """Let a query run until something is so, and end it; what it still puts out is in the log."""
    try:
        wait_for(lambda: is_done() or query.error, PATIENCE_S)
        assert query.error is None
        query.drain(None, PATIENCE_S)
    finally:
        query.stop()


def check_streams(session: Any, example: Example, numbers: Sequence[int], folder: Path) -> None:
    """A fog with each of these cuts, and the cloud, through the log: the rows of the batch."""
    cuts = cuts_of(example.pipeline)
    names = [step.name for step in example.pipeline.steps if step.role != "source"]
    chosen = {
        f"fog-{place}": tuple(name for name in names if name in cuts[number])
        for place, number in enumerate(numbers)
    }
    expected = {name: count_rows(table.to_pylist()) for name, table in example.expected.items()}
    send_in_turn(example, folder, tuple(chosen))
    # One after the other: the cloud then has few batches, and there are many cuts.
    for fog, cut in chosen.items():
        query = start_site(session, example, folder, fog, role="fog", cut=cut, rows_per_batch=100)
        run_until(query, lambda fog=fog: END_OF_TIME in told_times(folder, fog))  # type: ignore[misc]
    cloud = start_site(session, example, folder, "cloud", role="cloud", sites=tuple(chosen))
    run_until(cloud, lambda: published(example, folder) == expected)
    assert published(example, folder) == expected, chosen


# A few of them, drawn once: two fogs with different cuts of each example.
DRAWN = {
    name: tuple(np.random.default_rng([4, place]).choice(count, 2, replace=False).tolist())
    for place, (name, count) in enumerate(CUTS.items())
}


@pytest.mark.parametrize("example", some("taxi-fares"), indirect=True)
def test_fogs_with_different_cuts_run_as_streams_give_the_rows_of_the_batch(
    example: Example, session: Any, tmp_path: Path
) -> None:
    check_streams(session, example, DRAWN[example.pipeline.name], tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("example", "number"),
    [(name, number) for name, count in CUTS.items() for number in range(count)],
    indirect=["example"],
)
def test_every_cut_run_as_streams_gives_the_rows_of_the_batch(
    example: Example, number: int, session: Any, tmp_path: Path
) -> None:
    """Two fogs with the same cut, so that the cloud has to put together what both send."""
    check_streams(session, example, (number, number), tmp_path)
