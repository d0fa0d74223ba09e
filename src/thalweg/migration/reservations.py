"""What operators have reserved at brokers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from thalweg.migration.city import City
from thalweg.migration.outlook import Flags
from thalweg.model.graph import Index

_EPSILON = 1e-9


class Reservations:
    """Instructions per second that operators have reserved at brokers, tick by tick."""

    def __init__(self, city: City) -> None:
        self._capacity = city.brokers.capacity_ips
        self._taken = np.zeros((city.ticks + 1, city.brokers.count))

    def room(
        self,
        ticks: Index,
        stride: int,
        demand_ips: float,
        beside: Sequence[tuple[Index, float]] = (),
    ) -> Flags:
        """Where so much is free during the steps of `stride` ticks that begin at these.

        Others `beside` it have yet to reserve what they need in each step.
        """
        last = len(self._taken) - 1
        taken = self._taken[np.minimum(ticks, last)]
        for later in range(1, stride):
            taken = np.maximum(taken, self._taken[np.minimum(ticks + later, last)])
        for hosts, demand in beside:
            taken[np.arange(len(hosts)), hosts] += demand
        return np.asarray(taken + demand_ips <= self._capacity * (1.0 + _EPSILON))

    def take(self, first: int, hosts: Index, demand_ips: float) -> None:
        """Reserve, or with a negative demand free, a sequence of hosts."""
        last = min(first + len(hosts), len(self._taken))
        np.add.at(self._taken, (np.arange(first, last), hosts[: last - first]), demand_ips)
