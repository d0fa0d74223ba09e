"""A log that was there and is not: nothing is begun anew in its place."""

import errno
from pathlib import Path

import pyarrow as pa
import pytest

import thalweg as tw
from thalweg.spark.deployment.hand_over import StartEpoch
from thalweg.spark.deployment.journal import Journal
from thalweg.spark.deployment.logs import open_logs
from thalweg.spark.deployment.spec import DeploymentSpec
from thalweg.spark.feed.gateway import Gateway
from thalweg.spark.log import Log
from thalweg.spark.log.disk import LogError
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


def test_a_log_of_a_time_without_marks_counts(tmp_path: Path) -> None:
    open_writer(tmp_path, founds=True).publish(0, ROWS)
    (tmp_path / ".log").unlink()
    assert is_log(tmp_path)
    open_writer(tmp_path, founds=False).publish(1, ROWS)


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
