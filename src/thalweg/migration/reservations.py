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
        self, ticks: Index, demand_ips: float, beside: Sequence[tuple[Index, float]] = ()
    ) -> Flags:
        """Where so much is free at these ticks, with others `beside` it who have yet to reserve."""
        taken = self._taken[np.minimum(ticks, len(self._taken) - 1)]
        for hosts, demand in beside:
            taken[np.arange(len(hosts)), hosts] += demand
        return np.asarray(taken + demand_ips <= self._capacity * (1.0 + _EPSILON))

    def take(self, first: int, hosts: Index, demand_ips: float) -> None:
        """Reserve, or with a negative demand free, a sequence of hosts."""
        last = min(first + len(hosts), len(self._taken))
        np.add.at(self._taken, (np.arange(first, last), hosts[: last - first]), demand_ips)
