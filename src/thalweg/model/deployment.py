"""A placement unfolded: every instance a vertex, every flow between two instances an edge.

All estimators work on this one graph, so a plan with one copy of each operator and a plan with a
replica in each of ten thousand sites are judged by the same formulas.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from thalweg.errors import Defects, nearest
from thalweg.model.figures import freeze
from thalweg.model.graph import Floats, Graph, Index, concatenated_ranges
from thalweg.model.placement import Placement
from thalweg.model.problem import Problem


@dataclass(frozen=True, eq=False, kw_only=True)
class Deployment:
    """Instances by index: their operator, node, origin site (−1: all) and birth rate."""

    problem: Problem
    operator: Index
    node: Index
    origin: Index
    birth_rate: Floats
    """Events/s born in the instance; 0 unless it is a source."""
    graph: Graph
    """Edges between instances."""
    stream: Index
    """The application's stream that each edge belongs to."""

    def __post_init__(self) -> None:
        freeze(self)

    @cached_property
    def edge_latency_s(self) -> Floats:
        """One-way latency of each edge; 0 on the same node."""
        a, b = self.node[self.graph.source], self.node[self.graph.target]
        return self.problem.network.latency_s(a, b)

    @cached_property
    def edge_available_bps(self) -> Floats:
        """What is free on the way of each edge; infinite on the same node."""
        a, b = self.node[self.graph.source], self.node[self.graph.target]
        return self.problem.network.available_bps(a, b)

    @property
    def size(self) -> int:
        """How many instances there are."""
        return int(self.operator.size)

    def instance_name(self, instance: int) -> str:
        """`operator`, or `operator@site` for a replica."""
        name = self.problem.application.operators[int(self.operator[instance])].name
        origin = int(self.origin[instance])
        return name if origin < 0 else f"{name}@{self.problem.network.site_names[origin]}"


def deploy(problem: Problem, placement: Placement) -> Deployment:
    """The placement unfolded; raises `InvalidInput` where it does not fit the problem."""
    defects = Defects()
    app = problem.application
    operators = [_operator_index(defects, problem, name) for name in placement.operator_names]
    known = placement.indices_in(problem.network)
    if known is None:
        nodes = np.array(
            [_node_index(defects, problem, name) for name in placement.node_names], dtype=np.int32
        )
        origins = np.array(
            [_site_index(defects, problem, name) for name in placement.origin_names], dtype=np.int32
        )
    else:
        nodes, origins = known
    operator = np.array(operators, dtype=np.int32)[placement.operator]
    placed = np.bincount(operator, minlength=len(app.operators)) > 0
    for position in np.flatnonzero(~placed).tolist():
        name = app.operators[position].name
        defects.add("placement", name, f"every operator of {app.name} placed")
    defects.raise_if_any()
    origin = np.append(origins, np.int32(-1))[placement.origin]
    return deploy_indices(problem, operator, nodes[placement.node], origin)


def deploy_indices(
    problem: Problem,
    operator: npt.ArrayLike,
    node: npt.ArrayLike,
    origin: npt.ArrayLike,
) -> Deployment:
    """The placement of operators (by index) on nodes for origin sites (by index), unfolded."""
    operators = np.asarray(operator, dtype=np.int32)
    origins = np.asarray(origin, dtype=np.int32)
    order = np.lexsort((origins, operators))
    operators, origins = operators[order], origins[order]
    nodes = np.asarray(node, dtype=np.int32)[order]
    defects = Defects()
    source, target, stream = _join_instances(defects, problem, operators, origins)
    birth_rate = _birth_rates(defects, problem, operators, origins)
    defects.raise_if_any()
    app = problem.application
    once = np.array_equal(operators, np.arange(len(app.operators)))
    # One copy of each operator: the application's own graph, with all that it remembers.
    graph = app.graph
    if not once:
        # Every flow follows a stream, so the operators' levels order the instances, too.
        graph = Graph(len(operators), source, target, app.graph.level[operators])
    _require_fed(problem, operators, origins, graph)
    return Deployment(
        problem=problem,
        operator=operators,
        node=nodes,
        origin=origins,
        birth_rate=birth_rate,
        graph=graph,
        stream=stream,
    )


def _require_fed(problem: Problem, operator: Index, origin: Index, graph: Graph) -> None:
    """Every instance but a source gets events, and no two do the same job."""
    app = problem.application
    defects = Defects()
    idle = graph.roots & ~app.columns.is_source[operator]
    twice = np.zeros(operator.size, dtype=bool)
    twice[1:] = (np.diff(operator) == 0) & (np.diff(origin) == 0)
    for position in np.flatnonzero(idle | twice)[:20].tolist():
        name = app.operators[int(operator[position])].name
        site = int(origin[position])
        defects.add(
            "placement",
            name if site < 0 else f"{name} for {problem.network.site_names[site]}",
            "one instance for each origin" if twice[position] else "an instance that gets events",
        )
    defects.raise_if_any()


def _join_instances(
    defects: Defects, problem: Problem, operator: Index, origin: Index
) -> tuple[Index, Index, Index]:
    """Who sends to whom along which stream; instances are sorted by operator, then origin.

    The replica downstream that serves the same origin takes the events, else the instance for all.
    """
    app, sites = problem.application, problem.network.site_count + 1
    bounds = np.searchsorted(operator, np.arange(len(app.operators) + 1))
    first, end = bounds[app.graph.source], bounds[app.graph.source + 1]
    stream = np.repeat(np.arange(len(app.streams), dtype=np.int32), end - first)
    sender = concatenated_ranges(first, end)
    key = operator.astype(np.int64) * sites + origin + 1
    for_all = app.graph.target[stream].astype(np.int64) * sites
    receiver = _find(key, for_all + origin[sender] + 1)
    receiver = np.where(receiver >= 0, receiver, _find(key, for_all))
    for orphan in np.flatnonzero(receiver < 0)[:20].tolist():
        where = int(origin[sender[orphan]])
        served = "all sites" if where < 0 else problem.network.site_names[where]
        ends = app.streams[int(stream[orphan])]
        defects.add(
            "placement",
            f"nobody takes the events of {ends.source} for {served}",
            f"an instance of {ends.target} for {served}",
        )
    return sender.astype(np.int32), receiver.astype(np.int32), stream


def _find(key: npt.NDArray[np.int64], wanted: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The position of each wanted number in the ascending keys; −1 where it is missing."""
    if not key.size:
        return np.full(wanted.shape, -1, dtype=np.int64)
    at = np.minimum(np.searchsorted(key, wanted), key.size - 1)
    return np.where(key[at] == wanted, at, -1)


def _birth_rates(defects: Defects, problem: Problem, operator: Index, origin: Index) -> Floats:
    births = problem.births
    net, app = problem.network, problem.application
    rate = np.zeros(operator.size)
    is_source = np.array([o.kind == "source" for o in app.operators])
    key = operator.astype(np.int64) * (net.site_count + 1) + origin + 1
    wanted = births.operator.astype(np.int64) * (net.site_count + 1) + births.site + 1
    at = _find(key, wanted)
    found = at >= 0
    for missing in np.flatnonzero(~found)[:5].tolist():
        name = app.operators[int(births.operator[missing])].name
        site = net.site_names[int(births.site[missing])]
        defects.add(
            "placement", f"no {name} for {site}", "an instance of every source in its sites"
        )
    if np.count_nonzero(is_source[operator]) != wanted.size:
        defects.add(
            "placement",
            f"{np.count_nonzero(is_source[operator])} instances of sources",
            f"{wanted.size}, one in each site where a source is born",
        )
    rate[at[found]] = births.rate[found]
    return rate


def _operator_index(defects: Defects, problem: Problem, name: str) -> int:
    index = problem.application.index
    if name not in index:
        rule = f"an operator of {problem.application.name}"
        defects.add("placement", name, rule, nearest(name, index))
    return index.get(name, 0)


def _node_index(defects: Defects, problem: Problem, name: str) -> int:
    try:
        return problem.network.node_index(name)
    except KeyError:
        defects.add("placement", name, f"a node of {problem.network.name}")
        return 0


def _site_index(defects: Defects, problem: Problem, name: str) -> int:
    index = problem.network.site_index
    if name not in index:
        defects.add("placement", name, f"a site of {problem.network.name}", nearest(name, index))
    return index.get(name, 0)
