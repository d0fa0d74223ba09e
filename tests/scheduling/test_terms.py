"""Each further term is off by default, and changes the decision where it is on."""

import numpy as np
import pytest

import thalweg as tw
from thalweg.scenarios import fog_cloud, taxi_demand, taxi_fares
from thalweg.scheduling.schedule import Table
from thalweg.scheduling.terms import EnergyModel, cost_cuts_with, energy_usage, state_usage
from thalweg.strategy import find_strategy


def with_state(app, state):
    operators = [
        tw.Operator(**{**fields(o), "state": state if o.kind == "transform" else 0.0})
        for o in app.operators
    ]
    return tw.Application(
        name=app.name, operators=operators, streams=app.streams, limits=app.limits
    )


def fields(operator):
    return {name: getattr(operator, name) for name in operator.__dataclass_fields__}


def replicas(plan):
    return sum(i.origin is not None and i.operator != "rides" for i in plan.placement)


@pytest.mark.parametrize("name", ["atsoo-both-ways", "tsoo-optimal"])
def test_state_that_is_dear_to_move_stays(name):
    problem = tw.Problem(application=with_state(taxi_fares(), 1e6), network=fog_cloud(4))
    in_cloud = find_strategy("trcs")(problem).placement
    strategy = find_strategy(name)
    assert replicas(strategy(problem, in_cloud)) > 0
    assert strategy(problem, in_cloud, state_weight=0.0) == strategy(problem, in_cloud)
    assert strategy(problem, in_cloud, state_weight=1e6).placement == in_cloud
    # Without state there is nothing to pay for.
    light = tw.Problem(application=taxi_fares(), network=fog_cloud(4))
    assert replicas(strategy(light, in_cloud, state_weight=1e6)) > 0


def test_moving_state_costs_what_its_bytes_are_of_a_second_of_all_uplinks():
    problem = tw.Problem(application=with_state(taxi_fares(), 1000.0), network=fog_cloud(2))
    table = Table.of(problem)
    running = np.array([0, 1])
    cost = state_usage(table, running)
    uplinks = problem.network.wan.available_bps(np.array([0, 1]), np.array([2, 2])).sum()
    for cut in range(len(table.cuts)):
        for stream in range(2):
            moved = (table.cuts.members[cut] != table.cuts.members[running[stream]]).sum()
            assert cost[cut, stream] == pytest.approx(moved * 8000.0 / uplinks)


@pytest.mark.parametrize("name", ["tsoo-both-ways", "atsoo-both-ways", "tsoo-optimal"])
def test_energy_moves_operators_to_where_they_draw_less(name):
    problem = tw.Problem(application=taxi_demand(), network=fog_cloud(4))
    strategy = find_strategy(name)
    plain = strategy(problem)
    assert strategy(problem, energy_weight=0.0) == plain
    table = Table.of(problem)
    energy = energy_usage(table)
    thrifty = strategy(problem, energy_weight=1e3)

    def power(plan):
        return energy[table.choice_of(plan.placement), np.arange(4)].sum()

    assert power(thrifty) < power(plain)
    # Where the fog is the thirsty one, nothing runs there.
    greedy = EnergyModel(fog_j_per_instruction=1.0, uplink_j_per_bit=0.0)
    assert energy_usage(table, greedy).argmin(axis=0).tolist() == [0] * 4
    # Where sending is, as little as can be is sent.
    dear = EnergyModel(fog_j_per_instruction=0.0, cloud_j_per_instruction=0.0, uplink_j_per_bit=1.0)
    assert (
        table.costs.uplink_bps[energy_usage(table, dear).argmin(axis=0), np.arange(4)].tolist()
        == table.costs.uplink_bps.min(axis=0).tolist()
    )


def test_a_price_on_changes_keeps_what_runs():
    problem = tw.Problem(application=taxi_fares(), network=fog_cloud(4))
    in_cloud = find_strategy("trcs")(problem).placement
    strategy = find_strategy("tsoo-optimal")
    assert strategy(problem, in_cloud).placement != in_cloud
    assert strategy(problem, in_cloud, reschedule_weight=1.0).placement == in_cloud


def test_weights_are_checked_all_at_once():
    table = Table.of(tw.Problem(application=taxi_fares(), network=fog_cloud(2)))
    with pytest.raises(tw.InvalidInput) as told:
        cost_cuts_with(table, None, energy_weight=-1, state_weight=float("nan"))
    assert {d.path for d in told.value.defects} == {"energy_weight", "state_weight"}
    with pytest.raises(tw.InvalidInput, match="uplink_j_per_bit"):
        EnergyModel(uplink_j_per_bit=-1.0)
