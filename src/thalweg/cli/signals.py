"""Interrupts and terminations as wishes: what runs ends in order."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def upon_signal(act: Callable[[int], None]) -> Iterator[None]:
    """Within the block, an interrupt or a termination calls `act` with its number.

    Only the main thread hears signals; in others nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    wanted = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda n, _: act(n)) for number in wanted}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
