"""`network.json`: what a network folder holds, and how much of it."""

from __future__ import annotations

import json
import math
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from thalweg.errors import Defect, Defects, InvalidInput, nearest
from thalweg.files.json_reader import read_json
from thalweg.model.names import require_name
from thalweg.units import BANDWIDTH, format_quantity, parse_quantity

FILE = "network.json"
SHAPES = ("mesh", "links", "tree", "coordinates")
MOST_NODES = 5_000_000
MOST_SITES = 100_000
MOST_MESH_SITES = 5_000
MOST_LINKS = 1_000_000
MOST_DIMENSIONS = 16

_VERSION = 1
_MOST_BYTES = 64 * 1024
_UNLIMITED = "unlimited"
_FIELDS: dict[str, tuple[str, ...]] = {
    "mesh": (),
    "links": ("link_count",),
    "tree": (),
    "coordinates": ("dimensions", "bandwidth", "taken_count"),
}
_COMMON = ("thalweg", "network", "shape", "site_count", "node_count")
_COUNTS = ("site_count", "node_count", "link_count", "taken_count", "dimensions")


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What a network folder holds. Links, dimensions, bandwidth, taken: only where it has them."""

    name: str
    shape: str
    site_count: int
    node_count: int
    link_count: int = 0
    dimensions: int = 0
    bandwidth_bps: float = 0.0
    taken_count: int = 0

    def __post_init__(self) -> None:
        defects = Defects()
        require_name(defects, "network", self.name)
        is_mesh = self.shape == "mesh"
        _require_count(defects, "node_count", self.node_count, 1, MOST_NODES)
        most = MOST_MESH_SITES if is_mesh else MOST_SITES
        _require_count(defects, "site_count", self.site_count, 1, most)
        if self.shape == "links":
            _require_count(defects, "link_count", self.link_count, 0, MOST_LINKS)
        if self.shape == "coordinates":
            _require_count(defects, "dimensions", self.dimensions, 1, MOST_DIMENSIONS)
            _require_count(defects, "taken_count", self.taken_count, 0, MOST_LINKS)
        defects.raise_if_any()

    def to_json(self) -> str:
        """The text of the file."""
        data: dict[str, Any] = {
            "thalweg": _VERSION,
            "network": self.name,
            "shape": self.shape,
            "site_count": self.site_count,
            "node_count": self.node_count,
        }
        if self.shape == "links":
            data["link_count"] = self.link_count
        if self.shape == "coordinates":
            infinite = math.isinf(self.bandwidth_bps)
            data["dimensions"] = self.dimensions
            data["bandwidth"] = (
                _UNLIMITED if infinite else format_quantity(self.bandwidth_bps, BANDWIDTH)
            )
            data["taken_count"] = self.taken_count
        return json.dumps(data, indent=2) + "\n"


def read_contents(folder: Path) -> Contents:
    """What the folder says it holds; raises `InvalidInput` with all that is wrong with that."""
    file = folder / FILE
    # Not by way of `text`: that loads PyYAML, which takes longer than reading a large network.
    data, outline = read_json(_read_text(file), str(file))
    try:
        return _contents(data)
    except InvalidInput as error:
        raise error.in_file(str(file), outline.line_of) from None


def _read_text(file: Path) -> str:
    value: object = None
    rule, hint = "an existing file", "a folder with a network has it; is this one?"
    try:
        status = file.stat()
        if not stat.S_ISREG(status.st_mode):
            value, rule, hint = "a folder, pipe or device", "a regular file", ""
        elif status.st_size > _MOST_BYTES:
            value, rule, hint = f"{status.st_size} bytes", f"at most {_MOST_BYTES} bytes", ""
        else:
            with file.open("rb") as opened:
                return opened.read(_MOST_BYTES).decode("utf-8")
    except FileNotFoundError:
        pass
    except UnicodeDecodeError:
        value, rule, hint = "other bytes", "UTF-8 text", ""
    except (OSError, ValueError) as error:
        value, rule, hint = str(error), "a file that can be read", ""
    raise InvalidInput([Defect(file=str(file), path="", value=value, rule=rule, hint=hint)])


def _contents(data: object) -> Contents:
    defects = Defects()
    fields: Mapping[str, Any] = data if isinstance(data, Mapping) else {}
    defects.require(fields is data, "", data, "a mapping that describes a network folder")
    version: object = fields.get("thalweg")
    shape: Any = fields.get("shape")
    is_version = type(version) is int and version == _VERSION
    defects.require(is_version, "thalweg", version, f"the version of the format, {_VERSION}")
    is_shape = isinstance(shape, str) and shape in SHAPES
    if not is_shape:
        hint = nearest(shape, SHAPES) if isinstance(shape, str) else ""
        defects.add("shape", shape, "mesh, links, tree or coordinates", hint)
    defects.raise_if_any()
    known = (*_COMMON, *_FIELDS[shape])
    for name in fields:
        if name not in known:
            rule, hint = f"a known field of a folder with shape {shape}", nearest(name, known)
            defects.add(name, fields[name], rule, hint)
    defects.raise_if_any()
    return Contents(
        name=fields.get("network"),  # type: ignore[arg-type]
        shape=shape,
        bandwidth_bps=_bandwidth(fields.get("bandwidth")) if "bandwidth" in known else 0.0,
        **{name: fields.get(name) for name in known if name in _COUNTS},  # type: ignore[arg-type]
    )


def _bandwidth(written: object) -> float:
    if written == _UNLIMITED:
        return math.inf
    return parse_quantity(written, BANDWIDTH, path="bandwidth")


def _require_count(defects: Defects, path: str, count: object, least: int, most: int) -> None:
    good = type(count) is int and least <= count <= most
    defects.require(good, path, count, f"a whole number from {least} to {most}")
