"""Nodes of each site grouped by what they have free, in one pass over the sites."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from thalweg.compiling import kernel, part

Floats = npt.NDArray[np.float64]
Index = npt.NDArray[np.int32]

# Sites have few kinds of nodes; looking through more kinds than this costs more than sorting.
_FEW = 8


@part
def _find_kinds(first: int, cpu: Floats, memory: Floats, lan: Floats, kind: Index) -> int:
    """Number the kinds of a site's nodes in order of appearance; −1 if there are many."""
    known = np.empty(_FEW, np.int64)
    count = 0
    for k in range(kind.size):
        node = first + k
        at = 0
        while at < count and not (
            cpu[node] == cpu[known[at]]
            and memory[node] == memory[known[at]]
            and lan[node] == lan[known[at]]
        ):
            at += 1
        if at == count:
            if count == _FEW:
                return -1
            known[count] = node
            count += 1
        kind[k] = at
    return count


@part
def _by_figure(figure: Floats, first: int, ranked: npt.NDArray[np.int64]) -> None:
    """Put the positions into ascending order of the figure; equal ones stay as they are."""
    ranked[:] = ranked[np.argsort(figure[first + ranked], kind="mergesort")]


@kernel
def group_nodes(
    first_node: npt.NDArray[np.int64], cpu: Floats, memory: Floats, lan: Floats, latency: Floats
) -> tuple[Index, Index]:
    """The nodes by site, kind, LAN latency and index; and where each group of a kind begins.

    Kinds come in the order in which a site's nodes by LAN latency first show them, or, where they
    are many, by CPU, memory and bandwidth.
    """
    order = np.empty(cpu.size, np.int32)
    starts = np.empty(cpu.size, np.int32)
    groups = 0
    for site in range(first_node.size - 1):
        first = first_node[site]
        size = first_node[site + 1] - first
        if size == 0:
            continue
        ranked = np.arange(size)
        _by_figure(latency, first, ranked)
        kind = np.empty(size, np.int32)
        kinds = _find_kinds(first, cpu, memory, lan, kind)
        if kinds > 0:
            at = first
            for wanted in range(kinds):
                for position in ranked:
                    if kind[position] == wanted:
                        order[at] = first + position
                        at += 1
        else:
            _by_figure(lan, first, ranked)
            _by_figure(memory, first, ranked)
            _by_figure(cpu, first, ranked)
            for k in range(size):
                order[first + k] = first + ranked[k]
        for at in range(first, first + size):
            node, before = order[at], order[at - 1]
            if (
                at == first
                or cpu[node] != cpu[before]
                or memory[node] != memory[before]
                or lan[node] != lan[before]
            ):
                starts[groups] = at
                groups += 1
    return order, starts[:groups].copy()
