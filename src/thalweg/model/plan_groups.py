"""The rows of a plan, one for each operator: who runs where, each reason once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import itemgetter

_LISTED = 3
"""So many sites are named; of more there is only their number."""


def group_rows(rows: Sequence[Mapping[str, str]]) -> tuple[list[str], list[list[str]]]:
    """Names of the columns, and a row for each operator; the instances of one lie together.

    A reason that an earlier row gives is not repeated: the operator of that row is named.

    >>> at = [{"operator": "parse", "site": s, "node": s, "tier": "fog", "why": "on its fog"}
    ...       for s in ("a", "b", "c", "d")]
    >>> group_rows(at)[1]
    [['parse × 4', '4 nodes in 4 sites', 'fog', 'on its fog']]
    """
    shown: list[list[str]] = []
    first: dict[str, str] = {}
    for operator, instances in groupby(rows, key=itemgetter("operator")):
        group = list(instances)
        label = operator if len(group) == 1 else f"{operator} × {len(group):,}"
        why = group[0]["why"]
        said = first.setdefault(why, operator)
        reason = why if said == operator or not why else f"as for {said}"
        shown.append([label, _places(group), _tiers(group), reason])
    return ["operator", "where", "tier", "why"], shown


def _places(group: Sequence[Mapping[str, str]]) -> str:
    nodes = {row["node"] for row in group}
    if len(nodes) == 1:
        return group[0]["node"]
    sites = list(dict.fromkeys(row["site"] for row in group))
    where = ", ".join(sites) if len(sites) <= _LISTED else f"{len(sites):,} sites"
    one_each = len(nodes) == len(sites) <= _LISTED
    return where if one_each else f"{len(nodes):,} nodes in {where}"


def _tiers(group: Sequence[Mapping[str, str]]) -> str:
    return ", ".join(dict.fromkeys(row["tier"] for row in group))
