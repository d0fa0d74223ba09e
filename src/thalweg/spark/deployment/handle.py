"""A pipeline that runs on its sites, as a handle: start it, ask it, stop it.

```python
run = Deployment("taxi-fares", "city.yaml", folder="taxi-run").start()
run.status["cuts"], run.is_active
run.move({"fog-1": ("parse", "clean")})
run.rollback()
run.stop()
```
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any, Protocol, Self

from thalweg.errors import ThalwegError
from thalweg.model import Network
from thalweg.spark.deployment.check import PreparedRun, RunWishes, prepare
from thalweg.spark.deployment.chronicle import Chronicle
from thalweg.spark.deployment.control import (
    MOVE,
    Refused,
    Request,
    await_answer,
    forget_stops,
    give_up,
    leave,
    leave_rollback,
)
from thalweg.spark.deployment.health.refusal import look_over
from thalweg.spark.deployment.logs import open_logs
from thalweg.spark.deployment.loop import DeploymentLoop
from thalweg.spark.deployment.operations import ThreadedOperations
from thalweg.spark.deployment.parts import RunParts
from thalweg.spark.deployment.plan import Cuts
from thalweg.spark.deployment.restarts import DeploymentFailed, RestartBudget
from thalweg.spark.deployment.runtime import Runtime, open_runtime
from thalweg.spark.deployment.spec import DeploymentSpec
from thalweg.spark.deployment.speeds import SiteSpeeds
from thalweg.spark.deployment.storage import find_outage
from thalweg.spark.deployment.tally import Tally
from thalweg.spark.deployment.timeline import Timeline, count_cores
from thalweg.spark.deployment.watch import Watcher
from thalweg.spark.feed.gateway import Gateway
from thalweg.spark.log import Log
from thalweg.spark.monitor import Monitor
from thalweg.spark.site.site import SiteSpec

_TURN_S = 0.1
_CONTROL_TIMEOUT_S = 180.0

OpenRuntime = Callable[[DeploymentSpec, Sequence[SiteSpec]], AbstractContextManager[Runtime]]


class RunningFeed(Protocol):
    """What sends rows to a run's gateways."""

    error: Exception | None

    def stop(self) -> None:
        """Send no more."""
        ...


StartFeed = Callable[[Mapping[str, Gateway]], RunningFeed]


class Deployment:
    """A run of a pipeline on the sites of a network, in a folder of its own.

    What is wrong is told before anything starts, all of it at once. A run whose process was killed
    goes on from its folder when it is started again. `wishes` are those of
    `thalweg.spark.deployment.check.RunWishes`. A `feed` is given the gateways of the first source,
    by site, once everything runs.
    """

    def __init__(
        self,
        pipeline: str,
        network: Network | str | Path,
        *,
        folder: Path | str = "run",
        feed: StartFeed | None = None,
        budget: RestartBudget | None = None,
        open_sites: OpenRuntime = open_runtime,
        **wishes: Any,
    ) -> None:
        self.prepared: PreparedRun = prepare(
            RunWishes(pipeline=pipeline, network=network, folder=folder, **wishes)
        )
        self.folder = self.prepared.folder
        self._manifest = self.prepared.manifest
        self.report: dict[str, Any] = {}
        """What came out of it, once it has ended."""
        self._feed, self._budget, self._open_sites = feed, budget, open_sites
        self._watcher: Watcher | None = None
        self._status: dict[str, Any] = {"state": "new"}
        self._error: BaseException | None = None
        self._stopping = threading.Event()
        self._deployed = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def is_active(self) -> bool:
        """Whether it runs."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def status(self) -> dict[str, Any]:
        """How it is doing, as of the last look; the same as in `status.json`."""
        return dict(self._status)

    @property
    def exception(self) -> BaseException | None:
        """What ended it, if that was not a wish."""
        return self._error

    @property
    def cuts(self) -> dict[str, tuple[str, ...]]:
        """What runs at every fog, as of the last look."""
        return {site: tuple(cut) for site, cut in self._status.get("cuts", {}).items()}

    def start(self, *, wait: bool = True) -> Self:
        """Start the sites and deploy; with `wait`, returns when that is done.

        Raises:
            InvalidInput: where another run holds the folder, or operators do not fit together.
            ThalwegError: where a site does not start.
        """
        if self._thread is not None:
            raise ThalwegError("a deployment is started once. Hint: make a new one of the folder.")
        holding = ExitStack()
        holding.enter_context(self.folder.hold())
        # From here on, whoever asks for a stop means this run, also while its sites start.
        forget_stops(self.folder)
        try:
            self._manifest = self.folder.claim(self._manifest, time.time())
        except BaseException:
            holding.close()
            raise
        self.folder.write_page(None)
        adapter = self.prepared.adapter
        self.folder.write_model(adapter.application, adapter.network)
        self._thread = threading.Thread(
            target=self._run, args=(holding,), name="deployment", daemon=True
        )
        self._thread.start()
        if wait:
            self.await_deployment()
        return self

    def await_deployment(self) -> None:
        """Wait until everything is deployed; raises what keeps it from that."""
        while self.is_active and not self._deployed.wait(_TURN_S):
            pass
        if self._thread is not None and self._error is not None and not self._deployed.is_set():
            self._thread.join()
            raise self._error

    def stop(self) -> None:
        """End every query after its batch under way, then the sites; the folder keeps the rest."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()

    def request_stop(self) -> None:
        """Say that it is to stop, without waiting until it has."""
        self._stopping.set()

    def await_termination(self, timeout_s: float | None = None) -> bool:
        """Wait until it has ended, at most so long; whether it has.

        Raises:
            ThalwegError: what ended it, where that was not a wish.
        """
        if self._thread is None:
            return True
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            return False
        if self._error is not None:
            raise self._error
        return True

    def move(self, cuts: Cuts, timeout_s: float = _CONTROL_TIMEOUT_S) -> str:
        """Go to these cuts, at the sites named; returns when they run.

        Raises:
            InvalidInput: where the sites cannot run them.
            DeploymentFailed: where the run does not get there.
        """
        self.prepared.require_cuts(cuts)
        return self._ask(partial(leave, self.folder, Request(kind=MOVE, cuts=cuts)), timeout_s)

    def rollback(self, timeout_s: float = _CONTROL_TIMEOUT_S) -> str:
        """Go back to the cuts before the last change; returns when they run.

        Raises:
            DeploymentFailed: where there are none, a rollback is under way, or the run does not
                get there.
        """
        return self._ask(partial(leave_rollback, self.folder), timeout_s)

    def _ask(self, leave_request: Callable[[], Request], timeout_s: float) -> str:
        if not self.is_active:
            raise DeploymentFailed("it does not run. Hint: start it first.")
        try:
            request = leave_request()
        except Refused as error:
            raise DeploymentFailed(str(error)) from None
        found = await_answer(self.folder, request, timeout_s, goes_on=lambda: self.is_active)
        if found is None:
            what = give_up(self.folder, request)
            raise self._error or DeploymentFailed(
                f"no answer to {request.kind} in {timeout_s:g} s: {what}"
            )
        done, text = found
        if not done:
            raise DeploymentFailed(text)
        return text

    # The thread of the run

    def _run(self, holding: ExitStack) -> None:
        with holding:
            self._tell({**self._about(), "state": "starting", "heartbeat_s": time.time()})
            loop: DeploymentLoop | None = None
            try:
                open_logs(self.prepared.spec)
                mended = look_over(self.prepared.spec)
                self._warm_up()
                with self._open_sites(self.prepared.spec, self.prepared.site_specs) as runtime:
                    loop = self._make_loop(runtime, mended)
                    loop.begin(self.prepared.plan, self.prepared.cuts, time.time())
                    self._live(loop)
                    self._tell(loop.status("stopping", time.time()))
                    loop.stop()
            except BaseException as error:
                self._error = error
            self._end(loop)

    def _warm_up(self) -> None:
        """Have the strategy get ready while the sites start."""
        prepared = self.prepared
        if prepared.wishes.adapt is not None:
            target = partial(prepared.adapter.warm_up, prepared.wishes.rates, prepared.cuts)
            threading.Thread(target=target, name="strategy's first plan", daemon=True).start()

    def _make_loop(self, runtime: Runtime, mended: Sequence[str]) -> DeploymentLoop:
        prepared = self.prepared
        sources, sinks = (
            [step.name for step in prepared.pipeline.steps if step.role == role]
            for role in ("source", "sink")
        )
        span_s = max(5.0, 2 * prepared.interval_s)
        application = prepared.pipeline.application
        monitor = Monitor(application, self.folder.path / "monitor")
        self._watcher = Watcher(monitor, application, prepared.adapter.network)
        tally = Tally(
            Log(prepared.spec.log), sources, sinks, own_logs=self._own_logs(), span_s=span_s
        )
        parts = RunParts(
            runtime=runtime,
            folder=self.folder,
            tally=tally,
            require_cuts=prepared.require_cuts,
            watcher=self._watcher,
            adapter=None if prepared.wishes.adapt is None else prepared.adapter,
            budget=self._budget or RestartBudget(),
            chronicle=Chronicle(
                tally=tally,
                timeline=Timeline(self.folder.path),
                watcher=self._watcher,
                cores=count_cores(
                    {s.name: s.master for s in prepared.site_specs}, os.cpu_count() or 1
                ),
                planned_rates=dict(prepared.wishes.rates) if prepared.wishes.rates else None,
            ),
            about=self._about(),
            mended=mended,
            find_outage=partial(find_outage, prepared.spec),
            is_stopping=self._stopping.is_set,
            speed_ips=SiteSpeeds(
                {spec.name: spec.master for spec in prepared.site_specs},
                prepared.adapter.network,
            ).known,
            operations=ThreadedOperations(),
            publish=self._tell,
        )
        return DeploymentLoop(parts, time.time())

    def _live(self, loop: DeploymentLoop) -> None:
        feed: RunningFeed | None = None
        try:
            due = soonest = time.monotonic()
            while not (loop.stopping and loop.is_idle and loop.is_deployed):
                # What is under way ends first.
                loop.stopping = loop.stopping or self._stopping.is_set()
                loop.turn(time.time(), _TURN_S)
                if time.monotonic() >= (soonest if loop.is_due else due):
                    due = time.monotonic() + self.prepared.interval_s
                    again_s = loop.look(time.time())
                    soonest = time.monotonic() + self.prepared.interval_s / 4
                    # A cycle that took long leaves the next one some time to come.
                    due = max(due, time.monotonic() + self.prepared.interval_s / 2)
                    if again_s is not None:
                        due = min(due, time.monotonic() + again_s)
                if loop.is_deployed and not self._deployed.is_set():
                    feed = self._begin_feed(loop)
                if feed is not None and feed.error is not None:
                    raise DeploymentFailed(f"the feed has ended: {feed.error}") from feed.error
        finally:
            if feed is not None:
                feed.stop()

    def _begin_feed(self, loop: DeploymentLoop) -> RunningFeed | None:
        """Everything runs: say so, and let rows come."""
        self._tell(loop.status("running", time.time()))
        self._deployed.set()
        wanted = self._feed is not None and not loop.stopping
        return self._feed(self._gateways()) if self._feed is not None and wanted else None

    def _end(self, loop: DeploymentLoop | None) -> None:
        state = "ended" if self._error is None else "failed"
        error = None if self._error is None else self._explain(self._error)
        now_s = time.time()
        if loop is None:
            told = {**self._about(), "state": state, "heartbeat_s": now_s, "error": error}
            self._tell(told)
            return
        loop.end(now_s)
        # What ended the run may also keep its end from being written down.
        self._tell(loop.status(state, now_s, error))
        with suppress(OSError, ThalwegError):
            self.report = loop.report(state, now_s, error)
            if self._watcher is not None:
                self._watcher.close()
            self.folder.write_report(self.report)
            self._tell(loop.status(state, now_s, error))

    def _explain(self, error: BaseException) -> str:
        """What ended the run, and the command that goes on from there."""
        text = f"{error}" or type(error).__name__
        hint = f"`thalweg doctor {self.folder.path}` says what state it is in"
        return text if "Hint: " in text else f"{text}. Hint: {hint}; the same `thalweg run` goes on"

    def _gateways(self) -> dict[str, Gateway]:
        source = next(step for step in self.prepared.pipeline.steps if step.role == "source")
        spec = self.prepared.spec
        return {fog: Gateway.of(spec.log_of(fog), source, fog, durable=False) for fog in spec.fogs}

    def _own_logs(self) -> list[Log]:
        spec = self.prepared.spec
        return [Log(spec.log_of(fog)) for fog in spec.fogs] if spec.ships else []

    def _about(self) -> dict[str, Any]:
        wishes, prepared, manifest = self.prepared.wishes, self.prepared, self._manifest
        return {
            "pipeline": manifest.pipeline,
            "network": manifest.network,
            "code": None if manifest.code is None else manifest.code.digest,
            "code_since_s": manifest.code_since_s,
            "strategy": wishes.strategy,
            "interval_s": prepared.interval_s,
            # Settings behind the question mark are nobody's business.
            "link": (prepared.spec.link or "").partition("?")[0] or None,
        }

    def _tell(self, status: dict[str, Any]) -> None:
        self._status = status
        with suppress(OSError):
            self.folder.write_status(status)
