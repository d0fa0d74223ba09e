"""What rows say together: infeasible plans, ties, tests and ranks, on rows made by hand."""

from __future__ import annotations

import math

import pytest
import scipy.stats

from study.made_rows import LATENCIES, full, row, study


def find(rows, **wanted):
    (found,) = (r for r in rows if all(r[name] == value for name, value in wanted.items()))
    return found


def test_means_tests_and_ranks_of_a_full_study():
    found = study(full())
    mean = find(found.summary, strategy="b", figure="aggregate_latency_s")
    assert (mean["n"], mean["feasible"], mean["planned"], mean["mean"]) == (4, 4, 4, 3.25)
    assert found.best() == ("a", "c"), "ties are ties"
    test = find(found.tests, strategy="b", figure="aggregate_latency_s")
    wanted = scipy.stats.ttest_rel(LATENCIES["b"], LATENCIES["a"])
    assert test["t_p"] == pytest.approx(wanted.pvalue)
    assert test["t_p_holm"] == pytest.approx(2 * wanted.pvalue)
    assert test["difference"] == pytest.approx(0.75)
    assert test["relative"] == pytest.approx(0.75 / 2.5)
    same = find(found.tests, strategy="c", figure="aggregate_latency_s")
    assert (same["difference"], same["t_p_holm"]) == (0.0, 1.0)
    ranks = {r["strategy"]: r for r in found.ranks if r["figure"] == "aggregate_latency_s"}
    assert [ranks[name]["mean_rank"] for name in "abc"] == [1.5, 3.0, 1.5]
    assert [ranks[name]["first"] for name in "abc"] == [4, 0, 4]
    chi2, p = scipy.stats.friedmanchisquare(*LATENCIES.values())
    assert ranks["a"]["friedman_chi2"] == pytest.approx(chi2)
    assert ranks["a"]["friedman_p"] == pytest.approx(p)


def test_plans_that_are_not_feasible_are_counted_and_in_no_mean():
    rows = full()
    for each in rows:
        if each["strategy"] == "c" and each["seed"] in (2, 3):
            each["feasible"], each["aggregate_latency_s"] = False, 0.001
    found = study(rows)
    mean = find(found.summary, strategy="c", figure="aggregate_latency_s")
    assert (mean["n"], mean["feasible"], mean["planned"], mean["mean"]) == (2, 2, 4, 1.5)
    assert found.best() == ("a",), "a mean over the easier seeds is no better"
    test = find(found.tests, strategy="c", figure="aggregate_latency_s")
    assert (test["n"], test["difference"]) == (2, 0.0)
    ranks = {r["strategy"]: r for r in found.ranks if r["figure"] == "aggregate_latency_s"}
    # At two seeds it ties for the first, at two it is the last.
    assert ranks["c"]["mean_rank"] == (1.5 + 1.5 + 3 + 3) / 4
    assert "2/4" in str(found)
    assert "c is not feasible (2 of 4 plans)" in str(found)


def test_one_pair_is_no_test_and_no_feasible_plan_no_mean():
    rows = full()
    for each in rows:
        each["feasible"] = each["strategy"] != "c" and (each["strategy"] == "a" or not each["seed"])
    found = study(rows)
    assert found.tests == []
    assert not any(r["strategy"] == "c" for r in found.summary)
    nothing = study([{**each, "feasible": False} for each in full()])
    assert (nothing.best(), nothing.summary, nothing.ranks) == ((), [], [])
    assert not nothing.any_feasible
    assert str(nothing).count("0/4") == 3


def test_an_infinite_figure_has_an_infinite_mean_and_is_in_no_test():
    rows = full()
    rows[1]["aggregate_latency_s"] = math.inf
    found = study(rows)
    mean = find(found.summary, strategy="b", figure="aggregate_latency_s")
    assert (mean["mean"], mean["low"]) == (math.inf, None)
    assert find(found.tests, strategy="b", figure="aggregate_latency_s")["n"] == 3
    assert "∞" in str(found)
    assert found.to_dict()["rows"][1]["aggregate_latency_s"] == "inf"


def test_values_and_cases_are_summed_up_apart_and_ranked_together():
    rows = [
        row(name, seed, base * rates * (1 + 0.1 * seed), case=case, rates=rates)
        for case in ("x", "y")
        for rates in (1, 2)
        for seed in (0, 1)
        for name, base in (("a", 1.0), ("b", 2.0 if case == "x" else 0.5), ("c", 3.0))
    ]
    found = study(rows, vary={"rates": (1, 2)})
    assert (found.best("x", rates=2), found.best("y")) == (("a",), ("b",))
    ranks = {
        (r["case"], r["strategy"]): (r["mean_rank"], r["blocks"])
        for r in found.ranks
        if r["figure"] == "aggregate_latency_s"
    }
    assert ranks["x", "a"] == (1.0, 4)
    assert ranks[None, "a"] == ranks[None, "b"] == (1.5, 8)
    assert len(found.tables()) == 2
    assert [r[0] for r in found.tables()[0].rows] == ["1"] * 3 + ["2"] * 3
