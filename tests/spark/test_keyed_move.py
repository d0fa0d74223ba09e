from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from thalweg.spark.keyed.move import (
    Abandon,
    CatchUp,
    Fence,
    MoveState,
    PassOver,
    PrepareTarget,
    Run,
    StartFirst,
    Step,
    learn,
    next_step,
    outline,
)

sites = st.sampled_from(["fog-1", "fog-2", "cloud"])
# Each wish, and how many steps towards it are taken before the next one comes.
wishes = st.lists(st.tuples(sites, st.integers(0, 7)), min_size=1, max_size=8)


def walk(state: MoveState, wanted: str | None, most: int = 100) -> tuple[MoveState, list[Step]]:
    taken: list[Step] = []
    while len(taken) < most and (step := next_step(state, wanted)) is not None:
        state = learn(state, step)
        taken.append(step)
    return state, taken


def test_a_move_is_prepared_before_the_fence_and_stopped_after_it() -> None:
    state, _ = walk(MoveState(), "fog-1")
    assert outline(state, "cloud") == (
        "prepare epoch 1 on cloud, while epoch 0 goes on",
        "wait until epoch 1 on cloud has the state but for the last batches",
        "fence epoch 0 on fog-1",
        "wait until epoch 1 on cloud has taken over",
        "stop epoch 0 on fog-1",
    )
    assert outline(state, "fog-1") == ()


@given(wishes)
def test_whatever_was_wanted_before_the_operator_gets_where_it_is_wanted(
    wishes: list[tuple[str, int]],
) -> None:
    state, steps = MoveState(), list[Step]()
    for wanted, most in wishes:
        state, taken = walk(state, wanted, most)
        steps += taken
    wanted = wishes[-1][0]
    state, taken = walk(state, wanted)
    steps += taken
    assert len(taken) < 20
    assert (state.site, state.phase, state.successor) == (wanted, "running", None)
    begun = [step.run.epoch for step in steps if isinstance(step, StartFirst | PrepareTarget)]
    assert begun == list(range(len(begun)))
    fenced = [step.run.epoch for step in steps if isinstance(step, Fence)]
    assert fenced == sorted(set(fenced))


@given(wishes)
def test_every_successor_follows_the_one_that_is_fenced_for_it(
    wishes: list[tuple[str, int]],
) -> None:
    state = MoveState()
    for wanted, most in wishes:
        for _ in range(most):
            step = next_step(state, wanted)
            if step is None:
                break
            if isinstance(step, Fence):
                assert state.successor is not None
                assert state.successor.follows == (step.run.site, step.run.epoch)
            state = learn(state, step)


@given(wishes)
def test_a_journal_read_twice_tells_the_same(wishes: list[tuple[str, int]]) -> None:
    state, steps = MoveState(), list[Step]()
    for wanted, most in wishes:
        state, taken = walk(state, wanted, most)
        steps += taken
    again = MoveState()
    for step in [*steps, *steps]:
        again = learn(learn(again, step), step)
    assert again == state


@given(wishes)
def test_without_a_wish_what_was_begun_is_ended(wishes: list[tuple[str, int]]) -> None:
    state = MoveState()
    for wanted, most in wishes:
        state, _ = walk(state, wanted, most)
    there, taken = walk(state, None)
    assert not any(isinstance(step, PassOver) for step in taken)
    assert there.successor is None
    expected = state.successor or state.running
    assert there.site == (None if expected is None else expected.site)


def test_a_fence_that_was_not_written_down_is_written_down_whatever_is_wanted_then() -> None:
    state, _ = walk(MoveState(), "fog-1")
    state, _ = walk(state, "fog-2", most=2)
    assert state.phase == "ready"
    # Back to where it was: nobody could commit there any more.
    assert next_step(state, "fog-1", ended=[0]) == Fence(run=Run(site="fog-1", epoch=0))
    assert isinstance(next_step(state, "fog-1"), Abandon)
    fenced = learn(state, Fence(run=Run(site="fog-1", epoch=0)))
    there, taken = walk(fenced, "fog-1")
    assert isinstance(taken[0], PassOver)
    assert (there.site, there.last_epoch) == ("fog-1", 2)


def test_a_successor_that_was_given_up_does_not_take_over_though_nobody_wrote_that_down() -> None:
    state, _ = walk(MoveState(), "fog-1")
    for most, going_on in ((1, CatchUp), (2, Fence)):
        moving, _ = walk(state, "fog-2", most)
        assert isinstance(next_step(moving, "fog-2"), going_on)
        given_up = next_step(moving, "fog-2", ended=[1])
        assert isinstance(given_up, Abandon)
        anew = next_step(learn(moving, given_up), "fog-2", ended=[])
        assert isinstance(anew, PrepareTarget)
        assert anew.run.epoch == 2
