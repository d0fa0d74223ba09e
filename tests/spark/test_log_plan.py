from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thalweg.errors import InvalidInput
from thalweg.spark.log.founding import found_log
from thalweg.spark.log.plan import Reading, pack_files, parse_offset
from thalweg.spark.log.reader import Log, LogError, LogWriter, Offset, Segment

STREAM = "edges/clean+rank"
SITES = ("fog-1", "fog-2", "fog-3")

Key = tuple[str, int, int]


def publish(root: Path, site: str, epoch: int, batch: int, rows: int) -> Segment:
    writer = LogWriter(root, STREAM, site, epoch, durable=False)
    return writer.publish(batch, pa.table({"number": list(range(rows))}))


def key(segment: Segment) -> Key:
    return segment.site, segment.epoch, segment.batch


def read_all(reading: Reading, start: Offset, rows: int | None) -> list[list[Segment]]:
    """What a query takes, batch after batch, until there is nothing new."""
    taken = []
    while (end := reading.next_offset(start, rows=rows)) != start:
        taken.append(reading.between(start, end))
        start = end
    return taken


log_contents = st.dictionaries(
    st.tuples(st.sampled_from(SITES), st.integers(0, 2), st.integers(0, 4)),
    st.integers(0, 5),
    max_size=16,
)
fences = st.dictionaries(
    st.tuples(st.sampled_from(SITES), st.integers(0, 2)), st.integers(-1, 4), max_size=3
)


@settings(max_examples=40)
@given(
    contents=log_contents,
    fenced=fences,
    limit=st.none() | st.integers(1, 12),
    site=st.none() | st.sampled_from(SITES),
)
def test_every_segment_that_counts_is_taken_once_and_in_the_order_of_its_site(
    contents: dict[Key, int],
    fenced: dict[tuple[str, int], int],
    limit: int | None,
    site: str | None,
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        found_log(root)
        for name, epoch, batch in sorted(contents):
            publish(root, name, epoch, batch, contents[name, epoch, batch])
        for (name, epoch), last in fenced.items():
            Log(root).fence(name, epoch, last)
        reading = Reading(log=Log(root), stream=STREAM, site=site)
        taken = read_all(reading, {}, limit)
        counting = [
            each
            for each in sorted(contents)
            if site in (None, each[0]) and each[2] <= fenced.get(each[:2], each[2])
        ]
        found = [key(segment) for batch in taken for segment in batch]
        # Trailing segments without rows wait for rows; everything else is there, once.
        missing = set(counting) - set(found)
        assert sorted(found) == sorted(set(counting) - missing)
        assert all(contents[each] == 0 for each in missing)
        for name in SITES:
            of_site = [each for each in found if each[0] == name]
            assert of_site == sorted(of_site)
        for batch in taken:
            rows = sum(segment.rows for segment in batch)
            assert rows > 0
            with_rows = [segment for segment in batch if segment.rows]
            assert limit is None or rows <= limit or len(with_rows) == 1


def test_sites_take_turns(tmp_path: Path) -> None:
    for batch in range(4):
        publish(tmp_path, "fog-1", 0, batch, 10)
    publish(tmp_path, "fog-2", 0, 7, 10)
    reading = Reading(log=Log(tmp_path), stream=STREAM)
    taken = [[key(s) for s in batch] for batch in read_all(reading, {}, 20)]
    assert taken == [
        [("fog-1", 0, 0), ("fog-2", 0, 7)],
        [("fog-1", 0, 1), ("fog-1", 0, 2)],
        [("fog-1", 0, 3)],
    ]


def test_without_new_rows_the_offset_stays(tmp_path: Path) -> None:
    publish(tmp_path, "fog-1", 0, 0, 3)
    reading = Reading(log=Log(tmp_path), stream=STREAM)
    start = reading.next_offset({})
    assert start == {"fog-1": {"0": 0}}
    publish(tmp_path, "fog-1", 0, 1, 0)
    assert reading.next_offset(start) is start
    publish(tmp_path, "fog-1", 0, 2, 1)
    assert reading.next_offset(start) == {"fog-1": {"0": 2}}


def test_a_batch_that_was_decided_on_is_the_same_after_a_fence(tmp_path: Path) -> None:
    for batch in range(3):
        publish(tmp_path, "fog-1", 0, batch, 1)
    end = Reading(log=Log(tmp_path), stream=STREAM).next_offset({})
    Log(tmp_path).fence("fog-1", 0, 1)
    reading = Reading(log=Log(tmp_path), stream=STREAM)
    assert [s.batch for s in reading.between({}, end)] == [0, 1, 2]
    # But nobody goes on from there as if nothing had happened.
    with pytest.raises(LogError, match=r"batch 2 .* was read before .* fenced after batch 1"):
        reading.next_offset(end)


def test_a_segment_that_is_gone_is_missed(tmp_path: Path) -> None:
    segment = publish(tmp_path, "fog-1", 0, 0, 1)
    segment.folder.rename(tmp_path / "elsewhere")
    reading = Reading(log=Log(tmp_path), stream=STREAM)
    with pytest.raises(LogError, match="0/0/0 is gone"):
        reading.between({}, {"fog-1": {"0": 0}})


def test_files_are_packed_in_order_up_to_a_size(tmp_path: Path) -> None:
    segments = [publish(tmp_path, "fog-1", 0, batch, 5) for batch in range(5)]
    size = segments[0].file_bytes
    lots = pack_files(segments, 2 * size)
    assert [len(lot) for lot in lots] == [2, 2, 1]
    assert [file for lot in lots for file in lot] == [f for s in segments for f in s.files]
    assert [len(lot) for lot in pack_files(segments, 1)] == [1] * 5
    assert pack_files([], 1) == []


@pytest.mark.parametrize(
    "value",
    ["", "17", "[]", '{"fog-1": 3}', '{"../x": {"0": 1}}', '{"a": {"x": 1}}', '{"a": {"0": true}}'],
)
def test_what_is_no_offset_is_refused(value: Any) -> None:
    with pytest.raises(InvalidInput, match="start: got"):
        parse_offset(value)
