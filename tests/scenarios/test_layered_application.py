"""Wide applications with very many paths."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thalweg.errors import InvalidInput
from thalweg.model import Pin
from thalweg.scenarios import layered_application


@settings(max_examples=40, deadline=None)
@given(layers=st.integers(1, 7), width=st.integers(1, 5))
def test_layers_are_fully_joined_and_paths_are_width_to_the_power_of_layers(layers, width):
    app = layered_application(layers, width)
    assert len(app.operators) == layers * width + 2
    assert app.path_count == width**layers
    level = app.graph.level.tolist()
    assert sorted(level) == sorted([0, layers + 1, *(list(range(1, layers + 1)) * width)])


@settings(max_examples=30, deadline=None)
@given(layers=st.integers(1, 7), width=st.integers(1, 5))
def test_every_layer_takes_in_as_many_events_as_the_first(layers, width):
    app = layered_application(layers, width, rate=100.0)
    arriving = dict.fromkeys(app.index, 0.0)
    for vertex in app.graph.order.tolist():
        operator = app.operators[vertex]
        out = operator.rate if operator.kind == "source" else arriving[operator.name]
        for stream in app.streams:
            if stream.source == operator.name:
                arriving[stream.target] += out * operator.selectivity * stream.probability
    for operator in app.operators:
        if operator.kind == "transform":
            assert arriving[operator.name] == pytest.approx(100.0)


def test_fifty_operators_have_more_than_a_million_paths():
    app = layered_application(10, 5)
    assert sum(operator.kind == "transform" for operator in app.operators) == 50
    assert app.path_count == 9_765_625


def test_pins_and_figures_are_parameters():
    app = layered_application(
        2,
        2,
        rate=5.0,
        event_bytes=6.0,
        cpu_per_event=7.0,
        source_pin=Pin(node="edge-0/1"),
        sink_pin=Pin(site="cloud-0"),
    )
    source, sink = app.operator("source"), app.operator("sink")
    assert (source.rate, source.event_size, source.pin) == (5.0, 6.0, Pin(node="edge-0/1"))
    assert (sink.pin, app.operator("layer-1-1").cpu_per_event) == (Pin(site="cloud-0"), 7.0)


@pytest.mark.parametrize(
    ("given", "paths"),
    [
        ({"layers": 0, "width": True}, ["layers", "width"]),
        ({"layers": 3, "width": 1_000}, ["layers, width"]),
        ({"rate": -1.0, "event_bytes": 0.0}, ["rate", "event_bytes"]),
    ],
)
def test_bad_parameters_are_refused_all_at_once(given, paths):
    with pytest.raises(InvalidInput) as error:
        layered_application(**given)
    assert [defect.path for defect in error.value.defects] == paths
