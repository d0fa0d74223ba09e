"""Carries out hand-overs: starts epochs, drains them, fences them, and writes each step down.

Sites change at the same time, each at its own pace: none waits for another between the preparation
of its next epoch and the barrier. Only what is written down is written one line after the other.

Everything that it needs to know is in the journal and in the checkpoints. So a coordinator that was
killed is followed by one that reads the journal, starts again what ran, and ends the hand-over that
was under way.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Protocol

from thalweg.errors import Defects
from thalweg.spark.deployment.export import HandsOver, export_windows, has_lost_windows
from thalweg.spark.deployment.hand_over import (
    DeploymentState,
    Drain,
    ExportState,
    Fence,
    Prepare,
    SiteState,
    StartEpoch,
    Step,
    export_again,
    next_step,
    next_steps,
    outline,
    plan_start,
)
from thalweg.spark.deployment.hand_over import learn as learn_step
from thalweg.spark.deployment.journal import Journal
from thalweg.spark.deployment.margin import Margin
from thalweg.spark.log import Log
from thalweg.spark.pipeline.windows import Opening
from thalweg.spark.query.spec import QuerySpec
from thalweg.spark.site.channel import NO_QUERY, SiteError, SiteLate

if TYPE_CHECKING:
    from thalweg.spark.deployment.spec import DeploymentSpec
    from thalweg.spark.query.checkpoint import Stand

Cuts = Mapping[str, tuple[str, ...]]
OnStep = Callable[[Step], None]
Sequences = Sequence[Iterator[object]]
RunAll = Callable[[Sequences], None]
"""Runs the sequences of several sites, a step each time that one is asked for its next item."""
# Each time a minute or so: as long as anybody may want to wait for a start.
_MOST_LATE = 15


class RunsQueries(HandsOver, Protocol):
    """What a coordinator asks of a site."""

    def start(self, query: QuerySpec) -> object:
        """Start a query; one that has run before goes on from its checkpoint."""
        ...

    def drain(self, query: str) -> Stand:
        """End a query after the batch under way, and say where it stands."""
        ...

    def prepare(self, query: QuerySpec) -> object:
        """Get a query ready that will be started soon."""
        ...

    def newest_ms(self, query: str) -> int | None:
        """The latest event time that a running query has been given."""
        ...

    def ship(self, query: QuerySpec, batch: int) -> object:
        """Wait until all that a query has published up to a batch is safe with its link."""
        ...

    def await_arrival(self, query: QuerySpec, site: str, epoch: int, batch: int) -> object:
        """Wait until all that another site has shipped up to a batch is in this query's log."""
        ...


class TakesFences(Protocol):
    """What a coordinator asks of the log."""

    def fence(self, site: str, epoch: int, last_batch: int | None = None) -> object:
        """End an epoch for every reader; to do it again changes nothing."""
        ...


class KeepsSteps(Protocol):
    """What a coordinator asks of its journal; see `thalweg.spark.deployment.journal.Journal`."""

    def __enter__(self) -> object: ...

    def __exit__(self, *error: Any) -> object: ...

    def write(self, step: Step, **reached: Any) -> None:
        """Write down that the step was carried out, and what it reached."""
        ...

    def state(
        self, sites: tuple[str, ...], openings: Mapping[str, Opening] | None = None
    ) -> DeploymentState:
        """What is true after all of it."""
        ...


class Coordinator:
    """Keeps a deployment at the cuts that are wanted; use it as a context manager.

    `run_all` runs the sequences of different sites: each in a thread of its own, unless told
    otherwise. `log_of` gives the log of a site that has its own.
    """

    def __init__(
        self,
        spec: DeploymentSpec,
        sites: Mapping[str, RunsQueries],
        log: TakesFences,
        *,
        openings: Mapping[str, Opening] | None = None,
        on_step: OnStep | None = None,
        on_done: OnStep | None = None,
        journal: KeepsSteps | None = None,
        run_all: RunAll | None = None,
        log_of: Callable[[str], TakesFences] | None = None,
    ) -> None:
        """`on_step` is told a step before it is taken, `on_done` before it is written down.

        They are called from several threads, one at a time.
        """
        missing = sorted({*spec.fogs, spec.cloud} - set(sites))
        defects = Defects()
        for name in missing:
            defects.add("sites", name, "a site that was started")
        defects.raise_if_any()
        self.spec = spec
        self._sites, self._log = sites, log
        self._log_of: Callable[[str], TakesFences] = log_of or (lambda s: Log(spec.log_of(s)))
        self._journal: KeepsSteps = Journal(spec.journal) if journal is None else journal
        self._run_all = run_all or run_in_threads
        self._lock = threading.Lock()
        self._margin = Margin(most_s=spec.margin_s)
        self._on_step = on_step or (lambda _step: None)
        self._on_done = on_done or (lambda _step: None)
        self._openings = _find_openings(spec) if openings is None else openings
        self.state = DeploymentState.of(spec.fogs, self._openings)

    def __enter__(self) -> Coordinator:
        self._journal.__enter__()
        try:
            self.state = self._journal.state(self.spec.fogs, self._openings)
            self._resume()
        except BaseException:
            self._journal.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, *error: Any) -> None:
        self._journal.__exit__(*error)

    def outline(self, wanted: Cuts) -> tuple[str, ...]:
        """The steps to these cuts in words, without taking any."""
        return outline(self.state, wanted)

    def go_to(self, wanted: Cuts) -> tuple[Step, ...]:
        """Take every step to these cuts, all sites at the same time; returns them. Others go on.

        Where a site fails, the others end what they have begun; the first error is raised then.
        """
        taken: list[Step] = []
        while steps := next_steps(self.state, wanted):
            self._run_all([self._change_site(step.site, wanted, taken) for step in steps])
        return tuple(taken)

    def forget_pace(self) -> None:
        """Take it that preparations are slow again: a site has been started anew."""
        self._margin.forget()

    def stop(self) -> dict[str, Stand]:
        """End every query after the batch under way; the next coordinator goes on from there."""
        stands: dict[str, Stand] = {}

        def drain(site: str, epoch: int) -> Iterator[None]:
            stands[site] = self._sites[site].drain(self.spec.query(site, epoch).name)
            yield

        fogs = sorted(self.state.cuts)
        self._run_all([drain(fog, self.state.sites[fog].epoch) for fog in fogs])
        # Last: it takes in what the sites have put out until then.
        self._run_all([drain(self.spec.cloud, 0)])
        return stands

    def _change_site(self, site: str, wanted: Cuts, taken: list[Step]) -> Iterator[Step]:
        """Take the steps of one site to its cut, one for each item."""
        cut = wanted.get(site)
        while (step := next_step(self.state, site, cut)) is not None:
            for each in (*self._find_lost(step), step):
                self._take(each)
                taken.append(each)
                yield each

    def _resume(self) -> None:
        """Start again what ran, and end the hand-overs that were begun."""
        self._sites[self.spec.cloud].start(self.spec.query(self.spec.cloud, 0))
        ran = [site for site in self.state.sites.values() if site.phase == "running"]

        def start(state: SiteState) -> Iterator[None]:
            self._sites[state.site].start(self.spec.query(state.site, state.epoch, state))
            yield

        self._run_all([start(state) for state in ran])
        self._end_hand_overs()

    def _end_hand_overs(self) -> None:
        """End what was begun; a site that is well and at it is waited for, within reason."""
        for asked in range(1, _MOST_LATE + 1):
            try:
                self.go_to({})
            except SiteLate:
                if asked == _MOST_LATE:
                    raise
            else:
                return

    def _find_lost(self, step: Step) -> tuple[Step, ...]:
        """The step to do again first: no epoch starts without what was handed over to it."""
        if not isinstance(step, StartEpoch) or not step.carried:
            return ()
        state = self.state.sites[step.site]
        lost = has_lost_windows(self.spec, state)
        return (export_again(state, self._openings),) if lost else ()

    def _take(self, step: Step) -> None:
        """Carry out a step, and write down what was done."""
        with self._lock:
            self._on_step(step)
            self._commit_to(step)
        # What is done but not written down, after a crash, is done again, which changes nothing.
        reached = self._carry_out(step)
        with self._lock:
            self._on_done(step)
            self._write(step, **reached)

    def _write(self, step: Step, **reached: Any) -> None:
        self._journal.write(step, **reached)
        self.state = learn_step(self.state, step, **reached)

    def _commit_to(self, step: Step) -> None:
        """Write down which cut a site is to start with, before it does.

        Later epochs follow from what is written down of the one before. Were another cut wanted
        after a crash, the first one would be started again with that, over what it has done.
        """
        site = self.state.sites[step.site]
        if isinstance(step, StartEpoch) and site.phase == "idle" and site.next_cut is None:
            self._write(Prepare(site=step.site, epoch=step.epoch, cut=step.cut))

    def _carry_out(self, step: Step) -> dict[str, Any]:
        """Do what a step says; gives what came of it."""
        site, reached = self._sites[step.site], dict[str, Any]()
        state = self.state.sites[step.site]
        if isinstance(step, StartEpoch):
            site.start(self.spec.query(step.site, step.epoch, step))
        elif isinstance(step, Prepare):
            reached = {"gates": self._prepare(step, state)}
        elif isinstance(step, Drain):
            stand = self._drain(step, state)
            self._margin.end(step.site, stand.newest_ms)
            reached = {
                # An epoch that finished nothing ends where it began.
                "offsets": dict(stand.offsets) or (state.start and dict(state.start)),
                "last_batch": stand.batch,
                "watermark_ms": stand.watermark_ms,
                "newest_ms": stand.newest_ms,
            }
        elif isinstance(step, ExportState):
            kept = export_windows(self.spec, self._openings, site, step, state)
            reached = {"kept": kept}
        elif isinstance(step, Fence):
            self._fence(step)
        return reached

    def _drain(self, step: Drain, state: SiteState) -> Stand:
        """End an epoch; one that was ended before, and not written down, goes on and ends again."""
        site, query = self._sites[step.site], self.spec.query(step.site, step.epoch, state)
        try:
            return site.drain(query.name)
        except SiteError as error:
            if NO_QUERY not in error.reason:
                raise
        site.start(query)
        return site.drain(query.name)

    def _fence(self, step: Fence) -> None:
        """End an epoch in the cloud's log, once all of it is there, and in the site's own."""
        if self.spec.ships and step.last_batch >= 0:
            # Asked of both ends each time: either may have been started again since the barrier.
            ended = self.spec.query(step.site, step.epoch)
            self._sites[step.site].ship(ended, step.last_batch)
            cloud = self.spec.query(self.spec.cloud, 0)
            self._sites[self.spec.cloud].await_arrival(
                cloud, step.site, step.epoch, step.last_batch
            )
        self._log.fence(step.site, step.epoch, step.last_batch)
        if self.spec.ships:
            self._log_of(step.site).fence(step.site, step.epoch, step.last_batch)

    def _prepare(self, step: Prepare, state: SiteState) -> dict[str, int]:
        """Get an epoch ready; a site that cannot will start it from nothing."""
        site = self._sites[step.site]
        newest_ms = site.newest_ms(self.spec.query(step.site, step.epoch - 1).name)
        known = [t for t in (newest_ms, state.newest_ms) if t is not None]
        ahead_ms = self._margin.begin(step.site, max(known)) if known else None
        start = plan_start(state, step.cut, ahead_ms, self._openings)
        site.prepare(self.spec.query(step.site, step.epoch, start))
        return dict(start.gates)


def run_in_threads(sequences: Sequences) -> None:
    """Run every sequence to its end, all at the same time; then raise the first one's error."""
    if len(sequences) < 2:
        for sequence in sequences:
            _exhaust(sequence)
        return
    with ThreadPoolExecutor(len(sequences), thread_name_prefix="change") as pool:
        running = [pool.submit(_exhaust, sequence) for sequence in sequences]
    for ended in running:
        ended.result()


def _exhaust(sequence: Iterator[object]) -> None:
    for _ in sequence:
        pass


def _find_openings(spec: DeploymentSpec) -> Mapping[str, Opening]:
    from thalweg.spark.pipeline.reference import load_pipeline

    return load_pipeline(spec.pipeline).openings
