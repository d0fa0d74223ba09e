import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduling.problems import random_fog_problem
from thalweg.estimate.evaluate import evaluate
from thalweg.scheduling.latency import measure_latencies
from thalweg.scheduling.schedule import Table


@settings(deadline=None, max_examples=200)
@given(st.integers(0, 10**6), st.integers(1, 6))
def test_streams_take_as_long_as_the_estimator_says_of_the_whole(seed, transforms):
    problem = random_fog_problem(seed, transforms=transforms)
    table = Table.of(problem)
    rng = np.random.default_rng(seed)
    choice = rng.integers(len(table.cuts), size=len(table.traffic.site))
    latencies = measure_latencies(table.traffic, table.cuts)
    stream_s = latencies.stream_s(latencies.onward_s(choice))[choice, np.arange(choice.size)]
    assert not np.isnan(stream_s).any()
    if problem.births.rate.sum() == 0:
        return  # How long nothing takes is nobody's business.
    response = evaluate(problem, table.place(choice)).response
    assert stream_s.tolist() == pytest.approx(response.stream_s.tolist(), rel=1e-9)
    assert stream_s.max() == pytest.approx(response.response_time_s, rel=1e-9)
