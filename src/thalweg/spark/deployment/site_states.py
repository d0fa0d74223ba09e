"""The states of a run's sites, and what is under way at them: a state machine without any effects.

A site is `up`, `down`, `restarting` or `ended`. A run changes its cuts once at a time; it may start
several sites again at the same time, each once at a time, also during a change.

```text
up ──▶ down ──▶ restarting ──▶ up
 │      │  ◀────────┘           │
 └──────┴─────────▶ ended ◀─────┘
```

A transition that there is not raises `InvalidTransition`, with what came before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from thalweg.adapt.state import InvalidTransition

State = Literal["up", "down", "restarting", "ended"]
UP: State = "up"
DOWN: State = "down"
RESTARTING: State = "restarting"
ENDED: State = "ended"
_NEXT: Mapping[State, frozenset[State]] = {
    UP: frozenset({DOWN, RESTARTING, ENDED}),
    DOWN: frozenset({UP, RESTARTING, ENDED}),
    RESTARTING: frozenset({UP, DOWN, ENDED}),
    ENDED: frozenset(),
}
_MAX_HISTORY = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteLife:
    """The state of a site, since when it is in it [Unix time], and why."""

    state: State = UP
    since_s: float = 0.0
    why: str = ""
    lost_s: float | None = None
    """When it was up last before it was not [Unix time]; None: it has always been up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """A change of cuts, or the restart of a site, that is under way."""

    kind: Literal["change", "restart"]
    event: str
    """The name of the event that its begin and its end are marked with."""
    what: str
    began_at_s: float
    site: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        return {
            "kind": self.kind,
            "site": self.site,
            "what": self.what,
            "began_at_s": round(self.began_at_s, 3),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStates:
    """The states of all sites of a run, and its activities."""

    sites: Mapping[str, SiteLife] = field(default_factory=dict)
    change: Activity | None = None
    restarts: Mapping[str, Activity] = field(default_factory=dict)
    has_ended: bool = False
    history: tuple[str, ...] = ()

    @property
    def under_way(self) -> Activity | None:
        """What people are told: the change, or else the restart that began first."""
        if self.change is not None:
            return self.change
        return min(self.restarts.values(), key=lambda a: (a.began_at_s, a.event), default=None)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is under way."""
        return self.under_way is None

    def life_of(self, site: str) -> SiteLife:
        """The state of a site; one that was not heard of yet is up."""
        return self.sites.get(site, SiteLife())

    def see(self, site: str, at_s: float) -> RunStates:
        """Learn of a site; one that is known stays as it is."""
        if site in self.sites or self.has_ended:
            return self
        return replace(self, sites={**self.sites, site: SiteLife(since_s=at_s)})

    def lose(self, site: str, at_s: float, why: str) -> RunStates:
        """A site does not work any more; one that is down already stays as it was."""
        if self.life_of(site).state == DOWN:
            return self
        return self._to(site, DOWN, at_s, why)

    def regain(self, site: str, at_s: float) -> RunStates:
        """A site that was down works again, by itself."""
        if self.life_of(site).state != DOWN:
            raise self._refuse(f"{site} works again")
        return self._to(site, UP, at_s, "")

    def begin_restart(self, activity: Activity) -> RunStates:
        """A site, or a query of it, is being started again."""
        site = activity.site or ""
        if site in self.restarts or activity.kind != "restart" or not site:
            raise self._refuse(f"begin {activity.what}")
        begun = self._to(site, RESTARTING, activity.began_at_s, activity.what)
        return replace(begun, restarts={**self.restarts, site: activity})

    def end_restart(self, site: str, at_s: float, *, why: str = "") -> RunStates:
        """The restart of a site has ended: it is up, or for this reason still down."""
        if site not in self.restarts:
            raise self._refuse(f"end the restart of {site}")
        ended = self._to(site, DOWN if why else UP, at_s, why)
        left = {name: a for name, a in self.restarts.items() if name != site}
        return replace(ended, restarts=left)

    def begin_change(self, activity: Activity) -> RunStates:
        """Cuts are being changed."""
        if self.change is not None or self.has_ended or activity.kind != "change":
            raise self._refuse(f"begin {activity.what}")
        return replace(self, change=activity, history=self._told(f"begin {activity.what}"))

    def end_change(self) -> RunStates:
        """The change has ended, however that was."""
        if self.change is None:
            raise self._refuse("end a change")
        return replace(self, change=None, history=self._told(f"end {self.change.what}"))

    def end(self, at_s: float) -> RunStates:
        """The run has ended, and with it all of its sites and whatever was under way."""
        ended = SiteLife(state=ENDED, since_s=at_s)
        lives = {n: life if life.state == ENDED else ended for n, life in self.sites.items()}
        return RunStates(sites=lives, has_ended=True, history=self._told("the run ends"))

    def _to(self, site: str, state: State, at_s: float, why: str) -> RunStates:
        before = self.life_of(site)
        told = f"{site}: {before.state} → {state}"
        if state not in _NEXT[before.state]:
            raise self._refuse(told)
        lost_s = at_s if before.state == UP else before.lost_s
        life = SiteLife(state=state, since_s=at_s, why=why, lost_s=lost_s)
        return replace(self, sites={**self.sites, site: life}, history=self._told(told))

    def _told(self, event: str) -> tuple[str, ...]:
        return (*self.history, event)[-_MAX_HISTORY:]

    def _refuse(self, event: str) -> InvalidTransition:
        before = "; ".join(self.history) or "nothing"
        return InvalidTransition(f"there is no such transition: {event}. Before it: {before}")
