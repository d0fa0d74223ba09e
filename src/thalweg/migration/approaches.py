"""Ways to keep operators near their users, by name."""

from __future__ import annotations

from heapq import heapify, heappop, heappush

import numpy as np

from thalweg.migration.baselines import drive_greedy, drive_lookahead, drive_static, nowhere
from thalweg.migration.city import City
from thalweg.migration.drive import Drive, Effort
from thalweg.migration.mobility import Predictor
from thalweg.migration.pilot import Pilot
from thalweg.migration.policies import Policy, weighted_sum
from thalweg.migration.reservations import Reservations
from thalweg.migration.settings import Settings
from thalweg.migration.situation import moves_of

BASELINES = {
    "static": drive_static,
    "greedy": drive_greedy,
    "lookahead-optimal": drive_lookahead,
}
SETTINGS = Settings()


def drive_migcep(
    city: City,
    predictor: Predictor,
    policy: Policy = weighted_sum,
    settings: Settings = SETTINGS,
    *,
    name: str = "migcep",
) -> Drive:
    """Plan for every instance whenever it has to, in the order of time.

    Instances meet only where a broker could become full; then whoever plans first reserves first.
    """
    pilots = fly(city, predictor, policy, settings)
    hosts, effort = nowhere(city), Effort()
    for k, (first, end) in enumerate(city.life.tolist()):
        hosts[k, :, first:end] = pilots[k].hosts
        effort += pilots[k].effort
    return Drive(city=city, approach=name, hosts=hosts, effort=effort)


def fly(
    city: City,
    predictor: Predictor,
    policy: Policy,
    settings: Settings,
    *,
    until: int | None = None,
) -> list[Pilot]:
    """A pilot for each instance, having decided all that there is to decide before a tick."""
    moves = moves_of(city, settings)
    reservations = Reservations(city) if could_be_full(city) else None
    pilots = [
        Pilot.of(city, k, predictor, policy, settings, moves, reservations)
        for k in range(city.instances)
    ]
    last = city.ticks if until is None else until
    due = [(int(city.life[k, 0]), k) for k in range(city.instances)]
    heapify(due)
    while due:
        tick, k = heappop(due)
        first, end = (min(moment, last) for moment in city.life[k].tolist())
        # Instance after instance where they don't meet: what one needs stays in the cache.
        while tick < end and (reservations is None or not due or (tick, k) <= due[0]):
            tick = first + pilots[k].plan(tick - first)
        if tick < end:
            heappush(due, (tick, k))
    return pilots


def could_be_full(city: City) -> bool:
    """Whether all operators together are more than some broker that one of them fits on can host.

    A broker on which none fits is left out by every plan anyway.
    """
    demand = np.array([operator.demand_ips for operator in city.graph.operators])
    fits = city.brokers.capacity_ips >= demand.min()
    return bool((city.brokers.capacity_ips[fits] < demand.sum() * city.instances).any())
