"""Events through one operator that moves: what each waits for, what each move sends."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from thalweg.compiling import kernel

Floats = npt.NDArray[np.float64]
Index = npt.NDArray[np.int32]
Rows = npt.NDArray[np.int64]

AT_S, SOURCE, TARGET, MUTABLE_BYTES, DOWNTIME_S, DELAYED, TAKES_S = range(7)
FIGURES = 7
"""Of each move: arrival, from, to, events sent along, how long it stood still, events that waited
for it, and how long its transfer took."""


@kernel
def pass_operator(
    sent_s: Floats, came_from: Index, size: Floats, hosts: Index, tick_s: float, window_s: float,
    immutable_bytes: float, delay_s: Floats, bandwidth_bps: Floats, work_s: Floats,
    left_s: Floats, ran_at: Index, served: Rows, moves: Floats,
) -> tuple[int, int]:  # fmt: skip
    """Serve events in the order they were sent; gives moves made and events short of state.

    From the moment of a move on neighbours send to the target; what was sent before is served at
    the source. The target begins when the state is there and the source has served its last
    event and said so. It holds what the source held of its window at the moment of the move, and
    what was sent to itself: an event whose window reaches further back is short of state.
    """
    at, last_tick, made, short = hosts[0], 0, 0, 0
    free_s, ready_s = 0.0, 0.0
    held, oldest = 0, 0
    # Once more after the last event: an operator that nobody sends to any more still moves.
    for event in range(sent_s.size + 1):
        is_over = event == sent_s.size
        now_s = hosts.size * tick_s if is_over else sent_s[event]
        tick = min(int(now_s / tick_s), hosts.size - 1)
        for t in range(last_tick + 1, tick + 1):
            if hosts[t] == at:
                continue
            to, move_s = hosts[t], t * tick_s
            first = held
            while first < event and sent_s[first] < move_s - window_s:
                first += 1
            mutable = 0.0
            for k in range(first, event):
                mutable += size[k]
            takes_s = (immutable_bytes + mutable) * 8.0 / bandwidth_bps[at, to] + delay_s[at, to]
            tail = 0.0
            for k in range(first, event):
                if sent_s[k] >= move_s - takes_s:
                    tail += size[k]
            # Only then is it known which event was the last one of the source.
            done_s = max(move_s, free_s, ready_s)
            ready_s = done_s + delay_s[at, to]
            if tail > 0.0:
                ready_s += tail * 8.0 / bandwidth_bps[at, to]
            moves[made, AT_S], moves[made, SOURCE], moves[made, TARGET] = move_s, at, to
            moves[made, MUTABLE_BYTES], moves[made, TAKES_S] = mutable, takes_s
            moves[made, DOWNTIME_S], moves[made, DELAYED] = 0.0, 0.0
            made, held, at = made + 1, first, to
        if is_over:
            break
        last_tick = max(last_tick, tick)
        while sent_s[oldest] <= now_s - window_s and oldest < event:
            oldest += 1
        short += held > oldest
        there_s = now_s + delay_s[came_from[event], at]
        could_s = max(there_s, free_s)
        if ready_s > could_s:
            moves[made - 1, DOWNTIME_S] = max(moves[made - 1, DOWNTIME_S], ready_s - could_s)
            moves[made - 1, DELAYED] += 1.0
            could_s = ready_s
        free_s = could_s + work_s[at]
        left_s[event], ran_at[event] = free_s, at
        served[event] += 1
    return made, short
