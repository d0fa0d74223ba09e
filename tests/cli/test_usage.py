"""A wrong call is answered like any other bad input: what, which value, the rule and a hint."""

from __future__ import annotations

import json

import pytest

CALLS = {
    "missing argument": (("plan", "a.yaml"), "NETWORK", None, "a value for `thalweg plan`", ""),
    "missing option": (("schedule", "a", "n"), "--workload", None, "a value for", ""),
    "unknown option": (
        ("plan", "a", "n", "--stratgy", "x"), "--stratgy", "--stratgy",
        "an option of `thalweg plan`",
        'did you mean "--strategy"?',
    ),
    "unknown command": (("plna",), "COMMAND", "plna", "a command of `thalweg`", '"plan"'),
    "unknown command of a group": (
        ("mobility", "rnu"), "COMMAND", "rnu", "a command of `thalweg mobility`", '"run"',
    ),
    "unknown choice": (
        ("schedule", "a", "n", "-w", "w", "--forecast", "lats"), "--forecast", "lats",
        "none or last or seasonal or smoothing", 'did you mean "last"?',
    ),
    "not a number": (
        ("simulate", "a", "n", "p", "--seed", "x"), "--seed", "x", "a whole number", "",
    ),
    "out of range": (("reproduce", "tsoo", "--seeds", "0"), "--seeds", "0", "a number >= 1", ""),
    "too large": (("demo", "--port", "99999"), "--port", "99999", "a number <= 65535", ""),
    "too many arguments": (("diff", "a", "b", "c"), "arguments", "c", "no more arguments", ""),
    "unknown strategy": (
        ("plan", "a.yaml", "n.yaml", "-s", "aesl"), "strategy", "aesl", "the name of a strategy",
        'did you mean "aels"?',
    ),
    "unknown document": (("schema", "plam"), "KIND", "plam", "a document", 'did you mean "plan"?'),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_a_wrong_call_is_a_list_of_problems(thalweg, name) -> None:
    words, path, value, rule, hint = CALLS[name]
    shown = thalweg(*words, "--format", "json")
    assert shown.code == 2
    problems = json.loads(shown.out)["problems"]
    found = next(problem for problem in problems if problem["path"] == path)
    assert found["value"] == value
    assert rule in found["rule"]
    assert hint in found["hint"]
    assert found["message"] in shown.err
    plain = thalweg(*words)
    assert (plain.code, plain.out) == (2, "")
    assert found["message"] in plain.err


def test_a_pipeline_that_nobody_knows_comes_with_a_hint(thalweg) -> None:
    pytest.importorskip("pyspark")
    refused = thalweg("profile", "taxi-fare")
    assert refused.code == 2
    assert 'did you mean "taxi-fares"?' in refused.err


def test_a_missing_value_is_told(thalweg) -> None:
    refused = thalweg("plan", "a", "n", "--option")
    assert refused.code == 2
    assert "--option: got nothing, need a value after it" in refused.err


def test_usage_is_shown_with_the_problem(thalweg) -> None:
    refused = thalweg("plan")
    assert refused.err.startswith("Usage: thalweg plan [OPTIONS]")


@pytest.mark.parametrize("words", [(), ("mobility",), ("reproduce",)])
def test_no_command_shows_the_help(thalweg, words) -> None:
    shown = thalweg(*words)
    assert shown.code == 2
    assert "Usage: thalweg" in shown.out + shown.err
    assert "Commands" in shown.out + shown.err
