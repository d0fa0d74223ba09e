"""Whether all that `thalweg doctor` moves, writes or cuts off is in the folder of the run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from thalweg.errors import ThalwegError
from thalweg.spark.deployment.health.stakes import RunPlaces

LINKS = ".links"


def require_own_places(places: RunPlaces) -> None:
    """Raise `ThalwegError` where a link would have something done outside of the folder.

    Other files may be links: to move or to replace one touches the link alone.
    """
    for path in _touched(places):
        if path.is_symlink():
            raise ThalwegError(
                f"{path} is a link, and nothing outside of the folder of a run is touched. "
                "Hint: put what it leads to in its place, and ask again."
            )


def _touched(places: RunPlaces) -> Iterator[Path]:
    """Files that are written in their place, and folders in which something is written or moved."""
    yield places.journal
    yield places.folder / "rebuild.json"
    yield places.folder / "logs"
    for root in places.logs.values():
        yield root
        yield root / LINKS
    for name in ("checkpoints", "carried"):
        # Told first, as the walk would follow it.
        yield places.folder / name
        for above, folders, _ in os.walk(places.folder / name):
            yield from (Path(above, folder) for folder in folders)
