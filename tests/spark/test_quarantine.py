from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.errors import InvalidInput
from thalweg.spark.deployment.spec import DeploymentSpec
from thalweg.spark.log import Log
from thalweg.spark.log.writer import LogWriter
from thalweg.spark.query import quarantine
from thalweg.spark.query.left_out import LEFT_OUT_STREAM, LeftOut, add_places, places_of
from thalweg.spark.query.quarantine import SearchEnded, blame, downstream_of, find_bad_rows
from thalweg.spark.query.queries import start_query
from thalweg.spark.query.running import Repair, RunningQuery
from thalweg.spark.query.set_aside import LETTER_SCHEMA, SetAside
from thalweg.spark.query.spec import QuerySpec
from thalweg.spark.site.site import SiteSpec
from thalweg.spark.site.sites import Sites

pytestmark = pytest.mark.jvm

PATIENCE_S = 180.0
SCHEMA = pa.schema([("n", pa.int64()), ("sensor", pa.int32()), ("text", pa.string())])
# Good ones, one that breaks a condition, and two that make operators fail.
TEXTS = ["1", "broken", "x2", "3", "13", "5"]

# The search


@given(st.integers(0, 70), st.sets(st.integers(0, 69), max_size=8), st.integers(0, 9))
def test_the_rows_that_fail_alone_are_found_with_few_attempts(
    count: int, bad: set[int], most: int
) -> None:
    attempts = 0

    def attempt(places: Sequence[int]) -> str | None:
        nonlocal attempts
        attempts += 1
        return next((f"no {place}" for place in places if place in bad), None)

    found: dict[int, str] = {}
    any_fails = find_bad_rows(range(count), attempt, found, most)
    expected = sorted(place for place in bad if place < count)[:most]
    assert found == {place: f"no {place}" for place in expected}
    assert list(found) == expected
    assert any_fails == bool(expected)
    assert attempts <= 1 + 2 * len(expected) * math.ceil(math.log2(max(count, 2)))


def test_rows_that_only_fail_together_are_not_found() -> None:
    found: dict[int, str] = {}
    find_bad_rows(range(8), lambda places: "both" if {2, 6} <= set(places) else None, found, 9)
    assert found == {}


def test_what_was_found_before_the_search_ended_is_kept() -> None:
    def attempt(places: Sequence[int]) -> str | None:
        if min(places) >= 4:
            raise SearchEnded("enough")
        return "no" if {1, 6} & set(places) else None

    found: dict[int, str] = {}
    with pytest.raises(SearchEnded):
        find_bad_rows(range(8), attempt, found, 9)
    assert found == {1: "no"}


@given(st.dictionaries(st.integers(0, 20), st.sampled_from(["", "a", "b", "c"]), min_size=1))
def test_the_first_operator_that_fails_is_to_blame(fails_at: dict[int, str]) -> None:
    def attempt(name: str, places: Sequence[int]) -> str | None:
        # What an operator fails on, those after it do too.
        return "no" if any(fails_at[p] and fails_at[p] <= name for p in places) else None

    places = sorted(fails_at)
    expected = {place: fails_at[place] or "c" for place in places}
    assert blame(places, ["a", "b", "c"], attempt) == expected


def test_operators_downstream_are_found_through_several_readers() -> None:
    edges = [("s", "a"), ("t", "b"), ("a", "c"), ("b", "c"), ("c", "d"), ("b", "e")]
    assert downstream_of(edges, ["s"]) == {"s", "a", "c", "d"}
    assert downstream_of(edges, ["e"]) == {"e"}


# What was set aside


def letter(n: int) -> pa.Table:
    return pa.table({name: [f"{name} {n}"] for name in LETTER_SCHEMA.names}, schema=LETTER_SCHEMA)


def test_letters_count_when_their_rows_are_out_of_the_lot(tmp_path: Path) -> None:
    aside = SetAside(tmp_path)
    for intake in ("a", "b"):
        (tmp_path / intake / "rows").mkdir(parents=True)
        for lot in range(3):
            rows = pa.table({"n": list(range(9 - lot))})
            pq.write_table(rows, tmp_path / intake / "rows" / f"{lot}.parquet")
    aside.keep("a", 0, of_rows=10, letters=letter(0))
    aside.keep("a", 1, of_rows=10, letters=letter(2))
    aside.keep("a", 1, of_rows=9, letters=letter(1))
    # A crash: the lot still has these rows, and they are found again.
    aside.keep("a", 1, of_rows=8, letters=letter(3))
    aside.keep("b", 2, of_rows=11, letters=letter(4))

    def between(before: dict[str, int], upto: dict[str, int]) -> list[str]:
        return [str(row) for row in aside.between(before, upto).column("row").to_pylist()]

    assert between({}, {"b": 2, "a": 1, "clock": 7}) == ["row 0", "row 2", "row 1", "row 4"]
    assert between({"a": 0, "b": 2}, {"a": 1, "b": 2}) == ["row 2", "row 1"]
    assert (aside.count("a", 1), aside.count("b", 0)) == (2, 0)
    aside.forget({"a": 0, "b": 1})
    assert between({}, {"a": 1, "b": 2}) == ["row 2", "row 1", "row 4"]


def test_letters_of_rows_that_are_in_the_lot_again_are_not_kept_beside_new_ones(
    tmp_path: Path,
) -> None:
    """A power cut may take a lot that was laid down without waiting for the disk."""
    aside = SetAside(tmp_path)
    (tmp_path / "a" / "rows").mkdir(parents=True)
    aside.keep("a", 1, of_rows=10, letters=letter(1))
    aside.keep("a", 1, of_rows=9, letters=letter(2))
    # It is laid down as it was, and both rows are found at once.
    aside.keep("a", 1, of_rows=10, letters=pa.concat_tables([letter(1), letter(2)]))
    pq.write_table(pa.table({"n": list(range(8))}), tmp_path / "a" / "rows" / "1.parquet")
    assert aside.between({}, {"a": 1})["row"].to_pylist() == ["row 1", "row 2"]


def test_a_lot_knows_where_in_the_log_the_rows_were_that_are_out_of_it(tmp_path: Path) -> None:
    aside = SetAside(tmp_path)
    (tmp_path / "a" / "rows").mkdir(parents=True)
    pq.write_table(pa.table({"n": list(range(6))}), tmp_path / "a" / "rows" / "1.parquet")
    aside.keep("a", 1, of_rows=9, letters=add_places(letter(0), [(0, 7, 3)]))
    # Of a row that was not born here nobody needs to know.
    aside.keep("a", 1, of_rows=8, letters=add_places(letter(1), [None]))
    aside.keep("a", 1, of_rows=7, letters=add_places(letter(2), [(0, 8, 0)]))
    # A crash: these rows are still in the lot.
    aside.keep("a", 1, of_rows=6, letters=add_places(letter(3), [(0, 8, 1)]))
    assert aside.places("a", 1) == {(0, 7, 3), (0, 8, 0)}
    assert places_of(aside.between({}, {"a": 1})).to_pylist() == [
        {"source": "input 0", "epoch": 0, "batch": 7, "place": 3},
        {"source": "input 2", "epoch": 0, "batch": 8, "place": 0},
    ]


def test_of_rows_that_are_the_same_only_those_are_left_out_that_were_set_aside(
    tmp_path: Path,
) -> None:
    rows = pa.table({"n": [1, 1, 2, 1]})
    writer = LogWriter(tmp_path, "sources/readings", "fog-1", 0, durable=False)
    segment = writer.publish(3, rows)
    left_out = LeftOut(places={("readings", 0, 3): {1, 2}})
    assert left_out.drop_from("readings", segment, rows)["n"].to_pylist() == [1, 1]
    assert left_out.drop_from("others", segment, rows).equals(rows)


def test_what_becomes_of_bad_rows_is_one_of_two_things(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r'bad_rows: got "dead_letter".*did you mean'):
        spec_of(tmp_path, bad_rows="dead_letter")
    with pytest.raises(InvalidInput, match="bad_rows"):
        DeploymentSpec(pipeline="a:b", folder=tmp_path, fogs=("fog-1",), bad_rows="")
    spec = DeploymentSpec(pipeline="a:b", folder=tmp_path, fogs=("fog-1",), bad_rows="fail")
    assert spec.query("fog-1", 0).bad_rows == spec.query("cloud", 0).bad_rows == "fail"


# The repair


class FailedQuery:
    """A query of Spark that has failed, and is on its way to its end."""

    def __init__(self, error: str | None, polls: int = 0) -> None:
        self._error, self._polls = error, polls

    @property
    def isActive(self) -> bool:
        self._polls -= 1
        return self._error is None or self._polls >= 0

    def exception(self) -> str | None:
        return self._error

    def stop(self) -> None:
        self._error = self._error or "stopped"


def mendable(folder: Path, query: FailedQuery, counts: list[int]) -> RunningQuery:
    """A query that can be mended as often as rows are found."""

    def set_aside(is_unwanted: Callable[[], bool]) -> int:
        assert not query.isActive
        return counts.pop(0)

    (folder / "checkpoints").mkdir(exist_ok=True)
    repair = Repair(set_aside=set_aside, restart=lambda: cast("Any", FailedQuery(None)))
    return RunningQuery(spec_of(folder), cast("Any", query), ExitStack(), repair=repair)


def test_a_query_is_mended_once_it_has_ended_and_where_rows_are_to_blame(tmp_path: Path) -> None:
    counts = [2, 0, 1]
    running = mendable(tmp_path, FailedQuery("no number", polls=3), counts)
    assert running.error == "no number"
    assert running.mend()
    assert (running.error, running.active, counts) == (None, True, [0, 1])
    assert running.mend(), "what runs is left alone"
    running = mendable(tmp_path, FailedQuery("no number", polls=3), counts)
    assert not running.mend()
    assert not running.mend(), "what could not be mended is not tried again"
    assert (running.error, running.active, counts) == ("no number", False, [1])
    held = mendable(tmp_path, FailedQuery("BatchHeld: it is being drained"), counts)
    assert not held.mend()
    assert (held.error, counts) == (None, [1])


def test_a_query_that_is_stopped_while_it_is_mended_stays_stopped(tmp_path: Path) -> None:
    running = mendable(tmp_path, FailedQuery("no number"), [])
    stopping = threading.Thread(target=running.stop)

    def set_aside(is_unwanted: Callable[[], bool]) -> int:
        stopping.start()
        wait_for(is_unwanted)
        return 1

    def restart() -> Any:
        raise AssertionError("it was stopped")

    running._repair = Repair(set_aside=set_aside, restart=restart)
    assert not running.mend()
    stopping.join(PATIENCE_S)
    assert not stopping.is_alive()
    assert (running.error, running.active) == (None, False)


# On Spark


def spec_of(folder: Path, site: str = "fog-1", **fields: Any) -> QuerySpec:
    given = {
        "site": site,
        "epoch": 0,
        "role": "fog",
        "pipeline": "spark.bad_row_pipelines:readings",
        "log": folder / "log",
        "checkpoint": folder / "checkpoints" / site,
        "cut": ("parse", "weigh"),
        "trigger": "50 ms",
        "durable": False,
    }
    return QuerySpec(**{**given, **fields})


@pytest.fixture(scope="module")
def session(shared_session: Callable[..., Any]) -> Any:
    return shared_session()


def wait_for(happened: Callable[[], Any]) -> Any:
    """What `happened` gives, as soon as it is something."""
    deadline = time.monotonic() + PATIENCE_S
    while not (found := happened()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)
    return found


def publish(
    folder: Path, batch: int, texts: Sequence[str], stream: str = "sources/readings"
) -> int:
    """Readings with these texts; gives the number of the first."""
    first = 100 * batch
    rows = [
        {"n": first + place, "sensor": None if text == "broken" else 1, "text": text}
        for place, text in enumerate(texts)
    ]
    table = pa.Table.from_pylist(rows, schema=SCHEMA)
    LogWriter(folder / "log", stream, "fog-1", 0, durable=False).publish(batch, table)
    return first


def publish_all(folder: Path, stream: str = "sources/readings") -> None:
    publish(folder, 0, ["20", "21"], stream)
    publish(folder, 1, TEXTS, stream)
    publish(folder, 2, ["30"], stream)


def read_rows(folder: Path, stream: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = Log(folder / "log").read(stream).to_pylist()
    return rows


WEIGHTS = [
    *({"n": n, "weight": 2 * (20 + n)} for n in range(2)),
    *({"n": 100 + p, "weight": 2 * int(TEXTS[p])} for p in (0, 3, 5)),
    {"n": 200, "weight": 60},
]


# Where those are in the log that make operators fail.
PLACES = [{"source": "readings", "epoch": 0, "batch": 1, "place": place} for place in (2, 4)]


def require_letters(letters: list[dict[str, Any]]) -> None:
    """The rows that are no readings, each once, with who could not use them and why."""
    broken, text, unlucky = sorted(letters, key=lambda row: json.loads(row["row"])["n"])
    assert broken == {
        "operator": "parse",
        "input": "readings",
        "reason": "parse needs sensor IS NOT NULL",
        "row": '{"n":101,"text":"broken"}',
    }
    assert text["reason"].startswith("[CAST_INVALID_INPUT] The value 'x2'")
    assert text | {"reason": ""} == {
        "operator": "parse",
        "input": "readings",
        "reason": "",
        "row": '{"n":102,"sensor":1,"text":"x2"}',
    }
    assert unlucky == {
        "operator": "weigh",
        "input": "readings",
        "reason": "ValueError: 13 has no weight",
        "row": '{"n":104,"sensor":1,"text":"13"}',
    }


def test_bad_rows_become_dead_letters_once_through_crashes_and_the_stream_goes_on(
    session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish_all(tmp_path)
    # Every segment is a lot.
    spec = spec_of(tmp_path, rows_per_batch=1)
    keep = SetAside.keep

    def keep_and_die(*arguments: Any, **named: Any) -> None:
        keep(*arguments, **named)
        raise RuntimeError("a crash")

    query = start_query(session, spec)
    wait_for(lambda: query.error)
    with monkeypatch.context() as patched:
        patched.setattr(SetAside, "keep", keep_and_die)
        assert not query.mend()
    assert query.status().state == "failed"
    query.stop()
    # Again, until the rows are out of the way; then it ends before it has published anything.
    query = start_query(session, spec)
    wait_for(lambda: query.error)
    query._repair = _without_restart(query)
    assert not query.mend()
    query.stop()
    assert read_rows(tmp_path, "edges/dead-letters") == []
    query = start_query(session, spec)
    goal = {"sources/readings": {"fog-1": {"0": 2}}}
    assert query.drain(goal, PATIENCE_S).offsets == goal
    assert read_rows(tmp_path, "edges/weigh+list") == WEIGHTS
    require_letters(read_rows(tmp_path, "edges/dead-letters"))
    assert read_rows(tmp_path, LEFT_OUT_STREAM) == PLACES
    intake = next((tmp_path / "checkpoints" / "fog-1.intake").glob("sources*"))
    # What is finished is forgotten.
    assert list((intake / "bad").iterdir()) == []
    assert not (intake / "trials").exists()


def _without_restart(query: RunningQuery) -> Any:
    def die() -> Any:
        raise RuntimeError("a crash")

    assert query._repair is not None
    return replace(query._repair, restart=die)


@pytest.mark.slow
def test_rows_that_are_found_one_after_the_other_are_known_by_where_they_were(
    session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lot has fewer rows after the first; what comes behind it is at another place then."""
    publish_all(tmp_path)
    find = quarantine._Search.find
    monkeypatch.setattr(quarantine._Search, "find", lambda search, most: find(search, 1))
    # All segments are one lot.
    query = start_query(session, spec_of(tmp_path))
    query.drain({"sources/readings": {"fog-1": {"0": 2}}}, PATIENCE_S)
    assert read_rows(tmp_path, "edges/weigh+list") == WEIGHTS
    require_letters(read_rows(tmp_path, "edges/dead-letters"))
    assert read_rows(tmp_path, LEFT_OUT_STREAM) == PLACES


def test_a_query_that_is_drained_gets_past_bad_rows_of_an_inbox(
    session: Any, tmp_path: Path
) -> None:
    publish_all(tmp_path, "edges/readings+parse")
    cloud = start_query(session, spec_of(tmp_path, "cloud", role="cloud", cut=(), sites=("fog-1",)))
    goal = {"edges/readings+parse": {"fog-1": {"0": 2}}}
    cloud.drain(goal, PATIENCE_S)
    assert read_rows(tmp_path, "sinks/list") == WEIGHTS
    require_letters(read_rows(tmp_path, "sinks/dead-letters"))
    assert read_rows(tmp_path, LEFT_OUT_STREAM) == []


def test_no_row_is_sent_away_where_that_is_not_wanted_or_the_fault_is_elsewhere(
    session: Any, tmp_path: Path
) -> None:
    publish(tmp_path, 0, ["1", "x"])
    for _ in range(2):
        query = start_query(session, spec_of(tmp_path, bad_rows="fail"))
        assert "The value 'x'" in wait_for(lambda query=query: query.error)
        assert not query.mend()
        assert query.stop().offsets == {"sources/readings": {}}
    elsewhere = tmp_path / "elsewhere"
    publish(elsewhere, 0, ["1", "404"])
    query = start_query(session, spec_of(elsewhere))
    assert wait_for(lambda: query.error).startswith("FileNotFoundError")
    assert not query.mend()
    assert query.error is not None
    query.stop()
    for folder in (tmp_path, elsewhere):
        assert read_rows(folder, "edges/dead-letters") == []
        assert read_rows(folder, "edges/weigh+list") == []


@pytest.mark.slow
def test_a_site_sets_bad_rows_aside_without_being_asked(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    publish_all(tmp_path)
    with Sites() as sites:
        sites.start([SiteSpec(name="fog-1", folder=tmp_path / "site")])
        sites["fog-1"].start(spec_of(tmp_path))
        found = wait_for(lambda: read_rows(tmp_path, "edges/dead-letters") or sites.next_event())
        require_letters(found)
        # Of the same batch, and published before the letters.
        assert read_rows(tmp_path, "edges/weigh+list") == WEIGHTS
        failing = spec_of(tmp_path, epoch=1, checkpoint=tmp_path / "again", bad_rows="fail")
        sites["fog-1"].start(failing)
        event = sites.next_event(PATIENCE_S)
        assert event is not None
        assert (event.kind, event.query) == ("query-failed", "fog-1@1")
        assert "CAST_INVALID_INPUT" in event.detail
