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
{statement}
print(time.perf_counter() - start, time.process_time() - busy)
print(*sorted(set(sys.modules) & set({heavy!r})))
"""
IMPORT = "import thalweg"
IMPORT_AND_USE = "import thalweg; [getattr(thalweg, name) for name in thalweg.__all__]"
IMPORT_NUMPY = "import numpy"


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
    turns = settings.pick(full=25, quick=7, smoke=1)
    for statement in (IMPORT, IMPORT_AND_USE):  # Leaves byte code and fills the disk cache.
        _import(statement)
    thalweg, used, numpy = [], [], []
    for _ in range(turns):
        thalweg.append(_import(IMPORT))
        used.append(_import(IMPORT_AND_USE))
        numpy.append(_import(IMPORT_NUMPY))
    compiling = [_import(IMPORT, byte_code=False) for _ in range(min(turns, 3))]
    loaded = frozenset[str]().union(*(one.heavy for one in thalweg))
    return [
        _row("import thalweg", thalweg, target=0.35),
        _row("import thalweg, without byte code", compiling),
        _row("import thalweg, and every public name used", used),
        _row("import numpy, beside it", numpy),
        Row(
            measure="import thalweg, process start to end",
            value=median(one.process_s for one in thalweg),
            unit="s",
        ),
        Row(
            measure="heavy packages that import thalweg loads",
            value=len(loaded),
            unit="packages",
            target=0,
            note=", ".join(sorted(loaded)) or f"none of {', '.join(HEAVY)}",
        ),
    ]


def _import(statement: str, *, byte_code: bool = True) -> Import:
    code = _TIME_IMPORT.format(statement=statement, heavy=HEAVY)
    run = run_python(code, byte_code=byte_code)
    times, heavy = run.stdout.splitlines()
    seconds, cpu_s = (float(text) for text in times.split())
    return Import(seconds, cpu_s, run.seconds, frozenset(heavy.split()))


def _row(measure: str, imports: list[Import], target: float | None = None) -> Row:
    fastest = show_figure(min(one.seconds for one in imports), "s")
    cpu = show_figure(median(one.cpu_s for one in imports), "s")
    return Row(
        measure=measure,
        value=median(one.seconds for one in imports),
        unit="s",
        target=target,
        note=f"median of {len(imports)} fresh processes; fastest {fastest}, CPU time {cpu}",
    )
