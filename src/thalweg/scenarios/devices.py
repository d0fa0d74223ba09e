"""Classes of machines that edge scenarios are built from.

The figures are nominal: round, on the scale on which Ntumba et al. 2024 give a fog machine
2,400–8,150 MIPS and a cloud machine 35,900 MIPS and 12 GB. They are not measurements. Do not mix
them with those of `cloud_edge`, whose paper counts the same sort of board as about 5 MIPS.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from thalweg.errors import Defects
from thalweg.model import Node
from thalweg.scenarios.parameters import require_amounts


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceClass:
    """A sort of machine.

    >>> SINGLE_BOARD.node("pole-3").cpu_ips
    1200000000.0
    """

    name: str
    cpu_ips: float
    memory_bytes: float

    def __post_init__(self) -> None:
        defects = Defects()
        require_amounts(defects, cpu_ips=self.cpu_ips, memory_bytes=self.memory_bytes)
        defects.raise_if_any()

    def node(
        self, name: str, *, lan_latency_s: float = 0.0, lan_bandwidth_bps: float = math.inf
    ) -> Node:
        """A machine of this class."""
        return Node(
            name=name,
            cpu_ips=self.cpu_ips,
            memory_bytes=self.memory_bytes,
            lan_latency_s=lan_latency_s,
            lan_bandwidth_bps=lan_bandwidth_bps,
        )


SINGLE_BOARD = DeviceClass(name="single-board", cpu_ips=1_200e6, memory_bytes=1e9)
"""A single-board computer, such as a Raspberry Pi 3 or 4."""
GPU_BOARD = DeviceClass(name="gpu-board", cpu_ips=2_400e6, memory_bytes=4e9)
"""A board with a small GPU, such as a Jetson; its speed is that of its CPU."""
MINI_PC = DeviceClass(name="mini-pc", cpu_ips=8_000e6, memory_bytes=16e9)
"""A small desktop computer used as a gateway, such as a NUC."""
SERVER = DeviceClass(name="server", cpu_ips=24_000e6, memory_bytes=64e9)
"""A rack server of a cloudlet or of a factory, such as a Xeon."""
CLOUD_VM = DeviceClass(name="cloud-vm", cpu_ips=35_900e6, memory_bytes=12e9)
"""A virtual machine in a cloud."""

DEVICE_CLASSES: Mapping[str, DeviceClass] = MappingProxyType(
    {sort.name: sort for sort in (SINGLE_BOARD, GPU_BOARD, MINI_PC, SERVER, CLOUD_VM)}
)
