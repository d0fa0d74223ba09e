"""Which problems a study has: named pairs, or drawn by seed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from thalweg.errors import Defect, Defects, InvalidInput, join_path
from thalweg.model import Application, Network, Problem
from thalweg.study.draws import draw_rates

Pair: TypeAlias = tuple[Application, Network]
Draw: TypeAlias = Callable[[int], Pair]
MAX_SEED = 2**63


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A problem by name; where a seed draws it, it is another one for each seed."""

    name: str
    declared: Problem | None = None
    draw: Draw | None = field(default=None, repr=False)

    def at(self, seed: int | None, spread: float) -> Problem:
        """The problem of a seed; None: as it was declared, or as seed 0 draws it."""
        if self.draw is not None:
            return _pose(self.draw(0 if seed is None else seed), f"problems[{self.name}]")
        if self.declared is None:  # Either of the two is given.
            raise ValueError(self.name)
        if seed is None:
            return self.declared
        problem = self.declared
        rates = draw_rates(problem, seed, spread)
        return Problem(application=problem.application, network=problem.network, rates=rates)


def read_cases(
    defects: Defects, application: object, networks: object, problems: object
) -> list[Case]:
    """The cases that the arguments of a study give; remembers what is wrong with them."""
    if problems is None:
        found = _pairs_of(defects, application, networks)
    else:
        both = application is None and networks is None
        defects.require(both, "problems", "problems", "problems, or an application and networks")
        found = list(_named(defects, problems))
    cases = []
    names = _number_names([name for name, _ in found])
    for name, (_, given) in zip(names, found, strict=True):
        if callable(given):
            cases.append(Case(name=name, draw=given))
            continue
        path = f"problems[{name}]" if problems is not None else ""
        posed = defects.attempt("", lambda given=given, path=path: _pose(given, path))  # type: ignore[misc]
        if posed is not None:
            cases.append(Case(name=name, declared=posed))
    where = "networks" if problems is None else "problems"
    defects.require(bool(found) or bool(defects), where, found, "at least one")
    return cases


def _pairs_of(defects: Defects, application: object, networks: object) -> list[tuple[str, Any]]:
    several = isinstance(networks, Sequence) and not isinstance(networks, str)
    listed = list(networks) if several else [networks]  # type: ignore[call-overload]
    twice = len({id(network) for network in listed}) < len(listed)
    defects.require(not twice, "networks", listed, "each network once")
    if application is None:
        defects.add("application", None, "an Application, or problems=")
        return []
    return [(getattr(net, "name", "?"), (application, net)) for net in listed]


def _named(defects: Defects, problems: object) -> Iterator[tuple[str, Any]]:
    if callable(problems):
        yield getattr(problems, "__name__", "problems").strip("<>"), problems
    elif isinstance(problems, Mapping):
        yield from ((str(name), given) for name, given in problems.items())
    elif isinstance(problems, Sequence) and not isinstance(problems, str):
        for pair in problems:
            yield _name_of(pair), pair
    else:
        rule = "a function of a seed, or pairs of application and network, named or in a list"
        defects.add("problems", type(problems).__name__, rule)


def _number_names(names: Sequence[str]) -> list[str]:
    """The names, with a number behind each that was there before.

    >>> _number_names(["a", "b", "a"])
    ['a', 'b', 'a (2)']
    """
    seen: Counter[str] = Counter()
    numbered = []
    for name in names:
        seen[name] += 1
        numbered.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return numbered


def _name_of(pair: object) -> str:
    parts = pair if isinstance(pair, tuple) else (pair,)
    return " on ".join(str(getattr(part, "name", "?")) for part in parts)


def _pose(pair: object, path: str) -> Problem:
    if not (isinstance(pair, tuple) and len(pair) == 2):
        rule = "an application and a network"
        raise InvalidInput([Defect(path=path, value=type(pair).__name__, rule=rule)])
    try:
        return Problem(application=pair[0], network=pair[1])
    except InvalidInput as error:
        raise InvalidInput(
            replace(defect, path=join_path(path, defect.path)) for defect in error.defects
        ) from None


def read_seeds(defects: Defects, seeds: object) -> tuple[int | None, ...]:
    """The seeds: 0…N−1 for a number N, of which 1 means as declared; or those that are listed."""
    rule = "a number of seeds >= 1, or a list of whole numbers >= 0, each once"
    if isinstance(seeds, int) and not isinstance(seeds, bool):
        defects.require(1 <= seeds <= 1_000_000, "seeds", seeds, rule)
        return (None,) if seeds == 1 else tuple(range(max(0, min(seeds, 1_000_000))))
    listed = list(seeds) if isinstance(seeds, Sequence) and not isinstance(seeds, str) else []
    good = bool(listed) and all(
        isinstance(seed, int) and not isinstance(seed, bool) and 0 <= seed < MAX_SEED
        for seed in listed
    )
    good = good and len(set(listed)) == len(listed)
    defects.require(good, "seeds", seeds, rule)
    return tuple(listed) if good else ()
