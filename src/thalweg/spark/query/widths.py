"""How many bytes a row takes: columns of a fixed width by their type, the others by what they hold.

Sizes are those of Arrow's format before compression, as the manifest of a segment counts them. Of
an operator whose rows are not published, its columns say it without being asked, unless some of
them hold texts or collections; of those Spark adds up the lengths.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import StructType

_OFFSET_BYTES = 4.0
"""Where a value of another length than the one before it ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowWidth:
    """The bytes of each row that its columns' types say, and the columns that hold more."""

    fixed_bytes: float
    texts: tuple[str, ...] = ()
    """Columns with texts or bytes, as Spark names them."""
    nested: tuple[str, ...] = ()
    """Columns with collections."""

    @property
    def is_fixed(self) -> bool:
        """Whether every row takes the same."""
        return not (self.texts or self.nested)

    def variable_bytes(self) -> Column:
        """What a row takes beyond its fixed bytes; of collections, the length of their text."""
        from pyspark.sql import functions as sql

        lengths = [sql.octet_length(sql.col(name)) for name in self.texts]
        lengths += [
            sql.octet_length(sql.to_json(sql.struct(sql.col(name)))) for name in self.nested
        ]
        total = sql.lit(0).cast("long")
        for length in lengths:
            total = total + sql.coalesce(length, sql.lit(0))
        return total


def width_of(schema: StructType) -> RowWidth:
    """The width of rows with these columns."""
    from pyspark.sql.pandas.types import to_arrow_schema

    fixed, texts, nested = 0.0, list[str](), list[str]()
    for name, kind in _leaves("", to_arrow_schema(schema, timezone="UTC")):
        if _is_text(kind):
            texts.append(name)
            fixed += _OFFSET_BYTES
        elif pa.types.is_nested(kind):
            nested.append(name)
            fixed += _OFFSET_BYTES
        else:
            fixed += kind.bit_width / 8.0
    return RowWidth(fixed_bytes=fixed, texts=tuple(texts), nested=tuple(nested))


def _leaves(prefix: str, fields: Iterable[pa.Field]) -> Iterator[tuple[str, pa.DataType]]:
    """The columns with a buffer of their own: a structure, as a window is one, has none."""
    for field in fields:
        name = f"{prefix}`{field.name}`"
        if pa.types.is_struct(field.type):
            yield from _leaves(f"{name}.", field.type.fields)
        else:
            yield name, field.type


def widths_of(schemas: Mapping[str, StructType]) -> dict[str, RowWidth]:
    """The width of the rows that each operator puts out."""
    return {name: width_of(schema) for name, schema in schemas.items()}


def _is_text(kind: pa.DataType) -> bool:
    text = (pa.types.is_string, pa.types.is_large_string)
    return any(fits(kind) for fits in (*text, pa.types.is_binary, pa.types.is_large_binary))
