"""`python -m benchmarks NAME`: answer one question, on this machine, now."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from benchmarks.runner import (
    RESULTS,
    ROOT,
    Register,
    Settings,
    UnknownBenchmark,
    WrongCount,
    find_benchmarks,
    run_benchmark,
    save_document,
    to_json,
    to_table,
)


def main(
    arguments: Sequence[str], *, register: Register | None = None, results: Path = RESULTS
) -> int:
    """Run what the arguments ask for, and return the exit code.

    0 where there is an answer, also one that misses a target; 1 where a count does not hold; 2
    where the command was called wrongly.
    """
    parser = _parser()
    asked = parser.parse_args(arguments)
    known = find_benchmarks() if register is None else register
    if asked.list:
        print(*known.names, sep="\n")
        return 0
    if asked.name is None:
        parser.error("which benchmark? --list prints their names")
    try:
        benchmark = known.find(asked.name)
    except UnknownBenchmark as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 2
    if asked.plot and find_spec("matplotlib") is None:
        hint = "install it with: pip install 'thalweg[plot]'"
        print(f"benchmarks: --plot needs matplotlib; {hint}", file=sys.stderr)
        return 2
    data = _data_folder(asked.data)
    if data is None:
        print("benchmarks: there is no such folder for the data sets", file=sys.stderr)
        return 2
    command = shlex.join(["python", "-m", "benchmarks", *arguments])
    settings = Settings(quick=asked.quick, smoke=asked.smoke, data=data)
    try:
        result, document = run_benchmark(benchmark, settings, command=command)
    except WrongCount as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 1
    path = save_document(document, results)
    print(to_json(document) if asked.format == "json" else to_table(document), end="")
    print(f"saved {_short(path)}", file=sys.stderr)
    if asked.plot and benchmark.plot is None:
        print(f"{benchmark.name} has nothing to draw", file=sys.stderr)
    elif asked.plot and benchmark.plot is not None:
        drawing = path.with_suffix(".png")
        benchmark.plot(result, drawing)
        print(f"saved {_short(drawing)}", file=sys.stderr)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Answers one question about Thalweg by measuring it on this machine. "
        "The answer also goes to results/benchmarks/NAME.json.",
    )
    parser.add_argument("name", nargs="?", metavar="NAME", help="the benchmark to run")
    parser.add_argument("--list", action="store_true", help="print the names, one per line")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--quick", action="store_true", help="measure less; ends within a minute")
    form.add_argument(
        "--smoke", action="store_true", help="run every part once, to see that it runs; no figures"
    )
    parser.add_argument(
        "--format", choices=("json", "table"), default="table", help="default: table"
    )
    parser.add_argument("--plot", action="store_true", help="also draw results/benchmarks/NAME.png")
    parser.add_argument(
        "--data",
        type=Path,
        metavar="FOLDER",
        help="the measured data sets; default: $THALWEG_DATA, else ../shared/data",
    )
    return parser


def _data_folder(asked: Path | None) -> Path | None:
    """Where the data sets are; None where somebody names a folder that is not there.

    The default need not be there: a benchmark then measures on generated data, and says so.
    """
    named = asked or os.environ.get("THALWEG_DATA")
    if not named:
        return ROOT.parent / "shared" / "data"
    return Path(named) if Path(named).is_dir() else None


def _short(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
