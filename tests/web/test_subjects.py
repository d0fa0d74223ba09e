"""What subjects answer: scenes, frames, reasons, what-ifs; against what the model itself says."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import thalweg as tw
from thalweg.errors import InvalidInput
from thalweg.model import Problem
from thalweg.web.grouping import Grouping
from thalweg.web.opening import open_subjects
from thalweg.web.picture import Picture, sites_in_use
from thalweg.web.question import Question
from thalweg.web.subject import NotOffered, UnknownName
from thalweg.web.subjects.plan import PlanSubject


@pytest.fixture(scope="module")
def taxi():
    app, net = tw.scenarios.small_taxi(), tw.scenarios.small_city()
    return app, net, tw.plan(app, net, "cloud-only")


@pytest.fixture
def subject(taxi):
    return PlanSubject(*taxi)


def test_a_scene_is_plain_data_with_every_site_operator_and_link(taxi, subject):
    app, net, _ = taxi
    scene = json.loads(json.dumps(subject.scene(), allow_nan=False))
    assert [s["name"] for s in scene["sites"]] == list(net.site_names)
    assert [o["name"] for o in scene["operators"]] == [o.name for o in app.operators]
    assert {frozenset((link["a"], link["b"])) for link in scene["links"]} == {
        frozenset(pair)
        for pair in (
            ("station-rank", "hub-centre"),
            ("airport-rank", "hub-east"),
            ("hub-west", "cloud"),
            ("hub-centre", "cloud"),
            ("hub-east", "cloud"),
        )
    }
    assert scene["left_out"] == ""


def test_a_frame_says_what_the_formulas_say(taxi, subject):
    app, net, plan = taxi
    (frame,) = subject.history()["frames"]
    assert frame["gauges"]["uplink_bps"] == pytest.approx(plan.estimate.uplink_bps)
    assert frame["gauges"]["response_time_s"] == pytest.approx(plan.estimate.response_time_s)
    births = Problem(application=app, network=net).births
    assert frame["gauges"]["events_in_per_s"] == pytest.approx(births.rate.sum())
    up = sum(link["bps"] for ends, link in frame["links"].items() if ends.endswith(">cloud"))
    assert up == pytest.approx(plan.estimate.uplink_bps)
    assert set(frame["sites"]) == set(net.site_names)


def test_chips_are_the_placement(taxi, subject):
    _, _, plan = taxi
    placement = subject.history()["placements"]["plan"]
    shown = {(chip["operator"], chip["site"]): chip["count"] for chip in placement["instances"]}
    wanted = {}
    for row in plan.to_dict()["placement"]:
        key = (row["operator"], row["site"])
        wanted[key] = wanted.get(key, 0) + 1
    assert shown == wanted
    assert placement["changed"] == []


def test_reasons_are_those_of_the_plan(taxi, subject):
    told = subject.why(operator="busy-zones", site="cloud", link="", placement="")
    assert told["title"] == "busy-zones at cloud"
    assert "the only node in cloud" in "\n".join(told["why"])
    assert ["instances", "1"] in told["facts"]
    link = subject.why(operator="", site="", link="hub-west>cloud", placement="")
    assert any(line.startswith("rides → parse") for line in link["why"])
    site = subject.why(operator="", site="cloud", link="", placement="")
    assert "dashboard" in site["why"][0]
    for wrong in (
        {"operator": "nobody"},
        {"site": "nowhere"},
        {"link": "a>b"},
        {},
    ):
        asked = {"operator": "", "site": "", "link": "", "placement": "", **wrong}
        with pytest.raises(UnknownName):
            subject.why(**asked)


def test_a_surge_violates_and_a_what_if_tells_so(taxi, subject):
    told = subject.ask(Question(rates={("rides", "hub-east"): 30_000.0}))
    assert any("uplink" in line for line in told["after"]["violations"])
    assert not told["applicable"]
    assert "thalweg run" in told["why_not"]
    calm = subject.ask(Question())
    assert calm["after"]["violations"] == []
    assert calm["moves"] == []


def test_a_site_that_is_down_gets_no_operator(taxi):
    app, net = tw.scenarios.taxi_demand(), tw.scenarios.fog_cloud(4)
    subject = PlanSubject(app, net, tw.plan(app, net, "fog-only"))
    before = {c["site"] for c in subject.history()["placements"]["plan"]["instances"]}
    assert "fog-2" in before
    told = subject.ask(Question(down=("fog-2",), strategy="atsoo"))
    kinds = {o.name: o.kind for o in app.operators}
    there = {
        chip["operator"]
        for chip in told["placement"]["instances"]
        if chip["site"] == "fog-2" and kinds[chip["operator"]] != "source"
    }
    assert there == set()
    assert {m["before"] for m in told["moves"] if m["kind"] == "stop"} & {"fog-2"}


def test_wrong_questions_are_told_all_at_once(subject):
    asked = Question(rates={("rides", "nowhere"): 1.0}, down=("hub-wset",), strategy="")
    with pytest.raises(InvalidInput) as told:
        subject.ask(asked)
    assert len(told.value.defects) == 2
    assert "hub-west" in str(told.value)
    with pytest.raises(InvalidInput):
        subject.ask(Question(strategy="no-such"))


def test_strategies_side_by_side_with_refusals(subject):
    told = subject.compare(("cloud-only", "aels", "tsoo"))
    rows = {row["strategy"]: row for row in told["rows"]}
    assert list(rows) == ["the plan shown", "cloud-only", "aels", "tsoo"]
    assert [name for name, row in rows.items() if row["running"]] == ["the plan shown"]
    # Both have the same latency, so both are the best.
    assert [name for name, row in rows.items() if row["best"]] == ["cloud-only", "aels"]
    assert told["best"] == "cloud-only"
    assert rows["aels"]["placement"]["instances"]
    json.dumps(told, allow_nan=False)


def test_what_a_plan_does_not_have_is_not_offered(subject):
    for ask in (subject.city, subject.results, subject.rollback, lambda: subject.apply("w1")):
        with pytest.raises(NotOffered):
            ask()


def test_large_networks_are_shown_together_and_small():
    net = tw.scenarios.cloud_edge(clouds=100, sites=400, devices_per_site=50, seed=0)
    app = tw.scenarios.random_application("large-1", net, seed=3)
    subject = PlanSubject(app, net, tw.plan(app, net, "aels-rp-la"))
    scene, history = subject.scene(), subject.history()
    assert len(scene["sites"]) <= 130
    assert sum(site["members"] for site in scene["sites"]) == net.site_count
    assert len(json.dumps(scene)) + len(json.dumps(history)) < 200_000
    assert f"{net.node_count:,} nodes" in scene["left_out"]
    shown = {site["name"] for site in scene["sites"]}
    (placement,) = history["placements"].values()
    assert {chip["site"] for chip in placement["instances"]} <= shown


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.integers(1, 12))
def test_grouping_loses_no_site_and_no_bit(seed, most):
    rng = np.random.default_rng(seed)
    net = tw.scenarios.fog_cloud(int(rng.integers(2, 20)))
    app = tw.scenarios.taxi_demand()
    plan = tw.plan(app, net, str(rng.choice(["cloud-only", "fog-only", "atsoo"])))
    problem = Problem(application=app, network=net)
    use = sites_in_use(problem, plan.placement)
    grouping = Grouping.of(net, use, most=most)
    members = np.concatenate([grouping.members(name) for name in grouping.names])
    assert sorted(members.tolist()) == list(range(net.site_count))
    picture = Picture(problem=problem, placement=plan.placement, grouping=grouping)
    whole = Picture(problem=problem, placement=plan.placement, grouping=Grouping.of(net))
    assert sum(picture.chips.values()) == sum(whole.chips.values()) == len(list(plan.placement))
    # Between tiers nothing is merged away: fogs and the cloud are never in one group.
    total = sum(link["bps"] for link in picture.links().values())
    assert total == pytest.approx(sum(link["bps"] for link in whole.links().values()))
    worst = max((s["memory"] for s in whole.sites().values()), default=0.0)
    assert max(s["memory"] for s in picture.sites().values()) == pytest.approx(worst)


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1))
def test_links_and_sites_are_sums_over_every_stream_and_operator(seed):
    """Against walking each stream's way link by link, and each node operator by operator."""
    rng = np.random.default_rng(seed)
    app = tw.scenarios.small_taxi()
    net = tw.scenarios.small_city()
    plan = tw.plan(app, net, str(rng.choice(["cloud-only", "aels-rp", "tcep"])))
    rates = {("rides", f"hub-{s}"): float(rng.uniform(0, 9e3)) for s in ("west", "centre", "east")}
    problem = Problem(application=app, network=net, rates=rates)
    picture = Picture(problem=problem, placement=plan.placement, grouping=Grouping.of(net))
    evaluation = picture.evaluation
    deployment, graph = evaluation.deployment, evaluation.deployment.graph
    on_link, need = {}, {}
    for edge in range(graph.source.size):
        a, b = (
            int(net.node_site[deployment.node[end[edge]]]) for end in (graph.source, graph.target)
        )
        for link in net.wan.route(a, b).tolist():
            start, end = net.wan.link_ends(link)
            ends = f"{net.site_names[start]}>{net.site_names[end]}"
            bps, free = on_link.get(ends, (0.0, 0.0))
            free = float(net.wan.link_available_bps([link])[0])
            on_link[ends] = (bps + float(evaluation.rates.flow_bps[edge]), free)
    for k in range(deployment.size):
        node = net.node(int(deployment.node[k]))
        cpu, memory = need.get(node.name, (0.0, 0.0))
        cpu += float(evaluation.demand.cpu_ips[k]) / node.cpu_available_ips
        memory += float(evaluation.demand.memory_bytes[k]) / node.memory_available_bytes
        need[node.name] = (cpu, memory)
    shown = picture.links()
    assert set(shown) == set(on_link)
    for ends, (bps, free) in on_link.items():
        assert shown[ends] == {"bps": pytest.approx(bps), "load": pytest.approx(bps / free)}
    for site, told in picture.sites().items():
        here = [shares for name, shares in need.items() if name.partition("/")[0] == site]
        assert told["cpu"] == pytest.approx(max((cpu for cpu, _ in here), default=0.0))
        assert told["memory"] == pytest.approx(max((memory for _, memory in here), default=0.0))


def test_endless_figures_are_words_in_json(taxi):
    app, net, plan = taxi
    problem = Problem(application=app, network=net, rates={("rides", "hub-east"): 1e9})
    picture = Picture(problem=problem, placement=plan.placement, grouping=Grouping.of(net))
    assert math.isinf(picture.plan.estimate.response_time_s)
    assert picture.gauges()["response_time_s"] == "inf"
    json.dumps([picture.frame(0.0, "p"), picture.describe("p")], allow_nan=False)


def test_places_that_cannot_be_shown_are_all_told(tmp_path: Path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken.html").write_text("<script id='data'>alert(1)</script>")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1")
    places = ["none.yaml", "empty", "broken.html", "broken.parquet"]
    with pytest.raises(InvalidInput) as told:
        open_subjects([tmp_path / place for place in places])
    for place in places:
        assert place in str(told.value)


def test_a_plan_of_something_else_is_told_when_it_is_opened(tmp_path: Path, taxi):
    other, net = tw.scenarios.taxi_demand(), tw.scenarios.fog_cloud(3)
    tw.save(other, tmp_path / "app.yaml")
    tw.save(net, tmp_path / "net.yaml")
    tw.save(taxi[2], tmp_path / "plan.json")
    with pytest.raises(InvalidInput) as told:
        open_subjects([tmp_path / name for name in ("app.yaml", "net.yaml", "plan.json")])
    assert len(told.value.defects) == 2


def test_an_application_alone_asks_for_its_network(tmp_path: Path, taxi):
    tw.save(taxi[0], tmp_path / "app.yaml")
    with pytest.raises(InvalidInput, match="network"):
        open_subjects([tmp_path / "app.yaml"])
    tw.save(taxi[1], tmp_path / "net.yaml")
    (found,) = open_subjects([tmp_path / "net.yaml", tmp_path / "app.yaml"], strategy="aels")
    assert found.kind == "plan"
    assert "by aels" in found.title
    with pytest.raises(InvalidInput, match="one file with the application"):
        open_subjects([tmp_path / "app.yaml", tmp_path / "app.yaml", tmp_path / "net.yaml"])
