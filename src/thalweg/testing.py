"""What every strategy and every operator promises, as tests that anyone can run on their own.

```python
from thalweg.testing import check_operator, check_strategy

def test_my_strategy_keeps_its_promises():
    check_strategy(my_strategy)

def test_my_operator_can_be_split():
    check_operator(my_pipeline, "speed-by-zone", rows)
```
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from thalweg import scenarios
from thalweg.check import check
from thalweg.errors import InvalidInput, StrategyError, ThalwegError
from thalweg.estimate.evaluate import evaluate
from thalweg.files.plan_reader import read_plan
from thalweg.model import Application, Link, Node, Pin, Site, build_network
from thalweg.model.network import Network
from thalweg.model.plan import Plan, Violation
from thalweg.model.problem import Problem
from thalweg.strategy import find_strategy

if TYPE_CHECKING:
    import pyarrow as pa

    from thalweg.spark.pipeline import Pipeline


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyReport:
    """How a strategy did on the conformance problems."""

    problems: int
    feasible: int
    refused: int
    """Problems that it answered with `InvalidInput`."""


def conformance_problems(seed: int = 0) -> Iterator[Problem]:
    """Small problems of every sort: cities, clouds with edge sites, fogs, full and empty ones."""
    yield Problem(application=scenarios.small_taxi(), network=scenarios.small_city())
    network = scenarios.cloud_edge(2, 4, 5, seed=seed)
    for draw, graph in enumerate(scenarios.GRAPHS):
        application = scenarios.random_application(graph, network, seed=seed + draw)
        yield Problem(application=application, network=network)
    fogs = scenarios.fog_cloud(4, seed=seed)
    for application in (scenarios.taxi_fares(seed=seed), scenarios.taxi_demand(seed=seed)):
        yield Problem(application=application, network=fogs)
    full = fogs.with_available(
        node_memory_available_bytes=np.zeros(fogs.node_count),
        node_cpu_available_ips=np.zeros(fogs.node_count),
    )
    yield Problem(application=scenarios.taxi_fares(seed=seed), network=full)
    silent = {("rides", site): 0.0 for site in fogs.site_names if site.startswith("fog")}
    yield Problem(application=scenarios.taxi_fares(seed=seed), network=fogs, rates=silent)
    yield _devices_below_fogs(seed)


def _devices_below_fogs(seed: int) -> Problem:
    """Two fogs with two edge sites each, where the rides are born."""
    vm = Node(name="vm", cpu_ips=35.9e9, memory_bytes=12e9)
    sites, links = [Site(name="cloud", tier="cloud", nodes=(vm,))], []
    for fog in ("fog-0", "fog-1"):
        box = Node(name="box", cpu_ips=4e9, memory_bytes=2e9)
        sites.append(Site(name=fog, tier="fog", parent="cloud", nodes=(box,)))
        links.append(Link(a=fog, b="cloud", latency_s=0.1, bandwidth_bps=200e6))
        for edge in (f"{fog}-a", f"{fog}-b"):
            pole = Node(name="pole", cpu_ips=5e8, memory_bytes=5e7)
            sites.append(Site(name=edge, tier="edge", parent=fog, nodes=(pole,)))
            links.append(Link(a=edge, b=fog, latency_s=0.01, bandwidth_bps=50e6))
    fares = scenarios.taxi_fares(seed=seed)
    operators = [
        replace(o, pin=Pin(tier="edge"), rate=20_000.0) if o.kind == "source" else o
        for o in fares.operators
    ]
    application = Application(
        name="taxi-edge", operators=operators, streams=fares.streams, limits=fares.limits
    )
    return Problem(application=application, network=build_network("areas", sites, links))


def check_strategy(
    strategy: str | Callable[..., Plan],
    *,
    problems: Sequence[Problem] | None = None,
    seed: int = 0,
) -> StrategyReport:
    """Raise `StrategyError` with every broken promise; else say how the strategy did.

    A strategy answers with a `Plan` or refuses with `InvalidInput`; places every operator; says
    exactly what its plan violates (the independent checker agrees); gives the same plan for the
    same problem; leaves the problem as it was; takes its own placement as the current one; states
    its objective truly; and its plan survives being saved and loaded.
    """
    function = find_strategy(strategy) if isinstance(strategy, str) else strategy
    listed = list(conformance_problems(seed)) if problems is None else list(problems)
    broken: list[str] = []
    feasible = refused = 0
    for problem in listed:
        where = f"{problem.application.name} on {problem.network.name}"
        try:
            plan = function(problem)
        except InvalidInput:
            refused += 1
            continue
        except Exception as error:
            broken.append(f"{where}: raised {type(error).__name__}: {error}")
            continue
        broken += [f"{where}: {promise}" for promise in _broken_promises(function, problem, plan)]
        feasible += isinstance(plan, Plan) and plan.feasible
    if refused == len(listed):
        broken.append("refused every problem")
    if broken:
        raise StrategyError("\n".join(broken))
    return StrategyReport(problems=len(listed), feasible=feasible, refused=refused)


def _broken_promises(function: Callable[..., Plan], problem: Problem, plan: object) -> list[str]:
    if not isinstance(plan, Plan):
        return [f"returned {type(plan).__name__}, not a Plan"]
    broken = []
    before = _fingerprint(problem.network)
    found = check(plan, problem)
    if [v for v in found if v.constraint == "placed"]:
        return [f"left the placement incomplete: {'; '.join(str(v) for v in found)}"]
    if _claims(plan.violations) != _claims(found):
        broken.append(f"claims {_claims(plan.violations)}, the checker finds {_claims(found)}")
    if function(problem) != plan:
        broken.append("gave another plan for the same problem")
    if not isinstance(function(problem, plan.placement), Plan):
        broken.append("returned no Plan for its own placement as the current one")
    if _fingerprint(problem.network) != before:
        broken.append("changed the network it was given")
    estimate = evaluate(problem, plan.placement).estimate
    if plan.estimate != estimate:
        broken.append("states estimates that the estimators do not give")
    if getattr(estimate, plan.objective_name, None) != plan.objective:
        broken.append(f"states {plan.objective_name} = {plan.objective}, which it is not")
    if any(math.isnan(value) for value in asdict(plan.estimate).values()):
        broken.append("has NaN among its estimates")
    try:
        if read_plan(plan.to_dict()) != plan:
            broken.append("its plan is another one after saving and loading")
    except InvalidInput as error:
        broken.append(f"its plan cannot be loaded again: {error}")
    return broken


def _claims(violations: Sequence[Violation]) -> list[tuple[str, str]]:
    return sorted((violation.constraint, violation.place) for violation in violations)


def _fingerprint(network: Network) -> int:
    arrays = (value for value in vars(network).values() if isinstance(value, np.ndarray))
    return hash(tuple(array.tobytes() for array in arrays))


# Operators of Spark pipelines


class OperatorError(ThalwegError):
    """An operator gives other rows when its input is split or comes in another order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorReport:
    """What an operator was found to keep."""

    operator: str
    kind: str
    rows: int
    """How many rows it puts out for the rows given."""
    splits: int


def check_operator(
    pipeline: Pipeline,
    name: str,
    rows: pa.Table | Mapping[str, pa.Table],
    *,
    splits: int = 3,
    parts: int = 3,
    seed: int = 0,
) -> OperatorReport:
    """Raise `OperatorError` unless an operator gives the same rows for random splits of its input.

    `rows` are those of the source (by name, where there are several). Each of the `splits` tears
    the input into `parts`, in a random order, as the operator's kind allows: the input of a
    row-wise and of a mergeable one anywhere; the rows of the source of a partitioned one by the
    source's key, so that what comes before it is tried, too. The input of a global one is not torn
    apart, only put into another order. Runs on the active Spark session, or on a local one.

    Values that no order can give alike, such as sums of floating-point numbers, are not rounded:
    use whole numbers or decimals.
    """
    from thalweg.spark.pipeline.split import compare_splits

    problem = compare_splits(pipeline, name, rows, splits=splits, parts=parts, seed=seed)
    if problem.broken:
        raise OperatorError("\n".join(problem.broken))
    return OperatorReport(
        operator=name, kind=problem.kind, rows=problem.rows, splits=problem.splits
    )
