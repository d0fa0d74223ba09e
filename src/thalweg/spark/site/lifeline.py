"""What ties the process of a site to the one that started it: its life, and its two streams."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from pathlib import Path
from typing import IO

_PR_SET_PDEATHSIG = 1


def end_group() -> None:
    """End this process and all of its group, the JVM among them; Spark's workers follow it."""
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


def end_with_parent(parent: int) -> None:
    """Have the kernel tell this process when its parent ends.

    Where a system has no such thing, the process has to look for itself who its parent is.
    """
    signal.signal(signal.SIGTERM, lambda *_: end_group())
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        end_group()


def take_standard_streams() -> tuple[IO[bytes], IO[bytes]]:
    """Standard input and output for commands and answers alone.

    What anything else prints goes where the errors go, and programs started from here get
    neither end of the line.
    """
    commands = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    return commands, answers
