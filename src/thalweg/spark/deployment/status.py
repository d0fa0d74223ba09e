"""How a run is doing, as plain data and for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from thalweg.spark.deployment.plan import Cuts
from thalweg.spark.deployment.site_states import SiteLife
from thalweg.spark.deployment.tally import Rates
from thalweg.spark.deployment.told_status import KILLED, find_last_state
from thalweg.spark.site.site import SiteStatus


def describe_cuts(cuts: Cuts) -> str:
    """Cuts for people: "fog-1: parse, clean; fog-2: nothing"."""
    return "; ".join(f"{site}: {', '.join(cut) or 'nothing'}" for site, cut in sorted(cuts.items()))


def same_cuts(some: Cuts, others: Cuts) -> bool:
    """Whether the same operators run at the same sites, in whatever order they are named."""
    return {s: set(c) for s, c in some.items()} == {s: set(c) for s, c in others.items()}


def nest_rates(rates: Rates) -> dict[str, dict[str, float]]:
    """Rates as plain data: by source, then by site."""
    found: dict[str, dict[str, float]] = {}
    for (source, site), rate in rates.items():
        found.setdefault(source, {})[site] = round(rate, 3)
    return found


def count_changes(
    changes: Sequence[Mapping[str, Any]], restarts: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Count changes of cuts by their cause and restarts by their site, as plain data.

    >>> change = {"at_s": 7.0, "cause": "adapt", "seconds": 2.5, "changed": True}
    >>> count_changes([change], [{"site": "fog-1"}])["last_change"]
    {'at_s': 7.0, 'cause': 'adapt', 'seconds': 2.5}
    """
    made = [change for change in changes if change["changed"]]
    last = {name: made[-1][name] for name in ("at_s", "cause", "seconds")} if made else None
    return {
        "changes": len(made),
        "changes_by_cause": dict(Counter(change["cause"] for change in made)),
        "last_change": last,
        "restarts": len(restarts),
        "restarts_by_site": dict(Counter(restart["site"] for restart in restarts)),
    }


def describe_state(told: Mapping[str, Any], silent_s: float, *, is_alive: bool) -> str:
    """How a run is doing, in a few words: what it last said, or that it was killed.

    >>> describe_state({"state": "running"}, 7.0, is_alive=False)
    'killed, last heard of 7 s ago'
    """
    state = str(told.get("state", "starting"))
    if not is_alive and find_last_state(told) == KILLED:
        return f"killed, last heard of {max(0.0, silent_s):.0f} s ago"
    return f"{state}: {told['error']}" if told.get("error") else state


_OF_QUERY = (
    "name",
    "state",
    "batch",
    "input_rows_per_s",
    "processed_rows_per_s",
    "batch_s",
    "watermark",
    "error",
)


def describe_site(site: SiteStatus | None, life: SiteLife) -> dict[str, Any]:
    """What a site and its queries are doing, as plain data; of None, nobody has asked it."""
    queries = () if site is None else site.queries
    return {
        "alive": site is not None and site.alive,
        "state": life.state,
        "since_s": round(life.since_s, 3),
        "pid": None if site is None else site.pid,
        "silent_s": 0.0 if site is None else round(site.silent_s, 3),
        "queries": [{name: asdict(query)[name] for name in _OF_QUERY} for query in queries],
    }
