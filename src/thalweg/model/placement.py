"""Which operator runs on which node, for which streams."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

import numpy as np
import numpy.typing as npt

from thalweg.errors import Defects
from thalweg.model.figures import freeze
from thalweg.model.graph import Index, distinct
from thalweg.model.network import Network
from thalweg.model.problem import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """One running copy of an operator.

    `origin` names the site whose events it works on; None means everything that reaches it.
    """

    operator: str
    node: str
    origin: str | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Placement:
    """A set of instances, held as arrays into tables of names.

    An operator runs once (`origin` −1: for all events that reach it), or as replicas that each
    serve the events born in one site, or both: replicas for some sites and one instance for the
    rest. Events of a replica go to the replica downstream that serves the same site where there
    is one, else to the instance for all.

    >>> placement = Placement.of({"clean": "fog", "store": "cloud"})
    >>> placement.node_of("clean"), len(placement)
    ('fog', 2)
    """

    operator_names: tuple[str, ...]
    node_names: tuple[str, ...]
    origin_names: tuple[str, ...]
    operator: Index
    node: Index
    origin: Index

    def __post_init__(self) -> None:
        defects = Defects()
        count = self.operator.shape
        for name in ("node", "origin"):
            shape = getattr(self, name).shape
            defects.require(shape == count, name, shape, f"as many as operators, {count}")
        defects.raise_if_any()
        # One order for the same tables of names, however the instances were found.
        order = np.lexsort((self.node, self.origin, self.operator))
        for name in ("operator", "node", "origin"):
            object.__setattr__(self, name, getattr(self, name)[order].astype(np.int32))
        freeze(self)

    @classmethod
    def of(cls, instances: Mapping[str, str] | Iterable[Instance]) -> Placement:
        """The placement with these instances, or with each operator on the node it maps to."""
        if isinstance(instances, Mapping):
            instances = [Instance(operator=o, node=n) for o, n in instances.items()]
        listed = list(instances)
        operators = tuple(dict.fromkeys(i.operator for i in listed))
        nodes = tuple(dict.fromkeys(i.node for i in listed))
        origins = tuple(dict.fromkeys(i.origin for i in listed if i.origin is not None))
        at_operator = {name: k for k, name in enumerate(operators)}
        at_node = {name: k for k, name in enumerate(nodes)}
        at_origin: dict[str | None, int] = {name: k for k, name in enumerate(origins)}
        return cls(
            operator_names=operators,
            node_names=nodes,
            origin_names=origins,
            operator=np.array([at_operator[i.operator] for i in listed], dtype=np.int32),
            node=np.array([at_node[i.node] for i in listed], dtype=np.int32),
            origin=np.array([at_origin.get(i.origin, -1) for i in listed], dtype=np.int32),
        )

    @classmethod
    def from_indices(
        cls,
        problem: Problem,
        operator: npt.ArrayLike,
        node: npt.ArrayLike,
        origin: npt.ArrayLike,
    ) -> Placement:
        """The placement of operators (by index) on nodes and for origin sites (by index, or −1)."""
        net = problem.network
        on = np.asarray(node, dtype=np.int32)
        nodes = distinct(on)
        sites = np.asarray(origin, dtype=np.int32)
        origins = distinct(sites[sites >= 0])
        at_origin = np.where(sites >= 0, np.searchsorted(origins, sites), -1)
        made = cls(
            operator_names=tuple(o.name for o in problem.application.operators),
            node_names=net.node_names_of(nodes),
            origin_names=tuple(map(net.site_names.__getitem__, origins.tolist())),
            operator=np.asarray(operator, dtype=np.int32),
            node=np.searchsorted(nodes, on).astype(np.int32),
            origin=at_origin.astype(np.int32),
        )
        object.__setattr__(made, "_indices", (net.site_names, net.node_site, nodes, origins))
        return made

    def indices_in(self, network: Network) -> tuple[Index, Index] | None:
        """Nodes and sites of the tables of names by index, if they are known without a search."""
        known: tuple[object, Index, Index, Index] | None = getattr(self, "_indices", None)
        if known is None or known[0] is not network.site_names:
            return None
        # A copy of the network with other figures has the same names and the same nodes.
        return (known[2], known[3]) if np.array_equal(known[1], network.node_site) else None

    def __len__(self) -> int:
        return int(self.operator.size)

    def __iter__(self) -> Iterator[Instance]:
        for operator, node, origin in zip(
            self.operator.tolist(), self.node.tolist(), self.origin.tolist(), strict=True
        ):
            yield Instance(
                operator=self.operator_names[operator],
                node=self.node_names[node],
                origin=self.origin_names[origin] if origin >= 0 else None,
            )

    @cached_property
    def _content(self) -> list[tuple[str, str, str]]:
        return sorted((i.operator, i.origin or "", i.node) for i in self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Placement) and self._content == other._content

    def __hash__(self) -> int:
        return hash(tuple(self._content))

    def nodes_of(self, operator: str) -> tuple[str, ...]:
        """The nodes that run the operator; empty where none does."""
        return tuple(i.node for i in self if i.operator == operator)

    def node_of(self, operator: str) -> str:
        """The one node that runs the operator; `KeyError` unless there is exactly one."""
        nodes = self.nodes_of(operator)
        if len(nodes) != 1:
            raise KeyError(operator)
        return nodes[0]

    @property
    def fingerprint(self) -> str:
        """A short text that is equal for equal placements and only for them."""
        lines = "\n".join("\t".join(row) for row in self._content)
        return sha256(lines.encode()).hexdigest()[:16]

    def __repr__(self) -> str:
        return f"<Placement of {len(self)} instances on {len(self.node_names)} nodes>"
