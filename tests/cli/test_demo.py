"""`thalweg demo`: the plan alone, bad calls, and the whole of it."""

from __future__ import annotations

import json

import pytest


def test_the_plan_alone_is_that_of_the_demo_with_all_cloud_beside_it(thalweg):
    pytest.importorskip("pyspark")
    shown = thalweg("demo", "--plan-only")
    assert shown.code == 0
    assert "all-cloud" in shown.out
    told = json.loads(thalweg("demo", "--plan-only", "--format", "json").out)
    calm, surge = told["plans"]
    assert calm["plan"]["estimate"]["uplink_bps"] <= calm["all_cloud"]["estimate"]["uplink_bps"]
    assert not surge["all_cloud"]["feasible"]
    assert surge["plan"]["feasible"]


def test_a_demo_that_is_too_short_is_refused(thalweg):
    pytest.importorskip("pyspark")
    refused = thalweg("demo", "--for", "3 s")
    assert refused.code == 2
    assert "from 20 to 3600 seconds" in refused.err


@pytest.mark.slow
@pytest.mark.jvm
def test_a_surge_and_a_kill_lose_and_double_nothing(thalweg, tmp_path):
    pytest.importorskip("pyspark")
    shown = thalweg("demo", str(tmp_path / "run"), "--format", "json")
    assert shown.code == 0, shown.err
    told = json.loads(shown.out)
    assert (told["lost"], told["duplicated"]) == (0, 0)
    assert told["rides"] > 0
    assert told["rows"] > 0
    assert told["adaptations"]
    assert told["restarts"] >= 1
    assert told["surge"]["in_force_s"] > 0
    assert told["kill"]["back_s"] > told["kill"]["seen_down_s"] > 0
    assert 0 < told["sent_bytes"] < told["all_cloud_bytes"]
