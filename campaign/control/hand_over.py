"""Cuts that change while everything fails: the coordinator itself, on sites that are played.

The coordinator may die anywhere, commands and answers are lost and late, sites die and return, and
processes that were given up go on until somebody fences them off. What the cloud reads in the end
is every row, once, in whole windows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import combinations
from pathlib import Path

from campaign.control import invariants
from campaign.control.calls import COORDINATOR, Caller, CommandFailed, Killed, SiteLine
from campaign.control.feed import Feed
from campaign.control.invariants import require
from campaign.control.link import LINK, Link
from campaign.control.scheduler import Network, Scheduler, Violation, Weather
from campaign.control.shared_log import CloudReader, SharedLog
from campaign.control.sites import Site
from campaign.control.written_steps import WrittenSteps
from thalweg.spark.deployment.coordinator import Coordinator, Sequences
from thalweg.spark.deployment.hand_over import Step
from thalweg.spark.deployment.spec import DeploymentSpec
from thalweg.spark.pipeline.windows import Opening
from thalweg.spark.site.channel import SiteError

Cuts = Mapping[str, tuple[str, ...]]
CALM_S = 40.0
MOST_S = 200.0
FOGS = ("fog-0", "fog-1")
CLOUD = "cloud"
CUTS: tuple[tuple[str, ...], ...] = ((), ("x",), ("x", "o"), ("x", "o", "p"))
_FOLDER = Path("/nowhere")
_WORK_S = 0.25
_LOOK_S = 1.0


class HandOverWorld:
    """One run: a coordinator, two fogs and what the cloud reads, in random weather."""

    name = "hand-over"
    coordinator_type = Coordinator

    def __init__(self, seed: int) -> None:
        self.scheduler = Scheduler(self.name, seed)
        random = self.scheduler.random
        self.weather = Weather.draw(random, CALM_S)
        self.network = Network(self.scheduler, self.weather)
        slide = random.randint(1, 5)
        window = (
            slide * random.randint(1, 3) + random.randrange(slide),
            slide,
            random.randint(0, 4),
        )
        self.feeds = {fog: Feed.draw(random, CALM_S, window) for fog in FOGS}
        self.log = SharedLog()
        self.ships = random.random() < 0.5
        self.cloud_log = SharedLog() if self.ships else self.log
        self.reader = CloudReader(self.feeds)
        nothing = Feed((), (), *window)
        link = Link(self.network, self.log, self.cloud_log, CLOUD) if self.ships else None
        self.sites = {
            name: Site(name, self.feeds.get(name, nothing), self.log, link=link, fails=self.fails)
            for name in (*FOGS, CLOUD)
        }
        opening = Opening(senders=("x",), window=nothing.window)
        self.openings = {"o": opening}
        self.expected = {
            (fog, end): rows
            for fog, feed in self.feeds.items()
            for end, rows in feed.windows().items()
        }
        self.spec = DeploymentSpec(
            pipeline="a:b",
            folder=_FOLDER,
            fogs=FOGS,
            margin_s=float(random.randint(0, 6)),
            link=f"directory://{_FOLDER / 'log'}" if self.ships else None,
        )
        self.journal = WrittenSteps(self.may_die)
        self.wanted: dict[str, tuple[str, ...]] = {fog: random.choice(CUTS) for fog in FOGS}
        self.wishes = 0
        self.term = 0
        self.lines: dict[str, SiteLine] = {}
        self.coordinator: Coordinator | None = None
        self.checked = (-1, -1, -1)
        """What had changed how often when everything was looked at last."""
        self.scheduler.check = self.check

    # What has to hold

    def check(self) -> None:
        """Everything that has to hold between any two events."""
        log, reader = self.log, self.reader
        stamp = (log.changes, self.cloud_log.changes, reader.changes)
        if stamp == self.checked:
            return
        self.checked = stamp
        require(invariants.one_owner, log.starts, log.fences)
        require(invariants.epochs_meet, log.ends, log.starts)
        require(invariants.rows_count_once, reader.twice)
        require(invariants.windows_are_whole, reader.put_out, self.expected)
        require(invariants.one_owner_per_key, reader.shared)
        require(invariants.readers_stay_within_fences, reader.read, self.cloud_log.fences)

    def check_journal(self, _step: Step | None = None) -> None:
        """What is written down says what the coordinator believes."""
        if self.coordinator is not None:
            state, replayed = self.coordinator.state, self.journal.follow()
            require(invariants.replay_gives_the_same, state, replayed)

    # What happens by itself

    def run(self) -> None:
        """Faults, then calm, then everything has to be as wanted, and every row counted."""
        self.begin()
        while True:
            if self.scheduler.now_s > CALM_S + MOST_S:
                require(invariants.all_is_settled, self.unsettled() or ["it goes on and on"])
            try:
                self.coordinate()
                break
            except Killed:
                self.scheduler.note("the coordinator is dead")
            except SiteError as error:
                self.scheduler.note(f"the coordinator gives up: {error.site} {error.reason}")
            except CommandFailed as error:
                raise Violation("the_log_is_coherent", str(error)) from error
            self.coordinator = None
            self.scheduler.run_until(self.is_up, self.scheduler.now_s + 60.0)
            self.pause(0.5)
        counted = {key for key, count in self.reader.counted.items() if count}
        rows = [(fog, row, end) for (fog, end), found in self.expected.items() for row in found]
        require(invariants.nothing_is_lost, rows, counted)

    def begin(self) -> None:
        """Plan what happens by itself."""
        nodes = (COORDINATOR, *FOGS, CLOUD)
        self.network.begin_outages(list(combinations((*nodes, LINK), 2)))
        self.network.begin_deaths(nodes, self.die, self.come_back)
        for fog in FOGS:
            self.scheduler.after(_WORK_S, "", lambda fog=fog: self.work(fog))  # type: ignore[misc]
        self.scheduler.after(_WORK_S, "", self.read)
        self.plan_wishes()

    def plan_wishes(self) -> None:
        """Other cuts are wanted now and then."""
        random = self.scheduler.random
        for _ in range(random.randint(1, 6)):
            self.scheduler.after(random.uniform(0.0, CALM_S), "", self.wish)

    def wish(self) -> None:
        """Another cut is wanted at some fog."""
        random = self.scheduler.random
        self.want({random.choice(FOGS): random.choice(CUTS)})

    def want(self, cuts: Cuts) -> None:
        """Have the coordinator go to these cuts when it looks next."""
        self.wanted |= cuts
        self.wishes += 1
        self.scheduler.note(f"wanted: {self.wanted}")

    def work(self, fog: str) -> None:
        """The queries of a fog go on, unless the fog is dead."""
        if fog not in self.network.down:
            self.sites[fog].work(self.scheduler.random, self.scheduler.now_s)
            self.sites[fog].send()
        wait_s = self.scheduler.random.uniform(0.5, 1.5) * _WORK_S
        self.scheduler.after(wait_s, "", lambda: self.work(fog))

    def read(self) -> None:
        """The cloud reads what has come to it, while it is there."""
        cloud = self.sites[CLOUD]
        if CLOUD not in self.network.down and cloud.process.reads:
            self.reader.look(self.cloud_log)
            cloud.receive()
        self.scheduler.after(self.scheduler.random.uniform(0.1, 1.0), "", self.read)

    def die(self, node: str) -> None:
        """What runs at a site is gone; what is on its disk is not."""
        if node in self.sites:
            self.sites[node].end_processes()

    def come_back(self, node: str) -> None:
        """A site is there again, with a new process."""
        if node in self.sites:
            self.sites[node].begin_process(leaves_zombie=False)

    def fails(self, command: str) -> bool:
        """Whether a site fails to do something that it may fail to do."""
        if self.network.is_calm or self.scheduler.random.random() >= 0.1:
            return False
        self.scheduler.fault("failed", command)
        return True

    # What the coordinator does

    def is_up(self) -> bool:
        """Whether the coordinator's machine is there."""
        return COORDINATOR not in self.network.down

    def may_die(self, when: str) -> None:
        """Let the coordinator die here, now and then."""
        dies = self.scheduler.random.random() < 0.04
        if dies and not self.network.is_calm and self.weather.death_every_s < CALM_S:
            self.scheduler.note(f"the coordinator dies, {when}")
            self.network.kill(COORDINATOR, self.die, self.come_back)
            raise Killed

    def on_step(self, step: Step) -> None:
        """A step is about to be taken."""
        self.check_journal()
        self.scheduler.note(f"step: {step}")
        self.may_die(f"before: {step}")

    def pause(self, seconds: float, is_over: Callable[[], bool] = lambda: False) -> None:
        """Let time go on; the coordinator may die meanwhile."""
        self.scheduler.run_until(is_over, self.scheduler.now_s + seconds)

    def coordinate(self) -> None:
        """One life of a coordinator: go on with what was begun, then do what is wanted."""
        self.term += 1
        for name in self.sites:
            self.begin_site(name)
        with self.coordinator_type(
            self.spec,
            self.lines,
            self.cloud_log,
            openings=self.openings,
            on_step=self.on_step,
            journal=self.journal,
            run_all=self.interleave,
            log_of=lambda _site: self.log,
        ) as self.coordinator:
            self.check_journal()
            while not self.is_done():
                self.go_to_wanted(self.coordinator)
                self.check_journal()
                self.tend(self.coordinator)
                if self.scheduler.now_s > CALM_S + MOST_S:
                    require(invariants.all_is_settled, self.unsettled() or ["it goes on and on"])

    def interleave(self, sequences: Sequences) -> None:
        """Run the sequences of several sites, a step of any of them at a time.

        One that fails leaves the others to their end; whoever dies takes all of them along.
        """
        left, errors = list(sequences), list[SiteError]()
        while left:
            sequence = self.scheduler.random.choice(left)
            try:
                next(sequence)
            except StopIteration:
                left.remove(sequence)
            except SiteError as error:
                left.remove(sequence)
                errors.append(error)
        if errors:
            raise errors[0]

    def go_to_wanted(self, coordinator: Coordinator) -> None:
        """Take every step to what is wanted, mending sites on the way."""
        while True:
            try:
                coordinator.go_to(dict(self.wanted))
                return
            except SiteError as error:
                self.mend(error.site)

    def tend(self, coordinator: Coordinator) -> None:
        """Wait for something to do, and mend what has died."""
        wishes = self.wishes
        self.pause(_LOOK_S, lambda: wishes != self.wishes or not self.is_up())
        if not self.is_up():
            raise Killed
        for name, line in self.lines.items():
            if line.is_broken:
                self.mend(name)
        # All rows have come and everything is where it should be: what is open may end.
        if self.network.is_calm and wishes == self.wishes and self.has_arrived(coordinator):
            for fog in FOGS:
                self.sites[fog].is_ending = True

    def begin_site(self, name: str) -> None:
        """A new process at a site, and a line to it; an old one that cannot be reached goes on."""
        if name in self.network.down:
            raise SiteError(name, "begin", "the machine is down")
        site = self.sites[name]
        cut_off = not self.network.reaches(COORDINATOR, name)
        zombie = not self.network.is_calm and (cut_off or self.scheduler.random.random() < 0.3)
        if zombie and site.process.queries:
            self.scheduler.fault("zombie", f"process {site.process.number} of {name} goes on")
        site.begin_process(leaves_zombie=zombie)
        caller = Caller(COORDINATOR, self.term, lambda: not self.is_up())
        self.lines[name] = SiteLine(self.scheduler, self.network, site, caller)

    def mend(self, name: str) -> None:
        """Begin a site anew with the queries that it had; they go on from their checkpoints."""
        while True:
            if self.scheduler.now_s > CALM_S + MOST_S:
                require(invariants.all_is_settled, [f"{name} cannot be mended"])
            queries = self.lines[name].queries
            try:
                self.begin_site(name)
                self.lines[name].queries = dict(queries)
                for query in queries.values():
                    self.lines[name].start(query)
                return
            except SiteError:
                self.pause(1.0, lambda: not self.is_up())
                if not self.is_up():
                    raise Killed from None

    # How far it is

    def has_arrived(self, coordinator: Coordinator) -> bool:
        """Whether what is wanted runs."""
        return {s: set(c) for s, c in coordinator.state.cuts.items()} == {
            s: set(c) for s, c in self.wanted.items()
        }

    def unsettled(self) -> list[str]:
        """What is not as it should be in the end."""
        running = {} if self.coordinator is None else self.coordinator.state.cuts
        left = [
            f"{fog} runs {running.get(fog)}, wanted is {cut}"
            for fog, cut in self.wanted.items()
            if set(running.get(fog, ("nothing",))) != set(cut)
        ]
        left += [f"{fog} has not ended" for fog in FOGS if not self.has_ended(fog)]
        return left

    def has_ended(self, fog: str) -> bool:
        """Whether all rows of a fog are through, and its last windows out and read."""
        site = self.sites[fog]
        return site.is_ending and any(
            query.held.at == len(site.feed.times)
            and not query.held.windows
            and query.held.begun is None
            and self.reader.read.get(query.epoch, -1) >= query.held.batch
            for query in site.process.queries.values()
        )

    def is_done(self) -> bool:
        """Whether all is as wanted."""
        return self.network.is_calm and not self.unsettled()
