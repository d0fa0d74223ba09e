"""Documents that are right, and ways to spoil them; shared by the fuzz tests."""

from __future__ import annotations

import contextlib
import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

import yaml
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from thalweg.files.application_writer import application_data
from thalweg.files.network_writer import network_data
from thalweg.planning import plan
from thalweg.scenarios import small_city, small_taxi

TAXI, CITY = small_taxi(), small_city()
APPLICATION: dict[str, Any] = application_data(TAXI)
PLAN: dict[str, Any] = plan(TAXI, CITY).to_dict()


def _sites(**more: Any) -> list[dict[str, Any]]:
    nodes = [{"count": 3, "cpu": "1 GIPS", "memory": "1 GiB", "memory_available": "900 MB"}]
    area = {"west": "-1 km", "south": "0 m", "east": "1 km", "north": "5 km"}
    return [
        {"name": "rank", "tier": "edge", "parent": "hub", "nodes": nodes, "area": area, **more},
        {"name": "hub", "tier": "fog", "edge_delay": "2 ms", "nodes": nodes, **more},
    ]


NETWORKS: list[dict[str, Any]] = [
    network_data(CITY),
    {
        "thalweg": 1,
        "network": "mesh",
        "sites": _sites(),
        "mesh": {
            "latency": [["0 s", "5 ms"], ["6 ms", "0 s"]],
            "bandwidth": [["unlimited", "1 Gbps"], ["1 Gbps", "unlimited"]],
            "bandwidth_available": "10 Mbps",
        },
    },
    {
        "thalweg": 1,
        "network": "coordinates",
        "sites": _sites(position=["1 ms", "-2 ms"], height="1 ms"),
        "coordinates": {
            "bandwidth": "1 Gbps",
            "taken": [{"a": "rank", "b": "hub", "bandwidth": "1 Mbps"}],
        },
    },
    {
        "thalweg": 1,
        "network": "links",
        "sites": _sites(),
        "root": "hub",
        "links": [
            {
                "a": "rank",
                "b": "hub",
                "latency": "5 ms",
                "bandwidth": "2 Mbps",
                "bandwidth_available": ["1 Mbps", "2 Mbps"],
            }
        ],
    },
]

Place = tuple[Any, ...]


def fuzzed(cases: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """So many cases, the same ones in every run."""
    return settings(
        max_examples=cases,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


def places_in(data: Any, here: Place = ()) -> Iterator[Place]:
    """The path of every value below the top."""
    items = data.items() if isinstance(data, dict) else enumerate(data)
    for key, value in items:
        yield (*here, key)
        if isinstance(value, (dict, list)):
            yield from places_in(value, (*here, key))


def value_at(data: Any, path: Place) -> Any:
    """The value at a path."""
    for step in path:
        data = data[step]
    return data


_WORDS = [
    *("thalweg", "application", "network", "operators", "streams", "limits", "sites", "nodes"),
    *("links", "mesh", "coordinates", "root", "name", "kind", "rate", "pin", "tier", "window"),
    *("events", "length", "slide", "count", "cpu", "memory", "parent", "area", "position", "taken"),
    *("placement", "estimate", "violations", "reasons", "feasible", "why", "origin", "shape"),
    *("edge", "fog", "cloud", "source", "transform", "sink", "rides", "hub", "hub-centre", "inf"),
]
_TEXTS = [
    *("", " ", "\t", "5", "5 ms", "-5 ms", "5  ms", "5ms", "1e999 s", "1e-400 s", "0 s", "nan s"),
    *("100 MB", "100 Mbps", "100 events/s", "unlimited", "40 %", "-40 %", "1e400 %", "..", "../x"),
    *("a/b", "a/b/c", "/", "C:\\x", "<b>", "\x1b[2J", "\u202e", "\x9b", "a\nb", "é", "٣ s", "²"),
    *("null", "true", "1", "&a", "*a", "!!str", "<<", "x" * 65, "x" * 300, "𝔸", "\u2028", "\ufeff"),
]
SCALARS = st.one_of(
    st.sampled_from([None, True, False, 0, -1, 1, 2, 10**12, 10**39, -(10**39), 2**31, 2**63]),
    st.sampled_from([0.0, -0.0, 0.5, -1.5, 1e-320, 1e300, 1.7e308]),
    st.sampled_from(_WORDS),
    st.sampled_from(_TEXTS),
    st.from_regex(r"[+-]?[0-9_.eE+-]{1,8} ?(s|ms|B|MB|Mbps|/s|MIPS|instr|m|%)?", fullmatch=True),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(codec="utf-8"), max_size=12),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.one_of(st.sampled_from(_WORDS), st.text(max_size=5)), inner, max_size=3),
    ),
    max_leaves=5,
)


def _replace(draw: st.DrawFn, holder: Any, key: Any) -> None:
    holder[key] = draw(VALUES)


def _delete(_: st.DrawFn, holder: Any, key: Any) -> None:
    del holder[key]


def _repeat(draw: st.DrawFn, holder: Any, key: Any) -> None:
    if isinstance(holder, list):
        holder.insert(draw(st.integers(0, len(holder))), copy.deepcopy(holder[key]))
    else:
        holder[draw(st.sampled_from(_WORDS))] = copy.deepcopy(holder[key])


def _insert(draw: st.DrawFn, holder: Any, key: Any) -> None:
    if isinstance(holder, list):
        holder.insert(key, draw(VALUES))
    else:
        holder[draw(st.one_of(st.sampled_from(_WORDS), st.text(max_size=8)))] = draw(VALUES)


def _rename(_: st.DrawFn, holder: Any, key: Any) -> None:
    if isinstance(holder, dict):
        holder[f"{str(key)[1:]}{str(key)[:1]}"] = holder.pop(key)


def _wrap(_: st.DrawFn, holder: Any, key: Any) -> None:
    holder[key] = [holder[key]]


CHANGES = [_replace, _replace, _replace, _delete, _repeat, _insert, _rename, _wrap]


@st.composite
def spoilt(draw: st.DrawFn, documents: list[dict[str, Any]]) -> dict[str, Any]:
    """A document that was right, with one to six changes at random places."""
    data = copy.deepcopy(draw(st.sampled_from(documents)))
    for _ in range(draw(st.integers(1, 6))):
        places = list(places_in(data))
        if not places:
            break
        path = places[draw(st.integers(0, len(places) - 1))]
        change = draw(st.sampled_from(CHANGES))
        change(draw, value_at(data, path[:-1]), path[-1])
    # Some changes have put parts of the document into others; a file is a tree.
    return copy.deepcopy(data)


PIECES = [
    *("&a ", "*a", "!!python/object:os.system ", "!x ", "<<: ", "---\n", "...\n", "\t", ": ", "- "),
    *("? ", "{", "}", "[", "]", '"', "'", "#", "|\n", ">\n", "%TAG ! x\n", "\\", ",", "\0", "\x1b"),
    *("\ufeff", "\u2028", "\x85", "\r", "\n", "\n  ", "NaN", "Infinity", "1e999", "0x10", "007"),
    *(".inf", "~", "nan", "yes", "9" * 50, "[" * 40, "\ud800", "\uffff", "//", "/*", "None"),
]


@st.composite
def spoilt_text(draw: st.DrawFn, documents: list[dict[str, Any]]) -> tuple[str, str]:
    """The name of a file and its text: a document, spoilt or not, with its text spoilt, too."""
    data = draw(st.one_of(st.sampled_from(documents), spoilt(documents)))
    name = draw(st.sampled_from(["f.json", "f.yaml"]))
    text = json.dumps(data, indent=1) if name == "f.json" else yaml.safe_dump(data)
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.sampled_from([0, 0, 1, 2, 5, 40])))
        text = text[:start] + draw(st.sampled_from(["", *PIECES])) + text[end:]
    return name, text


@st.composite
def spoilt_bytes(draw: st.DrawFn, contents: bytes) -> bytes:
    """A file with one to five small damages."""
    spoiling = bytearray(contents)
    for _ in range(draw(st.integers(1, 5))):
        start = draw(st.integers(0, len(spoiling)))
        end = start + draw(st.sampled_from([0, 1, 1, 1, 4, 20]))
        spoiling[start:end] = draw(st.one_of(st.binary(max_size=4), st.just(b"\xff\xff\xff\x7f")))
    return bytes(spoiling)


# Right by every rule, and as far out as the rules allow.
_EXTREMES: dict[str, list[Any]] = {
    "rate": ["0 /s", "1e-9 /s", "1e15 /s"],
    "event_size": ["1e-9 B", "1e15 B"],
    "selectivity": [0, 1e-9, 1e9],
    "compression": [0, 1e-9, 1e9],
    "cpu_per_event": ["0 instr", "1e18 instr"],
    "cpu_per_byte": ["1e12 instr/B"],
    "memory": ["0 B", "1e18 B"],
    "memory_factor": [0, 1e9],
    "state": ["1e18 B"],
    "window": [{"events": 10**12}, {"length": "1 ns"}, {"length": "3e9 s", "slide": "1 ns"}],
    "replicable": [True, False],
    "pin": [{"tier": "edge"}, {"tier": "cloud"}, {"node": "hub-west/server"}, {"site": "cloud"}],
    "probability": [1e-9],
    "response_time": ["0 s"],
    "uplink": ["0 bps"],
    "cpu": ["0 IPS", "1e-300 IPS", "1e-9 IPS", "1e18 IPS", "unlimited"],
    "lan_latency": ["3e9 s"],
    "lan_bandwidth": ["0 bps", "1e-9 bps", "unlimited"],
    "latency": ["0 s", "1e-9 s", "3e9 s"],
    "bandwidth": ["0 bps", "1e-9 bps", "unlimited"],
    "edge_delay": ["0 s", "3e9 s"],
}


@st.composite
def extreme(draw: st.DrawFn, document: dict[str, Any]) -> dict[str, Any]:
    """A document with some of its figures as far out as the rules allow."""
    data = copy.deepcopy(document)
    places = [path for path in places_in(data) if path[-1] in _EXTREMES]
    for path in draw(st.lists(st.sampled_from(places), max_size=8)):
        with contextlib.suppress(KeyError):  # It was in a part that is replaced already.
            value_at(data, path[:-1])[path[-1]] = draw(st.sampled_from(_EXTREMES[path[-1]]))
    return data
