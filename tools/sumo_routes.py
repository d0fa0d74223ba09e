"""Turns a map and routes of SUMO into the tables that `thalweg.files.routes_reader` reads.

    python -m tools.sumo_routes city.net.xml.gz planned.rou.xml FOLDER

writes FOLDER/planned_routes.parquet and FOLDER/edges.parquet. The routes come from duarouter with
`--exit-times`: what a navigation system would say before the drive. SUMO itself is not needed.
"""

from __future__ import annotations

import gzip
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, NoReturn
from xml.parsers import expat

import numpy as np

from thalweg.errors import Defect, InvalidInput, nearest
from thalweg.files.routes_reader import load_routes
from thalweg.files.tracks_writer import save_routes
from thalweg.model.planned_routes import PlannedRoutes

ROUTES_FILE = "planned_routes.parquet"
LARGEST_BYTES = 4 * 1024**3
"""Of a file as it is read, that is unpacked: a small one could hold anything."""
_PIECE_BYTES = 1024 * 1024
_MOST_TOLD = 5
_GZIP = b"\x1f\x8b"

Attributes = dict[str, str]


@dataclass(slots=True)
class Roads:
    """The roads of a map, without those within junctions."""

    lengths_m: dict[str, float] = field(default_factory=dict)
    corners_m: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    _edge: str = ""

    def see(self, tag: str, attributes: Attributes) -> None:
        """Take the length and the shape of a road from the first of its lanes."""
        if tag == "edge":
            inside = attributes.get("function") == "internal"
            self._edge = "" if inside else attributes["id"]
        elif tag == "lane" and self._edge and self._edge not in self.lengths_m:
            corners = [point.split(",")[:2] for point in attributes["shape"].split()]
            self.corners_m[self._edge] = [(float(x), float(y)) for x, y in corners]
            self.lengths_m[self._edge] = float(attributes["length"])


@dataclass(slots=True)
class Routes:
    """One route for each vehicle: when it leaves, its roads, and when it means to leave each."""

    roads: Roads
    vehicles: dict[str, tuple[float, list[str], list[float]]] = field(default_factory=dict)
    problems: list[Defect] = field(default_factory=list)
    _vehicle: str = ""
    _depart_s: float = 0.0

    def see(self, tag: str, attributes: Attributes) -> None:
        """Take the route that stands in a vehicle."""
        if tag == "vehicle":
            self._vehicle, self._depart_s = attributes["id"], float(attributes["depart"])
        elif tag == "route" and self._vehicle:
            self._take(self._vehicle, attributes)

    def leave(self, tag: str) -> None:
        """Forget the vehicle when it ends: a route outside of one belongs to nobody."""
        if tag == "vehicle":
            self._vehicle = ""

    def _take(self, vehicle: str, attributes: Attributes) -> None:
        edges = attributes.get("edges", "").split()
        exits = [float(word) for word in attributes.get("exitTimes", "").split()]
        path = f"route of {vehicle}"
        if vehicle in self.vehicles:
            rule, hint = "one route for each vehicle", "not duarouter's .alt.xml"
            self.problems.append(Defect(path=path, value="another one", rule=rule, hint=hint))
        elif not edges or len(edges) != len(exits):
            told = f"{len(edges)} edges, {len(exits)} exit times"
            rule, hint = "an exit time for each edge", "run duarouter with --exit-times"
            self.problems.append(Defect(path=path, value=told, rule=rule, hint=hint))
        elif unknown := [edge for edge in edges if edge not in self.roads.lengths_m]:
            hint = nearest(unknown[0], list(self.roads.lengths_m)[:500])
            rule = "an edge of the map"
            self.problems.append(Defect(path=path, value=unknown[0], rule=rule, hint=hint))
        else:
            self.vehicles[vehicle] = (self._depart_s, edges, exits)


def read_routes(net: Path, routes: Path) -> PlannedRoutes:
    """The routes over the roads of a map, both as SUMO writes them, plain or with gzip.

    Raises:
        InvalidInput: with the first problems of the file where there are any.
    """
    roads = Roads()
    _read(net, roads.see)
    if not roads.lengths_m:
        _refuse(net, "no road", "a map of SUMO, .net.xml")
    found = Routes(roads)
    _read(routes, found.see, found.leave)
    if found.problems:
        shown = found.problems[:_MOST_TOLD]
        if len(found.problems) > len(shown):
            many = f"{len(found.problems)} problems, the first {len(shown)} above"
            shown.append(Defect(path="", value=many, rule="none of them"))
        raise InvalidInput(shown).in_file(str(routes))
    if not found.vehicles:
        _refuse(routes, "no vehicle with a route", "routes of duarouter, .rou.xml")
    return _build(roads, found)


def _build(roads: Roads, found: Routes) -> PlannedRoutes:
    names = tuple(roads.lengths_m)
    number = {name: k for k, name in enumerate(names)}
    depart, edges, exits = zip(*found.vehicles.values(), strict=True)
    sizes = [len(one) for one in edges]
    shapes = [roads.corners_m[name] for name in names]
    corners = np.array([corner for shape in shapes for corner in shape], dtype=float)
    return PlannedRoutes(
        names=tuple(found.vehicles),
        depart_s=np.array(depart),
        first_step=np.cumsum([0, *sizes]).astype(np.int64),
        edge=np.array([number[edge] for one in edges for edge in one], dtype=np.int32),
        exit_s=np.array([second for one in exits for second in one]),
        edge_names=names,
        length_m=np.array(list(roads.lengths_m.values())),
        first_corner=np.cumsum([0, *map(len, shapes)]).astype(np.int64),
        corner_x_m=corners[:, 0].copy(),
        corner_y_m=corners[:, 1].copy(),
    )


def _read(
    path: Path,
    see: Callable[[str, Attributes], None],
    leave: Callable[[str], None] = lambda _: None,
) -> None:
    """Show every element as it begins and ends; nothing of the file is kept."""
    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler = see, leave
    # No document type: without one there are no entities that could grow or fetch anything.
    parser.StartDoctypeDeclHandler = lambda *_: _refuse(path, "a DOCTYPE", "XML without one")
    read = 0
    try:
        with _opened(path) as file:
            while piece := file.read(_PIECE_BYTES):
                read += len(piece)
                if read > LARGEST_BYTES:
                    _refuse(path, f"more than {LARGEST_BYTES} bytes", "a smaller file")
                parser.Parse(piece, False)
        parser.Parse(b"", True)
    except (expat.ExpatError, ValueError, KeyError, OSError, EOFError) as error:
        line = parser.CurrentLineNumber
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        _refuse(path, reason[:200], f"XML of SUMO (line {line})")


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    with path.open("rb") as plain:
        packed = plain.read(2) == _GZIP
        plain.seek(0)
        if not packed:
            yield plain
            return
        with gzip.GzipFile(fileobj=plain) as unpacked:
            yield unpacked  # type: ignore[misc]


def _refuse(path: Path, value: str, rule: str) -> NoReturn:
    raise InvalidInput([Defect(file=str(path), path="", value=value, rule=rule)])


def main(arguments: list[str]) -> int:
    """Convert, read back what was written, and say how much it is."""
    if len(arguments) != 3:
        print(f"usage: {(__doc__ or '').splitlines()[2].strip()}", file=sys.stderr)
        return 2
    net, routes, folder = map(Path, arguments)
    target = folder / ROUTES_FILE
    try:
        folder.mkdir(parents=True, exist_ok=True)
        save_routes(read_routes(net, routes), target)
        kept = load_routes(target)
    except InvalidInput as error:
        print(error, file=sys.stderr)
        return 2
    print(
        f"{target}: {kept.count:,} routes, {kept.edge.size:,} steps, {len(kept.edge_names):,} roads"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
