"""Writers that are killed: `python log_and_die.py FOLDER`.

Publishes two batches in FOLDER/0, FOLDER/1, … each in a process of its own that is killed with
kill -9 just before its first, second, … call to the file system; of a write, half is done by then.
Prints how many calls there are, when one process has come through.
"""

from __future__ import annotations

import io
import os
import signal
import sys
from pathlib import Path
from typing import BinaryIO

import pandas.util  # noqa: F401 - once, and not in every process
import pyarrow as pa

from thalweg.spark.log.disk import Disk
from thalweg.spark.log.writer import LogWriter

STREAM, SITE, EPOCH = "edges/clean+rank", "fog-1", 0


def rows_of(batch: int) -> pa.Table:
    numbers = range(batch * 1000, batch * 1000 + 500)
    return pa.table({"number": pa.array(numbers), "text": [f"row {number}" for number in numbers]})


class CountedFile(io.FileIO):
    """A file that may not live to see its writes done."""

    def __init__(self, path: Path, disk: DyingDisk) -> None:
        super().__init__(path, "x")
        self._disk = disk

    def write(self, data: bytes) -> int:  # type: ignore[override]
        if self._disk.is_last():
            super().write(bytes(data)[: len(data) // 2])
        self._disk.step()
        return super().write(data)


class DyingDisk(Disk):
    """A disk that ends the process before a call to it."""

    def __init__(self, lives: int) -> None:
        # What has reached the system survives kill -9; so nobody waits for the disk.
        super().__init__(durable=False)
        self._lives = lives

    def is_last(self) -> bool:
        return self._lives == 0

    def step(self) -> None:
        if self.is_last():
            os.kill(os.getpid(), signal.SIGKILL)
        self._lives -= 1

    def make_folder(self, path: Path) -> None:
        self.step()
        super().make_folder(path)

    def create(self, path: Path) -> BinaryIO:
        self.step()
        return io.BufferedWriter(CountedFile(path, self), 1 << 20)

    def sync_file(self, file: BinaryIO) -> None:
        self.step()
        super().sync_file(file)

    def sync_folder(self, path: Path) -> None:
        self.step()
        super().sync_folder(path)

    def rename(self, source: Path, target: Path) -> None:
        self.step()
        super().rename(source, target)


def publish_both(root: Path, disk: Disk | None = None) -> None:
    writer = LogWriter(root, STREAM, SITE, EPOCH, disk=disk, durable=False)
    for batch in (0, 1):
        writer.publish(batch, rows_of(batch))


def main(folder: Path) -> None:
    lives = 0
    while True:
        child = os.fork()
        if child == 0:
            publish_both(folder / str(lives), DyingDisk(lives))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if status == 0:
            break
        if os.WTERMSIG(status) != signal.SIGKILL:
            raise RuntimeError(f"a writer ended with {status}")
        lives += 1
    print(lives)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
