"""The tables of a network folder: which columns each has, of which type, under which rules.

A table has one row for each site, node or link. Sites are referred to by their position, −1 for
none. Figures are in base units, which the name of their column ends with; only capacities may be
infinite.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from thalweg.errors import Defect, Defects
from thalweg.model.names import NAME_RULE, is_name
from thalweg.units import BANDWIDTH, CPU_SPEED, DURATION, LENGTH, SIZE, Dimension

Array = npt.NDArray[Any]
Values = Array | list[str]

TIERS = ("edge", "fog", "cloud")
_TIER_RULE = "edge, fog or cloud"
_LARGEST_COUNT = 1_000_000


@dataclass(frozen=True, slots=True)
class Column:
    """One column: figures of a dimension, positions of sites, counts, or texts."""

    name: str
    sort: Literal["figure", "site", "count", "name", "tier"]
    dimension: Dimension | None = None
    unlimited: bool = False
    signed: bool = False
    may_be_null: bool = False
    may_be_none: bool = False

    @property
    def is_text(self) -> bool:
        """Whether it holds texts."""
        return self.sort in ("name", "tier")

    @property
    def type_name(self) -> str:
        """Its type, as Arrow calls it."""
        return "string" if self.is_text else ("double" if self.sort == "figure" else "int32")


@dataclass(frozen=True, slots=True)
class Table:
    """One file of the folder; optional columns are there all together, or none of them."""

    file: str
    columns: tuple[Column, ...]
    optional: tuple[Column, ...] = ()


def _figure(name: str, dimension: Dimension, **rules: bool) -> Column:
    return Column(name, "figure", dimension, **rules)


def _capacity(name: str, dimension: Dimension) -> Column:
    return _figure(name, dimension, unlimited=True)


SITES = Table(
    "sites.parquet",
    (
        Column("name", "name"),
        Column("tier", "tier"),
        Column("parent", "site", may_be_none=True),
        _figure("edge_delay_s", DURATION),
    ),
    optional=tuple(
        _figure(f"area_{edge}_m", LENGTH, signed=True, may_be_null=True)
        for edge in ("west", "south", "east", "north")
    ),
)
NODES = Table(
    "nodes.parquet",
    (
        Column("site", "site"),
        _capacity("cpu_ips", CPU_SPEED),
        _capacity("cpu_available_ips", CPU_SPEED),
        _capacity("memory_bytes", SIZE),
        _capacity("memory_available_bytes", SIZE),
        _figure("lan_latency_s", DURATION),
        _capacity("lan_bandwidth_bps", BANDWIDTH),
        _capacity("lan_available_bps", BANDWIDTH),
        Column("operators", "count"),
    ),
    optional=(Column("name", "name"),),
)
MESH = Table(
    "mesh.parquet",
    (
        _figure("latency_s", DURATION),
        _capacity("bandwidth_bps", BANDWIDTH),
        _capacity("available_bps", BANDWIDTH),
    ),
)
LINKS = Table(
    "links.parquet",
    (
        Column("a", "site"),
        Column("b", "site"),
        _figure("latency_s", DURATION),
        _capacity("bandwidth_bps", BANDWIDTH),
        _capacity("available_to_b_bps", BANDWIDTH),
        _capacity("available_to_a_bps", BANDWIDTH),
    ),
)
TREE = Table(
    "tree.parquet",
    (
        Column("parent", "site", may_be_none=True),
        _figure("latency_s", DURATION),
        _capacity("bandwidth_bps", BANDWIDTH),
        _capacity("available_up_bps", BANDWIDTH),
        _capacity("available_down_bps", BANDWIDTH),
    ),
)
TAKEN = Table(
    "taken.parquet",
    (Column("a", "site"), Column("b", "site"), _figure("taken_bps", BANDWIDTH)),
)


def coordinates_table(dimensions: int) -> Table:
    """The table of positions with so many coordinates."""
    position = tuple(_figure(f"position_{k}_s", DURATION, signed=True) for k in range(dimensions))
    return Table("coordinates.parquet", (*position, _figure("height_s", DURATION)))


AVAILABLE = {
    "cpu_available_ips": "cpu_ips",
    "memory_available_bytes": "memory_bytes",
    "lan_available_bps": "lan_bandwidth_bps",
    "available_bps": "bandwidth_bps",
    "available_to_b_bps": "bandwidth_bps",
    "available_to_a_bps": "bandwidth_bps",
    "available_up_bps": "bandwidth_bps",
    "available_down_bps": "bandwidth_bps",
}
"""Each column of what is available → the column that it is at most."""


def table_defect(table: Table, path: str, value: object, rule: str) -> Defect:
    """A defect in a table, wherever its folder is."""
    return Defect(file=table.file, path=path, value=value, rule=rule)


def check_values(
    defects: Defects, columns: Sequence[Column], values: Mapping[str, Values], site_count: int
) -> None:
    """Remember a defect for every column with a value that breaks its rule, at the first such."""
    for column in columns:
        found = values[column.name]
        if isinstance(found, list):
            _check_texts(defects, column, found)
        elif column.sort == "figure":
            _check_figures(defects, column, found)
        else:
            least = -1 if column.may_be_none else 0
            most = site_count - 1 if column.sort == "site" else _LARGEST_COUNT
            rule = f"a whole number from {least} to {most}"
            _require_all(defects, column.name, found, (found >= least) & (found <= most), rule)
    if defects:
        return
    for part, whole in AVAILABLE.items():
        if part in values and whole in values:
            free, capacity = np.asarray(values[part]), np.asarray(values[whole])
            if free is not capacity:
                _require_all(defects, part, free, free <= capacity, f"at most {whole}")


def _check_figures(defects: Defects, column: Column, found: Array) -> None:
    dimension = column.dimension
    if dimension is None or not found.size:
        return
    least = -dimension.largest if column.signed else 0.0
    # Two reductions and no mask: NaN comes through min and max, and large tables are read often.
    low, high = float(found.min()), float(found.max())
    if low >= least and high <= dimension.largest:
        return
    good = (found >= least) & (found <= dimension.largest)
    if column.unlimited:
        good |= np.isposinf(found)
    if column.may_be_null:
        good |= np.isnan(found)
    infinite = ", or infinite" if column.unlimited else ""
    rule = f"{dimension.noun} from {least:g} to {dimension.largest:g} {dimension.base}{infinite}"
    _require_all(defects, column.name, found, good, rule)


def _check_texts(defects: Defects, column: Column, found: list[str]) -> None:
    is_good, rule = (is_name, NAME_RULE) if column.sort == "name" else (_is_tier, _TIER_RULE)
    row = next((row for row, text in enumerate(found) if not is_good(text)), None)
    if row is not None:
        defects.add(f"{column.name}[{row}]", found[row], rule)


def _is_tier(text: object) -> bool:
    return text in TIERS


def _require_all(defects: Defects, path: str, found: Array, good: Array, rule: str) -> None:
    if not good.all():
        row = int(np.argmin(good))
        defects.add(f"{path}[{row}]", found[row].item(), rule)
