import json
import re

import pytest

import thalweg as tw


def test_plan_prints_json_with_the_promised_fields(thalweg, example):
    shown = thalweg("plan", "demo/app.yaml", "demo/network.yaml", "--format", "json")
    assert shown.code == 0
    assert shown.err == ""
    plan = json.loads(shown.out)
    assert {"strategy", "feasible", "placement", "objective", "violations", "seconds"} <= set(plan)
    assert plan["strategy"] == "aels-rp-la-free"
    assert plan["feasible"] is True
    assert plan["violations"] == []
    app = tw.load_application(example / "app.yaml")
    assert {row["operator"] for row in plan["placement"]} == {o.name for o in app.operators}
    assert plan["objective"] > 0


def test_plan_prints_a_table_with_a_reason_for_each_operator(thalweg, example):
    shown = thalweg("plan", "demo/app.yaml", "demo/network.yaml")
    head, names, *rows = shown.out.splitlines()
    assert head.startswith("taxi on city by aels-rp-la-free: aggregate latency ")
    assert names.split() == ["operator", "where", "tier", "why"]
    app = tw.load_application(example / "app.yaml")
    shown_operators = {row.split()[0] for row in rows[: rows.index("")] if not row.startswith(" ")}
    assert shown_operators == {operator.name for operator in app.operators}
    assert any("busy-zones" in row and "cloud/vm" in row for row in rows)


def test_all_instances_are_shown_on_request(thalweg, example):
    shown = thalweg("plan", "demo/app.yaml", "demo/network.yaml", "--all")
    _, names, *rows = shown.out.splitlines()
    assert names.split() == ["operator", "node", "site", "origin", "why"]
    # What is too long for a line goes on in the next one.
    instances = [row for row in rows[: rows.index("")] if not row.startswith(" ")]
    assert len(instances) == 11


def test_a_plan_ends_with_its_figures_beside_those_of_cloud_only(thalweg, example):
    shown = thalweg("plan", "demo/app.yaml", "demo/network.yaml", "-s", "aels-rp")
    text = shown.out.split("\n\n")[-1]
    names, *rows = text.splitlines()
    assert names.split() == ["figure", "aels-rp", "cloud-only", "change", "limit"]
    figures = {row.split("  ")[0]: row for row in rows}
    assert {"aggregate latency", "worst latency", "uplink", "response time", "usage"} <= {*figures}
    assert figures["uplink"].endswith("30 Mbps")
    assert figures["feasible"].split()[1:] == ["no:", "response-time", "yes"]


def test_of_many_violations_the_first_are_shown(thalweg, example, tmp_path):
    problem = ("plan", "demo/app.yaml", "demo/network.yaml")
    text = (example / "network.yaml").read_text()
    (example / "network.yaml").write_text(text.replace(" Mbps", " kbps").replace("GIPS", "MIPS"))
    listed = len(json.loads(thalweg(*problem, "--format", "json").out)["violations"])
    assert listed > 10
    few, every = thalweg(*problem).out, thalweg(*problem, "--all").out
    assert f"and {listed - 10} more violations; --all shows them" in few
    assert "more violations" not in every
    violation = re.compile(r"^[a-z-]+: .*needs ", flags=re.MULTILINE)
    assert len(violation.findall(every)) == listed
    assert len(violation.findall(few)) == 10


def test_a_saved_plan_is_the_printed_one(thalweg, example, tmp_path):
    command = ("plan", "demo/app.yaml", "demo/network.yaml", "--format", "json")
    printed = json.loads(thalweg(*command, "--output", "plan.json").out)
    assert json.loads((tmp_path / "plan.json").read_text()) == printed
    assert thalweg(*command, "--current", "plan.json").code == 0


def test_an_infeasible_plan_is_printed_and_leaves_with_3(thalweg, example):
    text = (example / "network.yaml").read_text()
    (example / "network.yaml").write_text(text.replace("35.9 GIPS", "100 MIPS"))
    command = ("plan", "demo/app.yaml", "demo/network.yaml", "-s", "cloud-only")
    shown = thalweg(*command, "--format", "json")
    assert shown.code == 3
    plan = json.loads(shown.out)
    assert plan["feasible"] is False
    assert {"cpu", "stability"} <= {violation["constraint"] for violation in plan["violations"]}


def test_the_problems_of_both_files_are_told_at_once(thalweg, example):
    for name, good, bad in (
        ("app.yaml", "selectivity: 0.95", "selectivty: 0.95"),
        ("network.yaml", "tier: edge", "tier: egde"),
    ):
        text = (example / name).read_text()
        (example / name).write_text(text.replace(good, bad, 1))
    refused = thalweg("plan", "demo/app.yaml", "demo/network.yaml")
    assert refused.code == 2
    assert refused.out == ""
    assert 'did you mean "selectivity"?' in refused.err
    assert "demo/network.yaml:" in refused.err
    assert "2 problems" in refused.err


def test_pins_are_held_against_the_network(thalweg, example):
    text = (example / "app.yaml").read_text()
    (example / "app.yaml").write_text(text.replace("station-rank/display", "station-rank/screen"))
    refused = thalweg("plan", "demo/app.yaml", "demo/network.yaml")
    assert refused.code == 2
    assert "demo/app.yaml:22: operators[8].pin.node" in refused.err
    assert 'named like "station-rank/display"' in refused.err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--strategy", "cloudonly"), 'did you mean "cloud-only"?'),
        (("--strategy", "cloud-only+nothing"), '"nothing"'),
        (("--option", "speed=3"), "an option of aels-rp-la-free"),
        (("--option", "speed"), "NAME=VALUE"),
        (("--current", "missing.json"), "missing.json"),
        (("--output", "missing/folder/plan.json"), "missing/folder"),
        (("--output", "plan.txt"), "plan.txt"),
    ],
)
def test_bad_words_are_answered_with_2_and_a_hint(thalweg, example, words, told):
    refused = thalweg("plan", "demo/app.yaml", "demo/network.yaml", *words)
    assert refused.code == 2
    assert told in refused.err
    assert "Traceback" not in refused.err


def test_problems_come_as_json_where_json_is_wanted(thalweg, tmp_path):
    refused = thalweg("plan", "a.yaml", "b.yaml", "--format", "json")
    assert refused.code == 2
    problems = json.loads(refused.out)["problems"]
    assert [problem["file"] for problem in problems] == ["a.yaml", "b.yaml"]
    assert all(problem["rule"] and problem["message"] for problem in problems)


def test_a_strategy_that_hides_a_violation_is_found_out(thalweg, example, monkeypatch):
    text = (example / "network.yaml").read_text()
    (example / "network.yaml").write_text(text.replace("35.9 GIPS", "100 MIPS"))
    monkeypatch.setattr("thalweg.estimate.evaluate.find_violations", lambda *_, **__: ())
    refused = thalweg("plan", "demo/app.yaml", "demo/network.yaml")
    assert refused.code == 70
    assert "the checker finds" in refused.err
    assert refused.out == ""


def test_every_problem_of_a_call_is_told_before_anything_is_planned(thalweg, example, tmp_path):
    words = ("-s", "nosuch", "--output", "bad.txt", "--option", "foo", "--current", "none.json")
    refused = thalweg("plan", "nope.yaml", "demo/network.yaml", *words, "--format", "json")
    assert refused.code == 2
    problems = json.loads(refused.out)["problems"]
    told = " ".join(problem["message"] for problem in problems)
    for part in ("nope.yaml", "nosuch", "bad.txt", "NAME=VALUE", "none.json"):
        assert part in told
    assert len(problems) == 5


def test_a_plan_that_cannot_be_saved_is_not_printed(thalweg, example):
    command = ("plan", "demo/app.yaml", "demo/network.yaml", "--format", "json")
    refused = thalweg(*command, "--output", "no/such/folder.json")
    assert refused.code == 2
    assert set(json.loads(refused.out)) == {"thalweg", "problems"}


def test_the_current_plan_must_be_of_the_same_application(thalweg, example):
    thalweg("plan", "demo/app.yaml", "demo/network.yaml", "-o", "plan.json")
    text = (example / "app.yaml").read_text()
    (example / "app.yaml").write_text(text.replace("application: taxi", "application: bus"))
    refused = thalweg("plan", "demo/app.yaml", "demo/network.yaml", "--current", "plan.json")
    assert refused.code == 2
    assert 'need a plan for the application "bus"' in refused.err


def test_applications_that_share_a_network_are_planned_together(thalweg, tmp_path):
    for app in (tw.scenarios.taxi_fares(), tw.scenarios.taxi_demand()):
        tw.save(app, tmp_path / f"{app.name}.yaml")
    tw.save(tw.scenarios.fog_cloud(3), tmp_path / "net.yaml")
    command = ("plan", "taxi-fares.yaml", "net.yaml", "--also", "taxi-demand.yaml", "-s", "tsoo")
    shown = thalweg(*command, "--format", "json")
    assert shown.code == 0
    fares, demand = json.loads(shown.out)["plans"]
    assert (fares["application"], demand["application"]) == ("taxi-fares", "taxi-demand")
    alone = json.loads(
        thalweg("plan", "taxi-demand.yaml", "net.yaml", "-s", "tsoo", "--format", "json").out
    )
    assert demand["estimate"]["usage"] > alone["estimate"]["usage"]
    table = thalweg(*command)
    assert "taxi-fares on" in table.out and "taxi-demand on" in table.out
    refused = thalweg(*command, "--output", "plan.json", "--current", "plan.json")
    assert refused.code == 2
    assert "--output" in refused.err and "--current" in refused.err
