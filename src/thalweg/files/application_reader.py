"""Reads an application from plain data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from difflib import get_close_matches
from itertools import islice
from typing import Any, Literal, cast

from thalweg.errors import Defects, InvalidInput
from thalweg.files.application_document import (
    KINDS,
    ApplicationDocument,
    LimitsEntry,
    OperatorEntry,
    PinEntry,
    StreamEntry,
    WindowEntry,
)
from thalweg.files.kinds import require_kind
from thalweg.files.quantities import write_quantity
from thalweg.files.validation import (
    Hints,
    as_written,
    list_of,
    read_items,
    renumber,
    require_known,
    text_of,
    validate,
)
from thalweg.model import (
    Application,
    CountWindow,
    Limits,
    Operator,
    Pin,
    Stream,
    TimeWindow,
    Window,
)
from thalweg.model.names import is_name
from thalweg.units import BANDWIDTH, EVENT_RATE, SIZE

# What stands in for the figures of a source that are told as missing.
_BIRTH = {"rate": 1.0, "event_size": 1.0}


def read_application(data: object) -> Application:
    """The application that plain data describes; raises `InvalidInput` with all its defects.

    Where single entries are defective, the graph is still checked as far as it is known.
    """
    require_kind(data, "application")
    verdict = validate(ApplicationDocument, data)
    defects = Defects()
    if verdict.defects:
        defects.absorb(InvalidInput(verdict.defects))
    operators = read_items(defects, verdict, data, "operators", OperatorEntry, _operator)
    for position, item in enumerate(list_of(data, "operators") or []):
        if isinstance(item, Mapping) and not verdict.is_sound("operators", position):
            _require_birth(defects, item, f"operators[{position}].")
    streams = read_items(defects, verdict, data, "streams", StreamEntry, _stream)
    if isinstance(data, Mapping) and "limits" in data and verdict.is_sound("limits"):
        _check_limits(defects, LimitsEntry.model_validate(data["limits"]))
    application = _check_graph(defects, data, operators, streams, verdict.document)
    try:
        defects.raise_if_any()
    except InvalidInput as error:
        raise as_written(error, data) from None
    return cast(Application, application)


def _operator(entry: OperatorEntry) -> Operator:
    defects = Defects()
    window, pin = entry.window, entry.pin
    made_window = None if window is None else defects.attempt("window", lambda: _window(window))
    made_pin = None if pin is None else defects.attempt("pin", lambda: _pin(pin))
    figures = {
        name: getattr(entry, name)
        for name in OperatorEntry.model_fields
        if name not in ("window", "pin")
    }
    if entry.kind == "source":
        _require_birth(defects, entry.model_dump())
        figures = {name: _BIRTH.get(name) if v is None else v for name, v in figures.items()}
    # A pin that is there but wrong, or told as missing, must not be reported once more.
    is_told = made_pin is None and (pin is not None or entry.kind == "source")
    stand_in = Pin(tier="edge") if is_told else made_pin
    operator = defects.attempt("", lambda: Operator(**figures, window=made_window, pin=stand_in))
    defects.raise_if_any()
    return cast(Operator, operator)


def _require_birth(defects: Defects, entry: Mapping[str, object], path: str = "") -> None:
    """Remember what a source does not say about its events, in the words of a file."""
    if entry.get("kind") != "source":
        return
    for name, rule, hint in (
        ("rate", EVENT_RATE.rule, "a source says how many events it puts out"),
        ("event_size", SIZE.rule, "a source says how large its events are"),
        ("pin", "a pin, such as {tier: edge}", "a source says where its events are born"),
    ):
        if entry.get(name) is None:
            # A field that is there but empty, or misspelt, has been told already.
            if path and (name in entry or _is_misspelt(name, entry)):
                continue
            defects.add(f"{path}{name}", None, rule, hint)


def _is_misspelt(name: str, entry: Mapping[str, object]) -> bool:
    unknown = [key for key in islice(entry, 30) if key not in OperatorEntry.model_fields]
    return bool(get_close_matches(name, unknown, n=1))


def _window(entry: WindowEntry) -> Window:
    defects = Defects()
    by_events, by_time = entry.events is not None, entry.length is not None
    given = ", ".join(name for name in WindowEntry.model_fields if name in entry.model_fields_set)
    one_sort = by_events != by_time and (by_time or entry.slide is None)
    rule = "either events, or length with or without slide"
    defects.require(one_sort, "", given or "none of them", rule)
    defects.raise_if_any()
    if entry.events is not None:
        return CountWindow(entry.events)
    return TimeWindow(cast(float, entry.length), entry.slide)


def _pin(entry: PinEntry) -> Pin:
    tier = cast(Literal["edge", "fog", "cloud"] | None, entry.tier)
    return Pin(node=entry.node, site=entry.site, tier=tier)


def _stream(entry: StreamEntry) -> Stream:
    return Stream(source=entry.source, target=entry.target, probability=entry.probability)


def _check_limits(defects: Defects, limits: LimitsEntry) -> None:
    if limits.uplink is not None and limits.uplink_least > limits.uplink:
        rule = f"at most the uplink, {write_quantity(limits.uplink, BANDWIDTH)}"
        defects.add("limits.uplink_least", limits.uplink_least, rule)


def _limits(entry: LimitsEntry | None) -> Limits:
    if entry is None:
        return Limits()
    uplink = _or_infinite(entry.uplink)
    return Limits(
        response_time_s=_or_infinite(entry.response_time),
        uplink_bps=uplink,
        # Where it is more, that is told already.
        uplink_least_bps=min(entry.uplink_least, uplink),
        usage=_or_infinite(entry.usage),
    )


def _or_infinite(value: float | None) -> float:
    return math.inf if value is None else value


def _check_graph(
    defects: Defects,
    data: object,
    operators: list[Operator | None],
    streams: list[Stream | None],
    document: ApplicationDocument | None,
) -> Application | None:
    """The application; or None, and what is wrong with its graph as far as it is known.

    A defective operator still has its name and kind, a defective stream its two ends: stand-ins
    with these find cycles and dangling names in the same run. What is found must be true however
    the other defects are mended, so a graph with unknown parts is not asked who reaches whom.
    """
    items, arrows = list_of(data, "operators"), list_of(data, "streams")
    names = [text_of(item, "name") for item in items or []]
    if items is None or not all(is_name(name) for name in names):
        return None
    known = {str(name): position for position, name in enumerate(names)}
    ends = _require_ends(defects, arrows or [], known)
    kinds_known = None not in map(_kind, items)
    complete = kinds_known and arrows is not None and len(ends) == len(arrows)
    try:
        return Application(
            name=document.application if document else "unnamed",
            operators=[
                made or _stand_in(str(name), _kind(item) or "transform")
                for made, name, item in zip(operators, names, items, strict=True)
            ],
            streams=[
                streams[position] or Stream(source=source, target=target)
                for position, (source, target) in ends.items()
            ],
            limits=_limits(document.limits if document else None),
        )
    except InvalidInput as error:
        true = [
            defect
            for defect in error.defects
            if complete
            or (kinds_known and defect.path == "operators")
            or defect.path.startswith("streams")
            or defect.path.endswith(".name")
        ]
        defects.absorb(InvalidInput(renumber(defect, "streams", list(ends)) for defect in true))
        return None


def _require_ends(
    defects: Defects, arrows: list[Any], known: Mapping[str, int]
) -> dict[int, tuple[str, str]]:
    """The two ends of every stream, where both are known; dangling names are remembered."""
    hints = Hints()
    ends = {}
    for position, item in enumerate(arrows):
        source, target = text_of(item, "source"), text_of(item, "target")
        good = [
            name is not None
            and is_name(name)
            and require_known(
                defects, f"streams[{position}].{end}", name, known, "the name of an operator", hints
            )
            for end, name in (("source", source), ("target", target))
        ]
        if all(good):
            ends[position] = (str(source), str(target))
    return ends


def _kind(item: Mapping[str, object]) -> str | None:
    kind = item.get("kind", "transform")
    return kind if isinstance(kind, str) and kind in KINDS else None


def _stand_in(name: str, kind: str) -> Operator:
    if kind == "source":
        return Operator(name=name, kind="source", rate=1.0, event_size=1.0, pin=Pin(tier="edge"))
    return Operator(name=name, kind=cast(Literal["transform", "sink"], kind))
