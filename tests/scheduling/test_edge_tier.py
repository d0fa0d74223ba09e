import numpy as np
import pytest

import thalweg as tw
from thalweg.estimate.evaluate import evaluate
from thalweg.model import Limits, Link, Node, Site, build_network
from thalweg.strategy import find_strategy
from thalweg.testing import check_strategy


def area_network(devices=2, *, device_memory=50e6, device_ips=500e6):
    """Two fogs under a cloud, each with a few edge sites below it."""
    vm = Node(name="vm", cpu_ips=35.9e9, memory_bytes=12e9)
    sites = [Site(name="cloud", tier="cloud", nodes=[vm])]
    links = []
    for fog in range(2):
        node = Node(name="box", cpu_ips=4e9, memory_bytes=2e9)
        sites.append(Site(name=f"fog-{fog}", tier="fog", parent="cloud", nodes=[node]))
        links.append(Link(a=f"fog-{fog}", b="cloud", latency_s=0.1, bandwidth_bps=200e6))
        for device in range(devices):
            name = f"edge-{fog}-{device}"
            small = Node(name="pole", cpu_ips=device_ips, memory_bytes=device_memory)
            sites.append(Site(name=name, tier="edge", parent=f"fog-{fog}", nodes=[small]))
            links.append(Link(a=name, b=f"fog-{fog}", latency_s=0.01, bandwidth_bps=50e6))
    return build_network("areas", sites, links)


def edge_application(limits=None):
    app = tw.scenarios.taxi_fares()
    operators = [
        tw.Operator(
            name="rides", kind="source", rate=20_000.0, event_size=200.0, pin=tw.Pin(tier="edge")
        ),
        *app.operators[1:],
    ]
    return tw.Application(
        name="taxi", operators=operators, streams=app.streams, limits=limits or app.limits
    )


def on_tier(plan, problem, tier):
    return {
        (i.operator, i.origin)
        for i in plan.placement
        if plan.hosts[i.node][1] == tier and i.operator != "rides"
    }


def fog_memory(plan, problem):
    found = evaluate(problem, plan.placement)
    fogs = [n for n in plan.placement.node_names if plan.hosts[n][1] == "fog"]
    nodes = [problem.network.node_index(name) for name in fogs]
    return found.demand.memory_bytes[np.isin(found.deployment.node, nodes)].sum()


@pytest.mark.parametrize("base", ["tsoo-both-ways", "atsoo-both-ways", "tsoo-optimal", "fog-only"])
def test_devices_take_operators_off_the_fog(base):
    problem = tw.Problem(application=edge_application(), network=area_network())
    plan = find_strategy("edge-fog-cloud")(problem, base=base)
    assert plan.feasible
    assert tw.check(plan, problem) == []
    on_devices = on_tier(plan, problem, "edge")
    assert on_devices
    # Devices without room leave the same operators to the fog.
    poor = tw.Problem(application=edge_application(), network=area_network(device_memory=0.0))
    without = find_strategy("edge-fog-cloud")(poor, base=base)
    assert not on_tier(without, poor, "edge")
    assert on_tier(without, poor, "fog") == on_devices | on_tier(plan, problem, "fog")
    assert fog_memory(plan, problem) < fog_memory(without, poor)


def test_no_device_is_asked_for_more_than_it_has():
    problem = tw.Problem(
        application=edge_application(), network=area_network(device_memory=2.5e6, device_ips=20e6)
    )
    plan = find_strategy("edge-fog-cloud")(problem)
    everything = find_strategy("edge-fog-cloud")(
        tw.Problem(application=edge_application(), network=area_network())
    )
    assert tw.check(plan, problem) == []
    assert len(on_tier(plan, problem, "edge")) < len(on_tier(everything, problem, "edge"))


def test_slow_devices_are_left_alone():
    limits = Limits(response_time_s=0.6, uplink_bps=1e9)
    slow = area_network(device_ips=65e6)
    problem = tw.Problem(application=edge_application(limits), network=slow)
    plan = find_strategy("edge-fog-cloud")(problem)
    assert plan.feasible
    assert plan.estimate.response_time_s <= 0.6


def test_what_runs_now_is_adapted():
    problem = tw.Problem(application=edge_application(), network=area_network())
    strategy = find_strategy("edge-fog-cloud")
    first = strategy(problem)
    assert strategy(problem, first.placement).placement == first.placement


def test_the_promises_of_all_strategies_are_kept_on_devices():
    problems = [
        tw.Problem(application=edge_application(), network=area_network(n)) for n in (1, 2, 3)
    ]
    assert check_strategy("edge-fog-cloud", problems=problems).feasible == 3


def test_sources_that_no_fog_is_above_are_refused():
    net = tw.scenarios.cloud_edge(1, 2, 3)
    app = tw.scenarios.random_application("etl", net)
    with pytest.raises(tw.InvalidInput, match="a fog site above it"):
        find_strategy("edge-fog-cloud")(tw.Problem(application=app, network=net))
    city = tw.Problem(application=tw.scenarios.taxi_fares(), network=tw.scenarios.fog_cloud(2))
    with pytest.raises(tw.InvalidInput, match="sources born on edge sites"):
        find_strategy("edge-fog-cloud")(city)
