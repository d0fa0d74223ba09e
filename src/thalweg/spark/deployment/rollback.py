"""Where a rollback goes, as a pure function: the same place however often it is asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from thalweg.spark.deployment.control import Refused, Request
from thalweg.spark.deployment.folder import HistoryEntry
from thalweg.spark.deployment.status import same_cuts


def shorten_history(history: Sequence[HistoryEntry], request: Request) -> list[HistoryEntry]:
    """The history without the cuts that a rollback leaves: it goes to those that are last then.

    They say which request went back to them. So a request that was cut off gives the same once
    more, whatever of it was done, and never goes one further.

    Raises:
        Refused: where there are no earlier cuts, or others than those that it was to leave.
    """
    kept = list(history)
    if kept and kept[-1].rolled_back_by == request.number:
        return kept
    if kept and request.leaves_s not in (None, kept[-1].at_s):
        raise Refused(
            "the cuts have changed since the rollback was asked for, "
            f"of: {kept[-1].reason}. Hint: ask again to go back from these."
        )
    left = kept[-1].cuts if kept else {}
    while kept and same_cuts(kept[-1].cuts, left):
        kept.pop()
    if not kept:
        raise Refused("there are no earlier cuts to go back to")
    return [*kept[:-1], replace(kept[-1], rolled_back_by=request.number)]
