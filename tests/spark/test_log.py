from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
import threading
import tracemalloc
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark.log_and_die import EPOCH, SITE, STREAM, publish_both, rows_of
from thalweg.errors import InvalidInput
from thalweg.spark.log import epoch as log_epoch
from thalweg.spark.log.disk import Disk
from thalweg.spark.log.epoch import list_batches
from thalweg.spark.log.fingerprint import hash_rows
from thalweg.spark.log.founding import found_log
from thalweg.spark.log.names import EpochPlace
from thalweg.spark.log.reader import (
    Fenced,
    Log,
    LogError,
    LogWriter,
    ReplayDiffers,
    edge_stream,
    sink_stream,
    source_stream,
)


def open_writer(root: Path, epoch: int = EPOCH, site: str = SITE, **options: Any) -> LogWriter:
    return LogWriter(root, STREAM, site, epoch, durable=False, **options)


def numbers_in_log(root: Path, site: str | None = None) -> list[int]:
    table = Log(root).read(STREAM, site)
    return table["number"].to_pylist() if table.num_columns else []


def numbers_of(*batches: int) -> list[int]:
    return [number for batch in batches for number in rows_of(batch)["number"].to_pylist()]


def drafts_in(root: Path) -> list[Path]:
    """Everything below the gates that is not a gate, a fence, or the folder for drafts."""
    kept = {"open", "closed", "fence", "fence.json", STREAM.partition("/")[2], "rides"}
    gates = root.glob("*/.gates/*/*/**/*")
    return [path for path in gates if path.name not in kept] + list(root.glob("*/.gates/*/.*"))


# Publishing


def test_rows_come_back_in_the_order_of_batches_and_counters_without_opening_them(
    tmp_path: Path,
) -> None:
    writer = open_writer(tmp_path, time="when")
    when = [datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC), None]
    table = pa.table({"number": [3, 1, 2], "when": pa.array(when, pa.timestamp("ms", "UTC"))})
    published = writer.publish(7, table)
    writer.publish(12, table)
    assert Log(tmp_path).read(STREAM).equals(pa.concat_tables([table, table]))
    for file in published.files:
        file.unlink()
    first, second = Log(tmp_path).segments(STREAM)
    assert first == published
    assert (first.batch, second.batch) == (7, 12)
    assert (first.rows, first.data_bytes) == (3, table.nbytes)
    assert first.file_bytes > 0
    assert first.earliest_us == 1_767_225_600_000_000
    assert first.latest_us == first.earliest_us + 86_400_000_000
    assert first.columns == {"number": "int64", "when": "timestamp[ms, tz=UTC]"}


def test_a_batch_without_rows_is_a_segment_without_files(tmp_path: Path) -> None:
    segment = open_writer(tmp_path, time="number").publish(0, rows_of(0).slice(0, 0))
    assert (segment.rows, segment.files, segment.earliest_us) == (0, [], None)
    assert numbers_in_log(tmp_path) == []
    assert Log(tmp_path).end(STREAM) == {SITE: {"0": 0}}


@pytest.mark.parametrize("compression", ["none", "lz4", "zstd"])
def test_every_compression_gives_the_same_rows(compression: str, tmp_path: Path) -> None:
    open_writer(tmp_path, compression=compression).publish(0, rows_of(0))
    assert Log(tmp_path).read(STREAM).equals(rows_of(0))


def test_publishing_a_batch_again_changes_nothing(tmp_path: Path) -> None:
    first = open_writer(tmp_path).publish(4, rows_of(4))
    before = {path: path.stat().st_mtime_ns for path in first.folder.iterdir()}
    # By another writer, after a restart, and with the rows in another order.
    table = rows_of(4)
    again = open_writer(tmp_path).publish(4, table.take(list(range(499, -1, -1))))
    assert again == first
    assert {path: path.stat().st_mtime_ns for path in first.folder.iterdir()} == before
    assert numbers_in_log(tmp_path) == numbers_of(4)
    assert drafts_in(tmp_path) == []


def test_a_replay_with_other_rows_is_refused_and_says_what_differs(tmp_path: Path) -> None:
    writer = open_writer(tmp_path)
    writer.publish(4, rows_of(4))
    with pytest.raises(ReplayDiffers, match=r"batch 4 of edges/.*from fog-1.*other rows: 500, now"):
        writer.publish(4, rows_of(4).slice(1))
    changed = rows_of(4).set_column(0, "number", pa.array([0, *range(4001, 4500)]))
    with pytest.raises(ReplayDiffers, match=r"other fingerprint.*random numbers"):
        writer.publish(4, changed)
    with pytest.raises(ReplayDiffers, match="other columns"):
        writer.publish(4, rows_of(4).rename_columns(["number", "words"]))
    assert numbers_in_log(tmp_path) == numbers_of(4)
    assert drafts_in(tmp_path) == []


def test_a_sum_that_differs_in_its_last_digit_is_the_same_replay(tmp_path: Path) -> None:
    writer = open_writer(tmp_path)
    first = writer.publish(0, pa.table({"fare": [0.1 + 0.2 + 0.3]}))
    assert writer.publish(0, pa.table({"fare": [0.3 + 0.2 + 0.1]})) == first
    with pytest.raises(ReplayDiffers):
        writer.publish(0, pa.table({"fare": [0.61]}))


def test_a_batch_cannot_appear_before_one_that_readers_may_have_passed(tmp_path: Path) -> None:
    open_writer(tmp_path).publish(5, rows_of(5))
    with pytest.raises(LogError, match=r"batch 3 .* batch 5 is published already"):
        open_writer(tmp_path).publish(3, rows_of(3))


def test_a_newer_writer_takes_over_from_an_older(tmp_path: Path) -> None:
    older = open_writer(tmp_path)
    with pytest.raises(LogError, match="a newer writer has taken over"), older.drafting(0) as draft:
        newer = open_writer(tmp_path)
        older.commit(0, draft, [], columns={}, hash_kind="arrow")
    assert numbers_in_log(tmp_path) == []
    newer.publish(0, rows_of(0))
    assert older.publish(0, rows_of(0)).rows == 500
    assert numbers_in_log(tmp_path) == numbers_of(0)


scalars = {
    "number": (st.integers(-3, 3), pa.int64()),
    "small": (st.integers(0, 2), pa.uint8()),
    "share": (st.sampled_from([0.0, 0.5, -1.5, 1e300]), pa.float64()),
    "text": (st.text("ab", max_size=2), pa.string()),
    "raw": (st.binary(max_size=1), pa.binary()),
    "known": (st.booleans(), pa.bool_()),
    "when": (
        # Arrow knows no fold: with another one it is the same time.
        st.datetimes(datetime(2026, 1, 1), datetime(2026, 1, 2)).map(lambda at: at.replace(fold=0)),
        pa.timestamp("us"),
    ),
    "tail": (st.lists(st.integers(0, 1), max_size=2), pa.list_(pa.int32())),
}
schema = pa.schema([(name, kind) for name, (_, kind) in scalars.items()])
row = st.fixed_dictionaries({name: st.none() | values for name, (values, _) in scalars.items()})


@given(data=st.data())
def test_fingerprints_are_equal_where_the_rows_are_in_any_order(data: st.DataObject) -> None:
    rows = data.draw(st.lists(row, max_size=6))
    others = data.draw(st.permutations(rows) | st.lists(row, max_size=6))
    if rows and data.draw(st.booleans()):
        name = data.draw(st.sampled_from(sorted(scalars)))
        others = [*rows[1:], {**rows[0], name: data.draw(st.none() | scalars[name][0])}]
    first, second = (pa.RecordBatch.from_pylist(list(each), schema) for each in (rows, others))
    same = Counter(map(repr, rows)) == Counter(map(repr, others))
    assert (hash_rows(first) == hash_rows(second)) == same


def test_equal_rows_do_not_cancel_each_other() -> None:
    one, two = pa.record_batch({"a": [1, 1]}), pa.record_batch({"a": [2, 2]})
    assert hash_rows(one) != hash_rows(two)


# Fences


def test_nothing_is_published_in_an_epoch_that_is_fenced(tmp_path: Path) -> None:
    writer, next_writer = open_writer(tmp_path, 3), open_writer(tmp_path, 4)
    other_site = open_writer(tmp_path, 3, "fog-2")
    source = LogWriter(tmp_path, "sources/rides", SITE, 3)
    writer.publish(0, rows_of(0))
    fence = Log(tmp_path).fence(SITE, 3, 0)
    assert fence.last_batch == 0
    with pytest.raises(Fenced, match=r"batch 1 .* epoch 3 has been fenced"):
        writer.publish(1, rows_of(1))
    with pytest.raises(Fenced):
        open_writer(tmp_path, 3).publish(1, rows_of(1))
    next_writer.publish(0, rows_of(2))
    other_site.publish(1, rows_of(3))
    # Raw rows have batches of their own.
    source.publish(1, rows_of(1))
    assert numbers_in_log(tmp_path) == numbers_of(0, 2, 3)
    assert Log(tmp_path).end(STREAM) == {SITE: {"3": 0, "4": 0}, "fog-2": {"3": 1}}
    assert drafts_in(tmp_path) == []


def test_a_batch_under_way_when_its_epoch_is_fenced_is_not_published(tmp_path: Path) -> None:
    writer = open_writer(tmp_path)
    with pytest.raises(Fenced), writer.drafting(0) as draft:
        Log(tmp_path).fence(SITE, EPOCH)
        writer.commit(0, draft, [], columns={}, hash_kind="arrow")
    assert list(Log(tmp_path).segments(STREAM, fenced=True)) == []


def test_an_epoch_that_nobody_has_begun_can_be_fenced(tmp_path: Path) -> None:
    found_log(tmp_path)
    assert Log(tmp_path).fence(SITE, EPOCH).last_batch == -1
    with pytest.raises(Fenced):
        open_writer(tmp_path).publish(0, rows_of(0))


def test_readers_leave_out_what_is_beyond_a_fence(tmp_path: Path) -> None:
    writer = open_writer(tmp_path)
    for batch in range(3):
        writer.publish(batch, rows_of(batch))
    log = Log(tmp_path)
    log.fence(SITE, EPOCH, 1)
    # Smuggled past the gate, as a store without an atomic rename would let it.
    place = EpochPlace(root=tmp_path, stream=STREAM, site=SITE, epoch=EPOCH)
    (place.folder / "0" / "2").rename(place.folder / "0" / "9")
    for reader in (log, Log(tmp_path)):
        assert [segment.batch for segment in reader.segments(STREAM)] == [0, 1]
        assert [s.batch for s in reader.segments(STREAM, fenced=True)] == [0, 1, 9]
        assert reader.end(STREAM) == {SITE: {"0": 1}}


def test_to_fence_again_changes_nothing_and_elsewhere_is_refused(tmp_path: Path) -> None:
    writer = open_writer(tmp_path)
    writer.publish(0, rows_of(0))
    writer.publish(1, rows_of(1))
    fence = Log(tmp_path).fence(SITE, EPOCH)
    assert fence.last_batch == 1
    assert Log(tmp_path).fence(SITE, EPOCH) == Log(tmp_path).fence(SITE, EPOCH, 1) == fence
    with pytest.raises(LogError, match="fenced after batch 1 already"):
        Log(tmp_path).fence(SITE, EPOCH, 0)


def test_a_fence_that_was_interrupted_is_finished_by_the_next(tmp_path: Path) -> None:
    open_writer(tmp_path).publish(0, rows_of(0))
    gate = EpochPlace(root=tmp_path, stream=STREAM, site=SITE, epoch=EPOCH).gate
    (gate / "open").rename(gate / "closed")
    (gate / ".fence-of-one-who-died").mkdir()
    with pytest.raises(Fenced):
        open_writer(tmp_path).publish(1, rows_of(1))
    assert Log(tmp_path).fence(SITE, EPOCH).last_batch == 0
    assert drafts_in(tmp_path) == []


@pytest.mark.parametrize("turn", range(8))
def test_a_fence_counts_exactly_what_its_writer_has_published(turn: int, tmp_path: Path) -> None:
    """A race: the writer runs as fast as it can, and the fence comes when it comes."""
    writer = open_writer(tmp_path)
    done: list[int] = []
    begun = threading.Event()

    def write() -> None:
        table = rows_of(0).slice(0, 1)
        for batch in range(100_000):
            try:
                writer.publish(batch, table)
            except Fenced:
                return
            done.append(batch)
            if batch == turn:
                begun.set()

    thread = threading.Thread(target=write)
    thread.start()
    assert begun.wait(60)
    fence = Log(tmp_path).fence(SITE, EPOCH)
    thread.join(60)
    assert not thread.is_alive()
    assert done == list(range(fence.last_batch + 1))
    assert [s.batch for s in Log(tmp_path).segments(STREAM, fenced=True)] == done


# Looking


def test_a_folder_that_changes_while_it_is_listed_hides_no_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = open_writer(tmp_path)
    for batch in range(7):
        writer.publish(batch, rows_of(batch).slice(0, 1))
    real = log_epoch.names_in
    hidden = [["5"], []]

    def listing(folder: Path) -> list[str]:
        if folder.name == "0" and folder.parent.name == "0":
            gone = hidden.pop(0) if hidden else []
            return [name for name in real(folder) if name not in gone]
        return real(folder)

    monkeypatch.setattr(log_epoch, "names_in", listing)
    assert list_batches(writer.place, 3) == [4, 5, 6]


def test_what_a_reader_has_not_passed_is_read_once(tmp_path: Path) -> None:
    writer = open_writer(tmp_path)
    for batch in range(3):
        writer.publish(batch, rows_of(batch))
    log = Log(tmp_path)
    first = list(log.segments(STREAM))
    for segment in first:
        (segment.folder / "manifest.json").unlink()
    assert list(log.segments(STREAM)) == first
    assert list(log.segments(STREAM, after={SITE: {str(EPOCH): 1}})) == first[2:]
    # What was passed is looked for again, should anybody go back.
    with pytest.raises(LogError, match=r"cannot read the log"):
        list(log.segments(STREAM))


def test_a_reader_that_follows_a_stream_keeps_nothing_of_what_it_has_read(tmp_path: Path) -> None:
    writer, log = open_writer(tmp_path), Log(tmp_path)

    def follow(batches: range) -> None:
        for batch in batches:
            writer.publish(batch, rows_of(batch))
            after = {SITE: {str(EPOCH): batch - 1}}
            assert [s.batch for s in log.segments(STREAM, after=after)] == [batch]

    tracemalloc.start()
    try:
        follow(range(200))
        before, _ = tracemalloc.get_traced_memory()
        follow(range(200, 800))
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # A segment that is remembered has more than a thousand bytes.
    assert after - before < 600 * 200


def test_strange_names_in_the_log_are_nobody(tmp_path: Path) -> None:
    writer = open_writer(tmp_path)
    for batch in (0, 998, 999, 1000, 2500):
        writer.publish(batch, rows_of(0).slice(0, 1))
    for name in (".DS_Store", "007", "x", "²"):
        (writer.place.folder / name).mkdir()
        (writer.place.folder / "0" / name).mkdir()
    (tmp_path / STREAM / ".hidden").mkdir()
    (tmp_path / "edges" / "..x").mkdir()
    log = Log(tmp_path)
    assert [s.batch for s in log.segments(STREAM)] == [0, 998, 999, 1000, 2500]
    after = {SITE: {"0": 998}}
    assert [s.batch for s in log.segments(STREAM, after=after)] == [999, 1000, 2500]
    assert log.streams("edges") == [STREAM]
    assert log.streams("sinks") == []


def test_a_manifest_or_rows_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    segment = open_writer(tmp_path).publish(0, rows_of(0))
    (file,) = segment.files
    file.write_bytes(b"no rows")
    with pytest.raises(LogError, match=re.escape(str(file))):
        Log(tmp_path).read(STREAM)
    file.unlink()
    with pytest.raises(LogError, match=re.escape(f"{file}: No such file")):
        Log(tmp_path).read(STREAM)
    (segment.folder / "manifest.json").write_text("{}")
    with pytest.raises(LogError, match=r"manifest.json is no manifest"):
        list(Log(tmp_path).segments(STREAM))


# Names

names = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,4}", fullmatch=True).filter(
    lambda name: ".." not in name
)


@given(one=st.tuples(names, names), other=st.tuples(names, names))
def test_no_two_edges_share_a_stream(one: tuple[str, str], other: tuple[str, str]) -> None:
    assert (edge_stream(*one) == edge_stream(*other)) == (one == other)


def test_an_edge_cannot_be_forged_by_names_with_dashes() -> None:
    assert edge_stream("a--b", "c") != edge_stream("a", "b--c")
    assert {source_stream("a"), sink_stream("a")} == {"sources/a", "sinks/a"}


@pytest.mark.parametrize(
    "stream",
    ["edges", "edges/", "/x", "edges/../x", "../edges/x", "edges/a+b+c", "edges/+b", "a/b/c", 7],
)
def test_what_is_no_stream_is_refused(stream: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="stream: got"):
        LogWriter(tmp_path, stream, SITE, 0)
    with pytest.raises(InvalidInput, match="stream: got"):
        list(Log(tmp_path).segments(stream))
    assert list(tmp_path.iterdir()) == []


def test_all_defects_of_a_writer_are_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as caught:
        LogWriter(tmp_path, "x", "../fog", -1, compression="lzma")
    assert [d.path for d in caught.value.defects] == ["stream", "site", "epoch", "compression"]
    with pytest.raises(InvalidInput) as caught:
        open_writer(tmp_path, time="when").publish(True, rows_of(0))
    assert [d.path for d in caught.value.defects] == ["batch", "table"]
    with pytest.raises(InvalidInput) as caught:
        Log(tmp_path).fence("..", 1.5, -2)  # type: ignore[arg-type]
    assert [d.path for d in caught.value.defects] == ["site", "epoch", "last_batch"]
    for make in (edge_stream, lambda *_: source_stream("a b"), lambda *_: sink_stream("")):
        with pytest.raises(InvalidInput):
            make("a/b", "c")


# Disks that fail, and writers that are killed


class FailingDisk(Disk):
    """A disk of which one call fails."""

    def __init__(self, good_calls: int, code: int) -> None:
        super().__init__(durable=False)
        self._good_calls = good_calls
        self._code = code
        self.failed_at: Path | None = None

    def _step(self, path: Path) -> None:
        if self._good_calls == 0:
            self.failed_at = path
            raise OSError(self._code, os.strerror(self._code), str(path))
        self._good_calls -= 1

    def make_folder(self, path: Path) -> None:
        self._step(path)
        super().make_folder(path)

    def create(self, path: Path) -> BinaryIO:
        self._step(path)
        return super().create(path)

    def sync_file(self, file: BinaryIO) -> None:
        super().sync_file(file)
        self._step(Path(file.name))

    def sync_folder(self, path: Path) -> None:
        self._step(path)
        super().sync_folder(path)

    def rename(self, source: Path, target: Path) -> None:
        self._step(target)
        super().rename(source, target)


@pytest.mark.parametrize(("code", "words"), [(errno.ENOSPC, "free some"), (errno.EROFS, "mount")])
def test_a_disk_that_fails_anywhere_is_named_with_the_cause(
    code: int, words: str, tmp_path: Path
) -> None:
    for good_calls in range(200):
        root = tmp_path / str(good_calls)
        disk = FailingDisk(good_calls, code)
        try:
            publish_both(root, disk)
        except LogError as error:
            text = str(error)
            assert str(disk.failed_at) in text
            assert os.strerror(code) in text
            assert words in text
        else:
            break
        found = numbers_in_log(root)
        assert found in ([], numbers_of(0), numbers_of(0, 1))
        publish_both(root)
        assert numbers_in_log(root) == numbers_of(0, 1)
        assert drafts_in(root) == []
    # As many calls as one publishes with; else the disk was never asked.
    assert 15 < good_calls < 199


def test_a_file_where_the_log_should_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("mine")
    with pytest.raises(LogError, match=r"cannot write to the log: .*log.*: Not a directory. Hint"):
        open_writer(tmp_path / "log")
    with pytest.raises(LogError, match=r"cannot read the log: .*: Not a directory"):
        list(Log(tmp_path / "log").segments(STREAM))


def test_a_writer_killed_before_any_call_leaves_whole_batches_or_none(tmp_path: Path) -> None:
    program = Path(__file__).with_name("log_and_die.py")
    environment = os.environ | {"PYTHONPATH": str(program.parents[1])}
    ended = subprocess.run(
        [sys.executable, program, tmp_path], env=environment, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr
    calls = int(ended.stdout)
    left = Counter[int]()
    for lives in range(calls + 1):
        root = tmp_path / str(lives)
        found = numbers_in_log(root)
        assert found in ([], numbers_of(0), numbers_of(0, 1))
        left[len(found)] += 1
        fresh = lives % 2 == 0
        if fresh:
            # The next writer finishes what the killed one began.
            publish_both(root)
            assert numbers_in_log(root) == numbers_of(0, 1)
        else:
            # Or its epoch ends, and another goes on.
            Log(root).fence(SITE, EPOCH)
            writer = open_writer(root, EPOCH + 1)
            rest = [batch for batch in (0, 1) if numbers_of(batch)[0] not in found]
            for batch in rest:
                writer.publish(batch, rows_of(batch))
            assert numbers_in_log(root) == numbers_of(0, 1)
        assert drafts_in(root) == []
    # Killed before the first batch, between the two, and after the second but before the end.
    assert left[0] > 10
    assert left[500] > 10
    assert left[1000] >= 1
