"""A link within this process, whose wire can be looked at, cut, and have something taken off it."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence

from thalweg.spark.link.envelope import Envelope


class Wire:
    """What two ends of a memory link have between them."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.read_upto: dict[str, int] = {}
        self.up = threading.Event()
        self.up.set()


class MemoryLink:
    """A link within this process; without `up` it takes what is sent and keeps none of it safe."""

    def __init__(self, wire: Wire) -> None:
        self.address, self.problem = "memory://here", ""
        self._wire = wire
        self._waiting: deque[bytes] = deque()
        self._reader = ""
        self._next = 0

    def send(self, envelope: Envelope) -> None:
        self._waiting.append(envelope.to_bytes())

    def flush(self, timeout_s: float) -> bool:
        if not self._wire.up.wait(min(timeout_s, 0.01)):
            return False
        while self._waiting:
            self._wire.sent.append(self._waiting.popleft())
        return True

    def listen(self, reader: str) -> None:
        self._reader = reader
        self._next = self._wire.read_upto.get(reader, 0)

    def receive(self, timeout_s: float) -> Sequence[Envelope]:
        found = self._wire.sent[self._next : self._next + 3]
        if not found:
            time.sleep(min(timeout_s, 0.01))
        self._next += len(found)
        return [Envelope.from_bytes(data) for data in found]

    def acknowledge(self) -> None:
        self._wire.read_upto[self._reader] = self._next

    def close(self) -> None:
        self._waiting.clear()
