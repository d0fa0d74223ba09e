"""What the two ends of a link keep beside the log, in its folder `.links`.

None of it is needed for the rows to be right: without it, more is sent and received again.
"""

from __future__ import annotations

import fcntl
import json
import os
from hashlib import sha256
from pathlib import Path
from typing import TextIO
from uuid import uuid4

from thalweg.spark.link.link import LinkError
from thalweg.spark.log.disk import explained

_FOLDER = ".links"

Position = dict[str, dict[int, int]]
"""The last batch by stream and epoch."""


class LinkPlace:
    """One end of one link: `end` is the site that sends, or nothing for the receiver.

    Raises:
        LinkError: where another process, or another object of this one, has this end already.
        LogError: where the log's folder cannot be written.
    """

    def __init__(self, log_root: Path | str, end: str, address: str) -> None:
        folder = Path(log_root) / _FOLDER
        # Another address is another link, and what has been sent over one is not on the other.
        name = f"{end or '.receiver'}-{sha256(address.encode()).hexdigest()[:16]}"
        self._position = folder / f"{name}.json"
        self._reader = folder / ".reader"
        with explained("write to the log", folder):
            folder.mkdir(parents=True, exist_ok=True)
            self._lock: TextIO = (folder / f"{name}.lock").open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._lock.close()
            who = f"a sender of {end}" if end else "a receiver"
            raise LinkError(
                f"{who} runs already on {log_root}. Hint: one is enough; end the other one."
            ) from error

    def read_position(self) -> Position:
        """What is known to be safe with the link; nothing where nothing was noted."""
        try:
            with explained("read the log", self._position):
                noted = json.loads(self._position.read_bytes()) if self._position.exists() else {}
            return {
                str(stream): {int(epoch): int(batch) for epoch, batch in epochs.items()}
                for stream, epochs in noted.items()
            }
        except (ValueError, TypeError, AttributeError):
            # Cut off by a power cut: what was sent is sent again.
            return {}

    def write_position(self, position: Position) -> None:
        """Note what is safe with the link."""
        with explained("write to the log", self._position):
            draft = self._position.with_suffix(".draft")
            draft.write_text(json.dumps(position), "utf-8")
            draft.replace(self._position)

    def forget_position(self) -> None:
        """Note that nothing is."""
        with explained("write to the log", self._position):
            self._position.unlink(missing_ok=True)

    def reader_id(self) -> str:
        """A name for this log that no other log has, however it comes to be at the same place."""
        with explained("write to the log", self._reader):
            if not self._reader.exists():
                draft = self._reader.with_suffix(f".{uuid4().hex}")
                draft.write_text(uuid4().hex, "ascii")
                try:
                    os.link(draft, self._reader)
                except FileExistsError:
                    pass
                finally:
                    draft.unlink()
            return self._reader.read_text("ascii")

    def close(self) -> None:
        """Let another have this end."""
        self._lock.close()
