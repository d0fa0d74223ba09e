"""What a run tells of itself, checked when it is read: others look in whatever wrote it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, FiniteFloat, ValidationError

from thalweg.spark.deployment.site_states import DOWN, ENDED, State

KILLED = "killed"
"""The state of a run that ended without reporting it."""
_ENDS = ("ended", "failed")


class _Told(BaseModel):
    """Fields that others rely on; a run may tell more, and less while it starts."""

    model_config = ConfigDict(extra="allow", strict=True)


class _Query(_Told):
    processed_rows_per_s: FiniteFloat = 0.0
    error: str | None = None


class _Site(_Told):
    alive: bool
    queries: list[_Query]
    state: str = ""
    since_s: FiniteFloat | None = None


class _UnderWay(_Told):
    kind: str
    what: str
    began_at_s: FiniteFloat
    site: str | None = None


class _Decision(_Told):
    reason: str = ""


class _Status(_Told):
    pipeline: str = ""
    network: str = ""
    code: str | None = None
    code_since_s: FiniteFloat | None = None
    state: str = ""
    strategy: str = ""
    error: str | None = None
    heartbeat_s: FiniteFloat = 0.0
    pid: int | None = None
    rows_in: int = 0
    rates: dict[str, dict[str, FiniteFloat]] | None = None
    cuts: dict[str, list[str]] = {}
    sites: dict[str, _Site] = {}
    last_decision: _Decision | None = None
    under_way: _UnderWay | None = None


def settle_status(told: Mapping[str, Any], *, is_alive: bool) -> dict[str, Any]:
    """The status as it is now: a run that was killed could not report its own end.

    `is_alive` says whether a process holds the run's lock. It has to be found out before the status
    is read: a run that ends in between has reported its end then.

    >>> sites = {"fog": {"alive": True, "state": "up", "queries": []}}
    >>> last = {"state": "running", "heartbeat_s": 9.0, "sites": sites}
    >>> settled = settle_status(last, is_alive=False)
    >>> settled["state"], settled["under_way"], settled["sites"]["fog"]["state"]
    ('killed', None, 'down')
    """
    if is_alive or "state" not in told:
        return dict(told)
    state, site_state, sites = find_last_state(told), find_site_end(told), told.get("sites")
    if isinstance(sites, Mapping):
        heard_s = told.get("heartbeat_s")
        sites = {name: _settle_site(site, site_state, heard_s) for name, site in sites.items()}
    settled = {**told, "state": state, "under_way": None}
    return settled if sites is None else {**settled, "sites": sites}


def _settle_site(site: object, state: str, at_s: object) -> object:
    """A site of a run that is gone: its process is, too."""
    if not isinstance(site, Mapping):
        return site
    gone = {**site, "alive": False, "state": state, "pid": None, "queries": []}
    return gone if site.get("state") == state else {**gone, "since_s": at_s}


def find_last_state(told: Mapping[str, Any]) -> str:
    """The state of a run that no process runs any more: how it ended."""
    state = told.get("state")
    return state if isinstance(state, str) and state in _ENDS else KILLED


def find_site_end(told: Mapping[str, Any]) -> State:
    """The state of all sites of a run that no process runs any more."""
    return DOWN if find_last_state(told) == KILLED else ENDED


def find_status_fault(told: Mapping[str, Any]) -> str:
    """Which field is not as a run writes it, in a few words; empty where all are.

    >>> find_status_fault({"state": "running", "sites": {}})
    ''
    >>> find_status_fault({"heartbeat_s": "soon"})
    'heartbeat_s: input should be a valid number'
    """
    try:
        _Status.model_validate(told)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part)[:40] for part in fault["loc"])
        return f"{place}: {fault['msg'].lower()}"
    return ""
