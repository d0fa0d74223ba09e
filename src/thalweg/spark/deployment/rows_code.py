"""The code that the rows of a run were made with, beside the code that somebody has now."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from thalweg.spark.deployment.check import find_pipeline
from thalweg.spark.deployment.folder import RunFolder
from thalweg.spark.deployment.manifest import RunManifest
from thalweg.spark.pipeline.code import PipelineCode, code_of, shorten


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeSpan:
    """One code that a run had, and since when."""

    digest: str | None
    """None: it was not recorded."""
    since_s: float | None = None
    """None: from the beginning."""

    def __str__(self) -> str:
        since = "" if self.since_s is None else f" since {describe_time(self.since_s)}"
        return f"code {shorten(self.digest)}{since}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsCode:
    """The codes that the rows of a run were made with, oldest first, and the code at hand."""

    spans: tuple[CodeSpan, ...]
    given: str
    """The digest of the code at hand."""
    changes: tuple[str, ...] = ()
    """Everything in which the code at hand differs from the last one of the run, in words."""

    @property
    def is_same(self) -> bool | None:
        """Whether all rows were made with the code at hand; None: of some it is unknown."""
        found = {span.digest for span in self.spans}
        if found - {self.given, None}:
            return False
        return None if None in found else True

    def describe(self) -> str:
        """The same in words, a line for each difference."""
        head = f"the rows were made with {', then '.join(map(str, self.spans))}"
        if self.is_same:
            return f"{head}; this is that code"
        if self.is_same is None:
            return f"{head}; whether all are of the code here, {shorten(self.given)}, is unknown"
        return "\n".join((f"{head}; this is other code, {shorten(self.given)}", *self.changes))

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        rows = [{"digest": span.digest, "since_s": span.since_s} for span in self.spans]
        changes = list(self.changes)
        return {"rows": rows, "here": self.given, "same": self.is_same, "changes": changes}


def find_rows_code(pipeline: str, folder: Path | str) -> RowsCode:
    """The code of a run's rows, beside that of the pipeline of this name or reference.

    Raises:
        InvalidInput: where there is no run in the folder, or no such pipeline.
    """
    found = RunFolder.of_run(folder)
    manifest, own = found.read_manifest(), find_pipeline(pipeline)
    return compare_code(manifest, found.read_decisions(), code_of(own))


def compare_code(
    manifest: RunManifest, decisions: Iterable[Mapping[str, Any]], given: PipelineCode
) -> RowsCode:
    """The codes that a run's manifest and its decisions name, beside the code given."""
    known = manifest.code
    if known is None or not given.is_like(known):
        return RowsCode(spans=(CodeSpan(digest=None),), given=given.digest)
    first: dict[str, float] = {}
    for decision in decisions:
        code, at_s = decision.get("code"), decision.get("at_s")
        if isinstance(code, str) and isinstance(at_s, (int, float)):
            first.setdefault(code, float(at_s))
    since_s = manifest.code_since_s
    spans = [] if since_s is None else [CodeSpan(digest=None)]
    others = [CodeSpan(digest=d, since_s=at_s) for d, at_s in first.items() if d != known.digest]
    if others and since_s is None:
        since_s = first.get(known.digest)
    last = CodeSpan(digest=known.digest, since_s=since_s)
    ordered = sorted((*others, last), key=lambda span: span.since_s or 0.0)
    changes = given.list_changes(known)
    return RowsCode(spans=(*spans, *ordered), given=given.digest, changes=changes)


def describe_time(at_s: float) -> str:
    """A time of day for people.

    >>> describe_time(0.0)
    '1970-01-01 00:00:00 UTC'
    """
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(at_s))
    except (OverflowError, ValueError, OSError):
        return f"{at_s:g} s"
