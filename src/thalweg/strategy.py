"""What a strategy is, and the register of all of them.

A strategy is a callable `(problem, current=None) -> Plan`, registered by name. Adding one is one
file: a module in `placement`, `scheduling` or `migration` whose function carries `@strategy(…)`,
or, from another package, an entry point in the group `thalweg.strategies`.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from thalweg.errors import Defects, StrategyError, nearest

if TYPE_CHECKING:
    from thalweg.model import Placement, Plan, Problem

ENTRY_POINT_GROUP = "thalweg.strategies"
_ROOMS = ("thalweg.placement", "thalweg.scheduling", "thalweg.migration")


class Strategy(Protocol):
    """Answers a problem with a plan; `current` is what runs now, if anything does."""

    def __call__(self, problem: Problem, current: Placement | None = None) -> Plan:
        """The plan."""
        ...


@dataclass(frozen=True, slots=True)
class RegisteredStrategy:
    """A strategy with its name, what it does in one line, and where it comes from."""

    name: str
    description: str
    function: Callable[..., Plan]
    origin: str

    @property
    def options(self) -> tuple[str, ...]:
        """The keyword-only parameters that a caller may set."""
        parameters = inspect.signature(self.function).parameters.values()
        return tuple(p.name for p in parameters if p.kind is p.KEYWORD_ONLY)


_registered: dict[str, RegisteredStrategy] = {}
_broken: dict[str, str] = {}
_Function = TypeVar("_Function", bound="Callable[..., Plan]")


def strategy(name: str, description: str) -> Callable[[_Function], _Function]:
    """Register a function as a strategy.

    Its keyword-only parameters are the options that `thalweg.plan(…)` passes on.
    """

    def register(function: _Function) -> _Function:
        from thalweg.model.names import is_name

        if not is_name(name):
            raise StrategyError(f"{name!r} cannot name a strategy")
        before = _registered.get(name)
        origin = function.__module__
        if before is not None and before.origin != origin:
            raise StrategyError(f"{name!r} is registered by {before.origin} and {origin}")
        _registered[name] = RegisteredStrategy(name, description, function, origin)
        return function

    return register


def strategies() -> dict[str, str]:
    """Every strategy's name, with what it does in one line; sorted by name."""
    return {name: found.description for name, found in sorted(_load_all().items())}


def broken_strategies() -> dict[str, str]:
    """Entry points that could not be loaded, each with the reason."""
    _load_all()
    return dict(_broken)


def find_strategy(name: str) -> Callable[..., Plan]:
    """The strategy of that name; `a+b` runs a and hands its placement to b as the current one.

    Its plans carry the name that was asked for.
    """
    parts = name.split("+") if isinstance(name, str) else []
    known = _load_named(parts)
    defects = Defects()
    for part in parts or [str(name)]:
        if part not in known:
            hint = nearest(part, known)
            if part in _broken:
                hint = f"its entry point cannot be loaded: {_broken[part]}"
            defects.add("strategy", part, "the name of a strategy", hint)
    defects.raise_if_any()
    if len(parts) == 1:
        return _name_plans(known[parts[0]])
    return _chain([known[part] for part in parts])


def require_options(name: str, options: dict[str, Any]) -> None:
    """Raise `InvalidInput` for options that no strategy of the chain takes."""
    known = _load_named(name.split("+"))
    accepted = [option for part in name.split("+") for option in known[part].options]
    defects = Defects()
    for option in options:
        if option not in accepted:
            hint = nearest(option, accepted) if accepted else "it takes none"
            defects.add(option, options[option], f"an option of {name}", hint)
    defects.raise_if_any()


def _name_plans(found: RegisteredStrategy) -> Callable[..., Plan]:
    """The function of a strategy, its plans under the name by which it was found.

    A function can be registered under several names.
    """

    @wraps(found.function)
    def run(problem: Problem, current: Placement | None = None, **options: Any) -> Plan:
        plan = found.function(problem, current, **options)
        # What is no plan is for the caller to refuse.
        named = getattr(plan, "strategy", found.name) == found.name
        return plan if named else replace(plan, strategy=found.name)

    return run


def _chain(steps: list[RegisteredStrategy]) -> Callable[..., Plan]:
    def run(problem: Problem, current: Placement | None = None, **options: Any) -> Plan:
        plans: list[Plan] = []
        for step in steps:
            own = {name: value for name, value in options.items() if name in step.options}
            running = plans[-1].placement if plans else current
            plans.append(step.function(problem, running, **own))
        return replace(
            plans[-1],
            strategy="+".join(step.name for step in steps),
            seconds=sum(plan.seconds for plan in plans),
            candidates=sum(plan.candidates for plan in plans),
        )

    return run


@cache
def _load_built_in() -> None:
    for room in _ROOMS:
        package = importlib.import_module(room)
        for module in sorted(pkgutil.iter_modules(package.__path__), key=lambda m: m.name):
            importlib.import_module(f"{room}.{module.name}")


@cache
def _load_entry_points() -> None:
    from importlib.metadata import entry_points

    for point in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda p: p.name):
        try:
            found = point.load()
            if not callable(found):
                raise StrategyError(f"{point.value} is {type(found).__name__}, not a function")
            if not any(known.function is found for known in _registered.values()):
                first_line = (inspect.getdoc(found) or point.value).splitlines()[0]
                strategy(point.name, first_line)(found)
        except Exception as error:
            # A plug-in that does not load must not take the others with it.
            _broken[point.name] = f"{type(error).__name__}: {error}"


def _load_named(names: list[str]) -> dict[str, RegisteredStrategy]:
    """At least these strategies; all of them where one is none of our own."""
    for name in names:
        if name not in _registered:
            for module in _modules_of(name):
                importlib.import_module(module)
    return _registered if all(name in _registered for name in names) else _load_all()


def _modules_of(name: str) -> Iterator[str]:
    """The modules of ours in which a function carries `@strategy(name, …)`, by their source."""
    mark = re.compile(rf'@strategy\(\s*"{re.escape(name)}"')
    for room in _ROOMS:
        folder = Path(__file__).parent / room.rpartition(".")[2]
        for file in sorted(folder.glob("*.py")):
            if mark.search(file.read_text(encoding="utf-8")):
                yield f"{room}.{file.stem}"


def _load_all() -> dict[str, RegisteredStrategy]:
    _load_built_in()
    _load_entry_points()
    return _registered


__all__ = [
    "ENTRY_POINT_GROUP",
    "RegisteredStrategy",
    "Strategy",
    "broken_strategies",
    "find_strategy",
    "require_options",
    "strategies",
    "strategy",
]
