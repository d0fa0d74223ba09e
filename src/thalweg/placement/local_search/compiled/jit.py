"""How the loops are compiled: once, then kept on disk; divisions by zero give ∞, as in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit

_Function = TypeVar("_Function", bound=Callable[..., Any])


def compiled(function: _Function) -> _Function:
    """A function that Python calls."""
    return _compile(function)


def inner(function: _Function) -> _Function:
    """A function that only compiled functions call: without an entrance it compiles faster."""
    return _compile(function, no_cpython_wrapper=True)


def _compile(function: _Function, **options: Any) -> _Function:
    made: _Function = njit(cache=True, error_model="numpy", **options)(function)
    return made
