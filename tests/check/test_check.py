from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from generators.small import chain_problem, place
from thalweg.check import check
from thalweg.estimate.evaluate import make_plan
from thalweg.model import (
    CountWindow,
    Instance,
    Limits,
    LinkWan,
    MeshWan,
    Operator,
    Pin,
    Placement,
    Problem,
    TimeWindow,
    Violation,
)


def problem(**changes: Any) -> Problem:
    """Two fogs send 40/s of 50 B, 16,000 bit/s, each to `t` (10 instructions per event)."""
    operator = {
        "name": "t",
        "cpu_per_event": 10.0,
        "memory": 100.0,
        "window": CountWindow(4),
        "replicable": True,
        **changes.pop("operator", {}),
    }
    figures: dict[str, Any] = {
        "rate": 80.0,
        "event_size": 50.0,
        "fog": {"cpu_ips": 1000.0, "memory_bytes": 1000.0, "lan_bandwidth_bps": 1e5},
        "cloud": {"cpu_ips": 5000.0, "memory_bytes": 1000.0},
        "link": {"bandwidth_bps": 20_000.0},
        "sink": {"pin": Pin(tier="cloud")},
        "limits": Limits(response_time_s=5.0, uplink_bps=40_000.0),
    }
    return chain_problem(Operator(**operator), **{**figures, **changes})


WIDE = {"bandwidth_bps": 50_000.0}
IN_CLOUD = {"t": "dc/n", "z": "dc/n"}
AT_FOGS = {"t@f1": "f1/n", "t@f2": "f2/n", "z": "dc/n"}


def find(made: Problem, hosts: Mapping[str, str] | Placement) -> list[Violation]:
    placement = hosts if isinstance(hosts, Placement) else place(made, hosts)
    return check(placement, made)


@pytest.mark.parametrize("hosts", [IN_CLOUD, AT_FOGS, {"t@f1": "f1/n", **IN_CLOUD}])
def test_a_feasible_plan_violates_nothing(hosts: dict[str, str]) -> None:
    made = problem()
    plan = make_plan(made, place(made, hosts), strategy="by-hand")
    assert check(plan, made) == []
    assert check(plan, made.application, made.network) == []
    assert plan.feasible


def only(violations: list[Violation]) -> tuple[str, str, str, float, float, str, set[str]]:
    """The one violation there is."""
    assert len(violations) == 1, violations
    (v,) = violations
    return v.constraint, v.place, v.resource, v.need, v.have, v.unit, set(v.operators)


def approx(*parts: Any) -> Any:
    return tuple(pytest.approx(part) if isinstance(part, float) else part for part in parts)


# For each constraint, a plan that violates this one and nothing else.


def test_an_operator_off_its_pin_is_found() -> None:
    made = problem(operator={"pin": Pin(site="dc")}, link=WIDE)
    assert only(find(made, {"t": "f1/n", "z": "dc/n"})) == approx(
        "pin", "f1/n", "must run in site dc", 1.0, 0.0, "", {"t"}
    )


def test_a_sink_off_its_tier_and_an_operator_off_its_node_are_found() -> None:
    assert only(find(problem(link=WIDE), {"t": "dc/n", "z": "f1/n"})) == approx(
        "pin", "f1/n", "must run in tier cloud", 1.0, 0.0, "", {"z"}
    )
    made = problem(operator={"pin": Pin(node="f2/n")})
    assert only(find(made, IN_CLOUD)) == approx(
        "pin", "dc/n", "must run in node f2/n", 1.0, 0.0, "", {"t"}
    )


def test_a_source_outside_the_site_it_is_born_in_is_found() -> None:
    swapped = Placement.of(
        [
            Instance(operator="s", node="f2/n", origin="f1"),
            Instance(operator="s", node="f2/n", origin="f2"),
            Instance(operator="t", node="f2/n"),
            Instance(operator="z", node="dc/n"),
        ]
    )
    made = problem(link=WIDE)
    assert only(find(made, swapped)) == approx(
        "pin", "f2/n", "runs outside the site it is born in", 1.0, 0.0, "", {"s@f1"}
    )


def test_a_replica_of_what_must_not_be_replicated_is_found() -> None:
    made = problem(operator={"replicable": False})
    assert only(find(made, {"t@f1": "f1/n", **IN_CLOUD})) == approx(
        "replicable", "f1/n", "runs as a replica but is not replicable", 1.0, 0.0, "", {"t@f1"}
    )
    # A source is born in each of its sites; that is no replica.
    assert find(made, IN_CLOUD) == []


def test_a_node_s_cpu_that_several_overload_together_is_found() -> None:
    # Each of two replicas needs 400 of the 700 instr/s: stable alone, too much together.
    made = problem(cloud={"cpu_ips": 1500.0, "cpu_available_ips": 700.0, "memory_bytes": 1000.0})
    hosts = {"t@f1": "dc/n", "t@f2": "dc/n", "z": "dc/n"}
    assert only(find(made, hosts)) == approx(
        "cpu", "dc/n", "cpu", 800.0, 700.0, "instr/s", {"t@f1", "t@f2", "z"}
    )


def test_a_node_exactly_full_is_not_overloaded_but_its_single_queue_never_ends() -> None:
    made = problem(cloud={"cpu_ips": 800.0, "memory_bytes": 1000.0}, limits=Limits())
    assert only(find(made, IN_CLOUD)) == approx(
        "stability", "dc/n", "cpu", 800.0, 800.0, "instr/s", {"t"}
    )
    assert find(made, {"t@f1": "dc/n", "t@f2": "dc/n", "z": "dc/n"}) == []


def test_an_operator_that_needs_more_than_its_node_has_lacks_cpu_and_stability() -> None:
    made = problem(cloud={"cpu_ips": 700.0, "memory_bytes": 1000.0}, limits=Limits())
    found = find(made, IN_CLOUD)
    assert [(v.constraint, v.need, v.have) for v in found] == [
        ("cpu", pytest.approx(800.0), 700.0),
        ("stability", pytest.approx(800.0), 700.0),
    ]


def test_a_node_without_cpu_never_serves_even_what_never_comes() -> None:
    made = problem(rate=0.0, cloud={"cpu_ips": 0.0, "memory_bytes": 1000.0}, limits=Limits())
    assert only(find(made, IN_CLOUD)) == approx(
        "stability", "dc/n", "cpu", 0.0, 0.0, "instr/s", {"t"}
    )
    idle = problem(operator={"cpu_per_event": 0.0}, cloud={"cpu_ips": 0.0, "memory_bytes": 1000.0})
    assert find(idle, IN_CLOUD) == []


@pytest.mark.parametrize(
    ("window", "need"),
    [
        (CountWindow(20), 100 + 20 * 50),
        (TimeWindow(2, 2), 100 + 2 * 80 * 50),
        (TimeWindow(2, 1), 100 + 2 * 80 * 50),
    ],
)
def test_a_node_s_memory_that_is_overloaded_is_found(window: Any, need: float) -> None:
    made = problem(operator={"window": window})
    assert only(find(made, IN_CLOUD)) == approx(
        "memory", "dc/n", "memory", float(need), 1000.0, "B", {"t", "z"}
    )


def test_memory_taken_by_others_is_not_there() -> None:
    made = problem(
        cloud={"cpu_ips": 5000.0, "memory_bytes": 1000.0, "memory_available_bytes": 299.0}
    )
    assert only(find(made, IN_CLOUD))[:5] == approx("memory", "dc/n", "memory", 300.0, 299.0)
    fitting = problem(
        cloud={"cpu_ips": 5000.0, "memory_bytes": 1000.0, "memory_available_bytes": 300.0}
    )
    assert find(fitting, IN_CLOUD) == []


def test_a_lan_that_several_flows_overload_is_found() -> None:
    # Both fogs' 16,000 bit/s arrive at dc over its LAN of 30,000: each alone would pass.
    made = problem(cloud={"cpu_ips": 5000.0, "memory_bytes": 1000.0, "lan_bandwidth_bps": 30_000.0})
    assert only(find(made, IN_CLOUD)) == approx(
        "bandwidth", "LAN of dc/n", "bandwidth", 32_000.0, 30_000.0, "bps", set()
    )


def test_a_lan_carries_both_directions() -> None:
    # f1 gets f2's 16,000 and sends on all 32,000: 48,000 on its LAN of 40,000.
    made = problem(
        fog={"cpu_ips": 1000.0, "memory_bytes": 1000.0, "lan_bandwidth_bps": 40_000.0},
        link={"bandwidth_bps": 33_000.0},
    )
    assert only(find(made, {"t": "f1/n", "z": "dc/n"})) == approx(
        "bandwidth", "LAN of f1/n", "bandwidth", 48_000.0, 40_000.0, "bps", set()
    )


def test_a_link_that_several_flows_overload_is_found() -> None:
    made = problem()
    hosts = {"t@f1": "f2/n", "t@f2": "f2/n", "z": "dc/n"}
    # f2 sends up its own and f1's results: two flows of 16,000 over 20,000.
    assert only(find(made, hosts)) == approx(
        "bandwidth", "f2 → dc", "bandwidth", 32_000.0, 20_000.0, "bps", set()
    )


def test_directions_of_a_link_are_apart() -> None:
    made = problem(operator={"selectivity": 0.2})
    # Of 20,000 in each direction: f1 → dc and dc → f2 carry f1's 16,000, f2 → dc f2's own and
    # what is left of f1's, 3,200; together f2's link carries 35,200.
    hosts = {"t@f1": "f2/n", "t": "dc/n", "z": "dc/n"}
    assert find(made, hosts) == []


def test_a_flow_that_fills_its_way_never_arrives() -> None:
    made = problem(link={"bandwidth_bps": 16_000.0})
    found = find(made, IN_CLOUD)
    assert [(v.constraint, v.place, v.need, v.have, v.operators) for v in found] == [
        ("stability", "f1/n → dc/n", pytest.approx(16_000.0), 16_000.0, ("s@f1", "t")),
        ("stability", "f2/n → dc/n", pytest.approx(16_000.0), 16_000.0, ("s@f2", "t")),
    ]


def lonely(made: Problem) -> Problem:
    nothing = np.empty(0, dtype=np.int32)
    wan = LinkWan(
        site_count=3, a=nothing, b=nothing, latency=np.empty(0), bandwidth=np.empty(0),
        available=np.empty((0, 2)),
    )  # fmt: skip
    return Problem(application=made.application, network=made.network.with_available(wan=wan))


@pytest.mark.parametrize("rate", [0.0, 80.0])
def test_where_no_way_leads_nothing_arrives(rate: float) -> None:
    made = lonely(problem(rate=rate, limits=Limits()))
    found = find(made, AT_FOGS)
    assert [(v.constraint, v.place, v.need, v.have) for v in found] == [
        ("stability", "f1/n → dc/n", pytest.approx(rate * 200), 0.0),
        ("stability", "f2/n → dc/n", pytest.approx(rate * 200), 0.0),
    ]


def test_a_way_that_takes_for_ever_is_none() -> None:
    made = problem(limits=Limits())
    latency = np.array([[0, 1, np.inf], [1, 0, 1], [1, 1, 0]])
    full = np.full((3, 3), 1e6)
    wan = MeshWan(latency=latency, bandwidth=full, available=full)
    net = made.network.with_available(wan=wan)
    made = Problem(application=made.application, network=net)
    found = only(find(made, IN_CLOUD))
    assert found[:5] == approx("stability", "f1/n → dc/n", "bandwidth", 16_000.0, 0.0)
    plan = make_plan(made, place(made, IN_CLOUD), strategy="by-hand")
    assert math.isinf(plan.objective)
    assert not plan.feasible


def test_a_response_time_beyond_the_limit_is_found() -> None:
    made = problem(
        operator={"window": None},
        limits=Limits(response_time_s=0.5),
    )
    # 1 s of raw data, 16,000 bit, over 20,000 bit/s: 0.8 s and 0.1 s of way. t: μ = 500/s,
    # λ = 80/s, ρ = 0.16: 0.16/(2 · 500 · 0.84) + 1/500 s.
    need = 0.9 + 0.16 / 840 + 0.002
    assert only(find(made, IN_CLOUD)) == approx(
        "response-time", "app", "response time", need, 0.5, "s", set()
    )


def test_more_uplink_than_the_limit_is_found() -> None:
    made = problem(limits=Limits(uplink_bps=31_000.0))
    assert only(find(made, IN_CLOUD)) == approx(
        "uplink", "app", "uplink", 32_000.0, 31_000.0, "bps", set()
    )
    assert find(problem(limits=Limits(uplink_bps=32_000.0)), IN_CLOUD) == []


def broken(made: Problem, *instances: Instance) -> list[tuple[str, str]]:
    found = check(Placement.of(instances), made)
    assert {v.constraint for v in found} == {"placed"}
    assert all((v.need, v.have, v.unit) == (1.0, 0.0, "") for v in found)
    return [(v.place, v.resource) for v in found]


S1 = Instance(operator="s", node="f1/n", origin="f1")
S2 = Instance(operator="s", node="f2/n", origin="f2")
T = Instance(operator="t", node="dc/n")
Z = Instance(operator="z", node="dc/n")


@pytest.mark.parametrize(
    ("instances", "expected"),
    [
        ([S1, S2, T], [("z", "is not placed")]),
        ([S1, S2, Z], [("t", "is not placed")]),
        ([S1, T, Z], [("s@f2", "is not placed")]),
        (
            [S1, S2, replace(T, node="dc/m"), Z],
            [("dc/m", "is no node of net"), ("t", "is not placed")],
        ),
        ([S1, S2, T, Z, replace(Z, operator="q")], [("q", "is no operator of app")]),
        ([S1, S2, T, Z, replace(T, origin="f9")], [("f9", "is no site of net")]),
        ([S1, S2, T, T, Z], [("t", "is placed twice")]),
        ([S1, S2, T, replace(T, node="f1/n"), Z], [("t", "is placed twice")]),
        (
            [S1, S2, replace(S1, origin="dc"), T, Z],
            [("s@dc", "is no site where the source is born")],
        ),
        ([S1, S2, replace(S1, origin=None), T, Z], [("s", "is no site where the source is born")]),
        ([S1, S2, replace(T, origin="f1"), Z], [("s@f2", "sends to no copy of t")]),
        (
            [S1, S2, T, replace(Z, origin="f1")],
            [("t", "sends to no copy of z"), ("z@f1", "gets no events")],
        ),
        ([S1, S2, T, replace(T, origin="dc"), Z], [("t@dc", "gets no events")]),
        (
            [S1, S2, replace(T, origin="f1"), replace(T, origin="f2"), T, Z],
            [("t", "gets no events")],
        ),
    ],
)  # fmt: skip
def test_what_is_no_deployment_is_answered_with_what_is_wrong(
    instances: list[Instance], expected: list[tuple[str, str]]
) -> None:
    assert broken(problem(), *instances) == expected


def test_nothing_placed_lacks_everything() -> None:
    assert ("s", "is not placed") in broken(problem())
    assert ("s@f1", "is not placed") in broken(problem())


def test_rates_are_those_of_the_problem() -> None:
    made = problem(limits=Limits(uplink_bps=31_000.0))
    placement = place(made, IN_CLOUD)
    app, net = made.application, made.network
    assert len(check(placement, app, net)) == 1
    assert check(placement, app, net, rates={("s", "f1"): 10.0}) == []


def test_the_network_is_needed() -> None:
    made = problem()
    with pytest.raises(TypeError, match="the network is missing"):
        check(place(made, IN_CLOUD), made.application)  # type: ignore[call-overload]


def test_rounding_is_no_violation() -> None:
    # 0.1 + 0.2 > 0.3 in floats; a tenth more is a violation.
    made = problem(
        operator={"memory": 0.1, "memory_factor": 0.0},
        sink={"memory": 0.2, "pin": Pin(tier="cloud")},
        cloud={"cpu_ips": 5000.0, "memory_bytes": 0.3},
    )
    assert find(made, IN_CLOUD) == []
    full = problem(
        operator={"memory": 0.1, "memory_factor": 0.0},
        sink={"memory": 0.2, "pin": Pin(tier="cloud")},
        cloud={"cpu_ips": 5000.0, "memory_bytes": 0.2999999},
    )
    assert only(find(full, IN_CLOUD))[0] == "memory"


def test_ten_thousand_operators_in_a_row_are_checked() -> None:
    names = [f"t{k}" for k in range(10_000)]
    made = chain_problem(
        *(Operator(name=name, cpu_per_event=1.0) for name in names),
        rate=1.0,
        event_size=1.0,
        fogs=1,
        cloud={"cpu_ips": 9_999.0},
        limits=Limits(response_time_s=1e9),
    )
    found = find(made, dict.fromkeys([*names, "z"], "dc/n"))
    # An even share for each is below one event a second: no response ends.
    assert [(v.constraint, v.need) for v in found] == [
        ("cpu", 10_000.0),
        ("response-time", math.inf),
    ]
