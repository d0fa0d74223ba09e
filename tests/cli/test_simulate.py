"""`thalweg simulate` on a fog and a cloud."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from generators.small import chain_problem
from thalweg import plan
from thalweg.files.save import save
from thalweg.model import Application, Limits, Operator
from thalweg.model.workload import Workload

CALL = ("simulate", "app.yaml", "net.yaml", "plan.json", "--for", "10")


@pytest.fixture
def town(thalweg, tmp_path):
    """An application, a network, two plans and another application with its plan."""
    problem = chain_problem(
        Operator(name="t", cpu_per_event=1e6, memory=1e3, state=1e4, replicable=True),
        rate=100.0,
        event_size=125.0,
        fogs=1,
        fog={"cpu_ips": 1e9},
        cloud={"cpu_ips": 1e10},
        limits=Limits(response_time_s=1.0),
    )
    app, net = problem.application, problem.network
    save(app, tmp_path / "app.yaml")
    save(net, tmp_path / "net.yaml")
    save(plan(app, net, "cloud-only"), tmp_path / "plan.json")
    save(plan(app, net, "fog-only"), tmp_path / "fog.json")
    other = Application(name="other", operators=app.operators, streams=app.streams)
    save(other, tmp_path / "other.yaml")
    save(plan(other, net, "cloud-only"), tmp_path / "other.json")
    load = Workload.of({100.0: {("s", "f1"): 50.0}, 105.0: {("s", "f1"): 150.0}})
    save(load, tmp_path / "load.csv")
    return tmp_path


def as_json(shown):
    assert shown.code == 0, shown.err
    return json.loads(shown.out)


def told(found):
    found.pop("wall_s")
    return found


def test_a_run_is_told_in_tables(thalweg, town):
    shown = thalweg(*CALL)
    assert shown.code == 0
    # The first time on a machine, loops are compiled.
    assert shown.err in ("", "compiling loops, once: they are kept for the next time\n")
    head = shown.out.splitlines()[0]
    assert head.startswith("app on net by cloud-only: 10 s (1 s of warm-up), seed 0: ")
    for part in (
        "at the sinks, after the warm-up",
        "estimated and measured",
        "operators, the busiest first",
        "links, the busiest first",
        "WAN f1 → dc",
        "uplink B",
    ):
        assert part in shown.out
    last = shown.out.splitlines()[-1]
    assert " born = " in last
    assert "±" not in shown.out


def test_a_run_is_told_as_json_and_the_same_again(thalweg, town):
    found = as_json(thalweg(*CALL, "--format", "json", "--seed", "5", "--warm-up", "2"))
    assert (found["thalweg"], found["seed"], found["warm_up_s"]) == (1, 5, 2.0)
    assert found["conserved"] is True
    assert found["totals"]["born"] == pytest.approx(1000, abs=150)
    again = as_json(thalweg(*CALL, "--format", "json", "--seed", "5", "--warm-up", "2"))
    assert told(again) == told(found)


def test_several_runs_have_intervals(thalweg, town):
    shown = thalweg(*CALL, "--replications", "3")
    assert shown.code == 0
    assert "× 3 runs" in shown.out
    assert "±" in shown.out
    found = as_json(thalweg(*CALL, "--replications", "3", "--format", "json"))
    assert found["replications"] == 3
    assert found["latency"][0]["latency_s_ci"] > 0


def test_changes_come_from_a_file_and_are_told(thalweg, town):
    (town / "changes.yaml").write_text(
        """\
thalweg: 1
changes:
  - {at: 2 s, rates: [{source: s, site: f1, rate: 200 /s}]}
  - {at: 4 s, plan: fog.json}
  - {at: 6 s, node: dc/n, speed: 0, loses: true}
  - {at: 8 s, node: dc/n, speed: 1}
"""
    )
    shown = thalweg(*CALL, "--changes", "changes.yaml")
    assert shown.code == 0, shown.err
    assert "what changed (first run)" in shown.out
    assert "what moved (first run)" in shown.out
    assert "dc/n down" in shown.out
    found = as_json(thalweg(*CALL, "--changes", "changes.yaml", "--format", "json"))
    assert [part["begin_s"] for part in found["segments"]] == [0.0, 2.0, 4.0, 6.0, 8.0]
    assert {"t@f1"} <= {move["operator"] for move in found["moves"]}
    assert found["conserved"] is True


def test_a_workload_begins_with_its_first_moment(thalweg, town):
    found = as_json(thalweg(*CALL, "--workload", "load.csv", "--format", "json"))
    assert found["totals"]["born"] == pytest.approx(250 + 750, abs=150)
    first, second = found["segments"]
    assert (first["end_s"], second["cause"]) == (5.0, "rates")
    assert second["events"] > 2 * first["events"]


def test_another_application_runs_beside(thalweg, town):
    found = as_json(thalweg(*CALL, "--also", "other.yaml:other.json", "--format", "json"))
    assert found["applications"] == ["app", "other"]
    assert [row["name"] for row in found["latency"]] == ["app", "other"]
    alone = as_json(thalweg(*CALL, "--format", "json"))
    busy = {row["name"]: row["utilisation"] for row in found["links"]}
    before = {row["name"]: row["utilisation"] for row in alone["links"]}
    assert busy["WAN f1 → dc"] == pytest.approx(2 * before["WAN f1 → dc"], rel=0.2)


def test_a_strategy_watches(thalweg, town):
    shown = thalweg(*CALL, "--strategy", "atsoo", "--interval", "2 s")
    assert shown.code == 0, shown.err
    assert "what the strategy saw (first run)" in shown.out
    found = as_json(thalweg(*CALL, "--strategy", "atsoo", "--interval", "2 s", "--format", "json"))
    assert [row["at_s"] for row in found["decisions"]] == [2.0, 4.0, 6.0, 8.0]


def test_several_rates_are_a_row_each(thalweg, town):
    call = (*CALL, "--vary", "rates=0,1,20")
    shown = thalweg(*call)
    assert shown.code == 0, shown.err
    names, *rows = shown.out.splitlines()
    assert names.startswith("rate factor")
    # What is too long for its column goes on below.
    begins = [row for row in rows if not row.startswith(" ")]
    assert [row.split()[0] for row in begins] == ["0", "1", "20"]
    assert "WAN f1 →" in begins[2]  # 2 Mbps on a link of 1.
    found = as_json(thalweg(*call, "--format", "json"))
    assert [point["rate_factor"] for point in found["points"]] == [0.0, 1.0, 20.0]
    assert found["points"][0]["totals"]["born"] == 0
    assert found["points"][2]["unstable"][0]["name"] == "WAN f1 → dc"
    plain = as_json(thalweg(*CALL, "--format", "json"))
    one = found["points"][1]
    del one["rate_factor"]
    assert told(one) == told(plain)


def test_a_rate_factor_scales_a_workload_too(thalweg, town):
    call = (*CALL, "--workload", "load.csv", "--vary", "rates=2", "--format", "json")
    assert as_json(thalweg(*call))["totals"]["born"] == pytest.approx(2000, abs=250)


def test_a_link_that_cannot_keep_up_is_warned_of_and_leaves_with_0(thalweg, town):
    shown = thalweg(*CALL, "--vary", "rates=20")
    assert shown.code == 0
    assert "unstable: WAN f1 → dc gets" in shown.out


def test_arrivals_services_and_cpus_can_be_chosen(thalweg, town):
    found = as_json(
        thalweg(
            *CALL, "--arrivals", "on-off", "--burst", "500 ms:2 s", "--service", "deterministic",
            "--cpu", "whole", "--even", "--format", "json",
        )
    )  # fmt: skip
    (physics,) = found["physics"]
    assert (physics["arrivals"], physics["service"]) == ("onoff", "deterministic")
    assert (physics["cpu"], physics["even"]) == ("whole", True)
    even = as_json(thalweg(*CALL, "--arrivals", "periodic", "--format", "json"))
    assert even["totals"]["born"] == 1000


def test_tables_and_a_drawing_are_kept(thalweg, town):
    pytest.importorskip("matplotlib")
    shown = thalweg(*CALL, "--output", "found", "--plot", "found.png")
    assert shown.code == 0
    assert shown.err.splitlines() == ["wrote found", "wrote found.png"]
    assert (town / "found.png").read_bytes().startswith(b"\x89PNG")
    manifest = json.loads((town / "found" / "manifest.json").read_text())
    assert {"app.yaml", "net.yaml", "plan.json"} <= set(manifest["inputs"])
    rows = pq.read_table(town / "found" / "operators.parquet").to_pylist()
    assert {row["name"] for row in rows} == {"s@f1", "t", "z"}
    assert sorted(p.name for p in town.iterdir() if p.name.startswith(".")) == []


def test_several_rates_are_kept_in_a_folder_each(thalweg, town):
    shown = thalweg(*CALL, "--output", "found", "--vary", "rates=1,2.5")
    assert shown.code == 0
    assert sorted(path.name for path in (town / "found").iterdir()) == ["rate-1", "rate-2.5"]


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (("--for", "0"), ["--for", "a duration > 0 s"]),
        (("--for", "nan"), ["--for"]),
        (("--for", "1e10"), ["--for"]),
        (("--replications", "0", "--seed", "-1"), ["replications", "seed"]),
        (("--warm-up", "10"), ["--warm-up"]),
        (("--vary", "rates=-1"), ["--vary", "a number from 0 to 1e+09"]),
        (("--vary", "rates=nan"), ["--vary"]),
        (("--vary", "rates=1e9"), ["hops"]),
        (("--strategy", "atso"), ['did you mean "atsoo"?']),
        (("--strategy", "atsoo", "--interval", "0 s"), ["interval"]),
        (("--interval", "soon"), ["--interval"]),
        (("--arrivals", "on-off", "--burst", "1 s"), ["--burst"]),
        (("--arrivals", "on-off", "--burst", "0 s:1 s"), ["on_s"]),
        (("--arrivals", "sometimes"), ["sometimes"]),
        (("--also", "other.yaml"), ["--also", "APP:PLAN"]),
        (("--also", "app.yaml:plan.json"), ["a name of its own"]),
        (("--also", "other.yaml:plan.json"), ["application"]),
        (("--workload", "missing.csv"), ["missing.csv"]),
        (("--changes", "missing.yaml"), ["missing.yaml"]),
        (("--plot", "found.gif"), ["found.gif"]),
    ],
)
def test_what_makes_no_sense_is_refused_without_a_traceback(thalweg, town, words, parts):
    refused = thalweg(*CALL, *words)
    assert refused.code == 2
    assert refused.out == ""
    assert "Traceback" not in refused.err
    for part in parts:
        assert part in refused.err


def test_every_problem_of_a_call_is_told_at_once(thalweg, town):
    refused = thalweg(
        "simulate", "app.yaml", "missing.yaml", "lacking.json", "--vary", "rates=-1",
        "--strategy", "atsoo", "--interval", "soon", "--plot", "found.gif", "--also", "other",
        "--workload", "none.csv", "--changes", "none.yaml",
    )  # fmt: skip
    assert refused.code == 2
    assert "Traceback" not in refused.err
    for part in (
        "missing.yaml",
        "lacking.json",
        "--vary",
        "--interval",
        "found.gif",
        "--also",
        "none.csv",
        "none.yaml",
        "8 problems",
    ):
        assert part in refused.err


def test_changes_that_do_not_fit_are_told_with_their_lines(thalweg, town):
    (town / "changes.yaml").write_text(
        """\
thalweg: 1
changes:
  - {at: 20 s, node: f1/n, speed: 0}
  - {at: 2 s, node: f7/n, speed: 0}
  - {at: 2 s, link: [f1, f7], speed: 0}
  - {at: 2 s, plan: other.json}
"""
    )
    refused = thalweg(*CALL, "--changes", "changes.yaml")
    assert refused.code == 2
    for part in ("changes.yaml:3", "changes.yaml:4", "changes.yaml:5", "changes.yaml:6", "f7"):
        assert part in refused.err


def test_a_plan_of_another_application_is_told_with_its_file(thalweg, town):
    refused = thalweg("simulate", "app.yaml", "net.yaml", "other.json")
    assert refused.code == 2
    assert "other.json" in refused.err
    assert 'a plan for the application "app"' in refused.err


def test_a_folder_that_cannot_be_is_refused(thalweg, town):
    (town / "taken").write_text("")
    refused = thalweg(*CALL, "--output", "taken")
    assert refused.code == 2
    assert "taken" in refused.err
    assert "Traceback" not in refused.err


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_births_and_times_of_service_come_from_tables(thalweg, town, ending):
    births = {"source": ["s", "s", "s"], "site": ["f1", "f1", "f1"], "time_s": [4.0, 2.0, 3.0]}
    times = {"operator": ["t", "t"], "seconds": [0.5, 1.5]}
    for name, columns in (("births", births), ("times", times)):
        table = pa.table(columns)
        if ending == "csv":
            pa_csv.write_csv(table, town / f"{name}.csv")
        else:
            pq.write_table(table, town / f"{name}.parquet")
    names = ("--trace", f"births.{ending}", "--service-times", f"times.{ending}")
    found = as_json(thalweg(*CALL, *names, "--format", "json"))
    assert found["totals"]["born"] == 3
    assert found["physics"][0]["arrivals"] == "dict"
    (row,) = [row for row in found["operators"] if row["name"] == "t"]
    # 0.1 ms in the mean in the cloud: half of it, or one and a half times it.
    assert 0.5e-4 <= row["latency_s"] <= 1.5e-4


def test_bad_rows_of_a_table_are_told_with_their_lines(thalweg, town):
    (town / "births.csv").write_text("source,site,time_s\ns,f1,1 s\ns,f1,-2\ns,f1,3\n")
    (town / "times.csv").write_text("operator,secs\nt,1\n")
    shown = thalweg(*CALL, "--trace", "births.csv", "--service-times", "times.csv")
    assert shown.code == 2
    for part in ("births.csv:2", "births.csv:3", "no unit"):
        assert part in shown.err
    shown = thalweg(*CALL, "--service-times", "times.csv")
    assert shown.code == 2
    assert "a column called seconds" in shown.err
    shown = thalweg(*CALL, "--trace", "births.txt")
    assert (shown.code, "ends in .csv or .parquet" in shown.err) == (2, True)
