"""What `distances` has to come to, computed in another way, all rows at once.

Shares no code with the operator: one vehicle after the other, with the window found by bisection.
What it gives is the same to the last bit, since it adds in the same order.
"""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa

from thalweg.spark.mobility.positions import Floats


def recount(rows: pa.Table, window_s: float) -> tuple[pa.Table, pa.Table]:
    """All rows of output by `seq`, and all of the state by `vehicle`."""
    seq, vehicle = rows.column("seq").to_numpy(), rows.column("vehicle").to_numpy()
    figures = np.column_stack([rows.column(name).to_numpy() for name in ("time_s", "x_m", "y_m")])
    output: Floats = np.empty((len(seq), 3))
    order = np.lexsort((seq, vehicle))
    ends = np.flatnonzero(np.diff(vehicle[order])) + 1
    starts = np.concatenate([[0], ends, [len(seq)]])
    driven_m, kept = [], []
    for begin, end in itertools.pairwise(starts):
        of_one = order[begin:end]
        time_s, x_m, y_m = figures[of_one].T
        steps = np.sqrt(np.diff(x_m) ** 2 + np.diff(y_m) ** 2)
        so_far = np.cumsum(np.concatenate([[0.0], steps]))
        first = np.searchsorted(time_s, time_s - window_s, side="right")
        away = np.sqrt((x_m - x_m[first]) ** 2 + (y_m - y_m[first]) ** 2)
        output[of_one] = np.column_stack([so_far, so_far - so_far[first], away])
        driven_m.append(float(so_far[-1]))
        window = slice(first[-1], None)
        positions = np.column_stack([time_s, x_m, y_m, so_far])[window]
        kept.append(positions.astype("<f8").tobytes())
    by_seq = np.argsort(seq)
    expected = rows.select(["seq", "vehicle", "time_s"])
    for column, name in enumerate(("driven_m", "window_m", "away_m")):
        expected = expected.append_column(name, pa.array(output[:, column]))
    state = {
        "vehicle": vehicle[order][starts[:-1]],
        "driven_m": pa.array(driven_m, pa.float64()),
        "positions": pa.array(kept, pa.binary()),
    }
    return expected.take(pa.array(by_seq)), pa.table(state)
