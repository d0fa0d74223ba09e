"""How the loops are compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from numba import njit

_Function = TypeVar("_Function", bound=Callable[..., object])


def kernel(function: _Function) -> _Function:
    """Compile a function that Python calls; dividing by zero gives ∞, as in NumPy."""
    compiled: _Function = njit(cache=True, error_model="numpy")(function)  # type: ignore[assignment]
    return compiled


def part(function: _Function) -> _Function:
    """Compile a function that only compiled ones call: without a way in from Python."""
    compiled: _Function = njit(  # type: ignore[call-overload]
        cache=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True
    )(function)
    return compiled


def leaf(function: _Function) -> _Function:
    """Compile a small function into those that call it."""
    compiled: _Function = njit(  # type: ignore[call-overload]
        cache=True,
        error_model="numpy",
        no_cpython_wrapper=True,
        no_cfunc_wrapper=True,
        forceinline=True,
    )(function)
    return compiled
