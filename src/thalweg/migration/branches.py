"""Plans with several sequences of hosts, followed: at every step by the one that is cheapest then.

Section 4.3 of Ottenwälder et al. 2013, MigCEP.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from thalweg.migration.compiled.pricing import price_hosts
from thalweg.migration.fan import Fan
from thalweg.migration.outlook import Outlook
from thalweg.migration.situation import Situation
from thalweg.migration.turns import Agreement, as_seen
from thalweg.model.graph import Floats, Index


def follow_branches(
    situation: Situation, agreement: Agreement, first: int, leaf: Index, tick_bytes: Floats
) -> Index:
    """The hosts of each operator from step `first` on, a column for each row of what is seen.

    `leaf` and `tick_bytes` are where users are and what streams carry at each of these steps, a
    column each. When either changes, each operator in turn weighs the rest of all its sequences
    by what is known then, and goes by the cheapest, whatever it has to move for that.
    """
    operators = situation.city.graph.operators
    steps = leaf.shape[1]
    hosts = np.empty((len(operators), steps), dtype=np.int32)
    current = agreement.plans[:, first].tolist()
    following = agreement.plans.copy()
    for k in range(steps):
        step = first + k
        news = k > 0 and not (
            np.array_equal(leaf[:, k], leaf[:, k - 1])
            and np.array_equal(tick_bytes[:, k], tick_bytes[:, k - 1])
        )
        if news:
            seen = replace(
                situation,
                fans=as_seen(situation, step, leaf[:, k]),
                tick_bytes=np.ascontiguousarray(tick_bytes[:, k]),
            )
            plans = seen.with_operators(following)
            for position, operator in enumerate(operators):
                fan = agreement.choices[position].fan
                outlook = seen.outlook(position, plans, current[position])
                following[position] = fan.hosts[_cheapest(outlook, fan, step)]
                plans[operator.name] = Fan.certain(following[position])
        current = following[:, step].tolist()
        hosts[:, k] = current
    return hosts


def _cheapest(outlook: Outlook, fan: Fan, step: int) -> int:
    """The sequence whose rest costs least from where the operator is; ties: the first."""
    place, state = outlook.place_cost(), outlook.moves.state_bytes
    costs = []
    for hosts in fan.hosts:
        row_of, delay = outlook.moves.brokers.rows_from(hosts)
        costs.append(price_hosts(place, hosts, outlook.start, step, state, row_of, delay))
    return int(np.argmin(costs))
