"""`study`: strategies on problems, seeds and values, in this process or on Spark."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from thalweg.errors import Defect, Defects, InvalidInput, nearest
from thalweg.model import Application, Network, Placement, Plan, Problem
from thalweg.study.cases import Case, Draw, Pair, read_cases, read_seeds
from thalweg.study.draws import SPREAD
from thalweg.study.families import PLACEMENT, Family, common_family
from thalweg.study.planned import Row, require_strategies
from thalweg.study.result import Study
from thalweg.study.unit import Settings, run_unit
from thalweg.study.variation import OPTION, Values, points, require_variations

OnProgress = Callable[[int, int], None]
DEFAULT_BASELINE = "cloud-only"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """A piece of a study that runs in one go: a case, a seed, and steps of swept parameters."""

    case: Case
    seed: int | None
    steps: tuple[Values, ...]


def study(
    application: Application | None = None,
    networks: Network | Sequence[Network] | None = None,
    strategies: str | Sequence[str] | None = None,
    *,
    problems: Draw | Mapping[str, Pair | Draw] | Sequence[Pair] | None = None,
    seeds: int | Sequence[int] = 1,
    vary: Mapping[str, Sequence[Any]] | None = None,
    spread: float = SPREAD,
    baseline: str | None = None,
    current: Plan | Placement | None = None,
    simulate_s: float | None = None,
    on: str | None = None,
    on_progress: OnProgress | None = None,
    **options: Any,
) -> Study:
    """Plan every problem with every strategy at every seed and value, and put it all together.

    Args:
        application: what is planned on each of the networks.
        networks: one network, or several with names of their own.
        strategies: names; those of the problems' family if left out.
        problems: in place of the two: pairs of application and network, by name or in a list, or a
            function from a seed to a pair, which then draws all that is random.
        seeds: how many (0, 1, …), or which. Each draws the source rates of every declared problem,
            by factors that are uniform from 1 − `spread` to 1 + `spread`, the same for all
            strategies; a single one (`seeds=1`) leaves them as declared.
        vary: values of swept parameters: `rates`, `bandwidth` and `latency` are factors of source
            rates and of links, `option.NAME` is an option of strategies; all are combined.
        spread: how far rates are drawn from those declared.
        baseline: the strategy that the others are tested against; `cloud-only`, or the first one.
        current: what runs now; moved operators are counted from it. Without it they are counted
            from the strategy's own plan at the value before of the last swept parameter.
        simulate_s: how long each feasible plan is simulated, if at all.
        on: address of Spark, to run on it; in this process if left out. The rows are the same, but
            for the time that plans take.
        on_progress: called with how many pieces are done, and of how many.
        options: options of strategies, for each that takes them.

    Raises:
        InvalidInput: with everything that is wrong with the arguments, or where every strategy
            refuses every problem.

    >>> import thalweg as tw
    >>> app, net = tw.scenarios.taxi_fares(), tw.scenarios.fog_cloud(2)
    >>> found = tw.study(app, net, ["cloud-only", "fog-only"], seeds=3)
    >>> len(found.rows), found.best()
    (6, ('fog-only',))
    """
    defects = Defects()
    cases = read_cases(defects, application, networks, problems)
    first = read_seeds(Defects(), seeds)[:1]
    family = defects.attempt("", lambda: _family(cases, first)) or PLACEMENT
    good = current is None or isinstance(current, (Plan, Placement))
    rule = "a Plan, a Placement or None"
    defects.require(good, "current", type(current).__name__, rule)
    names, chosen, wanted_seeds, varied = require_arguments(
        defects,
        family.strategies if strategies is None else strategies,
        seeds=seeds,
        vary=vary,
        spread=spread,
        baseline=baseline,
        simulate_s=simulate_s,
        on=on,
        options=options,
    )
    defects.raise_if_any()
    settings = Settings(
        strategies=names,
        options=options,
        current=current.placement if isinstance(current, Plan) else current,
        simulate_s=simulate_s,
    )
    units = _cut(cases, wanted_seeds, varied)
    found = Study(
        rows=_run(settings, units, spread, on, on_progress),
        strategies=names,
        cases=tuple(case.name for case in cases),
        seeds=wanted_seeds,
        vary=varied,
        family_name=family.name,
        baseline=chosen,
        simulate_s=simulate_s,
    )
    return require_a_plan(found)


def require_arguments(
    defects: Defects,
    strategies: str | Sequence[str] | None,
    *,
    seeds: int | Sequence[int],
    vary: Mapping[str, Sequence[Any]] | None,
    spread: float,
    baseline: str | None,
    simulate_s: float | None,
    on: str | None,
    options: Mapping[str, Any],
) -> tuple[tuple[str, ...], str, tuple[int | None, ...], dict[str, tuple[Any, ...]]]:
    """The strategies, the baseline, the seeds and the swept values of a study.

    Remembers everything that is wrong with what is asked; the problems are not looked at.
    """
    wanted_seeds = read_seeds(defects, seeds)
    varied = require_variations(defects, {} if vary is None else vary)
    _require_numbers(defects, spread, simulate_s)
    if on is not None:
        from thalweg.spark.session import MASTER_FORMS, is_master
        from thalweg.spark.sweep import IN_PROCESS

        defects.require(on == IN_PROCESS or is_master(on), "on", on, MASTER_FORMS)
    if strategies is None:
        return (), "", wanted_seeds, varied
    names = _require_options(defects, strategies, options, varied)
    return names, _choose_baseline(defects, baseline, names), wanted_seeds, varied


def _require_options(
    defects: Defects,
    strategies: str | Sequence[str],
    options: Mapping[str, Any],
    vary: Mapping[str, Sequence[Any]],
) -> tuple[str, ...]:
    """The strategies' names; remembers those that there are not, and options that none takes."""
    swept = [name.removeprefix(OPTION) for name in vary if name.startswith(OPTION)]
    for name in swept:
        defects.require(name not in options, f"vary.{OPTION}{name}", name, "swept or given")
    values = {name: vary[f"{OPTION}{name}"] for name in swept}
    return require_strategies(defects, strategies, {**options, **values})


def _choose_baseline(defects: Defects, baseline: str | None, names: Sequence[str]) -> str:
    if baseline is None:
        return DEFAULT_BASELINE if DEFAULT_BASELINE in names or not names else names[0]
    hint = nearest(str(baseline), names)
    defects.require(baseline in names, "baseline", baseline, "one of the strategies", hint)
    return baseline


def _require_numbers(defects: Defects, spread: object, simulate_s: object) -> None:
    number = isinstance(spread, (int, float)) and not isinstance(spread, bool)
    good = number and 0 <= spread <= 1  # type: ignore[operator]
    defects.require(good, "spread", spread, "a number from 0 to 1")
    if simulate_s is not None:
        number = isinstance(simulate_s, (int, float)) and not isinstance(simulate_s, bool)
        good = number and 0 < simulate_s < math.inf  # type: ignore[operator]
        defects.require(good, "simulate_s", simulate_s, "a finite number of seconds > 0")


def _family(cases: Sequence[Case], seeds: Sequence[int | None]) -> Family:
    """The family of the problems; a drawn problem is of the family of its first draw."""
    first = seeds[0] if seeds else None

    def pose(case: Case) -> Problem:
        return case.at(first, SPREAD) if case.declared is None else case.declared

    return common_family(pose(case) for case in cases)


def _cut(
    cases: Sequence[Case], seeds: Sequence[int | None], vary: Mapping[str, Sequence[Any]]
) -> list[Unit]:
    """The pieces: all values of the last parameter in one, since moves are counted along them."""
    inner = dict(list(vary.items())[-1:])
    outer = dict(list(vary.items())[:-1])
    return [
        Unit(case=case, seed=seed, steps=tuple({**first, **last} for last in points(inner)))
        for case in cases
        for first in points(outer)
        for seed in seeds
    ]


def _run(
    settings: Settings,
    units: Sequence[Unit],
    spread: float,
    on: str | None,
    on_progress: OnProgress | None,
) -> list[Row]:
    if on is not None:
        from thalweg.study.side_by_side import run_on_spark

        return run_on_spark(settings, units, spread, on=on, on_progress=on_progress)
    rows = []
    for number, unit in enumerate(units):
        problem = unit.case.at(unit.seed, spread)
        rows += run_unit(settings, problem, unit.steps, case=unit.case.name, seed=unit.seed)
        if on_progress is not None:
            on_progress(number + 1, len(units))
    return rows


def require_a_plan(found: Study) -> Study:
    """The study; raises `InvalidInput` where no strategy takes any problem."""
    if any(row["feasible"] is not None for row in found.rows):
        return found
    rule = "a strategy that can take one of the problems"
    raise InvalidInput(
        Defect(path="strategies", value=strategy, rule=rule, hint=why)
        for strategy, why in found.refusals.items()
    )
