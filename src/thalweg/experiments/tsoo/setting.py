"""What is drawn before a run: the network, the applications, and the sequence of rates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from thalweg.model.application import Application
from thalweg.model.network import Network, Tier
from thalweg.scenarios.device_rates import DEVICE_BYTES_PER_S, EVENT_BYTES, split_devices
from thalweg.scenarios.fog_cloud import fog_cloud
from thalweg.scenarios.randomness import random_stream
from thalweg.scenarios.taxi import taxi_demand, taxi_fares

FOGS = 10
LEVELS = 11
"""How many different numbers of devices there are, M1 < … < M11."""
REPETITIONS = 15
FEWEST_DEVICES, MOST_DEVICES = 5_000, 75_000
SHARES = (0.55, 0.45)
"""The parts of the devices that feed App-1 and App-2."""
_EVENTS_PER_DEVICE = DEVICE_BYTES_PER_S / EVENT_BYTES


@dataclass(frozen=True, slots=True, eq=False)
class Setting:
    """One seed's draw."""

    network: Network
    applications: tuple[Application, Application]
    level: npt.NDArray[np.int64]
    """Of each step: which of M1…M11 holds, from 1."""
    devices: npt.NDArray[np.int64]
    """(steps, fogs): how many devices there are in each area."""

    def rates(self, step: int) -> list[dict[tuple[str, str], float]]:
        """Events/s of both applications in every fog."""
        counts = self.devices[step].tolist()
        return [
            {
                ("rides", f"fog-{k}"): count * share * _EVENTS_PER_DEVICE
                for k, count in enumerate(counts)
            }
            for share in SHARES
        ]


def draw_setting(seed: int, *, same_vm: bool, repetitions: int = REPETITIONS) -> Setting:
    """The setting of a seed; with `same_vm` the cloud is a machine like the fogs.

    Its memory is without limit then: the paper takes the cloud's memory as practically infinite
    (section 4.1), and means the machine's speed. Every one of M1…M11 is split over the areas
    `repetitions` times, and all of these steps come in a random order.
    """
    network = fog_cloud(FOGS, seed, same_vm=same_vm)
    if same_vm:
        memory = np.where(
            network.site_tier[network.node_site] == Tier.CLOUD, np.inf, network.node_memory_bytes
        )
        network = network.with_available(
            node_memory_bytes=memory, node_memory_available_bytes=memory
        )
    levels = np.sort(
        random_stream(seed, "levels").integers(FEWEST_DEVICES, MOST_DEVICES + 1, LEVELS)
    )
    rng = random_stream(seed, "split")
    split = np.array(
        [split_devices(FOGS, int(devices), rng) for devices in levels for _ in range(repetitions)]
    )
    level = np.repeat(np.arange(1, LEVELS + 1), repetitions)
    order = random_stream(seed, "order").permutation(level.size)
    return Setting(
        network=network,
        applications=(taxi_fares(seed), taxi_demand(seed)),
        level=level[order],
        devices=split[order],
    )
