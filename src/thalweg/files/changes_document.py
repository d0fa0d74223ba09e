"""What changes during a run, as it stands in a file: the fields, what each needs and means."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, ClassVar, get_args

from pydantic import ConfigDict, Field

from thalweg.errors import Defects, InvalidInput
from thalweg.files.fields import FieldKind, Flag, MayLack, Name, NodeName, Ratio, Version, refuse
from thalweg.files.quantities import Duration, EventRate
from thalweg.files.validation import Entry

SORTS = ("node", "link", "rates", "plan")
"""What may change; each change names exactly one."""

_LARGEST_SPEED = 1e6
_LONGEST_PATH = 255
_PLAN_RULE = (
    'the path of a plan file from the folder of this file, such as "plan-b.json" or "plans/b.yaml"'
)
# No part of the path is empty, "." or "..": the path cannot climb or start at the root.
_PLAN_PATH = re.compile(
    r"(?!.*(?:^|/)\.{0,2}(?:/|$))[^\\\x00-\x1f\x7f-\x9f]+\.(?:yaml|yml|json|YAML|YML|JSON)"
)


def _speed() -> FieldKind:
    ratio: FieldKind = get_args(Ratio)[1]
    rule = 'a number from 0 (down) to 1e6, such as 0.5 or "50 %"; 1 is as planned'

    def read(value: object) -> float:
        try:
            speed: float = ratio.read(value)
        except InvalidInput as error:
            raise InvalidInput(replace(d, rule=rule) for d in error.defects) from None
        if speed > _LARGEST_SPEED:
            refuse(value, rule)
        return speed

    number, percent = ratio.schema["anyOf"]
    return FieldKind(read, rule, {"anyOf": [number | {"maximum": _LARGEST_SPEED}, percent]})


def _two_sites() -> FieldKind:
    name: FieldKind = get_args(Name)[1]
    rule = "a list of two sites, such as [fog-1, cloud]"

    def read(value: object) -> tuple[str, str]:
        if not isinstance(value, list) or len(value) != 2:
            refuse(value, rule, "a link is named by the sites at its two ends")
        defects = Defects()
        for position, site in enumerate(value):
            defects.attempt(f"[{position}]", partial(name.read, site))
        defects.raise_if_any()
        first, second = value
        if first == second:
            refuse(value, rule, "a link joins two different sites")
        return first, second

    items = {"type": "array", "items": dict(name.schema), "minItems": 2, "maxItems": 2}
    return FieldKind(read, rule, items | {"uniqueItems": True})


def _plan_path() -> FieldKind:
    def read(value: object) -> str:
        if not isinstance(value, str) or not _is_plan_path(value):
            refuse(value, _PLAN_RULE, _path_hint(value))
        return value

    schema = {"type": "string", "pattern": f"^{_PLAN_PATH.pattern}$", "maxLength": _LONGEST_PATH}
    return FieldKind(read, _PLAN_RULE, schema)


def _is_plan_path(text: str) -> bool:
    is_short = len(text) <= _LONGEST_PATH
    return is_short and text.isprintable() and _PLAN_PATH.fullmatch(text) is not None


def _path_hint(value: object) -> str:
    if not isinstance(value, str):
        return "write the plan into a file of its own" if isinstance(value, dict) else ""
    if len(value) > _LONGEST_PATH:
        return f"it has {len(value)} characters, {_LONGEST_PATH} are allowed"
    if "\\" in value:
        return 'write "/" between a folder and a file'
    if value.startswith("/"):
        return "a path from the root of the disk is not taken; put the plan beside this file"
    if any(part in ("", ".", "..") for part in value.split("/")):
        return 'leave out "..", "." and double "/"; put the plan beside this file'
    if not value.isprintable():
        return "take out the characters that cannot be seen"
    return "the name ends in .yaml, .yml or .json"


def _only(*needed: str, may: tuple[str, ...]) -> dict[str, Any]:
    """The schema of one sort of change: these fields and none of the other sorts."""
    others = {*SORTS, "speed", "loses", "application"} - {*needed, *may}
    return {"required": list(needed), "properties": dict.fromkeys(sorted(others), False)}


SPEED = _speed()


class RateEntry(Entry):
    """What one source puts out in one site."""

    model_config = ConfigDict(title="Rate")
    noun: ClassVar[str] = "a rate"
    plural: ClassVar[str] = "rates"

    source: Name = Field(description="The source.")
    site: Name = Field(description="Where the events are born.")
    rate: EventRate = Field(description="Events born there from now on.")


class ChangeEntry(Entry):
    """What is different from a moment on: a node, a link, rates or the plan."""

    model_config = ConfigDict(
        title="Change",
        json_schema_extra={
            "oneOf": [
                _only("node", "speed", may=("loses",)),
                _only("link", "speed", may=("loses",)),
                _only("rates", may=("application",)),
                _only("plan", may=("application",)),
            ],
            "if": {"properties": {"loses": {"const": True}}, "required": ["loses"]},
            "then": {"properties": {"speed": {"not": {"type": "number", "exclusiveMinimum": 0}}}},
        },
    )
    noun: ClassVar[str] = "a change"
    plural: ClassVar[str] = "changes"

    at: Duration = Field(description="From this moment of the run on.")
    node: MayLack[NodeName] = Field(None, description="The node whose speed changes.")
    link: MayLack[Annotated[tuple[str, str], _two_sites()]] = Field(
        None, description="The two sites whose link changes its speed, in both directions."
    )
    speed: MayLack[Annotated[float, SPEED]] = Field(
        None, description="Part of the speed of the node or link: 0 is down, 1 is as planned."
    )
    loses: Flag = Field(
        False, description="With speed 0: what waits there, and what still comes, is lost."
    )
    rates: MayLack[list[RateEntry]] = Field(
        None,
        description="Other rates; pairs of source and site not named keep theirs.",
        json_schema_extra={"minItems": 1},
    )
    plan: MayLack[Annotated[str, _plan_path()]] = Field(
        None, description="A file with another plan, by its path from the folder of this file."
    )
    application: MayLack[Name] = Field(
        None,
        description="Whose rates or plan, where there are several applications; "
        "the first one's if not given.",
    )


class ChangesDocument(Entry):
    """What changes during a run, and when."""

    model_config = ConfigDict(title="Thalweg changes")
    noun: ClassVar[str] = "a list of changes"

    thalweg: Version = Field(description="The version of the format.")
    changes: list[ChangeEntry] = Field(
        description="What changes; at least one, in any order.", json_schema_extra={"minItems": 1}
    )
