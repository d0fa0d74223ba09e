"""Checks plain data against the entries a file is made of, and tells every defect in our words."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any, ClassVar, Generic, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from thalweg.errors import Defect, Defects, InvalidInput, join_path, nearest
from thalweg.files.fields import REFUSED, FieldKind
from thalweg.files.outline import MOST_DEFECTS

_STEP = re.compile(r"\[([0-9]{1,9})\]|([^.\[\]]+)")
_MOST_COMPARISONS = 20_000

Location = tuple[int | str, ...]


class Entry(BaseModel):
    """A mapping in a file: these fields, no others."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    noun: ClassVar[str] = "an entry"
    plural: ClassVar[str] = "entries"

    @classmethod
    def rule(cls) -> str:
        """What is needed where something else stands."""
        return f"a mapping that describes {cls.noun}"


Checked = TypeVar("Checked", bound=Entry)
Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class Verdict(Generic[Checked]):
    """What checking a document found: the document, or what is wrong with it and where."""

    document: Checked | None
    defects: tuple[Defect, ...]
    broken: frozenset[Location]
    """The parts that have a defect: each location of one, and all its beginnings."""

    def is_sound(self, *location: int | str) -> bool:
        """Whether no defect lies in this part."""
        return location not in self.broken


def validate(entry: type[Checked], data: object) -> Verdict[Checked]:
    """Check data against an entry; never raises."""
    try:
        return Verdict(entry.model_validate(data), (), frozenset())
    except ValidationError as error:
        problems = error.errors(include_url=False)
    broken = {
        problem["loc"][:end] for problem in problems for end in range(len(problem["loc"]) + 1)
    }
    # Hints take time, so there are no more of them than anybody would read.
    told = islice(_tell_all(entry, problems), MOST_DEFECTS + 1)
    return Verdict(None, tuple(told), frozenset(broken))


def show_location(location: Location) -> str:
    """A location in the notation of all messages.

    >>> show_location(("operators", 3, "window", "length"))
    'operators[3].window.length'
    """
    path = ""
    for step in location:
        path = join_path(path, f"[{step}]" if isinstance(step, int) else step)
    return path


def as_written(error: InvalidInput, data: object) -> InvalidInput:
    """The same defects, with each value as it stands in the file where the path leads to one."""
    # Of a hundred thousand defects only the first are ever shown.
    told = error.defects[: 10 * MOST_DEFECTS]
    return InvalidInput(_with_written_value(defect, data) for defect in told)


def list_of(data: object, field: str) -> list[Any] | None:
    """The list in a field; None where there is none."""
    found = data.get(field) if isinstance(data, Mapping) else None
    return found if isinstance(found, list) else None


def text_of(item: object, field: str) -> str | None:
    """The text in a field; None where there is none."""
    found = item.get(field) if isinstance(item, Mapping) else None
    return found if isinstance(found, str) else None


class Hints:
    """Names the nearest known word, until it has compared so many that a user would wait."""

    def __init__(self) -> None:
        self._left = _MOST_COMPARISONS

    def nearest(self, name: str, known: Collection[str]) -> str:
        """A hint, or none."""
        self._left -= len(known)
        return nearest(name, known) if self._left >= 0 else ""


def require_known(
    defects: Defects, path: str, name: str, known: Mapping[str, int], rule: str, hints: Hints
) -> bool:
    """Remember a defect unless the name is a known one; whether it is."""
    if name in known:
        return True
    defects.add(path, name, rule, hints.nearest(name, known))
    return False


def read_items(
    defects: Defects,
    verdict: Verdict[Any],
    data: object,
    field: str,
    entry: type[Checked],
    make: Callable[[Checked], Made],
) -> list[Made | None]:
    """What `make` makes of each item of a list; None for a defective one, which is remembered."""
    made = []
    ready = getattr(verdict.document, field, None)
    for position, item in enumerate(list_of(data, field) or []):
        found = None
        if verdict.is_sound(field, position):
            sound = ready[position] if ready else entry.model_validate(item)
            found = defects.attempt(f"{field}[{position}]", partial(make, sound))
        made.append(found)
    return made


def renumber(defect: Defect, field: str, kept: list[int]) -> Defect:
    """A defect found in the items that were kept, with the numbers that these have in the file."""

    def number(found: re.Match[str]) -> str:
        return f"{field}[{kept[int(found[1])]}]"

    path, hint = (
        re.sub(rf"\b{field}\[([0-9]+)\]", number, text) for text in (defect.path, defect.hint)
    )
    return replace(defect, path=path, hint=hint)


def _tell_all(entry: type[Entry], problems: list[ErrorDetails]) -> Iterator[Defect]:
    for problem in problems:
        yield from _tell(entry, problem)


def _tell(entry: type[Entry], problem: ErrorDetails) -> Iterator[Defect]:
    location, value = problem["loc"], problem["input"]
    path = show_location(location)
    if problem["type"] == REFUSED:
        for defect in problem["ctx"]["defects"]:
            hint = defect.hint or _null_hint(entry, location, defect)
            yield replace(defect, path=join_path(path, defect.path), hint=hint)
    elif problem["type"] == "missing":
        holder = _entry_at(entry, location[:-1])
        lack = _lack_of(holder.model_fields[str(location[-1])])
        hint = _near_miss(holder, problem) or lack.hint or _meaning(holder, str(location[-1]))
        yield replace(lack, path=path, hint=hint)
    elif problem["type"] == "extra_forbidden":
        holder, name = _entry_at(entry, location[:-1]), str(location[-1])
        hint = nearest(name, holder.model_fields)
        yield Defect(path=path, value=value, rule=f"a known field of {holder.noun}", hint=hint)
    elif problem["type"] == "list_type":
        holder = _entry_at(entry, location[:-1])
        annotation = holder.model_fields[str(location[-1])].annotation
        yield Defect(path=path, value=value, rule=_list_rule(annotation), hint=_example(annotation))
    else:
        wanted = _entry_at(entry, location)
        hint = f"its fields are {', '.join(wanted.model_fields)}"
        yield Defect(path=path, value=value, rule=wanted.rule(), hint=hint)


def _null_hint(entry: type[Entry], location: Location, defect: Defect) -> str:
    """A field that may be left out is not written as null."""
    if defect.value is not None or defect.path or not isinstance(location[-1], str):
        return ""
    field = _entry_at(entry, location[:-1]).model_fields[location[-1]]
    return (
        ""
        if field.is_required()
        else "write a value, or leave the field out where it is not needed"
    )


def _near_miss(holder: type[Entry], problem: ErrorDetails) -> str:
    """Where a needed field is missing and an unknown one looks like it, say so."""
    given = problem["input"] if isinstance(problem["input"], Mapping) else {}
    unknown = [key for key in islice(given, 30) if key not in holder.model_fields]
    hint = nearest(str(problem["loc"][-1]), unknown) if unknown else ""
    found = re.fullmatch(r'did you mean "(.*)"\?', hint)
    return f'rename "{found[1]}" to "{problem["loc"][-1]}"' if found else ""


def _meaning(holder: type[Entry], name: str) -> str:
    """What a field that is missing would say."""
    meaning = holder.model_fields[name].description or ""
    if not meaning[1:2].isupper():
        meaning = meaning[:1].lower() + meaning[1:]
    return f"add it: {meaning}" if meaning else ""


def _example(annotation: object) -> str:
    """How an item of a list is written, by the fields that it needs."""
    inner = _entry_in(annotation)
    if inner is None:
        return ""
    needed = [name for name, field in inner.model_fields.items() if field.is_required()]
    return f"write each as an item: - {{{', '.join(f'{name}: …' for name in needed)}}}"


def _entry_at(entry: type[Entry], location: Location) -> type[Entry]:
    """The entry that a location lies in, or is."""
    for step in location:
        if isinstance(step, str) and step in entry.model_fields:
            entry = _entry_in(entry.model_fields[step].annotation) or entry
    return entry


def _entry_in(annotation: object) -> type[Entry] | None:
    if isinstance(annotation, type) and issubclass(annotation, Entry):
        return annotation
    found = (_entry_in(part) for part in get_args(annotation))
    return next((part for part in found if part is not None), None)


def _lack_of(field: FieldInfo) -> Defect:
    """What to say where a needed field is not there."""
    for kind in field.metadata:
        if isinstance(kind, FieldKind):
            try:
                kind.read(None)
            except InvalidInput as error:
                return error.defects[0]
            return Defect(path="", value=None, rule=kind.rule)
    inner = _entry_in(field.annotation)
    is_entry = inner is not None and field.annotation is inner
    rule = inner.rule() if is_entry and inner else _list_rule(field.annotation)
    return Defect(path="", value=None, rule=rule)


def _list_rule(annotation: object) -> str:
    inner = _entry_in(annotation)
    return f"a list of {inner.plural if inner else 'texts'}"


def _with_written_value(defect: Defect, data: object) -> Defect:
    found: object = data
    for step in _STEP.finditer(defect.path):
        position, key = step.groups()
        if position is not None and isinstance(found, list) and int(position) < len(found):
            found = found[int(position)]
        elif key is not None and isinstance(found, Mapping) and key in found:
            found = found[key]
        else:
            return defect
    is_told = isinstance(found, (dict, list)) or found is defect.value
    return defect if is_told else replace(defect, value=found)
