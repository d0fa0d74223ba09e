"""How long does `make check` take after a change of one line?

    python tools/measure_check.py [--modules 20] [--seed 0] [--output FILE]

Draws modules of the package, adds a line to one after the other, runs `make check`, and takes the
line out again. Prints JSON: the seconds of each, their median and the worst, and how many test
files were left out. One run that does not count comes first, so that all are warm.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import TypedDict

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
LINE = "\n_CHANGED_TO_BE_CHECKED = True\n"
_RAN = re.compile(r"^(\d+) test files for", re.MULTILINE)


class Check(TypedDict):
    """What came of a `make check`."""

    module: str
    seconds: float
    passed: bool
    test_files: int
    left_out: int


def draw_modules(count: int, seed: int) -> list[str]:
    """So many modules of the package, each at most once, by their paths."""
    modules = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "src").rglob("*.py"))
    drawn = np.random.default_rng(seed).permutation(len(modules))[:count]
    return [modules[index] for index in drawn]


@contextmanager
def one_line_more(file: Path) -> Iterator[None]:
    """A harmless line at the end of a file, for as long as the block takes."""
    before, times = file.read_bytes(), file.stat()
    try:
        file.write_bytes(before + LINE.encode())
        ruff = Path(sys.executable).with_name("ruff")
        subprocess.run(  # nosec B603  # ruff, on a module of ours
            [str(ruff), "format", "--quiet", str(file)], cwd=ROOT, check=True
        )
        yield
    finally:
        file.write_bytes(before)
        # Numba goes by the time whether what it has kept is of this file.
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))


def check(module: str) -> Check:
    """Change a module, and time `make check`."""
    with one_line_more(ROOT / module):
        began_s = time.monotonic()
        done = subprocess.run(  # nosec B603 B607  # make, on our own Makefile
            ["make", "check"], cwd=ROOT, capture_output=True, text=True, check=False
        )
        seconds = time.monotonic() - began_s
    ran = _RAN.search(done.stdout)
    if done.returncode:
        print(f"{module}: make check failed\n{done.stdout}{done.stderr}", file=sys.stderr)
    return Check(
        module=module,
        seconds=round(seconds, 2),
        passed=done.returncode == 0,
        test_files=int(ran[1]) if ran else 0,
        left_out=done.stdout.count("left out: "),
    )


def main() -> int:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--modules", type=int, default=20, help="how many are drawn")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, help="write the JSON there, too")
    given = parser.parse_args()
    modules = draw_modules(given.modules, given.seed)
    check(modules[0])
    checks = []
    for module in modules:
        checks.append(check(module))
        print(f"{checks[-1]['seconds']:7.1f} s  {module}", file=sys.stderr)
    seconds = [each["seconds"] for each in checks]
    answer = {
        "seed": given.seed,
        "median_s": round(median(seconds), 2),
        "worst_s": max(seconds),
        "failed": sum(not each["passed"] for each in checks),
        "checks": checks,
    }
    text = json.dumps(answer, indent=2)
    print(text)
    if given.output is not None:
        given.output.write_text(text + "\n", encoding="utf-8")
    return 1 if answer["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
