"""Everything the formulas say about a placement, put together as a plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from thalweg.estimate.constraints import find_violations
from thalweg.estimate.delay_product import delay_product_bits
from thalweg.estimate.demand import Demand, estimate_demand
from thalweg.estimate.latency import (
    Latencies,
    aggregate_latency_s,
    estimate_latencies,
    worst_latency_s,
)
from thalweg.estimate.rates import Rates, estimate_rates
from thalweg.estimate.response import Response, estimate_response
from thalweg.estimate.usage import Usage, estimate_usage
from thalweg.model.deployment import Deployment, deploy
from thalweg.model.network import Tier
from thalweg.model.placement import Placement
from thalweg.model.plan import Estimate, Plan, Reason
from thalweg.model.problem import Problem


@dataclass(frozen=True, eq=False)
class Evaluation:
    """A deployment with every estimate in detail."""

    deployment: Deployment
    rates: Rates
    demand: Demand
    latencies: Latencies
    response: Response
    usage: Usage

    @property
    def estimate(self) -> Estimate:
        """The figures that a plan carries."""
        return Estimate(
            aggregate_latency_s=aggregate_latency_s(self.deployment, self.latencies),
            worst_latency_s=worst_latency_s(self.deployment, self.latencies),
            path_count=float(
                self.deployment.graph.path_counts[0][self.deployment.graph.leaves].sum()
            ),
            response_time_s=self.response.response_time_s,
            uplink_bps=self.usage.uplink_bps,
            usage=self.usage.total,
            delay_product_bits=delay_product_bits(self.deployment, self.rates),
        )


def evaluate(problem: Problem, placement: Placement) -> Evaluation:
    """Every estimate of a placement."""
    for known_problem, known_placement, known in _last:
        if known_problem is problem and known_placement is placement:
            return known
    deployment = deploy(problem, placement)
    rates = estimate_rates(deployment)
    demand = estimate_demand(deployment, rates)
    response = estimate_response(deployment, rates, demand)
    evaluation = Evaluation(
        deployment=deployment,
        rates=rates,
        demand=demand,
        latencies=estimate_latencies(deployment, rates, demand),
        response=response,
        usage=estimate_usage(deployment, rates, demand, emission=response.emission_bytes),
    )
    _last[:] = [(problem, placement, evaluation)]
    return evaluation


# A plan that has just been made is asked next what it takes from others.
_last: list[tuple[Problem, Placement, Evaluation]] = []


def find_hosts(problem: Problem, placement: Placement) -> dict[str, tuple[str, str]]:
    """Site and tier of every node in the placement."""
    net = problem.network
    known = placement.indices_in(net)
    nodes = [net.node_index(name) for name in placement.node_names] if known is None else known[0]
    sites = net.node_site[nodes]
    labels = {int(tier): tier.label for tier in Tier}
    tiers = net.site_tier[sites].tolist()
    return {
        name: (net.site_names[site], labels[tier])
        for name, site, tier in zip(placement.node_names, sites.tolist(), tiers, strict=True)
    }


def make_plan(
    problem: Problem,
    placement: Placement,
    *,
    strategy: str,
    objective_name: str = "aggregate_latency_s",
    reasons: Sequence[Reason] = (),
    seconds: float = 0.0,
    candidates: int = 0,
    gap: float | None = None,
) -> Plan:
    """The plan that a strategy returns; its objective is one of the estimates, by name."""
    evaluation = evaluate(problem, placement)
    estimate = evaluation.estimate
    return Plan(
        application=problem.application.name,
        network=problem.network.name,
        strategy=strategy,
        placement=placement,
        hosts=find_hosts(problem, placement),
        objective_name=objective_name,
        objective=float(getattr(estimate, objective_name)),
        estimate=estimate,
        violations=find_violations(
            evaluation.deployment,
            evaluation.rates,
            evaluation.demand,
            response_time_s=estimate.response_time_s,
            uplink_bps=estimate.uplink_bps,
        ),
        reasons=tuple(reasons),
        seconds=seconds,
        candidates=candidates,
        gap=gap,
    )
