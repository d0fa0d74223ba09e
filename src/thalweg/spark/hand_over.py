"""How a deployment gets from the cuts that run to the cuts that are wanted, as plain steps.

The steps are values: a dry run prints them, a run carries them out and writes each down before and
after, so that a coordinator that dies between any two goes on where it was. Carrying out a step
twice is carrying it out once. Nothing here does anything: `next_steps` says what to do, `learn`
what is true after it was done.

A site's cut moves by ending the epoch that runs there at a barrier, fencing it off, and starting
the next epoch from the barrier. Other sites and the cloud go on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from thalweg.errors import Defects

Offsets = Mapping[str, Any]
Phase = Literal["idle", "running", "drained", "fenced"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StartEpoch:
    """Start the operators of a cut on a site, from the offsets where the epoch before ended."""

    site: str
    epoch: int
    cut: tuple[str, ...]
    start: Offsets | None

    def __str__(self) -> str:
        runs = ", ".join(self.cut) or "nothing: raw data goes up"
        return f"start epoch {self.epoch} on {self.site}: {runs}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """End an epoch after the batch under way, and say where it stands."""

    site: str
    epoch: int

    def __str__(self) -> str:
        return f"drain epoch {self.epoch} of {self.site}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fence:
    """From now on nobody reads what the epoch writes beyond its last batch."""

    site: str
    epoch: int
    last_batch: int

    def __str__(self) -> str:
        return f"fence epoch {self.epoch} of {self.site} after batch {self.last_batch}"


Step = StartEpoch | Drain | Fence


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteState:
    """Where a site is: what runs there, or where its last epoch ended."""

    site: str
    epoch: int = -1
    """The last epoch that was started; −1: none yet."""
    phase: Phase = "idle"
    cut: tuple[str, ...] = ()
    start: Offsets | None = None
    """Where the running epoch began; needed to start it again after a crash."""
    offsets: Offsets | None = None
    """Where the last epoch ended, once it is drained."""
    last_batch: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentState:
    """All sites, by name."""

    sites: Mapping[str, SiteState] = field(default_factory=dict)

    @classmethod
    def of(cls, names: tuple[str, ...]) -> DeploymentState:
        """A deployment on these sites where nothing runs yet."""
        return cls(sites={name: SiteState(site=name) for name in names})

    @property
    def cuts(self) -> dict[str, tuple[str, ...]]:
        """What runs on every site where something runs."""
        return {name: s.cut for name, s in self.sites.items() if s.phase == "running"}


def next_steps(state: DeploymentState, wanted: Mapping[str, tuple[str, ...]]) -> tuple[Step, ...]:
    """The next step of every site that does not run its wanted cut; none where all do.

    The order of operators in a cut does not matter. Raises `InvalidInput` for unknown sites.
    """
    defects = Defects()
    for site in sorted(set(wanted) - set(state.sites)):
        defects.add("cuts", site, "a site of the deployment")
    defects.raise_if_any()
    steps = []
    for name in sorted(state.sites):
        step = _next_step(state.sites[name], wanted.get(name))
        if step is not None:
            steps.append(step)
    return tuple(steps)


def _next_step(site: SiteState, cut: tuple[str, ...] | None) -> Step | None:
    if site.phase == "running":
        if cut is None or set(cut) == set(site.cut):
            return None
        return Drain(site=site.site, epoch=site.epoch)
    if site.phase == "drained":
        return Fence(site=site.site, epoch=site.epoch, last_batch=site.last_batch)
    # Idle or fenced. A hand-over that was begun ends with something running, wanted or not.
    if cut is None:
        if site.phase == "idle":
            return None
        cut = site.cut
    return StartEpoch(site=site.site, epoch=site.epoch + 1, cut=tuple(cut), start=site.offsets)


def learn(
    state: DeploymentState, step: Step, *, offsets: Offsets | None = None, last_batch: int = -1
) -> DeploymentState:
    """What is true after a step was carried out; of a drain also where it ended.

    A step that is known already changes nothing, so that a journal can be read twice.
    """
    site = state.sites[step.site]
    if isinstance(step, StartEpoch):
        if site.epoch >= step.epoch:
            return state
        site = replace(
            site,
            epoch=step.epoch,
            phase="running",
            cut=step.cut,
            start=step.start,
            offsets=None,
        )
    elif isinstance(step, Drain):
        if site.epoch != step.epoch or site.phase != "running":
            return state
        site = replace(site, phase="drained", offsets=offsets, last_batch=last_batch)
    else:
        if site.epoch != step.epoch or site.phase != "drained":
            return state
        site = replace(site, phase="fenced")
    return replace(state, sites={**state.sites, step.site: site})


def outline(state: DeploymentState, wanted: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Every step to the wanted cuts in words, in the order of the sites; what a dry run prints."""
    told: list[str] = []
    while steps := next_steps(state, wanted):
        for step in steps:
            told.append(str(step))
            state = learn(state, step)
    return tuple(told)
