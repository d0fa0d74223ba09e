from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

import numpy as np
import pytest

import thalweg as tw
from generators.problems import random_problem
from generators.slow import SlowTraffic
from generators.small import chain_problem, fog_problem
from generators.violations import assert_same_violations
from thalweg.check import check
from thalweg.errors import InvalidInput
from thalweg.model import (
    CountWindow,
    Instance,
    Link,
    Node,
    Operator,
    Pin,
    Placement,
    Problem,
    Site,
    Stream,
    Tier,
    build_network,
    deploy,
)
from thalweg.placement.cloud_only import cloud_only
from thalweg.placement.greedy import scopes, steps


class SlowCloudOnly:
    """The same rule with dictionaries: one operator, one node, one link at a time."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.net = problem, problem.network
        app, births = problem.application, problem.births
        instances = [
            Instance(
                operator=app.operators[o].name,
                node=self.net.node_name(n),
                origin=self.net.site_names[s],
            )
            for o, s, n in zip(
                births.operator.tolist(), births.site.tolist(), births.node.tolist(), strict=True
            )
        ]
        anywhere = self.net.node_name(0)
        instances += [
            Instance(operator=o.name, node=anywhere) for o in app.operators if o.kind != "source"
        ]
        self.deployment = deploy(problem, Placement.of(instances))
        self.slow = SlowTraffic(self.deployment)
        self.node: dict[int, int] = {}
        self.cpu: dict[int, float] = defaultdict(float)
        self.memory: dict[int, float] = defaultdict(float)
        self.lan: dict[int, float] = defaultdict(float)
        self.wan: dict[int, float] = defaultdict(float)

    def run(self) -> dict[str, str]:
        """Operator → node for all but sources."""
        operators = self.slow.operators
        for instance, operator in enumerate(operators):
            if operator.kind == "source":
                self.settle(instance, int(self.deployment.node[instance]))
        chosen = {}
        for index in sequence(self.problem):
            operator = self.problem.application.operators[index]
            if operator.kind != "source":
                instance = operators.index(operator)
                node = self.choose(index, instance)
                self.settle(instance, node)
                chosen[operator.name] = self.net.node_name(node)
        return chosen

    def choose(self, index: int, instance: int) -> int:
        allowed = self.problem.allowed_nodes(index)
        if allowed is None:
            candidates = [
                node
                for node in range(self.net.node_count)
                if self.net.site_tier[self.net.node_site[node]] == Tier.CLOUD
            ]
        else:
            candidates = allowed.tolist()
        best: tuple[bool, bool, float, int] | None = None
        for node in candidates:
            cost = self.added_s(instance, node)
            fits = self.fits(instance, node) and math.isfinite(cost)
            carries = fits and self.carries(instance, node)
            # Room for all, else room on the node, else the least latency; then the lower index.
            rank = (not carries, not fits, cost, node)
            if best is None or rank < best:
                best = rank
        assert best is not None
        return best[3]

    def added_s(self, instance: int, node: int) -> float:
        total = 0.0
        for edge in self.slow.arriving(instance):
            sender = self.node[edge.source]
            if sender == node:
                continue
            size, flow = self.slow.size_out(edge.source), self.slow.flow(edge)
            free = float(self.net.available_bps(sender, node))
            waiting = 0.0
            if size > 0 and math.isfinite(free):
                transfers = free / (8.0 * size)
                waiting = 1.0 / (transfers - flow) if transfers > flow else math.inf
            total += waiting + float(self.net.latency_s(sender, node))
        work = self.slow.work(instance) * self.slow.passes(instance)
        if work > 0:
            rate = float(self.net.node_cpu_available_ips[node]) / work
            events = self.slow.events_in(instance)
            total += 1.0 / (rate - events) if rate > events else math.inf
        return total

    def cpu_need(self, instance: int) -> float:
        work, passes = self.slow.work(instance), self.slow.passes(instance)
        return work * self.slow.events_in(instance) * passes

    def fits(self, instance: int, node: int) -> bool:
        cpu, memory = self.cpu_need(instance), self.slow.memory(instance)
        cpu_left = float(self.net.node_cpu_available_ips[node]) - self.cpu[node]
        memory_left = float(self.net.node_memory_available_bytes[node]) - self.memory[node]
        return (cpu == 0 or cpu <= cpu_left) and (memory == 0 or memory <= memory_left)

    def loads(self, instance: int, node: int) -> tuple[dict[int, float], dict[int, float]]:
        lan: dict[int, float] = defaultdict(float)
        wan: dict[int, float] = defaultdict(float)
        for edge in self.slow.arriving(instance):
            sender = self.node[edge.source]
            if sender == node:
                continue
            bps = self.slow.bps(edge)
            lan[sender] += bps
            lan[node] += bps
            ends = int(self.net.node_site[sender]), int(self.net.node_site[node])
            for link in self.net.wan.route(*ends).tolist():
                wan[link] += bps
        return lan, wan

    def carries(self, instance: int, node: int) -> bool:
        lan, wan = self.loads(instance, node)
        for end, load in lan.items():
            left = float(self.net.node_lan_available_bps[end]) - self.lan[end]
            if load > 0 and load > left * (1 + 1e-9):
                return False
        for link, load in wan.items():
            left = float(self.net.wan.link_available_bps([link])[0]) - self.wan[link]
            if load > 0 and load > left * (1 + 1e-9):
                return False
        return True

    def settle(self, instance: int, node: int) -> None:
        self.node[instance] = node
        self.cpu[node] += self.cpu_need(instance)
        self.memory[node] += self.slow.memory(instance)
        lan, wan = self.loads(instance, node)
        for end, load in lan.items():
            self.lan[end] += load
        for link, load in wan.items():
            self.wan[link] += load


def sequence(problem: Problem) -> list[int]:
    from thalweg.placement.sequence import deployment_sequence

    return deployment_sequence(problem.application)


def compare(seed: int) -> bool:
    """Compare on one problem; whether the plan is feasible."""
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, cloud=True, pinned=float(rng.choice([0.0, 0.3, 0.9])))
    plan = cloud_only(problem)
    expected = SlowCloudOnly(problem).run()
    sources = {operator.name for operator in problem.application.sources}
    found = {i.operator: i.node for i in plan.placement if i.operator not in sources}
    assert found == expected, f"seed {seed}"
    assert_same_violations(plan.violations, check(plan, problem))
    return plan.feasible


@pytest.mark.parametrize("first", range(0, 240, 40))
def test_the_plan_is_that_of_trying_node_by_node(first: int) -> None:
    feasible = [compare(seed) for seed in range(first, first + 40)]
    assert any(feasible)
    assert not all(feasible)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(10_000, 14_000, 500))
def test_the_plan_is_that_of_trying_node_by_node_many_times(first: int) -> None:
    for seed in range(first, first + 500):
        compare(seed)


def clouds(*nodes: Any, latency_s: tuple[float, ...] | None = None, **operator: Any) -> Problem:
    """An edge site and one cloud site for each given node; `s` → `t` → `z`, all 10/s of 10 B."""
    sites = [Site(name="edge", tier="edge", nodes=(Node(name="n", cpu_ips=1e9, memory_bytes=1e9),))]
    links = []
    for k, figures in enumerate(nodes):
        node = Node(**{"name": "n", "cpu_ips": 1e6, "memory_bytes": 1e6, **figures})
        sites.append(Site(name=f"c{k}", tier="cloud", nodes=(node,)))
        far = latency_s[k] if latency_s else 0.1
        links.append(Link(a="edge", b=f"c{k}", latency_s=far, bandwidth_bps=1e6))
    application = tw.Application(
        name="app",
        operators=[
            Operator(name="s", kind="source", rate=10.0, event_size=10.0, pin=Pin(tier="edge")),
            Operator(**{"name": "t", "cpu_per_event": 100.0, "memory": 100.0, **operator}),
            Operator(name="z", kind="sink"),
        ],
        streams=[Stream(source="s", target="t"), Stream(source="t", target="z")],
    )
    return Problem(application=application, network=build_network("net", sites, links))


def hosts(plan: tw.Plan) -> dict[str, str]:
    return {i.operator: i.node for i in plan.placement}


def test_of_equal_clouds_the_first_is_taken() -> None:
    plan = cloud_only(clouds({}, {}, {}))
    assert hosts(plan) == {"s": "edge/n", "t": "c0/n", "z": "c0/n"}
    assert plan.feasible
    assert plan.strategy == "cloud-only"
    assert plan.objective_name == "aggregate_latency_s"
    assert plan.objective == plan.aggregate_latency
    assert plan.candidates == 6


def test_a_nearer_cloud_and_a_faster_one_are_weighed() -> None:
    near = cloud_only(clouds({"cpu_ips": 1e5}, {"cpu_ips": 1e6}, latency_s=(0.1, 0.2)))
    assert hosts(near)["t"] == "c0/n"
    # 1/(1100/100 − 10) = 1 s in the queue of the near one.
    fast = cloud_only(clouds({"cpu_ips": 1100.0}, {"cpu_ips": 1e6}, latency_s=(0.1, 0.2)))
    assert hosts(fast)["t"] == "c1/n"


def test_a_full_cloud_is_passed_over_and_the_reasons_say_what_was_weighed() -> None:
    problem = clouds({"memory_bytes": 50.0}, {}, {}, latency_s=(0.1, 0.3, 0.2))
    plan = cloud_only(problem)
    assert hosts(plan)["t"] == "c2/n"
    reason = next(reason for reason in plan.reasons if reason.operator == "t")
    assert reason.why.startswith("least added latency of 3")
    # 10 B over 1 Mbps, 10 of them a second; 1/(10,000 − 10) s at work.
    wait = 1 / (1e6 / 80 - 10) + 1 / (1e4 - 10)
    assert reason.cost == pytest.approx(0.2 + wait)
    assert reason.considered == 3
    # c0 would be nearer but has no room: it is no runner-up.
    assert (reason.runner_up, reason.runner_up_cost) == ("c1/n", pytest.approx(0.3 + wait))
    two = cloud_only(clouds({"memory_bytes": 50.0}, {}))
    reason = next(reason for reason in two.reasons if reason.operator == "t")
    assert (hosts(two)["t"], reason.runner_up) == ("c1/n", None)
    born = next(reason for reason in plan.reasons if reason.operator == "s")
    assert born.why == "born in tier edge"


def test_what_fits_nowhere_is_placed_all_the_same_and_the_plan_says_so() -> None:
    plan = cloud_only(clouds({"memory_bytes": 50.0}, {"memory_bytes": 90.0}, latency_s=(0.2, 0.1)))
    assert hosts(plan)["t"] == "c1/n"
    assert not plan.feasible
    assert math.isinf(plan.cost)
    assert [(v.constraint, v.place, v.need, v.have) for v in plan.violations] == [
        ("memory", "c1/n", 100.0, 90.0)
    ]
    reason = next(reason for reason in plan.reasons if reason.operator == "t")
    assert "has room; least added latency" in reason.why


@pytest.mark.parametrize(
    ("link", "lan"),
    [
        ({"bandwidth_bps": 1000.0}, {}),
        ({"bandwidth_bps": 1e6}, {"lan_bandwidth_bps": 1000.0}),
    ],
    ids=["WAN", "LAN"],
)
def test_a_way_that_is_full_counts_as_no_room(
    link: dict[str, float], lan: dict[str, float]
) -> None:
    ample = {"name": "n", "cpu_ips": 1e9, "memory_bytes": 1e9}
    sites = [
        Site(name="e", tier="edge", nodes=(Node(**ample),)),
        Site(name="near", tier="cloud", nodes=(Node(**ample, **lan),)),
        Site(name="far", tier="cloud", nodes=(Node(**ample),)),
    ]
    links = [
        Link(a="e", b="near", latency_s=0.1, **link),
        Link(a="e", b="far", latency_s=5.0, bandwidth_bps=1e6),
    ]
    app = tw.Application(
        name="app",
        operators=[
            Operator(name="s", kind="source", rate=1.0, event_size=75.0, pin=Pin(site="e")),
            Operator(name="a"),
            Operator(name="b"),
            Operator(name="z", kind="sink", pin=Pin(site="e")),
        ],
        streams=[
            Stream(source="s", target="a"),
            Stream(source="s", target="b"),
            Stream(source="a", target="z"),
            Stream(source="b", target="z"),
        ],
    )
    plan = cloud_only(Problem(application=app, network=build_network("net", sites, links)))
    # 600 of 1000 bit/s for a; b's 600 no longer fit.
    assert (hosts(plan)["a"], hosts(plan)["b"]) == ("near/n", "far/n")
    runner_up = {reason.operator: reason.runner_up for reason in plan.reasons}
    assert (runner_up["a"], runner_up["b"]) == ("far/n", None)


def test_a_link_that_nothing_is_put_on_is_no_hindrance_however_full() -> None:
    # t must run in c0 and overloads its LAN; z beside it adds nothing to that.
    problem = clouds({"lan_bandwidth_bps": 900.0}, {}, pin=Pin(site="c0"), selectivity=0.5)
    more = tw.plan(problem.application, problem.network, rates={("s", "edge"): 20.0})
    assert [v.place for v in more.violations if v.constraint == "bandwidth"] == ["LAN of c0/n"]
    assert hosts(more)["z"] == "c0/n"
    reason = next(reason for reason in more.reasons if reason.operator == "z")
    assert "has room" not in reason.why


def test_pins_are_kept() -> None:
    plan = cloud_only(clouds({}, {}, pin=Pin(site="c1")))
    assert hosts(plan)["t"] == "c1/n"
    plan = cloud_only(clouds({}, {}, pin=Pin(node="edge/n")))
    assert hosts(plan)["t"] == "edge/n"
    reason = next(reason for reason in plan.reasons if reason.operator == "t")
    assert (reason.why, reason.runner_up) == ("pinned to node edge/n", None)


def test_without_a_cloud_there_is_no_plan() -> None:
    rng = np.random.default_rng(1)
    problem = random_problem(rng, cloud=False, pinned=0.0)
    with pytest.raises(InvalidInput, match="a network with at least one cloud site"):
        cloud_only(problem)


def test_without_a_cloud_pinned_operators_still_have_a_place() -> None:
    rng = np.random.default_rng(1)
    problem = random_problem(rng, cloud=False, pinned=1.0)
    assert_same_violations(cloud_only(problem).violations, check(cloud_only(problem), problem))


def test_what_runs_now_changes_nothing() -> None:
    problem = clouds({}, {})
    first = cloud_only(problem)
    other = Placement.of({"s": "edge/n", "t": "c1/n", "z": "c1/n"})
    assert cloud_only(problem, other) == first


def test_a_look_in_parts_gives_the_same_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(20):
        problem = random_problem(np.random.default_rng(seed), cloud=True)
        whole = cloud_only(problem)
        with monkeypatch.context() as patch:
            patch.setattr(scopes, "MOST_FIGURES", 2)
            patch.setattr(steps, "MOST_FIGURES", 2)
            patch.setattr(scopes, "_FIRST_ROWS", 1)
            assert cloud_only(problem) == whole


def test_an_operator_with_a_thousand_inputs_gets_a_plan() -> None:
    names = [f"t{k}" for k in range(1_000)]
    wide = fog_problem(
        [*(Operator(name=name) for name in names), Operator(name="join", window=CountWindow(2))],
        [Stream(source="s", target=name, probability=0.001) for name in names]
        + [Stream(source=name, target="join") for name in names]
        + [Stream(source="join", target="z")],
        rate=100.0,
        event_size=1.0,
    )
    assert cloud_only(wide).feasible


@pytest.mark.parametrize("count", [500, pytest.param(10_000, marks=pytest.mark.slow)])
def test_a_long_row_of_operators_gets_a_plan(count: int) -> None:
    problem = chain_problem(
        *(Operator(name=f"t{k}", cpu_per_event=1.0) for k in range(count)),
        rate=1.0,
        event_size=1.0,
        fogs=1,
        cloud={"cpu_ips": 2.0 * count},
    )
    plan = cloud_only(problem)
    assert plan.feasible
    assert check(plan, problem) == []


def test_edges_of_nothing_give_a_plan() -> None:
    # No events, no bytes, no work, no CPU: nothing divides by zero.
    problem = chain_problem(
        Operator(name="t", selectivity=0.0, compression=0.0, cpu_per_event=0.0),
        rate=0.0,
        event_size=1.0,
        fogs=1,
        cloud={"cpu_ips": 0.0, "memory_bytes": 0.0},
        link={"bandwidth_bps": 0.0},
    )
    plan = cloud_only(problem)
    # The way is closed: nothing ever arrives, though nothing is sent either.
    assert {v.constraint for v in plan.violations} == {"stability"}
    assert_same_violations(plan.violations, check(plan, problem))
