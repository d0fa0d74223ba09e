"""`thalweg mobility` on small generated cities."""

from __future__ import annotations

import json
from itertools import pairwise

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from thalweg.files.routes_reader import load_routes
from thalweg.files.save import save
from thalweg.files.tracks_reader import load_tracks
from thalweg.files.transitions_table import save_transitions
from thalweg.migration.connections import Connections
from thalweg.migration.predictors.learned import Transitions
from thalweg.model import Application, Operator, Pin, Stream
from thalweg.scenarios import broker_tree, cloud_edge, nearby_friends
from thalweg.scenarios.vehicles import city_vehicles

FEW = ("--vehicles", "25", "--for", "90")


def as_json(shown):
    assert shown.code == 0, shown.err
    return json.loads(shown.out)


@pytest.fixture
def trace(thalweg, tmp_path):
    """A folder with a generated trace."""
    shown = thalweg("mobility", "trace", *FEW, "--seed", "3", "--output", "city")
    assert shown.code == 0, shown.err
    return tmp_path / "city"


def test_a_trace_is_written_and_read_back(thalweg, trace):
    tracks, routes = city_vehicles(25, 90, seed=3)
    found = load_tracks(trace / "tracks.parquet")
    assert found.names == tracks.names
    assert found.tracks.x_m.tolist() == tracks.tracks.x_m.tolist()
    assert load_routes(trace / "routes.parquet").edge.tolist() == routes.edge.tolist()
    told = as_json(
        thalweg(
            "mobility", "trace", *FEW, "--seed", "3", "--output", "more/city", "--format", "json"
        )
    )
    assert (told["vehicles"], told["positions"]) == (25, tracks.tracks.user.size)
    for name in ("tracks", "routes", "edges"):
        again = trace.parent / "more" / "city" / f"{name}.parquet"
        assert again.read_bytes() == (trace / f"{name}.parquet").read_bytes()


def test_a_trace_fits_the_brokers_of_a_network(thalweg, tmp_path):
    save(broker_tree(area_m=(100.0, 200.0, 1100.0, 900.0)), tmp_path / "net.yaml")
    shown = thalweg("mobility", "trace", *FEW, "--network", "net.yaml", "--output", "city")
    assert shown.code == 0, shown.err
    rows = load_tracks(tmp_path / "city" / "tracks.parquet").tracks
    assert 100 <= rows.x_m.min() < rows.x_m.max() <= 1100
    assert 200 <= rows.y_m.min() < rows.y_m.max() <= 900


def test_every_predictor_with_input_is_asked(thalweg, trace):
    shown = thalweg("mobility", "predict", *FEW, "--ahead", "5", "--ahead", "20 s")
    assert shown.code == 0, shown.err
    assert shown.out.splitlines()[0].split()[:2] == ["predictor", "ahead"]
    asked = [line.split()[0] for line in shown.out.splitlines()[1:]]
    assert asked[::2] == ["stays", "perfect", "navigation", "dead-reckoning"]
    assert "without learned: give --learn-from" in shown.err
    call = ("mobility", "predict", "--tracks", "city/tracks.parquet", "--format", "json")
    found = as_json(thalweg(*call, "--learn-from", "city/tracks.parquet"))["hit_rates"]
    names = dict.fromkeys(rate["predictor"] for rate in found)
    assert list(names) == ["stays", "perfect", "dead-reckoning", "learned"]
    assert {r["hits"] for r in found if r["predictor"] == "perfect" and r["moments"]} == {1.0}


def test_a_plan_says_where_when_and_why(thalweg, tmp_path):
    call = ("mobility", "plan", *FEW, "--instance", "2", "--start", "cloud")
    shown = thalweg(*call, "--output", "plan.json")
    assert shown.code == 0, shown.err
    assert "wrote plan.json" in shown.err
    lines = shown.out.splitlines()
    assert lines[0].startswith("position: v")
    assert lines[0].endswith("; perfect knowledge, weighted-sum")
    assert "distance is at cloud at " in shown.out
    assert "Expected cost " in shown.out
    told = as_json(thalweg(*call, "--format", "json"))
    assert json.loads((tmp_path / "plan.json").read_text()) == told
    assert [plan["operator"] for plan in told["plans"]] == ["distance", "friends"]
    for plan in told["plans"]:
        hosts = [step["host"] for step in plan["steps"]]
        changes = sum(a != b for a, b in pairwise(hosts))
        assert (hosts[0], changes) == ("cloud", len(plan["moves"]))
    one = as_json(thalweg(*call, "--operator", "friends", "--format", "json"))
    assert one["plans"] == told["plans"][1:]


def test_a_plan_between_named_vehicles_is_that_of_their_instance(thalweg):
    call = ("mobility", "plan", *FEW, "--start", "cloud", "--format", "json", "--horizon", "20")
    drawn = as_json(thalweg(*call, "--instance", "1"))
    users = drawn["users"]
    named = ("--source", users["position"], "--consumer", users["consumer"])
    assert as_json(thalweg(*call, *named)) == drawn
    later = as_json(thalweg(*call, *named, "--at", "80 s", "--step", "2"))
    assert [step["time_s"] for step in later["plans"][0]["steps"][:2]] == [80.0, 82.0]


def test_a_latency_that_nobody_can_keep_is_told_by_the_plan(thalweg, tmp_path):
    save(nearby_friends(latency_s=1e-4), tmp_path / "hurry.yaml")
    shown = thalweg("mobility", "plan", "hurry.yaml", *FEW, "--start", "cloud", "--horizon", "10")
    assert shown.code == 3
    assert "Violated: it exceeds its latency share by " in shown.out


def test_a_run_tells_how_many_plans_are_late(thalweg, tmp_path):
    save(nearby_friends(latency_s=1e-4), tmp_path / "hurry.yaml")
    call = ("mobility", "run", "hurry.yaml", *FEW, "--instances", "2", "--horizon", "10")
    shown = thalweg(*call, "--approach", "migcep")
    assert shown.code == 0, shown.err
    assert shown.out.splitlines()[-1].startswith("migcep: ")
    assert shown.out.endswith(" plans could not keep the latency\n")


def test_a_run_compares_approaches(thalweg):
    call = ("mobility", "run", *FEW, "--instances", "10", "--seed", "4")
    shown = thalweg(*call)
    assert shown.code == 0, shown.err
    lines = shown.out.splitlines()
    assert lines[0] == ("nearby-friends: 10 instances between 25 vehicles on 21 brokers, 90 s")
    assert [line.split()[0] for line in lines[2:5]] == ["static", "greedy", "migcep"]
    more = (*call, "--approach", "lookahead-optimal", "--approach", "static", "--format", "json")
    found = as_json(thalweg(*more))
    best, static = found["approaches"]
    assert (best["approach"], static["relative_to_static"]) == ("lookahead-optimal", 1.0)
    assert best["mean_bdp_bytes"] <= static["mean_bdp_bytes"]
    assert static["migration_byte_s"] == static["executed"]["moves"] == 0
    for told in (best, static):
        assert told["executed"]["lost"] == told["executed"]["duplicated"] == 0
        assert told["executed"]["delivered"] > 0
    again = as_json(thalweg(*more))
    for told in (*found["approaches"], *again["approaches"]):
        assert told.pop("wall_s") >= 0
    assert again == found


def test_each_knowledge_goes_with_each_policy(thalweg, trace):
    files = ("--tracks", "city/tracks.parquet", "--routes", "city/routes.parquet")
    call = ("mobility", "run", *files, "--instances", "4", "--approach", "migcep")
    kinds = ("--knowledge", "navigation", "--knowledge", "learned", "--policy", "temporal")
    found = as_json(
        thalweg(
            *call, *kinds, "--policy", "naive", "--learn-from", "city/tracks.parquet",
            "--range", "2 km", "--horizon", "20", "--format", "json",
        )
    )  # fmt: skip
    assert [told["approach"] for told in found["approaches"]] == [
        "migcep navigation temporal",
        "migcep navigation naive",
        "migcep learned temporal",
        "migcep learned naive",
    ]


def test_a_run_is_saved_with_a_manifest_and_a_page(thalweg, trace, tmp_path):
    call = ("mobility", "run", "--tracks", "city/tracks.parquet", "--instances", "6")
    shown = thalweg(*call, "--output", "out", "--plot", "city.html", "--format", "json")
    told = as_json(shown)
    assert "wrote city.html" in shown.err
    assert "wrote out/manifest.json" in shown.err
    for approach in told["approaches"]:
        folder = tmp_path / "out" / approach["approach"]
        costs = pq.read_table(folder / "costs.parquet")
        assert costs.num_rows == 6
        assert pa.compute.sum(costs["placement_byte_s"]).as_py() == pytest.approx(
            approach["placement_byte_s"]
        )
        moves = pq.read_table(folder / "moves.parquet")
        assert moves.num_rows == approach["executed"]["moves"]
        assert pq.read_table(folder / "stays.parquet").num_rows == 12 + moves.num_rows
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert list(manifest["inputs"]) == ["city/tracks.parquet"]
    assert manifest["settings"]["range_m"] is None
    assert manifest["approaches"] == told["approaches"]
    page = (tmp_path / "city.html").read_bytes()
    assert page.startswith(b"<!DOCTYPE html>")
    assert thalweg(*call, "--plot", "city.html").code == 0
    assert (tmp_path / "city.html").read_bytes() == page


@pytest.mark.parametrize(
    ("words", "problems"),
    [
        (("plan", "--source", "v1", "--consumer", "v100"), ['got "v100"', 'did you mean "v10"']),
        (("plan", "--source", "v1"), ["--consumer: got nothing"]),
        (("plan", "--source", "v1", "--consumer", "v2", "--instance", "0"), ["--instance: got 0"]),
        (("plan", "--operator", "frends"), ['--operator: got "frends"', 'mean "friends"']),
        (("plan", "--start", "clod"), ['--start: got "clod"', 'mean "cloud"']),
        (("plan", "--at", "5000"), ["--at: got 5000.0, need from "]),
        (("plan", "--instance", "25"), ["--instance: got 25, need a number from 0 to 24"]),
        (("plan", "--knowledge", "learned"), ["--knowledge: got", "give --learn-from"]),
        (
            ("run", "--policy", "nave", "--knowledge", "perfekt", "--approach", "gredy"),
            ['--policy: got "nave"', 'mean "naive"', 'mean "perfect"', 'mean "greedy"'],
        ),
        (
            ("run", "--step", "0.5 s", "--horizon", "0", "--range", "2 kg", "--decay", "soon"),
            ["--step: got", "--horizon: got 0", '--range: got "2 kg"', '--decay: got "soon"'],
        ),
        (("run", "--instances", "0", "--plot", "x.txt"), ["--instances: got 0", "x.txt: got"]),
        (("run", "--routes", "r.parquet"), ["--routes: got", "--tracks"]),
        (("run", "no.yaml", "none.yaml"), ["no.yaml: got nothing", "none.yaml: got nothing"]),
        (("predict", "--ahead", "0.5", "--interval", "10"), ["--ahead: got 0.5"]),
        (("predict", "--learn-from", "no.parquet"), ["no.parquet: got nothing"]),
        (("trace", "--output", "t", "--seed", "-1"), ["--seed: got -1"]),
    ],
)  # fmt: skip
def test_bad_calls_are_told_in_words(thalweg, words, problems):
    shown = thalweg("mobility", *words, *FEW)
    assert shown.code == 2, shown.out
    for problem in problems:
        assert problem in shown.err
    assert "Traceback" not in shown.err


def test_navigation_without_routes_is_refused(thalweg, trace):
    call = ("mobility", "plan", "--tracks", "city/tracks.parquet", "--knowledge", "navigation")
    shown = thalweg(*call, "--format", "json")
    assert shown.code == 2
    (problem,) = json.loads(shown.out)["problems"]
    assert problem["path"] == "--knowledge"
    assert problem["hint"].startswith("give --routes")


def test_a_network_that_is_no_tree_is_refused(thalweg, tmp_path):
    save(cloud_edge(2, 3, 2), tmp_path / "net.yaml")
    save(nearby_friends(), tmp_path / "app.yaml")
    shown = thalweg("mobility", "run", "app.yaml", "net.yaml", *FEW)
    assert shown.code == 2
    assert "net.yaml: network: got " in shown.err
    assert "need a tree of sites" in shown.err


def test_an_application_without_operators_is_refused(thalweg, tmp_path):
    pin = Pin(tier="fog")
    app = Application(
        name="direct",
        operators=[
            Operator(name="s", kind="source", rate=1.0, event_size=10.0, pin=pin),
            Operator(name="k", kind="sink", pin=pin),
        ],
        streams=[Stream(source="s", target="k")],
    )
    save(app, tmp_path / "app.yaml")
    shown = thalweg("mobility", "run", "app.yaml", *FEW)
    assert shown.code == 2
    assert "app.yaml: operators: got " in shown.err


def test_a_trace_outside_of_the_brokers_is_refused(thalweg, trace, tmp_path):
    save(broker_tree(area_m=(0.0, 0.0, 500.0, 500.0)), tmp_path / "net.yaml")
    save(nearby_friends(), tmp_path / "app.yaml")
    shown = thalweg("mobility", "run", "app.yaml", "net.yaml", "--tracks", "city/tracks.parquet")
    assert shown.code == 2
    assert "city/tracks.parquet: tracks: got " in shown.err
    assert "need positions within 50 m of the brokers' areas" in shown.err


def test_bad_hand_overs_are_told_before_anything_starts(thalweg, trace):
    pytest.importorskip("pyspark")
    call = ("mobility", "handover", "city/tracks.parquet", "log")
    shown = thalweg(*call, "--move", "soon", "--move", "5 kg=broker-b", "--from", "900")
    assert shown.code == 2
    for problem in ('--move: got "soon"', '--move: got "5 kg"', "--from, --until: got"):
        assert problem in shown.err
    shown = thalweg(*call, "--move", "30=broker-c", "--until", "60")
    assert shown.code == 2
    assert 'got "broker-c"' in shown.err
    assert not (trace.parent / "log").exists()


def test_a_hand_over_tells_its_report(thalweg, trace, monkeypatch):
    pytest.importorskip("pyspark")
    from thalweg.spark.mobility import handover
    from thalweg.spark.mobility.report import EventCounts, HandOverReport

    asked = {}

    def pretend(moves, tracks, **options):
        asked.update(options, moves=moves, last_s=float(tracks.time_s.max()))
        options["on_step"](1.5, "prepare")
        return HandOverReport(
            sites=options["sites"], vehicles=25, window_s=5.0, speedup=2.0, seconds=4.0, moves=(),
            events=EventCounts(sent=10, delivered=9, lost=1, duplicated=0), outputs_equal=True,
            state_equal=True, state_fingerprint="", steady_pause_s=None,
        )  # fmt: skip

    monkeypatch.setattr(handover, "hand_over", pretend)
    call = ("mobility", "handover", "city/tracks.parquet", "--move", "30 s=broker-b")
    shown = thalweg(*call, "log", "--until", "1 min", "--speedup", "2")
    assert shown.code == 1
    assert "1 lost, 0 twice" in shown.out
    assert "1.5 s  prepare" in shown.err
    assert asked["moves"] == [(30.0, "broker-b")]
    assert (asked["last_s"], asked["speedup"], asked["lead_s"]) == (60.0, 2.0, None)


def count_here(paths, brokers, *, into, step_s, master):
    """Instead of Spark: the same counts, in this process."""
    assert (len(paths), step_s, master) == (1, 1.0, None)
    past = load_tracks(paths[0])
    found = Transitions.of(Connections.of(past.names, past.tracks, brokers), brokers)
    save_transitions(found, into)
    return found


@pytest.mark.parametrize(
    "on_spark", [False, pytest.param(True, marks=[pytest.mark.jvm, pytest.mark.slow])]
)
def test_what_is_learned_is_used(thalweg, trace, monkeypatch, on_spark):
    pytest.importorskip("pyspark")
    from thalweg.spark.transitions import count

    if not on_spark:
        monkeypatch.setattr(count, "count_transitions", count_here)
    shown = thalweg("mobility", "learn", "city/tracks.parquet", "--output", "past.parquet")
    assert shown.code == 0, shown.err
    assert shown.out.splitlines()[1].split()[:2] == ["leaf", "stays"]
    assert "wrote past.parquet" in shown.err
    call = ("mobility", "predict", "--tracks", "city/tracks.parquet", "--format", "json")
    by_spark = as_json(thalweg(*call, "--learn-from", "past.parquet"))
    assert by_spark == as_json(thalweg(*call, "--learn-from", "city/tracks.parquet"))


def test_bad_pasts_are_refused_before_spark_starts(thalweg):
    shown = thalweg("mobility", "learn", "no.parquet", "--output", "past.csv", "--step", "x")
    assert shown.code == 2
    for problem in ("past.csv: got", 'TRACKS: got "no.parquet"', '--step: got "x"'):
        assert problem in shown.err
