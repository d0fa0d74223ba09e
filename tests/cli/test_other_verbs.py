import json
import os
import subprocess
import sys

import numpy as np
import pytest

import thalweg as tw


@pytest.fixture
def plan_file(thalweg, example):
    assert thalweg("plan", "demo/app.yaml", "demo/network.yaml", "-o", "plan.json").code == 0
    return "plan.json"


def test_validate_names_what_each_file_holds(thalweg, example, plan_file):
    shown = thalweg("validate", "demo/app.yaml", "demo/network.yaml", plan_file, "--format", "json")
    assert shown.code == 0
    assert [(row["kind"], row["holds"]) for row in json.loads(shown.out)["files"]] == [
        ("application", "9 operators, 9 streams"),
        ("network", "6 sites, 8 nodes"),
        ("plan", "11 instances by aels-rp-la-free"),
    ]


CHANGES = """\
thalweg: 1
changes:
  - {at: 10 s, node: cloud/vm, speed: 0.5}
  - {at: 20 s, link: [hub-east, cloud], speed: 0, loses: true}
  - {at: 30 s, rates: [{source: rides, site: hub-west, rate: 8000 events/s}]}
  - {at: 40 s, plan: plan.json}
"""


def test_validate_takes_changes_alone_and_with_what_they_are_for(thalweg, plan_file, tmp_path):
    (tmp_path / "changes.yaml").write_text(CHANGES)
    told = {"kind": "changes", "holds": "4 changes, the last one at 40 s", "file": "changes.yaml"}
    for others in ((), ("demo/network.yaml",), ("demo/app.yaml", "demo/network.yaml", plan_file)):
        shown = thalweg("validate", *others, "changes.yaml", "--format", "json")
        assert shown.code == 0, shown.err
        assert json.loads(shown.out)["files"][-1] == told


def test_validate_finds_a_plan_beside_changes_in_another_folder(thalweg, plan_file, tmp_path):
    (tmp_path / "demo" / "changes.yaml").write_text(CHANGES)
    refused = thalweg("validate", "demo/changes.yaml")
    assert refused.code == 2
    assert "demo/changes.yaml:6: changes[3].plan" in refused.err
    (tmp_path / "plan.json").rename(tmp_path / "demo" / "plan.json")
    assert "4 changes" in thalweg("validate", "demo/changes.yaml").out


@pytest.mark.parametrize(
    ("good", "bad", "told"),
    [
        ("cloud/vm", "cloud/wm", "changes.yaml:3: changes[0].node"),
        ("[hub-east, cloud]", "[hub-est, cloud]", "changes.yaml:4: changes[1].link"),
        ("source: rides", "source: drives", "changes.yaml:5: changes[2].rates"),
        ("plan: plan.json", "plan: plan.json, application: bus", "changes.yaml:6: changes[3]"),
        ("at: 10 s", "at: 10", "changes.yaml:3: changes[0].at"),
    ],
)
def test_validate_holds_changes_against_what_they_are_for(
    thalweg, plan_file, tmp_path, good, bad, told
):
    assert good in CHANGES
    (tmp_path / "changes.yaml").write_text(CHANGES.replace(good, bad))
    refused = thalweg("validate", "demo/app.yaml", "demo/network.yaml", "changes.yaml")
    assert refused.code == 2
    assert told in refused.err


def test_validate_refuses_changes_with_a_plan_for_another_network(thalweg, plan_file, tmp_path):
    (tmp_path / "changes.yaml").write_text(CHANGES)
    network = tmp_path / "demo" / "network.yaml"
    network.write_text(network.read_text().replace("network: city", "network: town"))
    refused = thalweg("validate", "demo/app.yaml", "demo/network.yaml", "changes.yaml")
    assert refused.code == 2
    assert 'changes.yaml:6: changes[3].plan: got "city"' in refused.err


def test_validate_tells_the_problems_of_all_files(thalweg, example):
    (example / "app.yaml").write_text("thalweg: 1\napplication: a\n")
    (example / "network.yaml").write_text("thalweg: 1\nnetwork: n\n")
    refused = thalweg("validate", "demo/app.yaml", "demo/network.yaml", "missing.yaml")
    assert refused.code == 2
    for file in ("demo/app.yaml", "demo/network.yaml", "missing.yaml"):
        assert file in refused.err


def test_validate_holds_a_plan_against_its_problem(thalweg, example, plan_file):
    text = (example / "network.yaml").read_text()
    (example / "network.yaml").write_text(text.replace("35.9 GIPS", "100 MIPS"))
    refused = thalweg("validate", "demo/app.yaml", "demo/network.yaml", plan_file)
    assert refused.code == 2
    assert "plan.json:6: feasible: got true" in refused.err
    assert "cloud/vm" in refused.err


@pytest.mark.parametrize(
    ("field", "forged", "told"),
    [
        ("aggregate_latency_s", 0.001, "estimate.aggregate_latency_s: got 0.001"),
        ("usage", 1.5, "estimate.usage: got 1.5"),
    ],
)
def test_validate_finds_forged_figures(thalweg, plan_file, tmp_path, field, forged, told):
    plan = json.loads((tmp_path / plan_file).read_text())
    plan["estimate"][field] = forged
    if plan["objective_name"] == field:
        (tmp_path / plan_file).write_text(json.dumps(plan))
        assert "objective: got" in thalweg("validate", plan_file).err
        plan["objective"] = forged
    (tmp_path / plan_file).write_text(json.dumps(plan))
    refused = thalweg("validate", "demo/app.yaml", "demo/network.yaml", plan_file)
    assert refused.code == 2
    assert told in refused.err


def test_validate_finds_a_forged_tier(thalweg, plan_file, tmp_path):
    text = (tmp_path / plan_file).read_text()
    (tmp_path / plan_file).write_text(text.replace('"tier": "cloud"', '"tier": "edge"'))
    refused = thalweg("validate", "demo/app.yaml", "demo/network.yaml", plan_file)
    assert refused.code == 2
    assert "cloud/vm in the site cloud of the tier cloud" in refused.err


def test_validate_takes_a_parquet_folder(thalweg, tmp_path):
    tw.save(tw.scenarios.cloud_edge(2, 3, 4), tmp_path / "net")
    assert "5 sites, 14 nodes" in thalweg("validate", "net").out


def test_explain_tells_why_for_all_or_one(thalweg, plan_file):
    everything = thalweg("explain", plan_file).out
    assert "clean runs on cloud/vm" in everything
    assert "driver-display runs on" in everything
    one = thalweg("explain", plan_file, "clean").out
    assert "clean runs on cloud/vm" in one
    assert "driver-display" not in one
    data = json.loads(thalweg("explain", plan_file, "clean", "--format", "json").out)
    assert [row["operator"] for row in data["reasons"]] == ["clean"]


def test_explain_knows_the_nearest_operator(thalweg, plan_file):
    refused = thalweg("explain", plan_file, "clan")
    assert refused.code == 2
    assert 'did you mean "clean"?' in refused.err


def test_diff_tells_moves_and_estimates(thalweg, example, plan_file, tmp_path):
    assert thalweg("diff", plan_file, plan_file).out == "no difference\n"
    text = (example / "network.yaml").read_text()
    second = text.replace(
        "nodes: [{name: vm, cpu", "nodes: [{name: vm2, cpu: 99 GIPS, memory: 12 GB}, {name: vm, cpu"
    )
    assert second != text
    (example / "network.yaml").write_text(second)
    thalweg("plan", "demo/app.yaml", "demo/network.yaml", "-o", "new.json")
    shown = thalweg("diff", plan_file, "new.json")
    assert shown.code == 0
    assert any(
        line.split()[:4] == ["move", "clean", "cloud/vm", "cloud/vm2"]
        for line in shown.out.splitlines()
    )
    change = json.loads(thalweg("diff", plan_file, "new.json", "--format", "json").out)
    assert "clean" in {move["operator"] for move in change["moved"]}
    assert "aggregate_latency_s" in change["estimates"]


def test_strategies_are_those_of_the_library(thalweg):
    assert (
        json.loads(thalweg("strategies", "--format", "json").out)["strategies"] == tw.strategies()
    )
    assert "cloud-only" in thalweg("strategies").out


@pytest.mark.parametrize("kind", ["application", "network", "plan", "workload", "changes"])
def test_schema_is_the_library_s(thalweg, kind):
    assert json.loads(thalweg("schema", kind).out) == tw.json_schema(kind)


def test_coordinates_reports_errors(thalweg, tmp_path):
    rng = np.random.default_rng(0)
    points = rng.uniform(0, 0.1, (30, 2))
    distance = np.sqrt(((points[:, None] - points[None]) ** 2).sum(-1)) + 0.004
    np.savez(tmp_path / "rtt.npz", rtt_s=distance)
    shown = thalweg("coordinates", "rtt.npz", "--format", "json", "--dimensions", "2")
    assert shown.code == 0
    report = json.loads(shown.out)
    assert report["nodes"] == 30
    assert report["median_relative_error"] < 0.05
    assert len(report["position_s"]) == 30
    assert thalweg("coordinates", "missing.npz").code == 2
    assert thalweg("coordinates", "rtt.npz", "--dimensions", "0").code == 2


@pytest.mark.parametrize(
    "words", [(), ("nothing",), ("plan",), ("plan", "a", "b", "--format", "xml"), ("schema", "x")]
)
def test_a_bad_call_leaves_with_2_and_no_traceback(thalweg, words):
    refused = thalweg(*words)
    assert refused.code == 2
    assert "Traceback" not in refused.err


def test_version_and_help(thalweg):
    assert thalweg("--version").out == f"thalweg {tw.__version__}\n"
    assert "coordinates" in thalweg("--help").out


def test_an_error_inside_is_told_without_a_traceback(thalweg, example, monkeypatch):
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("planted")

    monkeypatch.setattr("thalweg.plan", fail)
    shown = thalweg("plan", "demo/app.yaml", "demo/network.yaml")
    assert shown.code == 70
    assert "planted" in shown.err
    assert "Traceback" not in shown.err


def test_a_closed_pipe_is_no_error(example):
    command = f"{sys.executable} -m thalweg schema network | head -c 10"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False
    )
    assert done.stdout == '{\n  "$schem'[:10]
    assert "Traceback" not in done.stderr
    assert "error" not in done.stderr


def test_no_color_is_respected(example):
    environment = {**os.environ, "NO_COLOR": "1", "TERM": "xterm-256color"}
    words = ["plan", "demo/app.yaml", "demo/network.yaml"]
    # `script` gives the command a terminal, where colour would be used.
    done = subprocess.run(
        ["script", "-qec", " ".join([sys.executable, "-m", "thalweg", *words]), "/dev/null"],
        capture_output=True,
        text=True,
        env=environment,
        cwd=example.parent,
        check=True,
    )
    assert "cloud-only" in done.stdout
    assert "\x1b[3" not in done.stdout
