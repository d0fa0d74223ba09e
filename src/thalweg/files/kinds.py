"""What a file is about: an application, a network, a plan, a workload or changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from thalweg.errors import Defect, InvalidInput
from thalweg.files.fields import FORMAT_VERSION

Kind = Literal["application", "network", "plan", "workload", "changes"]

_SIGNS: dict[Kind, tuple[str, ...]] = {
    "application": ("operators", "streams"),
    "network": ("sites", "links", "mesh", "coordinates"),
    "plan": ("placement", "strategy", "estimate"),
    "workload": ("steps",),
    "changes": ("changes",),
}
_NOUNS: dict[Kind, str] = {
    "application": "an application",
    "network": "a network",
    "plan": "a plan",
    "workload": "a workload",
    "changes": "a list of changes",
}
# Changes name other files, so data alone is not enough to read them (`is_about_changes`).
_TOLD_APART: tuple[Kind, ...] = ("application", "network", "plan", "workload")
_EXAMPLE_HINT = '"thalweg init FOLDER" writes examples'
_CHANGES_HINT = "this is a list of changes, which only load_changes reads"


def find_kind(data: object) -> Kind:
    """What data is about, by its fields; raises `InvalidInput` where nothing can be told.

    >>> find_kind({"thalweg": 1, "network": "city", "sites": []})
    'network'
    """
    fields = _readable(data, _any_of(_NOUNS[kind] for kind in _TOLD_APART))
    best = max(_TOLD_APART, key=lambda kind: len(_signs_in(fields, kind)))
    if _signs_in(fields, best):
        return best
    if "application" in fields and "network" in fields:
        return "plan"  # It names both.
    names: tuple[Kind, ...] = ("application", "network", "workload")
    for kind in names:
        if kind in fields:
            return kind
    known = (f"{_NOUNS[kind]} ({', '.join(_SIGNS[kind][:2])})" for kind in _TOLD_APART)
    rule = _any_of(known)
    hint = _CHANGES_HINT if _signs_in(fields, "changes") else _EXAMPLE_HINT
    raise InvalidInput([Defect(path="", value=data, rule=rule, hint=hint)])


def is_about_changes(error: InvalidInput) -> bool:
    """Whether `find_kind` refused data since it is a list of changes, which name other files.

    >>> try:
    ...     find_kind({"thalweg": 1, "changes": []})
    ... except InvalidInput as error:
    ...     print(is_about_changes(error))
    True
    """
    return any(defect.hint == _CHANGES_HINT for defect in error.defects)


def require_kind(data: object, wanted: Kind) -> None:
    """Refuse data that is about something else, or in a version that nobody here can read."""
    data = _readable(data, _NOUNS[wanted])
    if _signs_in(data, wanted):
        return
    for other in _SIGNS:
        if signs := _signs_in(data, other):
            rule = f"{_NOUNS[wanted]}, with {' and '.join(_SIGNS[wanted][:2])}"
            hint = f'it has the field "{signs[0]}"; are two file names swapped?'
            raise InvalidInput([Defect(path="", value=_NOUNS[other], rule=rule, hint=hint)])
    if "shape" in data and wanted == "network":
        rule = "a network; this file is one part of a network kept as a folder"
        raise InvalidInput([Defect(path="", value="shape", rule=rule, hint="name the folder")])


def _any_of(words: Iterable[str]) -> str:
    *others, last = words
    return f"{', '.join(others)} or {last}"


def _readable(data: object, noun: str) -> Mapping[str, object]:
    """The data as a mapping; refused where it is none, or of another version."""
    if not isinstance(data, Mapping):
        rule = f"{noun}: a mapping that begins with thalweg: {FORMAT_VERSION}"
        raise InvalidInput([Defect(path="", value=data, rule=rule, hint=_EXAMPLE_HINT)])
    version = data.get("thalweg")
    if type(version) is int and version != FORMAT_VERSION:
        rule = f"the version of the format, {FORMAT_VERSION}"
        hint = f"this Thalweg reads version {FORMAT_VERSION} only"
        raise InvalidInput([Defect(path="thalweg", value=version, rule=rule, hint=hint)])
    return data


def _signs_in(data: Mapping[str, object], kind: Kind) -> list[str]:
    return [sign for sign in _SIGNS[kind] if sign in data]
