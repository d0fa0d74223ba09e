from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark.kafka_broker import Broker, broker_or_skip
from thalweg.errors import InvalidInput, MissingExtra
from thalweg.spark.link import LinkError, kafka_messages, open_link, parse_link
from thalweg.spark.link import kafka as kafka_link
from thalweg.spark.link.envelope import Envelope
from thalweg.spark.link.kafka_messages import Assembly, Headers, split_envelope
from thalweg.spark.link.receiver import LinkReceiver
from thalweg.spark.link.sender import LinkSender
from thalweg.spark.log.reader import Log, LogWriter
from thalweg.spark.log.segment import Part

pytestmark = pytest.mark.jvm

STREAM, SITE = "edges/clean+rank", "fog-1"


def publish(root: Path, batch: int, *, epoch: int = 0, site: str = SITE) -> None:
    table = pa.table({"number": list(range(batch * 1000, batch * 1000 + 10))})
    LogWriter(root, STREAM, site, epoch, durable=False).publish(batch, table)


def numbers_in(root: Path, site: str | None = None) -> list[int]:
    return Log(root).read(STREAM, site)["number"].to_pylist()


def numbers_of(batches: range) -> list[int]:
    return [batch * 1000 + row for batch in batches for row in range(10)]


# Messages, without a broker


@dataclass
class FakeMessage:
    """A message as the client gives it."""

    number: int
    site: str
    content: bytes
    known: Headers | None

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self.number

    def key(self) -> bytes:
        return self.site.encode()

    def value(self) -> bytes:
        return self.content

    def headers(self) -> Headers | None:
        return self.known


def make_envelope(batch: int, size: int, site: str = SITE) -> Envelope:
    part = Part(file="rows.arrow", rows=1, file_bytes=size, data_bytes=size, hash_sum=0)
    return Envelope(
        stream=STREAM, site=site, epoch=0, batch=batch, parts=(part,), body=bytes([batch]) * size
    )


@settings(max_examples=60, deadline=None)
@given(rng=st.randoms(use_true_random=False))
def test_what_killed_senders_leave_behind_never_hides_or_spoils_an_envelope(
    rng: random.Random,
) -> None:
    """Every sender sends from some envelope on, up to any message; the last one to the end.

    Readers stop anywhere, and go on at the position of what they have acknowledged.
    """
    envelopes = [make_envelope(batch, rng.randrange(1, 1000)) for batch in range(5)]
    topic: list[FakeMessage] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kafka_messages, "BYTES_PER_MESSAGE", 300)
        safe = 0
        for sender in range(4):
            parts = [
                (envelope, *message)
                for envelope in envelopes[safe:]
                for message in split_envelope(envelope, str(sender))
            ]
            end = len(parts) if sender == 3 else rng.randrange(len(parts) + 1)
            for _, content, headers in parts[:end]:
                topic.append(FakeMessage(len(topic), SITE, content, headers))
            if end and parts[end - 1][0] is not envelopes[safe]:
                safe = rng.randrange(safe, envelopes.index(parts[end - 1][0]) + 1)
    found: list[Envelope] = []
    position, length = 0, 1
    while position < len(topic):
        reader = Assembly("kafka://test")
        for message in topic[position : position + length]:
            found += reader.add(message)
        ((_, reached),) = reader.positions()
        length = rng.randrange(1, 12) if reached > position else length + 1
        position = reached
    numbers = [envelope.batch for envelope in found]
    first_seen = list(dict.fromkeys(numbers))
    assert first_seen == list(range(5))
    assert all(envelope == envelopes[envelope.batch] for envelope in found)


def test_a_message_of_somebody_else_is_refused() -> None:
    with pytest.raises(LinkError, match="a topic of its own"):
        list(Assembly("kafka://test").add(FakeMessage(0, SITE, b"hello", None)))


# Without a broker at all


def test_without_the_client_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(MissingExtra, match=r"pip install 'thalweg\[kafka\]'"):
        open_link(parse_link("kafka://localhost:9092/rides"))


def test_a_broker_that_nobody_reaches_is_named() -> None:
    pytest.importorskip("confluent_kafka")
    link = parse_link("kafka://127.0.0.1:9/rides")
    with pytest.raises(LinkError, match=r"cannot reach Kafka at 127\.0\.0\.1:9 .*Hint: is the"):
        kafka_link.KafkaLink(link, timeout_s=1.0)


def test_settings_come_from_a_file_and_not_those_that_the_guarantees_rest_on(
    tmp_path: Path,
) -> None:
    file = tmp_path / "kafka.properties"
    file.write_text("# secret\nsasl.password = hunter2=\n\nsecurity.protocol=PLAINTEXT\n")
    text = f"kafka://a:1/t?client.id=x&config={file}"
    address = kafka_link.parse_kafka_address(text)
    assert address.load_settings() == {
        "sasl.password": "hunter2=",
        "security.protocol": "PLAINTEXT",
        "client.id": "x",
    }
    file.write_text("acks=0\nhunter2\n")
    with pytest.raises(InvalidInput) as caught:
        address.load_settings()
    assert len(caught.value.defects) == 2
    assert "hunter2" not in str(caught.value)
    file.unlink()
    with pytest.raises(InvalidInput, match="a file of lines name=value"):
        address.load_settings()


def test_what_the_client_does_not_know_is_told() -> None:
    pytest.importorskip("confluent_kafka")
    with pytest.raises(LinkError, match=r"no\.such\.setting"):
        open_link(parse_link("kafka://127.0.0.1:9/rides?no.such.setting=1"))


# With a broker


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    pytest.importorskip("confluent_kafka", reason="no Kafka link: confluent-kafka is missing")
    broker = broker_or_skip(tmp_path_factory.mktemp("kafka"))
    broker.start()
    yield broker
    broker.kill()


@pytest.fixture
def place(broker: Broker, tmp_path: Path) -> SimpleNamespace:
    """Two logs, and a topic between them that no other test has."""
    link = parse_link(broker.address(f"rides-{uuid4().hex[:8]}"))
    return SimpleNamespace(link=link, site=tmp_path / "site", cloud=tmp_path / "cloud")


def send_from(place: SimpleNamespace, site: str = SITE, **options: bool) -> LinkSender:
    return LinkSender(open_link(place.link), place.site, site, **options)


def receive_at(place: SimpleNamespace) -> LinkReceiver:
    return LinkReceiver(open_link(place.link), place.cloud, durable=False)


def test_numbered_segments_of_two_sites_arrive_once_and_in_order(place: SimpleNamespace) -> None:
    with (
        receive_at(place) as receiver,
        send_from(place, "fog-1") as first,
        send_from(place, "fog-2") as second,
    ):
        for batch in range(50):
            publish(place.site, batch, site="fog-1")
            publish(place.site, batch, site="fog-2")
        for sender in (first, second):
            sender.flush(0, 49)
            receiver.wait_for(sender.site, 0, 49)
    assert receiver.error is None
    assert (receiver.counts.segments, receiver.counts.repeated) == (100, 0)
    for site in ("fog-1", "fog-2"):
        assert numbers_in(place.cloud, site) == numbers_of(range(50))


def test_a_segment_larger_than_a_message_arrives_whole(place: SimpleNamespace) -> None:
    noise = np.random.default_rng(1).integers(0, 2**62, 400_000)
    writer = LogWriter(place.site, STREAM, SITE, 0, durable=False)
    segment = writer.publish(0, pa.table({"number": noise}))
    assert segment.file_bytes > 3 * kafka_messages.BYTES_PER_MESSAGE
    with receive_at(place) as receiver, send_from(place) as sender:
        sender.flush(0, 0)
        receiver.wait_for(SITE, 0, 0)
    assert Log(place.cloud).read(STREAM).equals(Log(place.site).read(STREAM))
    assert receiver.counts.bytes == segment.file_bytes


def test_a_fenced_epoch_is_dropped_and_the_next_one_is_not(place: SimpleNamespace) -> None:
    with receive_at(place) as receiver, send_from(place) as sender:
        for batch in range(3):
            publish(place.site, batch)
        sender.flush(0, 2)
        receiver.wait_for(SITE, 0, 2)
        assert Log(place.cloud).fence(SITE, 0).last_batch == 2
        publish(place.site, 3)
        publish(place.site, 0, epoch=1)
        sender.flush(1, 0)
        receiver.wait_for(SITE, 1, 0)
    assert receiver.counts.dropped == 1
    assert numbers_in(place.cloud) == numbers_of(range(3)) + numbers_of(range(1))


def test_a_new_receiver_goes_on_and_one_with_a_new_log_gets_everything(
    place: SimpleNamespace,
) -> None:
    with send_from(place) as sender:
        for batch in range(3):
            publish(place.site, batch)
        sender.flush(0, 2)
        with receive_at(place) as receiver:
            receiver.wait_for(SITE, 0, 2)
        publish(place.site, 3)
        sender.flush(0, 3)
        with receive_at(place) as receiver:
            receiver.wait_for(SITE, 0, 3)
        # Kafka noted how far the first one was, or at most its last step again.
        assert receiver.counts.segments == 1
        place.cloud = place.cloud.with_name("new")
        with receive_at(place) as receiver:
            receiver.wait_for(SITE, 0, 3)
        assert receiver.counts.segments == 4
    assert numbers_in(place.cloud) == numbers_of(range(4))


_SEND_FOR_EVER = """
import sys, time
from thalweg.spark.link import open_link, parse_link
from thalweg.spark.link.sender import LinkSender
LinkSender(open_link(parse_link(sys.argv[1])), sys.argv[2], "fog-1", poll_s=0.0).start()
print("ready", flush=True)
time.sleep(60)
"""


def test_a_sender_that_is_killed_and_started_again_loses_and_doubles_nothing(
    place: SimpleNamespace,
) -> None:
    batch = 0
    rng = random.Random(3)  # noqa: S311
    command = [sys.executable, "-c", _SEND_FOR_EVER, place.link.address, str(place.site)]
    with receive_at(place) as receiver:
        for _ in range(3):
            with subprocess.Popen(command, stdout=subprocess.PIPE) as sender:
                assert sender.stdout is not None
                assert sender.stdout.readline() == b"ready\n"
                before, first = receiver.counts.segments, batch
                while receiver.counts.segments == before or batch < first + 20:
                    publish(place.site, batch)
                    batch += 1
                time.sleep(rng.random() / 50)
                os.kill(sender.pid, signal.SIGKILL)
        # The note of what was sent is gone with the last crash: all of it comes again.
        for note in (place.site / ".links").glob("*.json"):
            note.unlink()
        with send_from(place) as last:
            last.flush(0, batch - 1)
            receiver.wait_for(SITE, 0, batch - 1)
        assert last.counts.segments == batch
    assert receiver.counts.segments == batch
    assert receiver.counts.repeated > 0
    assert numbers_in(place.cloud) == numbers_of(range(batch))


@pytest.mark.slow
def test_a_broker_that_goes_away_and_comes_back_has_lost_nothing(
    broker: Broker, place: SimpleNamespace
) -> None:
    """One sender waits for it, another is closed meanwhile and started again."""
    with receive_at(place) as receiver, send_from(place) as sender:
        for batch in range(20):
            publish(place.site, batch)
        sender.flush(0, 19)
        other = send_from(place, "fog-2").start()
        broker.kill()
        try:
            for batch in range(20, 40):
                publish(place.site, batch)
                publish(place.site, batch, site="fog-2")
            with pytest.raises(LinkError, match=r"was not taken by the link within 1 s: kafka://"):
                sender.flush(0, 39, timeout_s=1.0)
            other.close()
            assert (other.error, other.counts.segments) == (None, 0)
        finally:
            broker.start()
        for batch in range(40, 60):
            publish(place.site, batch)
        sender.flush(0, 59, timeout_s=90)
        with send_from(place, "fog-2") as other:
            other.flush(0, 39, timeout_s=90)
        receiver.wait_for(SITE, 0, 59, timeout_s=90)
        receiver.wait_for("fog-2", 0, 39, timeout_s=90)
    assert (sender.error, receiver.error) == (None, None)
    assert receiver.counts.segments == 80
    assert numbers_in(place.cloud, SITE) == numbers_of(range(60))
    assert numbers_in(place.cloud, "fog-2") == numbers_of(range(20, 40))
