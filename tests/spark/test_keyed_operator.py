from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from spark.keyed_pipelines import tally
from thalweg.errors import InvalidInput
from thalweg.spark.keyed.operator import KeyedFunctionError, KeyedOperator, keyed, load_operator

RIDES = pa.table({"ride": [1, 2, 3], "vehicle": [7, 8, 7]})


def operator_of(function: Callable[[pa.Table, pa.Table], Any]) -> KeyedOperator:
    @keyed(by="zone", rows="zone long", state="rides long", output="zone long")
    def zones(rows: pa.Table, state: pa.Table) -> Any:
        return function(rows, state)

    return zones


def defects_of(**given: Any) -> dict[str, str]:
    columns = {"by": "zone", "rows": "zone long", "state": "n long", "output": "n long"}
    with pytest.raises(InvalidInput) as caught:
        keyed(**{**columns, **given})(tally.function)
    return {defect.path: str(defect) for defect in caught.value.defects}


def test_a_change_has_the_output_the_new_state_and_the_keys_without_one() -> None:
    zones = operator_of(lambda rows, state: (rows, state.filter(pa.array([True, False]))))
    state = pa.table({"zone": [1, 2], "rides": [5, 6]})
    change = zones.work(pa.table({"zone": [1, 2, 1]}), state)
    assert change.output.to_pydict() == {"zone": [1, 2, 1]}
    assert change.updated.to_pydict() == {"zone": [1], "rides": [5]}
    assert change.removed.to_pydict() == {"zone": [2]}


def test_columns_are_brought_into_their_order_and_type() -> None:
    small = pa.table({"rides": pa.array([5], pa.int8()), "zone": pa.array([1], pa.int16())})
    zones = operator_of(lambda rows, _: (rows, small))
    change = zones.work(pa.table({"zone": [1]}), zones.state.empty_table())
    assert change.updated.schema == zones.state


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (None, "has to return"),
        ((RIDES,), "has to return"),
        ((pa.table({"zone": [1]}), 3), "pyarrow.Table, not int"),
        ((pa.table({"a": [1]}), RIDES), "output does not have its columns"),
        ((pa.table({"zone": ["x"]}), RIDES), "output does not have its columns"),
        ((pa.table({"zone": [1]}), pa.table({"zone": [1, 1], "rides": [1, 2]})), "twice"),
        ((pa.table({"zone": [1]}), pa.table({"zone": [9], "rides": [1]})), "without rows: 9"),
    ],
)
def test_a_function_that_breaks_its_promise_is_told_so(given: Any, told: str) -> None:
    zones = operator_of(lambda *_: given)
    with pytest.raises(KeyedFunctionError, match=told):
        zones.work(pa.table({"zone": [1]}), zones.state.empty_table())


def test_all_that_is_wrong_with_the_columns_is_told_at_once() -> None:
    assert set(defects_of(state="n lang", output="n")) == {"state.n", "output"}
    assert "long" in defects_of(state="n lnog")["state.n"]
    assert "a column of the rows" in defects_of(by="zine")["by"]
    assert "tell keys apart" in defects_of(rows="zone double")["rows.zone"]
    assert "each column once" in defects_of(state="zone long")["state"]
    assert "do not begin with" in defects_of(rows="zone long, _lot long")["rows"]


def test_a_reference_to_something_else_is_refused() -> None:
    assert load_operator("spark.keyed_pipelines:tally") is tally
    for reference in ("spark.keyed_pipelines:tally_at_once", "spark.keyed_pipelines:nothing"):
        with pytest.raises(InvalidInput):
            load_operator(reference)


def test_keys_may_have_several_columns_and_be_missing() -> None:
    @keyed(by=["a", "b"], rows="a long, b string", state="n long", output="a long")
    def count(rows: pa.Table, state: pa.Table) -> tuple[pa.Table, pa.Table]:
        groups = rows.group_by(["a", "b"]).aggregate([([], "count_all")])
        return rows.select(["a"]), groups.rename_columns({"count_all": "n"})

    rows = pa.table({"a": [1, 1, None, None], "b": ["x", None, None, None]})
    change = count.work(rows, count.state.empty_table())
    counted = {(row["a"], row["b"]): row["n"] for row in change.updated.to_pylist()}
    assert counted == {(1, "x"): 1, (1, None): 1, (None, None): 2}
