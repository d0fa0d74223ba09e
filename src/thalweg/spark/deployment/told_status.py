"""What a run tells of itself, checked when it is read: others look in whatever wrote it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, FiniteFloat, ValidationError


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
