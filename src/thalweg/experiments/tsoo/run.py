"""One strategy through one seed's sequence, both applications at every step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from thalweg.experiments.tsoo.setting import Setting, draw_setting
from thalweg.model.network import Network, Tier
from thalweg.model.plan import Plan
from thalweg.planning import Turn, plan_in_turn
from thalweg.scheduling.optimal import least_usage
from thalweg.scheduling.rewrite import count_changes

BASELINES = ("tsoo", "atsoo", "trcs")
"""Experiment 1: section 7.1 of the paper."""
RELATED = ("tsoo", "atsoo", "fog-only", "fc-interplay")
"""Experiment 2: section 7.2; the cloud has the same machine as the fogs."""
OURS = "tsoo-optimal"
MOST_BOXES = 50
"""How far `tsoo-optimal` searches: a few of its answers are not proven then."""

COMPARED_EVERY = 3
"""At every third step `tsoo-optimal` is asked the same, for comparison."""

COLUMNS = pa.schema(
    [
        ("step", pa.int64()),
        ("level", pa.int64()),
        ("devices", pa.int64()),
        ("application", pa.string()),
        ("usage", pa.float64()),
        ("uplink_bps", pa.float64()),
        ("response_time_s", pa.float64()),
        ("uplink_violated", pa.bool_()),
        ("time_violated", pa.bool_()),
        ("feasible", pa.bool_()),
        ("started", pa.int64()),
        ("stopped", pa.int64()),
        ("seconds", pa.float64()),
        ("fog_memory_share", pa.float64()),
        ("uplink_share", pa.float64()),
        ("compared", pa.bool_()),
        # The usage of tsoo-optimal on the very same problem; null where it finds none.
        ("least_usage", pa.float64()),
    ]
)


def list_points(seeds: int) -> list[dict[str, object]]:
    """Every strategy of each experiment through every seed's sequence."""
    return [
        {"experiment": experiment, "seed": seed, "strategy": strategy}
        for experiment, rivals in ((1, BASELINES), (2, RELATED))
        for strategy in (*rivals, OURS)
        for seed in range(seeds)
    ]


def run_point(point: Mapping[str, Any]) -> list[dict[str, object]]:
    """A row for each application at each step."""
    setting = draw_setting(
        int(point["seed"]),
        same_vm=point["experiment"] == 2,
        repetitions=int(point["repetitions"]),
    )
    current: list[Plan | None] = [None, None]
    rows: list[dict[str, object]] = []
    for step in range(setting.level.size):
        free, following = setting.network, []
        turns = plan_in_turn(
            setting.applications,
            setting.network,
            point["strategy"],
            rates=setting.rates(step),
            current=current,
            # As in the paper App-1 is planned before App-2 is there: it poses every strategy the
            # same problems.
            count_later=False,
            **({"most_boxes": MOST_BOXES} if point["strategy"] == OURS else {}),
        )
        for k, turn in enumerate(turns):
            rows.append(_row(setting, step, k, current[k], turn, free))
            following.append(turn.plan)
            free = turn.left
        current = [*following]
    return rows


def _row(
    setting: Setting,
    step: int,
    k: int,
    running: Plan | None,
    turn: Turn,
    free: Network,
) -> dict[str, object]:
    network, application, plan = setting.network, setting.applications[k], turn.plan
    changes = count_changes(application, running.placement if running else None, plan.placement)
    broken = {violation.constraint for violation in plan.violations}
    fogs = network.site_tier[network.node_site] == Tier.FOG
    taken = free.node_memory_available_bytes[fogs] - turn.left.node_memory_available_bytes[fogs]
    uplinks = network.wan.bandwidth_bps(
        network.node_site[fogs], np.full(int(fogs.sum()), network.site_count - 1)
    )
    best: float | None = plan.estimate.usage if plan.feasible else None
    compared = plan.strategy == OURS or step % COMPARED_EVERY == 0
    if plan.strategy != OURS:
        best = least_usage(turn.problem, most_boxes=MOST_BOXES) if compared else None
    return {
        "step": step,
        "level": int(setting.level[step]),
        "devices": int(setting.devices[step].sum()),
        "application": application.name,
        "usage": plan.estimate.usage,
        "uplink_bps": plan.estimate.uplink_bps,
        "response_time_s": plan.estimate.response_time_s,
        "uplink_violated": "uplink" in broken,
        "time_violated": "response-time" in broken,
        "feasible": plan.feasible,
        "started": changes.started,
        "stopped": changes.stopped,
        "seconds": plan.seconds,
        "fog_memory_share": float(taken.sum() / network.node_memory_bytes[fogs].sum()),
        "uplink_share": plan.estimate.uplink_bps / float(uplinks.sum()),
        "compared": compared,
        "least_usage": best,
    }
