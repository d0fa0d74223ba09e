"""The hand-over of cuts as a pure state machine, under crashes at any point."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import thalweg as tw
from thalweg.spark.hand_over import (
    DeploymentState,
    Drain,
    Fence,
    StartEpoch,
    learn,
    next_steps,
    outline,
)

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
        "drain epoch 0 of fog-1",
        "fence epoch 0 of fog-1 after batch -1",
        "start epoch 1 on fog-1: clean, speed",
    )
    assert outline(state, {"fog-1": ()}) == ()


def test_a_hand_over_that_was_begun_is_ended_whatever_is_wanted_then():
    state = DeploymentState.of(("fog-0",))
    state = learn(state, next_steps(state, {"fog-0": ("a",)})[0])
    drain = next_steps(state, {"fog-0": ()})[0]
    state = learn(state, drain, offsets={"rides": 7}, last_batch=3)
    fence = next_steps(state, {})[0]
    assert fence == Fence(site="fog-0", epoch=0, last_batch=3)
    state = learn(state, fence)
    (start,) = next_steps(state, {})
    assert start == StartEpoch(site="fog-0", epoch=1, cut=("a",), start={"rides": 7})


def test_learning_twice_changes_nothing():
    state = DeploymentState.of(("fog-0",))
    start = next_steps(state, {"fog-0": ("a",)})[0]
    once = learn(state, start)
    assert learn(once, start) == once
    drain = Drain(site="fog-0", epoch=0)
    drained = learn(once, drain, offsets={"rides": 5}, last_batch=2)
    assert learn(drained, drain, offsets={"rides": 9}, last_batch=8) == drained
    assert learn(drained, start) == drained


def test_unknown_sites_are_told():
    with pytest.raises(tw.InvalidInput, match="a site of the deployment"):
        next_steps(DeploymentState.of(("fog-0",)), {"fog-9": ()})
