"""How many devices each area has, and the events that they put out.

After section 6.2 of Ntumba et al. 2024, Adaptive Scheduling of Continuous Operators for IoT Edge
Analytics.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from thalweg.errors import Defects
from thalweg.scenarios.parameters import require_amounts, require_count

DEVICE_BYTES_PER_S = 6_000.0
"""What one device sends."""
EVENT_BYTES = 200.0
"""The size of one of its events; with it a device sends 30 events/s."""

_MOST_DEVICES = 10**12


def split_devices(areas: int, devices: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """How many of the devices are in each area: uniform draws, scaled so that they add up.

    What scaling leaves over after rounding down goes to the areas with the largest fractions;
    ties: the lower area.

    >>> split_devices(4, 1000, np.random.default_rng(0)).sum()
    np.int64(1000)
    """
    defects = Defects()
    require_count(defects, "areas", areas, 1, 1_000_000)
    require_count(defects, "devices", devices, 0, _MOST_DEVICES)
    defects.raise_if_any()
    # 1 − random is never 0, so the sum is never 0.
    drawn = 1.0 - rng.random(areas)
    shares = drawn * (devices / drawn.sum())
    counts: npt.NDArray[np.int64] = np.floor(shares).astype(np.int64)
    by_fraction = np.argsort(counts - shares, kind="stable")
    left = devices - int(counts.sum())
    counts[by_fraction[:left]] += 1
    return counts


def device_rates(
    fogs: int,
    devices: int,
    rng: np.random.Generator,
    *,
    source: str = "rides",
    share: float = 1.0,
    device_bytes_per_s: float = DEVICE_BYTES_PER_S,
    event_bytes: float = EVENT_BYTES,
) -> dict[tuple[str, str], float]:
    """Events/s of the source in each of `fog-0…`, as `Problem` takes them.

    `share` is the part of the devices that feed this application. For two applications on the
    same devices, give both calls a generator of the same seed and shares such as 0.55 and 0.45.

    >>> rates = device_rates(2, 100, np.random.default_rng(0))
    >>> sorted(rates), sum(rates.values())
    ([('rides', 'fog-0'), ('rides', 'fog-1')], 3000.0)
    """
    defects = Defects()
    require_amounts(defects, most=1.0, share=share)
    require_amounts(defects, device_bytes_per_s=device_bytes_per_s, event_bytes=event_bytes)
    defects.raise_if_any()
    counts = split_devices(fogs, devices, rng)
    per_device = share * device_bytes_per_s / event_bytes
    return {(source, f"fog-{k}"): count * per_device for k, count in enumerate(counts.tolist())}
