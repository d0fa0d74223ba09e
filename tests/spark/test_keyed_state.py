from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from spark.keyed_pipelines import tally
from thalweg.spark.keyed import state as keyed_state
from thalweg.spark.keyed.state import KeyedState

keys = st.integers(0, 12)
changes = st.tuples(st.dictionaries(keys, st.integers(0, 99)), st.sets(keys))


def table_of(counts: dict[int, int]) -> pa.Table:
    rows = [{"vehicle": k, "rides": n, "note": f"n{n}"} for k, n in counts.items()]
    return pa.Table.from_pylist(rows, schema=tally.state)


def counts_in(table: pa.Table) -> list[tuple[int, int, str]]:
    return [(row["vehicle"], row["rides"], row["note"]) for row in table.to_pylist()]


def state_of(counts: dict[int, int]) -> KeyedState:
    return KeyedState(tally.state, tally.key, table_of(counts))


@given(st.lists(changes, max_size=25), st.lists(keys, unique=True), st.booleans())
def test_a_state_is_a_dictionary(
    steps: list[tuple[dict[int, int], set[int]]], asked: list[int], compact: bool
) -> None:
    before = keyed_state._FEW_ROWS
    # Small enough that rows out of date are left behind within the test.
    keyed_state._FEW_ROWS = 3 if compact else before
    try:
        state, oracle = state_of({}), dict[int, int]()
        for updated, removed in steps:
            gone = removed - set(updated)
            state.change(table_of(updated), sorted(gone))
            oracle = {k: n for k, n in (oracle | updated).items() if k not in gone}
            assert counts_in(state.find(asked)) == [
                (k, oracle[k], f"n{oracle[k]}") for k in asked if k in oracle
            ]
        assert len(state) == len(oracle)
        assert sorted(counts_in(state.to_table())) == [
            (k, n, f"n{n}") for k, n in sorted(oracle.items())
        ]
        assert state.fingerprint == state_of(oracle).fingerprint
    finally:
        keyed_state._FEW_ROWS = before


@given(st.dictionaries(keys, st.integers(0, 99), min_size=1), st.data())
def test_another_state_has_another_fingerprint(counts: dict[int, int], data: st.DataObject) -> None:
    key = data.draw(st.sampled_from(sorted(counts)))
    assert state_of(counts).fingerprint != state_of(counts | {key: 100}).fingerprint
    del (less := dict(counts))[key]
    assert state_of(counts).fingerprint != state_of(less).fingerprint


def test_rows_out_of_date_are_left_behind() -> None:
    state = state_of({})
    for turn in range(40):
        state.change(table_of(dict.fromkeys(range(1000), turn)), [])
    assert len(state) == 1000
    assert state.nbytes < 15 * table_of(dict.fromkeys(range(1000), 40)).nbytes


@given(changes, changes)
def test_a_copy_stays_what_it_was(
    first: tuple[dict[int, int], set[int]], then: tuple[dict[int, int], set[int]]
) -> None:
    state = state_of(first[0])
    copy = state.copy()
    state.change(table_of(then[0]), sorted(then[1] - set(then[0])))
    assert sorted(counts_in(copy.to_table())) == sorted(counts_in(table_of(first[0])))
    assert copy.fingerprint == state_of(first[0]).fingerprint
