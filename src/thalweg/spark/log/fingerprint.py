"""Hashes of rows whose sum tells a batch from another, whatever the order of its rows.

Numbers with a fraction count in single precision: added up in another order, the same rows may
differ in the last digit, and a replay with such a difference is the same replay.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

HASH_KIND = "arrow"
_Words = NDArray[np.uint64]


def hash_rows(batch: pa.RecordBatch) -> int:
    """The sum of the hashes of all rows, modulo 2**64.

    >>> rows = pa.record_batch({"zone": [1, 2, 3], "vendor": ["a", "b", None]})
    >>> hash_rows(rows) == hash_rows(rows.take(pa.array([2, 0, 1])))
    True
    >>> hash_rows(rows) == hash_rows(rows.slice(0, 2))
    False
    """
    words = np.zeros(batch.num_rows, dtype=np.uint64)
    for column in batch.columns:
        words = _mix(words * np.uint64(31) + _hash_column(column))
    return int(words.sum(dtype=np.uint64))


def _mix(words: _Words) -> _Words:
    """The last steps of SplitMix64: every bit of a word comes to matter for all bits of it."""
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def _hash_column(column: pa.Array) -> _Words:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    present = column.is_valid().to_numpy(zero_copy_only=False).astype(np.uint64)
    words: _Words = _mix(_words(column)) * present + present
    return words


def _words(column: pa.Array) -> _Words:
    """A number for each value; equal values have equal numbers."""
    kind = column.type
    if pa.types.is_null(kind):
        return np.zeros(len(column), dtype=np.uint64)
    if pa.types.is_floating(kind):
        single = pc.fill_null(pc.cast(column, pa.float32(), safe=False), 0.0)
        # Both zeros are one number.
        bits: NDArray[np.uint32] = (single.to_numpy() + np.float32(0)).view(np.uint32)
        return bits.astype(np.uint64)
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        whole = pc.cast(column, pa.uint64() if kind == pa.uint64() else pa.int64())
        return _zero_for_null(whole).astype(np.uint64)
    if pa.types.is_temporal(kind) and kind.bit_width in (32, 64):
        storage = pa.int32() if kind.bit_width == 32 else pa.int64()
        return _zero_for_null(column.view(storage)).astype(np.uint64)
    return _hash_texts(column)


def _zero_for_null(whole: pa.Array) -> NDArray[np.generic]:
    values: NDArray[np.generic] = pc.fill_null(whole, 0).to_numpy()
    return values


def _hash_texts(column: pa.Array) -> _Words:
    from pandas.util import hash_array

    kind = column.type
    texts = np.empty(len(column), dtype=object)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        texts[:] = pc.fill_null(column, "").to_numpy(zero_copy_only=False)
    else:
        # What is nested or seldom: the text that Python shows for it.
        texts[:] = [repr(value) for value in column.to_pylist()]
    return hash_array(texts, categorize=False).astype(np.uint64)
