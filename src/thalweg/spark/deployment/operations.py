"""What a run has done for it while it goes on watching: each operation in a thread of its own.

An operation does one thing that takes long, such as to start a site again, and decides nothing.
Whoever began it looks whether it is done, and does the rest.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Protocol

Work = Callable[[], Any]


class Operation(Protocol):
    """Something that was begun."""

    def done(self) -> bool:
        """Whether it has ended."""
        ...

    def result(self) -> Any:
        """What came of it; raises what ended it."""
        ...


class Operations(Protocol):
    """Begins operations."""

    def begin(self, name: str, work: Work) -> Operation:
        """Begin to do something."""
        ...


class ThreadedOperations:
    """Operations beside the thread that begins them."""

    def begin(self, name: str, work: Work) -> Operation:
        """Begin to do something in a thread of this name."""
        task = Future[Any]()

        def run() -> None:
            try:
                task.set_result(work())
            except BaseException as error:
                task.set_exception(error)

        threading.Thread(target=run, name=name, daemon=True).start()
        return task


class InlineOperations:
    """Operations that are done when they are begun: for tests, and whoever has nothing to watch."""

    def begin(self, name: str, work: Work) -> Operation:  # noqa: ARG002 - as its protocol says
        """Do something at once; whatever is no ordinary error is not held back."""
        task = Future[Any]()
        try:
            task.set_result(work())
        except Exception as error:
            task.set_exception(error)
        return task
