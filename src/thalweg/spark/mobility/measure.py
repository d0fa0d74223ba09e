"""Measures a hand-over from what the log has of it: nothing that ran is asked."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import TypeAlias

import pyarrow as pa

from thalweg.spark.keyed.log import KeyedLog, Ledger, standby_stream, state_stream, writer_name
from thalweg.spark.keyed.operator import load_operator
from thalweg.spark.keyed.state import KeyedState
from thalweg.spark.log import Log
from thalweg.spark.log.epoch import last_batch_of
from thalweg.spark.log.names import EpochPlace
from thalweg.spark.log.reader import Segment
from thalweg.spark.log.segment import read_batches, read_segment
from thalweg.spark.mobility.course import Course, Move
from thalweg.spark.mobility.positions import WINDOW_S, Whole
from thalweg.spark.mobility.recount import recount
from thalweg.spark.mobility.report import EventCounts, HandOverReport, MoveReport

_OUTPUT_PART = "output.arrow"

Commit: TypeAlias = tuple[int, int]
"""Epoch and batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Instant:
    """A moment by both clocks."""

    track_s: float
    unix_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """When the steps of one move were taken."""

    move: Move
    source: str
    epoch: int
    """The one that the target runs."""
    prepared: Instant
    fenced: Instant
    taken_over: Instant
    released: Instant
    snapshot: Segment | None
    """The snapshot that the target had to begin with, if there was one."""


def measure(course: Course, passages: Sequence[Passage], seconds: float) -> HandOverReport:
    """The report of a run that has ended."""
    log = Log(course.spec.log)
    output = log.read(course.spec.output)
    if not output.num_rows:
        output = load_operator(course.spec.operator).output.empty_table()
    expected, expected_state = recount(course.rows, WINDOW_S)
    ledger = Ledger(KeyedLog(log, load_operator(course.spec.operator)))
    handed = [_handed_bytes(ledger, passage) for passage in passages]
    ledger.follow(len(passages))
    state = ledger.state
    alone = _in_one_place(course)
    sorted_state = state.to_table().sort_by("vehicle")
    arrived = output.column("seq").to_numpy()
    return HandOverReport(
        sites=course.sites,
        vehicles=expected_state.num_rows,
        window_s=WINDOW_S,
        speedup=course.speedup,
        seconds=seconds,
        moves=tuple(
            _measure_move(course, log, passage, arrived, state_bytes)
            for passage, state_bytes in zip(passages, handed, strict=True)
        ),
        events=EventCounts.of(course.rows.column("seq").to_numpy(), arrived),
        outputs_equal=output.sort_by("seq").equals(expected.cast(output.schema)),
        state_equal=state.fingerprint == alone.fingerprint
        and sorted_state.equals(alone.to_table().sort_by("vehicle"))
        and sorted_state.equals(expected_state.cast(sorted_state.schema)),
        state_fingerprint=f"{state.fingerprint:016x}",
        steady_pause_s=_steady_pause_s(_outputs(course, log), passages),
    )


def _handed_bytes(ledger: Ledger, passage: Passage) -> int:
    """How large the state is as a move begins; a ledger goes from move to move."""
    ledger.follow(passage.epoch - 1)
    return int(ledger.state.to_table().nbytes)


def _in_one_place(course: Course) -> KeyedState:
    """The state of the same operator after all rows, without sites, moves or batches."""
    operator = load_operator(course.spec.operator)
    state = KeyedState(operator.state, operator.key)
    state.change(operator.work(course.rows, operator.state.empty_table()).updated, [])
    return state


def _measure_move(
    course: Course, log: Log, passage: Passage, arrived: Whole, state_bytes: int
) -> MoveReport:
    ahead_bytes, last_bytes = _bytes_sent(course, log, passage)
    prepared_s, released_s = passage.prepared.track_s, passage.released.track_s
    born = (course.time_s >= prepared_s) & (course.time_s <= released_s)
    seq = course.rows.column("seq").to_numpy()
    return MoveReport(
        source=passage.source,
        target=passage.move.to,
        planned_s=passage.move.at_s,
        prepared_s=prepared_s,
        handed_over_s=passage.fenced.track_s,
        released_s=released_s,
        ahead_bytes=ahead_bytes,
        last_bytes=last_bytes,
        state_bytes=state_bytes,
        take_over_s=passage.taken_over.unix_s - passage.fenced.unix_s,
        pause_s=_pause_s(_outputs(course, log), passage.epoch),
        events=EventCounts.of(seq[born], arrived),
    )


def _bytes_sent(course: Course, log: Log, passage: Passage) -> tuple[int, int]:
    """What the target has read of the state: while it stood by, and after the fence."""
    name, snapshot = load_operator(course.spec.operator).name, passage.snapshot
    begin: Commit = (-1, -1) if snapshot is None else (snapshot.epoch, snapshot.batch)
    ahead = 0 if snapshot is None else snapshot.file_bytes
    stood = _last_stand(course, name, passage)
    last = 0
    for segment in log.segments(state_stream(name)):
        at: Commit = (segment.epoch, segment.batch)
        if segment.epoch >= passage.epoch or at <= begin:
            continue
        size = sum(part.file_bytes for part in segment.parts if part.file != _OUTPUT_PART)
        if at <= stood:
            ahead += size
        else:
            last += size
    return ahead, last


def _last_stand(course: Course, name: str, passage: Passage) -> Commit:
    """The last commit that the target said to have taken in while it stood by."""
    place = EpochPlace(
        root=course.spec.log,
        stream=standby_stream(name),
        site=writer_name(name, passage.move.to),
        epoch=passage.epoch,
    )
    said = read_segment(place, last_batch_of(place))
    if said is None:
        return (-1, -1)
    table = pa.Table.from_batches([b for file in said.files for b in read_batches(file)])
    return int(table["epoch"][-1].as_py()), int(table["batch"][-1].as_py())


def _outputs(course: Course, log: Log) -> list[tuple[float, int]]:
    """When each batch of output appeared, and of which epoch it is, by time."""
    segments = log.segments(course.spec.output)
    return sorted((segment.folder.stat().st_ctime, segment.epoch) for segment in segments)


def _pause_s(outputs: Sequence[tuple[float, int]], epoch: int) -> float | None:
    before = [at for at, of in outputs if of < epoch]
    after = [at for at, of in outputs if of >= epoch]
    return after[0] - before[-1] if before and after else None


def _steady_pause_s(
    outputs: Sequence[tuple[float, int]], passages: Sequence[Passage]
) -> float | None:
    gaps = [
        end - begin
        for (begin, _), (end, _) in itertools.pairwise(outputs)
        if not any(begin <= p.released.unix_s and end >= p.prepared.unix_s for p in passages)
    ]
    return median(gaps) if gaps else None
