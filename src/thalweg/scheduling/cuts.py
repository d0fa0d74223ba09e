"""Where a stream can be cut between fog and cloud.

A cut is the set of operators that run on the fog; the rest run in the cloud. It is closed: with an
operator, everything that sends to it is in the set, too. Only replicable operators can be in it.
Cuts do not depend on the stream, so they are listed once for an application, as arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from thalweg.errors import ThalwegError
from thalweg.model.application import Application
from thalweg.model.figures import freeze
from thalweg.model.graph import Graph

MOST_CUTS = 20_000
# The graph and what may be replicated decide; an application is asked about many times.
_LISTED: WeakKeyDictionary[Graph, dict[bytes, Cuts]] = WeakKeyDictionary()

Flags = npt.NDArray[np.bool_]


class TooManyCuts(ThalwegError):
    """An application has more cuts than can be listed."""


@dataclass(frozen=True, eq=False)
class Cuts:
    """All cuts of an application: the empty one first, then by size, then by operator order."""

    members: Flags
    """(cuts, operators): whether an operator runs on the fog."""
    crossing: Flags
    """(cuts, streams): whether a stream goes from the fog up to the cloud."""
    complete: bool = True
    """Whether these are all the cuts there are."""

    def __post_init__(self) -> None:
        freeze(self)

    def __len__(self) -> int:
        return len(self.members)

    def find(self, members: Flags) -> npt.NDArray[np.int64]:
        """The index of the cut with each row of members; −1 where it is not among them."""
        order, keys = self._keys
        wanted = _pack(members)
        at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return np.where(keys[at] == wanted, order[at], -1)

    @cached_property
    def _keys(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.void]]:
        keys = _pack(self.members)
        order = np.argsort(keys, kind="stable").astype(np.int64)
        return order, keys[order]

    @cached_property
    def sizes(self) -> npt.NDArray[np.int64]:
        """How many operators each cut puts on the fog."""
        sizes: npt.NDArray[np.int64] = self.members.sum(axis=1, dtype=np.int64)
        return sizes

    @cached_property
    def steps(self) -> dict[bool, npt.NDArray[np.int64]]:
        """Room for what `thalweg.scheduling.search.steps_of` finds, by its direction."""
        return {}


def _pack(members: Flags) -> npt.NDArray[np.void]:
    """Each row as one value that can be sorted and compared."""
    packed = np.ascontiguousarray(np.packbits(members, axis=1))
    return packed.view(np.dtype((np.bytes_, packed.shape[1]))).ravel()


def list_cuts(application: Application, *, most: int = MOST_CUTS) -> Cuts:
    """Every cut of the application; raises `TooManyCuts` beyond `most`.

    Operators are taken upstream first: a set grows by an operator if it holds all that send to
    it. So every closed set is made exactly once.

    >>> from thalweg.scenarios import taxi_fares
    >>> cuts = list_cuts(taxi_fares())
    >>> len(cuts), int(cuts.sizes.max())
    (14, 9)
    """
    graph, columns = application.graph, application.columns
    known = _LISTED.setdefault(graph, {})
    key = columns.replicable.tobytes() + columns.is_transform.tobytes()
    if key not in known or len(known[key]) > most:
        known[key] = _grow_cuts(application, most)
    return known[key]


def _grow_cuts(application: Application, most: int) -> Cuts:
    graph, columns = application.graph, application.columns
    may_run = columns.replicable & columns.is_transform
    members = np.zeros((1, len(application.operators)), dtype=bool)
    for operator in graph.order.tolist():
        if not may_run[operator]:
            continue
        senders = graph.source[graph.target == operator]
        senders = senders[~columns.is_source[senders]]
        grown = members[members[:, senders].all(axis=1)]
        grown[:, operator] = True
        members = np.concatenate([members, grown])
        if len(members) > most:
            raise TooManyCuts(
                f"{application.name} has more than {most:,} cuts between fog and cloud"
            )
    order = np.lexsort((*~members.T[::-1], np.count_nonzero(members, axis=1)))
    members = members[order]
    on_fog = members | columns.is_source
    return Cuts(members, on_fog[:, graph.source] & ~members[:, graph.target])


def compare_cuts(cuts: Cuts, chosen: npt.NDArray[np.int64], *, beyond: bool) -> Flags:
    """(cuts, chosen): whether a cut has all that the chosen one has on the fog, or nothing else.

    Among many streams there are few different cuts, so each is compared once.
    """
    distinct, position = np.unique(chosen, return_inverse=True)
    own = cuts.members[distinct][:, None, :]
    good: Flags = (cuts.members | ~own) if beyond else (own | ~cuts.members)
    return np.ascontiguousarray(np.all(good, axis=2)[position].T)
