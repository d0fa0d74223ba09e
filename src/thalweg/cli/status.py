"""`thalweg status`: how is a run doing?"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from thalweg.cli.output import Format, FormatOption, print_json, print_table, tell

if TYPE_CHECKING:
    from thalweg.spark.deployment.folder import RunFolder

FolderArgument = Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder of the run.")]


def status(
    folder: FolderArgument,
    format: FormatOption = Format.TABLE,  # noqa: A002 - the name of the option
) -> None:
    """Say how a run is doing, or when it was last heard of and what to do about that."""
    from dataclasses import asdict

    from thalweg.spark.deployment.folder import RunFolder
    from thalweg.spark.deployment.health import glance

    found, now_s = RunFolder.of_run(folder), time.time()
    told, is_alive = _read_status(found, now_s), found.is_held()
    silent_s = max(0.0, now_s - float(told.get("heartbeat_s", now_s)))
    worst = glance(found, now_s)
    if format is Format.JSON:
        seen = {"alive": is_alive, "heartbeat_age_s": round(silent_s, 3)}
        print_json({**told, **seen, "worst": None if worst is None else asdict(worst)})
        return
    tell(describe_run(told, silent_s, is_alive=is_alive))
    _print_sites(told)
    if is_alive and (address := found.read_page()):
        tell(f"page: {address}")
    if told.get("last_decision"):
        tell(f"last decision: {told['last_decision'].get('reason', '')}")
    if worst is not None:
        # That a run has ended, and why, is told above.
        what = "" if worst.where == "run" and not is_alive else f"{worst.where}: {worst.what}; "
        tell(f"{worst.level}: {what}`thalweg doctor {folder}` says more")


def _read_status(folder: RunFolder, now_s: float) -> dict[str, Any]:
    """How the run said that it was doing; what helps is told where that cannot be read."""
    from dataclasses import replace

    from thalweg.errors import InvalidInput
    from thalweg.spark.deployment.health import glance

    try:
        return folder.read_status()
    except InvalidInput as error:
        worst, hint = glance(folder, now_s), f"`thalweg doctor {folder.path}` says more"
        if worst is not None:
            is_same = worst.where == "status.json"
            hint = worst.remedy if is_same else f"{worst.where}: {worst.what}; {hint}"
        raise InvalidInput(replace(defect, hint=hint) for defect in error.defects) from None


def describe_run(told: dict[str, Any], silent_s: float, *, is_alive: bool) -> str:
    """A run in a line or two: what it is, whether it is there, and what to do if not."""
    what = f"{told.get('pipeline', 'a run')} on {told.get('network', 'a network')}"
    state = told.get("state", "starting")
    if is_alive:
        rows = f", {told['rows_in']:,} rows in" if "rows_in" in told else ""
        return f"{what}: {state}, last look {silent_s:.0f} s ago{rows}"
    again = "Hint: the same `thalweg run` goes on where it was."
    if state == "ended":
        return f"{what}: stopped {silent_s:.0f} s ago. {again}"
    if state == "failed":
        after = "Hint: when that is seen to, the same `thalweg run` goes on where it was."
        return f"{what}: failed {silent_s:.0f} s ago: {told.get('error')}\n{after}"
    return f"{what}: not running; it was killed, last heard of {silent_s:.0f} s ago. {again}"


def _print_sites(told: dict[str, Any]) -> None:
    rates = told.get("rates") or {}
    rows = []
    for name, site in told.get("sites", {}).items():
        query = (site["queries"] or [{}])[0]
        arriving = sum(by_site.get(name, 0.0) for by_site in rates.values())
        cut = told.get("cuts", {}).get(name)
        rows.append(
            [
                name,
                "yes" if site["alive"] else "no",
                "everything" if cut is None else ", ".join(cut) or "nothing",
                f"{arriving:.0f}" if cut is not None else "",
                f"{query.get('processed_rows_per_s', 0.0):.0f}",
                str(query.get("batch", "")),
                str(query.get("error") or ""),
            ]
        )
    if rows:
        names = ["site", "alive", "runs", "rows/s in", "rows/s done", "batch", "error"]
        print_table(names, rows)
