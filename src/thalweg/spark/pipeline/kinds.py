"""What a function may be as an operator: how its input can be split, and what follows from that.

- *row-wise*: every row is worked on alone (filter, map, enrichment with static data);
- *partitioned*: rows with the same key are worked on together, and a key never spans two sites;
- *mergeable*: an aggregate in two halves: a partial one that any part of the rows can go through,
  and a merge of what the parts gave. It becomes two operators, `name-partial` and `name`;
- *global*: anything else. It runs in one place.

The first two and the partial half of the third may run at every site on that site's rows alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from thalweg.errors import Defects, nearest
from thalweg.model import Operator, TimeWindow
from thalweg.model.names import require_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

KINDS = ("row-wise", "partitioned", "mergeable", "global")
DEAD_LETTERS = "dead-letters"
"""The key under which rows that an operator must not see are found."""
CLOCK = "clock"
"""The name of the streams that say how far event time has come."""
PARTIAL = "-partial"

Role = Literal["source", "row-wise", "partitioned", "partial", "merge", "global", "sink"]
Function = Callable[..., "DataFrame"]

_COLUMN = re.compile(r"\s*(?:`([^`]+)`|([^\s:]+))")


@dataclass(frozen=True, kw_only=True, eq=False)
class Step:
    """One source, operator or sink of a pipeline; called, it is the function itself."""

    operator: Operator
    role: Role
    inputs: tuple[Step, ...] = ()
    function: Function | None = None
    by: tuple[str, ...] = ()
    must: tuple[str, ...] = ()
    time: str | None = None
    schema: str = ""
    key: str = ""
    determines_key: tuple[str, ...] = ()
    delay_s: float = 0.0
    sources: tuple[Step, ...] = field(init=False)

    def __post_init__(self) -> None:
        found = dict.fromkeys(source for step in self.inputs for source in step.sources)
        sources = (self,) if self.role == "source" else tuple(found)
        object.__setattr__(self, "sources", sources)

    def __call__(self, *frames: DataFrame) -> DataFrame:
        """What the function makes of these frames."""
        if self.function is None:
            raise TypeError(f"{self.name} is a {self.role}, it has no function")
        return self.function(*frames)

    @property
    def name(self) -> str:
        """The operator's name."""
        return self.operator.name

    @property
    def is_stateful(self) -> bool:
        """Whether it keeps rows, so that it must be told how late a row may come."""
        return self.role in ("partitioned", "partial", "merge", "global")

    @property
    def follows_state(self) -> bool:
        """Whether it, or anything before it, is stateful."""
        return self.is_stateful or any(step.follows_state for step in self.inputs)

    @property
    def window(self) -> TimeWindow | None:
        """The time windows that it works on, if it does."""
        window = self.operator.window
        return window if self.is_stateful and isinstance(window, TimeWindow) else None

    @property
    def opened(self) -> tuple[Step, ...]:
        """The inputs whose rows are in no window yet, and are put into this operator's."""
        if self.window is None:
            return ()
        return tuple(step for step in self.inputs if not step.follows_state)

    @property
    def times(self) -> tuple[str, ...]:
        """Where to look for the event time of its rows: the first of these columns counts.

        Its own declaration; or the column `window`, once something stateful has been passed; or
        the time of its sources.
        """
        if self.time is not None:
            return (self.time,)
        born = tuple(dict.fromkeys(s.time for s in self.sources if s.time is not None))
        return ("window", *born) if self.follows_state else born


def require_new_name(defects: Defects, name: str, known: Iterable[str]) -> None:
    """Remember a defect unless the name is one that nobody in the pipeline has."""
    require_name(defects, name or "name", name)
    if name in known:
        defects.add(name, name, "a name of its own", "the pipeline has one of that name already")
    if name == DEAD_LETTERS:
        defects.add(name, name, "another name", "rows that break a condition go under this one")
    if name == CLOCK:
        defects.add(name, name, "another name", "how far event time has come goes under this one")


def require_source_columns(
    defects: Defects,
    path: str,
    schema: object,
    key: object,
    time: str | None,
    determining: tuple[str, ...],
) -> None:
    """Remember a defect for each column that a source speaks of and does not have."""
    if not isinstance(schema, str) or not schema.strip():
        rule = 'columns as in SQL, such as "zone int, fare double"'
        defects.add(f"{path}.schema", schema, rule)
        return
    columns = column_names(schema)
    named = [("key", key), ("time", time), *(("determines_key", name) for name in determining)]
    for place, name in named:
        if (place == "time" and name is None) or name in columns:
            continue
        rule = "a column of the schema"
        defects.add(f"{path}.{place}", name, rule, nearest(str(name), columns))


def column_names(schema: str) -> list[str]:
    """The names of the columns in a schema written as in SQL.

    >>> column_names("ride long, place struct<x:int,y:int> NOT NULL, fare decimal(8,2), `a b`: int")
    ['ride', 'place', 'fare', 'a b']
    """
    depth, parts = 0, [""]
    for letter in schema:
        depth += (letter in "<(") - (letter in ">)")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    named = (_COLUMN.match(part) for part in parts)
    return [(found[1] or found[2]) for found in named if found]


def require_cut(steps: Mapping[str, Step], cut: Collection[str]) -> None:
    """Raise `InvalidInput` unless these operators can run at the sites, and without any other."""
    defects = Defects()
    for name in sorted(cut):
        step = steps.get(name)
        if step is None:
            defects.add("cut", name, "the name of an operator", nearest(name, steps))
        elif not step.operator.replicable:
            alone = step.role in ("row-wise", "partitioned", "partial")
            hint = "it comes after one that needs all rows" if alone else f"it is {step.role}"
            rule = "an operator that may run at every site on that site's rows alone"
            defects.add("cut", name, rule, hint)
        else:
            for sender in step.inputs:
                if sender.role != "source" and sender.name not in cut:
                    rule = "operators together with all that they read"
                    defects.add("cut", name, rule, f"{sender.name} is not in it")
    defects.raise_if_any()


def as_columns(columns: str | Iterable[str]) -> tuple[str, ...]:
    """One column or several, as a tuple."""
    return (columns,) if isinstance(columns, str) else tuple(columns)
