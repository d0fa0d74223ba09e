"""Reads what changes during a run from plain data, and the plans that it names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from difflib import get_close_matches
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, cast

from thalweg.errors import Defect, Defects, InvalidInput, show_value
from thalweg.files.changes_document import SORTS, SPEED, ChangeEntry, ChangesDocument
from thalweg.files.fields import refuse
from thalweg.files.kinds import require_kind
from thalweg.files.validation import Verdict, list_of, validate
from thalweg.model.changes import Change, PlanChange, RateChange, SpeedChange
from thalweg.model.plan import Plan

MOST_PLANS = 100
"""Files that one list of changes may name: each may be large, and all are held in memory."""

LoadPlan = Callable[[Path], Plan]


def read_changes(data: object, folder: Path, load_plan: LoadPlan) -> tuple[Change, ...]:
    """The changes that plain data describes, in its order; plan files are looked for in a folder.

    Raises:
        InvalidInput: with all defects; those inside a plan file carry its name.
    """
    require_kind(data, "changes")
    verdict = validate(ChangesDocument, data)
    defects = Defects()
    if verdict.defects:
        defects.absorb(InvalidInput(verdict.defects))
    items = list_of(data, "changes")
    if items == []:
        defects.add("changes", [], "at least one change", "write - {at: 20 s, node: …, speed: 0}")
    named: dict[str, int] = {}
    for position, item in enumerate(items or []):
        if isinstance(item, Mapping):
            _check_change(defects, verdict, position, item)
            if "plan" in item and verdict.is_sound("changes", position, "plan"):
                named.setdefault(item["plan"], position)
    plans = _load_plans(defects, named, folder, load_plan)
    defects.raise_if_any()
    document = cast(ChangesDocument, verdict.document)
    return tuple(_change(entry, plans) for entry in document.changes)


def _check_change(
    defects: Defects, verdict: Verdict[Any], position: int, item: Mapping[str, Any]
) -> None:
    """Remember which fields of a change do not go together, also where one of them is defective."""
    path = f"changes[{position}]"
    given = [sort for sort in SORTS if sort in item]
    if len(given) != 1 and not (not given and any(_is_misspelt(sort, item) for sort in SORTS)):
        rule = "exactly one of node, link, rates and plan"
        hint = "make each a change of its own" if given else "say what changes"
        defects.add(path, ", ".join(given) or "none of them", rule, hint)
    has_speed, has_owner = {"node", "link"} & {*given}, {"rates", "plan"} & {*given}
    if has_speed and "speed" not in item and not _is_misspelt("speed", item):
        hint = "say how fast it is from then on"
        defects.add(f"{path}.speed", None, SPEED.rule, hint)
    for name, fits, rule in (
        ("speed", has_speed, "this field only with a node or a link"),
        ("loses", has_speed, "this field only with a node or a link"),
        ("application", has_owner, "this field only with rates or a plan"),
    ):
        if name in item and given and not fits:
            defects.add(f"{path}.{name}", item[name], rule)
    is_sound = partial(verdict.is_sound, "changes", position)
    if has_speed and item.get("loses") is True and "speed" in item and is_sound("speed"):
        down = SPEED.read(item["speed"]) == 0
        hint = f"the speed is {show_value(item['speed'])}"
        defects.require(down, f"{path}.loses", True, "this field only with speed 0", hint)
    if "rates" in item and isinstance(item["rates"], list):
        _check_pairs(defects, f"{path}.rates", item["rates"])


def _check_pairs(defects: Defects, path: str, rates: list[Any]) -> None:
    """Remember pairs of source and site that are there twice: which rate would hold?"""
    if not rates:
        hint = "write - {source: rides, site: fog-1, rate: 120 /s}"
        defects.add(path, rates, "at least one rate", hint)
    first: dict[tuple[str, str], int] = {}
    for position, item in enumerate(rates):
        pair = (item.get("source"), item.get("site")) if isinstance(item, Mapping) else (None, None)
        if not isinstance(pair[0], str) or not isinstance(pair[1], str):
            continue
        before = first.setdefault((pair[0], pair[1]), position)
        if before != position:
            rule, hint = "each pair of source and site once", f"rates[{before}] has them already"
            defects.add(f"{path}[{position}]", f"{pair[0]}, {pair[1]}", rule, hint)


def _is_misspelt(name: str, item: Mapping[str, Any]) -> bool:
    """Whether a field that is told as unknown was surely meant to be this one."""
    unknown = [key for key in islice(item, 30) if key not in ChangeEntry.model_fields]
    return bool(get_close_matches(name, unknown, n=1))


def _load_plans(
    defects: Defects, named: Mapping[str, int], folder: Path, load_plan: LoadPlan
) -> dict[str, Plan]:
    """The plan in each file; what is wrong with a file is told where it is named first."""
    if len(named) > MOST_PLANS:
        defects.add("changes", f"{len(named)} plan files", f"at most {MOST_PLANS} plan files")
        return {}
    plans = {}
    for name, position in named.items():
        path = f"changes[{position}].plan"
        file = defects.attempt(path, partial(_find_inside, folder, name))
        if file is None:
            continue
        try:
            plans[name] = load_plan(file)
        except InvalidInput as error:
            defects.absorb(InvalidInput(_tell(defect, path, name) for defect in error.defects))
    return plans


def _find_inside(folder: Path, name: str) -> Path:
    """The file of this name; refused where links on the disk lead out of the folder."""
    file = folder / name
    try:
        inside = file.resolve().is_relative_to(folder.resolve())
        if inside:
            # From Python 3.13 on, only a strict look finds links in a circle.
            with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
                file.resolve(strict=True)
    except (OSError, RuntimeError, ValueError):  # Links in a circle, or an unreadable folder.
        refuse(name, "a file that can be read")
    if not inside:
        refuse(name, "a plan file in the folder of this file", "a symbolic link leads out of it")
    return file


def _tell(defect: Defect, path: str, name: str) -> Defect:
    """A defect inside a plan file as it is; one of the whole file at the place that names it."""
    if defect.line is not None:
        return defect
    value = name if defect.value is None else f"{name}: {defect.value}"
    return replace(defect, file="", path=path, value=value)


def _change(entry: ChangeEntry, plans: Mapping[str, Plan]) -> Change:
    if entry.plan is not None:
        return PlanChange(at_s=entry.at, plan=plans[entry.plan], application=entry.application)
    if entry.rates is not None:
        rates = {(row.source, row.site): row.rate for row in entry.rates}
        return RateChange(at_s=entry.at, rates=rates, application=entry.application)
    return SpeedChange(
        at_s=entry.at,
        node=entry.node,
        link=entry.link,
        speed=cast(float, entry.speed),
        loses=entry.loses,
    )
