"""D/M/1 for one queue, as `thalweg.estimate.queueing` has it for arrays."""

from __future__ import annotations

import math

from thalweg.compiling import kernel
from thalweg.estimate.queueing import LARGE_LOAD_RATIO, NEWTON_STEPS, SERIES_LIMIT


@kernel
def stable_dm1_sojourn_s(service_rate: float, interval_s: float) -> float:
    """Waiting and service time in D/M/1 where μ · interval > 1; of other queues nothing is said."""
    a = service_rate * interval_s
    s = a
    if a <= LARGE_LOAD_RATIO:
        excess = max(a - 1.0, 1e-17)
        s = 4.0 * excess / (1.0 + math.sqrt(1.0 + 4.0 / 3.0 * excess))
        for _ in range(NEWTON_STEPS):
            if s < SERIES_LIMIT:
                q = s * s
                r = s / 2 + q * (
                    1 / 12 - q * (1 / 720 - q * (1 / 30240 - q * (1 / 1209600 - q / 47900160)))
                )
            else:
                r = s / -math.expm1(-s) - 1.0
            s = s - (r - excess) * s / ((1.0 + r) * (s - r))
    return (math.exp(-s) / (s / a) + 1.0) / service_rate
