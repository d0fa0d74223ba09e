"""How fast the cores of a run's sites are, so that measured CPU time becomes instructions."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from thalweg.model import Network
from thalweg.spark.profile.calibration import calibrate

_ROUNDS, _REPEAT = 2_000_000, 3
"""Enough for a few per cent; a profile measures for longer."""


class SiteSpeeds:
    """Instructions/s of a core of each site: measured on this machine, declared elsewhere.

    The measurement takes a second of CPU in a thread of its own, once, beside the sites' start.
    """

    def __init__(self, masters: Mapping[str, str], network: Network) -> None:
        self._here = tuple(site for site, master in masters.items() if master.startswith("local"))
        first = {site: network.first_node[network.site_index[site]] for site in masters}
        self._speeds = {
            site: float(network.node_cpu_ips[first[site]])
            for site in masters
            if site not in self._here
        }
        self._lock = threading.Lock()
        if self._here:
            threading.Thread(target=self._measure, name="calibration", daemon=True).start()

    def known(self) -> dict[str, float]:
        """What is known by now."""
        with self._lock:
            return dict(self._speeds)

    def _measure(self) -> None:
        speed = calibrate(rounds=_ROUNDS, repeat=_REPEAT).speed_ips.value
        with self._lock:
            self._speeds |= dict.fromkeys(self._here, speed)
