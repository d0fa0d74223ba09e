"""Writes vehicles and their routes as tables that are read back as they were."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from thalweg.errors import Defect, InvalidInput
from thalweg.files.routes_reader import EDGES_FILE
from thalweg.files.save import _place, _replace_file
from thalweg.files.workload_table import is_csv, is_table
from thalweg.model.graph import Floats
from thalweg.model.planned_routes import PlannedRoutes
from thalweg.model.vehicles import VehicleTracks


def save_tracks(tracks: VehicleTracks, path: str | os.PathLike[str]) -> None:
    """Save to a `.parquet` or `.csv` file; `load_tracks` gives the same rows again.

    It gives the vehicles in the order in which people count, whatever their order here, and does
    not know which rows were filled in.

    Raises:
        InvalidInput: where the place does not allow it.
    """
    rows = tracks.tracks
    columns = {
        "t": _figures(rows.time_s),
        "vehicle": _texts(tracks.names, rows.user),
        "x": _figures(rows.x_m),
        "y": _figures(rows.y_m),
    }
    for name, values in (("speed", tracks.speed_ms), ("angle", tracks.angle_deg)):
        if values is not None:
            columns[name] = _figures(values)
    if tracks.edge is not None:
        # No road is an empty text: the last one of the list.
        columns["edge"] = _texts(
            (*tracks.edge_names, ""), tracks.edge % (len(tracks.edge_names) + 1)
        )
    if tracks.pos_m is not None:
        columns["pos"] = _figures(tracks.pos_m)
    _save(columns, path)


def save_routes(
    routes: PlannedRoutes,
    path: str | os.PathLike[str],
    edges_path: str | os.PathLike[str] | None = None,
) -> None:
    """Save to a `.parquet` or `.csv` file, and the roads beside it in `edges.parquet`.

    `load_routes` gives the same routes again, vehicles in the order in which people count. Roads
    go to another file where one is named; it is Parquet, as their shapes have no place in a CSV.

    Raises:
        InvalidInput: where the places do not allow it.
    """
    edges = Path(os.fspath(path)).parent / EDGES_FILE if edges_path is None else edges_path
    if is_csv(edges):
        rule = "a file name that ends in .parquet"
        raise InvalidInput([Defect(file=os.fspath(edges), path="", value=".csv", rule=rule)])
    many = np.diff(routes.first_step)
    steps = np.arange(routes.edge.size) - np.repeat(routes.first_step[:-1], many)
    _save(
        {
            "vehicle": _texts(routes.names, np.repeat(np.arange(routes.count), many)),
            "depart": _figures(np.repeat(routes.depart_s, many)),
            "seq": _figures(steps),
            "edge": _texts(routes.edge_names, routes.edge),
            "planned_exit_s": _figures(routes.exit_s),
        },
        path,
    )
    begin, end = routes.first_corner[:-1], routes.first_corner[1:] - 1
    shapes = np.stack([routes.corner_x_m, routes.corner_y_m], axis=1)
    _save(
        {
            "edge": _texts(routes.edge_names, np.arange(len(routes.edge_names))),
            "length_m": _figures(routes.length_m),
            "x0": _figures(routes.corner_x_m[begin]),
            "y0": _figures(routes.corner_y_m[begin]),
            "x1": _figures(routes.corner_x_m[end]),
            "y1": _figures(routes.corner_y_m[end]),
            "shape": _lists(2 * routes.first_corner, shapes),
        },
        edges,
    )


def _save(columns: dict[str, Any], path: str | os.PathLike[str]) -> None:
    import pyarrow as pa
    import pyarrow.csv as pa_csv
    import pyarrow.parquet as pq

    target = _place(path)
    if not is_table(target):
        rule = "a file name that ends in .csv or .parquet"
        raise InvalidInput([Defect(file=os.fspath(path), path="", value=target.suffix, rule=rule)])
    table = pa.Table.from_arrays(list(columns.values()), names=list(columns))
    sink = pa.BufferOutputStream()
    if is_csv(target):
        plain = pa_csv.WriteOptions(quoting_style="needed")
        texts = [k for k, kind in enumerate(table.schema.types) if pa.types.is_dictionary(kind)]
        for k in texts:
            table = table.set_column(k, table.column_names[k], table.column(k).cast(pa.string()))
        pa_csv.write_csv(table, sink, plain)
    else:
        pq.write_table(table, sink, compression="zstd", write_page_checksum=True)
    _replace_file(target, bytes(sink.getvalue()))


# Buffers are handed over as they are: `pa.array` would load pandas.


def _figures(values: npt.NDArray[Any]) -> Any:
    import pyarrow as pa

    plain: Floats = np.ascontiguousarray(values, dtype=np.float64).reshape(-1)
    return pa.Array.from_buffers(pa.float64(), plain.size, [None, pa.py_buffer(plain)])


def _texts(words: Sequence[str], at: npt.NDArray[Any]) -> Any:
    import pyarrow as pa

    codes = np.ascontiguousarray(at, dtype=np.int32)
    encoded = [word.encode("utf-8") for word in words]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(encoded))]
    known = pa.Array.from_buffers(pa.string(), len(words), buffers)
    places = pa.Array.from_buffers(pa.int32(), codes.size, [None, pa.py_buffer(codes)])
    return pa.DictionaryArray.from_arrays(places, known)


def _lists(ends: npt.NDArray[Any], values: Floats) -> Any:
    import pyarrow as pa

    offsets = np.ascontiguousarray(ends, dtype=np.int32)
    kind = pa.list_(pa.float64())
    buffers = [None, pa.py_buffer(offsets)]
    return pa.Array.from_buffers(kind, offsets.size - 1, buffers, children=[_figures(values)])
