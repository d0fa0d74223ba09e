"""Several sites at once: started in parallel, watched, started again, ended with their owner."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Self

from thalweg.errors import Defects, InvalidInput, nearest
from thalweg.spark.java import find_java
from thalweg.spark.query.queries import check_query
from thalweg.spark.query.spec import QuerySpec
from thalweg.spark.session import require_pyspark
from thalweg.spark.site.channel import SiteChannel, SiteError, describe_end
from thalweg.spark.site.site import (
    START_TIMEOUT_S,
    Site,
    SiteEvent,
    SiteSpec,
    SiteStatus,
    check_site,
)

_SUPERVISION_S = 0.25
_STATUS_S = 0.5
# Four beats that did not come; with the beat before and the supervision, that is within 3 s.
_UNHEARD_S = 2.0


class Sites(Mapping[str, Site]):
    """The sites that one process has started, by name; they end with the `with` block.

    ```python
    with Sites() as sites:
        sites.start([SiteSpec(name="fog-1", folder=runs / "fog-1")])
        sites["fog-1"].start(query)
        event = sites.next_event(timeout_s=1.0)
    ```

    Every site is a driver process of its own. One that ends is noticed at once, and told as an
    event; `restart` starts it again with the queries that it had. Whatever happens to this
    process, kill -9 included, its sites end within seconds.

    One that is not heard for `silence_s` is told as silent. For whoever shows how the sites are
    doing (`shown`), there are events of what passes by itself, too: a site that is not heard for
    some beats, and a query that looks for the rows that made it fail.
    """

    def __init__(self, *, silence_s: float = 10.0, shown: bool = False) -> None:
        self._sites: dict[str, Site] = {}
        self._events: queue.Queue[SiteEvent] = queue.Queue()
        self._silence_s = silence_s
        self._shown = shown
        self._unheard: dict[str, str] = {}
        """Sites that were not heard lately, and the last that was told of each."""
        self._expected: set[int] = set()
        self._begun: set[int] = set()
        self._ended_early: dict[int, str] = {}
        self._ends_lock = threading.Lock()
        self._tasks: queue.Queue[tuple[Future[SiteChannel], Site]] = queue.Queue()
        self._closing = threading.Event()
        # Processes are started in this thread alone: it lives as long as they should.
        self._supervisor = threading.Thread(target=self._supervise, name="sites", daemon=True)
        self._supervisor.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getitem__(self, name: str) -> Site:
        return self._sites[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._sites)

    def __len__(self) -> int:
        return len(self._sites)

    def start(
        self, specs: Sequence[SiteSpec], timeout_s: float = START_TIMEOUT_S
    ) -> tuple[Site, ...]:
        """Start these sites, all at the same time, and wait until each has its Spark.

        Raises:
            InvalidInput: where one cannot start; then none is.
            SiteError: where one does not start; then those that did are ended.
            MissingExtra, JavaMissing: where there is no Spark on this machine.
        """
        self._check(specs)
        sites = [Site(spec) for spec in specs]
        self._sites |= {site.name: site for site in sites}
        try:
            self._each(sites, lambda site: self._begin(site, timeout_s))
        except BaseException:
            for site in sites:
                self._expect_end(site)
                site.kill()
                del self._sites[site.name]
            raise
        return tuple(sites)

    def check(self, query: QuerySpec) -> None:
        """Raise `InvalidInput` for what would keep a query from running at its site."""
        defects = Defects()
        if query.site not in self._sites:
            hint = nearest(query.site, self._sites)
            defects.add("site", query.site, "a site that was started", hint)
        for site in self._sites.values():
            for other in site.queries:
                if other != query and other.checkpoint == query.checkpoint:
                    rule = f"a checkpoint of its own: {other.name} on {site.name} has this one"
                    defects.add("checkpoint", str(query.checkpoint), rule)
        try:
            check_query(query)
        except InvalidInput as error:
            defects.absorb(error)
        defects.raise_if_any()

    def restart(self, name: str, timeout_s: float = START_TIMEOUT_S) -> Site:
        """Start a site again, with the queries that it had: they go on from their checkpoints.

        A site that still runs is ended first, as if it had been killed. Several threads may start
        a site each.
        """
        site = self._sites[name]
        self._expect_end(site)
        with site.restarting():
            # Not before: what a change that is under way has ended must not be begun again.
            queries = site.queries
            self._begin(site, timeout_s)
            for spec in queries:
                site.start(spec, timeout_s)
        return site

    def end(self, name: str) -> None:
        """End a site in order."""
        site = self._sites[name]
        self._end(site)
        del self._sites[name]

    def status(self, timeout_s: float = _STATUS_S) -> dict[str, SiteStatus]:
        """What all sites are doing, asked at the same time; of who does not answer, what it said.

        A site that is not heard is not asked.
        """

        def ask(site: Site) -> SiteStatus:
            if site.silent_s <= _UNHEARD_S:
                with suppress(SiteError):
                    return site.status(timeout_s)
            return site.last_status()

        sites = dict(self._sites)
        return dict(zip(sites, self._each(list(sites.values()), ask), strict=True))

    def records(self, timeout_s: float = _STATUS_S) -> list[dict[str, Any]]:
        """What the batches of all sites did since this was last asked.

        What a site does not say in time, it says when it is asked next.
        """

        def ask(site: Site) -> list[dict[str, Any]]:
            if site.silent_s <= _UNHEARD_S:
                with suppress(SiteError):
                    return site.records(timeout_s)
            return []

        told = self._each(list(self._sites.values()), ask)
        return [record for records in told for record in records]

    def next_event(self, timeout_s: float = 0.0) -> SiteEvent | None:
        """The oldest event not taken yet, waited for at most this long; None if there is none."""
        try:
            return (
                self._events.get(timeout=timeout_s) if timeout_s > 0 else self._events.get_nowait()
            )
        except queue.Empty:
            return None

    def close(self) -> None:
        """End all sites in order, at the same time; also those that are being started again."""
        sites = list(self._sites.values())
        self._each(sites, self._end)
        self._closing.set()
        self._supervisor.join()
        while not self._tasks.empty():
            task, site = self._tasks.get_nowait()
            task.set_exception(SiteError(site.name, "start", "all sites are ended"))
        for site in sites:
            self._expect_end(site)
            site.kill()
        self._sites.clear()

    def _check(self, specs: Sequence[SiteSpec]) -> None:
        require_pyspark()
        if any(not spec.remote for spec in specs):
            find_java()
        defects = Defects()
        names, folders = set(self._sites), {site.spec.folder for site in self._sites.values()}
        for place, spec in enumerate(specs):
            path = f"sites[{place}]"
            free = spec.name not in names
            defects.require(free, f"{path}.name", spec.name, "a name that no other site has")
            free = spec.folder not in folders
            defects.require(free, f"{path}.folder", str(spec.folder), "a folder of its own")
            names.add(spec.name)
            folders.add(spec.folder)
        checks = self._each(list(enumerate(specs)), _defects_of)
        for place, found in enumerate(checks):
            if found is not None:
                defects.absorb(found, f"sites[{place}]")
        defects.raise_if_any()

    def _begin(self, site: Site, timeout_s: float) -> None:
        task = Future[SiteChannel]()
        self._tasks.put((task, site))
        channel = task.result()
        site.begin(channel, timeout_s)
        with self._ends_lock:
            self._begun.add(channel.pid)
            ended = self._ended_early.pop(channel.pid, None)
        if ended is not None:
            self._tell(site, "died", ended)

    def _end(self, site: Site) -> None:
        self._expect_end(site)
        site.end()

    def _expect_end(self, site: Site) -> None:
        if site.pid is not None:
            self._expected.add(site.pid)

    @staticmethod
    def _each(items: Sequence[Any], act: Any) -> list[Any]:
        """What `act` gives for each item, all at the same time; the first error where one fails."""
        if not items:
            return []
        with ThreadPoolExecutor(len(items)) as pool:
            return [done.result() for done in [pool.submit(act, item) for item in items]]

    # The supervisor's thread

    def _supervise(self) -> None:
        while not self._closing.is_set():
            try:
                task, site = self._tasks.get(timeout=_SUPERVISION_S)
            except queue.Empty:
                self._look_for_silence()
                continue
            try:
                task.set_result(self._open_channel(site))
            except Exception as error:
                task.set_exception(SiteError(site.name, "start", str(error)))

    def _open_channel(self, site: Site) -> SiteChannel:
        opened: list[SiteChannel] = []
        ready = threading.Event()

        def take(message: dict[str, Any]) -> None:
            ready.wait()
            self._take(site, opened[0], message)

        opened.append(SiteChannel(site.name, site.spec.folder, take))
        ready.set()
        return opened[0]

    def _take(self, site: Site, channel: SiteChannel, message: dict[str, Any]) -> None:
        """What a channel's thread heard, as an event."""
        kind = message["event"]
        if kind == "end":
            detail = f"its process ended: {describe_end(message['code'])}"
            with self._ends_lock:
                if channel.pid in self._expected:
                    self._expected.discard(channel.pid)
                    return
                if channel.pid not in self._begun:
                    # Whoever starts it is told why it did not start; or, if it did, in a moment.
                    self._ended_early[channel.pid] = detail
                    return
            self._tell(site, "died", detail)
        elif kind == "query-failed" or (self._shown and kind in ("query-halted", "query-resumed")):
            self._tell(site, kind, str(message.get("error")), message.get("query"))

    def _look_for_silence(self) -> None:
        for site in list(self._sites.values()):
            if site.pid not in self._begun:
                # Nobody is heard before Spark is there.
                continue
            silent_s = site.silent_s
            kind = "unheard" if self._shown and silent_s > _UNHEARD_S else "heard"
            kind = "silent" if silent_s > self._silence_s else kind
            before = self._unheard.get(site.name, "heard")
            if kind == before or (kind, before) == ("unheard", "silent"):
                continue
            self._unheard[site.name] = kind
            detail = "it is heard again"
            if kind != "heard":
                detail = f"nothing heard for {silent_s:.1f} s"
            self._tell(site, kind, detail)

    def _tell(self, site: Site, kind: str, detail: str, query: str | None = None) -> None:
        event = SiteEvent(
            site=site.name, kind=kind, detail=detail, query=query, at_s=time.time(), log=site.log
        )
        self._events.put(event)


def _defects_of(numbered: tuple[int, SiteSpec]) -> InvalidInput | None:
    try:
        check_site(numbered[1])
    except InvalidInput as error:
        return error
    return None
