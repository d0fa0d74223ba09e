"""Keeps a run of a city: Parquet tables for each approach, and a manifest to repeat it by."""

from __future__ import annotations

import json
import platform
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thalweg.cli.output import say

if TYPE_CHECKING:
    import pyarrow as pa

    from thalweg.cli.mobility.run import Outcome
    from thalweg.migration.drive import Drive
    from thalweg.migration.settings import Settings

MANIFEST = "manifest.json"


def save_outcomes(
    outcomes: Sequence[Outcome],
    folder: Path,
    told: Mapping[str, Any],
    settings: Settings,
    files: Sequence[Path],
) -> None:
    """Write `moves`, `stays` and `costs` of each approach into a folder of its own.

    Raises:
        InvalidInput: where the folder cannot be written.
    """
    import pyarrow.parquet as pq

    from thalweg.errors import Defect, InvalidInput

    try:
        for outcome in outcomes:
            own = folder / outcome.trip.name.replace(" ", "-")
            outcome.execution.save(own)
            draft = own / ".costs.parquet"
            pq.write_table(costs_table(outcome.drive), draft)
            draft.replace(own / "costs.parquet")
            say(f"wrote {own}")
        _save_city(outcomes, folder)
        draft = folder / f".{MANIFEST}"
        manifest = _manifest(told, settings, files)
        text = json.dumps(manifest, indent=2, ensure_ascii=False, allow_nan=False)
        draft.write_text(text + "\n", encoding="utf-8")
        draft.replace(folder / MANIFEST)
    except OSError as error:
        rule = f"a folder that can be written ({(error.strerror or str(error)).lower()})"
        raise InvalidInput([Defect(path="--output", value=str(folder), rule=rule)]) from error
    say(f"wrote {folder / MANIFEST}")


def _save_city(outcomes: Sequence[Outcome], folder: Path) -> None:
    """Keep what a page needs to show the city in motion."""
    from thalweg.migration.view.packed import CITY_FILE, pack_city

    drives = [outcome.drive for outcome in outcomes]
    packed = {"title": drives[0].city.graph.name, **pack_city(drives)}
    draft = folder / f".{CITY_FILE}"
    draft.write_text(json.dumps(packed, allow_nan=False, separators=(",", ":")), encoding="utf-8")
    draft.replace(folder / CITY_FILE)


def costs_table(drive: Drive) -> pa.Table:
    """A row for each instance: its vehicles, when it lived, and what it cost in byte · s."""
    import pyarrow as pa

    city = drive.city
    names, start_s = city.connections.names, city.connections.start_s
    columns: dict[str, Any] = {"instance": pa.array(range(city.instances), pa.int64())}
    for place, user in enumerate(city.graph.users):
        vehicles = [names[k] for k in city.vehicles[:, place].tolist()]
        columns[f"vehicle_{user}"] = pa.array(vehicles, pa.string())
    for place, name in enumerate(("begin_s", "end_s")):
        moments = (start_s + city.tick_s * city.life[:, place]).tolist()
        columns[name] = pa.array(moments, pa.float64())
    for place, name in enumerate(("placement_byte_s", "migration_byte_s")):
        columns[name] = pa.array(drive.costs[:, place].tolist(), pa.float64())
    return pa.table(columns)


def _manifest(told: Mapping[str, Any], settings: Settings, files: Sequence[Path]) -> dict[str, Any]:
    listed = [each for path in files for each in (sorted(path.rglob("*")) or [path])]
    inputs = {str(path): sha256(path.read_bytes()).hexdigest() for path in listed if path.is_file()}
    # JSON knows no ∞: a limit that is none is null.
    limits = {k: None if v == float("inf") else v for k, v in asdict(settings).items()}
    return {
        "thalweg": 1,
        **told,
        "command": shlex.join(["thalweg", *sys.argv[1:]]),
        "settings": limits,
        "inputs": inputs,
        "versions": {
            "thalweg": version("thalweg"),
            "python": platform.python_version(),
            **{name: version(name) for name in ("numba", "numpy", "pyarrow", "scipy")},
        },
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
    }
