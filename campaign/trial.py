"""One deployment under trial: fed all the time, struck again and again, judged at the end."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from campaign.bystanders import find_idle, find_moved, find_restarted
from campaign.feed import Feed
from campaign.hosting import PATIENCE_S, Host, TrialStuck, longest_pause_s, wait_until
from campaign.numbered import expect
from campaign.strike import Order, Orders, Target
from thalweg.errors import ThalwegError
from thalweg.history import Verdict, check_history
from thalweg.spark.deployment.control import MOVE, STOP, Request, await_answer, leave
from thalweg.spark.deployment.folder import RunFolder
from thalweg.spark.deployment.health.examine import examine
from thalweg.spark.deployment.health.finding import PROBLEM
from thalweg.spark.deployment.publications import complete_ms, read_publications
from thalweg.spark.log import Log
from thalweg.spark.log.names import sink_stream
from thalweg.spark.query.clock import END_OF_TIME_MS

CLOUD = "cloud"


class Trial:
    """A deployment of the numbered events in a process of its own; use it as a context manager."""

    def __init__(
        self,
        folder: Path,
        *,
        fogs: int = 1,
        link: str | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = RunFolder(folder / "run")
        self.fogs = tuple(f"fog-{k}" for k in range(fogs))
        self.orders = Orders(folder / "orders")
        self.log = Log(self.folder.path / "log")
        self._folder = folder
        words = [str(self.folder.path), "--orders", str(self.orders.folder), "--fogs", str(fogs)]
        words += ["--link", link] if link else []
        self.host = Host("campaign.host", words, folder, environment)
        own = {fog: self.folder.path / "logs" / fog for fog in self.fogs}
        self.logs = own if link else dict.fromkeys(self.fogs, self.log.root)
        self.feed = Feed(self.logs)

    def __enter__(self) -> Trial:
        self._folder.mkdir(parents=True, exist_ok=True)
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(Exception):
            self.feed.stop()
        self.kill()

    def begin(self) -> None:
        """Start everything, and wait for the first rows."""
        self.host.start()
        self.await_running()
        self.feed.start()
        self.await_rows()

    def resume(self) -> None:
        """Start the deployment again by the same command, and wait until it runs."""
        self.host.start()
        self.await_running()

    def kill(self) -> None:
        """Kill the process, and wait until its sites have ended with it."""
        self.host.kill()
        wait_until(lambda: not self.folder.is_held(), "the folder is free")

    # What it is asked, and what is waited for

    @property
    def cuts(self) -> dict[str, tuple[str, ...]]:
        """What runs at every fog, as the deployment last said."""
        told = self.folder.read_status().get("cuts", {})
        return {site: tuple(cut) for site, cut in told.items()}

    def ask_move(self, cut: tuple[str, ...], patience_s: float = PATIENCE_S) -> bool:
        """Ask for a cut at the first fog; False where the process is gone before it answers.

        Raises:
            TrialStuck: where it refuses, or says nothing.
        """
        request = Request(kind=MOVE, cuts={self.fogs[0]: cut})
        leave(self.folder, request)
        found = await_answer(self.folder, request, patience_s, goes_on=lambda: self.host.is_there)
        if found is None and self.host.is_there:
            raise TrialStuck(f"no answer to a move within {patience_s:g} s\n{self.tell()}")
        if found is not None and not found[0]:
            raise TrialStuck(f"a move was refused: {found[1]}")
        return found is not None

    def await_cut(self, cut: tuple[str, ...]) -> None:
        """Wait until the first fog runs this cut."""

        def runs() -> bool:
            self.host.require_there()
            return set(self.cuts.get(self.fogs[0], ("?",))) == set(cut)

        wait_until(runs, f"the cut is {', '.join(cut) or 'empty'}", tell=self.tell)

    def await_running(self) -> None:
        """Wait until everything runs; raises what the deployment says instead."""

        def runs() -> bool:
            self.host.require_there()
            there = (self.folder.path / "status.json").exists()
            told = self.folder.read_status() if there else {}
            return told.get("pid") == self.host.pid and told.get("state") == "running"

        wait_until(runs, "the deployment runs", tell=self.tell)

    def rows_out(self) -> int:
        """How many events have come out."""
        return sum(segment.rows for segment in self.log.segments(sink_stream("list")))

    def await_rows(self) -> None:
        """Wait until all events have come out that were sent by now."""
        wanted = self.feed.count

        def came() -> bool:
            self.host.require_there()
            return self.rows_out() >= max(wanted, 1)

        wait_until(came, f"{wanted} events have come out", tell=self.tell)

    def strike(self, order: Order) -> None:
        """Leave an order for the next time that its step comes."""
        self.orders.leave(order)

    # What came of it

    def finish(self) -> dict[str, Verdict]:
        """End the feed, wait for the last window, stop; what the checker says of every sink."""
        self.feed.stop()

        def ended() -> bool:
            self.host.require_there()
            return (complete_ms(self.log) or 0) >= END_OF_TIME_MS

        wait_until(ended, "the last window is out", tell=self.tell)
        leave(self.folder, Request(kind=STOP))
        self.host.await_end()
        self._require_whole()
        expected = expect(self.feed.events)
        return {
            name: check_history(expectation, read_publications(self.log, name))
            for name, expectation in expected.items()
        }

    def _require_whole(self) -> None:
        """Raise `TrialStuck` where something of the run is damaged, though its results are right.

        How full the disk is says nothing of that.
        """
        findings = examine(self.folder.path, deep=True).findings
        wrong = [f for f in findings if f.level == PROBLEM and f.where != "disk"]
        if wrong:
            raise TrialStuck("\n".join(f"{each.where}: {each.what}" for each in wrong))

    def find_idle(self, since_s: float, until_s: float) -> list[str]:
        """The fogs beside the first that published nothing while that one moved, in words."""
        found = []
        for fog in self.fogs[1:]:
            found += find_idle(Log(self.logs[fog]), fog, since_s, until_s)
        return found

    def find_disturbed(self, targets: Collection[Target]) -> list[str]:
        """What happened to sites where nothing was moved and none of these was struck, in words."""
        folder, others = self.folder.path, self.fogs[1:]
        # Where a fog has no worker, the cloud's is the one that is struck.
        spared = others if {"cloud", "worker"} & set(targets) else (*others, CLOUD)
        return [*find_moved(folder / "journal.jsonl", others), *find_restarted(folder, spared)]

    def longest_pause_s(self, since_s: float) -> float:
        """The longest time in which no event came out, from a moment on."""
        segments = self.log.segments(sink_stream("list"))
        return longest_pause_s([s.folder.stat().st_mtime for s in segments], since_s)

    def tell(self) -> str:
        """What is known when something is waited for in vain."""
        status: dict[str, Any] = {}
        with suppress(ThalwegError):
            status = self.folder.read_status()
        out = self.rows_out()
        return f"sent {self.feed.count}, out {out}, status {status}\n{self.host.told}"
