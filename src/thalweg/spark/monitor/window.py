"""Rates over a sliding window, from batches that end whenever they do.

What a batch brought came in since the batch before it ended, so it is spread evenly over that time.
A rate then does not jump with the number of batches that happen to end within the window, and a
batch that takes longer than the window still gives the right rate.

Windows put out their rows in bursts, with batches in between that put out none. What a burst
brought is spread over the time since the burst before, and the window ends with the last burst:
otherwise a rate over half a minute would be a sixth too high or too low as a burst more or less
falls into it.
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

    def rates(self, key: str, window_s: float, steady: Collection[str] = ()) -> dict[str, float]:
        """How much per second the records have under this key, by name, in such a window.

        What is `steady` does not come in bursts, whatever it looks like.
        """
        found = sum_by_name(self.weigh(window_s), key)
        for name in found.keys() - set(steady):
            rate = self._burst_rate(key, name, window_s)
            found[name] = found[name] if rate is None else rate
        return found

    def _burst_rate(self, key: str, name: str, window_s: float) -> float | None:
        """The rate of what comes in bursts up to the last of them; None where it does not, or
        where another burst should have come by now."""
        values = [(float(r["at_s"]), float(r[key].get(name, 0))) for r in self._records]
        bursts = [(at_s, value) for at_s, value in values if value > 0]
        if len(bursts) < 2 or len(bursts) == len(values):
            return None
        spans = [(a, b, value) for (a, _), (b, value) in pairwise(bursts)]
        end_s = spans[-1][1]
        counted = [span for span in spans if span[1] > end_s - window_s]
        if values[-1][0] - end_s > _LATE_BURST * max(b - a for a, b, _ in counted):
            return None
        span_s = min(window_s, end_s - spans[0][0])
        if span_s <= 0:
            return None
        return (
            sum(value * share_within(a, b, end_s - window_s, end_s) for a, b, value in counted)
            / span_s
        )

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
