"""The checker of histories finds what is planted, counts it right, and finds nothing else."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import thalweg as tw
from thalweg.history import FAULTS, Expectation, Publication, check_history

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
LENGTH_S = 10


@dataclass
class Stream:
    """A small stream processor: batches of numbered events into windows, with what may go wrong."""

    batches: list[list[int]]
    """The event times [s] of each batch, counted from noon; their number is their place."""
    skip: int | None = None
    """A batch that is dropped."""
    again: int | None = None
    """A batch that is worked on twice, and its output published twice."""
    forget: int | None = None
    """A batch after which state is restored as it was one batch before."""
    delay_s: int = 0
    late: bool = False
    """Whether time is said to be further than it is."""
    rows: list[Publication] = field(default_factory=list)
    windows: list[Publication] = field(default_factory=list)

    def run(self):
        state, before, first, newest = Counter(), Counter(), 0, 0
        for place, times in enumerate(self.batches):
            numbers = range(first, first + len(times))
            first += len(times)
            if place == self.skip:
                continue
            if self.forget is not None and place == self.forget + 1:
                state = Counter(before)
            before = Counter(state)
            newest = max([newest, *times])
            done_s = newest - self.delay_s + (5 if self.late else 0)
            for _ in range(2 if place == self.again else 1):
                state.update(time // LENGTH_S for time in times)
                out = [w for w in sorted(state) if (w + 1) * LENGTH_S <= done_s]
                self._publish(list(zip(numbers, times, strict=True)), state, out, done_s)
                for window in out:
                    del state[window]
        self._publish([], state, sorted(state), 10**6)
        return self

    def _publish(self, events, state, out, done_s):
        complete_ms = round((NOON + timedelta(seconds=done_s)).timestamp() * 1000)
        number, at = zip(*events, strict=True) if events else ((), ())
        rows = pa.table(
            {
                "number": pa.array(number, pa.int64()),
                "at": [NOON + timedelta(seconds=t) for t in at],
            }
        )
        self.rows.append(Publication(rows=rows, complete_ms=complete_ms))
        counted = pa.Table.from_pylist(
            [{"window": window_of(w), "events": state[w]} for w in out], schema=WINDOWS
        )
        self.windows.append(Publication(rows=counted, complete_ms=complete_ms))


def window_of(number):
    start = NOON + timedelta(seconds=number * LENGTH_S)
    return {"start": start, "end": start + timedelta(seconds=LENGTH_S)}


TIME = pa.timestamp("us", "UTC")
WINDOWS = pa.schema(
    [("window", pa.struct([("start", TIME), ("end", TIME)])), ("events", pa.int64())]
)


def expected_rows(batches):
    times = [time for batch in batches for time in batch]
    rows = {"number": range(len(times)), "at": [NOON + timedelta(seconds=t) for t in times]}
    return Expectation(rows=pa.table(rows), key=("number",), due="at")


def expected_windows(batches):
    counts = Counter(time // LENGTH_S for batch in batches for time in batch)
    rows = [{"window": window_of(w), "events": n} for w, n in sorted(counts.items())]
    return Expectation(
        rows=pa.Table.from_pylist(rows, schema=WINDOWS), key=("window",), due="window"
    )


def batches_of(sizes, step_s=2):
    """Batches of these sizes, each two seconds after the one before."""
    return [[place * step_s] * size for place, size in enumerate(sizes)]


SIZES = st.lists(st.integers(1, 5), min_size=4, max_size=30)


@given(SIZES)
def test_a_right_history_has_no_fault(sizes):
    batches = batches_of(sizes)
    stream = Stream(batches).run()
    for expectation, history in (
        (expected_rows(batches), stream.rows),
        (expected_windows(batches), stream.windows),
    ):
        verdict = check_history(expectation, history)
        assert verdict.is_right, verdict
        assert verdict.found == verdict.expected == expectation.rows.num_rows
        assert "each once" in str(verdict)


@given(SIZES, st.data())
def test_a_dropped_batch_is_found(sizes, data):
    batches = batches_of(sizes)
    skip = data.draw(st.integers(0, len(sizes) - 1))
    stream = Stream(batches, skip=skip).run()
    verdict = check_history(expected_rows(batches), stream.rows)
    assert (verdict.lost, verdict.duplicated, verdict.wrong) == (sizes[skip], 0, 0)
    counted = check_history(expected_windows(batches), stream.windows)
    assert counted.wrong + counted.lost == 1
    assert "lost" in verdict.examples


@given(SIZES, st.data())
def test_a_replayed_batch_is_found(sizes, data):
    batches = batches_of(sizes)
    again = data.draw(st.integers(0, len(sizes) - 1))
    stream = Stream(batches, again=again).run()
    verdict = check_history(expected_rows(batches), stream.rows)
    assert (verdict.lost, verdict.duplicated) == (0, sizes[again])
    counted = check_history(expected_windows(batches), stream.windows)
    assert counted.wrong == 1
    assert counted.lost == 0


@given(SIZES, st.data())
def test_state_that_is_one_batch_too_old_is_found(sizes, data):
    batches = batches_of(sizes, step_s=1)
    forget = data.draw(st.integers(0, len(sizes) - 2))
    stream = Stream(batches, forget=forget).run()
    assert check_history(expected_rows(batches), stream.rows).is_right
    counted = check_history(expected_windows(batches), stream.windows)
    assert not counted.is_right
    assert counted.wrong + counted.lost + counted.duplicated >= 1


def test_rows_that_come_after_their_time_was_over_are_found():
    batches = [[0, 1], [12, 13], [11, 14], [30]]
    assert check_history(expected_rows(batches), Stream(batches, delay_s=2).run().rows).is_right
    hasty = check_history(expected_rows(batches), Stream(batches).run().rows)
    assert (hasty.late, hasty.lost, hasty.duplicated) == (1, 0, 0)
    early = Stream([[0], [8], [9], [30]], late=True).run()
    counted = check_history(expected_windows([[0], [8], [9], [30]]), early.windows)
    assert counted.late == 1


def test_a_window_ends_before_its_end():
    """One that ends when time has come so far was put out by then; the next row in it is late."""
    rows = pa.Table.from_pylist([{"window": window_of(0), "events": 1}], schema=WINDOWS)
    wanted = Expectation(rows=rows, key=("window",), due="window")
    end_ms = round((NOON + timedelta(seconds=LENGTH_S)).timestamp() * 1000)
    for promised_ms, late in ((end_ms - 1, 0), (end_ms, 1)):
        history = [
            Publication(rows=rows.slice(0, 0), complete_ms=promised_ms),
            Publication(rows=rows),
        ]
        assert check_history(wanted, history).late == late


def test_what_is_not_due_yet_is_not_lost():
    wanted = expected_rows([[0], [5]])
    history = [Publication(rows=wanted.rows.slice(0, 1))]
    at_ms = [round((NOON + timedelta(seconds=s)).timestamp() * 1000) for s in (5, 6)]
    assert check_history(wanted, history, upto_ms=at_ms[0]).is_right
    assert check_history(wanted, history, upto_ms=at_ms[1]).lost == 1
    assert check_history(wanted, history).lost == 1


def test_what_came_before_it_was_due_may_be_more_than_is_expected():
    """Of a live run, others know more by now; what is due has to fit all the same."""
    wanted = expected_rows([[0], [5]])
    more = expected_rows([[0], [5], [7]]).rows
    at_ms = round((NOON + timedelta(seconds=5)).timestamp() * 1000)
    history = [Publication(rows=more)]
    assert check_history(wanted, history, upto_ms=at_ms).is_right
    assert check_history(wanted, history).unknown == 1
    twice = [*history, Publication(rows=more.slice(1, 1))]
    assert check_history(wanted, twice, upto_ms=at_ms).duplicated == 1


def test_unknown_rows_are_told_and_equal_ones_may_repeat():
    wanted = Expectation(rows=pa.table({"a": [1, 1, 2]}), key=("a",))
    right = [Publication(rows=pa.table({"a": [2, 1]})), Publication(rows=pa.table({"a": [1]}))]
    assert check_history(wanted, right).is_right
    other = [Publication(rows=pa.table({"a": [1, 1, 1, 7]}))]
    verdict = check_history(wanted, other)
    assert (verdict.lost, verdict.duplicated, verdict.unknown) == (1, 1, 1)
    assert verdict.to_dict()["examples"]["unknown"] == ["a 7"]
    assert all(fault in verdict.to_dict() for fault in FAULTS)


@pytest.mark.parametrize(("tolerance", "wrong"), [(0.0, 1), (1e-9, 0)])
def test_floating_point_numbers_may_be_off_where_that_is_allowed(tolerance, wrong):
    rows = pa.table({"k": [1, 2], "x": [0.3, float("nan")]})
    wanted = Expectation(rows=rows, key=("k",), tolerance=tolerance)
    history = [Publication(rows=pa.table({"k": [2, 1], "x": [float("nan"), 0.1 + 0.2]}))]
    assert check_history(wanted, history).wrong == wrong


def test_expectations_that_cannot_be_right_are_told():
    with pytest.raises(tw.InvalidInput) as told:
        Expectation(rows=pa.table({"ride": [1]}), key=("rides",), due="at", tolerance=2.0)
    assert len(told.value.defects) == 3
    with pytest.raises(tw.InvalidInput, match="keys that differ"):
        Expectation(rows=pa.table({"k": [1, 1], "x": [1, 2]}), key=("k",))


@settings(max_examples=50)
@given(st.lists(st.integers(0, 6)), st.lists(st.integers(0, 6)))
def test_counts_agree_with_sets_of_numbers(wanted, came):
    """Against plain counting, for any rows at all."""
    expectation = Expectation(rows=pa.table({"n": pa.array(wanted, pa.int64())}), key=("n",))
    verdict = check_history(
        expectation, [Publication(rows=pa.table({"n": pa.array(came, pa.int64())}))]
    )
    assert verdict.lost == sum(max(0, wanted.count(n) - came.count(n)) for n in set(wanted))
    assert verdict.duplicated == sum(max(0, came.count(n) - wanted.count(n)) for n in set(wanted))
    assert verdict.unknown == sum(1 for n in came if n not in wanted)
