"""What a file is about: an application, a network or a plan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from thalweg.errors import Defect, InvalidInput
from thalweg.files.fields import FORMAT_VERSION

Kind = Literal["application", "network", "plan"]

_SIGNS: dict[Kind, tuple[str, ...]] = {
    "application": ("operators", "streams"),
    "network": ("sites", "links", "mesh", "coordinates"),
    "plan": ("placement", "strategy", "estimate"),
}
_NOUNS: dict[Kind, str] = {
    "application": "an application",
    "network": "a network",
    "plan": "a plan",
}


def require_kind(data: object, wanted: Kind) -> None:
    """Refuse data that is about something else, or in a version that nobody here can read."""
    if not isinstance(data, Mapping):
        rule = f"{_NOUNS[wanted]}: a mapping that begins with thalweg: {FORMAT_VERSION}"
        raise InvalidInput([Defect(path="", value=data, rule=rule)])
    version = data.get("thalweg")
    if type(version) is int and version != FORMAT_VERSION:
        rule = f"the version of the format, {FORMAT_VERSION}"
        hint = f"this Thalweg reads version {FORMAT_VERSION} only"
        raise InvalidInput([Defect(path="thalweg", value=version, rule=rule, hint=hint)])
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


def _signs_in(data: Mapping[str, object], kind: Kind) -> list[str]:
    return [sign for sign in _SIGNS[kind] if sign in data]
