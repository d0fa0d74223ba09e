from dataclasses import replace

import pytest

import thalweg as tw
from thalweg.errors import InvalidInput, StrategyError
from thalweg.placement.cloud_only import cloud_only
from thalweg.testing import check_strategy, conformance_problems


@pytest.mark.parametrize("name", tw.strategies())
def test_every_strategy_keeps_its_promises(name):
    report = check_strategy(name)
    assert report.problems >= 15
    assert report.feasible > 0


def test_the_problems_ask_for_everything():
    problems = list(conformance_problems())
    assert any(problem.rates for problem in problems)
    assert {o.replicable for p in problems for o in p.application.operators} == {True, False}
    verdicts = {cloud_only(problem).feasible for problem in problems}
    assert verdicts == {True, False}


def _hides_violations(problem, current=None):
    return replace(cloud_only(problem, current), violations=())


def _invents_an_objective(problem, current=None):
    return replace(cloud_only(problem, current), objective=0.0)


def _invents_estimates(problem, current=None):
    plan = cloud_only(problem, current)
    return replace(plan, estimate=replace(plan.estimate, usage=plan.estimate.usage / 2 + 1))


def _forgets_an_operator(problem, current=None):
    plan = cloud_only(problem, current)
    return replace(plan, placement=tw.Placement.of(list(plan.placement)[:-1]))


def _returns_nothing(problem, current=None):
    return None


def _crashes(problem, current=None):
    raise ZeroDivisionError


def _refuses_everything(problem, current=None):
    raise InvalidInput([])


_flip = iter(range(10**9))


def _changes_its_mind(problem, current=None):
    return replace(cloud_only(problem, current), candidates=next(_flip))


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        (_hides_violations, "the checker finds"),
        (_invents_an_objective, "which it is not"),
        (_invents_estimates, "states estimates"),
        (_forgets_an_operator, "incomplete"),
        (_returns_nothing, "not a Plan"),
        (_crashes, "ZeroDivisionError"),
        (_refuses_everything, "refused every problem"),
        (_changes_its_mind, "another plan for the same problem"),
    ],
)
def test_a_strategy_that_breaks_a_promise_is_told_which(bad, told):
    with pytest.raises(StrategyError, match=told):
        check_strategy(bad)
