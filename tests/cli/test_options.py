"""One concept has one option, and means the same in every command."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tools.cli_surface import read_commands

from thalweg.cli.completion import (
    complete_pipeline,
    complete_schema,
    complete_strategies,
    complete_strategy,
)
from thalweg.cli.concepts import CONCEPTS
from thalweg.cli.inputs import read_duration
from thalweg.cli.ranges import read_rate_factors
from thalweg.errors import InvalidInput

COMMANDS = read_commands()


def test_every_option_belongs_to_one_concept() -> None:
    known = Counter(concept.option for concept in CONCEPTS)
    assert set(known.values()) == {1}
    assert len({concept.about for concept in CONCEPTS}) == len(CONCEPTS)
    used = {option.names[0] for command in COMMANDS for option in command.options}
    assert used == set(known)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_options_have_the_type_of_their_concept_and_a_help(command) -> None:
    kinds = {concept.option: concept.kind for concept in CONCEPTS}
    for option in command.options:
        assert option.kind == kinds[option.names[0]], option.names
        assert option.help.endswith("."), option.names


def test_an_option_has_the_same_short_form_everywhere() -> None:
    for concept in CONCEPTS:
        names = {o.names for c in COMMANDS for o in c.options if o.names[0] == concept.option}
        assert len(names) == 1, names
    shorts = Counter(
        (name, option.names[0])
        for command in COMMANDS
        for option in command.options
        for name in option.names[1:]
    )
    assert len({name for name, _ in shorts}) == len(shorts)


def test_every_command_that_prints_something_takes_the_format() -> None:
    lacking = [c.name for c in COMMANDS if "--format" not in {o.names[0] for o in c.options}]
    assert lacking == []


@given(st.floats(0, 1e9))
def test_a_bare_number_means_seconds(number: float) -> None:
    assert read_duration(repr(number), "--for") == pytest.approx(number)
    assert read_duration(f"{number!r} s", "--for") == pytest.approx(number)


@pytest.mark.parametrize("text", ["", "nan", "inf", "-1", "soon", "5 kg", "1e10", "5 5"])
def test_what_is_no_duration_is_refused_with_the_value_as_it_was_typed(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_duration(text, "--for")
    [defect] = refused.value.defects
    assert (defect.path, defect.value) == ("--for", text)


@given(st.integers(0, 400), st.integers(0, 500))
def test_a_range_holds_both_ends(first: int, more: int) -> None:
    found = read_rate_factors([f"rates={first}..{first + more}"])
    assert found == list(map(float, range(first, first + more + 1)))


@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=9, unique=True))
def test_a_list_is_read_back(values: list[float]) -> None:
    assert read_rate_factors(["rates=" + ",".join(map(repr, values))]) == values


@pytest.mark.parametrize(
    "text",
    ["rate=1", "rates", "rates=", "rates=x", "rates=2..1", "rates=1..inf", "rates=-1", "rates=nan",
     "rates=0..1e9", "rates=1,,2", "latency=2"],
)  # fmt: skip
def test_what_is_no_sweep_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_rate_factors([text])
    assert refused.value.defects[0].path == "--vary"


def test_factors_are_taken_once_in_their_order() -> None:
    assert read_rate_factors(["rates=3,1,3,2"]) == [3.0, 1.0, 2.0]
    assert all(map(math.isfinite, read_rate_factors(["rates=0..3"])))


def test_names_are_completed() -> None:
    assert {name for name, _ in complete_strategy("aels-rp")} >= {"aels-rp", "aels-rp-la"}
    assert ("tcep,cloud-only", dict(complete_strategy(""))["cloud-only"]) in complete_strategies(
        "tcep,clo"
    )
    assert complete_pipeline("taxi") == ["taxi-fares", "taxi-demand"]
    assert complete_schema("mobility-p") == ["mobility-predict", "mobility-plan"]
