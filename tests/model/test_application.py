from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import FrozenInstanceError, replace
from typing import Any

import numpy as np
import pytest

from generators.graphs import walk_all_paths
from generators.problems import random_application, random_network
from thalweg.errors import InvalidInput
from thalweg.model import Application, Limits, Operator, Pin, Stream

SOURCE = Operator(name="s", kind="source", rate=1.0, event_size=1.0, pin=Pin(tier="edge"))
SINK = Operator(name="z", kind="sink")


def between(*names: str) -> list[Operator]:
    return [SOURCE, *(Operator(name=name) for name in names), SINK]


def streams(text: str) -> list[Stream]:
    """`"s-a a-z"` as streams."""
    return [Stream(source=pair.split("-")[0], target=pair.split("-")[1]) for pair in text.split()]


def make(operators: list[Operator], wanted: str, **more: Any) -> Application:
    return Application(name="app", operators=operators, streams=streams(wanted), **more)


def messages(run: Callable[[], Any]) -> list[str]:
    with pytest.raises(InvalidInput) as refused:
        run()
    return [str(defect) for defect in refused.value.defects]


def test_a_sound_application_is_born_and_frozen() -> None:
    app = make(between("a"), "s-a a-z")
    assert isinstance(app.operators, tuple)
    assert isinstance(app.streams, tuple)
    with pytest.raises(FrozenInstanceError):
        app.name = "other"  # type: ignore[misc]
    assert [o.name for o in app.sources] == ["s"]
    assert [o.name for o in app.sinks] == ["z"]
    assert app.index == {"s": 0, "a": 1, "z": 2}
    assert app.operator("a") is app.operators[1]
    with pytest.raises(KeyError):
        app.operator("b")


def test_a_source_straight_to_a_sink_is_an_application() -> None:
    assert make([SOURCE, SINK], "s-z").path_count == 1


def test_both_ends_are_needed() -> None:
    found = messages(lambda: Application(name="app", operators=[], streams=[]))
    assert found == [
        'operators: got "no source", need at least one operator of kind source. '
        "Hint: a source is where events are born.",
        'operators: got "no sink", need at least one operator of kind sink. '
        "Hint: a sink is where events end.",
    ]


def test_names_are_unique_and_the_first_owner_is_named() -> None:
    found = messages(lambda: make([*between("a"), Operator(name="a")], "s-a a-z"))
    assert found == [
        'operators[3].name: got "a", need a name of its own. Hint: operators[1] has it already.'
    ]


def test_streams_join_known_operators_once_in_the_right_direction() -> None:
    found = messages(
        lambda: make(between("clean"), "s-claen clean-z s-clean z-clean clean-s s-clean")
    )
    assert found == [
        'streams[0].target: got "claen", need the name of an operator. Hint: did you mean "clean"?',
        'streams[3].source: got "z", need an operator that puts out events. '
        "Hint: nothing flows out of a sink.",
        'streams[4].target: got "s", need an operator that takes in events. '
        "Hint: nothing flows into a source.",
        'streams[5]: got "s → clean", need one stream between two operators. '
        "Hint: streams[2] is the same.",
    ]


def test_a_cycle_is_printed() -> None:
    found = messages(lambda: make(between("a", "b", "c"), "s-a a-b b-c c-a c-z"))
    assert found == [
        'streams: got "a → b → c → a", need a graph without cycles. '
        "Hint: take out one of these streams."
    ]


def test_cycles_that_share_no_stream_are_all_printed() -> None:
    found = messages(lambda: make(between("a", "b", "c"), "s-a a-b b-a b-c c-b c-z"))
    assert {line.split('"')[1] for line in found} == {"a → b → a", "b → c → b"}
    # The two ways round share a → b, so one cut may do.
    found = messages(lambda: make(between("a", "b", "c"), "s-a a-b b-a b-c c-a c-z"))
    assert len(found) == 1


def test_the_least_uplink_is_no_more_than_the_most() -> None:
    (found,) = messages(lambda: Limits(uplink_bps=5.0, uplink_least_bps=6.0))
    assert found.startswith("uplink_least_bps: got 6.0, need at most uplink_bps, 5")
    assert Limits(uplink_bps=5.0, uplink_least_bps=5.0).uplink_least_bps == 5.0


def test_a_long_cycle_is_cut_in_the_middle() -> None:
    names = [f"n{k}" for k in range(40)]
    around = " ".join(f"n{k}-n{(k + 1) % 40}" for k in range(40))
    (found,) = messages(lambda: make(between(*names), f"s-n0 n9-z {around}"))
    assert "n0 → n1 → n2 → n3 → n4 → n5 → … → n36 → n37 → n38 → n39 → n0" in found


def test_an_operator_that_feeds_itself_is_a_cycle() -> None:
    (found,) = messages(lambda: make(between("a"), "s-a a-a a-z"))
    assert '"a → a"' in found


def test_what_no_source_reaches_and_what_reaches_no_sink_is_told_apart() -> None:
    found = messages(lambda: make(between("a", "b", "c"), "s-a a-z b-z s-c"))
    assert found == [
        'operators[2]: got "b", need an operator that a source reaches. '
        "Hint: add a stream into it, or take it out.",
        'operators[3]: got "c", need an operator that reaches a sink. '
        "Hint: add a stream out of it, or take it out.",
    ]


def test_a_sink_without_input_and_a_source_without_output_are_refused() -> None:
    lonely = [SOURCE, SINK, Operator(name="y", kind="sink")]
    assert messages(lambda: make(lonely, "s-z"))[0].startswith('operators[2]: got "y"')
    idle = [SOURCE, SINK, Operator(name="r", kind="source", rate=1, event_size=1, pin=SOURCE.pin)]
    assert messages(lambda: make(idle, "s-z"))[0].startswith('operators[2]: got "r"')


def test_everything_wrong_is_said_at_once() -> None:
    found = messages(
        lambda: Application(
            name="a/b",
            operators=[Operator(name="x"), Operator(name="x")],
            streams=streams("x-q w-x"),
        )
    )
    paths = [line.split(": ")[0] for line in found]
    assert paths == [
        "name",
        "operators[1].name",
        "operators",
        "operators",
        "streams[0].target",
        "streams[1].source",
    ]


@pytest.mark.parametrize(
    "probability", [0, -0.1, 1.1, math.nan, math.inf, True, "1", None, 10**400]
)
def test_a_probability_is_above_0_and_at_most_1(probability: Any) -> None:
    (found,) = messages(lambda: Stream(source="a", target="b", probability=probability))
    assert found.startswith("probability: ")


def test_a_stream_joins_names() -> None:
    found = messages(lambda: Stream(source=3, target=None))  # type: ignore[arg-type]
    assert [line.split(": ")[0] for line in found] == ["source", "target"]


@pytest.mark.parametrize("field", ["response_time_s", "uplink_bps", "uplink_least_bps", "usage"])
@pytest.mark.parametrize("bad", [-1, math.nan, "1", True, None, 10**400])
def test_limits_are_numbers_from_zero_on(field: str, bad: Any) -> None:
    (found,) = messages(lambda: Limits(**{field: bad}))
    assert found.startswith(f"{field}: ")


def test_without_a_value_there_is_no_limit() -> None:
    limits = Limits()
    assert [limits.response_time_s, limits.uplink_bps, limits.usage] == [math.inf] * 3
    assert limits.uplink_least_bps == 0


def test_an_application_whose_limits_are_none_has_no_limits() -> None:
    app = make(between("a"), "s-a a-z", limits=None)
    assert app.limits == Limits()
    assert replace(app, limits=None).limits == Limits()


def test_limits_are_limits() -> None:
    assert messages(lambda: make(between("a"), "s-a a-z", limits=5)) == [
        "limits: got 5, need a Limits, or None for no limits"
    ]


@pytest.mark.parametrize("seed", range(30))
def test_paths_are_counted_like_walking_them(seed: int) -> None:
    rng = np.random.default_rng(seed)
    app = random_application(rng, random_network(rng))
    edges = [(app.index[s.source], app.index[s.target]) for s in app.streams]
    assert app.path_count == len(list(walk_all_paths(len(app.operators), edges)))
    assert app.graph.source.tolist() == [s for s, _ in edges]
    assert app.probability.tolist() == [s.probability for s in app.streams]


def test_more_paths_than_any_float_are_counted_exactly() -> None:
    count = 1_100
    names = [f"{side}{k}" for k in range(count) for side in "lrm"]
    joined = ["s-l0", "s-r0"]
    for k in range(count):
        joined += [f"l{k}-m{k}", f"r{k}-m{k}"]
        after = [f"l{k + 1}", f"r{k + 1}"] if k + 1 < count else ["z"]
        joined += [f"m{k}-{name}" for name in after]
    assert make(between(*names), " ".join(joined)).path_count == 2**count


def test_ten_thousand_operators_in_a_row_are_an_application() -> None:
    names = [f"n{k}" for k in range(10_000)]
    chain = ["s", *names, "z"]
    app = make(between(*names), " ".join(f"{a}-{b}" for a, b in itertools.pairwise(chain)))
    assert app.path_count == 1
    assert app.graph.level[app.index["z"]] == 10_001
