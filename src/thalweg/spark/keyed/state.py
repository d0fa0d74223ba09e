"""The state of a keyed operator in memory: one row for each key, in Arrow tables.

New rows are appended as a run of their own, and runs of about the same size become one, so that
there are few of them and a row is copied few times. A key's row is the last one written for it;
once more than half of all rows are out of date, those are left behind.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
import pyarrow as pa

from thalweg.spark.keyed.operator import Key, keys_of
from thalweg.spark.log.fingerprint import hash_rows

_MODULUS = 1 << 64
_FEW_ROWS = 10_000


class KeyedState:
    """A table with one row for each key, looked up and changed by key.

    `fingerprint` is the sum of the hashes of its rows: equal for equal states, however they came
    about, and kept up to date at the price of the rows that change.
    """

    def __init__(
        self, schema: pa.Schema, key: Sequence[str], table: pa.Table | None = None
    ) -> None:
        self._schema = schema
        self._key = tuple(key)
        self._runs: list[pa.Table] = []
        self._places: dict[Key, int] = {}
        self.fingerprint = 0
        if table is not None:
            self.change(table, [])

    def __len__(self) -> int:
        return len(self._places)

    @property
    def nbytes(self) -> int:
        """The size of its rows in memory, those out of date among them."""
        return sum(run.nbytes for run in self._runs)

    def find(self, keys: Sequence[Key]) -> pa.Table:
        """The rows of these keys, in their order; keys without a row are left out."""
        found = (self._places.get(key, -1) for key in keys)
        places = np.fromiter(found, dtype=np.int64, count=len(keys))
        return self._take(places[places >= 0])

    def change(self, updated: pa.Table, removed: Sequence[Key]) -> None:
        """Put in the rows of `updated`, one for each of its keys, and take the removed ones out."""
        keys = keys_of(updated, self._key)
        before = self.find([*keys, *removed])
        self.fingerprint += _hash(updated) - _hash(before)
        self.fingerprint %= _MODULUS
        for key in removed:
            self._places.pop(key, None)
        if keys:
            first = sum(run.num_rows for run in self._runs)
            self._places.update(zip(keys, range(first, first + len(keys)), strict=True))
            self._runs.append(updated.cast(self._schema).combine_chunks())
            self._join_runs()
        rows = sum(run.num_rows for run in self._runs)
        if rows > 2 * len(self) + _FEW_ROWS:
            self._leave_behind()

    def copy(self) -> KeyedState:
        """The state as it is now, whatever happens to this one; what rows it has is not copied."""
        other = KeyedState(self._schema, self._key)
        other._runs, other._places = list(self._runs), dict(self._places)
        other.fingerprint = self.fingerprint
        return other

    def to_table(self) -> pa.Table:
        """All rows, in no particular order."""
        return self._take(np.fromiter(self._places.values(), dtype=np.int64, count=len(self)))

    def _take(self, places: np.ndarray[tuple[int], np.dtype[np.int64]]) -> pa.Table:
        starts = np.array([0, *accumulate(run.num_rows for run in self._runs)], dtype=np.int64)
        numbers = np.searchsorted(starts, places, side="right") - 1
        parts, order = [], []
        for number in np.unique(numbers):
            (at,) = np.nonzero(numbers == number)
            order.append(at)
            parts.append(self._runs[number].take(pa.array(places[at] - starts[number])))
        if not parts:
            return self._schema.empty_table()
        if len(parts) == 1:
            return parts[0]
        together = pa.concat_tables(parts).combine_chunks()
        return together.take(pa.array(np.argsort(np.concatenate(order))))

    def _join_runs(self) -> None:
        # Neighbours only: what is where in all runs together stays as it is.
        while len(self._runs) > 1 and self._runs[-2].num_rows <= 2 * self._runs[-1].num_rows:
            last = self._runs.pop()
            self._runs[-1] = pa.concat_tables([self._runs[-1], last]).combine_chunks()

    def _leave_behind(self) -> None:
        table = self.to_table()
        self._runs = [table]
        self._places = dict(zip(self._places, range(len(self)), strict=True))


def _hash(table: pa.Table) -> int:
    return sum(hash_rows(batch) for batch in table.to_batches() if batch.num_rows)
