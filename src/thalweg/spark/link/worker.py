"""The thread at each end of a link: runs until it is closed, or until something is wrong."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Self

from thalweg.spark.link.arrival import LinkCounts
from thalweg.spark.link.link import Link, LinkError
from thalweg.spark.link.place import LinkPlace

_STEP_S = 2.0


class LinkWorker(ABC):
    """One end of a link, at work in a thread; it ends with the `with` block."""

    def __init__(self, link: Link, log_root: Path | str, end: str) -> None:
        self.link = link
        self.log_root = Path(log_root)
        self._place = LinkPlace(log_root, end, link.address)
        self._closing = threading.Event()
        self._error: Exception | None = None
        # A daemon: whoever forgets to close it can still end.
        self._thread = threading.Thread(target=self._work, name=f"link-{end}", daemon=True)

    @property
    def error(self) -> Exception | None:
        """What has ended the work, if anything has."""
        return self._error

    @property
    @abstractmethod
    def counts(self) -> LinkCounts:
        """What has gone over this end since it was started."""

    def start(self) -> Self:
        """Begin to work; once."""
        self._thread.start()
        return self

    def close(self) -> None:
        """End the work after the present step, and close the link; to do it again is harmless."""
        self._closing.set()
        if self._thread.is_alive():
            # One that waits for a disk has to be told; one that works ends its step first.
            self._thread.join(_STEP_S)
            if self._thread.is_alive():
                self.link.close()
            self._thread.join()
        self.link.close()
        self._place.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def _run(self) -> None:
        """Work until closing."""

    def _work(self) -> None:
        try:
            self._run()
        except Exception as error:
            # Told by `error`, and by whoever waits; a thread has nobody else to tell.
            self._error = error

    def _problem(self) -> str:
        """What the link says is wrong with it."""
        return f"{self.link.address}: {self.link.problem or 'no problem is known'}"

    def _require_working(self) -> None:
        if self._error is not None:
            raise LinkError(
                f"the link {self.link.address} has ended: {self._error}"
            ) from self._error
        if not self._thread.is_alive():
            raise LinkError("the link's end does not run. Hint: call start() first.")
