"""A keyed operator that moves between sites that fail: who commits, and what the state is then.

The mover takes the steps of `thalweg.spark.keyed.move` one by one and may die anywhere. Its orders
to sites are lost, late and doubled. Epochs commit in a log, and publish what they commit after it;
processes that were given up go on with that until they are fenced off, or a newer writer is there.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from itertools import combinations
from typing import Any

from campaign.control import invariants
from campaign.control.commits import CommitLog, Refused, Worker
from campaign.control.invariants import require
from campaign.control.scheduler import Network, Scheduler, Weather
from thalweg.spark.keyed.move import (
    STEPS,
    Abandon,
    CatchUp,
    Fence,
    MoveState,
    PassOver,
    PrepareTarget,
    Retire,
    Run,
    StartFirst,
    Step,
    TakeOver,
    learn,
    next_step,
)

CALM_S = 40.0
MOST_S = 120.0
SITES = ("fog-0", "fog-1", "cloud")
MOVER = "mover"
KEYS = ("a", "b", "c")
_FEW_COMMITS = 3
_TICK_S = 0.3


class KeyedWorld:
    """One run: a mover, three sites and a log, in random weather."""

    name = "keyed"

    def __init__(self, seed: int) -> None:
        self.scheduler = Scheduler(self.name, seed)
        random = self.scheduler.random
        self.weather = Weather.draw(random, CALM_S)
        self.network = Network(self.scheduler, self.weather)
        self.rows = [random.choice(KEYS) for _ in range(random.randint(5, 60))]
        self.comes_s = sorted(random.uniform(0.0, CALM_S) for _ in self.rows)
        self.log = CommitLog()
        self.workers: dict[str, dict[int, Worker]] = {site: {} for site in SITES}
        self.zombies: dict[str, list[Worker]] = {site: [] for site in SITES}
        self.begun: dict[tuple[str, int], Run] = {}
        """Every run that a site was ever told to start."""
        self.journal: list[str] = []
        self.state = MoveState()
        self.wanted = random.choice(SITES)
        self.answered: set[object] = set()
        self.scheduler.check = self.check

    # What has to hold

    def check(self) -> None:
        """Everything that has to hold between any two events."""
        log = self.log
        require(invariants.one_committer, self.able())
        # Those before were the last ones once.
        require(invariants.commits_continue, self.chain()[-2:])
        if log.commits:
            last = log.commits[-1]
            require(invariants.state_is_exact, last.state, self.rows, last.end)
        require(invariants.outputs_are_out, log.commits, log.published, log.output_fenced)

    def chain(self) -> list[tuple[int, int, int]]:
        """Every commit with its rows, after one of nothing."""
        return [(-1, 0, 0), *((c.epoch, c.start, c.end) for c in self.log.commits)]

    def able(self) -> list[int]:
        """The epochs that can commit: begun by somebody, not fenced, nobody before them left."""
        fenced = self.log.fenced
        return [
            run.epoch
            for place, run in self.begun.items()
            if place not in fenced and (run.follows is None or run.follows in fenced)
        ]

    # What happens by itself

    def run(self) -> None:
        """Faults, then calm, then the operator has to be where it is wanted, with all rows."""
        random, nodes = self.scheduler.random, (MOVER, *SITES)
        self.network.begin_outages(list(combinations(nodes, 2)))
        self.network.begin_deaths(nodes, self.die, self.come_back)
        for _ in range(random.randint(1, 6)):
            self.scheduler.after(random.uniform(0.0, CALM_S), "", self.wish)
        for site in SITES:
            self.scheduler.after(_TICK_S, "", lambda site=site: self.work(site))  # type: ignore[misc]
        self.scheduler.after(_TICK_S, "", self.tick)
        self.scheduler.run_until(
            lambda: self.network.is_calm and not self.unsettled(), CALM_S + MOST_S
        )
        require(invariants.all_is_settled, self.unsettled())
        require(invariants.commits_continue, self.chain())
        expected = [(c.site, c.epoch, c.batch) for c in self.log.commits]
        require(invariants.nothing_is_lost, expected, list(self.log.published))

    def wish(self) -> None:
        """The operator is wanted elsewhere."""
        self.wanted = self.scheduler.random.choice(SITES)
        self.scheduler.note(f"wanted: {self.wanted}")

    def work(self, site: str) -> None:
        """The queries of a site go on, whatever anybody thinks of them."""
        random, now_s = self.scheduler.random, self.scheduler.now_s
        if site not in self.network.down:
            come = sum(at_s <= now_s for at_s in self.comes_s)
            for worker in self.zombies[site]:
                self.let_work(worker, come)
            for worker in list(self.workers[site].values()):
                if not self.let_work(worker, come):
                    del self.workers[site][worker.run.epoch]
        self.scheduler.after(random.uniform(0.5, 1.5) * _TICK_S, "", lambda: self.work(site))

    def let_work(self, worker: Worker, come: int) -> bool:
        """Whether the worker goes on after this."""
        start = 0 if worker.at is None else worker.at.end
        upto = min(come, start + self.scheduler.random.randint(0, 6))
        try:
            worker.work(self.rows, upto)
        except Refused:
            return False
        return True

    def die(self, node: str) -> None:
        """What runs is gone; a process that nobody ended may go on beside a later one."""
        if node == MOVER:
            self.answered.clear()
        else:
            self.zombies[node].clear()
            self.workers[node].clear()

    def come_back(self, node: str) -> None:
        """A mover reads what was written down; a site runs nothing until it is told to."""
        if node == MOVER:
            self.state = self.replayed()

    # What the mover does

    def replayed(self) -> MoveState:
        """What the journal says."""
        state = MoveState()
        for line in self.journal:
            state = learn(state, _from_line(line))
        return state

    def may_die(self, when: str) -> bool:
        """Let the mover die here, now and then."""
        dies = self.scheduler.random.random() < 0.04
        if not dies or self.network.is_calm or self.weather.death_every_s > CALM_S:
            return False
        self.scheduler.note(f"the mover dies, {when}")
        self.network.kill(MOVER, self.die, self.come_back)
        return True

    def tick(self) -> None:
        """The mover sees that what should run does, and takes the next step, if it can."""
        self.scheduler.after(_TICK_S, "", self.tick)
        if MOVER in self.network.down:
            return
        require(invariants.replay_gives_the_same, self.state, self.replayed())
        for run in (self.state.running, self.state.successor):
            if run is not None and run.epoch not in self.workers[run.site]:
                self.order("start", run)
        step = self.next_step()
        if step is None or self.may_die(f"before: {step}"):
            return
        if not self.commit_to(step):
            return
        if not self.carry_out(step) or self.may_die(f"done, not written down: {step}"):
            return
        self.write_down(step)

    def next_step(self) -> Step | None:
        """The next step to where the operator is wanted."""
        runs = [run for run in (self.state.running, self.state.successor) if run is not None]
        ended = [run.epoch for run in runs if (run.site, run.epoch) in self.log.fenced]
        return next_step(self.state, self.wanted, ended)

    def commit_to(self, step: Step) -> bool:
        """Write down who is to begin an epoch before it does; False where the mover died of it."""
        return not isinstance(step, (StartFirst, PrepareTarget)) or self.write_down(step)

    def write_down(self, step: Step) -> bool:
        """Write a step down, unless it is; says whether the mover outlives that."""
        if learn(self.state, step) == self.state:
            return True
        self.scheduler.note(f"written down: {step}")
        self.journal.append(_to_line(step))
        if self.may_die(f"written down: {step}"):
            return False
        self.state = learn(self.state, step)
        return True

    def carry_out(self, step: Step) -> bool:
        """Do what a step says; False where it is not done yet."""
        run, log = step.run, self.log
        place = (run.site, run.epoch)
        if isinstance(step, (StartFirst, PrepareTarget)):
            self.order("start", run)
            return ("start", place) in self.answered
        if isinstance(step, CatchUp):
            last = len(log.commits)
            return place in log.stands and last - log.stands[place] <= _FEW_COMMITS
        if isinstance(step, Fence):
            log.fenced.add(place)
        elif isinstance(step, TakeOver):
            return run.follows is None or run.follows in log.output_fenced
        elif isinstance(step, Abandon):
            log.fenced.add(place)
            self.order("stop", run)
        elif isinstance(step, Retire):
            self.order("stop", run)
        return isinstance(step, (Fence, Abandon, Retire, PassOver))

    def order(self, what: str, run: Run) -> None:
        """Tell a site something, once; it may never hear of it."""
        label = f"{MOVER} → {run.site}: {what} {run}"
        self.network.send(MOVER, run.site, label, lambda: self.obey(what, run))

    def obey(self, what: str, run: Run) -> None:
        """A site does what it is told, and says so."""
        place, workers = (run.site, run.epoch), self.workers[run.site]
        if what == "stop":
            workers.pop(run.epoch, None)
        elif run.epoch not in workers:
            self.begun[place] = run
            workers[run.epoch] = Worker(run, self.log)
        elif not self.network.is_calm and self.scheduler.random.random() < 0.05:
            # Believed dead and started again, while it goes on.
            self.scheduler.fault("zombie", f"{run} goes on beside itself")
            self.zombies[run.site].append(workers[run.epoch])
            workers[run.epoch] = Worker(run, self.log)
        label = f"{run.site} → {MOVER}: {what} {run} is done"
        self.network.send(run.site, MOVER, label, lambda: self.answered.add((what, place)))

    # How far it is

    def unsettled(self) -> list[str]:
        """What is not as it should be in the end."""
        there = (self.state.phase, self.state.site) == ("running", self.wanted)
        left = [] if there else [f"{self.state}, wanted is {self.wanted}"]
        done = self.log.commits[-1].end if self.log.commits else 0
        if done < len(self.rows):
            left.append(f"{done} of {len(self.rows)} rows are committed")
        published = self.log.published
        if any((c.site, c.epoch, c.batch) not in published for c in self.log.commits[-1:]):
            left.append("the last commit is not published")
        return left


def _to_line(step: Step) -> str:
    return json.dumps({"step": type(step).__name__, **asdict(step)})


def _from_line(line: str) -> Step:
    record = json.loads(line)
    values: dict[str, Any] = record["run"]
    follows = values["follows"] and (str(values["follows"][0]), int(values["follows"][1]))
    return STEPS[record["step"]](
        run=Run(site=values["site"], epoch=values["epoch"], follows=follows)
    )
