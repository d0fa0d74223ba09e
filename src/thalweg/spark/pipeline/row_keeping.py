"""Tells of an operator, by the plan that Spark makes of it, that it puts out a row for each row.

What goes into such an operator need not be counted again when it comes out: to count rows in the
middle of a query costs more than most row-wise operators do, as Spark stops there to fuse steps.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_KEEPING = frozenset({"Project", "SubqueryAlias", "View"})
_ANALYZED = re.compile(r"== Analyzed Logical Plan ==\n(.*?)\n== ", re.DOTALL)
_NODE = re.compile(r"^\s*(?:\+- )?'?([A-Za-z]+)")


def keeps_rows(frame: DataFrame, conditions: int = 0) -> bool:
    """Whether a frame has a row for every row of the one table that it is made from.

    So many `conditions` on that table come first and do not count. Where Spark does not say, no.
    """
    return _is_chain_of_projections(_describe(frame), conditions)


def _describe(frame: DataFrame) -> str:
    """The logical plan as text, one node in each line, or nothing where it cannot be had."""
    plan = getattr(frame, "_jdf", None)
    if plan is not None:
        return str(plan.queryExecution().analyzed().toString())
    explain = getattr(frame, "_explain_string", None)
    if explain is None:
        return ""
    # Over Spark Connect there is all or nothing, and a line with the columns before the plan.
    found = _ANALYZED.search(explain(extended=True))
    return found.group(1).partition("\n")[2] if found else ""


def _is_chain_of_projections(plan: str, conditions: int = 0) -> bool:
    r"""Whether there is nothing but projections over a table, and so many filters on that table.

    >>> _is_chain_of_projections("Project [a]\n+- Filter (b)\n   +- LogicalRDD [a, b]", 1)
    True
    >>> _is_chain_of_projections("Project [a]\n+- Filter (b)\n   +- LogicalRDD [a, b]")
    False
    """
    # A tree that has branches has colons where they begin.
    lines = plan.rstrip().split("\n")
    if any(line.lstrip().startswith(":") for line in lines):
        return False
    nodes = [found.group(1) for line in lines if (found := _NODE.match(line))]
    if len(nodes) != len(lines) or len(nodes) < 1 + conditions:
        return False
    cut = len(nodes) - 1 - conditions
    above, filters = nodes[:cut], nodes[cut:-1]
    return set(above) <= _KEEPING and set(filters) <= {"Filter"} and nodes[-1] not in _KEEPING
