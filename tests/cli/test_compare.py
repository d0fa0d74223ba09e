"""`thalweg compare` on a small federation of clouds and edge sites."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import thalweg as tw
from thalweg.files.save import save
from thalweg.model import Node, Operator, Site, Stream, build_network
from thalweg.scenarios import cloud_edge, random_application

NAMES = ("aels", "aels-rp", "aels-rp-la", "cloud-only", "tcep", "aels-rp-la+improve")


@pytest.fixture
def case(thalweg: Any, tmp_path: Path) -> Path:
    network = cloud_edge(2, 3, 4, seed=1)
    save(random_application("stats", network, seed=6), tmp_path / "app.yaml")
    save(network, tmp_path / "net.yaml")
    return tmp_path


def test_every_strategy_has_a_row_with_its_figures(thalweg: Any, case: Path) -> None:
    shown = thalweg("compare", "app.yaml", "net.yaml")
    assert shown.code == 0
    head, names, *rows = shown.out.splitlines()
    assert head.endswith("6 strategies")
    for column in (
        "AL [s]",
        "uplink [bps]",
        "response [s]",
        "usage",
        "time [ms]",
        "candidates",
        "feasible",
    ):
        assert column in names
    assert [row.split()[0] for row in rows] == list(NAMES)
    # Of several that tie, each is the best.
    latency = {row: float(row.split()[1]) for row in rows}
    best = [row for row in rows if " best " in row]
    assert best == [row for row in rows if latency[row] == min(latency.values())]


def test_json_has_what_the_plans_say_and_options_go_to_who_takes_them(
    thalweg: Any, case: Path
) -> None:
    shown = thalweg(
        "compare", "app.yaml", "net.yaml", "-s", "cloud-only, aels+improve", "--format", "json",
        "--option", "restarts=0",
    )  # fmt: skip
    found = json.loads(shown.out)
    app, net = tw.load_application("app.yaml"), tw.load_network("net.yaml")
    plans = [
        tw.plan(app, net, "cloud-only"),
        tw.plan(app, net, "aels+improve", restarts=0),
    ]
    told = found["strategies"]
    assert [each["strategy"] for each in told] == ["cloud-only", "aels+improve"]
    for each, plan in zip(told, plans, strict=True):
        assert each["aggregate_latency_s"] == plan.aggregate_latency
        assert each["feasible"] == plan.feasible
        assert each["candidates"] == plan.candidates
    assert found["best"] == min(plans, key=lambda plan: plan.aggregate_latency).strategy


def test_a_strategy_that_the_problem_is_not_for_is_told_beside_the_others(
    thalweg: Any, tmp_path: Path
) -> None:
    node = Node(name="n", cpu_ips=1e9, memory_bytes=1e9)
    edge = build_network("edge", [Site(name="e", tier="edge", nodes=(node,))], [])
    app = tw.Application(
        name="count",
        operators=[
            Operator(name="s", kind="source", rate=1.0, event_size=9.0, pin=tw.Pin(site="e")),
            Operator(name="t", cpu_per_event=10.0),
            Operator(name="z", kind="sink", pin=tw.Pin(site="e")),
        ],
        streams=[Stream(source="s", target="t"), Stream(source="t", target="z")],
    )
    save(app, tmp_path / "app.yaml")
    save(edge, tmp_path / "net.yaml")
    shown = thalweg("compare", "app.yaml", "net.yaml", "-s", "cloud-only,aels")
    assert shown.code == 0
    rows = {row.split()[0]: row for row in shown.out.splitlines()[2:]}
    assert "a network with at least one cloud site" in rows["cloud-only"]
    assert "no plan" not in rows["aels"]
    assert thalweg("compare", "app.yaml", "net.yaml", "-s", "cloud-only").code == 2
    options = ("--option", "time_limit_s=-1")
    wrong = thalweg("compare", "app.yaml", "net.yaml", "-s", "aels,aels+improve", *options)
    assert wrong.code == 2


def test_a_plot_is_written(thalweg: Any, case: Path) -> None:
    pytest.importorskip("matplotlib")
    shown = thalweg("compare", "app.yaml", "net.yaml", "-s", "aels,tcep", "--plot", "both.png")
    assert shown.code == 0
    assert (case / "both.png").read_bytes().startswith(b"\x89PNG")
    assert "wrote both.png" in shown.err


def test_without_a_feasible_plan_the_exit_code_is_3(thalweg: Any, case: Path) -> None:
    app = tw.load_application("app.yaml")
    heavy = [
        replace(operator, cpu_per_event=1e12) if operator.kind == "transform" else operator
        for operator in app.operators
    ]
    save(replace(app, operators=tuple(heavy)), case / "heavy.yaml")
    shown = thalweg("compare", "heavy.yaml", "net.yaml", "-s", "aels,cloud-only")
    assert shown.code == 3
    assert shown.out.count("no: ") == 2


def test_everything_wrong_with_a_call_is_told_at_once(thalweg: Any, case: Path) -> None:
    shown = thalweg(
        "compare", "apq.yaml", "net.yaml", "-s", "ales,tcep", "--plot", "none/x.txt",
        "--option", "y",
    )  # fmt: skip
    assert shown.code == 2
    for part in ("apq.yaml", "aels", "NAME=VALUE", "none/x.txt"):
        assert part in shown.err
    assert thalweg("compare", "app.yaml", "net.yaml", "-s", "tcep,tcep").code == 2
    assert thalweg("compare", "app.yaml", "net.yaml", "-s", ",").code == 2
    shown = thalweg("compare", "app.yaml", "net.yaml", "-s", "tcep", "--option", "restart=1")
    assert (shown.code, "it takes none" in shown.err) == (2, True)
