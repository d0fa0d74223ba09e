"""ω_D: how far each vehicle has driven, all in all and within a window, kept as it moves.

The state of a vehicle is its positions of the last `WINDOW_S` seconds, with what it had driven by
each. Sums are taken one after the other and never backwards, so that the same rows lead to the
same bits, in whatever batches they come and wherever those are worked on.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from thalweg.compiling import kernel
from thalweg.spark.keyed.operator import keyed

Floats = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]

WINDOW_S = 60.0
OPERATOR = "thalweg.spark.mobility.positions:distances"
_FIGURES = 4
_POSITION = np.dtype("<f8")
_POSITION_BYTES = _FIGURES * _POSITION.itemsize


@keyed(
    by="vehicle",
    rows="seq long, vehicle long, time_s double, x_m double, y_m double",
    state="driven_m double, positions binary",
    output="seq long, vehicle long, time_s double, driven_m double, window_m double, away_m double",
)
def distances(rows: pa.Table, state: pa.Table) -> tuple[pa.Table, pa.Table]:
    """With each position: what was driven so far, within the window, and the way as a bird flies.

    `window_m` and `away_m` are measured from the first position that is less than `WINDOW_S` old.
    Rows of a vehicle are taken by `seq`, whatever their order in the batch.
    """
    rows = rows.take(pc.sort_indices(rows, sort_keys=[("seq", "ascending")]))
    vehicles, owner = np.unique(rows.column("vehicle").to_numpy(), return_inverse=True)
    kept, kept_owner = unpack(state, vehicles)
    new = np.full((rows.num_rows, _FIGURES), np.nan)
    for column, name in enumerate(("time_s", "x_m", "y_m")):
        new[:, column] = rows.column(name).to_numpy()
    # Stable: of each vehicle what was kept comes first, then what is new, in its order.
    both = np.concatenate([kept_owner, owner])
    order = np.argsort(both, kind="stable")
    both, positions = both[order], np.concatenate([kept, new])[order]
    is_new = order >= len(kept)
    first = drive(both, is_new, positions, WINDOW_S)
    last = np.flatnonzero(np.diff(both, append=-1))
    within = np.arange(len(both)) >= first[last][both]
    counts = np.bincount(both[within], minlength=len(vehicles))
    changed = pa.table(
        {
            "vehicle": vehicles,
            "driven_m": positions[last, 3],
            "positions": pack(positions[within], counts),
        }
    )
    place = np.empty(rows.num_rows, dtype=np.int64)
    place[order[is_new] - len(kept)] = np.flatnonzero(is_new)
    return _output(rows, positions[place], positions[first[place]]), changed


def _output(rows: pa.Table, now: Floats, before: Floats) -> pa.Table:
    dx, dy = now[:, 1] - before[:, 1], now[:, 2] - before[:, 2]
    return pa.table(
        {
            "seq": rows.column("seq"),
            "vehicle": rows.column("vehicle"),
            "time_s": rows.column("time_s"),
            "driven_m": now[:, 3],
            "window_m": now[:, 3] - before[:, 3],
            "away_m": np.sqrt(dx * dx + dy * dy),
        }
    )


@kernel
def drive(owner: Whole, is_new: npt.NDArray[np.bool_], positions: Floats, window_s: float) -> Whole:
    """Write what was driven by each new position; the first position in the window of each.

    Positions (time, x, y, driven) are by owner, then by time.
    """
    first = np.empty(owner.size, dtype=np.int64)
    begin = 0
    for i in range(owner.size):
        if i == 0 or owner[i] != owner[i - 1]:
            begin = i
            if is_new[i]:
                positions[i, 3] = 0.0
        elif is_new[i]:
            dx = positions[i, 1] - positions[i - 1, 1]
            dy = positions[i, 2] - positions[i - 1, 2]
            positions[i, 3] = positions[i - 1, 3] + np.sqrt(dx * dx + dy * dy)
        while positions[begin, 0] <= positions[i, 0] - window_s:
            begin += 1
        first[i] = begin
    return first


def pack(positions: Floats, counts: Whole) -> pa.Array:
    """The positions of vehicle after vehicle, `counts` of each, as one binary value for each.

    One value, since a fingerprint of numbers in lists would take Python a look at each of them.
    """
    ends = np.concatenate([[0], np.cumsum(counts)]) * _POSITION_BYTES
    data = np.ascontiguousarray(positions, dtype=_POSITION).tobytes()
    offsets = pa.py_buffer(ends.astype(np.int32).tobytes())
    return pa.Array.from_buffers(pa.binary(), len(counts), [None, offsets, pa.py_buffer(data)])


def unpack(state: pa.Table, vehicles: npt.NDArray[Any]) -> tuple[Floats, Whole]:
    """The positions in a state, and of each the place of its vehicle among these."""
    packed = state.column("positions")
    data = b"".join(packed.to_pylist())
    positions = np.frombuffer(data, dtype=_POSITION).reshape(-1, _FIGURES)
    counts = pc.binary_length(packed).to_numpy() // _POSITION_BYTES
    owner = np.searchsorted(vehicles, state.column("vehicle").to_numpy())
    return positions, np.repeat(owner, counts)
