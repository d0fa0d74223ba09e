"""Rates over a sliding window, from batches that end whenever they do.

What a batch brought came in since the batch before it ended, so it is spread evenly over that time.
A rate then does not jump with the number of batches that happen to end within the window, and a
batch that takes longer than the window still gives the right rate.

Windows put out their rows in bursts, with batches in between that put out none. What a burst
brought is spread over the time since the burst before: otherwise a rate over half a minute would be
a sixth too high or too low as a burst more or less falls into it.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any

Weighted = tuple[float, Mapping[str, Any]]
# How many times the longest gap it may take until the next burst.
_LATE_BURST = 1.5


class BatchChain:
    """The batches of one query, one site or one gateway, by the time at which they ended."""

    def __init__(self) -> None:
        self._records: list[Mapping[str, Any]] = []
        self._forgotten_s: float | None = None

    @property
    def last(self) -> Mapping[str, Any]:
        """The record of the batch that ended last."""
        return self._records[-1]

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        return iter(self._records)

    def add(self, record: Mapping[str, Any]) -> None:
        """Put a record in its place; of equal times, behind those that are there."""
        insort(self._records, record, key=lambda each: float(each["at_s"]))

    def forget(self, until_s: float) -> None:
        """Let go of what ended at this time or before, but never of the last."""
        keep = sum(record["at_s"] <= until_s for record in self._records[:-1])
        if keep:
            self._forgotten_s = self._records[keep - 1]["at_s"]
            del self._records[:keep]

    def is_silent(self, now_s: float, window_s: float) -> bool:
        """Whether more time has passed without a batch than a window and two such batches."""
        last = self.last
        return bool(now_s - last["at_s"] > window_s + 2.0 * last["batch_s"])

    def weigh(self, window_s: float) -> list[Weighted]:
        """How much of every record counts per second, in the window up to the last batch's end.

        Empty as long as no time has passed by which a rate could be told.
        """
        end_s = float(self.last["at_s"])
        spans = list(self._spans())
        span_s = min(window_s, end_s - spans[0][0])
        if span_s <= 0:
            return []
        found = []
        for start_s, at_s, record in spans:
            share = share_within(start_s, at_s, end_s - window_s, end_s)
            if share > 0:
                found.append((share / span_s, record))
        return found

    def rates(
        self, key: str, weighted: Iterable[Weighted], window_s: float, steady: Collection[str] = ()
    ) -> dict[str, float]:
        """How much per second the records have under this key, by name, in such a window.

        `weighted` is what `weigh` gives for it. What is `steady` does not come in bursts, whatever
        it looks like.
        """
        found = sum_by_name(weighted, key)
        for name in found.keys() - set(steady):
            rate = self._burst_rate(key, name, window_s)
            found[name] = found[name] if rate is None else rate
        return found

    def _burst_rate(self, key: str, name: str, window_s: float) -> float | None:
        """The rate of what comes in bursts, in a window up to the last of them.

        What a burst brought has gathered since the one before. None where it does not come in
        bursts, or there are fewer than two in the window, or where another one should have come by
        now.
        """
        end_s = float(self.last["at_s"])
        values = [(float(r["at_s"]), float(r[key].get(name, 0))) for r in self._records]
        bursts = [(at_s, value) for at_s, value in values if value > 0]
        recent = [at_s for at_s, _ in bursts if at_s > end_s - window_s]
        batches = sum(at_s > end_s - window_s for at_s, _ in values)
        if len(recent) < 2 or len(recent) == batches or recent[-1] <= recent[0]:
            return None
        longest_s = max(b - a for a, b in pairwise(recent))
        last_s = recent[-1]
        if end_s - last_s > _LATE_BURST * longest_s:
            return None
        gathered = sum(
            value * share_within(before_s, at_s, last_s - window_s, last_s)
            for (before_s, _), (at_s, value) in pairwise(bursts)
        )
        return gathered / min(window_s, last_s - bursts[0][0])

    def _spans(self) -> Iterator[tuple[float, float, Mapping[str, Any]]]:
        """Every record with the time that its rows came in."""
        before_s = self._forgotten_s
        for record in self._records:
            at_s = float(record["at_s"])
            yield at_s - record["batch_s"] if before_s is None else before_s, at_s, record
            before_s = at_s


def share_within(start_s: float, end_s: float, low_s: float, high_s: float) -> float:
    """Which part of a time lies in the window (low, high]; a moment is in it or not.

    >>> share_within(0.0, 4.0, 3.0, 10.0)
    0.25
    """
    if end_s <= start_s:
        return 1.0 if low_s < end_s <= high_s else 0.0
    return max(0.0, min(end_s, high_s) - max(start_s, low_s)) / (end_s - start_s)


def sum_by_name(weighted: Iterable[Weighted], key: str) -> dict[str, float]:
    """The weighted sum of what the records have under this key, by name."""
    total: dict[str, float] = {}
    for weight, record in weighted:
        for name, value in record[key].items():
            total[name] = total.get(name, 0.0) + weight * value
    return total
