"""The link over a Kafka topic.

A segment is one message, or several where it is large; they are keyed by the site, so that Kafka
keeps its order, and carry stream, site, epoch, batch and part in their headers.

Spark has a Kafka connector of its own, which is not used here. With it, rows would go another way
into the cloud's query than with all other links: every source of that query would be part of its
checkpoint, and exactly once would have to be shown for each way. Through the log there is one way,
which the tests of every link check; sites need no further jars; and the cloud's query gets its rows
in an order that event time allows, whatever the order they came in. Raw rows of a *source* that
are in Kafka come in through a gateway, as any others do.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Sequence
from typing import Any
from uuid import uuid4

from thalweg.errors import MissingExtra
from thalweg.spark.link.envelope import Envelope
from thalweg.spark.link.kafka_address import KafkaAddress, parse_kafka_address
from thalweg.spark.link.kafka_messages import Assembly, Headers, split_envelope
from thalweg.spark.link.link import LinkError, LinkSpec

_MESSAGES_PER_STEP = 100
_ANSWER_TIMEOUT_S = 10.0
_BUFFER_STEP_S = 0.1


def load_kafka() -> Any:
    """The package `confluent_kafka`.

    Raises:
        MissingExtra: where it is not installed.
    """
    try:
        return importlib.import_module("confluent_kafka")
    except ModuleNotFoundError as error:
        raise MissingExtra(
            "a Kafka link needs confluent-kafka. Hint: pip install 'thalweg[kafka]'"
        ) from error


class KafkaLink:
    """Carries envelopes through one topic, which is made where it is missing.

    The topic is for this link alone; it has to keep what no receiver has read yet. An outage of the
    brokers is waited out, however long: the rows wait in the site's log. `problem` tells of it.

    Raises:
        InvalidInput: where the address is none.
        MissingExtra: where there is no client for Kafka.
        LinkError: where nobody answers at the address, or the topic cannot be made.
    """

    def __init__(self, spec: LinkSpec, *, timeout_s: float = _ANSWER_TIMEOUT_S) -> None:
        self._kafka = load_kafka()
        self._address = parse_kafka_address(spec.address)
        self.address = str(self._address)
        self.problem = ""
        self._settings = {
            "reconnect.backoff.max.ms": 1000,
            # It tells of every broken connection on stderr; `problem` has the last one.
            "log_level": 0,
            **self._address.load_settings(),
            "bootstrap.servers": ",".join(self._address.servers),
            "error_cb": self._note_problem,
        }
        self._id = uuid4().hex
        self._producer: Any = None
        self._consumer: Any = None
        self._closed = False
        self._failure: LinkError | None = None
        self._assembly = Assembly(self.address)
        self._partitions = _require_topic(
            self._kafka, self._settings, self._address, timeout_s, lambda: self.problem
        )

    def send(self, envelope: Envelope) -> None:
        """Hand the messages of an envelope to the client, which sends them in order."""
        if self._producer is None:
            self._producer = self._client("Producer", _PRODUCER)
        for content, headers in split_envelope(envelope, self._id):
            self._produce(envelope.site, content, headers)

    def _produce(self, site: str, content: bytes, headers: Headers) -> None:
        while True:
            self._raise_failure()
            try:
                self._producer.produce(
                    self._address.topic,
                    content,
                    site.encode(),
                    headers=headers,
                    on_delivery=self._note_delivery,
                )
            except BufferError:
                # Full, as the brokers are slow or away.
                self._producer.poll(_BUFFER_STEP_S)
                if self._closed:
                    raise LinkError(f"{self._address} was closed") from None
            except self._kafka.KafkaException as error:
                raise LinkError(f"cannot send over {self._address}: {_reason(error)}") from error
            else:
                self._producer.poll(0)
                return

    def flush(self, timeout_s: float) -> bool:
        """Wait until all brokers that have to keep what was sent have it."""
        if self._producer is None:
            return True
        remaining = self._producer.flush(timeout_s)
        self._raise_failure()
        if not remaining:
            self.problem = ""
        return not remaining

    def listen(self, reader: str) -> None:
        """Begin where this reader has got to, or with the oldest message that there is."""
        self._consumer = self._client("Consumer", {**_CONSUMER, "group.id": f"thalweg-{reader}"})
        topic = self._address.topic
        wanted = [self._kafka.TopicPartition(topic, number) for number in self._partitions]
        deadline = time.monotonic() + 3 * _ANSWER_TIMEOUT_S
        while True:
            try:
                known = self._consumer.committed(wanted, timeout=_ANSWER_TIMEOUT_S)
                break
            except self._kafka.KafkaException as error:
                # Brokers that have just started do not know yet who of them keeps positions.
                if self._closed or time.monotonic() > deadline:
                    raise LinkError(
                        f"cannot read from {self._address}: {_reason(error)}"
                    ) from error
                time.sleep(_BUFFER_STEP_S)
        for partition in known:
            if partition.error is not None:
                raise LinkError(f"cannot read from {self._address}: {partition.error.str()}")
            if partition.offset < 0:
                partition.offset = self._kafka.OFFSET_BEGINNING
        self._consumer.assign(known)

    def receive(self, timeout_s: float) -> Sequence[Envelope]:
        """The envelopes whose last message has come."""
        messages = self._consumer.consume(_MESSAGES_PER_STEP, timeout_s)
        found: list[Envelope] = []
        for message in messages:
            if message.error() is not None:
                self._tell_error(message.error())
                continue
            self.problem = ""
            found += self._assembly.add(message)
        return found

    def acknowledge(self) -> None:
        """Let Kafka note how far this reader has got; what is incomplete is read again."""
        positions = [
            self._kafka.TopicPartition(self._address.topic, partition, offset)
            for partition, offset in self._assembly.positions()
        ]
        if positions:
            try:
                self._consumer.commit(offsets=positions, asynchronous=True)
            except self._kafka.KafkaException as error:
                # Not noted: read again, and recognised.
                self.problem = _reason(error)

    def close(self) -> None:
        """Let go of the brokers; what was not flushed is not sent."""
        self._closed = True
        producer, self._producer = self._producer, None
        consumer, self._consumer = self._consumer, None
        if producer is not None:
            producer.purge()
            producer.flush(1.0)
        if consumer is not None:
            consumer.close()

    def _client(self, kind: str, settings: dict[str, object]) -> Any:
        try:
            return getattr(self._kafka, kind)({**self._settings, **settings})
        except (self._kafka.KafkaException, ValueError, TypeError) as error:
            raise LinkError(f"cannot use {self._address}: {_reason(error)}") from error

    def _note_problem(self, error: Any) -> None:
        self.problem = error.str()
        if error.fatal():
            self._failure = LinkError(f"cannot send over {self._address}: {error.str()}")

    def _note_delivery(self, error: Any, _message: object) -> None:
        if error is not None and not self._closed:
            self._failure = LinkError(f"cannot send over {self._address}: {error.str()}")

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _tell_error(self, error: Any) -> None:
        self.problem = error.str()
        if error.fatal() or error.code() == self._kafka.KafkaError.TOPIC_AUTHORIZATION_FAILED:
            raise LinkError(f"cannot read from {self._address}: {error.str()}")


_PRODUCER: dict[str, object] = {
    "acks": "all",
    "enable.idempotence": True,
    # For ever: the log has it, and who waits can give up at any time.
    "message.timeout.ms": 0,
    "linger.ms": 2,
    # The sender waits after some megabytes by itself; one segment may be larger.
    "queue.buffering.max.kbytes": 2_097_151,
}
_CONSUMER: dict[str, object] = {
    "enable.auto.commit": False,
    # Where messages were thrown away too early, the log shows what is missing.
    "auto.offset.reset": "earliest",
    "fetch.wait.max.ms": 100,
}


def _require_topic(
    kafka: Any,
    settings: dict[str, object],
    address: KafkaAddress,
    timeout_s: float,
    problem: Callable[[], str],
) -> list[int]:
    """The partitions of the topic, which is made where there is none."""
    admin_module = importlib.import_module("confluent_kafka.admin")
    try:
        admin = admin_module.AdminClient(settings)
        deadline = time.monotonic() + timeout_s
        made = False
        while True:
            left_s = max(deadline - time.monotonic(), 0.1)
            topic = admin.list_topics(timeout=left_s).topics.get(address.topic)
            if topic is not None and topic.error is None and topic.partitions:
                return sorted(topic.partitions)
            if not made:
                new = admin_module.NewTopic(address.topic, num_partitions=1)
                for future in admin.create_topics([new], request_timeout=left_s).values():
                    _ignore_known_topic(kafka, future)
                made = True
            elif time.monotonic() > deadline:
                raise LinkError(f"cannot make the topic of {address} within {timeout_s:g} s")
            time.sleep(0.05)
    except (kafka.KafkaException, ValueError, TypeError) as error:
        admin_problem = problem()
        cause = f"{_reason(error)} ({admin_problem})" if admin_problem else _reason(error)
        raise LinkError(
            f"cannot reach Kafka at {', '.join(address.servers)} for {address}: {cause}. "
            "Hint: is the broker running, and does it advertise an address that this machine "
            "reaches?"
        ) from error


def _ignore_known_topic(kafka: Any, future: Any) -> None:
    try:
        future.result()
    except kafka.KafkaException as error:
        if error.args[0].code() != kafka.KafkaError.TOPIC_ALREADY_EXISTS:
            raise


def _reason(error: BaseException) -> str:
    """What the client says, for people."""
    first = error.args[0] if error.args else error
    return str(first.str()) if hasattr(first, "str") else str(first)
