"""Makes a function an operator of a pipeline, or says all that is wrong with that."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from thalweg.errors import Defects, nearest
from thalweg.model import Operator
from thalweg.spark.pipeline.kinds import (
    KINDS,
    PARTIAL,
    Function,
    Role,
    Step,
    require_new_name,
)

# What a function says about itself in a pipeline; the rest of an Operator follows from that.
_FIGURES = tuple(
    f.name
    for f in fields(Operator)
    if f.name not in ("name", "kind", "replicable", "rate", "event_size")
)


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """How a function is to be an operator, as it was asked for; see `Pipeline.operator`."""

    kind: str
    by: tuple[str, ...]
    merge: Function | None
    merge_figures: Mapping[str, Any]
    must: tuple[str, ...]
    time: str | None
    figures: Mapping[str, Any]


def make_operator(
    defects: Defects,
    name: str,
    function: Function,
    inputs: tuple[Step, ...],
    wishes: Wishes,
    known: Collection[str],
    arity: int,
) -> tuple[Step, ...]:
    """The operator as a step, or as two: the partial half of a mergeable one comes first.

    `arity` is how many inputs were asked for; `inputs` are those that there are.

    Raises:
        InvalidInput: with the defects that were there already, and all that are found here.
    """
    mergeable = wishes.kind == "mergeable"
    first = name + PARTIAL if mergeable else name
    for new in dict.fromkeys((first, name)):
        require_new_name(defects, new, known)
    _require_arity(defects, f"{name}.function", function, arity)
    _require_conditions(defects, name, wishes.must, arity)
    _require_kind(defects, name, wishes, inputs)
    figures = _require_figures(defects, name, wishes.figures)
    merge_figures = _require_figures(defects, f"{name}.merge_figures", wishes.merge_figures)
    replicable = wishes.kind != "global" and all(
        step.role == "source" or step.operator.replicable for step in inputs
    )
    own = defects.attempt(name, lambda: Operator(name=first, replicable=replicable, **figures))
    whole = defects.attempt(f"{name}.merge_figures", lambda: Operator(name=name, **merge_figures))
    defects.raise_if_any()
    role: Role = "partial" if mergeable else wishes.kind  # type: ignore[assignment]
    step = Step(
        operator=own,  # type: ignore[arg-type]
        role=role,
        inputs=inputs,
        function=function,
        by=wishes.by,
        must=wishes.must,
        time=wishes.time,
    )
    if not mergeable:
        return (step,)
    merge = Step(
        operator=whole,  # type: ignore[arg-type]
        role="merge",
        inputs=(step,),
        function=wishes.merge,
        time=wishes.time,
    )
    return step, merge


def _require_kind(defects: Defects, name: str, wishes: Wishes, inputs: Iterable[Step]) -> None:
    """Remember a defect if there is no such kind, and for all that it needs or cannot have."""
    kind = wishes.kind
    if kind not in KINDS:
        rule = "row-wise, partitioned, mergeable or global"
        defects.add(f"{name}.kind", kind, rule, nearest(str(kind), KINDS))
        return
    if kind == "partitioned":
        _require_partition(defects, name, wishes.by, inputs)
    elif wishes.by:
        hint = 'only the kind "partitioned" has them'
        defects.add(f"{name}.by", ", ".join(wishes.by), "no columns here", hint)
    if kind == "mergeable":
        _require_arity(defects, f"{name}.merge", wishes.merge, 1)
    elif wishes.merge is not None:
        value = getattr(wishes.merge, "__name__", wishes.merge)
        defects.add(f"{name}.merge", value, "no function here", 'only the kind "mergeable" has one')
    if kind == "row-wise" and wishes.figures.get("window") is not None:
        hint = "rows of a window are worked on together: partitioned, mergeable or global"
        defects.add(f"{name}.window", wishes.figures["window"], "no window here", hint)


def _require_arity(defects: Defects, path: str, function: object, count: int) -> None:
    """Remember a defect unless the function can be called with so many frames."""
    if not callable(function):
        defects.add(path, function, "a function of DataFrames")
        return
    try:
        inspect.signature(function).bind(*([None] * count))
    except TypeError as error:
        frames = f"{count} DataFrame{'' if count == 1 else 's'}, one for each input"
        defects.add(
            path, getattr(function, "__name__", function), f"a function of {frames}", f"{error}"
        )
    except ValueError:  # A built-in without a signature: Spark will tell.
        return


def _require_partition(
    defects: Defects, path: str, by: tuple[str, ...], inputs: Iterable[Step]
) -> None:
    """Remember a defect for every source whose key could be torn apart by this partition."""
    if not by:
        hint = "name the columns whose equal rows belong together"
        defects.add(f"{path}.by", None, "at least one column", hint)
        return
    for source in dict.fromkeys(source for step in inputs for source in step.sources):
        if not {source.key, *source.determines_key}.intersection(by):
            defects.add(
                f"{path}.by",
                ", ".join(by),
                f'a partition that holds the key "{source.key}" of {source.name}',
                f'only rows with the same "{source.key}" are sure to be at the same site; '
                "add it, or make the operator mergeable or global",
            )


def _require_conditions(
    defects: Defects, path: str, conditions: tuple[str, ...], inputs: int
) -> None:
    """Remember a defect for conditions that are no text, or that have several inputs to hold on."""
    for condition in conditions:
        good = isinstance(condition, str) and bool(condition.strip())
        defects.require(good, f"{path}.must", condition, "a condition in SQL")
    if conditions and inputs > 1:
        hint = "let the operators before it have the condition"
        defects.add(f"{path}.must", f"{inputs} inputs", "an operator with one input", hint)


def _require_figures(defects: Defects, path: str, figures: Mapping[str, Any]) -> dict[str, Any]:
    """The figures that an operator can have; a defect for each of the others."""
    for name in figures:
        if name not in _FIGURES:
            defects.add(
                f"{path}.{name}", figures[name], "a field of an operator", nearest(name, _FIGURES)
            )
    return {name: value for name, value in figures.items() if name in _FIGURES}
