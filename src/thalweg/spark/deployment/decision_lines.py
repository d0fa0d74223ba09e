"""The decisions of a run, a line for each, in two files that take turns.

When the newer file is full, it becomes the older one, and what was the older one goes. A new file
begins with the last change and the last one that has a plan: people ask for them long after.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from thalweg.errors import Defect, InvalidInput
from thalweg.files.own_file import read_own_bytes
from thalweg.spark.deployment.lines import append_line, older_file, turn_over

_MOST_BYTES = 8 * 2**20
# A file may end with a line that is longer than what was left.
_MOST_READ_BYTES = 2 * _MOST_BYTES


def write_decision(
    file: Path, decision: Mapping[str, Any], *, most_bytes: int = _MOST_BYTES
) -> None:
    """Add a decision to those before; a line that a crash has cut off is left behind."""
    line = json.dumps(decision, allow_nan=False).encode()
    turn_over(file, len(line), most_bytes, _last_changes)
    append_line(file, line)


def read_decisions(file: Path) -> list[dict[str, Any]]:
    """The decisions that are kept, oldest first; lines that a crash has cut off are left out.

    Raises:
        InvalidInput: where a file of them is none of a run.
    """
    found: list[dict[str, Any]] = []
    for each in (older_file(file), file):
        # What is repeated at the head of a file is in the older one, if that is there.
        is_known = bool(found)
        with suppress(FileNotFoundError):
            decisions = _decisions_in(_read(each))
            found += [d for d in decisions if not (d.pop("again", False) and is_known)]
    return found


def _read(file: Path) -> bytes:
    try:
        return read_own_bytes(file.parent, file, _MOST_READ_BYTES)
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        rule = "a file as a run writes it"
        defect = Defect(file=str(file), path="", value=str(error), rule=rule)
        raise InvalidInput([defect]) from None


def _decisions_in(content: bytes) -> Iterator[dict[str, Any]]:
    for line in content.splitlines():
        with suppress(ValueError, RecursionError):
            decision = json.loads(line)
            if isinstance(decision, dict):
                yield decision


def _last_changes(content: bytes) -> list[bytes]:
    """The last change with a plan, and the last one, if that is another."""
    changes = [d for d in _decisions_in(content) if d.get("changed") or d.get("plan")]
    planned = [change for change in changes if change.get("plan")][-1:]
    kept = planned + [change for change in changes[-1:] if change not in planned]
    return [json.dumps({**change, "again": True}).encode() for change in kept]
