from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generators.problems import Sizes, random_application, random_network
from generators.small import chain_problem, fog_problem
from thalweg.model import Application, Operator, Stream
from thalweg.placement.sequence import deployment_sequence


def algorithm_1(app: Application) -> list[str]:
    """Algorithm 1 of da Silva Veith et al., line by line; GETDS in the order of the streams."""

    def get_ds(operator: str) -> list[str]:
        return [stream.target for stream in app.streams if stream.source == operator]

    def upstream(operator: str) -> list[str]:
        return [stream.source for stream in app.streams if stream.target == operator]

    ds: list[str] = []
    queue: list[str] = []
    for src in [operator.name for operator in app.operators if operator.kind == "source"]:
        ds.append(src)
        for downs in get_ds(src):
            if downs not in queue:
                queue.append(downs)
    while len(queue) > 0:
        ope = queue.pop(0)
        if all(up in ds for up in upstream(ope)):
            for downs in get_ds(ope):
                if downs not in queue:
                    queue.append(downs)
            ds.append(ope)
        else:
            queue.append(ope)
    return ds


@given(st.integers(0, 2**32 - 1))
def test_the_sequence_is_that_of_algorithm_1(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = Sizes(sources=4, transforms=12, sinks=4)
    app = random_application(rng, random_network(rng), sizes)
    sequence = deployment_sequence(app)
    assert [app.operators[k].name for k in sequence] == algorithm_1(app)
    assert sorted(sequence) == list(range(len(app.operators)))
    seen: set[str] = set()
    for k in sequence:
        name = app.operators[k].name
        assert all(stream.source in seen for stream in app.streams if stream.target == name)
        seen.add(name)


def test_an_operator_that_waits_goes_to_the_end_of_the_queue() -> None:
    problem = fog_problem(
        [Operator(name=name) for name in "abcd"],
        [
            Stream(source="s", target="d"),
            Stream(source="s", target="a"),
            Stream(source="s", target="b"),
            Stream(source="a", target="c"),
            Stream(source="c", target="d"),
            Stream(source="b", target="z"),
            Stream(source="d", target="z"),
        ],
        rate=1.0,
        event_size=1.0,
    )
    # d waits for c: queue d a b → a b d → b d c → d c z → c z d → z d → d z → z.
    names = [
        problem.application.operators[k].name for k in deployment_sequence(problem.application)
    ]
    assert names == ["s", "a", "b", "c", "d", "z"]


@pytest.mark.parametrize("count", [1, 5_000])
def test_a_row_of_operators_is_its_own_sequence(count: int) -> None:
    app = chain_problem(
        *(Operator(name=f"t{k}") for k in range(count)), rate=1.0, event_size=1.0
    ).application
    assert deployment_sequence(app) == list(range(count + 2))
