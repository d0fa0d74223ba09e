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

NAMES = (
    "aels", "aels-rp", "aels-rp-la-free", "cloud-only", "tcep-best-fit", "aels-rp-la-free+improve"
)  # fmt: skip


@pytest.fixture
def case(thalweg: Any, tmp_path: Path) -> Path:
    network = cloud_edge(2, 3, 4, seed=1)
    save(random_application("stats", network, seed=6), tmp_path / "app.yaml")
    save(network, tmp_path / "net.yaml")
    return tmp_path


def test_every_strategy_has_a_row_with_its_figures(thalweg: Any, case: Path) -> None:
    shown = thalweg("compare", "app.yaml", "net.yaml")
    assert shown.code == 0
    head, names, *lines = shown.out.splitlines()
    assert head.endswith("6 strategies")
    for column in ("AL [", "uplink [", "resp. [", "usage", "time [", "feasible"):
        assert column in names
    rows = lines[: len(NAMES)]
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
    assert "a network with at least one cloud site" in rows["cloud-only:"]
    assert rows["aels"].endswith("yes")
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
    assert [row.split()[-1] for row in shown.out.splitlines()[2:4]] == ["no", "no"]
    assert shown.out.count(" is not feasible: ") == 2


def test_everything_wrong_with_a_call_is_told_at_once(thalweg: Any, case: Path) -> None:
    shown = thalweg(
        "compare", "apq.yaml", "net.yaml", "-s", "ales,tcep", "--plot", "none/x.txt",
        "--option", "y",
    )  # fmt: skip
    assert shown.code == 2
    for part in ("apq.yaml", "aels", "NAME=VALUE", "none/x.txt"):
        assert part in shown.err
    shown = thalweg("compare", "apq.yaml", "net.yaml", "nets.yaml")
    assert (shown.err.count("apq.yaml"), shown.err.count("nets.yaml")) == (1, 1)
    assert thalweg("compare", "app.yaml", "net.yaml", "-s", "tcep,tcep").code == 2
    assert thalweg("compare", "app.yaml", "net.yaml", "-s", ",").code == 2
    shown = thalweg("compare", "app.yaml", "net.yaml", "-s", "tcep", "--option", "restart=1")
    assert (shown.code, "it takes none" in shown.err) == (2, True)


def test_several_networks_seeds_and_values_are_one_study(thalweg: Any, case: Path) -> None:
    save(cloud_edge(2, 3, 5, seed=2), case / "other.yaml")
    shown = thalweg(
        "compare", "app.yaml", "net.yaml", "other.yaml", "--strategy", "aels,tcep,cloud-only",
        "--seeds", "3", "--vary", "rates=1..2", "--vary", "latency=1,0.5", "--baseline", "tcep",
        "--output", "all.csv",
    )  # fmt: skip
    assert shown.code == 0, shown.err
    assert shown.out.count("3 strategies, 3 seeds") == 2
    assert "vs tcep" in shown.out
    assert max(map(len, shown.out.splitlines())) <= 100
    lines = (case / "all.csv").read_text().splitlines()
    assert len(lines) == 1 + 2 * 3 * 4 * 3
    app, nets = tw.load_application("app.yaml"), [tw.load_network("net.yaml")]
    nets.append(tw.load_network("other.yaml"))
    found = tw.study(
        app, nets, ["aels", "tcep", "cloud-only"], seeds=3, baseline="tcep",
        vary={"rates": [1, 2], "latency": [1, 0.5]},
    )  # fmt: skip
    asked = thalweg(
        "compare", "app.yaml", "net.yaml", "other.yaml", "--strategy", "aels,tcep,cloud-only",
        "--seeds", "3", "--vary", "rates=1..2", "--vary", "latency=1,0.5", "--baseline", "tcep",
        "--format", "json",
    )  # fmt: skip
    told = json.loads(asked.out)
    assert [row["aggregate_latency_s"] for row in told["rows"]] == [
        row["aggregate_latency_s"] for row in found.to_dict()["rows"]
    ]
    assert len(told["tests"]) == len(found.tests) > 0


@pytest.mark.parametrize("text", ["0.5s", "500 ms", "0.5"])
def test_plans_are_simulated_for_a_duration(thalweg: Any, case: Path, text: str) -> None:
    words = ("-s", "cloud-only", "--simulate", text)
    shown = thalweg("compare", "app.yaml", "net.yaml", *words, "--format", "json")
    assert shown.code == 0, shown.err
    told = json.loads(shown.out)
    assert told["simulate_s"] == 0.5
    assert told["rows"][0]["simulated_p99_s"] > 0


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("--vary", "rate=1..2"), "rates, bandwidth, latency or option.NAME"),
        (("--vary", "rates"), "NAME=VALUES"),
        (("--seeds", "0"), "seeds"),
        (("--spread", "2"), "spread"),
        (("--baseline", "exact"), "baseline"),
        (("--simulate", "soon"), "--simulate"),
        (("--simulate", "-1"), "--simulate"),
        (("--on", "cluster"), "on: "),
        (("--output", "all.txt"), "all.txt"),
        (("--vary", "option.nobody=1,2"), "nobody"),
    ],
)
def test_wrong_words_are_refused(
    thalweg: Any, case: Path, words: tuple[str, ...], part: str
) -> None:
    shown = thalweg("compare", "app.yaml", "net.yaml", "-s", "aels", *words)
    assert shown.code == 2
    assert part in shown.err


def test_everything_that_is_wrong_is_reported_at_once(thalweg: Any, case: Path) -> None:
    words = ("--seeds", "0", "--vary", "rate=1", "--spread", "3", "--baseline", "aels")
    more = ("--simulate", "5x", "--plot", "x.gif", "--output", "x.txt", "--option", "nobody=1")
    shown = thalweg("compare", "app.yaml", "nowhere.yaml", "-s", "cloudonly,tcep", *words, *more)
    assert shown.code == 2
    for part in (
        *("nowhere.yaml", "cloudonly", "seeds: got 0", "rate", "spread: got 3", "baseline"),
        *("--simulate", "x.gif", "x.txt", "nobody: got 1, need an option of one of"),
    ):
        assert part in shown.err, part


def test_what_would_be_ignored_is_refused(thalweg: Any, case: Path) -> None:
    shown = thalweg("compare", "app.yaml", "net.yaml", "./net.yaml", "--spread", "0.2")
    assert shown.code == 2
    assert "each network once" in shown.err
    assert "--seeds of at least 2" in shown.err
