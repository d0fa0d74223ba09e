from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from migration.test_mobility import BROKERS, random_tracks
from thalweg.errors import InvalidInput
from thalweg.files.transitions_table import load_transitions
from thalweg.migration.connections import Connections
from thalweg.migration.predictors.learned import Transitions
from thalweg.model.workload import Tracks
from thalweg.spark.transitions.count import count_transitions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.jvm


@pytest.fixture(scope="module", autouse=True)
def spark(shared_session: Callable[..., SparkSession]) -> SparkSession:
    return shared_session({"spark.sql.shuffle.partitions": "2"})


def write(path: Path, tracks: Tracks, **names: str) -> Path:
    """The trace in another order, with one row of nobody as SUMO writes them."""
    order = np.random.default_rng(1).permutation(tracks.user.size)
    columns = {
        "t": tracks.time_s[order].tolist(),
        "vehicle": [f"v{user}" for user in tracks.user[order]],
        "x": tracks.x_m[order].tolist(),
        "y": tracks.y_m[order].tolist(),
    }
    nobody = {"t": 0.0, "vehicle": None, "x": None, "y": None}
    table = pa.table({names.get(n, n): [*values, nobody[n]] for n, values in columns.items()})
    pq.write_table(table, path)
    return path


def connect(tracks: Tracks, step_s: float = 1.0) -> Connections:
    names = [f"v{k}" for k in range(int(tracks.user.max()) + 1)]
    return Connections.of(names, tracks, BROKERS, step_s=step_s)


def test_spark_counts_what_numpy_counts(tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    tracks = random_tracks(rng, vehicles=12, ticks=60)
    trace = write(tmp_path / "trace.parquet", tracks)
    found = count_transitions([trace], BROKERS, into=tmp_path / "counted.parquet")
    expected = Transitions.of(connect(tracks), BROKERS)
    assert found.rows() == expected.rows()
    assert load_transitions(tmp_path / "counted.parquet").rows() == found.rows()
    some = ["v0", "v3", "v7"]
    found = count_transitions([trace], BROKERS, vehicles=some)
    assert found.rows() == Transitions.of(connect(tracks), BROKERS, vehicles=some).rows()


def test_rows_between_the_moments_are_sampled_and_traces_are_apart(tmp_path: Path) -> None:
    rng = np.random.default_rng(8)
    traces, sums = [], dict[tuple[str, str, str], tuple[int, float]]()
    for number in range(2):
        tracks = random_tracks(rng, vehicles=8, ticks=60)
        moved = replace(tracks, time_s=5.0 + 0.7 * tracks.time_s)
        names = {"t": "time_s", "vehicle": "user", "x": "x_m", "y": "y_m"} if number else {}
        traces.append(write(tmp_path / f"{number}.parquet", moved, **names))
        counted = Transitions.of(connect(moved, step_s=1.6), BROKERS).rows()
        for change, (count, stay_s, _) in counted.items():
            before = sums.get(change, (0, 0.0))
            sums[change] = (before[0] + count, before[1] + count * stay_s)
    found = count_transitions(traces, BROKERS, step_s=1.6).rows()
    assert {change: count for change, (count, _, _) in found.items()} == {
        change: count for change, (count, _) in sums.items()
    }
    for change, (count, total_s) in sums.items():
        assert found[change][1] == pytest.approx(total_s / count)


def test_what_cannot_be_counted_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as caught:
        count_transitions([tmp_path / "none", tmp_path / "neither"], BROKERS, step_s=0.0)
    assert len(caught.value.defects) == 3
    pq.write_table(pa.table({"t": [0.0], "vehicles": ["a"], "x": [1.0]}), tmp_path / "a.parquet")
    with pytest.raises(InvalidInput, match=r'vehicle:.*did you mean "vehicles"[^\n]*\n[^\n]*y:'):
        count_transitions([tmp_path / "a.parquet"], BROKERS)
    rows = {"t": [0.0, 1.0], "vehicle": ["a", "b"], "x": [1.0, 9e3], "y": [1.0, 1.0]}
    pq.write_table(pa.table(rows), tmp_path / "b.parquet")
    with pytest.raises(InvalidInput, match="within 50 m"):
        count_transitions([tmp_path / "b.parquet"], BROKERS)
    pq.write_table(pa.table(rows | {"t": [0.0, None]}), tmp_path / "c.parquet")
    with pytest.raises(InvalidInput, match="1 rows without a finite time"):
        count_transitions([tmp_path / "c.parquet"], BROKERS)
    # What load_tracks refuses is refused here, too, all of it at once.
    moments = [0.0, 1.0, 1.0, 2.0, 3.0, 4.0, 9.0]
    where = [1.0, 2.0, 2.0, 900.0, 901.0, 902.0, 903.0]
    bad = {"t": moments, "vehicle": ["a"] * 7, "x": where, "y": [1.0] * 7}
    pq.write_table(pa.table(bad), tmp_path / "d.parquet")
    with pytest.raises(InvalidInput) as caught:
        count_transitions([tmp_path / "d.parquet"], BROKERS)
    told = str(caught.value)
    assert all(f"1 {what}" in told for what in ("moments of a vehicle told twice", "jumps", "gaps"))
    (tmp_path / "e.csv").write_text("t,vehicle,x,y")
    with pytest.raises(InvalidInput, match="parquet file"):
        count_transitions([tmp_path / "e.csv"], BROKERS)
