from __future__ import annotations

import errno
import json
import random
import tempfile
import threading
import time
from collections.abc import Iterator
from importlib.metadata import EntryPoint, EntryPoints
from itertools import islice
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark.memory_link import MemoryLink, Wire
from thalweg.errors import InvalidInput
from thalweg.spark.link import LinkError, LinkGap, LinkSpec, link_kinds, open_link, parse_link
from thalweg.spark.link import link as link_module
from thalweg.spark.link import receiver as receiver_module
from thalweg.spark.link.arrival import Arrivals, LinkCounts, has_arrived
from thalweg.spark.link.directory import DirectoryLink
from thalweg.spark.link.envelope import Envelope, make_envelope, make_mark
from thalweg.spark.link.receiver import LinkReceiver
from thalweg.spark.link.sender import LinkSender
from thalweg.spark.log.disk import Disk
from thalweg.spark.log.epoch import close_gate, make_gate
from thalweg.spark.log.founding import found_log
from thalweg.spark.log.names import EpochPlace, gate_folder
from thalweg.spark.log.reader import Log, LogError, LogWriter, ReplayDiffers, Segment
from thalweg.spark.log.segment import Part

ROWS, OTHER, CLOCK = "edges/clean+rank", "edges/clean+count", "edges/clock"
SITE = "fog-1"


def publish(
    root: Path, batch: int, stream: str = ROWS, *, epoch: int = 0, site: str = SITE, rows: int = 3
) -> None:
    numbers = range(batch * 1000, batch * 1000 + rows)
    table = pa.table({"number": list(numbers), "site": [site] * rows})
    LogWriter(root, stream, site, epoch, time="number", durable=False).publish(batch, table)


def envelopes_of(root: Path, stream: str = ROWS, site: str = SITE) -> list[Envelope]:
    """All segments of a site in one stream, as a sender would put them."""
    found: list[Envelope] = []
    for segment in Log(root).segments(stream, site):
        same = [each.batch for each in found if each.epoch == segment.epoch]
        found.append(make_envelope(segment, same[-1] if same else -1))
    return found


def rows_in(root: Path, stream: str = ROWS, site: str | None = None) -> list[dict[str, object]]:
    return Log(root).read(stream, site).to_pylist()


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return tmp_path / "site"


@pytest.fixture
def cloud(tmp_path: Path) -> Path:
    return tmp_path / "cloud"


# Addresses


@pytest.mark.parametrize("text", ["directory", "directory:///mnt/log", "kafka://a.b:1/t_x.Y-1"])
def test_a_link_is_what_its_text_says(text: str) -> None:
    spec = parse_link(text)
    assert spec.kind == text.partition(":")[0]
    assert spec.ships == ("://" in text)
    assert (spec.address or "directory") == text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "kafka://host:port/topic"),
        ("kafka", "kafka://host:port/topic"),
        ("kafak://a:9092/t", 'did you mean "kafka"'),
        ("kafka://a/t", "'a' is no host:port"),
        ("kafka://a:99999/t", "'a:99999' is no host:port"),
        ("kafka://a:9092,b/t", "'b' is no host:port"),
        ("kafka://a:9092", "the topic is missing"),
        ("kafka://a:9092/t/u", "'t/u' is no topic"),
        ("kafka://a:9092/..", "'..' is no topic"),
        ("kafka://[::1/t", "kafka://host:9092/topic"),
        ("kafka://a:9092/t?acks=0", "Thalweg sets this itself"),
        ("kafka://a:9092/t?sasl.password=hunter2", "no secret in an address"),
        ("directory://mnt/log", "three slashes"),
        ("directory://", "three slashes"),
    ],
)
def test_an_address_that_is_none_is_refused_with_the_reason(text: str, said: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_link(text)
    assert said in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_all_that_is_wrong_with_an_address_is_said_at_once() -> None:
    with pytest.raises(InvalidInput) as caught:
        LinkSpec(kind="kafka", address="kafka://a,b/?acks=0")
    assert len(caught.value.defects) == 4


def test_a_link_that_ships_nothing_cannot_be_opened() -> None:
    with pytest.raises(InvalidInput, match="needs no sender"):
        open_link(LinkSpec())


def test_another_package_can_bring_a_link_as_one_class(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("memory", "builtins:repr", "thalweg.links")

    def find(**wanted: str) -> EntryPoints:
        return EntryPoints([point]).select(**wanted)

    monkeypatch.setattr(link_module, "entry_points", find)
    assert link_kinds() == ["directory", "kafka", "memory"]
    spec = parse_link("memory://x")
    assert open_link(spec) == repr(spec)
    with pytest.raises(InvalidInput, match="such as memory://"):
        LinkSpec(kind="memory", address="disk://x")


# Envelopes


def test_an_envelope_comes_out_as_it_went_in(site: Path) -> None:
    publish(site, 0)
    publish(site, 7)
    for envelope in envelopes_of(site):
        assert Envelope.from_bytes(envelope.to_bytes()) == envelope
        assert envelope.rows == 3


def test_an_envelope_that_was_changed_or_cut_is_refused(site: Path) -> None:
    publish(site, 0)
    data = envelopes_of(site)[0].to_bytes()
    rng = random.Random(7)  # noqa: S311
    for position in (0, 5, 9, len(data) - 1, *(rng.randrange(len(data)) for _ in range(50))):
        changed = bytearray(data)
        changed[position] ^= 1 << rng.randrange(8)
        with pytest.raises(LinkError):
            Envelope.from_bytes(bytes(changed))
    for length in (0, 3, 20, len(data) - 1):
        with pytest.raises(LinkError):
            Envelope.from_bytes(data[:length])


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("stream", "edges/../../etc"),
        ("site", "../up"),
        ("epoch", -1),
        ("batch", "x"),
        ("file", "../../escaped"),
        ("file", "manifest.json"),
        ("file_bytes", 1),
    ],
)
def test_an_envelope_cannot_name_a_place_outside_its_segment(
    site: Path, field: str, value: object
) -> None:
    publish(site, 0)
    envelope = envelopes_of(site)[0]
    head = {
        name: getattr(envelope, name)
        for name in ("stream", "site", "epoch", "batch", "columns", "hash_kind")
    }
    part = {"file": "rows.arrow", "rows": 3, "file_bytes": len(envelope.body)}
    part |= {"data_bytes": 1, "hash_sum": 0}
    (part if field in part else head)[field] = value
    with pytest.raises(InvalidInput, match=field if field != "file_bytes" else "body"):
        Envelope(**head, parts=(Part(**part),), body=envelope.body)  # type: ignore[arg-type]


# What arrives


def test_a_segment_is_the_same_in_both_logs_rows_and_times_and_all(site: Path, cloud: Path) -> None:
    for batch in (0, 1, 5):
        publish(site, batch)
    arrivals = Arrivals(cloud, durable=False)
    for envelope in envelopes_of(site):
        arrivals.put(envelope)
    assert rows_in(cloud) == rows_in(site)
    assert len(rows_in(cloud)) == 9
    for here, there in zip(Log(site).segments(ROWS), Log(cloud).segments(ROWS), strict=True):
        assert (here.parts, here.columns, here.batch) == (there.parts, there.columns, there.batch)
        assert there.earliest_us == there.batch * 1000
    size = sum(segment.file_bytes for segment in Log(site).segments(ROWS))
    assert arrivals.counts == LinkCounts(segments=3, rows=9, bytes=size)


@settings(max_examples=25, deadline=None)
@given(data=st.data(), numbers=st.lists(st.integers(0, 30), min_size=1, max_size=6, unique=True))
def test_whatever_comes_again_and_however_often_the_log_has_it_once(
    data: st.DataObject, numbers: list[int]
) -> None:
    """Each trip is any stretch of the site's segments that leaves no hole."""
    with tempfile.TemporaryDirectory() as folder:
        site, cloud = Path(folder, "site"), Path(folder, "cloud")
        for batch in sorted(numbers):
            publish(site, batch)
        envelopes = envelopes_of(site)
        reached = trips = 0
        while reached < len(envelopes):
            start = data.draw(st.integers(0, reached))
            end = data.draw(st.integers(reached + 1, len(envelopes)))
            arrivals = Arrivals(cloud, durable=False)
            for envelope in envelopes[start:end]:
                arrivals.put(envelope)
            assert arrivals.counts.repeated == reached - start
            reached, trips = end, trips + 1
        assert rows_in(cloud) == rows_in(site)


def test_a_batch_that_comes_again_with_other_rows_is_an_error(site: Path, cloud: Path) -> None:
    publish(site, 0)
    publish(cloud, 0, rows=4)
    with pytest.raises(ReplayDiffers, match="other rows: 4, now 3"):
        Arrivals(cloud, durable=False).put(envelopes_of(site)[0])


def test_a_hole_is_noticed_before_a_reader_can_pass_it(site: Path, cloud: Path) -> None:
    for batch in (2, 4, 6):
        publish(site, batch)
    first, _, third = envelopes_of(site)
    arrivals = Arrivals(cloud, durable=False)
    arrivals.put(first)
    with pytest.raises(LinkGap, match=r"batch 6 .* but batch 4 before it did not"):
        arrivals.put(third)
    assert Log(cloud).end(ROWS) == {SITE: {"0": 2}}


def test_what_comes_after_the_fence_is_dropped_and_counted(site: Path, cloud: Path) -> None:
    for batch in range(4):
        publish(site, batch)
    publish(site, 0, epoch=1)
    arrivals = Arrivals(cloud, durable=False)
    envelopes = envelopes_of(site)
    for envelope in envelopes[:2]:
        arrivals.put(envelope)
    Log(cloud).fence(SITE, 0)
    for envelope in envelopes:
        arrivals.put(envelope)
    counts = arrivals.counts
    assert (counts.segments, counts.repeated, counts.dropped) == (3, 2, 2)
    assert Log(cloud).end(ROWS) == {SITE: {"0": 1, "1": 0}}


def test_what_a_fence_counts_but_comes_too_late_is_an_error(site: Path, cloud: Path) -> None:
    for batch in range(3):
        publish(site, batch)
    arrivals = Arrivals(cloud, durable=False)
    first, second, third = envelopes_of(site)
    arrivals.put(first)
    Log(cloud).fence(SITE, 0, last_batch=1)
    with pytest.raises(LinkError, match="its rows are lost"):
        arrivals.put(second)
    arrivals.put(third)
    assert arrivals.counts.dropped == 1


def test_what_comes_while_the_epoch_is_being_fenced_waits_for_the_fence(
    site: Path, cloud: Path
) -> None:
    publish(site, 0)
    publish(site, 1)
    first, second = envelopes_of(site)
    arrivals = Arrivals(cloud, durable=False)
    arrivals.put(first)
    gate = gate_folder(cloud, "edges", SITE, 0)
    make_gate(Disk(durable=False), gate, root=cloud)
    close_gate(Disk(durable=False), gate)
    putting = threading.Thread(target=arrivals.put, args=(second,))
    putting.start()
    putting.join(0.15)
    assert putting.is_alive()
    Log(cloud).fence(SITE, 0)
    putting.join(30)
    assert arrivals.counts.dropped == 1


def test_a_mark_says_that_all_before_it_is_there(cloud: Path) -> None:
    arrivals = Arrivals(cloud, durable=False)
    assert not has_arrived(cloud, SITE, 0, 0)
    for batch in (4, 2, 4):
        arrivals.put(make_mark(SITE, 0, batch, {}))
    assert has_arrived(cloud, SITE, 0, 4)
    assert not has_arrived(cloud, SITE, 0, 5)
    assert not has_arrived(cloud, SITE, 1, 0)
    assert not has_arrived(cloud, "fog-2", 0, 0)
    assert arrivals.counts == LinkCounts()


def test_a_mark_counts_only_when_the_last_batch_of_every_stream_is_there(
    site: Path, cloud: Path
) -> None:
    publish(site, 0, OTHER)
    publish(site, 1, ROWS)
    arrivals = Arrivals(cloud, durable=False)
    mark = make_mark(SITE, 0, 1, {ROWS: 1, OTHER: 0})
    arrivals.put(envelopes_of(site, ROWS)[0])
    with pytest.raises(LinkGap, match=r"batch 0 of edges/clean\+count before it did not"):
        arrivals.put(mark)
    assert not has_arrived(cloud, SITE, 0, 1)
    arrivals.put(envelopes_of(site, OTHER)[0])
    arrivals.put(mark)
    assert has_arrived(cloud, SITE, 0, 1)


# Senders and receivers


def test_all_streams_of_all_sites_arrive_once_while_they_are_written(tmp_path: Path) -> None:
    cloud, wire = tmp_path / "cloud", Wire()
    sites = {name: tmp_path / name for name in ("fog-1", "fog-2")}
    with LinkReceiver(MemoryLink(wire), cloud, durable=False) as receiver:
        senders = [
            LinkSender(MemoryLink(wire), root, name, poll_s=0.01).start()
            for name, root in sites.items()
        ]
        for batch in range(8):
            for name, root in sites.items():
                for stream in (ROWS, OTHER, CLOCK):
                    publish(root, batch, stream, site=name)
        for sender in senders:
            sender.flush(0, 7)
            receiver.wait_for(sender.site, 0, 7)
            assert sender.counts.segments == 24
            sender.close()
    assert receiver.counts == LinkCounts(
        segments=48, rows=144, bytes=sum(sender.counts.bytes for sender in senders)
    )
    for stream in (ROWS, OTHER, CLOCK):
        assert rows_in(cloud, stream) == [
            row for name, root in sites.items() for row in rows_in(root, stream, name)
        ]


def test_only_edges_of_the_own_site_are_sent_and_nothing_after_a_fence(site: Path) -> None:
    wire = Wire()
    for batch in range(3):
        publish(site, batch)
    publish(site, 0, "sources/rides")
    publish(site, 0, "sinks/board")
    publish(site, 0, site="fog-2")
    Log(site).fence(SITE, 0, last_batch=1)
    with LinkSender(MemoryLink(wire), site, SITE) as sender:
        sender.flush(0, 1)
    sent = [Envelope.from_bytes(data) for data in wire.sent]
    assert [(e.stream, e.site, e.batch) for e in sent] == [
        (ROWS, SITE, 0),
        (ROWS, SITE, 1),
        ("links/marks", SITE, 1),
    ]


def test_what_the_clock_says_comes_after_the_rows_it_speaks_of(site: Path) -> None:
    wire = Wire()
    with LinkSender(MemoryLink(wire), site, SITE, poll_s=0.0) as sender:
        for epoch in (0, 1):
            for batch in range(0, 40, 2):
                publish(site, batch, ROWS, epoch=epoch)
                publish(site, batch, OTHER, epoch=epoch)
                publish(site, batch, CLOCK, epoch=epoch)
        sender.flush(1, 38)
    sent = [Envelope.from_bytes(data) for data in wire.sent]
    there: set[tuple[str, int, int]] = set()
    for envelope in sent:
        there.add((envelope.stream, envelope.epoch, envelope.batch))
        if envelope.stream == CLOCK:
            assert (ROWS, envelope.epoch, envelope.batch) in there
            assert (OTHER, envelope.epoch, envelope.batch) in there
    assert len(there) == 121


def test_the_clock_is_never_ahead_even_if_rows_come_between_two_looks_at_the_log(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = Log.segments_at
    batches = iter(range(12))

    def publish_next() -> None:
        for batch in islice(batches, 1):
            for stream in (ROWS, OTHER, CLOCK):
                publish(site, batch, stream)

    def look_and_publish(log: Log, place: EpochPlace, after: int = -1) -> Iterator[Segment]:
        found = list(look(log, place, after))
        publish_next()
        return iter(found)

    publish_next()
    monkeypatch.setattr(Log, "segments_at", look_and_publish)
    wire = Wire()
    with LinkSender(MemoryLink(wire), site, SITE) as sender:
        while not {(CLOCK, 11), (ROWS, 11), (OTHER, 11)} <= set(streams_in(wire)):
            assert sender.error is None
            time.sleep(0.01)
    seen: set[tuple[str, int]] = set()
    for stream, batch in streams_in(wire):
        seen.add((stream, batch))
        assert stream != CLOCK or {(ROWS, batch), (OTHER, batch)} <= seen


def streams_in(wire: Wire) -> list[tuple[str, int]]:
    envelopes = [Envelope.from_bytes(data) for data in wire.sent]
    return [(envelope.stream, envelope.batch) for envelope in envelopes]


def test_a_sender_that_starts_again_goes_on_where_it_was(site: Path, cloud: Path) -> None:
    wire = Wire()
    publish(site, 0)
    with LinkSender(MemoryLink(wire), site, SITE) as first:
        first.flush(0, 0)
    publish(site, 1)
    with LinkSender(MemoryLink(wire), site, SITE) as second:
        second.flush(0, 1)
    assert (first.counts.segments, second.counts.segments) == (1, 1)
    with LinkSender(MemoryLink(wire), site, SITE, resend=True) as third:
        third.flush(0, 1)
    assert third.counts.segments == 2
    with LinkReceiver(MemoryLink(wire), cloud, durable=False) as receiver:
        receiver.wait_for(SITE, 0, 1)
        while receiver.counts.segments + receiver.counts.repeated < 4:
            assert receiver.error is None
            time.sleep(0.01)
    assert (receiver.counts.segments, receiver.counts.repeated) == (2, 2)
    assert rows_in(cloud) == rows_in(site)


@pytest.mark.parametrize("damage", ["", "[]", '{"edges/clean+rank": 3}', '{"x": {"y": "z"}}'])
def test_a_note_of_what_was_sent_that_is_damaged_means_sending_again(
    site: Path, damage: str
) -> None:
    wire = Wire()
    publish(site, 0)
    with LinkSender(MemoryLink(wire), site, SITE) as sender:
        sender.flush(0, 0)
    (note,) = (site / ".links").glob("*.json")
    assert json.loads(note.read_text()) == {ROWS: {"0": 0}}
    note.write_text(damage)
    with LinkSender(MemoryLink(wire), site, SITE) as sender:
        sender.flush(0, 0)
    assert sender.counts.segments == 1


def test_a_new_receiver_reads_only_what_the_last_one_has_not_acknowledged(
    site: Path, cloud: Path, tmp_path: Path
) -> None:
    wire = Wire()
    with LinkSender(MemoryLink(wire), site, SITE) as sender:
        publish(site, 0)
        sender.flush(0, 0)
        with LinkReceiver(MemoryLink(wire), cloud, durable=False) as receiver:
            receiver.wait_for(SITE, 0, 0)
        publish(site, 1)
        sender.flush(0, 1)
        with LinkReceiver(MemoryLink(wire), cloud, durable=False) as receiver:
            receiver.wait_for(SITE, 0, 1)
        assert receiver.counts.segments == 1
        # Another log at the same link is another reader.
        with LinkReceiver(MemoryLink(wire), tmp_path / "other", durable=False) as receiver:
            receiver.wait_for(SITE, 0, 1)
        assert receiver.counts.segments == 2
    assert rows_in(cloud) == rows_in(tmp_path / "other") == rows_in(site)


def test_an_outage_is_waited_out(site: Path, cloud: Path) -> None:
    wire = Wire()
    wire.up.clear()
    with (
        LinkSender(MemoryLink(wire), site, SITE, poll_s=0.01) as sender,
        LinkReceiver(MemoryLink(wire), cloud, durable=False) as receiver,
    ):
        publish(site, 0)
        with pytest.raises(LinkError, match=r"batch 0 of fog-1, epoch 0, was not taken .* memory"):
            sender.flush(0, 0, timeout_s=0.1)
        with pytest.raises(LinkError, match=r"has not come over the link .* sender flushed"):
            receiver.wait_for(SITE, 0, 0, timeout_s=0.1)
        assert sender.counts.segments == 0
        wire.up.set()
        receiver.wait_for(SITE, 0, 0)
    assert (sender.error, receiver.error) == (None, None)
    assert rows_in(cloud) == rows_in(site)


def test_a_sender_in_an_outage_can_be_closed_and_sends_next_time(site: Path, cloud: Path) -> None:
    wire = Wire()
    wire.up.clear()
    publish(site, 0)
    with LinkSender(MemoryLink(wire), site, SITE, poll_s=0.01):
        pass
    wire.up.set()
    with LinkSender(MemoryLink(wire), site, SITE) as sender:
        sender.flush(0, 0)
    assert sender.counts.segments == 1


def test_what_ends_a_receiver_is_told_to_those_who_wait(site: Path, cloud: Path) -> None:
    wire = Wire()
    wire.sent.append(b"no envelope at all")
    with LinkReceiver(MemoryLink(wire), cloud, durable=False) as receiver:
        with pytest.raises(LinkError, match=r"memory://here has ended: .* is no envelope"):
            receiver.wait_for(SITE, 0, 0)
        assert isinstance(receiver.error, LinkError)
    sender = LinkSender(MemoryLink(wire), site, SITE)
    with pytest.raises(LinkError, match="call start"):
        sender.flush(0, 0)
    sender.close()


def test_what_could_not_be_published_is_not_acknowledged(
    site: Path, cloud: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wire = Wire()
    publish(site, 0)
    with LinkSender(MemoryLink(wire), site, SITE) as sender:
        sender.flush(0, 0)

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, "full")

    with monkeypatch.context() as full:
        full.setattr(Disk, "create", refuse)
        with LinkReceiver(MemoryLink(wire), cloud, durable=False) as receiver:
            with pytest.raises(LinkError, match="No space left on device"):
                receiver.wait_for(SITE, 0, 0)
            assert isinstance(receiver.error, LogError)
    with LinkReceiver(MemoryLink(wire), cloud, durable=False) as receiver:
        receiver.wait_for(SITE, 0, 0)
    assert rows_in(cloud) == rows_in(site)


def test_what_is_missing_holds_up_its_site_alone_until_it_is_sent_again(
    site: Path, cloud: Path
) -> None:
    wire = Wire()
    for batch in range(3):
        publish(site, batch)
        publish(site, batch, site="fog-2")
    for name in (SITE, "fog-2"):
        with LinkSender(MemoryLink(wire), site, name) as sender:
            sender.flush(0, 2)
    lost = wire.sent.pop(0)
    assert Envelope.from_bytes(lost).batch == 0
    for _ in range(2):
        # To start again is no remedy: nothing was acknowledged.
        with LinkReceiver(MemoryLink(wire), cloud, durable=False) as receiver:
            receiver.wait_for("fog-2", 0, 2)
            with pytest.raises(LinkError, match=r"but batch .* before it did not.*resend=True"):
                receiver.wait_for(SITE, 0, 2, timeout_s=0.1)
            assert list(receiver.gaps) == [SITE]
            assert not wire.read_upto
    with (
        LinkReceiver(MemoryLink(wire), cloud, durable=False) as receiver,
        LinkSender(MemoryLink(wire), site, SITE, resend=True) as sender,
    ):
        sender.flush(0, 2)
        receiver.wait_for(SITE, 0, 2)
    assert not receiver.gaps
    assert rows_in(cloud, site=SITE) == rows_in(site, site=SITE)


def test_time_does_not_pass_rows_that_were_lost(site: Path, cloud: Path) -> None:
    """Also where the rows of a batch are lost, and not what the clock says after them."""
    wire = Wire()
    for batch in range(4):
        publish(site, batch, ROWS)
        publish(site, batch, CLOCK)
    with LinkSender(MemoryLink(wire), site, SITE) as sender:
        sender.flush(0, 3)
    assert streams_in(wire)[2:4] == [(ROWS, 1), (CLOCK, 1)]
    del wire.sent[2]
    with LinkReceiver(MemoryLink(wire), cloud, durable=False) as receiver:
        with pytest.raises(LinkError, match=r"but batch . before it did not"):
            receiver.wait_for(SITE, 0, 3, timeout_s=0.3)
        assert Log(cloud).end(CLOCK) == {SITE: {"0": 0}}
        with LinkSender(MemoryLink(wire), site, SITE, resend=True) as sender:
            sender.flush(0, 3)
            receiver.wait_for(SITE, 0, 3)
    for stream in (ROWS, CLOCK):
        assert rows_in(cloud, stream) == rows_in(site, stream)


def test_a_sender_that_works_can_be_told_to_send_everything_again_and_comes_to_an_end(
    site: Path, cloud: Path
) -> None:
    wire = Wire()
    for batch in range(3):
        publish(site, batch)
    link = MemoryLink(wire)
    with LinkSender(link, site, SITE) as sender:
        sender.flush(0, 2)
        wire.up.clear()
        sender.send_again()
        while not link._waiting:
            assert sender.error is None
            time.sleep(0.01)
        # Asked for again and again, it would otherwise begin again and again.
        sender.send_again()
        wire.up.set()
        sender.flush(0, 2)
        publish(site, 3)
        sender.flush(0, 3)
    assert [batch for stream, batch in streams_in(wire) if stream == ROWS] == [0, 1, 2, 0, 1, 2, 3]
    with LinkReceiver(MemoryLink(wire), cloud, durable=False) as receiver:
        receiver.wait_for(SITE, 0, 3)
    assert receiver.counts.repeated == 3
    assert rows_in(cloud) == rows_in(site)


def test_a_gap_does_not_last_while_its_site_sends_everything_again(
    site: Path, cloud: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = [0.0]
    monkeypatch.setattr(receiver_module, "time", SimpleNamespace(monotonic=lambda: now_s[0]))
    for batch in range(4):
        publish(site, batch)
    first, lost, third, last = envelopes_of(site)
    receiver = LinkReceiver(MemoryLink(Wire()), cloud, durable=False)
    told = []
    came = ((0.0, first), (1.0, third), (9.0, last), (10.0, None), (12.0, None), (13.0, first))
    came += ((20.0, lost), (28.0, None), (31.0, None), (32.0, third), (33.0, last), (99.0, None))
    for now_s[0], envelope in came:
        if envelope is not None:
            receiver._take(envelope)
        told.append((now_s[0], list(receiver.lasting_gaps(10.0))))
    receiver.close()
    assert [at_s for at_s, sites in told if sites == [SITE]] == [12.0, 31.0]
    assert [at_s for at_s, sites in told if sites not in ([], [SITE])] == []
    assert rows_in(cloud) == rows_in(site)


def test_a_site_has_one_sender_and_a_log_one_receiver(site: Path, cloud: Path) -> None:
    wire = Wire()
    with LinkSender(MemoryLink(wire), site, SITE):
        with pytest.raises(LinkError, match="a sender of fog-1 runs already"):
            LinkSender(MemoryLink(wire), site, SITE)
        LinkSender(MemoryLink(wire), site, "fog-2").close()
    LinkSender(MemoryLink(wire), site, SITE).close()
    with (
        LinkReceiver(MemoryLink(wire), cloud),
        pytest.raises(LinkError, match="a receiver runs already"),
    ):
        LinkReceiver(MemoryLink(wire), cloud)


@settings(max_examples=20, deadline=None)
@given(rng=st.randoms(use_true_random=False))
def test_senders_and_receivers_that_come_and_go_lose_nothing(rng: random.Random) -> None:
    with tempfile.TemporaryDirectory() as folder:
        site, cloud, wire = Path(folder, "site"), Path(folder, "cloud"), Wire()
        batch = -1
        for _ in range(3):
            sender = LinkSender(MemoryLink(wire), site, SITE, poll_s=0.0)
            receiver = LinkReceiver(MemoryLink(wire), cloud, durable=False)
            sender.start()
            receiver.start()
            for _ in range(rng.randrange(6)):
                batch += rng.randrange(1, 3)
                publish(site, batch, rng.choice([ROWS, OTHER]))
            for end in rng.sample([sender, receiver], 2):
                end.close()
                assert end.error is None
            if rng.random() < 0.3:
                for note in (site / ".links").glob("*.json"):
                    note.unlink()
        batch += 1
        publish(site, batch)
        with (
            LinkSender(MemoryLink(wire), site, SITE) as sender,
            LinkReceiver(MemoryLink(wire), cloud, durable=False) as receiver,
        ):
            sender.flush(0, batch)
            receiver.wait_for(SITE, 0, batch)
        for stream in (ROWS, OTHER):
            assert rows_in(cloud, stream) == rows_in(site, stream)


# The directory link


@pytest.fixture
def directory(cloud: Path) -> Iterator[DirectoryLink]:
    link = DirectoryLink(parse_link(f"directory://{cloud}"), durable=False)
    yield link
    link.close()


def test_the_sender_of_a_directory_link_publishes_in_the_cloud_itself(
    site: Path, cloud: Path, directory: DirectoryLink
) -> None:
    found_log(cloud)
    for batch in range(3):
        publish(site, batch)
    with LinkSender(directory, site, SITE) as sender:
        sender.flush(0, 2)
    assert has_arrived(cloud, SITE, 0, 2)
    assert rows_in(cloud) == rows_in(site)
    opened = open_link(parse_link(f"directory://{cloud}"))
    with LinkReceiver(opened, cloud) as receiver:
        receiver.wait_for(SITE, 0, 2)


def test_a_directory_link_waits_for_a_disk_that_is_away(
    site: Path, cloud: Path, directory: DirectoryLink
) -> None:
    found_log(cloud)
    publish(site, 0)
    with LinkSender(directory, site, SITE) as sender:
        sender.flush(0, 0)
        away = cloud.with_name("away")
        cloud.rename(away)
        # What is left of a disk that is away: an empty folder.
        cloud.mkdir()
        publish(site, 1)
        with pytest.raises(LinkError, match=r"there is no log .* its disk is away"):
            sender.flush(0, 1, timeout_s=1.5)
        assert sender.error is None
        assert list(cloud.iterdir()) == []
        cloud.rmdir()
        away.rename(cloud)
        sender.flush(0, 1)
    assert rows_in(cloud) == rows_in(site)


def test_a_directory_link_that_waits_can_be_closed(
    site: Path, cloud: Path, directory: DirectoryLink
) -> None:
    publish(site, 0)
    sender = LinkSender(directory, site, SITE).start()
    with pytest.raises(LinkError):
        sender.flush(0, 0, timeout_s=0.3)
    sender.close()
    assert not cloud.exists()


def test_a_directory_link_to_the_own_log_changes_nothing(cloud: Path) -> None:
    publish(cloud, 0)
    before = rows_in(cloud)
    link = DirectoryLink(parse_link(f"directory://{cloud}"), durable=False)
    with LinkSender(link, cloud, SITE) as sender:
        sender.flush(0, 0)
    assert rows_in(cloud) == before


def test_a_clock_that_goes_on_while_the_sender_looks_is_not_ahead_of_a_new_stream(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wire, streams = Wire(), Log.streams

    def publish_meanwhile(log: Log, kind: str) -> list[str]:
        before = streams(log, kind)
        if not before:
            publish(site, 0, ROWS)
            publish(site, 0, CLOCK)
        return before

    monkeypatch.setattr(Log, "streams", publish_meanwhile)
    with LinkSender(MemoryLink(wire), site, SITE, poll_s=0.0) as sender:
        sender.flush(0, 0)
        sender.flush(0, 0)
    sent = [Envelope.from_bytes(data).stream for data in wire.sent]
    assert [stream for stream in sent if stream in (ROWS, CLOCK)] == [ROWS, CLOCK]
