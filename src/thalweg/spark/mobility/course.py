"""What a hand-over is told: the positions of vehicles, and when their operator is to be where."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from thalweg.errors import Defects, nearest
from thalweg.model.names import require_name
from thalweg.spark.keyed.log import writer_name
from thalweg.spark.keyed.spec import KeyedSpec
from thalweg.spark.mobility.positions import OPERATOR, distances
from thalweg.spark.site.site import SiteSpec

SOURCE = "positions"
INPUT = f"sources/{SOURCE}"
OUTPUT = "sinks/distances"
# A Spark that has run no query yet takes some seconds to begin its first one.
_LEAD_S = 10.0


class Positions(Protocol):
    """Where vehicles are, one row for each vehicle and moment; `thalweg.model.workload.Tracks`."""

    @property
    def user(self) -> npt.NDArray[np.int64]:
        """Whose position it is."""
        ...

    @property
    def time_s(self) -> npt.NDArray[np.float64]:
        """When."""
        ...

    @property
    def x_m(self) -> npt.NDArray[np.float64]:
        """Metres to the east."""
        ...

    @property
    def y_m(self) -> npt.NDArray[np.float64]:
        """Metres to the north."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """When an operator is to be handed over, and to which site; times are those of the tracks."""

    at_s: float
    to: str
    prepare_s: float | None = None
    """When its state begins to be sent; None: so long before as the course says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """All that is asked of a hand-over, checked."""

    sites: tuple[str, ...]
    start: str
    moves: tuple[Move, ...]
    """Each with the moment at which its preparation begins."""
    rows: pa.Table
    """seq, vehicle, time_s, x_m, y_m; `seq` counts them by time, then by vehicle."""
    speedup: float
    """Seconds of the tracks in one second."""
    spec: KeyedSpec
    site_specs: tuple[SiteSpec, ...]
    """Of the sites that the operator is ever at."""

    @property
    def time_s(self) -> npt.NDArray[np.float64]:
        """When each row is born, rising."""
        times: npt.NDArray[np.float64] = self.rows.column("time_s").to_numpy()
        return times


def moves_along(time_s: Iterable[float], hosts: Iterable[str]) -> tuple[Move, ...]:
    """The moves of a plan that says where the operator is from each moment on.

    >>> for move in moves_along([0.0, 5.0, 10.0, 15.0], ["a", "b", "b", "a"]):
    ...     print(move.at_s, move.to)
    5.0 b
    15.0 a
    """
    changes = itertools.pairwise(zip(time_s, hosts, strict=True))
    return tuple(Move(at_s=at_s, to=to) for (_, host), (at_s, to) in changes if to != host)


def plan_course(
    moves: Sequence[Move | tuple[float, str]],
    tracks: Positions,
    *,
    sites: Sequence[str],
    start: str | None,
    folder: Path,
    speedup: float,
    lead_s: float | None,
    heap_mb: int,
    patience_s: float = 60.0,
    running: Collection[str] | None = None,
) -> Course:
    """Check all that a hand-over is told; `running`: the sites that are there already, if any are.

    Raises:
        InvalidInput: with all that is wrong with it.
    """
    defects = Defects()
    sites = tuple(sites)
    start = start if start is not None else next(iter(sites), "")
    wanted = [move if isinstance(move, Move) else Move(at_s=move[0], to=move[1]) for move in moves]
    _require_sites(defects, sites, start)
    _require_above_zero(defects, "speedup", speedup)
    _require_above_zero(defects, "patience_s", patience_s)
    fits = lead_s is None or (_is_number(lead_s) and lead_s >= 0)
    defects.require(fits, "lead_s", lead_s, "a finite number >= 0, or nothing")
    folder = Path(folder).absolute()
    empty = not folder.exists() or (folder.is_dir() and not any(folder.iterdir()))
    hint = "the log of another run would be counted too"
    defects.require(empty, "folder", str(folder), "a folder that is new or empty", hint)
    rows = defects.attempt("tracks", lambda: to_rows(tracks))
    span = None if rows is None else (rows["time_s"][0].as_py(), rows["time_s"][-1].as_py())
    _require_moves(defects, wanted, sites, start, span)
    defects.attempt("", lambda: SiteSpec(name="any", folder=folder, heap_mb=heap_mb))
    used = dict.fromkeys([start, *(move.to for move in wanted)])
    for name in used if running is not None else ():
        there = name not in sites or name in (running or ())
        defects.require(there, "hosts", name, "a site that was started")
    defects.raise_if_any()
    lead_s = _LEAD_S * speedup if lead_s is None else lead_s
    own = folder / "sites"
    specs = [SiteSpec(name=name, folder=own / name, heap_mb=heap_mb) for name in used]
    return Course(
        sites=sites,
        start=start,
        moves=tuple(_with_preparation(move, lead_s) for move in wanted),
        rows=rows,
        speedup=float(speedup),
        spec=KeyedSpec(
            operator=OPERATOR,
            folder=folder / "operator",
            log=folder / "log",
            input=INPUT,
            output=OUTPUT,
        ),
        site_specs=tuple(specs),
    )


def to_rows(tracks: Positions) -> pa.Table:
    """The rows of these positions, numbered by time, then by vehicle.

    Raises:
        InvalidInput: where there are none, some are no numbers, or a vehicle is twice at once.
    """
    defects = Defects()
    vehicle = np.asarray(tracks.user)
    count = vehicle.size
    whole = np.issubdtype(vehicle.dtype, np.integer) and vehicle.ndim == 1
    defects.require(whole, "user", str(vehicle.dtype), "whole numbers, one for each position")
    defects.require(count > 0, "user", "no position", "at least one position")
    figures = {name: np.asarray(getattr(tracks, name)) for name in ("time_s", "x_m", "y_m")}
    for name, values in figures.items():
        fits = values.shape == vehicle.shape and np.issubdtype(values.dtype, np.number)
        fits = fits and bool(np.isfinite(values).all())
        defects.require(fits, name, values.shape, f"{count} finite numbers")
    defects.raise_if_any()
    order = np.lexsort((vehicle, figures["time_s"]))
    vehicle, time_s = vehicle[order], figures["time_s"][order]
    twice = (np.diff(vehicle) == 0) & (np.diff(time_s) == 0)
    hint = f"vehicle {vehicle[:-1][twice][0]} is in two rows" if twice.any() else ""
    rule = "one position of a vehicle at a time"
    defects.require(not twice.any(), "time_s", int(twice.sum()), rule, hint)
    defects.raise_if_any()
    columns = {
        "seq": np.arange(count),
        "vehicle": vehicle,
        "time_s": time_s,
        "x_m": figures["x_m"][order],
        "y_m": figures["y_m"][order],
    }
    return pa.table(columns).cast(distances.rows)


def _require_sites(defects: Defects, sites: Sequence[str], start: str) -> None:
    defects.require(len(sites) >= 2, "sites", list(sites), "at least two sites")
    for place, name in enumerate(sites):
        path = f"sites[{place}]"
        require_name(defects, path, name)
        new = name not in sites[:place]
        defects.require(new, path, name, "a name that no other site has")
    if sites:
        known = start in sites
        defects.require(known, "start", start, "one of the sites", nearest(str(start), sites))
    # What writes for the operator is named by both.
    for place, name in enumerate(sites):
        if isinstance(name, str) and len(name) <= 64:
            require_name(defects, f"sites[{place}]", writer_name(distances.name, name))


def _require_moves(
    defects: Defects,
    moves: Sequence[Move],
    sites: Sequence[str],
    start: str,
    span: tuple[float, float] | None,
) -> None:
    defects.require(bool(moves), "moves", "no move", "at least one move")
    before_s, host = -math.inf, start
    for place, move in enumerate(moves):
        path, at_s = f"moves[{place}]", move.at_s
        if not _is_number(at_s):
            defects.add(f"{path}.at_s", at_s, "a finite number")
            continue
        if span is not None:
            rule = f"a moment of the tracks, after {span[0]:g} s and up to {span[1]:g} s"
            defects.require(span[0] < at_s <= span[1], f"{path}.at_s", at_s, rule)
        hint = "moves are told in the order of their moments"
        defects.require(at_s > before_s, f"{path}.at_s", at_s, f"more than {before_s:g} s", hint)
        early = move.prepare_s is None or (_is_number(move.prepare_s) and move.prepare_s <= at_s)
        rule = "a moment before the move, or nothing"
        defects.require(early, f"{path}.prepare_s", move.prepare_s, rule)
        known = move.to in sites
        hint = "" if known else nearest(str(move.to), sites)
        defects.require(known, f"{path}.to", move.to, "one of the sites", hint)
        elsewhere = move.to != host
        defects.require(elsewhere, f"{path}.to", move.to, "another site than it is at by then")
        before_s, host = max(before_s, at_s), move.to


def _require_above_zero(defects: Defects, path: str, value: float) -> None:
    fits = _is_number(value) and value > 0
    defects.require(fits, path, value, "a finite number > 0")


def _with_preparation(move: Move, lead_s: float) -> Move:
    prepare_s = move.at_s - lead_s if move.prepare_s is None else move.prepare_s
    return Move(at_s=float(move.at_s), to=move.to, prepare_s=float(prepare_s))


def _is_number(value: Any) -> bool:
    is_real = isinstance(value, (int, float, np.integer, np.floating))
    return is_real and not isinstance(value, bool) and math.isfinite(value)
