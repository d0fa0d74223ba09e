import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import thalweg as tw
from scheduling.problems import random_fog_problem
from thalweg.estimate.evaluate import evaluate
from thalweg.estimate.sharing import leave_to_others
from thalweg.planning import plan_all
from thalweg.scenarios import fog_cloud, taxi_demand, taxi_fares
from thalweg.strategy import find_strategy


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 5))
def test_what_is_left_is_what_was_there_less_what_each_instance_takes(seed, fogs, transforms):
    problem = random_fog_problem(seed, fogs=fogs, transforms=transforms)
    net = problem.network
    placement = find_strategy("tsoo-both-ways")(problem).placement
    found = evaluate(problem, placement)
    left = leave_to_others(problem, placement, net)
    memory, cpu = np.array(net.node_memory_available_bytes), np.array(net.node_cpu_available_ips)
    operators = net.node_operators.tolist()
    for k in range(found.deployment.size):
        node = int(found.deployment.node[k])
        memory[node] -= found.demand.memory_bytes[k]
        cpu[node] -= found.demand.cpu_ips[k]
        kind = problem.application.operators[int(found.deployment.operator[k])].kind
        operators[node] += kind == "transform"
    assert left.node_memory_available_bytes == pytest.approx(np.maximum(memory, 0))
    assert left.node_cpu_available_ips == pytest.approx(np.maximum(cpu, 0))
    assert left.node_operators.tolist() == operators
    graph = found.deployment.graph
    sent = np.zeros(net.site_count)
    for edge in range(graph.source.size):
        a = net.node_site[found.deployment.node[graph.source[edge]]]
        if a != net.node_site[found.deployment.node[graph.target[edge]]]:
            sent[a] += found.rates.flow_bps[edge]
    cloud = net.site_count - 1
    for site in range(cloud):
        free = float(net.wan.available_bps(site, cloud)) - sent[site]
        assert float(left.wan.available_bps(site, cloud)) == pytest.approx(max(free, 0.0))


def test_the_second_application_gets_what_the_first_leaves():
    net = fog_cloud(4, seed=2)
    apps = [taxi_fares(), taxi_demand()]
    first, second = plan_all(apps, net, "tsoo-both-ways")
    assert first == tw.plan(apps[0], net, "tsoo-both-ways")
    left = leave_to_others(tw.Problem(application=apps[0], network=net), first.placement, net)
    assert second == tw.plan(apps[1], left, "tsoo-both-ways")
    assert second.estimate.usage > tw.plan(apps[1], net, "tsoo-both-ways").estimate.usage


def test_operators_of_an_application_planned_later_still_share_the_cpu():
    net = fog_cloud(4, seed=2)
    apps = [taxi_fares(), taxi_demand()]
    before = plan_all(apps, net, "tsoo-both-ways")
    again = plan_all(apps, net, "atsoo-both-ways", current=before)
    assert again[0].estimate.response_time_s > before[0].estimate.response_time_s
    assert again[0].estimate.usage == before[0].estimate.usage


def test_wrong_lists_are_told():
    net = fog_cloud(2)
    with pytest.raises(tw.InvalidInput) as told:
        plan_all([taxi_fares(), taxi_fares()], net, "tsoo-both-ways", rates=[None])
    assert {d.path for d in told.value.defects} == {"rates", "applications"}


def test_what_runs_now_is_checked_for_all_applications_first():
    net = fog_cloud(2)
    with pytest.raises(tw.InvalidInput, match="a Plan, a Placement or None"):
        plan_all([taxi_fares(), taxi_demand()], net, "tsoo-both-ways", current=[None, "x"])
