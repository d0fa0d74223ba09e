"""Batches that are done with: collected soon, though they are in cycles, and not too often."""

from __future__ import annotations

import gc
import pickle
import weakref
from collections.abc import Iterator

import pytest

from thalweg.spark.query.ended_batches import EndedBatches, spare_what_stays


class Frame:
    """Something that refers to itself, as the frames of Spark do."""

    def __init__(self) -> None:
        self.me = self


@pytest.fixture
def old_cycles() -> Iterator[list[weakref.ref[Frame]]]:
    """Cycles that Python would not find by itself for long."""
    gc.disable()
    frames = [Frame() for _ in range(3)]
    for _ in range(3):
        gc.collect(0)
    found = [weakref.ref(frame) for frame in frames]
    del frames[:]
    yield found
    gc.unfreeze()
    gc.enable()


def test_cycles_are_gone_at_the_next_batch(old_cycles: list[weakref.ref[Frame]]) -> None:
    assert any(frame() for frame in old_cycles)
    EndedBatches().let_go()
    assert not any(frame() for frame in old_cycles)


def test_quick_batches_are_not_held_up_each_time(old_cycles: list[weakref.ref[Frame]]) -> None:
    hands = [100.0]
    ended = EndedBatches(lambda: hands[0])
    ended.let_go()
    late = Frame()
    found = weakref.ref(late)
    del late
    hands[0] = 102.0
    ended.let_go()
    assert found() is not None
    hands[0] = 103.0
    ended.let_go()
    assert found() is None


def test_what_stays_is_passed_over() -> None:
    try:
        spare_what_stays()
        assert gc.get_freeze_count() > 1000
        assert len(gc.get_objects()) < gc.get_freeze_count()
    finally:
        gc.unfreeze()


def test_it_goes_to_where_batches_run() -> None:
    pickle.loads(pickle.dumps(EndedBatches())).let_go()  # noqa: S301
