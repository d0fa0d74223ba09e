"""What a page about a city shows, packed small: plain data with arrays as base64."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from thalweg.migration.city import City
from thalweg.migration.drive import Drive, state_bytes, stream_ends
from thalweg.model.graph import Floats, Index

MOST_POSITIONS = 400_000
"""Beyond this positions are left out in time: dots go straight in between."""
MOST_VEHICLES = 3_000
MOST_INSTANCES = 2_000
CITY_FILE = "city.json"
"""The name under which a packed city is kept beside the tables of a run."""
_MOST_MOMENTS = 4_000
_AWAY = 0xFFFF
_LARGEST = 0xFFFE

Packed = dict[str, Any]


def pack_city(drives: Sequence[Drive]) -> Packed:
    """All that is drawn: the map, vehicles, instances, and what became of each approach.

    Where there is too much to draw, `notes` say what was left out; sums are always over all.
    """
    city = drives[0].city
    shown = np.arange(min(city.instances, MOST_INSTANCES))
    kept = _kept_vehicles(city, shown)
    box = _box(city)
    vehicles, stride = _pack_vehicles(city, kept, box)
    row = np.full(city.connections.vehicles, -1, dtype=np.int64)
    row[kept] = np.arange(kept.size)
    moments = np.unique(np.linspace(0, city.ticks - 1, min(city.ticks, _MOST_MOMENTS)).astype(int))
    return {
        "start_s": city.connections.start_s,
        "tick_s": city.tick_s,
        "ticks": city.ticks,
        "stride": stride,
        "box": box,
        "brokers": _pack_brokers(city),
        "vehicles": vehicles,
        "users": list(city.graph.users),
        "operators": [operator.name for operator in city.graph.operators],
        "streams": stream_ends(city.graph).tolist(),
        "instances": {
            "all": city.instances,
            "vehicles": pack(row[city.vehicles[shown]]),
            "life": pack(city.life[shown]),
        },
        "moments": pack(moments),
        "approaches": [_pack_drive(drive, shown, moments) for drive in drives],
        "notes": list(_notes(city, shown.size, kept.size, stride)),
    }


def pack(values: npt.NDArray[Any]) -> Packed:
    """The numbers in their order; whole ones >= 0 in as few bytes as the largest needs."""
    flat = np.ascontiguousarray(values).reshape(-1)
    kind = "f4"
    if np.issubdtype(flat.dtype, np.integer):
        most = int(flat.max(initial=0))
        kind = "u1" if most <= 0xFF else "u2" if most <= 0xFFFF else "i4"
        kind = kind if int(flat.min(initial=0)) >= 0 else "i4"
    return {"kind": kind, "data": b64encode(flat.astype(f"<{kind}").tobytes()).decode("ascii")}


def _box(city: City) -> list[float]:
    """West, south, east, north of all areas and positions."""
    area, of = city.brokers.area_m, city.connections
    low = np.nanmin(area[:, :2], axis=0)
    high = np.nanmax(area[:, 2:], axis=0)
    return [
        float(min(low[0], np.nanmin(of.x_m))),
        float(min(low[1], np.nanmin(of.y_m))),
        float(max(high[0], np.nanmax(of.x_m))),
        float(max(high[1], np.nanmax(of.y_m))),
    ]


def _kept_vehicles(city: City, shown: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """All users of the shown instances, and others evenly among the rest while there is room."""
    users = np.unique(city.vehicles[shown])
    rest = np.setdiff1d(np.arange(city.connections.vehicles), users)
    room = max(MOST_VEHICLES - users.size, 0)
    if rest.size > room:
        rest = rest[np.linspace(0, rest.size - 1, room).astype(int)] if room else rest[:0]
    return np.sort(np.concatenate([users, rest])).astype(np.int64)


def _pack_vehicles(
    city: City, kept: npt.NDArray[np.int64], box: Sequence[float]
) -> tuple[Packed, int]:
    """Positions of each vehicle from the first to the last time it is there, and their stride."""
    of = city.connections
    stride = max(1, -(-int(of.there[kept].sum()) // MOST_POSITIONS))
    there = of.there[kept, ::stride]
    frames = np.arange(there.shape[1])
    seen = there.any(axis=1)
    first = np.where(seen, np.argmax(there, axis=1), 0)
    end = np.where(seen, there.shape[1] - np.argmax(there[:, ::-1], axis=1), 0)
    inside = (frames >= first[:, None]) & (frames < end[:, None])
    west, south, east, north = box
    columns = {}
    for name, values, low, high in (("x", of.x_m, west, east), ("y", of.y_m, south, north)):
        share = (values[kept, ::stride] - low) / max(high - low, 1e-9)
        whole = np.where(there, np.rint(np.nan_to_num(share) * _LARGEST), _AWAY)
        columns[name] = pack(whole[inside].astype(np.int64))
    names = [of.names[k] for k in kept]
    return {"names": names, "first": pack(first), "count": pack(end - first), **columns}, stride


def _pack_brokers(city: City) -> Packed:
    brokers = city.brokers
    middle = np.full((brokers.count, 2), np.nan)
    area = brokers.area_m.copy()
    # A broker without an area stands in the middle of what those below it own.
    for broker in range(brokers.count - 1, -1, -1):
        middle[broker] = (area[broker, :2] + area[broker, 2:]) / 2
        above = int(brokers.parent[broker])
        if above >= 0 and np.isnan(brokers.area_m[above]).any():
            area[above, :2] = np.fmin(area[above, :2], area[broker, :2])
            area[above, 2:] = np.fmax(area[above, 2:], area[broker, 2:])
    return {
        "names": list(brokers.names),
        "parent": pack(brokers.parent),
        "middle": pack(middle),
        "leaves": pack(brokers.leaves),
        "areas": pack(brokers.area_m[brokers.leaves]),
    }


def _pack_drive(
    drive: Drive, shown: npt.NDArray[np.int64], moments: npt.NDArray[np.int64]
) -> Packed:
    """Hosts as where each operator is first and every move after, by time; sums at moments."""
    city = drive.city
    placement, migration = costs_by_tick(drive)
    by_tick = np.bincount(drive.moves[:, 2], minlength=city.ticks)
    moves = drive.moves[drive.moves[:, 0] < shown.size]
    moves = moves[np.argsort(moves[:, 2], kind="stable")]
    first = city.life[shown, 0]
    return {
        "name": drive.approach,
        "start": pack(drive.hosts[shown, :, first]),
        "moves": {
            name: pack(moves[:, column])
            for name, column in (("instance", 0), ("operator", 1), ("tick", 2), ("target", 4))
        },
        "now": pack(placement[moments] / city.tick_s),
        "cost": pack(np.cumsum(placement + migration)[moments]),
        "moved": pack(np.cumsum(by_tick)[moments]),
    }


def costs_by_tick(drive: Drive) -> tuple[Floats, Floats]:
    """Placement and migration cost of all instances in each tick, in byte · s.

    Together they are `Drive.total`; a move is paid for when it arrives.
    """
    city = drive.city
    ends = stream_ends(city.graph).tolist()
    row_of, delay = city.brokers.rows_from(np.unique(drive.hosts))
    placement, migration = np.zeros(city.ticks), np.zeros(city.ticks)
    for k, (first, end) in enumerate(city.life.tolist()):
        hosts, leaf = drive.hosts[k, :, first:end], city.leaves_of(k)
        carried = city.carried_bytes(k)
        for stream, (a, b) in enumerate(ends):
            source, target = _host(a, hosts, leaf), _host(b, hosts, leaf)
            if a < 0 and b < 0:
                # Users are not among the hosts whose delays are at hand.
                far = city.brokers.delays_from(np.unique(source))
                near = np.searchsorted(np.unique(source), source)
                placement[first:end] += carried[stream] * far[near, target]
                continue
            here, there = (source, target) if a >= 0 else (target, source)
            placement[first:end] += carried[stream] * delay[row_of[here], there]
    moves = drive.moves
    if len(moves):
        sent = state_bytes(city.graph)[moves[:, 1]]
        np.add.at(migration, moves[:, 2], sent * delay[row_of[moves[:, 3]], moves[:, 4]])
    return placement, migration


def _host(end: int, hosts: Index, leaf: Index) -> Index:
    found: Index = hosts[end] if end >= 0 else leaf[-1 - end]
    return found


def _notes(city: City, instances: int, vehicles: int, stride: int) -> list[str]:
    notes = []
    if instances < city.instances:
        notes.append(
            f"The map shows the first {instances:,} of {city.instances:,} instances; "
            "the figures are of all."
        )
    if vehicles < city.connections.vehicles:
        notes.append(f"The map shows {vehicles:,} of {city.connections.vehicles:,} vehicles.")
    if stride > 1:
        notes.append(
            f"Positions are kept every {stride * city.tick_s:g} s; "
            "in between vehicles are drawn on a straight line."
        )
    return notes
