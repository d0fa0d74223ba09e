"""The hand-over of cuts as a pure state machine, under crashes at any point."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import thalweg as tw
from thalweg.model import TimeWindow
from thalweg.spark.deployment.hand_over import (
    DeploymentState,
    Drain,
    ExportState,
    Fence,
    Prepare,
    StartEpoch,
    export_again,
    learn,
    next_steps,
    outline,
    plan_start,
)
from thalweg.spark.pipeline.windows import Opening
from thalweg.spark.query.kept import KeptRows

SITES = ("fog-0", "fog-1", "fog-2")
cuts = st.dictionaries(
    st.sampled_from(SITES), st.sampled_from([(), ("a",), ("a", "b"), ("b", "a"), ("a", "b", "c")])
)


class World:
    """Sites that really run something: numbered batches of rows, one row each."""

    def __init__(self):
        self.runs, self.ended = {}, {}
        self.fences = {}
        self.out = {site: [] for site in SITES}

    def work(self, site, rows):
        """A running epoch takes rows, whatever the coordinator knows."""
        if site in self.runs:
            epoch, batch, offset = self.runs[site]
            for _ in range(rows):
                self.out[site].append((epoch, batch, offset))
                batch, offset = batch + 1, offset + 1
            self.runs[site] = (epoch, batch, offset)

    def carry_out(self, step):
        """Idempotent, as the real one has to be."""
        if isinstance(step, StartEpoch):
            if step.site not in self.runs or self.runs[step.site][0] < step.epoch:
                self.runs[step.site] = (step.epoch, 0, (step.start or {"rides": 0})["rides"])
            return {}
        if isinstance(step, Drain):
            if self.runs.get(step.site, (None,))[0] == step.epoch:
                self.ended[step.site, step.epoch] = self.runs.pop(step.site)
            _, batch, offset = self.ended[step.site, step.epoch]
            return {"offsets": {"rides": offset}, "last_batch": batch - 1}
        if isinstance(step, Prepare):
            return {}
        self.fences[step.site, step.epoch] = step.last_batch
        return {}

    def seen(self, site):
        """The rows that a reader sees: fenced epochs only up to their fence."""
        return [
            offset
            for epoch, batch, offset in self.out[site]
            if batch <= self.fences.get((site, epoch), batch)
        ]


@settings(max_examples=300, deadline=None)
@given(st.lists(cuts, min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_no_row_is_lost_or_doubled_however_often_the_coordinator_dies(wishes, random):
    world, journal = World(), []

    def recover():
        state = DeploymentState.of(SITES)
        for step, result in journal:
            state = learn(state, step, **result)
        return state

    state = recover()
    for wanted in wishes:
        while steps := next_steps(state, wanted):
            for step in steps:
                for site in SITES:
                    world.work(site, random.randrange(4))
                result = world.carry_out(step)
                if random.random() < 0.3:
                    state = recover()  # Died before it was written down: done again.
                    break
                journal.append((step, result))
                state = learn(state, step, **result)
        assert all(set(state.cuts[site]) == set(cut) for site, cut in wanted.items())
    for site in SITES:
        seen = world.seen(site)
        assert seen == list(range(len(seen)))


def test_a_dry_run_tells_every_step():
    state = DeploymentState.of(("fog-0", "fog-1"))
    for step in next_steps(state, {"fog-0": ("clean",), "fog-1": ()}):
        state = learn(state, step)
    assert outline(state, {"fog-0": ("clean",), "fog-1": ("clean", "speed")}) == (
        "prepare epoch 1 on fog-1",
        "drain epoch 0 of fog-1",
        "fence epoch 0 of fog-1 after batch -1",
        "start epoch 1 on fog-1: clean, speed",
    )
    assert outline(state, {"fog-1": ()}) == ()


def test_a_hand_over_that_was_begun_is_ended_whatever_is_wanted_then():
    state = DeploymentState.of(("fog-0",))
    state = learn(state, next_steps(state, {"fog-0": ("a",)})[0])
    prepare = next_steps(state, {"fog-0": ()})[0]
    assert prepare == Prepare(site="fog-0", epoch=1, cut=())
    state = learn(state, prepare)
    drain = next_steps(state, {"fog-0": ()})[0]
    state = learn(state, drain, offsets={"rides": 7}, last_batch=3)
    fence = next_steps(state, {})[0]
    assert fence == Fence(site="fog-0", epoch=0, last_batch=3)
    state = learn(state, fence)
    (start,) = next_steps(state, {})
    assert start == StartEpoch(site="fog-0", epoch=1, cut=(), start={"rides": 7})


def test_learning_twice_changes_nothing():
    state = DeploymentState.of(("fog-0",))
    start = next_steps(state, {"fog-0": ("a",)})[0]
    once = learn(state, start)
    assert learn(once, start) == once
    drain = Drain(site="fog-0", epoch=0, cut=())
    drained = learn(once, drain, offsets={"rides": 5}, last_batch=2)
    assert learn(drained, drain, offsets={"rides": 9}, last_batch=8) == drained
    assert learn(drained, start) == drained


def test_what_is_known_of_handed_over_files_is_of_the_last_time_until_the_next_epoch_starts():
    openings = {"o": Opening(senders=("x",), window=TimeWindow("10 s", "5 s"))}
    state = DeploymentState.of(("fog-0",), openings)
    state = learn(state, StartEpoch(site="fog-0", epoch=0, cut=("x", "o"), start=None))
    drain = Drain(site="fog-0", epoch=0, cut=("x", "o", "p"))
    state = learn(state, drain, offsets={"rides": 7}, last_batch=3, newest_ms=9_000)
    (export,) = next_steps(state, {})
    first = {"x+o": {"rows": 3, "file_bytes": 90, "sha256": "a"}}
    exported = learn(state, export, kept=first)
    assert exported.sites["fog-0"].kept == {"x+o": KeptRows(**first["x+o"])}
    assert learn(exported, export, kept=first) == exported
    # As it was written down before files were.
    assert learn(state, export).sites["fog-0"].kept is None
    fenced = learn(exported, next_steps(exported, {})[0])
    for stage in (exported, fenced):
        again = export_again(stage.sites["fog-0"], openings)
        assert (again.keep, again.send, again.batch) == (export.keep, {}, export.batch)
        second = {"x+o": {"rows": 3, "file_bytes": 91, "sha256": "b"}}
        learnt = learn(stage, again, kept=second).sites["fog-0"]
        assert learnt.kept == {"x+o": KeptRows(**second["x+o"])}
        assert replace(learnt, kept=stage.sites["fog-0"].kept) == stage.sites["fog-0"]
    (start,) = next_steps(fenced, {})
    assert start.carried == ("x+o",)
    assert learn(fenced, start).sites["fog-0"].kept is None


def test_unknown_sites_are_told():
    with pytest.raises(tw.InvalidInput, match="a site of the deployment"):
        next_steps(DeploymentState.of(("fog-0",)), {"fog-9": ()})


class WindowWorld:
    """A site and a cloud that count rows by window; times and windows in whole seconds."""

    def __init__(self, length, slide, delay, times):
        self.length, self.slide, self.delay, self.times = length, slide, delay, times
        self.cloud, self.out, self.sent = {}, [], set()
        self.run = self.ended = None

    def ends(self, time):
        first = time // self.slide * self.slide
        starts = range(first, time - self.length, -self.slide)
        return [start + self.length for start in starts]

    def to_cloud(self, time, after=-1, upto=10**9):
        for end in self.ends(time):
            if after < end <= upto:
                self.cloud.setdefault(end, []).append(time)

    def start(self, step):
        if self.run and self.run["epoch"] >= step.epoch:
            return
        position = (step.start or {"rides": 0})["rides"]
        self.run = {
            "epoch": step.epoch,
            "at": position,
            "here": "o" in step.cut,
            "gate": step.gates.get("o", 0) // 1000,
            "windows": {},
            "wm": step.clock_ms or 0,
            "newest": None,
            "batch": -1,
        }
        for time, after in self.kept if step.carried else ():
            for end in self.ends(time):
                if end > after:
                    self.run["windows"].setdefault(end, []).append(time)

    def work(self, rows):
        """One batch: rows into windows, windows that end by the watermark out."""
        run = self.run
        if run is None:
            return
        # The time of a batch is what the rows of earlier batches say.
        if run["newest"] is not None:
            run["wm"] = max(run["wm"], (run["newest"] - self.delay) * 1000)
        run["batch"] += 1
        for time in self.times[run["at"] : run["at"] + rows]:
            run["at"] += 1
            run["newest"] = max(time, run["newest"] or 0)
            if not run["here"]:
                self.to_cloud(time)
                continue
            if time < run["gate"]:
                self.to_cloud(time, upto=run["gate"])
            for end in self.ends(time):
                if end > run["gate"]:
                    run["windows"].setdefault(end, []).append(time)
        for end in sorted(e for e in run["windows"] if e * 1000 <= run["wm"]):
            self.out.append((end, sorted(run["windows"].pop(end))))

    def carry_out(self, step):
        if isinstance(step, StartEpoch):
            self.start(step)
        elif isinstance(step, Drain):
            if self.run:
                self.ended, self.run = self.run, None
            ended = self.ended
            newest = None if ended["newest"] is None else ended["newest"] * 1000
            return {
                "offsets": {"rides": ended["at"]},
                "last_batch": ended["batch"],
                "watermark_ms": ended["wm"] or None,
                "newest_ms": newest,
            }
        elif isinstance(step, ExportState):
            before = self.times[: self.ended["at"]]
            self.kept = [(t, ms // 1000) for ms in step.keep.values() for t in before]
            for after_ms in step.send.values():
                if step.epoch not in self.sent:
                    for time in before:
                        self.to_cloud(time, after=after_ms // 1000)
                self.sent.add(step.epoch)
        return {}


def window_world(random):
    slide = random.randint(1, 5)
    length = slide * random.randint(1, 3) + random.randrange(slide)
    delay, newest, times = random.randint(0, 4), 20, []
    for _ in range(random.randint(1, 60)):
        times.append(max(newest + random.randint(0, 4) - random.randint(0, delay), 0))
        newest = max(newest, times[-1])
    return WindowWorld(length, slide, delay, times)


@settings(max_examples=600, deadline=None)
@given(
    st.lists(st.sampled_from([(), ("x",), ("x", "o"), ("x", "o", "p")]), min_size=1, max_size=7),
    st.integers(0, 2**32),
)
def test_every_window_is_computed_once_from_all_its_rows_wherever_its_operator_goes(wishes, seed):
    random = Random(seed)  # noqa: S311
    world = window_world(random)
    window = TimeWindow(float(world.length), float(world.slide))
    openings = {"o": Opening(senders=("x",), window=window)}
    journal = []

    def recover():
        state = DeploymentState.of(("fog-0",), openings)
        for step, result in journal:
            state = learn(state, step, **result)
        return state

    state = recover()
    for cut in wishes:
        while steps := next_steps(state, {"fog-0": cut}):
            (step,) = steps
            if isinstance(step, StartEpoch) and step.carried and random.random() < 0.3:
                # What was handed over is lost before it is used.
                world.kept = []
                again = export_again(state.sites["fog-0"], openings)
                assert not again.send
                journal.append((again, world.carry_out(again)))
                state = recover()
            if isinstance(step, Prepare):
                site = state.sites["fog-0"]
                newest = world.run["newest"]
                ahead = None if newest is None else (newest + random.randrange(6)) * 1000
                result = {"gates": plan_start(site, step.cut, ahead, openings).gates}
            else:
                result = world.carry_out(step)
            world.work(random.randrange(3))
            if random.random() < 0.2:
                state = recover()
                continue
            journal.append((step, result))
            state = learn(state, step, **result)
        for _ in range(random.randrange(4)):
            world.work(random.randrange(6))
    world.work(len(world.times))
    world.run["wm"] = 10**9
    world.work(0)
    expected = {}
    for time in world.times:
        for end in world.ends(time):
            expected.setdefault(end, []).append(time)
    told = world.out + [(end, sorted(times)) for end, times in world.cloud.items()]
    assert sorted(told) == sorted((end, sorted(times)) for end, times in expected.items())


def test_an_epoch_starts_as_it_was_prepared_though_a_gate_has_passed_meanwhile():
    openings = {"o": Opening(senders=("x",), window=TimeWindow("10 s", "5 s"))}
    state = DeploymentState.of(("fog-0",), openings)
    (first,) = next_steps(state, {"fog-0": ("x",)})
    state = learn(state, first)

    def move(state, cut, newest_ms, ended_ms, watermark_ms):
        """Prepare at one time, drain at another; gives the state and the two starts."""
        (prepare,) = next_steps(state, {"fog-0": cut})
        prepared = plan_start(state.sites["fog-0"], cut, newest_ms, openings)
        state = learn(state, prepare, gates=prepared.gates)
        while not isinstance(step := next_steps(state, {"fog-0": cut})[0], StartEpoch):
            reached = {"offsets": {"rides": 1}, "last_batch": 1, "newest_ms": ended_ms}
            drained = reached | {"watermark_ms": watermark_ms} if isinstance(step, Drain) else {}
            state = learn(state, step, **drained)
        return learn(state, step), prepared, step

    state, prepared, started = move(state, ("x", "o"), 12_000, 11_000, 9_000)
    assert prepared.gates == started.gates == {"o": 20_000}
    state, prepared, started = move(state, ("x", "o", "p"), 18_000, 30_000, 28_000)
    assert prepared.gates == started.gates == {"o": 20_000}
    assert prepared.carried == started.carried == ("x+o",)
    state, prepared, started = move(state, ("x", "o"), 31_000, 32_000, 30_000)
    assert prepared.gates == started.gates == {}
