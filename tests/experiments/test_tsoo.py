import json

import numpy as np
import pytest

from thalweg.experiments.claims import claims_table
from thalweg.experiments.tsoo.claims import compare_with_paper
from thalweg.experiments.tsoo.reproduce import reproduce
from thalweg.experiments.tsoo.results import Results
from thalweg.experiments.tsoo.run import list_points, run_point
from thalweg.experiments.tsoo.setting import LEVELS, draw_setting
from thalweg.model.network import Tier
from thalweg.spark.sweep import IN_PROCESS


def test_a_setting_is_what_the_paper_describes():
    setting = draw_setting(3, same_vm=False)
    assert setting.level.size == 165
    assert np.bincount(setting.level).tolist() == [0] + [15] * LEVELS
    totals = {
        level: set(setting.devices[setting.level == level].sum(axis=1).tolist())
        for level in range(1, LEVELS + 1)
    }
    assert all(len(total) == 1 for total in totals.values())
    values = [next(iter(totals[level])) for level in range(1, LEVELS + 1)]
    assert values == sorted(values)
    assert values[0] >= 5_000 and values[-1] <= 75_000
    assert not np.array_equal(setting.level, np.sort(setting.level))
    fares, demand = setting.rates(0)
    devices = setting.devices[0].sum()
    assert sum(fares.values()) * 200 == pytest.approx(devices * 6_000 * 0.55)
    assert sum(demand.values()) * 200 == pytest.approx(devices * 6_000 * 0.45)


def test_all_strategies_see_the_same_sequence_and_network():
    one, other = draw_setting(1, same_vm=False), draw_setting(1, same_vm=True)
    assert np.array_equal(one.devices, other.devices)
    fogs = one.network.site_tier[one.network.node_site] == Tier.FOG
    assert np.array_equal(one.network.node_cpu_ips[fogs], other.network.node_cpu_ips[fogs])
    assert other.network.node_cpu_ips[~fogs] < one.network.node_cpu_ips[~fogs]
    assert not np.array_equal(one.devices, draw_setting(2, same_vm=False).devices)


@pytest.fixture(scope="module")
def reproduction(tmp_path_factory):
    pytest.importorskip("matplotlib")
    into = tmp_path_factory.mktemp("tsoo")
    calls = []
    found = reproduce(
        into,
        master=IN_PROCESS,
        quick=True,
        seeds=1,
        on_progress=lambda done, total: calls.append((done, total)),
    )
    return found, calls


def test_a_reproduction_runs_every_strategy_and_says_what_came_out(reproduction):
    found, calls = reproduction
    assert (found.points, found.failures) == (9, ())
    assert found.rows == 9 * 22 * 2
    assert calls[-1] == (9, 9)
    names, rows = claims_table(found.claims)
    assert names == ["about", "paper says", "we measured", "order agrees", "why not"]
    assert len(rows) == len(found.claims) >= 6 + 3
    # What disagrees has a reason, and nothing else has.
    assert all(
        (claim.agrees is False) == bool(row[4])
        for claim, row in zip(found.claims, rows, strict=True)
    )
    assert {path.name for path in found.files} == {
        "results.parquet",
        "claims.json",
        *(f"figure-{k}.png" for k in range(8, 13)),
    }
    assert all(path.stat().st_size > 0 for path in found.files)
    json.dumps(found.to_dict(), allow_nan=False)


def test_a_second_reproduction_repeats_nothing_and_says_the_same(reproduction):
    found, _ = reproduction
    again = reproduce(found.into, master=IN_PROCESS, quick=True, seeds=1)
    assert again.resumed == again.points == found.points
    assert again.claims == found.claims


def test_no_strategy_beats_the_optimum_on_the_same_problem():
    for strategy in ("tsoo", "atsoo", "fog-only"):
        point = {"experiment": 2, "seed": 5, "strategy": strategy, "repetitions": 1}
        for row in run_point(point):
            if row["feasible"] and row["compared"]:
                assert row["least_usage"] <= row["usage"] * (1 + 1e-9)


def rows_with(value):
    """Results in which every strategy does the same, but for what `value` says."""
    rows = []
    for point in list_points(1):
        for level in range(1, LEVELS + 1):
            for application in ("taxi-fares", "taxi-demand"):
                row = {
                    **point,
                    "level": level,
                    "application": application,
                    "usage": 1.0,
                    "uplink_violated": False,
                    "time_violated": False,
                    "feasible": True,
                    "started": 1,
                    "stopped": 1,
                    "least_usage": 1.0,
                    "compared": True,
                }
                rows.append({**row, **value(row)})
    columns = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    columns["changes"] = columns["started"] + columns["stopped"]
    return Results(columns)


def verdicts(results):
    return {claim.about: claim.agrees for claim in compare_with_paper(results)}


def test_claims_agree_with_results_like_the_papers():
    def like_the_paper(row):
        trcs, first = row["strategy"] == "trcs", row["application"] == "taxi-fares"
        limit = 8 if first else 9
        works = {"tsoo": 4, "atsoo": 2, "fog-only": 2, "fc-interplay": 2}
        return {
            "usage": 1.07 if trcs else 1.0,
            "uplink_violated": (row["level"] - limit + 1) / 4 if row["level"] >= limit else 0.0,
            "time_violated": (row["level"] - 6) / 5 if not first and row["level"] >= 7 else 0.0,
            "started": {"tsoo": 9, "atsoo": 1}.get(row["strategy"], 4),
            "feasible": 0.5
            if (row["strategy"], row["level"]) == ("atsoo", 3)
            else float(row["level"] <= works.get(row["strategy"], 11)),
        }

    assert all(agrees in (True, None) for agrees in verdicts(rows_with(like_the_paper)).values())


def test_claims_disagree_where_the_results_do():
    def otherwise(row):
        return {
            "usage": 0.5
            if row["strategy"] == "trcs"
            else (2.0 if row["strategy"] == "atsoo" else 1),
            "time_violated": True,
            "started": 9 if row["strategy"] == "atsoo" else 1,
            "feasible": row["strategy"] == "fog-only",
        }

    found = verdicts(rows_with(otherwise))
    assert [agrees for agrees in found.values() if agrees is not None] == [False] * 11
