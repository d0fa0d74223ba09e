"""The kinds of field that files are made of: each reads what was written and says what it needs.

A kind stands beside the Python type of a field, as in `Annotated[float, FieldKind(...)]`. It reads
the field by itself, so that the rule and the hint of a refusal are in the words of this project.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Annotated, Any, NoReturn, TypeVar, get_args

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from thalweg.errors import Defect, InvalidInput, nearest
from thalweg.model.addresses import ADDRESS_PATTERN, ADDRESS_RULE, address_hint, is_address
from thalweg.model.names import LONGEST_NAME, NAME_RULE, is_name, name_hint

FORMAT_VERSION = 1
TIERS = ("edge", "fog", "cloud")
REFUSED = "refused"
"""The type of every error that a kind raises; its context holds the defects."""

_PERCENT = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,30})?)\s?%")
# As in model/names.py, for the schema.
_NO_DOUBLE_DOT = r"(?!.*\.\.)"
_NAME_PATTERN = rf"[A-Za-z0-9][A-Za-z0-9_.-]{{0,{LONGEST_NAME - 1}}}"
_NAME_SCHEMA = {"type": "string", "pattern": f"^{_NO_DOUBLE_DOT}{_NAME_PATTERN}$"}
_LONGEST_RATIO = 50
_LARGEST_RATIO = 1e9

Given = TypeVar("Given")


@dataclass(frozen=True, slots=True, eq=False)
class FieldKind:
    """How a field is read, what it needs in words, and the same as JSON Schema."""

    read: Callable[[object], Any]
    rule: str
    schema: Mapping[str, Any]

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self._read)

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return dict(self.schema)

    def _read(self, value: object) -> Any:
        try:
            return self.read(value)
        except InvalidInput as error:
            # Defects travel in the context: one field, such as a matrix, may have many.
            raise PydanticCustomError(REFUSED, REFUSED, {"defects": error.defects}) from None


class _NeverNull:
    """A field that may be left out, but where it is given it is not null."""

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        (given,) = (part for part in get_args(source) if part is not NoneType)
        return handler.generate_schema(given)


MayLack = Annotated[Given | None, _NeverNull()]


def refuse(value: object, rule: str, hint: str = "", path: str = "") -> NoReturn:
    """Refuse the value of a field."""
    raise InvalidInput([Defect(path=path, value=value, rule=rule, hint=hint)])


def is_number(value: object) -> bool:
    """Whether the value is a finite number; true and false are none."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return isinstance(value, int) or math.isfinite(value)


def _version() -> FieldKind:
    rule = f"the version of the format, {FORMAT_VERSION}"

    def read(value: object) -> int:
        if type(value) is int and value == FORMAT_VERSION:
            return value
        if type(value) is int:
            hint = f"this Thalweg reads version {FORMAT_VERSION} only"
        else:
            hint = f'write "thalweg: {FORMAT_VERSION}" as the first line'
        refuse(value, rule, hint)

    return FieldKind(read, rule, {"const": FORMAT_VERSION})


def _name() -> FieldKind:
    def read(value: object) -> str:
        if isinstance(value, str) and is_name(value):
            return value
        is_bare = not isinstance(value, (str, dict, list, NoneType))
        refuse(value, NAME_RULE, "put it in quotes" if is_bare else name_hint(value))

    return FieldKind(read, NAME_RULE, _NAME_SCHEMA)


def _node_name() -> FieldKind:
    rule = 'the name of a node, such as "fog-1/gw"'

    def read(value: object) -> str:
        if isinstance(value, str) and all(is_name(part) for part in value.split("/", maxsplit=1)):
            return value
        is_bare = not isinstance(value, (str, dict, list, NoneType))
        hint = 'its site, "/" and its name there' if isinstance(value, str) else ""
        refuse(value, rule, "put it in quotes" if is_bare else hint)

    pattern = f"^{_NO_DOUBLE_DOT}{_NAME_PATTERN}(/{_NAME_PATTERN})?$"
    return FieldKind(read, rule, {"type": "string", "pattern": pattern})


def _spark_address() -> FieldKind:
    def read(value: object) -> str:
        if isinstance(value, str) and is_address(value):
            return value
        refuse(value, ADDRESS_RULE, address_hint(value))

    return FieldKind(read, ADDRESS_RULE, {"type": "string", "pattern": f"^({ADDRESS_PATTERN})$"})


def choice(words: Sequence[str]) -> FieldKind:
    """One of a few words."""
    rule = f"{', '.join(words[:-1])} or {words[-1]}"

    def read(value: object) -> str:
        if isinstance(value, str) and value in words:
            return value
        refuse(value, rule, nearest(value, words) if isinstance(value, str) else "")

    return FieldKind(read, rule, {"enum": list(words)})


def whole(least: int, most: int) -> FieldKind:
    """A whole number within bounds."""
    rule = f"a whole number from {least} to {most}"

    def read(value: object) -> int:
        if type(value) is int and least <= value <= most:
            return value
        quoted = isinstance(value, str) and value.strip().isdecimal()
        refuse(value, rule, "write it without quotes" if quoted else "")

    return FieldKind(read, rule, {"type": "integer", "minimum": least, "maximum": most})


def _flag() -> FieldKind:
    rule = "true or false"

    def read(value: object) -> bool:
        if isinstance(value, bool):
            return value
        meant = {"yes": "true", "on": "true", "no": "false", "off": "false"}
        word = meant.get(value.lower(), "") if isinstance(value, str) else ""
        refuse(value, rule, f"write {word}" if word else "")

    return FieldKind(read, rule, {"type": "boolean"})


def _ratio(*, chance: bool = False) -> FieldKind:
    bounds = "above 0 and at most 1" if chance else "from 0 to 1e9"
    rule = f'a number {bounds}, such as 0.4 or "40 %"'
    most = 1.0 if chance else _LARGEST_RATIO

    def read(value: object) -> float:
        number = math.nan
        if is_number(value):
            number = float(value)  # type: ignore[arg-type]
        elif isinstance(value, str) and len(value) <= _LONGEST_RATIO:
            percent = _PERCENT.fullmatch(value.strip())
            number = float(percent[1]) / 100 if percent else math.nan
        if 0 <= number <= most and not (chance and number == 0):
            return number
        refuse(value, rule, _ratio_hint(value))

    percent_text = {"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)?\s?%$", "examples": ["40 %"]}
    least = "exclusiveMinimum" if chance else "minimum"
    number_schema = {"type": "number", least: 0, "maximum": most}
    return FieldKind(read, rule, {"anyOf": [number_schema, percent_text]})


def _ratio_hint(value: object) -> str:
    if not isinstance(value, str) or value.endswith("%"):
        return ""
    try:
        float(value[:_LONGEST_RATIO])
    except ValueError:
        return "it is a ratio, so it has no unit"
    return "write it without quotes"


def text(most: int, *, null: bool = False) -> FieldKind:
    """Any text up to a length."""
    rule = f"a text of at most {most} characters" + (", or null" if null else "")

    def read(value: object) -> str | None:
        if (value is None and null) or (isinstance(value, str) and len(value) <= most):
            return value
        refuse(value, rule, "" if value is None or isinstance(value, str) else "put it in quotes")

    return FieldKind(
        read, rule, {"type": ["string", "null"] if null else "string", "maxLength": most}
    )


def figure(*, least: float = -math.inf, null: bool = False) -> FieldKind:
    """A number as programs write it; ∞ is the text "inf"."""
    bound = "" if least == -math.inf else f" >= {least:g}"
    rule = f'a number{bound}, or "inf"' + (", or null" if null else "")

    def read(value: object) -> float | None:
        if value is None and null:
            return None
        if value == "inf" and isinstance(value, str):
            return math.inf
        if is_number(value) and value >= least:  # type: ignore[operator]
            return value  # type: ignore[return-value]
        refuse(value, rule)

    number: dict[str, Any] = {"type": "number"}
    if least != -math.inf:
        number["minimum"] = least
    choices: list[dict[str, Any]] = [number, {"const": "inf"}]
    return FieldKind(read, rule, {"anyOf": [*choices, {"type": "null"}] if null else choices})


Version = Annotated[int, _version()]
Name = Annotated[str, _name()]
NodeName = Annotated[str, _node_name()]
SparkAddress = Annotated[str, _spark_address()]
TierName = Annotated[str, choice(TIERS)]
Flag = Annotated[bool, _flag()]
Ratio = Annotated[float, _ratio()]
Chance = Annotated[float, _ratio(chance=True)]
