"""The bandwidth-delay product of a deployment: how many bits are on their way at any moment.

The network utilisation of Ottenwälder et al. 2013, MigCEP: Operator Migration for Mobility Driven
Distributed Complex Event Processing.
"""

from __future__ import annotations

import numpy as np

from thalweg.estimate.rates import Rates
from thalweg.model.deployment import Deployment
from thalweg.model.graph import Floats


def flow_delay_product_bits(deployment: Deployment, rates: Rates) -> Floats:
    """Bandwidth × delay of each edge; nothing on the same node, nothing where nothing flows."""
    with np.errstate(invalid="ignore"):
        product = rates.flow_bps * deployment.edge_latency_s
    return np.where(rates.flow_bps > 0, product, 0.0)


def delay_product_bits(deployment: Deployment, rates: Rates) -> float:
    """The sum over all edges."""
    return float(flow_delay_product_bits(deployment, rates).sum())
