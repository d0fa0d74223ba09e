"""A keyed operator that moves between sites that fail: the mover itself, on sites that are played.

The mover may die anywhere, in the middle of a line of its journal too; the next one reads that
journal. Commands and answers are lost, late and doubled, sites and queries die, the disk of the log
goes away for a while. Processes that were given up go on until they are fenced off.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from campaign.control import invariants
from campaign.control.calls import Caller, Killed
from campaign.control.invariants import require
from campaign.control.keyed_ground import CALM_S, MOVER, SITES, KeyedGround
from campaign.control.keyed_sites import KeyedLine, PlayedCommits, PlayedLog
from campaign.tally import OPERATOR
from thalweg.spark.keyed.log import writer_name
from thalweg.spark.keyed.move import MoveState, Step
from thalweg.spark.keyed.mover import KeyedMover, MoveFailed, read_journal
from thalweg.spark.keyed.spec import KeyedSpec
from thalweg.spark.log.disk import LogError
from thalweg.spark.site.channel import SiteError

MOST_S = 150.0
_LEAST_SLEEP_S = 0.1
_PATIENCE_S = 6.0
_MEMORY = Path("/dev/shm")  # noqa: S108  # nosec B108


class Interrupted(Exception):
    """Whoever had asked for a move wants another one, and does not wait for this one."""


class KeyedWorld(KeyedGround):
    """One run: a mover, and where its operator runs."""

    mover_type = KeyedMover

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.lines: dict[str, KeyedLine] = {}
        self.mover: KeyedMover | None = None
        self.term = 0
        self.is_kept = self.scheduler.random.random() < 0.5
        """Whether all that should run is started again after every failure, or only what died."""
        self.owes_resume = False
        self.journal_bytes = 0

    def run(self) -> None:
        """Faults, then calm, then the operator has to be where it is wanted, with all rows."""
        memory = _MEMORY if os.access(_MEMORY, os.W_OK) else None
        with TemporaryDirectory(prefix="thalweg-keyed-", dir=memory) as name:
            folder = Path(name)
            self.made_spec = KeyedSpec(
                operator=OPERATOR,
                folder=folder,
                log=folder / "log",
                input="sources/rows",
                output="edges/tally+board",
                durable=False,
            )
            self.begin()
            while not self.is_done():
                self.require_time()
                self.live()
        require(invariants.commits_continue, self.chain())
        require(invariants.keys_are_handed_on, self.log.key_changes)
        expected = [(c.writer, c.epoch, c.batch) for c in self.log.commits]
        require(invariants.nothing_is_lost, expected, list(self.log.published))

    def check_journal(self) -> None:
        """What is written down says what the mover believes."""
        if self.mover is not None:
            require(invariants.replay_gives_the_same, self.mover.state, self.written())

    # What the mover does

    def is_up(self) -> bool:
        """Whether the mover's machine is there."""
        return MOVER not in self.network.down

    def may_die(self, when: str) -> None:
        """Let the mover die here, now and then."""
        if self.network.is_calm or self.weather.death_every_s > CALM_S:
            return
        if self.scheduler.random.random() < 0.04:
            self.scheduler.note(f"the mover dies, {when}")
            self.network.kill(MOVER, self.die, self.come_back)
            raise Killed

    def may_die_writing(self) -> None:
        """Let the mover die here, if nothing was done since it wrote a line: or in the middle."""
        known_bytes = self.journal_bytes
        self.look_at_journal()
        written, new = self.journal_bytes, self.journal_bytes - known_bytes
        if new <= 0:
            return
        try:
            self.may_die("a line is written down")
        except Killed:
            torn = self.scheduler.random.choice((0, 0, 1, self.scheduler.random.randint(1, new)))
            if torn:
                self.scheduler.fault("torn line", f"{torn} of {new} bytes are missing")
                with self.spec.journal.open("r+b") as journal:
                    journal.truncate(written - torn)
                self.look_at_journal()
            raise

    def look_at_journal(self) -> None:
        """Know how long the journal is."""
        journal = self.spec.journal
        self.journal_bytes = journal.stat().st_size if journal.exists() else 0

    def on_step(self, step: Step) -> None:
        """A step is about to be taken."""
        self.check_journal()
        self.scheduler.note(f"step: {step}")
        self.may_die(f"before: {step}")

    def on_done(self, step: Step) -> None:
        """A step was taken, and is about to be written down."""
        self.may_die(f"done, not written down: {step}")

    def sleep(self, seconds: float) -> None:
        """Let the mover wait; it may die meanwhile, or another move may be wanted."""
        wishes = self.wishes
        self.pause(max(seconds, _LEAST_SLEEP_S))
        if wishes != self.wishes and self.scheduler.random.random() < 0.5:
            raise Interrupted

    def pause(self, seconds: float, is_over: Callable[[], bool] = lambda: False) -> None:
        """Let time go on; raises `Killed` where the mover dies meanwhile."""
        self.scheduler.run_until(
            lambda: is_over() or not self.is_up(), self.scheduler.now_s + seconds
        )
        if not self.is_up():
            raise Killed

    def live(self) -> None:
        """One life of a mover: go on with what was begun, then do what is wanted."""
        self.term += 1
        self.look_at_journal()
        log = PlayedLog(self.spec.log, self.log, self.may_die, self.may_die_writing)
        try:
            for name in SITES:
                self.begin_site(name)
            with self.mover_type(
                self.spec,
                self.lines,
                on_step=self.on_step,
                on_done=self.on_done,
                patience_s=_PATIENCE_S,
                commits=PlayedCommits(log, self.log),
                clock=lambda: self.scheduler.now_s,
                sleep=self.sleep,
            ) as self.mover:
                self.owes_resume = False
                self.check_journal()
                while not self.is_done():
                    self.require_time()
                    self.go_to_wanted(self.mover)
                    self.tend(self.mover)
        except Killed:
            self.scheduler.note("the mover is dead")
        except (SiteError, MoveFailed, LogError) as error:
            self.scheduler.note(f"the mover gives up: {self.in_short(error)}")
        self.mover = None
        self.scheduler.run_until(self.is_up, self.scheduler.now_s + 60.0)
        self.scheduler.run_until(lambda: False, self.scheduler.now_s + 0.5)

    def go_to_wanted(self, mover: KeyedMover) -> None:
        """Take every step to where the operator is wanted, mending what has failed on the way."""
        while True:
            self.require_time()
            try:
                mover.go_to(self.wanted)
                self.check_journal()
                return
            except Interrupted:
                self.scheduler.note("the move is interrupted")
                self.look_at_journal()
            except (MoveFailed, SiteError, LogError) as error:
                self.scheduler.note(f"the move fails: {self.in_short(error)}")
                self.look_at_journal()
                self.mend(mover)

    def tend(self, mover: KeyedMover) -> None:
        """Wait for something to do, and mend what has died."""
        wishes = self.wishes
        self.pause(1.0, lambda: wishes != self.wishes)
        if self.owes_resume or self.ails(mover):
            self.mend(mover)

    def ails(self, mover: KeyedMover) -> bool:
        """Whether a site that is needed has died, or a query has failed."""
        runs = (mover.state.running, mover.state.successor)
        needed = [self.lines[run.site] for run in runs if run is not None]
        places = [(writer_name(self.spec.name, r.site), r.epoch) for r in runs if r is not None]
        failed = any(
            worker.error
            for site in self.sites.values()
            for worker in site.process.workers.values()
            if worker.place in places
        )
        return failed or any(line.is_broken for line in needed)

    def mend(self, mover: KeyedMover) -> None:
        """Begin anew the sites that are needed and have died, and start again what ran there."""
        self.pause(0.3)
        runs = [run for run in (mover.state.running, mover.state.successor) if run is not None]
        for name in dict.fromkeys([*(run.site for run in runs), self.wanted]):
            if self.lines[name].is_broken and name not in self.network.down:
                self.begin_site(name)
                self.owes_resume = True
        try:
            there = [run for run in runs if self.lines[run.site].alive]
            if self.owes_resume or self.is_kept or any(map(mover.has_failed, there)):
                self.owes_resume = True
                mover.resume()
                self.owes_resume = False
        except SiteError as error:
            self.scheduler.note(f"mending fails: {error.site}: {error.reason}")

    def begin_site(self, name: str) -> None:
        """A new process at a site, and a line to it; an old one that cannot be reached goes on."""
        site = self.sites[name]
        cut_off = not self.network.reaches(MOVER, name)
        zombie = not self.network.is_calm and (cut_off or self.scheduler.random.random() < 0.3)
        if name not in self.network.down:
            if zombie and site.process.workers:
                self.scheduler.fault("zombie", f"process {site.process.number} of {name} goes on")
            site.begin_process(leaves_zombie=zombie)
        caller = Caller(MOVER, self.term, lambda: not self.is_up())
        self.lines[name] = KeyedLine(
            self.scheduler, self.network, site, caller, self.may_die_writing
        )

    def in_short(self, error: Exception) -> str:
        """What is wrong, without the folder, which has another name each time."""
        if isinstance(error, SiteError):
            return f"{error.site}: {error.command}: {error.reason}"
        return str(error).replace(str(self.spec.folder), "…")

    # How far it is

    def written(self) -> MoveState:
        """What the journal says."""
        return read_journal(self.spec.journal)

    def require_time(self) -> None:
        """Raise `Violation` where it takes too long."""
        if self.scheduler.now_s > CALM_S + MOST_S:
            require(invariants.all_is_settled, self.unsettled() or ["it goes on and on"])

    def is_done(self) -> bool:
        """Whether all is as wanted."""
        return self.network.is_calm and not self.unsettled()

    def unsettled(self) -> list[str]:
        """What is not as it should be in the end."""
        state = self.written() if self.mover is None else self.mover.state
        there = (state.phase, state.site) == ("running", self.wanted)
        left = [] if there else [f"{state}, wanted is {self.wanted}"]
        done = self.log.commits[-1].end if self.log.commits else 0
        if done < len(self.rows):
            left.append(f"{done} of {len(self.rows)} rows are committed")
        published = self.log.published
        if any((c.writer, c.epoch, c.batch) not in published for c in self.log.commits[-1:]):
            left.append("the last commit is not published")
        return left
