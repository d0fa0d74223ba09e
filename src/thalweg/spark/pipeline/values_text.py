"""Values that code holds as text: the same text in every process, wherever its files are."""

from __future__ import annotations

import datetime
import ipaddress
import operator
import re
from argparse import Namespace
from array import array
from collections import ChainMap, OrderedDict, UserDict, UserList, UserString, defaultdict, deque
from collections.abc import Callable, Collection, Mapping
from configparser import ConfigParser, RawConfigParser, SectionProxy
from dataclasses import fields, is_dataclass
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from hashlib import sha256
from pathlib import PurePath
from statistics import NormalDist
from string import Template
from struct import Struct
from types import GenericAlias, MappingProxyType, SimpleNamespace
from typing import Any
from uuid import UUID

_BY_REPR = (
    bool | int | float | complex | bytes | bytearray | range | slice | Decimal | Fraction | UUID
) | (datetime.date | datetime.time | datetime.timedelta | datetime.tzinfo | GenericAlias)
# Values of the standard library that are what they are made of. Not a rule for all of it: others
# hold what differs in each process, such as the environment, a random seed or the program's name.
_BY_PARTS: frozenset[type] = frozenset(
    [
        SimpleNamespace,
        Namespace,
        ChainMap,
        UserDict,
        UserList,
        UserString,
        Template,
        ConfigParser,
        RawConfigParser,
        SectionProxy,
        array,
        operator.attrgetter,
        operator.itemgetter,
        operator.methodcaller,
        NormalDist,
        ipaddress.IPv4Address,
        ipaddress.IPv6Address,
        ipaddress.IPv4Network,
        ipaddress.IPv6Network,
    ]
)
_WORD = 2**64
_PICKLE_PROTOCOL = 4
Describe = Callable[[object], str]


def describe_scalar(value: object, roots: Collection[str]) -> str | None:
    """A text or a number as text, or None for anything else: large tables hold many of them."""
    kind = type(value)
    if isinstance(value, str) and kind is str:
        return f"str {_without_roots(value, roots)!r}"
    is_number = kind is float or kind is bool
    if is_number or (isinstance(value, int) and kind is int and -_WORD < value < _WORD):
        return f"{kind.__name__} {value!r}"
    return None


def describe_plain(value: object, describe: Describe, roots: Collection[str]) -> str | None:
    """A value as text, or None for one that is known by its type at most.

    `describe` gives the text of what a container holds. Texts and paths below one of the `roots`
    (the folders where code is, longest first) are those of any other place. The order of a mapping
    does not count, for it may be that of a set; that of an `OrderedDict` does.
    """
    name = describe_type(type(value))
    if value is None or value is Ellipsis or value is NotImplemented:
        return repr(value)
    if isinstance(value, Enum):
        return f"{name}.{value.name} {describe(value.value)}"
    if isinstance(value, _BY_REPR):
        return f"{name} {value!r}"
    if isinstance(value, (str, PurePath)):
        return f"{name} {_without_roots(str(value), roots)!r}"
    if isinstance(value, re.Pattern):
        return f"{name} {value.flags} {describe(value.pattern)}"
    if isinstance(value, (tuple, list, deque)):
        return f"{name}[{', '.join(map(describe, value))}]"
    if isinstance(value, (set, frozenset)):
        return f"{name}{{{', '.join(sorted(map(describe, value)))}}}"
    if isinstance(value, OrderedDict):
        return f"{name}[{', '.join(f'{describe(k)}: {describe(v)}' for k, v in value.items())}]"
    if isinstance(value, (dict, MappingProxyType)):
        made = describe(value.default_factory) if isinstance(value, defaultdict) else ""
        return f"{name}{_describe_pairs(value, describe)}{made}"
    if is_dataclass(value) and not isinstance(value, type):
        held = {f.name: getattr(value, f.name, None) for f in fields(value)}
        return f"{name}{_describe_pairs(held, describe)}"
    if isinstance(value, Struct):
        return f"{name} {describe(value.format)}"
    if type(value) in _BY_PARTS:
        # The type itself, not a class of the user's: none of their code runs here.
        return f"{name} {describe(value.__reduce_ex__(_PICKLE_PROTOCOL)[1:])}"
    return _describe_data(value, name, describe)


def describe_type(kind: type) -> str:
    """The name of a type with its module."""
    return f"{kind.__module__}.{kind.__qualname__}"


def _describe_pairs(values: Mapping[Any, Any], describe: Describe) -> str:
    keys = sorted(((describe(key), key) for key in values), key=lambda pair: pair[0])
    return f"{{{', '.join(f'{text}: {describe(values[key])}' for text, key in keys)}}}"


def _describe_data(value: Any, name: str, describe: Describe) -> str | None:
    """Arrays, tables and Spark's own types by what they hold, without importing any of them."""
    package = name.partition(".")[0]
    if package == "numpy" and hasattr(value, "dtype") and hasattr(value, "tobytes"):
        if value.dtype.hasobject:
            return f"{name} {describe(value.tolist())}"
        return f"{name} {value.dtype} {value.shape} {sha256(value.tobytes()).hexdigest()}"
    if package == "pandas" and hasattr(value, "to_dict"):
        columns = value.to_dict("list") if value.ndim > 1 else value.tolist()
        return f"{name} {describe(value.index.tolist())} {describe(columns)}"
    if package == "pandas" and hasattr(value, "tolist"):
        return f"{name} {describe(value.tolist())}"
    if package == "pyarrow" and hasattr(value, "to_pylist"):
        kind = getattr(value, "schema", None) or getattr(value, "type", "")
        return f"{name} {kind} {describe(value.to_pylist())}"
    if package == "pyarrow":
        return f"{name} {value}"
    if package == "pyspark" and hasattr(value, "jsonValue"):
        return f"{name} {describe(value.jsonValue())}"
    return None


def _without_roots(text: str, roots: Collection[str]) -> str:
    for root in roots:
        text = text.replace(root, "…")
    return text
