"""Operators with a state for each key, written as a function of Arrow tables.

The function gets all rows of a batch and the state of the keys in them, and gives the output rows
and the state from then on. It is called once for a batch, whatever the number of keys: a call for
each key would cost more than what it computes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

from thalweg.errors import Defects, ThalwegError, nearest
from thalweg.spark.query.queries import find_attribute

KeyedFunction = Callable[[pa.Table, pa.Table], tuple[pa.Table, pa.Table]]
Columns: TypeAlias = "str | Mapping[str, str] | pa.Schema"
Key: TypeAlias = Hashable

_TYPES: dict[str, pa.DataType] = {
    "byte": pa.int8(),
    "tinyint": pa.int8(),
    "short": pa.int16(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
}


class KeyedFunctionError(ThalwegError):
    """The function of a keyed operator gave something else than it promised."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What a batch does: rows out, the new state of some keys, and keys whose state ends."""

    output: pa.Table
    updated: pa.Table
    removed: pa.Table
    """Their key columns alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedOperator:
    """An operator with keyed state; made by `keyed`, called like the function that it is made of.

    Keys are told apart by their values, so a column with fractions cannot be part of one.
    """

    name: str
    key: tuple[str, ...]
    rows: pa.Schema
    state: pa.Schema
    """The key columns, then what is kept for each key."""
    output: pa.Schema
    function: KeyedFunction

    def __post_init__(self) -> None:
        defects = Defects()
        rule = "a name as of a Python function"
        defects.require(self.name.isidentifier(), "name", self.name, rule)
        defects.require(bool(self.key), "by", self.key, "at least one column")
        for column in self.key:
            known = column in self.rows.names
            hint = "" if known else nearest(column, self.rows.names)
            defects.require(known, "by", column, "a column of the rows", hint)
            if known:
                kind = self.rows.field(column).type
                plain = not pa.types.is_floating(kind) and not pa.types.is_nested(kind)
                rule = "whole numbers, text, true or false, days or times to tell keys apart"
                defects.require(plain, f"rows.{column}", str(kind), rule)
        for path, schema in (("rows", self.rows), ("state", self.state), ("output", self.output)):
            twice = {name for name in schema.names if schema.names.count(name) > 1}
            for name in sorted(twice):
                defects.add(path, name, "each column once")
            for name in schema.names:
                defects.require(
                    not name.startswith("_"), path, name, "columns that do not begin with '_'"
                )
        defects.raise_if_any()

    def __call__(self, rows: pa.Table, state: pa.Table) -> tuple[pa.Table, pa.Table]:
        """What the function gives, unchecked."""
        return self.function(rows, state)

    def work(self, rows: pa.Table, state: pa.Table) -> Change:
        """What a batch of rows does to the state of its keys.

        Raises:
            KeyedFunctionError: where the function gives other columns than it promised, the state
                of a key twice, or that of a key that none of the rows has.
        """
        given: Any = self.function(rows, state)
        if not (isinstance(given, tuple) and len(given) == 2):
            raise KeyedFunctionError(f"{self.name} has to return (output, state), not {given!r}")
        output = self._fit(given[0], self.output, "output")
        updated = self._fit(given[1], self.state, "state")
        keys = keys_of(updated, self.key)
        kept = set(keys)
        if len(kept) < len(keys):
            raise KeyedFunctionError(f"{self.name} gave the state of a key twice")
        strange = kept.difference(keys_of(rows, self.key))
        if strange:
            shown = next(iter(strange))
            raise KeyedFunctionError(f"{self.name} gave state for a key without rows: {shown!r}")
        gone = [key not in kept for key in keys_of(state, self.key)]
        removed = state.select(list(self.key)).filter(pa.array(gone, pa.bool_()))
        return Change(output=output, updated=updated, removed=removed)

    def _fit(self, table: object, schema: pa.Schema, what: str) -> pa.Table:
        if not isinstance(table, pa.Table):
            raise KeyedFunctionError(
                f"{self.name}: the {what} has to be a pyarrow.Table, not {type(table).__name__}"
            )
        try:
            return table.select(schema.names).cast(schema).combine_chunks()
        except (KeyError, ValueError, pa.ArrowNotImplementedError) as error:
            raise KeyedFunctionError(
                f"{self.name}: the {what} does not have its columns: {error}"
            ) from error


def keyed(
    *, by: str | Sequence[str], rows: Columns, state: Columns, output: Columns
) -> Callable[[KeyedFunction], KeyedOperator]:
    """Make an operator of a function `(rows, state) -> (output, state)` of Arrow tables.

    `by` is the key; `rows`, `state` and `output` are columns as in Spark, `"fare double, …"`. The
    function's `state` has the key columns and then those of `state`, one row for each key of the
    batch that has a state, in the order in which the keys first appear. A key of the batch that
    is not in the state that the function returns has none from then on.

    >>> @keyed(by="zone", rows="zone long", state="rides long", output="zone long, rides long")
    ... def count_rides(rows, state):
    ...     both = pa.concat_tables([
    ...         state, rows.append_column("rides", pa.array([1] * rows.num_rows))
    ...     ])
    ...     counts = both.group_by("zone").aggregate([("rides", "sum")])
    ...     counts = counts.rename_columns({"rides_sum": "rides"})
    ...     return counts, counts
    >>> rows = pa.table({"zone": [7, 8, 7]})
    >>> count_rides.work(rows, pa.table({"zone": [7], "rides": [40]})).updated.to_pylist()
    [{'zone': 7, 'rides': 42}, {'zone': 8, 'rides': 1}]

    Raises:
        InvalidInput: with all that is wrong with the columns.
    """
    defects = Defects()
    key = (by,) if isinstance(by, str) else tuple(by)
    schemas: dict[str, Any] = {
        path: defects.attempt(path, lambda columns=columns: to_schema(columns))  # type: ignore[misc]
        for path, columns in (("rows", rows), ("state", state), ("output", output))
    }
    defects.raise_if_any()
    whole = schemas["rows"]
    fields = [whole.field(name) for name in key if name in whole.names]

    def make(function: KeyedFunction) -> KeyedOperator:
        return KeyedOperator(
            name=getattr(function, "__name__", ""),
            key=key,
            rows=whole,
            state=pa.schema([*fields, *schemas["state"]]),
            output=schemas["output"],
            function=function,
        )

    return make


def to_schema(columns: Columns) -> pa.Schema:
    """The Arrow schema of columns as Spark writes them, of simple types.

    >>> to_schema("vehicle long, at timestamp").types
    [DataType(int64), TimestampType(timestamp[us, tz=UTC])]

    Raises:
        InvalidInput: where a column has no name or no such type.
    """
    if isinstance(columns, pa.Schema):
        return columns
    if isinstance(columns, str):
        pairs = [part.split() for part in columns.split(",")]
    else:
        pairs = [[name, kind] for name, kind in columns.items()]
    defects = Defects()
    fields = []
    for pair in pairs:
        if len(pair) != 2:
            defects.add("", " ".join(pair), "a name and a type", 'such as "fare double"')
            continue
        name, kind = pair
        hint = nearest(kind, _TYPES)
        defects.require(kind.lower() in _TYPES, name, kind, "a type that Spark knows", hint)
        fields.append(pa.field(name, _TYPES.get(kind.lower(), pa.null())))
    defects.raise_if_any()
    return pa.schema(fields)


def keys_of(table: pa.Table, key: Sequence[str]) -> list[Key]:
    """The key of each row: a value, or a tuple of values."""
    columns = [table.column(name).to_pylist() for name in key]
    return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))


def first_of_each_key(table: pa.Table, key: Sequence[str]) -> list[Key]:
    """The keys of a table, each once, in the order in which they first appear."""
    return list(dict.fromkeys(keys_of(table, key)))


def load_operator(reference: str) -> KeyedOperator:
    """The keyed operator that a reference `package.module:attribute` means.

    Raises:
        InvalidInput: where there is none.
    """
    found = find_attribute(reference)
    if not isinstance(found, KeyedOperator):
        defects = Defects()
        defects.add("operator", reference, "an operator made with @keyed")
        defects.raise_if_any()
    operator: KeyedOperator = found
    return operator
