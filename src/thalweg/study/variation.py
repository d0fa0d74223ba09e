"""Parameters that a study sweeps: factors of rates, bandwidths and latencies, and options."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from thalweg.errors import Defects, nearest
from thalweg.model import Network, Problem

Values: TypeAlias = Mapping[str, Any]
"""Name of each swept parameter → its value at a point."""

FACTORS = ("rates", "bandwidth", "latency")
OPTION = "option."
MAX_VALUES = 10_000
_MAX_FACTOR = 1e9
_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_RANGE = re.compile(rf"({_NUMBER})\.\.({_NUMBER})(?::({_NUMBER}))?")


def parse_variations(texts: Iterable[str], path: str = "--vary") -> dict[str, list[Any]]:
    """Parameters with their values from NAME=VALUES; raises `InvalidInput` with all that is wrong.

    >>> parse_variations(["rates=1..3", "option.restarts=0,12", "latency=0.5..1.5:0.5"])
    {'rates': [1, 2, 3], 'option.restarts': [0, 12], 'latency': [0.5, 1.0, 1.5]}
    """
    defects = Defects()
    found: dict[str, list[Any]] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        name = name.strip()
        if not (equals and name and values.strip()):
            hint = "such as rates=1..4, rates=1,2,4 or rates=0.5..2:0.5"
            defects.add(path, text, "NAME=VALUES", hint)
            continue
        defects.require(name not in found, path, text, f"{name} once")
        if name.startswith(OPTION):
            name = name.replace("-", "_")
        found[name] = _read_values(values.strip(), text, path, defects)
    defects.raise_if_any()
    return found


def _read_values(values: str, text: str, path: str, defects: Defects) -> list[Any]:
    read = _RANGE.fullmatch(values)
    if read is None:
        parts = [part.strip() for part in values.split(",")]
        defects.require(all(parts), path, text, "values with a comma between each two")
        return [_read_value(part) for part in parts]
    first, last, step = (None if part is None else _number(part) for part in read.groups())
    step = 1 if step is None else step
    if first is None or last is None or step <= 0 or last < first:
        defects.add(path, text, "START..STOP:STEP with START <= STOP and STEP > 0")
        return []
    count = round((last - first) / step) + 1
    if not math.isclose(first + (count - 1) * step, last, rel_tol=1e-9, abs_tol=1e-12):
        hint = f"steps of {step:g} from {first:g} do not reach {last:g}"
        defects.add(path, text, "START..STOP:STEP with a STOP that the steps reach", hint)
        return []
    if count > MAX_VALUES:
        defects.add(path, text, f"at most {MAX_VALUES} values")
        return []
    steps = [first + k * step for k in range(count)]
    # 0.1 + 2 · 0.1 is not what people mean by 0.3.
    return [value if isinstance(value, int) else float(f"{value:.12g}") for value in steps]


def _number(text: str) -> float:
    value = float(text)
    return int(text) if re.fullmatch(r"[+-]?\d{1,15}", text) else value


def _read_value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def require_variations(defects: Defects, vary: object) -> dict[str, tuple[Any, ...]]:
    """The swept parameters, each with its values; remembers what is wrong with them."""
    if not isinstance(vary, Mapping):
        defects.add("vary", vary, "a mapping from a name to values")
        return {}
    found: dict[str, tuple[Any, ...]] = {}
    for name, values in vary.items():
        path = f"vary.{name}"
        known = isinstance(name, str) and (name in FACTORS or name.startswith(OPTION))
        hint = nearest(str(name), (*FACTORS, f"{OPTION}NAME"))
        defects.require(known, "vary", name, "rates, bandwidth, latency or option.NAME", hint)
        values = _plain_list(values)
        if not values or len(set(map(repr, values))) < len(values):
            defects.add(path, vary[name], "a list of at least one value, each once")
            continue
        for value in values if name in FACTORS else ():
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            good = number and 0 < value <= _MAX_FACTOR
            defects.require(good, path, value, f"a number > 0, at most {_MAX_FACTOR:g}")
        found[str(name)] = tuple(values)
    return found


def _plain_list(values: object) -> list[Any]:
    """The values as Python has them, also those of an array; none where it is no list."""
    if isinstance(values, np.ndarray):
        return list(values.ravel().tolist())
    if not isinstance(values, Sequence) or isinstance(values, str):
        return []
    return [value.item() if isinstance(value, np.generic) else value for value in values]


def points(vary: Mapping[str, Sequence[Any]]) -> Iterator[Values]:
    """Every combination of the values; the last parameter changes first."""
    for values in itertools.product(*vary.values()):
        yield dict(zip(vary, values, strict=True))


def options_at(values: Values) -> dict[str, Any]:
    """The options of strategies that are swept."""
    return {
        name.removeprefix(OPTION): value
        for name, value in values.items()
        if name.startswith(OPTION)
    }


def vary_network(network: Network, values: Values) -> Network:
    """The network with all its links, within and between sites, slower or wider."""
    latency, bandwidth = values.get("latency", 1), values.get("bandwidth", 1)
    if latency == 1 and bandwidth == 1:
        return network
    return replace(
        network,
        node_lan_latency_s=network.node_lan_latency_s * latency,
        node_lan_bandwidth_bps=network.node_lan_bandwidth_bps * bandwidth,
        node_lan_available_bps=network.node_lan_available_bps * bandwidth,
        wan=network.wan.scaled(latency=latency, bandwidth=bandwidth),
    )


def vary_problem(problem: Problem, network: Network, values: Values) -> Problem:
    """The problem on this network, its rates as many times as large as the values say."""
    factor = values.get("rates", 1)
    if factor == 1 and network is problem.network:
        return problem
    rates = problem.rates
    if factor != 1:
        rates = {pair: rate * factor for pair, rate in problem.birth_rates.items()}
    return Problem(application=problem.application, network=network, rates=rates)
