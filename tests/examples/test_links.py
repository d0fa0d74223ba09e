"""The link of the example carries what a link has to carry."""

from __future__ import annotations

import importlib.util
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pytest

from examples.gallery import EXAMPLES
from thalweg.spark.link import LinkError
from thalweg.spark.link.envelope import make_mark
from thalweg.spark.link.receiver import LinkReceiver
from thalweg.spark.link.sender import LinkSender
from thalweg.spark.log.reader import Log, LogWriter

STREAM = "edges/clean+fares"


class Address:
    """As much of a `LinkSpec` as the link looks at: its kind is not installed here."""

    def __init__(self, path: Path) -> None:
        self.address = f"sqlite://{path}"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def open_link(tmp_path: Path) -> Callable[[], object]:
    module = load("custom_link")
    return lambda: module.SqliteLink(Address(tmp_path / "link.db"))


def marks(link: object) -> list[int]:
    return [envelope.batch for envelope in link.receive(0.0)]


def test_rows_of_two_sites_are_in_the_cloud_once(open_link, tmp_path):
    for site in ("fog-0", "fog-1"):
        writer = LogWriter(tmp_path / site, STREAM, site, epoch=0, durable=False)
        for batch in range(5):
            writer.publish(batch, pa.table({"ride": [10 * batch, 10 * batch + 1]}))
    with LinkReceiver(open_link(), tmp_path / "cloud", durable=False) as receiver:
        for again in (False, True):
            for site in ("fog-0", "fog-1"):
                with LinkSender(open_link(), tmp_path / site, site, resend=again) as sender:
                    sender.flush(epoch=0, batch=4 + again)
                receiver.wait_for(site, epoch=0, batch=4 + again)
        assert receiver.counts.repeated == 10
    for site in ("fog-0", "fog-1"):
        segments = [s for s in Log(tmp_path / "cloud").segments(STREAM) if s.site == site]
        assert [segment.batch for segment in segments] == list(range(5))
    assert Log(tmp_path / "cloud").read(STREAM).num_rows == 20


def test_a_reader_gets_all_in_order_and_nothing_again_that_it_has_acknowledged(open_link):
    with closing(open_link()) as sender:
        for batch in range(4):
            sender.send(make_mark("fog-0", 0, batch, {}))
        with closing(open_link()) as nobody:
            nobody.listen("reader")
            assert marks(nobody) == []
        assert sender.flush(1.0)
        with closing(open_link()) as first:
            first.listen("reader")
            assert marks(first) == [0, 1, 2, 3]
            first.acknowledge()
        sender.send(make_mark("fog-0", 0, 4, {}))
        assert sender.flush(1.0)
    for reader, expected in (("reader", [4]), ("another", [0, 1, 2, 3, 4]), ("reader", [4])):
        with closing(open_link()) as link:
            link.listen(reader)
            assert marks(link) == expected


def test_an_outage_is_waited_out(open_link, tmp_path):
    with closing(open_link()) as sender, closing(open_link()) as receiver:
        receiver.listen("reader")
        with closing(sqlite3.connect(tmp_path / "link.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            sender.send(make_mark("fog-0", 0, 0, {}))
            assert not sender.flush(0.05)
            assert "locked" in sender.problem
            assert marks(receiver) == []
        assert sender.flush(1.0)
        assert sender.problem == ""
        assert marks(receiver) == [0]


def test_a_database_that_cannot_be_opened_is_told_by_its_address(tmp_path):
    with pytest.raises(LinkError, match=r"sqlite:///.*no-folder"):
        load("custom_link").SqliteLink(Address(tmp_path / "no-folder" / "link.db"))
