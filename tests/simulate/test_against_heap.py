"""The engine against a plain event simulator: identical departure times for the same draws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.simulate.heap_oracle import HeapSimulator

from thalweg.simulate import engine as engine_module
from thalweg.simulate.arrivals import OnOff, Periodic, Poisson
from thalweg.simulate.engine import Engine
from thalweg.simulate.layout import Filling, Lane, Layout, Source, Station
from thalweg.simulate.seeds import Seeds
from thalweg.simulate.server import Record, Server, Span
from thalweg.simulate.service import Deterministic, Empirical, Exponential

END_S = 4.0


class TellingServer(Server):
    """Remembers what leaves it, also when it is told to go back."""

    def __init__(self, *arguments) -> None:
        super().__init__(*arguments)
        self.left: tuple = ()

    def _leave(self, events, *, counted) -> None:
        rows = zip(
            events.moment.tolist(), events.birth.tolist(), events.token.tolist(), strict=True
        )
        self.left = (*self.left, *rows)
        super()._leave(events, counted=counted)

    def snapshot(self):
        return (self.left, super().snapshot())

    def restore(self, state) -> None:
        self.left = state[0]
        super().restore(state[1])


def services():
    return st.sampled_from([Exponential(), Deterministic(), Empirical([1.0, 2.0, 6.0])])


def windows():
    sorts = st.sampled_from(["fill", "work"])
    counts = st.builds(Filling, sort=sorts, events=st.integers(1, 5))
    times = st.builds(
        lambda sort, slide, ratio: Filling(sort=sort, slide_s=slide, length_s=slide * ratio),
        sorts,
        st.sampled_from([0.1, 0.25, 0.3]),
        st.sampled_from([1.0, 1.5, 2.0, 3.0]),
    )
    return st.one_of(st.none(), st.none(), counts, times)


@st.composite
def layouts(draw, cyclic=False):
    """Stations with a few lanes each; forward ones only, or links that are crossed twice."""
    count = draw(st.integers(2, 6))
    tokens = 3
    stations = []
    for k in range(count):
        last = k == count - 1
        low = 0 if cyclic else k + 1
        targets = (
            []
            if last
            else draw(
                st.lists(
                    st.integers(low, count - 1).filter(lambda t, k=k: t != k),
                    min_size=1,
                    max_size=3,
                )
            )
        )
        split = draw(st.sampled_from(["all", "alternatives", "own"]))
        # What goes round must lose events, or it would never end.
        share = 0.5 if cyclic else draw(st.sampled_from([1.0, 0.5, 0.3, 1.5, 2.0]))
        if cyclic:
            split = "alternatives"
        lanes = []
        for place, target in enumerate(targets):
            low_draw, high_draw, name = 0.0, 1.0, ""
            if split == "alternatives":
                low_draw, high_draw, name = place / 3, (place + 1) / 3, "routes"
            elif split == "own":
                high_draw, name = 0.6, f"route {place}"
            latency_s = draw(st.sampled_from([0.0, 0.01, 0.05]))
            if cyclic:
                latency_s += 0.01
            lanes.append(
                Lane(target=target, latency_s=latency_s, low=low_draw, high=high_draw, draw=name)
            )
        is_link = not last and draw(st.booleans()) and not cyclic
        lane_of = None
        if is_link and len(lanes) > 1:
            lane_of = np.array(
                [draw(st.integers(0, len(lanes) - 1)) for _ in range(tokens)], dtype=np.int32
            )
        if is_link:
            lanes = [Lane(target=a.target, latency_s=a.latency_s) for a in lanes]
        stations.append(
            Station(
                key=f"s{k}",
                name=f"s{k}",
                sort="link" if is_link else "operator",
                fixed_s=draw(st.sampled_from([0.0, 0.004, 0.02])),
                per_byte_s=draw(st.sampled_from([0.0, 0.001])),
                service=draw(services()),
                window=None if is_link else draw(windows()),
                selectivity=share if not (is_link or last) else 1.0,
                even=draw(st.booleans()),
                lanes=lanes,
                lane_of=lane_of,
                by_token=True,
                is_sink=last,
            )
        )
    sources = [
        Source(
            key=f"b{k}",
            target=draw(st.integers(0, count - 2)),
            rate=draw(st.sampled_from([5.0, 20.0, 40.0])),
            token=k,
            latency_s=draw(st.sampled_from([0.0, 0.02])),
            arrivals=draw(
                st.sampled_from([Poisson(), Periodic(), OnOff(on_s=0.3, off_s=0.5)])
                if not cyclic
                else st.just(Poisson())
            ),
        )
        for k in range(draw(st.integers(1, tokens)))
    ]
    return Layout(
        sources=sources,
        stations=stations,
        sizes=np.array([1.0, 5.0, 20.0]),
        stream_of=np.zeros(tokens, dtype=np.int32),
    )


def run_engine(layout, pieces):
    record = Record(3, np.arange(3, dtype=np.int32))
    engine = Engine(layout, Seeds("7"), Span(end_s=END_S), record)
    for until_s in pieces:
        engine.run(until_s, limit_s=END_S)
    return engine


def births_of(layout):
    return {
        s.key: s.arrivals.begin(Seeds("7").of(s.key)).before(END_S, s.rate) for s in layout.sources
    }


@pytest.fixture(autouse=True)
def telling(monkeypatch):
    monkeypatch.setattr(engine_module, "Server", TellingServer)


def compare(layout, pieces):
    engine = run_engine(layout, pieces)
    oracle = HeapSimulator(layout, Seeds("7"), births_of(layout))
    oracle.run(END_S)
    for server, expected in zip(engine.servers, oracle.departures, strict=True):
        # The engine serves only what begins before the end; the heap also what waits by then.
        assert list(server.left) == expected[: len(server.left)]
        late = expected[len(server.left) :]
        assert len(late) == 0 or server.free_s >= END_S or late[0][0] >= END_S
    return engine


def cuts():
    return st.lists(st.floats(0.01, END_S), max_size=6).map(lambda cut: [*sorted(set(cut)), END_S])


@given(layouts(), cuts())
@settings(max_examples=200, deadline=None)
def test_departures_are_those_of_the_heap(layout, pieces):
    compare(layout, pieces)


@given(layouts(cyclic=True), cuts())
@settings(max_examples=100, deadline=None)
def test_departures_in_knots_are_those_of_the_heap(layout, pieces):
    compare(layout, pieces)


@given(layouts(), cuts())
@settings(max_examples=100, deadline=None)
def test_events_are_conserved(layout, pieces):
    engine = run_engine(layout, pieces)
    born = sum(spring.born for spring in engine.springs)
    made = sum(server.router.made for server in engine.servers)
    dropped = sum(server.router.dropped for server in engine.servers)
    ended = sum(s.tally.gone for s in engine.servers if s.station.is_sink)
    assert born + made == ended + dropped + engine.held + engine.under_way
