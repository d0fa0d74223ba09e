"""Where a keyed operator runs: rows, sites and a log, and all that fails by itself."""

from __future__ import annotations

import shutil
from bisect import bisect_right
from dataclasses import replace
from itertools import combinations

from campaign.control import invariants
from campaign.control.commits import CommitLog
from campaign.control.invariants import require
from campaign.control.keyed_sites import KeyedSite
from campaign.control.scheduler import Network, Scheduler, Weather
from thalweg.spark.keyed.spec import KeyedSpec
from thalweg.spark.log.founding import is_log

CALM_S = 40.0
SITES = ("fog-0", "fog-1", "cloud")
MOVER = "mover"
KEYS = ("a", "b", "c")
_TICK_S = 0.3


class KeyedGround:
    """Three sites and a log in random weather, and who wants the operator where."""

    name = "keyed"

    def __init__(self, seed: int) -> None:
        self.scheduler = Scheduler(self.name, seed)
        random = self.scheduler.random
        self.weather = Weather.draw(random, CALM_S)
        if random.random() < 0.25:
            # Hardly anything gets through, and nobody is begun anew: that would mend much.
            self.weather = replace(self.weather, loss=0.7, outage_every_s=4.0, death_every_s=1e9)
        self.network = Network(self.scheduler, self.weather)
        self.rows = [random.choice(KEYS) for _ in range(random.randint(5, 60))]
        self.comes_s = sorted(random.uniform(0.0, CALM_S) for _ in self.rows)
        self.log = CommitLog()
        self.sites = {name: KeyedSite(name, self.log) for name in SITES}
        self.wanted = random.choice(SITES)
        self.wishes = 0
        self.made_spec: KeyedSpec | None = None
        self.checked = -1
        """How often the log had changed when everything was looked at last."""
        self.scheduler.check = self.check

    @property
    def spec(self) -> KeyedSpec:
        """What is moved; there is one while the world runs."""
        if self.made_spec is None:
            raise RuntimeError("the world does not run")
        return self.made_spec

    # What has to hold

    def check(self) -> None:
        """Everything that has to hold between any two events."""
        log = self.log
        if self.checked == log.changes:
            return
        self.checked = log.changes
        require(invariants.one_committer, self.able())
        require(invariants.one_owner_per_key, log.key_owners())
        # Those before were the last ones once.
        require(invariants.commits_continue, self.chain(2))
        last = {key: changes[-2:] for key, changes in log.key_changes.items()}
        require(invariants.keys_are_handed_on, last)
        if log.commits:
            newest = log.commits[-1]
            require(invariants.state_is_exact, newest.state, self.rows, newest.end)
        require(invariants.outputs_are_out, log.commits, log.published, log.output_fenced)

    def chain(self, most: int | None = None) -> list[tuple[int, int, int]]:
        """Every commit with its rows, or the last ones, after one of nothing."""
        commits = self.log.commits
        last = commits if most is None or len(commits) < most else commits[-most:]
        told = [(c.epoch, c.start, c.end) for c in last]
        return told if len(last) < len(commits) else [(-1, 0, 0), *told]

    def able(self) -> list[int]:
        """The epochs that can commit: begun by somebody, not fenced, nobody before them left."""
        fenced = self.log.fenced
        return [
            place[1]
            for place, follows in self.log.begun.items()
            if place not in fenced and (follows is None or follows in fenced)
        ]

    # What happens by itself

    def begin(self) -> None:
        """Plan what happens by itself."""
        random, nodes = self.scheduler.random, (MOVER, *SITES)
        self.network.begin_outages(list(combinations(nodes, 2)))
        self.network.begin_deaths(nodes, self.die, self.come_back)
        for _ in range(random.randint(1, 8)):
            self.scheduler.after(random.uniform(0.0, CALM_S), "", self.wish)
        for _ in range(random.choice((0, 0, 1, 3))):
            self.scheduler.after(random.uniform(0.0, CALM_S - 5.0), "", self.take_log_away)
        for site in SITES:
            self.scheduler.after(_TICK_S, "", lambda site=site: self.work(site))  # type: ignore[misc]

    def wish(self) -> None:
        """The operator is wanted elsewhere."""
        self.wanted = self.scheduler.random.choice(SITES)
        self.wishes += 1
        self.scheduler.note(f"wanted: {self.wanted}")

    def work(self, site: str) -> None:
        """The queries of a site go on, unless it is dead, or has no log."""
        random = self.scheduler.random
        if site not in self.network.down and not self.log.is_away:
            if not self.network.is_calm and random.random() < 0.01:
                self.fail_query(site)
            come = bisect_right(self.comes_s, self.scheduler.now_s)
            self.sites[site].work(random, self.rows, come)
        self.scheduler.after(random.uniform(0.5, 1.5) * _TICK_S, "", lambda: self.work(site))

    def fail_query(self, site: str) -> None:
        """A query at a site ends by itself."""
        workers = list(self.sites[site].process.workers.values())
        if workers:
            worker = self.scheduler.random.choice(workers)
            worker.error = worker.error or "out of memory"
            self.scheduler.fault("query failed", worker.name)

    def die(self, node: str) -> None:
        """What runs at a site is gone."""
        if node in self.sites:
            self.sites[node].end_processes()

    def come_back(self, node: str) -> None:
        """A site runs nothing until it is told to."""
        if node in self.sites:
            self.sites[node].begin_process(leaves_zombie=False)

    def take_log_away(self) -> None:
        """The disk of the log is away for a while; the place where it belongs is empty."""
        log = self.spec.log
        if self.log.is_away or not is_log(log):
            return
        away = log.with_name("away")
        log.rename(away)
        self.log.is_away = True
        self.scheduler.fault("log away", "the disk of the log")

        def bring_back() -> None:
            shutil.rmtree(log, ignore_errors=True)
            away.rename(log)
            self.log.is_away = False

        self.scheduler.after(self.scheduler.random.uniform(0.1, 4.0), "the log is back", bring_back)
