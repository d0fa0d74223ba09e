"""Writes a workload as plain data or as a table."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from thalweg.errors import Defect, InvalidInput
from thalweg.files.fields import FORMAT_VERSION
from thalweg.files.outline import MOST_KEYS_AND_VALUES
from thalweg.files.quantities import write_quantity
from thalweg.model.graph import Floats
from thalweg.model.workload import ALL_SITES, Workload
from thalweg.units import DURATION, EVENT_RATE

COLUMNS = ("time_s", "source", "site", "rate")


def workload_data(workload: Workload) -> dict[str, Any]:
    """The workload as plain data; rates of 0 are left out, unless a pair has no other."""
    _require_no_tracks(workload)
    is_written = workload.rate != 0
    # A pair that is never born is still one that the workload speaks of.
    is_written[0] |= ~is_written.any(axis=0)
    _require_few(5 * len(workload) + int(np.count_nonzero(is_written)))
    steps = [
        {"at": write_quantity(moment, DURATION), "rates": _rates(workload, row, is_written[row])}
        for row, moment in enumerate(workload.time_s.tolist())
    ]
    data = {"thalweg": FORMAT_VERSION, "workload": workload.name, "steps": steps}
    _require_few(_count(data))
    return data


def workload_csv(workload: Workload) -> bytes:
    """The workload as a table of all moments and pairs, in text."""
    pairs = [f",{source},{site}," for source, site in _births(workload)]
    rows = (
        f"{moment!r}{pair}{rate!r}\n"
        for moment, rates in zip(workload.time_s.tolist(), workload.rate.tolist(), strict=True)
        for pair, rate in zip(pairs, rates, strict=True)
    )
    return "".join((",".join(COLUMNS) + "\n", *rows)).encode("ascii")


def workload_parquet(workload: Workload) -> bytes:
    """The workload as a table of all moments and pairs, in Parquet."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    births = _births(workload)
    moments, pairs = workload.rate.shape
    birth = np.tile(np.arange(pairs, dtype=np.int32), moments)

    # Buffers are handed over as they are: `pa.array` would load pandas.
    def texts(words: list[str]) -> Any:
        # Names are ASCII, so a character is a byte.
        ends = np.cumsum([0, *map(len, words)], dtype=np.int32)
        buffers = [None, pa.py_buffer(ends), pa.py_buffer("".join(words).encode("ascii"))]
        known = pa.Array.from_buffers(pa.string(), len(words), buffers)
        at = pa.Array.from_buffers(pa.int32(), birth.size, [None, pa.py_buffer(birth)])
        return pa.DictionaryArray.from_arrays(at, known).cast(pa.string())

    def figures(values: Floats) -> Any:
        plain = np.ascontiguousarray(values, dtype=np.float64).reshape(-1)
        return pa.Array.from_buffers(pa.float64(), plain.size, [None, pa.py_buffer(plain)])

    columns = [
        figures(np.repeat(workload.time_s, pairs)),
        texts([source for source, _ in births]),
        texts([site for _, site in births]),
        figures(workload.rate),
    ]
    sink = pa.BufferOutputStream()
    table = pa.Table.from_arrays(columns, names=list(COLUMNS))
    pq.write_table(table, sink, compression="zstd", store_schema=False, write_page_checksum=True)
    return bytes(sink.getvalue())


def _rates(workload: Workload, row: int, is_written: npt.NDArray[np.bool_]) -> dict[str, Any]:
    """The rates of one step, by source and site."""
    found: dict[str, dict[str, str]] = {}
    for column in np.flatnonzero(is_written).tolist():
        source, site = workload.births[column]
        rate = write_quantity(workload.rate[row, column], EVENT_RATE)
        found.setdefault(source, {})[site] = rate
    return {
        source: by_site[ALL_SITES] if list(by_site) == [ALL_SITES] else by_site
        for source, by_site in found.items()
    }


def _births(workload: Workload) -> tuple[tuple[str, str], ...]:
    _require_no_tracks(workload)
    if not workload.births:
        rule = "at least one pair of source and site: a table has no row for none"
        raise InvalidInput([Defect(path="births", value="no pair", rule=rule)])
    return workload.births


def _require_no_tracks(workload: Workload) -> None:
    """Refuse what a file would lose."""
    if workload.tracks is not None:
        rule = "a workload without tracks: files hold rates only"
        raise InvalidInput([Defect(path="tracks", value="tracks of users", rule=rule)])


def _count(value: object) -> int:
    """Keys and values."""
    if isinstance(value, dict):
        return 1 + sum(1 + _count(inner) for inner in value.values())
    return 1 + sum(map(_count, value)) if isinstance(value, list) else 1


def _require_few(count: int) -> None:
    if count > MOST_KEYS_AND_VALUES:
        rule = f"at most {MOST_KEYS_AND_VALUES} keys and values in a YAML or JSON file"
        hint = "save large workloads as .parquet or .csv"
        raise InvalidInput([Defect(path="rate", value=f"{count} of them", rule=rule, hint=hint)])
