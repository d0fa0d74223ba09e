"""What the benchmark of adaptation relies on."""

from __future__ import annotations

import numpy as np

from benchmarks.adaptation import PEAK_DEVICES, count, make_load, ways
from thalweg.adapt import Observation, Replay, Step
from thalweg.model.demand_curve import DemandCurve


def test_the_peak_of_the_curve_is_that_of_the_devices() -> None:
    curve = DemandCurve(time_s=np.array([0.0, 1800.0]), value=np.array([10.0, 40.0]))
    total = make_load(curve).rate.sum(axis=1)
    np.testing.assert_allclose(total, [PEAK_DEVICES * 30 / 4, PEAK_DEVICES * 30])


def test_only_steps_after_the_warm_up_count() -> None:
    good = Observation(time_s=0.0, usage=0.0, uplink_bps=0.0, response_time_s=0.0)
    bad = Observation(time_s=0.0, usage=0.0, uplink_bps=0.0, response_time_s=np.inf)
    assert not bad.broken  # Without a limit nothing is broken.

    def step(adapted: bool, started: int) -> Step:
        return Step(
            time_s=0.0, adapted=adapted, ahead=False, reason="", before=good, after=good,
            started=started, stopped=1, cuts={}, seconds=0.0,
        )  # fmt: skip

    found = Replay(
        application="a",
        network="n",
        strategy="s",
        steps=(step(True, 9), step(True, 3), step(False, 0)),
    )
    figures = count(found, 1)
    assert figures["adaptations"] == 1
    assert figures["operators started and stopped"] == 5


def test_reactive_comes_first_since_the_others_are_compared_with_it() -> None:
    for quick in (True, False):
        assert ways(quick=quick)[0].name == "reactive"
