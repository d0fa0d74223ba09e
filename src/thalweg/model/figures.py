"""Arrays of figures: checked, frozen, lowered by what is taken."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from thalweg.errors import Defects
from thalweg.model.graph import Floats


def require_figures(
    defects: Defects,
    path: str,
    figures: npt.ArrayLike,
    shape: tuple[int, ...],
    *,
    finite: bool = False,
) -> bool:
    """Remember a defect unless the array has this shape and numbers >= 0 (∞ is one, if allowed)."""
    if np.shape(figures) != shape:
        defects.add(path, np.shape(figures), f"an array of shape {shape}")
        return False
    if not bool((np.asarray(figures) >= 0).all()):
        defects.add(path, "NaN or a negative number", "numbers >= 0")
        return False
    if finite and not bool(np.isfinite(figures).all()):
        defects.add(path, "∞", "finite numbers >= 0")
        return False
    return True


def require_no_more(defects: Defects, path: str, available: Floats, capacity: Floats) -> None:
    """Remember a defect where more is available than there is."""
    over = np.asarray(available > capacity)
    if over.any():
        most = float(np.broadcast_to(capacity, over.shape)[over][0])
        found = float(np.broadcast_to(available, over.shape)[over][0])
        defects.add(path, found, f"at most the capacity, {most:g}")


def freeze(value: object) -> None:
    """Make every array of a frozen value read-only."""
    for name, array in list(vars(value).items()):
        if isinstance(array, np.ndarray):
            view = array.view()
            view.flags.writeable = False
            object.__setattr__(value, name, view)


def sum_at(position: npt.NDArray[np.integer[Any]], amounts: Floats, size: int) -> Floats:
    """The amounts added up at each position 0…size−1."""
    return np.bincount(position, weights=amounts, minlength=size).astype(float)


def less(figures: Floats, at: npt.ArrayLike, amounts: npt.ArrayLike) -> Floats:
    """A copy with these amounts taken at these flat positions; repeated ones add; never below 0."""
    # In C order: positions count along rows, and only then is the flat view no copy.
    left = np.array(figures, dtype=float, order="C")
    np.subtract.at(left.reshape(-1), np.asarray(at, dtype=np.int64), amounts)
    return np.asarray(np.maximum(left, 0.0))
