"""Envelopes as Kafka messages: cut into parts that brokers take, and put together again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from thalweg.spark.link.envelope import Envelope
from thalweg.spark.link.link import LinkError

# Brokers take messages of a megabyte unless they are told otherwise; headers need some of it.
BYTES_PER_MESSAGE = 900_000

Headers: TypeAlias = list[tuple[str, bytes]]


class Message(Protocol):
    """What a message of the client can be asked."""

    def partition(self) -> int:
        """The partition that it is from."""

    def offset(self) -> int:
        """Its number there."""

    def key(self) -> bytes | None:
        """The site."""

    def value(self) -> bytes | None:
        """The content."""

    def headers(self) -> Headers | None:
        """What is known of it without looking at its content."""


def split_envelope(envelope: Envelope, sender: str) -> Iterator[tuple[bytes, Headers]]:
    """The content and the headers of each message, in order; `sender` tells senders apart."""
    data = memoryview(envelope.to_bytes())
    count = -(-len(data) // BYTES_PER_MESSAGE)
    for part in range(count):
        content = data[part * BYTES_PER_MESSAGE : (part + 1) * BYTES_PER_MESSAGE]
        known = {
            "stream": envelope.stream,
            "site": envelope.site,
            "epoch": envelope.epoch,
            "batch": envelope.batch,
            "part": part,
            "parts": count,
            "sender": sender,
        }
        yield bytes(content), [(name, str(value).encode()) for name, value in known.items()]


@dataclass(slots=True)
class _Pieces:
    """What has come of an envelope so far."""

    sender: str
    parts: int
    first_offset: int
    contents: list[bytes] = field(default_factory=list)


class Assembly:
    """Puts the parts of envelopes together; a sender that begins anew takes over from the old."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._pieces: dict[tuple[int, bytes], _Pieces] = {}
        self._next: dict[int, int] = {}

    def add(self, message: Message) -> Iterator[Envelope]:
        """The envelope that a message completes, if it does."""
        partition, offset, site = message.partition(), message.offset(), message.key() or b""
        self._next[partition] = offset + 1
        try:
            headers = {name: (value or b"").decode() for name, value in message.headers() or ()}
            part, parts, sender = int(headers["part"]), int(headers["parts"]), headers["sender"]
        except (KeyError, ValueError) as error:
            raise LinkError(
                f"message {offset} of {self._address} is none of a link's. Hint: give the link a "
                "topic of its own."
            ) from error
        place = (partition, site)
        if part == 0:
            self._pieces[place] = _Pieces(sender, parts, offset)
        pieces = self._pieces.get(place)
        if pieces is None or pieces.sender != sender or len(pieces.contents) != part:
            # The end of what a killed sender began before this reader did: it comes again, whole.
            return
        pieces.contents.append(message.value() or b"")
        if len(pieces.contents) == pieces.parts:
            del self._pieces[place]
            yield Envelope.from_bytes(b"".join(pieces.contents))

    def positions(self) -> Iterator[tuple[int, int]]:
        """Where to begin in each partition so that nothing is missing."""
        for partition, offset in self._next.items():
            begun = [p.first_offset for (n, _), p in self._pieces.items() if n == partition]
            yield partition, min([offset, *begun])
