"""What a streaming query's checkpoint says: where it stands, what is under way, who holds it."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from uuid import uuid4

from thalweg.errors import Defect, InvalidInput

Offsets = Mapping[str, object]
"""Where each source stands, by its name or its place; what an offset is, the source decides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stand:
    """The last batch that a query has finished, and the offsets that it reached; -1: none yet."""

    batch: int = -1
    offsets: Offsets = field(default_factory=dict)
    watermark_ms: int | None = None
    """Every window that ends by then has been put out."""
    newest_ms: int | None = None
    """The latest event time of the rows up to there."""

    def to_dict(self) -> dict[str, object]:
        """The same as plain data."""
        return asdict(self)


def last_finished(checkpoint: Path) -> int:
    """The last batch that the query with this checkpoint has finished; -1: none."""
    return last_number(checkpoint / "commits")


def read_stand(checkpoint: Path) -> Stand:
    """Where the query with this checkpoint stands; its sources are "0", "1", … by their place."""
    batch = last_finished(checkpoint)
    if batch < 0:
        return Stand()
    return Stand(
        batch=batch, offsets=_parse_offsets((checkpoint / "offsets" / str(batch)).read_text())
    )


def watermark_of(checkpoint: Path, batch: int) -> int | None:
    """The watermark [ms] that a batch worked with; None where it has none yet."""
    if batch < 0:
        return None
    _, metadata, *_ = (checkpoint / "offsets" / str(batch)).read_text().split("\n")
    watermark_ms = int(json.loads(metadata).get("batchWatermarkMs", 0))
    return watermark_ms or None


def batch_under_way(checkpoint: Path) -> int | None:
    """The batch that was begun and has not finished, if there is one."""
    # In this order: a batch that finishes in between is then seen as finished.
    begun = last_number(checkpoint / "offsets")
    finished = last_finished(checkpoint)
    return begun if begun > finished else None


def has_reached(offsets: object, goal: object) -> bool:
    """Whether everything up to the goal is behind these offsets.

    Numbers are compared; of mappings, whatever the goal names; of lists, item by item; anything
    else has to be equal.

    >>> has_reached({"rides": {"fog-1": 7}}, {"rides": {"fog-1": 7}})
    True
    >>> has_reached({"rides": {"fog-1": 7}}, {"rides": {"fog-1": 8}})
    False
    """
    if isinstance(goal, Mapping):
        return isinstance(offsets, Mapping) and all(
            key in offsets and has_reached(offsets[key], value) for key, value in goal.items()
        )
    if isinstance(goal, list):
        return (
            isinstance(offsets, list)
            and len(offsets) >= len(goal)
            and all(map(has_reached, offsets, goal))
        )
    if isinstance(goal, (int, float)) and isinstance(offsets, (int, float)):
        return offsets >= goal
    return offsets == goal


@contextmanager
def hold_checkpoint(checkpoint: Path) -> Iterator[None]:
    """Keep a checkpoint to oneself for the length of the block; an ended process holds none.

    Raises:
        InvalidInput: where a running query has it.
    """
    checkpoint.parent.mkdir(parents=True, exist_ok=True)
    with checkpoint.with_name(checkpoint.name + ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            rule = "a checkpoint that no running query uses"
            hint = "stop that query first, or give this one a checkpoint of its own"
            raise InvalidInput(
                [Defect(path="checkpoint", value=str(checkpoint), rule=rule, hint=hint)]
            ) from None
        yield


def require_writable(folder: Path) -> None:
    """Make the folder if it is missing; raise `OSError` where nothing can be written to it."""
    folder.mkdir(parents=True, exist_ok=True)
    probe = folder / f".writable-{uuid4().hex}"
    probe.touch()
    probe.unlink()


def last_number(folder: Path) -> int:
    """The largest number that names a file there, compacted or not; -1 where none does."""
    try:
        names = [file.name.removesuffix(".compact") for file in folder.iterdir()]
    except FileNotFoundError:
        return -1
    return max((int(name) for name in names if name.isdecimal()), default=-1)


def _parse_offsets(text: str) -> dict[str, object]:
    """The offsets in a file of Spark's offset log: version, metadata, one line for each source."""
    _, _, *lines = text.split("\n")
    return {str(place): _plain(line) for place, line in enumerate(lines)}


def _plain(offset: str) -> object:
    """An offset as plain data; Spark writes a dash for a source that has none yet."""
    if offset == "-":
        return None
    try:
        return json.loads(offset)
    except ValueError:
        return offset
