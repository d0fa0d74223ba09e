from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from spark.site_session import MANY_PLANS

pytest.importorskip("pyspark")
from pyspark.sql import functions as sql

from thalweg.spark.query.widths import width_of

pytestmark = pytest.mark.jvm

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
SCHEMA = (
    "window struct<start: timestamp, end: timestamp>, zone int, rides long, share double,"
    " name string, place struct<street: string, number: int>"
)
ROWS = [((NOON, NOON), k, 2 * k, k / 7, "x" * k, ("y" * (k % 5), k)) for k in range(200)]


@pytest.fixture(scope="module")
def session(shared_session: Callable[..., Any]) -> Any:
    return shared_session(MANY_PLANS)


def bytes_of(frame: Any) -> float:
    width = width_of(frame.schema)
    more = frame.agg(sql.sum(width.variable_bytes())).first()[0] or 0
    return width.fixed_bytes * frame.count() + more


@pytest.mark.parametrize(
    "columns", [["window"], ["window", "zone", "rides"], ["place"], ["name", "share"], ["*"]]
)
def test_rows_take_what_arrow_takes_for_them(session: Any, columns: list[str]):
    frame = session.createDataFrame(ROWS, SCHEMA).select(*columns)
    # Arrow has one offset more than rows, and bits for what is null.
    assert bytes_of(frame) == pytest.approx(frame.toArrow().nbytes, rel=0.02)


def test_a_missing_structure_takes_the_bytes_of_its_fixed_columns(session: Any):
    frame = session.createDataFrame([(None, 1)] * 100, "place struct<a: long, b: string>, n int")
    assert bytes_of(frame) == pytest.approx(100 * (8 + 4 + 4))


def test_a_window_takes_two_moments(session: Any):
    frame = session.createDataFrame(ROWS, SCHEMA).select("window")
    assert width_of(frame.schema).fixed_bytes == 16.0
    assert width_of(frame.schema).is_fixed
