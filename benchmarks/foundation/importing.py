"""How long `import thalweg` takes, beside `import numpy`, and what it loads."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from benchmarks.measure import run_python
from benchmarks.runner import Row, Settings, show_figure

HEAVY = (
    "matplotlib",
    "networkx",
    "numba",
    "pandas",
    "pyarrow",
    "pydantic",
    "pyspark",
    "rich",
    "scipy",
    "typer",
    "yaml",
)

# Nothing but `sys` and `time` before the import: what is loaded already takes no time to load.
_TIME_IMPORT = """
import sys, time
start, busy = time.perf_counter(), time.process_time()
import {module}
print(time.perf_counter() - start, time.process_time() - busy)
print(*sorted(set(sys.modules) & set({heavy!r})))
"""


@dataclass(frozen=True, slots=True)
class Import:
    """One import in a fresh process: seconds, of which the CPU worked, and what it loaded."""

    seconds: float
    cpu_s: float
    process_s: float
    heavy: frozenset[str]


def measure_import(settings: Settings) -> list[Row]:
    """Medians over fresh processes; the imports take turns, so that all see the same noise."""
    settings.tell("import thalweg")
    turns = 7 if settings.quick else 25
    _import("thalweg")  # Leaves byte code and fills the disk cache.
    pairs = [(_import("thalweg"), _import("numpy")) for _ in range(turns)]
    compiling = [_import("thalweg", byte_code=False) for _ in range(3)]
    thalweg, numpy = [list(imports) for imports in zip(*pairs, strict=True)]
    loaded = frozenset[str]().union(*(one.heavy for one in thalweg))
    return [
        Row(
            measure="import thalweg",
            value=median(one.seconds for one in thalweg),
            unit="s",
            target=0.35,
            note=_spread(thalweg),
        ),
        Row(
            measure="import numpy, beside it",
            value=median(one.seconds for one in numpy),
            unit="s",
            note=_spread(numpy),
        ),
        Row(
            measure="import thalweg beyond import numpy",
            value=median(a.seconds - b.seconds for a, b in pairs),
            unit="s",
        ),
        Row(
            measure="import thalweg, process start to end",
            value=median(one.process_s for one in thalweg),
            unit="s",
        ),
        Row(
            measure="import thalweg, without byte code",
            value=median(one.seconds for one in compiling),
            unit="s",
            note=_spread(compiling),
        ),
        Row(
            measure="heavy packages that import thalweg loads",
            value=len(loaded),
            unit="packages",
            target=0,
            note=", ".join(sorted(loaded)) or f"none of {', '.join(HEAVY)}",
        ),
    ]


def _import(module: str, *, byte_code: bool = True) -> Import:
    run = run_python(_TIME_IMPORT.format(module=module, heavy=HEAVY), byte_code=byte_code)
    times, heavy = run.stdout.splitlines()
    seconds, cpu_s = (float(text) for text in times.split())
    return Import(seconds, cpu_s, run.seconds, frozenset(heavy.split()))


def _spread(imports: list[Import]) -> str:
    fastest = show_figure(min(one.seconds for one in imports), "s")
    cpu = show_figure(median(one.cpu_s for one in imports), "s")
    return f"median of {len(imports)} fresh processes; fastest {fastest}, CPU time {cpu}"
