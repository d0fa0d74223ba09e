"""The loop that drives vehicles along their routes, standing now and then."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from thalweg.compiling import kernel, leaf
from thalweg.model.graph import Floats, Index

Rows = npt.NDArray[np.int64]


@kernel
def drive(
    depart: Rows,
    first_step: Rows,
    edge: Index,
    length_m: Floats,
    road_score: Floats,
    speed_ms: Floats,
    drive_s: Floats,
    stand_s: Floats,
    shares: Floats,
    persistence: float,
    shift: float,
    patience: float,
    step_s: float,
    haste: Floats,
    normal: Floats,
    uniform: Floats,
) -> tuple[Rows, Rows, Floats, Floats, Rows]:
    """Moment, step of all routes, metres along it and speed of each row; and whose row it is.

    A speed is a quantile of `speed_ms`: its normal score is that of the road, the `haste` of the
    vehicle and what changes, weighted by `shares`, and `shift`. What changes goes on from moment to
    moment as `persistence` says. Row v of `normal` and `uniform` is the chance of vehicle v, a
    column for each moment.
    """
    vehicles, moments = normal.shape
    most = 0
    for vehicle in range(vehicles):
        most += moments - depart[vehicle]
    moment, place = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64)
    along, speed = np.empty(most), np.empty(most)
    user = np.empty(most, dtype=np.int64)
    news = math.sqrt(1.0 - persistence * persistence)
    rows = 0
    for vehicle in range(vehicles):
        step, end = first_step[vehicle], first_step[vehicle + 1]
        # On average over all vehicles, standing takes as long as measured.
        slowness = math.exp(-patience * haste[vehicle] - 0.5 * patience * patience)
        pos, own, is_driving, left_s, has_arrived = 0.0, 0.0, False, 0.0, False
        for now in range(depart[vehicle], moments):
            if now == depart[vehicle]:
                own = normal[vehicle, now]
            else:
                own = persistence * own + news * normal[vehicle, now]
            if left_s <= 0.0:
                is_driving = not is_driving
                left_s += _quantile(drive_s if is_driving else stand_s, uniform[vehicle, now]) * (
                    1.0 if is_driving else slowness
                )
            left_s -= step_s
            fast = 0.0
            if is_driving and not has_arrived:
                score = shares[0] * road_score[edge[step]] + shift
                score += shares[1] * haste[vehicle] + shares[2] * own
                fast = _quantile(speed_ms, 0.5 * math.erfc(-score / math.sqrt(2.0)))
            moment[rows], place[rows], along[rows], speed[rows] = now, step, pos, fast
            user[rows] = vehicle
            rows += 1
            if has_arrived:
                break
            pos += fast * step_s
            while pos > length_m[edge[step]] and step < end - 1:
                pos -= length_m[edge[step]]
                step += 1
            if pos >= length_m[edge[step]] and step == end - 1:
                pos, has_arrived = length_m[edge[step]], True
    return moment[:rows], place[:rows], along[:rows], speed[:rows], user[:rows]


@leaf
def _quantile(quantiles: Floats, share: float) -> float:
    """The quantile at a share from 0 to 1, of quantiles at even steps."""
    last = quantiles.size - 1
    below = min(int(share * last), last - 1)
    found: float = quantiles[below] + (share * last - below) * (
        quantiles[below + 1] - quantiles[below]
    )
    return found
