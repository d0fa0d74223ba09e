"""Loops that Numba compiles for large problems, and Python runs as they are for small ones.

Compiling takes seconds and loading Numba a good part of one, so neither happens before it is worth
it. Where `plain_loops` allows it, a loop runs as it is, until it has taken about as long in this
process as it takes to be compiled, or to be loaded where it was kept. Both ways give the same
numbers. A search that ends with its time gets further compiled: it runs as it is only for problems
that are so small that it ends by itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property, update_wrapper
from pathlib import Path
from time import perf_counter
from types import CodeType, FunctionType
from typing import Any, TypeVar, cast

COMPILING_S, LOADING_S = 10.0, 1.0
"""About how long a loop takes to be compiled, and to be loaded with Numba where it was kept."""
_Function = TypeVar("_Function", bound=Callable[..., object])
SEARCH_CELLS = 1_500
"""Operators × nodes up to which a search ends by itself, run as Python has it."""
_plain_cells: ContextVar[int | None] = ContextVar("plain cells", default=None)
_on_compile: list[Callable[[], None]] = []
_made: list[str] = []


class Kernel:
    """A function of loops, as Python has it and as Numba compiles it."""

    def __init__(
        self, function: FunctionType, *, max_cells: float = math.inf, **options: bool
    ) -> None:
        update_wrapper(self, function)
        self._function = function
        self._max_cells = max_cells
        self._options = options
        self._spent_s = 0.0

    def __call__(self, *arguments: object) -> object:
        """The result of the function."""
        cells = _plain_cells.get()
        if cells is None or cells > self._max_cells or self._spent_s > self._worth_s:
            return self.compiled(*arguments)
        import numpy as np

        began_s = perf_counter()
        try:
            # Dividing by zero gives ∞, as in what is compiled; Python's own numbers would raise.
            given = [np.float64(a) if type(a) is float else a for a in arguments]
            with np.errstate(all="ignore"):
                return _as_compiled(self.plain(*given))
        finally:
            self._spent_s += perf_counter() - began_s

    @cached_property
    def _worth_s(self) -> float:
        """How long it may run as it is before it is compiled, or loaded."""
        file = Path(self._function.__code__.co_filename)
        kept = file.parent.glob(f"__pycache__/{file.stem}.{self._function.__qualname__}-*.nbi")
        return LOADING_S if any(kept) else COMPILING_S

    @cached_property
    def plain(self) -> Callable[..., object]:
        """The function, calling others as they are, too."""
        return _bind(self._function, "plain")

    @cached_property
    def compiled(self) -> Callable[..., object]:
        """The function as Numba compiles it, kept beside its source from one process to another."""
        njit = _load_njit()
        _made.append(self._function.__qualname__)
        options = {"cache": True, "error_model": "numpy", **self._options}
        return cast("Callable[..., object]", njit(**options)(_bind(self._function, "compiled")))


def kernel(function: _Function) -> _Function:
    """Compile a function that Python calls; dividing by zero gives ∞, as in NumPy."""
    return _make(function)


def part(function: _Function) -> _Function:
    """Compile a function that only compiled ones call: without a way in from Python."""
    return _make(function, no_cpython_wrapper=True, no_cfunc_wrapper=True)


def leaf(function: _Function) -> _Function:
    """Compile a small function into those that call it."""
    return _make(function, no_cpython_wrapper=True, no_cfunc_wrapper=True, forceinline=True)


def search_kernel(function: _Function) -> _Function:
    """As `kernel`, for a search that may have to end with its time."""
    return _make(function, max_cells=SEARCH_CELLS)


@contextmanager
def plain_loops(cells: int = 0) -> Iterator[None]:
    """Allow loops over a problem of so many operators × nodes to run as they are."""
    token = _plain_cells.set(cells)
    try:
        yield
    finally:
        _plain_cells.reset(token)


@contextmanager
def report_compiling(report: Callable[[], None]) -> Iterator[None]:
    """Call `report` before each loop that is compiled, and not found where it was kept."""
    _on_compile.append(report)
    try:
        yield
    finally:
        _on_compile.remove(report)


def count_loops() -> int:
    """How many loops run compiled in this process so far."""
    return len(_made)


def _as_compiled(answer: object) -> object:
    """Python's own numbers, which compiled functions return, in place of NumPy's."""
    import numpy as np

    if isinstance(answer, np.generic):
        return answer.item()
    return tuple(map(_as_compiled, answer)) if type(answer) is tuple else answer


def _make(function: _Function, **options: Any) -> _Function:
    return cast("_Function", Kernel(cast("FunctionType", function), **options))


def _bind(function: FunctionType, form: str) -> FunctionType:
    """The function with this form of every kernel that it calls."""
    scope = dict(function.__globals__)
    own = None
    for name in _names(function.__code__):
        value = scope.get(name)
        if isinstance(value, Kernel):
            if value._function is function:
                own = name
            else:
                scope[name] = getattr(value, form)
    bound = FunctionType(
        function.__code__, scope, function.__name__, function.__defaults__, function.__closure__
    )
    bound.__kwdefaults__ = function.__kwdefaults__
    bound.__module__, bound.__qualname__ = function.__module__, function.__qualname__
    if own is not None:
        scope[own] = bound
    return bound


def _names(code: CodeType) -> Iterator[str]:
    """Every global name that a function reads, its inner functions included."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _load_njit() -> Any:
    from numba import njit

    if not _Listener.is_there:
        _Listener.begin()
    return njit


class _Listener:
    """Tells who asked for it when Numba compiles something."""

    is_there = False

    @classmethod
    def begin(cls) -> None:
        from numba.core import event

        class Reports(event.Listener):
            def on_start(self, event: object) -> None:
                del event
                for report in tuple(_on_compile):
                    report()

            def on_end(self, event: object) -> None:
                """What has been compiled is no news."""

        register: Any = event.register
        register("numba:compile", Reports())
        cls.is_there = True
