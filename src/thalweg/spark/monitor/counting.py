"""How many rows pass every operator of a query, from as few counts as that takes.

Known without asking Spark: what a query was given to read, and what it published. An operator that
keeps its rows puts out what it reads, without what it refuses. What is left is observed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from thalweg.spark.log.names import EDGES, SINKS
from thalweg.spark.monitor.observation import (
    Edge,
    broken_counts,
    inbox_counts,
    output_bytes,
    output_counts,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCounts:
    """Rows of one batch."""

    rows: Mapping[str, int]
    """That each source brought and each operator put out."""
    rows_in: Mapping[str, int]
    """That each operator read."""
    input_rows: int
    """That the query read."""
    output_bytes: Mapping[str, int] = field(default_factory=dict)
    """Bytes of data that operators put out which are not published, where they are known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counting:
    """Who reads whom in a query, and which operators keep their rows."""

    senders: Mapping[str, Sequence[str]]
    """Operator or sink → whom it reads, in an order in which senders come before readers."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """Source that is born here → the stream with its rows."""
    inbox: Mapping[Edge, str] = field(default_factory=dict)
    """Edge → the stream with the rows that other sites send along it."""
    published: Collection[str] = ()
    """Operators and sinks all of whose output goes into the log."""
    keepers: Collection[str] = ()
    fixed_bytes: Mapping[str, float] = field(default_factory=dict)
    """Operator → the bytes of each row that its columns' types say."""
    variable: Collection[str] = ()
    """The operators whose rows hold texts or collections, which take more."""

    @property
    def measured(self) -> frozenset[str]:
        """The operators of which Spark has to say how many bytes their rows take."""
        return frozenset(self.variable) & frozenset(self.senders) - frozenset(self.published)

    @property
    def observed(self) -> frozenset[str]:
        """The operators whose output has to be counted: others read it, and it is not known."""
        read = {sender for senders in self.senders.values() for sender in senders}
        known = {*self.sources, *self.keepers, *self.published}
        return frozenset(name for name in self.senders if name in read and name not in known)

    @property
    def refusing(self) -> frozenset[str]:
        """The operators of which it has to be known how many rows they refuse."""
        return frozenset(self.keepers) - frozenset(self.published)

    def count(
        self, progress: Mapping[str, Any], taken: Mapping[str, int], published: Mapping[str, int]
    ) -> RowCounts:
        """The rows of the batch that Spark reports in this progress.

        `taken` has the rows that it was given of each stream, `published` those that it put into
        each stream.
        """
        observed, broken = output_counts(progress), broken_counts(progress)
        watched = self.observed
        carried, told = inbox_counts(progress), _by_sender(published)
        rows = {name: taken.get(stream, 0) for name, stream in self.sources.items()}
        rows_in: dict[str, int] = {}
        sent = 0
        for name, senders in self.senders.items():
            edges = [(sender, name) for sender in senders]
            come = sum(taken.get(self.inbox.get(e, ""), 0) + carried.get(e, 0) for e in edges)
            sent += come
            rows_in[name] = come + sum(rows.get(sender, 0) for sender in senders)
            if name in self.published:
                rows[name] = told.get(name, 0)
            elif name in self.keepers:
                refused = sum(broken.get(edge, 0) for edge in edges)
                # Never below nothing, should a batch have failed between two counts.
                rows[name] = max(0, rows_in[name] - refused)
            elif name in watched:
                rows[name] = observed.get(name, 0)
        return RowCounts(
            rows=rows,
            rows_in=rows_in,
            input_rows=sum(rows[name] for name in self.sources) + sent,
            output_bytes=self._count_bytes(rows, output_bytes(progress)),
        )

    def _count_bytes(self, rows: Mapping[str, int], more: Mapping[str, int]) -> dict[str, int]:
        """Bytes of what is put out and not published; `more` is what Spark has added up."""
        found = {}
        for name in rows.keys() & self.fixed_bytes.keys() - set(self.published):
            if name in self.senders and (name not in self.variable or name in more):
                found[name] = round(rows[name] * self.fixed_bytes[name]) + more.get(name, 0)
        return found


def _by_sender(published: Mapping[str, int]) -> dict[str, int]:
    """Rows by the operator that sent them, or the sink; all edges of an operator carry the same."""
    found: dict[str, int] = {}
    for stream, rows in published.items():
        kind, _, name = stream.partition("/")
        sender = name.partition("+")[0] if kind == EDGES else name if kind == SINKS else ""
        found[sender] = max(found.get(sender, 0), rows)
    return found
