"""The trigger as a pure machine: what it answers, what it leaves alone, and how often at most."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.adapt import Observation, Trigger, TriggerState, decide
from thalweg.errors import InvalidInput
from thalweg.model import Limits
from thalweg.model.plan import Violation

LIMITS = Limits(response_time_s=1.0, uplink_bps=1e9, usage=0.4)
FULL = Violation(
    constraint="memory", place="fog-1", resource="memory", need=3e9, have=2e9, unit="B"
)


def observed(
    time_s=0.0, *, usage=0.3, uplink=5e8, response=0.5, violations=(), limits=LIMITS, **more
):
    return Observation(
        time_s=time_s,
        usage=usage,
        uplink_bps=uplink,
        response_time_s=response,
        violations=violations,
        limits=limits,
        **more,
    )


def first(now, ahead=None, trigger=None):
    return decide(trigger or Trigger(), TriggerState(), now, ahead)[0]


def test_a_deployment_within_all_limits_is_kept():
    found = first(observed(usage=0.31))
    assert not found.adapt
    assert found.reason == "kept: every constraint is met, usage 31 % ≤ 40 %"
    assert first(observed(limits=Limits())).reason == "kept: every constraint is met, usage 30 %"


@pytest.mark.parametrize(
    ("now", "reason"),
    [
        (observed(uplink=1.05e9), "uplink 1.05 Gbps above 1 Gbps (5 %) now"),
        (observed(response=math.inf), "response time ∞ above 1 s now"),
        (observed(usage=0.5), "usage 50 % above 40 % (25 %) now"),
        (observed(violations=(FULL,)), "memory at fog-1 3 GB above 2 GB (50 %) now"),
        (
            observed(violations=(FULL,), uplink=2e9, usage=0.5),
            "memory at fog-1 3 GB above 2 GB (50 %) now and 1 more",
        ),
        (observed(uplink=1.00001e9), "uplink 1 Gbps above 1 Gbps (0.001 %) now"),
    ],
)
def test_each_condition_of_formula_35_alone_is_a_reason_to_adapt(now, reason):
    found = first(now)
    assert found.adapt
    assert not found.ahead
    assert found.reason == reason


def test_what_is_expected_is_a_reason_too():
    found = first(observed(0.0), observed(1800.0, response=1.2))
    assert found.adapt
    assert found.ahead
    assert found.reason == "response time 1.2 s above 1 s (20 %) expected in 30 min"
    assert not first(observed(0.0), observed(1800.0)).adapt


def test_a_present_violation_is_told_before_an_expected_one():
    found = first(observed(0.0, uplink=2e9), observed(60.0, response=1.2))
    assert found.reason.startswith("uplink")
    assert not found.ahead


def test_a_limit_of_usage_of_its_own_replaces_that_of_the_application():
    assert not first(observed(usage=0.5), trigger=Trigger(usage_most=0.6)).adapt
    assert first(observed(usage=0.3), trigger=Trigger(usage_most=0.2)).adapt


def test_rounding_is_no_violation():
    assert not first(observed(uplink=1e9 * (1 + 1e-12), usage=0.4 * (1 + 1e-12))).adapt


def play(trigger, observations):
    """The decisions on a series of (now, ahead)."""
    state, found = TriggerState(), []
    for now, ahead in observations:
        decision, state = decide(trigger, state, now, ahead)
        found.append(decision)
    return found


def test_patience_waits_for_so_many_bad_observations_in_a_row_and_says_so():
    bad, good = {"uplink": 2e9}, {}
    shown = [bad, bad, good, bad, bad, bad]
    found = play(Trigger(patience=3), [(observed(k, **v), None) for k, v in enumerate(shown)])
    assert [d.adapt for d in found] == [False] * 5 + [True]
    assert found[1].reason.endswith("2 of 3 such observations in a row")


def test_a_forecast_needs_no_patience():
    found = play(Trigger(patience=3), [(observed(0.0, uplink=2e9), observed(60.0, uplink=2e9))])
    assert found[0].adapt
    assert found[0].ahead


def test_optional_adaptations_rest_and_answers_to_violations_do_not():
    trigger = Trigger(rest_s=100.0, clear_margin=0.0)
    found = play(
        trigger,
        [
            (observed(0.0, usage=0.5), None),
            (observed(50.0, usage=0.5), None),
            (observed(60.0), observed(70.0, uplink=2e9)),
            (observed(70.0, uplink=2e9), None),
            (observed(150.0, usage=0.5), None),
            (observed(170.0, usage=0.5), None),
        ],
    )
    assert [d.adapt for d in found] == [True, False, False, True, False, True]
    assert found[1].reason.endswith("rests, last adapted 50 s ago")


def test_a_figure_that_crossed_its_limit_counts_again_only_when_clearly_above_or_after_clearing():
    trigger = Trigger(rest_s=0.0, clear_margin=0.1)
    usages = [0.41, 0.39, 0.41, 0.43, 0.45, 0.41, 0.36, 0.41]
    found = play(trigger, [(observed(k, usage=u), None) for k, u in enumerate(usages)])
    assert [d.adapt for d in found] == [True, False, False, False, True, False, False, True]
    assert found[3].reason.endswith("within 10 % of a limit that was crossed before")
    ahead = play(trigger, [(observed(k), observed(k + 1, uplink=1.01e9)) for k in range(3)])
    # Here the present uplink is far below: what is expected counts each time.
    assert [d.adapt for d in ahead] == [True, True, True]
    near = play(
        trigger,
        [(observed(k, uplink=0.95e9), observed(k + 1, uplink=1.01e9)) for k in range(3)],
    )
    assert [d.adapt for d in near] == [True, False, False]


def test_a_question_that_was_answered_with_staying_is_not_asked_again_until_something_changes():
    def bad(k, inputs, deployed="a"):
        return observed(k, uplink=2e9, inputs=inputs, deployed=deployed), None

    found = play(
        Trigger(change_least=0.01),
        [bad(0, (10.0,)), bad(1, (10.0,)), bad(2, (10.05,)), bad(3, (10.2,)), bad(4, (10.0,)),
         bad(5, (10.0,), "b"), bad(6, (10.0,), "b")],
    )  # fmt: skip
    assert [d.adapt for d in found] == [True, False, False, True, False, True, False]
    assert found[1].reason.endswith("nothing has changed since adapting for it was of no use")
    assert "uplink" in found[1].reason


def test_a_question_whose_answer_helped_is_asked_again_when_it_comes_back():
    found = play(
        Trigger(rest_s=0.0),
        [
            (observed(0, uplink=2e9, deployed="a", inputs=(2.0,)), None),
            (observed(1, usage=0.9, deployed="b", inputs=(1.0,)), None),
            (observed(2, uplink=2e9, deployed="a", inputs=(2.0,)), None),
        ],
    )
    assert [d.adapt for d in found] == [True, True, True]


def test_a_violation_is_answered_even_if_staying_was_the_answer_to_something_else():
    found = play(
        Trigger(rest_s=0.0),
        [
            (observed(0, usage=0.9, deployed="a", inputs=(1.0,)), None),
            (observed(1, usage=0.9, deployed="a", inputs=(1.0,)), None),
            (observed(2, usage=0.9, uplink=1.1e9, deployed="a", inputs=(1.005,)), None),
            (observed(3, usage=0.9, uplink=1.1e9, deployed="a", inputs=(1.005,)), None),
        ],
    )
    assert [d.adapt for d in found] == [True, False, True, False]


def test_several_rates_that_nothing_helps_against_are_each_asked_about_once():
    rounds = [1.0, 2.0, 3.0, 4.0, 5.0] * 3
    seen = [observed(k, uplink=2e9, deployed="a", inputs=(r,)) for k, r in enumerate(rounds)]
    found = play(Trigger(), [(now, None) for now in seen])
    assert [d.adapt for d in found] == [True] * 5 + [False] * 10


@pytest.mark.parametrize("known", [{"deployed": "a"}, {"inputs": (1.0,)}, {}])
def test_where_nobody_can_tell_that_nothing_changed_a_violation_is_answered_again(known):
    found = play(Trigger(), [(observed(k, uplink=2e9, **known), None) for k in range(4)])
    assert all(d.adapt for d in found)


figures = st.fixed_dictionaries(
    {
        "usage": st.sampled_from([0.1, 0.39, 0.41, 0.9]),
        "uplink": st.sampled_from([5e8, 0.99e9, 1.01e9, 2e9]),
        "response": st.sampled_from([0.5, 1.02, math.inf]),
        "violations": st.sampled_from([(), (FULL,)]),
        "deployed": st.sampled_from(["a", "b"]),
        "inputs": st.sampled_from([(1.0,), (2.0,)]),
    }
)
triggers = st.builds(
    Trigger,
    usage_most=st.none() | st.sampled_from([0.2, 0.5]),
    patience=st.integers(1, 3),
    rest_s=st.sampled_from([0.0, 3.0, 10.0]),
    clear_margin=st.sampled_from([0.0, 0.1]),
)
stories = st.lists(st.tuples(figures, st.none() | figures), min_size=1, max_size=25)


def tell(story):
    return [
        (observed(k, **now), ahead and observed(k + 1, **ahead))
        for k, (now, ahead) in enumerate(story)
    ]


@given(triggers, stories)
def test_decisions_are_the_same_for_the_same_arguments_and_always_have_a_reason(trigger, story):
    found = play(trigger, tell(story))
    assert found == play(trigger, tell(story))
    assert all(d.reason and d.reason.startswith("kept: ") != d.adapt for d in found)
    assert all(d.adapt or not d.ahead for d in found)


@given(triggers, stories)
def test_a_violation_that_first_appears_is_answered_within_the_patience_and_never_in_silence(
    trigger, story
):
    observations = tell(story)
    found = play(trigger, observations)
    row = 0
    asked = []
    for (now, ahead), decision in zip(observations, found, strict=True):
        broken = {excess.name for excess in now.broken}
        is_bad = broken or now.excess_usage(trigger.usage_most or LIMITS.usage)
        row = row + 1 if is_bad else 0
        question = (now.deployed, now.inputs, ahead.inputs if ahead else ())
        is_new = not any(past == question and broken <= causes for past, causes in asked)
        if broken and row >= trigger.patience and is_new:
            assert decision.adapt
        if decision.adapt:
            asked.append((question, broken))
        if broken and not decision.adapt:
            assert now.broken[0].text in decision.reason


@given(triggers, stories)
def test_adaptations_happen_only_for_a_cause(trigger, story):
    most = trigger.usage_most or LIMITS.usage
    for (now, ahead), decision in zip(tell(story), play(trigger, tell(story)), strict=True):
        expected = ahead and (ahead.broken or ahead.excess_usage(most))
        if decision.adapt:
            assert expected if decision.ahead else (now.broken or now.excess_usage(most))


@given(triggers, stories)
def test_optional_adaptations_are_at_most_one_and_one_for_each_rest(trigger, story):
    observations = tell(story)
    optional = [
        now.time_s
        for (now, _), decision in zip(observations, play(trigger, observations), strict=True)
        if decision.adapt and (decision.ahead or not now.broken)
    ]
    if trigger.rest_s > 0:
        assert len(optional) <= 1 + len(observations) / trigger.rest_s
        assert all(b - a >= trigger.rest_s for a, b in pairwise(optional))


# A world in which a strategy answers for real: figures of each plan at each rate.


worlds = st.fixed_dictionaries(
    {
        (plan, level): st.tuples(
            st.sampled_from([0.1, 0.41, 0.9]), st.sampled_from([5e8, 1.01e9, 2e9])
        )
        for plan in "abc"
        for level in (0, 1)
    }
)
answers = st.fixed_dictionaries(
    {(plan, level): st.sampled_from("abc") for plan in "abc" for level in (0, 1)}
)


def live(trigger, world, answer, levels):
    """Run a world: (adapted, plan before, plan after, was it violated) at each step."""
    state, plan, rows = TriggerState(), "a", []
    for k, level in enumerate(levels):
        usage, uplink = world[plan, level]
        now = observed(k, usage=usage, uplink=uplink, deployed=plan, inputs=(1.0 + level,))
        decision, state = decide(trigger, state, now)
        before = plan
        if decision.adapt:
            plan = answer[plan, level]
        rows.append((decision.adapt, before, plan, bool(now.broken)))
    return rows


@given(triggers, worlds, answers, st.integers(2, 60))
def test_a_flapping_rate_causes_no_more_adaptations_than_promised(trigger, world, answer, length):
    rows = live(trigger, world, answer, [k % 2 for k in range(length)])
    adapted = [(before, after, broken) for did, before, after, broken in rows if did]
    optional = sum(not broken for _, _, broken in adapted)
    fruitless = sum(before == after for before, after, broken in adapted if broken)
    # Each of 3 plans can be asked about at each of 2 rates, and stay, once.
    assert fruitless <= 6
    if trigger.rest_s > 0:
        assert optional <= 1 + length / trigger.rest_s


@given(triggers, worlds, st.integers(2, 60))
def test_where_a_deployment_holds_on_both_sides_one_answer_follows_each_optional_adaptation(
    trigger, world, length
):
    # Plan b keeps the constraints at both rates, and is the answer to every violation; an
    # adaptation for less usage goes to plan a.
    world = world | {("b", level): (world["b", level][0], 5e8) for level in (0, 1)}
    answer = {
        (plan, level): "b" if world[plan, level][1] > 1e9 else "a"
        for plan in "abc"
        for level in (0, 1)
    }
    rows = live(trigger, world, answer, [k % 2 for k in range(length)])
    answered = sum(did and broken for did, _, _, broken in rows)
    optional = sum(did and not broken for did, _, _, broken in rows)
    assert answered <= 1 + optional


@given(triggers, worlds, answers, st.lists(st.integers(0, 1), max_size=10))
def test_when_rates_stop_changing_adaptations_stop_too(trigger, world, answer, restless):
    rows = live(trigger, world, answer, [*restless, *[1] * 60])
    assert not any(did for did, *_ in rows[-20:])


@given(worlds, st.lists(st.integers(0, 1), max_size=10))
def test_a_violation_that_the_strategy_can_cure_does_not_outlast_the_faults(world, restless):
    world = world | {("b", level): (0.1, 5e8) for level in (0, 1)}
    answer = {(plan, level): "b" for plan in "abc" for level in (0, 1)}
    rows = live(Trigger(rest_s=0.0), world, answer, [*restless, 1, 1, 1])
    assert not rows[-1][3]


@pytest.mark.parametrize(
    ("values", "path"),
    [
        ({"patience": 0}, "patience"),
        ({"patience": True}, "patience"),
        ({"rest_s": -1.0}, "rest_s"),
        ({"rest_s": math.nan}, "rest_s"),
        ({"clear_margin": 1.5}, "clear_margin"),
        ({"usage_most": -0.1}, "usage_most"),
        ({"change_least": None}, "change_least"),
    ],
)
def test_settings_that_make_no_sense_are_told(values, path):
    with pytest.raises(InvalidInput) as caught:
        Trigger(**values)
    assert [defect.path for defect in caught.value.defects] == [path]


def test_an_observation_without_a_number_is_refused():
    with pytest.raises(InvalidInput):
        observed(math.nan)
    with pytest.raises(InvalidInput):
        observed(usage=math.nan)
