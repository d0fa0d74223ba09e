from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.errors import InvalidInput
from thalweg.files.transitions_table import (
    NONE,
    Change,
    TransitionTable,
    load_transitions,
    save_transitions,
)

NAMES = st.sampled_from(["b10", "b9", "a", "ü"])
CHANGES = st.tuples(NAMES | st.just(""), NAMES, NAMES | st.just("")).filter(
    lambda change: change[1] not in (change[0], change[2])
)
FIGURES = st.tuples(st.integers(1, 2**40), st.floats(1e-3, 1e9), st.floats(0, 1e9))


@given(rows=st.dictionaries(CHANGES, FIGURES, max_size=12))
def test_what_is_saved_is_read_again(
    tmp_path_factory: pytest.TempPathFactory, rows: dict[Change, tuple[int, float, float]]
) -> None:
    path = tmp_path_factory.mktemp("table") / "t.parquet"
    table = TransitionTable.of_rows(rows)
    save_transitions(table, path)
    found = load_transitions(path)
    assert found.rows() == table.rows() == rows
    assert found.leaves == table.leaves
    assert np.array_equal(found.leaf, table.leaf)
    assert [entry.name for entry in path.parent.iterdir()] == ["t.parquet"]


def test_leaves_come_as_people_count() -> None:
    rows = {("b9", "b10", ""): (1, 1.0, 0.0), ("", "b9", "b10"): (2, 3.0, 1.0)}
    table = TransitionTable.of_rows(rows)
    assert table.leaves == ("b9", "b10")
    assert table.previous.tolist() == [NONE, 0]
    assert table.next.tolist() == [1, NONE]
    assert repr(table) == "<TransitionTable: 3 stays in 2 leaves>"


def test_all_that_is_wrong_in_a_file_is_told(tmp_path: Path) -> None:
    path = tmp_path / "bad.parquet"
    columns = {
        "previous": ["", "a", "a", "a", ""],
        "leaf": ["a", "a", "b", "b", ""],
        "next": ["b", "b", "c", "c", "a"],
        "count": [1.5, 1.0, 2.0, 3.0, 0.0],
        "stay_s": [1.0, -1.0, 1.0, float("nan"), 1.0],
        "spread_s": [0.0, 0.0, -1.0, 0.0, 0.0],
    }
    pq.write_table(pa.table(columns), path)
    with pytest.raises(InvalidInput) as caught:
        load_transitions(path)
    assert {defect.path for defect in caught.value.defects} == {
        "count of row 0",
        "count of row 4",
        "stay_s of row 1",
        "stay_s of row 3",
        "spread_s of row 2",
        "leaf of row 1",
        "leaf of row 3",
        "leaf of row 4",
    }
    assert all(defect.file.endswith("bad.parquet") for defect in caught.value.defects)


def test_other_files_and_places_are_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"leaf": ["a"], "count": ["b"]}), tmp_path / "short.parquet")
    with pytest.raises(InvalidInput, match=r"previous.*\n.*next.*\n.*stay_s.*\n.*spread_s"):
        load_transitions(tmp_path / "short.parquet")
    (tmp_path / "no.parquet").write_bytes(b"no table")
    with pytest.raises(InvalidInput, match="a Parquet file"):
        load_transitions(tmp_path / "no.parquet")
    table = TransitionTable.of_rows({("", "a", "b"): (1, 1.0, 0.0)})
    with pytest.raises(InvalidInput, match=r"ends in \.parquet"):
        save_transitions(table, tmp_path / "table.csv")
    with pytest.raises(InvalidInput, match="can be written"):
        save_transitions(table, tmp_path / "nowhere" / "table.parquet")


def test_a_table_is_checked_as_it_is_made() -> None:
    with pytest.raises(InvalidInput) as caught:
        TransitionTable(
            leaves=("a", "a"),
            previous=np.array([-2], dtype=np.int32),
            leaf=np.array([2], dtype=np.int32),
            next=np.array([0, 1], dtype=np.int32),
            count=np.array([0]),
            stay_s=np.array([np.inf]),
            spread_s=np.array([-1.0]),
        )
    assert [defect.path for defect in caught.value.defects] == [
        "leaves",
        "previous",
        "leaf",
        "next",
        "count",
        "stay_s",
        "spread_s",
    ]
    with pytest.raises(InvalidInput, match="another leaf"):
        TransitionTable.of_rows({("a", "a", "b"): (1, 1.0, 0.0)})
