"""What streams of the log are called, and where their segments lie.

    ROOT/KIND/STREAM/SITE/EPOCH/GROUP/BATCH/   a segment: its manifest and its rows
    ROOT/KIND/.gates/SITE/EPOCH/open/          drafts of segments; `closed` once the epoch is fenced
    ROOT/KIND/.gates/SITE/EPOCH/fence/         the last batch of the epoch that counts

Every name is checked before it becomes part of a path. Segments are in groups of a thousand, so
that a reader that is up to date lists a short folder however long the stream is.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from thalweg.errors import Defects
from thalweg.model.names import NAME_RULE, is_name, name_hint, require_name

EDGES = "edges"
SOURCES = "sources"
SINKS = "sinks"
BATCHES_PER_GROUP = 1000
_BETWEEN = "+"
_STREAM_RULE = f"kind/name or kind/name{_BETWEEN}name, where each is {NAME_RULE}"


def edge_stream(source: str, target: str) -> str:
    """The stream between two operators.

    No name has a plus sign in it, so that no two edges can mean the same stream.

    >>> edge_stream("clean", "speed-by-zone")
    'edges/clean+speed-by-zone'
    """
    defects = Defects()
    require_name(defects, "source", source)
    require_name(defects, "target", target)
    defects.raise_if_any()
    return f"{EDGES}/{source}{_BETWEEN}{target}"


def source_stream(name: str) -> str:
    """The stream of rows that are born at the sites.

    >>> source_stream("rides")
    'sources/rides'
    """
    return _named(SOURCES, name)


def sink_stream(name: str) -> str:
    """The stream of results.

    >>> sink_stream("board")
    'sinks/board'
    """
    return _named(SINKS, name)


def _named(kind: str, name: str) -> str:
    defects = Defects()
    require_name(defects, "name", name)
    defects.raise_if_any()
    return f"{kind}/{name}"


def require_stream(defects: Defects, path: str, stream: object) -> None:
    """Remember a defect unless `stream` is one."""
    kind, _, name = stream.partition("/") if isinstance(stream, str) else ("", "", "")
    parts = name.split(_BETWEEN)
    fits = is_name(kind) and len(parts) <= 2 and all(map(is_name, parts))
    hint = next((hint for part in (kind, *parts) if (hint := name_hint(part))), "")
    defects.require(fits, path, stream, _STREAM_RULE, hint)


def require_count(defects: Defects, path: str, value: object, least: int = 0) -> None:
    """Remember a defect unless `value` is a whole number of at least `least`."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    defects.require(whole and int(str(value)) >= least, path, value, f"a whole number >= {least}")


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochPlace:
    """Where what a site writes in one epoch lies; all names are checked by who makes it."""

    root: Path
    stream: str
    site: str
    epoch: int

    @property
    def kind(self) -> str:
        """The first part of the stream's name."""
        return self.stream.partition("/")[0]

    @property
    def folder(self) -> Path:
        """Where the groups of segments are."""
        return self.root / self.stream / self.site / str(self.epoch)

    @property
    def gate(self) -> Path:
        """What decides whether anything may still be published in this epoch."""
        return gate_folder(self.root, self.kind, self.site, self.epoch)

    def segment(self, batch: int) -> Path:
        """The folder of one batch."""
        return self.folder / str(batch // BATCHES_PER_GROUP) / str(batch)


def gate_folder(root: Path, kind: str, site: str, epoch: int) -> Path:
    """The gate of an epoch: one for all streams of a kind that a site writes."""
    return root / kind / ".gates" / site / str(epoch)


def number_of(name: str) -> int | None:
    """The number that a folder is named by; None for other names, such as leading zeros."""
    return int(name) if name.isascii() and name.isdigit() and str(int(name)) == name else None
