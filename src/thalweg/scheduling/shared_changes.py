"""What starts and stops in the cloud when cuts change: operators that all streams share."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from thalweg.scheduling.schedule import Choice, Table

Flags = npt.NDArray[np.bool_]


def count_shared_changes(table: Table, running: Choice, choice: Choice) -> int:
    """Operators and unions in the cloud that start or stop between two choices of cuts."""
    before, after = _shared_parts(table, running), _shared_parts(table, choice)
    return int(np.count_nonzero(before != after))


def least_shared_changes(table: Table, running: Choice, allowed: Flags) -> int:
    """At least so many of them change, whichever allowed cuts are chosen; unions left aside."""
    columns = table.problem.application.columns
    transform = columns.is_transform
    members = table.cuts.members.astype(np.int64)
    on_fog = allowed.T.astype(np.int64) @ members
    count = allowed.sum(axis=0)[:, None]
    fed = table.traffic.fed.T
    surely_there = ((on_fog == 0) & fed).any(axis=0) & transform
    surely_gone = ((on_fog == count) | ~fed).all(axis=0) & transform
    runs = (fed & ~table.cuts.members[running]).any(axis=0)
    return int(np.count_nonzero((surely_there & ~runs) | (surely_gone & runs)))


def _shared_parts(table: Table, choice: Choice) -> Flags:
    """Whether each operator, and the union of each stream, runs in the cloud."""
    app = table.problem.application
    columns, graph = app.columns, app.graph
    fed = table.traffic.fed.T
    in_cloud = ~columns.is_source & (fed & ~table.cuts.members[choice]).any(axis=0)
    senders = (table.cuts.crossing[choice] & fed[:, graph.source]).sum(axis=0) + (
        in_cloud[graph.source] & in_cloud[graph.target]
    )
    return np.concatenate([in_cloud, senders > 1])
