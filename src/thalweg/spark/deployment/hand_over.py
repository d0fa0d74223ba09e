"""How a deployment gets from the cuts that run to the cuts that are wanted, as plain steps.

The steps are values: a dry run prints them, a run carries them out and writes each down, so that a
coordinator that dies between any two goes on where it was. Carrying out a step twice is carrying it
out once. Nothing here does anything: `next_steps` says what to do, `learn` what is true after it
was done.

A site's cut moves by ending the epoch that runs there at a barrier, handing over the windows that
are open there, fencing the epoch off, and starting the next one from the barrier. Other sites and
the cloud go on.

Who computes which window of an operator, told by the window's end:

- it stays at the site, or leaves it: what the site has put out is out (up to its watermark); the
  rest is made again at the new place, from the rows of the open windows, which are handed over;
- it comes to the site: windows that have rows already are the cloud's (up to the *gate*), and their
  remaining rows are sent there; later ones are the site's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from thalweg.errors import Defects
from thalweg.spark.pipeline.windows import Opening, first_whole_end
from thalweg.spark.query.kept import KeptRows

Offsets = Mapping[str, Any]
Ends = Mapping[str, int]
"""By operator, the end of a window in milliseconds since 1970."""
Phase = Literal["idle", "running", "drained", "exported", "fenced"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StartEpoch:
    """Start the operators of a cut on a site, from the offsets where the epoch before ended."""

    site: str
    epoch: int
    cut: tuple[str, ...]
    start: Offsets | None
    clock_ms: int | None = None
    gates: Ends = field(default_factory=dict)
    """Windows that end by then are the cloud's."""
    carried: tuple[str, ...] = ()
    """Edges `x+y` with rows of open windows, handed over by the epoch before."""

    def __str__(self) -> str:
        runs = ", ".join(self.cut) or "nothing: raw data goes up"
        return f"start epoch {self.epoch} on {self.site}: {runs}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepare:
    """Get the next epoch ready beside the one that runs, so that the pause is short.

    Which windows will be the cloud's has to be known by then. As events go on until the barrier,
    the gates are set somewhat later than they could be; should time overtake them, the epoch is
    started without having been prepared.
    """

    site: str
    epoch: int
    cut: tuple[str, ...]

    def __str__(self) -> str:
        return f"prepare epoch {self.epoch} on {self.site}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """End an epoch after the batch under way, say where it stands, to go on with another cut."""

    site: str
    epoch: int
    cut: tuple[str, ...]

    def __str__(self) -> str:
        return f"drain epoch {self.epoch} of {self.site}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportState:
    """Hand over the rows of open windows: to the site's next epoch, or to the cloud."""

    site: str
    epoch: int
    batch: int
    keep: Ends
    send: Ends

    def __str__(self) -> str:
        kept = f"{', '.join(sorted(self.keep))} to its next epoch" if self.keep else ""
        sent = f"{', '.join(sorted(self.send))} to the cloud" if self.send else ""
        both = " and ".join(part for part in (kept, sent) if part)
        return f"hand over open windows of epoch {self.epoch} of {self.site}: {both}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fence:
    """From now on nobody reads what the epoch writes beyond its last batch."""

    site: str
    epoch: int
    last_batch: int

    def __str__(self) -> str:
        return f"fence epoch {self.epoch} of {self.site} after batch {self.last_batch}"


Step = StartEpoch | Prepare | Drain | ExportState | Fence


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
    clock_ms: int | None = None
    gates: Ends = field(default_factory=dict)
    carried: tuple[str, ...] = ()
    offsets: Offsets | None = None
    """Where the last epoch ended, once it is drained."""
    last_batch: int = -1
    watermark_ms: int | None = None
    newest_ms: int | None = None
    next_cut: tuple[str, ...] | None = None
    """What a hand-over that was begun leads to."""
    next_gates: Ends = field(default_factory=dict)
    """The gates that the next epoch was prepared with."""
    kept: Mapping[str, KeptRows] | None = None
    """The files that the last epoch has handed over to the next one, by edge; None: not known."""

    @property
    def reached_ms(self) -> int | None:
        """How far time had come here when the last epoch ended."""
        return max((t for t in (self.clock_ms, self.watermark_ms) if t is not None), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentState:
    """All sites, by name, and the operators that put rows into windows."""

    sites: Mapping[str, SiteState] = field(default_factory=dict)
    openings: Mapping[str, Opening] = field(default_factory=dict)

    @classmethod
    def of(
        cls, names: tuple[str, ...], openings: Mapping[str, Opening] | None = None
    ) -> DeploymentState:
        """A deployment on these sites where nothing runs yet."""
        sites = {name: SiteState(site=name) for name in names}
        return cls(sites=sites, openings=openings or {})

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
    steps = (next_step(state, name, wanted.get(name)) for name in sorted(state.sites))
    return tuple(step for step in steps if step is not None)


def next_step(state: DeploymentState, name: str, cut: tuple[str, ...] | None) -> Step | None:
    """The next step of one site to this cut, whatever others do; None where it is there."""
    site, openings = state.sites[name], state.openings
    if site.phase == "running":
        if cut is None or set(cut) == set(site.cut):
            return None
        if site.next_cut is None or set(site.next_cut) != set(cut):
            return Prepare(site=site.site, epoch=site.epoch + 1, cut=tuple(cut))
        return Drain(site=site.site, epoch=site.epoch, cut=site.next_cut)
    if site.phase == "drained":
        keep, send = _open_windows(site, openings)
        if keep or send:
            batch = site.last_batch + 1
            return ExportState(site=site.site, epoch=site.epoch, batch=batch, keep=keep, send=send)
    if site.phase in ("drained", "exported"):
        return Fence(site=site.site, epoch=site.epoch, last_batch=site.last_batch)
    if site.phase == "fenced":
        # A hand-over that was begun ends where it was to lead, wanted by now or not.
        return _start_next(site, openings)
    # A first start that was begun may have happened: it is the one that is done again.
    first = cut if site.next_cut is None else site.next_cut
    if first is None:
        return None
    return StartEpoch(site=site.site, epoch=site.epoch + 1, cut=tuple(first), start=site.offsets)


def _open_windows(site: SiteState, openings: Mapping[str, Opening]) -> tuple[Ends, Ends]:
    """What stays and what goes up of the windows that are open at a site, by the ends before."""
    keep: dict[str, int] = {}
    send: dict[str, int] = {}
    for name in openings:
        if name in site.cut and site.newest_ms is not None:
            known = (site.reached_ms, site.gates.get(name))
            after_ms = max((end for end in known if end is not None), default=0)
            (keep if name in (site.next_cut or ()) else send)[name] = after_ms
    return keep, send


def _start_next(site: SiteState, openings: Mapping[str, Opening]) -> StartEpoch:
    cut = site.next_cut or ()
    keep, _ = _open_windows(site, openings)
    reached_ms = site.reached_ms or 0
    gates: dict[str, int] = {}
    for name, opening in openings.items():
        if name not in cut or site.newest_ms is None:
            continue
        if name not in site.cut:
            least = first_whole_end(site.newest_ms, opening.window)
            gates[name] = max(least, site.next_gates.get(name, 0))
        elif site.gates.get(name, 0) > reached_ms or name in site.next_gates:
            # One that has passed since the epoch was prepared does no harm.
            gates[name] = site.gates[name]
    return StartEpoch(
        site=site.site,
        epoch=site.epoch + 1,
        cut=cut,
        start=site.offsets,
        clock_ms=site.reached_ms,
        gates=gates,
        carried=edges_into(keep, openings),
    )


def edges_into(names: Iterable[str], openings: Mapping[str, Opening]) -> tuple[str, ...]:
    """The edges `x+y` by which rows come into windows of these operators."""
    return tuple(f"{sender}+{name}" for name in names for sender in openings[name].senders)


def export_again(site: SiteState, openings: Mapping[str, Opening]) -> ExportState:
    """What makes the files once more that an epoch has handed over to the next one.

    It is possible until the next one has begun, behind the fence as well: all is computed from the
    rows up to the barrier, and what went to the cloud is there.
    """
    keep, _ = _open_windows(site, openings)
    return ExportState(site=site.site, epoch=site.epoch, batch=site.last_batch, keep=keep, send={})


def plan_start(
    site: SiteState,
    cut: tuple[str, ...],
    newest_ms: int | None,
    openings: Mapping[str, Opening],
) -> StartEpoch:
    """How the next epoch of a running site would start, were it drained at this newest event."""
    there = replace(site, next_cut=cut, newest_ms=newest_ms)
    return _start_next(there, openings)


def learn(
    state: DeploymentState,
    step: Step,
    *,
    offsets: Offsets | None = None,
    last_batch: int = -1,
    watermark_ms: int | None = None,
    newest_ms: int | None = None,
    gates: Ends | None = None,
    kept: Mapping[str, Mapping[str, Any]] | None = None,
) -> DeploymentState:
    """What is true after a step was carried out; of a drain also where it ended.

    `kept` are the files that open windows were handed over in, as plain data.

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
            clock_ms=step.clock_ms,
            gates=step.gates,
            carried=step.carried,
            offsets=None,
            watermark_ms=None,
            next_cut=None,
            next_gates={},
            kept=None,
        )
        return replace(state, sites={**state.sites, step.site: site})
    if isinstance(step, Prepare):
        if site.phase not in ("idle", "running") or step.epoch != site.epoch + 1:
            return state
        site = replace(site, next_cut=step.cut, next_gates=gates or {})
        return replace(state, sites={**state.sites, step.site: site})
    if site.epoch != step.epoch:
        return state
    if isinstance(step, Drain) and site.phase == "running":
        newest = [t for t in (site.newest_ms, newest_ms) if t is not None]
        site = replace(
            site,
            phase="drained",
            offsets=offsets,
            last_batch=last_batch,
            watermark_ms=watermark_ms,
            newest_ms=max(newest, default=None),
            next_cut=step.cut,
        )
    elif isinstance(step, ExportState) and site.phase == "drained":
        site = replace(site, phase="exported", last_batch=step.batch, kept=_parse_kept(kept))
    elif isinstance(step, ExportState) and site.phase in ("exported", "fenced"):
        # Done once more, because files were lost.
        site = replace(site, kept=_parse_kept(kept))
    elif isinstance(step, Fence) and site.phase in ("drained", "exported"):
        site = replace(site, phase="fenced")
    else:
        return state
    return replace(state, sites={**state.sites, step.site: site})


def _parse_kept(kept: Mapping[str, Mapping[str, Any]] | None) -> dict[str, KeptRows] | None:
    """The files that a journal tells of; journals did not always."""
    return None if kept is None else {edge: KeptRows(**told) for edge, told in kept.items()}


def outline(state: DeploymentState, wanted: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Every step to the wanted cuts in words, in the order of the sites; what a dry run prints."""
    told: list[str] = []
    while steps := next_steps(state, wanted):
        for step in steps:
            told.append(str(step))
            # What a drain will reach is not known yet; that there are open windows, it is.
            newest_ms = 0 if isinstance(step, Drain) else None
            state = learn(state, step, newest_ms=newest_ms)
    return tuple(told)
