"""A log that was there and is not: nothing is begun anew in its place."""

import errno
import shutil
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pytest

import thalweg as tw
from thalweg.spark.deployment.hand_over import StartEpoch
from thalweg.spark.deployment.journal import Journal
from thalweg.spark.deployment.logs import open_logs
from thalweg.spark.deployment.spec import DeploymentSpec
from thalweg.spark.feed.gateway import Gateway
from thalweg.spark.log import Log
from thalweg.spark.log.disk import Disk, LogError
from thalweg.spark.log.founding import found_log, is_log, require_log
from thalweg.spark.log.plan import Reading
from thalweg.spark.log.writer import LogWriter
from thalweg.spark.query.queries import check_query

ROWS = pa.table({"n": [1, 2]})


def open_writer(root: Path, *, founds: bool) -> LogWriter:
    return LogWriter(root, "sources/rides", "fog-1", 0, durable=False, founds=founds)


def test_a_folder_is_a_log_when_it_was_founded(tmp_path: Path) -> None:
    root = tmp_path / "log"
    assert not is_log(root)
    found_log(root)
    found_log(root)
    assert is_log(root)
    assert [file.name for file in root.iterdir()] == [".log"]
    require_log(root)
    assert Log(root).streams("sources") == []


def test_folders_alone_are_no_log(tmp_path: Path) -> None:
    """Whoever writes at the moment at which a disk goes may leave some where it was."""
    (tmp_path / "edges").mkdir()
    (tmp_path / "sources").mkdir()
    assert not is_log(tmp_path)
    with pytest.raises(LogError, match="there is no log"):
        open_writer(tmp_path, founds=False)


class DiskThatGoes(Disk):
    """A disk that goes away at one of the calls that write, however many there are."""

    def __init__(self, root: Path, at_call: int, *, leaves_a_folder: bool) -> None:
        super().__init__(durable=True)
        self.root, self.away = root, root.with_name("away")
        self.at_call, self.calls = at_call, 0
        self.leaves_a_folder = leaves_a_folder

    @property
    def gone(self) -> bool:
        return self.away.exists()

    def go_if_due(self) -> None:
        self.calls += 1
        if self.calls == self.at_call:
            self.root.rename(self.away)
            if self.leaves_a_folder:
                # The worst of all: what others have left there in the same outage.
                shutil.copytree(self.away, self.root, ignore=shutil.ignore_patterns(".log"))

    def come_back(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)
        self.away.rename(self.root)

    def make_folder(self, path: Path) -> None:
        self.go_if_due()
        super().make_folder(path)

    def create(self, path: Path) -> BinaryIO:
        self.go_if_due()
        return super().create(path)

    def sync_folder(self, path: Path) -> None:
        self.go_if_due()
        super().sync_folder(path)

    def rename(self, source: Path, target: Path) -> None:
        self.go_if_due()
        super().rename(source, target)


@pytest.mark.parametrize("leaves_a_folder", [False, True])
@pytest.mark.parametrize("at_call", range(1, 15))
def test_a_log_that_goes_while_rows_are_written_takes_them_or_says_no(
    tmp_path: Path, at_call: int, leaves_a_folder: bool
) -> None:
    root = tmp_path / "log"
    found_log(root)
    disk = DiskThatGoes(root, at_call, leaves_a_folder=leaves_a_folder)
    taken = 0
    for batch in range(2):
        try:
            writer = LogWriter(root, "sources/rides", "fog-1", 0, founds=False, disk=disk)
            writer.publish(batch, ROWS)
        except (LogError, OSError):
            assert disk.gone
            break
        taken += 1
    assert disk.gone, "it never went"
    assert not is_log(root)
    disk.come_back()
    there = Log(root).read("sources/rides").num_rows
    # What was taken is there; of what was not, all or nothing is.
    assert there in (2 * taken, 2 * (taken + 1))
    again = open_writer(root, founds=False)
    for batch in range(2):
        again.publish(batch, ROWS)
    assert Log(root).read("sources/rides").num_rows == 4


@pytest.mark.parametrize("leaves_a_folder", [False, True])
@pytest.mark.parametrize("at_call", range(1, 8))
def test_an_epoch_is_fenced_in_the_log_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_call: int, leaves_a_folder: bool
) -> None:
    root = tmp_path / "log"
    writer = LogWriter(root, "edges/a+b", "fog-1", 0, durable=False)
    writer.publish(0, ROWS)
    disk = DiskThatGoes(root, at_call, leaves_a_folder=leaves_a_folder)
    monkeypatch.setattr("thalweg.spark.log.reader.Disk", lambda: disk)
    log, fence = Log(root), None
    with suppress(LogError, OSError):
        fence = log.fence("fog-1", 0)
    assert disk.gone, "it never went"
    disk.come_back()
    found = Log(root).find_fence("fog-1", 0)
    assert fence is None or fence == found
    assert found is None or found.last_batch == 0
    assert log.fence("fog-1", 0).last_batch == 0
    assert Log(root).read("edges/a+b").num_rows == 2


@pytest.mark.parametrize("left", ["nothing", "a folder"])
def test_nothing_is_written_where_a_log_was(tmp_path: Path, left: str) -> None:
    root = tmp_path / "log"
    writer = open_writer(root, founds=True)
    writer.publish(0, ROWS)
    root.rename(tmp_path / "away")
    if left == "a folder":
        root.mkdir()
    for write in (
        lambda: writer.publish(1, ROWS),
        lambda: open_writer(root, founds=False),
        lambda: Log(root).fence("fog-1", 0),
        lambda: Gateway(root, "rides", "fog-1"),
    ):
        with pytest.raises(LogError, match=r"there is no log .* its disk is away"):
            write()
    assert not root.exists() or list(root.iterdir()) == []
    if left == "a folder":
        root.rmdir()
    (tmp_path / "away").rename(root)
    assert writer.publish(1, ROWS).batch == 1
    assert Log(root).read("sources/rides").num_rows == 4


@pytest.mark.parametrize("left", ["nothing", "a folder"])
def test_a_reader_does_not_take_a_log_that_is_away_for_one_that_is_read(
    tmp_path: Path, left: str
) -> None:
    """Else it would believe that time may go on, and its rows would be too late later."""
    root = tmp_path / "log"
    writer = open_writer(root, founds=True)
    for batch in range(3):
        writer.publish(batch, ROWS)
    reading = Reading(log=Log(root), stream="sources/rides")
    read = reading.next_offset({}, rows=2)
    assert read == {"fog-1": {"0": 0}}
    root.rename(tmp_path / "away")
    if left == "a folder":
        root.mkdir()
    for start in (read, {}):
        with pytest.raises(LogError, match="there is no log"):
            reading.next_offset(start)
    if left == "a folder":
        root.rmdir()
    (tmp_path / "away").rename(root)
    assert reading.next_offset(read) == {"fog-1": {"0": 2}}


def test_an_epoch_that_was_read_and_is_gone_is_told(tmp_path: Path) -> None:
    open_writer(tmp_path, founds=True).publish(0, ROWS)
    reading = Reading(log=Log(tmp_path), stream="sources/rides")
    with pytest.raises(LogError, match="epoch 4 of fog-9 in sources/rides was there, and is gone"):
        reading.next_offset({"fog-9": {"4": 17}})
    alone = Reading(log=Log(tmp_path), stream="sources/rides", site="fog-1")
    assert alone.next_offset({"fog-9": {"4": 17}})["fog-1"] == {"0": 0}


def test_a_disk_that_does_not_answer_is_an_error_for_people(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_path: Path, *_: object, **__: object) -> bool:
        raise OSError(errno.EIO, "Input/output error", str(tmp_path))

    monkeypatch.setattr(Path, "is_file", fail)
    with pytest.raises(LogError, match="cannot read the log"):
        is_log(tmp_path)


@pytest.mark.parametrize("link", [None, "kafka://127.0.0.1:9092/rides"])
def test_a_deployment_goes_on_with_its_logs_or_not_at_all(tmp_path: Path, link: str | None) -> None:
    spec = DeploymentSpec(pipeline="a:b", folder=tmp_path, fogs=("fog-1",), link=link)
    open_logs(spec)
    assert is_log(spec.log)
    assert is_log(spec.log_of("fog-1"))
    with Journal(spec.journal) as journal:
        journal.write(StartEpoch(site="fog-1", epoch=0, cut=(), start=None))
    open_logs(spec)
    spec.log.rename(tmp_path / "away")
    with pytest.raises(LogError, match="its disk is away"):
        open_logs(spec)
    assert not spec.log.exists()
    (tmp_path / "away").rename(spec.log)
    open_logs(spec)


def test_a_query_is_refused_without_its_log(tmp_path: Path) -> None:
    spec = DeploymentSpec(
        pipeline="thalweg.spark.examples.taxi:taxi_fares", folder=tmp_path, fogs=("fog-1",)
    )
    with pytest.raises(tw.InvalidInput, match="the folder of a log"):
        check_query(spec.query("cloud", 0))
    assert not spec.log.exists()
