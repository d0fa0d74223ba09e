"""The order in which greedy strategies place operators.

Algorithm 1 of da Silva Veith et al., Latency-Aware Strategies for Deploying Data Stream Processing
Applications on Large Cloud-Edge Infrastructure.
"""

from __future__ import annotations

from collections import deque

from thalweg.model.application import Application


def deployment_sequence(application: Application) -> list[int]:
    """Operators by index, breadth first, every one after all that send to it.

    Sources come first, in the order given; then a queue is turned: an operator whose senders are
    not all in the sequence yet goes back to its end. Ties: the order of the streams.
    """
    graph = application.graph
    downstream: list[list[int]] = [[] for _ in application.operators]
    waiting_for = [0] * len(application.operators)
    for source, target in zip(graph.source.tolist(), graph.target.tolist(), strict=True):
        downstream[source].append(target)
        waiting_for[target] += 1
    sequence: list[int] = []
    queue: deque[int] = deque()
    queued: set[int] = set()

    def put(operator: int) -> None:
        sequence.append(operator)
        for target in downstream[operator]:
            waiting_for[target] -= 1
            if target not in queued:
                queued.add(target)
                queue.append(target)

    for position, operator in enumerate(application.operators):
        if operator.kind == "source":
            put(position)
    while queue:
        turn = queue.popleft()
        if waiting_for[turn]:
            queue.append(turn)
        else:
            put(turn)
    return sequence
