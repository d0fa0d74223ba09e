"""Which tests without a JVM can a change touch?

    python tools/choose_tests.py [--base REV] [--seconds S] [--list]

Runs them, the nearest ones first: those whose imports lead to a changed module in the fewest steps.
A test file is left out where it starts a JVM, where no import of it leads to the change, or where
the time is up by what files took the last time; what was left out is printed. The time that every
file takes is kept in `.cache/test-seconds.json`, by every run of pytest in this checkout.
"""

from __future__ import annotations

import argparse
import ast
import json
import subprocess
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SECONDS_FILE = ROOT / ".cache" / "test-seconds.json"
FOLDERS = ("src", "tests", "benchmarks", "campaign", "tools", "examples")
WORKERS = 2
_UNKNOWN_S = 1.0
_NO_TEST_COLLECTED = 5
# Where a file that is no module belongs to tests that read it.
READ_BY = {
    "docs/": ("tests/docs/",),
    "README.md": ("tests/docs/",),
    "examples/": ("tests/examples/", "tests/docs/"),
    "tests/bad_inputs/": ("tests/test_bad_inputs.py",),
    "tests/golden/": ("tests/",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Test files to run, nearest first, and those that are not, with the reason."""

    files: tuple[str, ...]
    left_out: Mapping[str, str]


class Modules:
    """The Python files of the checkout, and which of them import which."""

    def __init__(self, root: Path = ROOT) -> None:
        self._root = root
        self.files = {
            str(path.relative_to(root)): path
            for folder in FOLDERS
            for path in sorted((root / folder).rglob("*.py"))
        }
        self._by_name = {name: file for file in self.files for name in _names_of(file)}

    @cached_property
    def importers(self) -> dict[str, set[str]]:
        """File → the files that import it."""
        found: dict[str, set[str]] = {}
        for file in self.files:
            for name in self._imported(file):
                for other in map(self._by_name.get, (name, *_packages_of(name))):
                    if other is not None and other != file:
                        found.setdefault(other, set()).add(file)
        return found

    def distances(self, changed: Iterable[str]) -> dict[str, int]:
        """File → the fewest imports that lead from it to a changed one."""
        found = {file: 0 for file in changed if file in self.files}
        waiting = deque(sorted(found))
        while waiting:
            file = waiting.popleft()
            for other in sorted(self.importers.get(file, ())):
                if other not in found:
                    found[other] = found[file] + 1
                    waiting.append(other)
        return found

    def _imported(self, file: str) -> Iterator[str]:
        """The names of all modules that a file may import; also those that it has as texts."""
        tree = ast.parse(self.files[file].read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                yield node.module
                yield from (f"{node.module}.{alias.name}" for alias in node.names)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                module, colon, _ = node.value.partition(":")
                yield module
                if colon:
                    # A place as the command line names its verbs: within the package of the file.
                    yield ".".join((*_names_of(file)[0].split(".")[:-1], module))


def _packages_of(name: str) -> Iterator[str]:
    """The packages that a module is in, which run when it is imported; all are in the first one."""
    parts = name.split(".")
    yield from (".".join(parts[:count]) for count in range(2, len(parts)))


def _names_of(file: str) -> tuple[str, ...]:
    """The names by which a file can be imported."""
    parts = file.removesuffix(".py").removesuffix("/__init__").split("/")
    if parts[0] == "src":
        return (".".join(parts[1:]),)
    # The folder of the tests is on the path, too.
    return (".".join(parts), ".".join(parts[1:])) if len(parts) > 1 else (parts[0],)


def changed_files(base: str, root: Path = ROOT) -> list[str]:
    """What differs from a revision, and what git does not know yet."""
    told = [
        subprocess.run(  # nosec B603  # git, with words of ours
            command, cwd=root, capture_output=True, text=True, check=True
        ).stdout
        for command in (
            ["git", "diff", "--name-only", base],
            ["git", "ls-files", "--others", "--exclude-standard"],
        )
    ]
    return sorted({line for text in told for line in text.splitlines() if line})


def choose(
    changed: Iterable[str], modules: Modules, seconds: Mapping[str, float], budget_s: float
) -> Choice:
    """The test files to run after a change, within so many seconds of all workers together."""
    changed = list(changed)
    distance = modules.distances(_with_neighbours(changed, modules))
    tests = [file for file in modules.files if _is_test(file)]
    near = {file: distance[file] for file in tests if file in distance}
    for test in tests:
        if any(test.startswith(place) for file in changed for place in _readers(file)):
            near[test] = 1
    files, left_out, spent_s = [], {}, 0.0
    for file in sorted(near, key=lambda file: (near[file], seconds.get(file, _UNKNOWN_S), file)):
        if _starts_jvm(modules.files[file]):
            left_out[file] = "starts a JVM"
        elif files and spent_s + seconds.get(file, _UNKNOWN_S) > budget_s:
            left_out[file] = f"{near[file]} imports away, and there is no time"
        else:
            files.append(file)
            spent_s += seconds.get(file, _UNKNOWN_S)
    return Choice(files=tuple(files), left_out=left_out)


def _with_neighbours(changed: Iterable[str], modules: Modules) -> Iterator[str]:
    """The changed modules, and those beside a changed file of another kind within the package."""
    for file in changed:
        folder = file.rpartition("/")[0]
        if file in modules.files:
            yield file
        elif file.startswith("src/"):
            yield from (m for m in modules.files if m.rpartition("/")[0] == folder)


def _readers(file: str) -> Iterator[str]:
    for place, readers in READ_BY.items():
        if file.startswith(place):
            yield from readers


def _is_test(file: str) -> bool:
    return file.startswith("tests/") and file.rpartition("/")[2].startswith("test_")


def _starts_jvm(path: Path) -> bool:
    """Whether every test of a file starts a JVM, or nearly: the mark stands at the top."""
    return any(
        line.startswith("pytestmark") and "jvm" in line
        for line in path.read_text(encoding="utf-8").splitlines()
    )


def read_seconds(kept: Path = SECONDS_FILE) -> dict[str, float]:
    """How long every test file took the last time; of some, each test was timed."""
    found: dict[str, float] = {}
    try:
        for unit, seconds in json.loads(kept.read_text()).items():
            file = str(unit).partition("::")[0]
            found[file] = found.get(file, 0.0) + float(seconds)
    except (OSError, ValueError, AttributeError):
        return {}
    return found


def main() -> int:
    """Choose, say what was left out, and run the rest."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--base", default="HEAD", help="what counts as changed since this revision")
    parser.add_argument("--seconds", type=float, default=30.0, help="the most that tests may take")
    parser.add_argument("--list", action="store_true", help="run nothing")
    given = parser.parse_args()
    changed = changed_files(given.base)
    choice = choose(changed, Modules(), read_seconds(), WORKERS * given.seconds)
    for file, reason in choice.left_out.items():
        print(f"left out: {file}: {reason}")
    print(f"{len(choice.files)} test files for {len(changed)} changed files")
    if given.list:
        print(*choice.files, sep="\n")
    if given.list or not choice.files:
        return 0
    doctests = [file for file in changed if file.startswith("src/") and file.endswith(".py")]
    workers = ["-n", str(WORKERS), "--dist", "loadfile"] if len(choice.files) > 1 else []
    command = [sys.executable, "-m", "pytest", "-q", *workers, "-m", "not jvm and not slow"]
    command += ["--doctest-modules", *choice.files, *(f for f in doctests if (ROOT / f).exists())]
    ended = subprocess.run(command, cwd=ROOT, check=False)  # nosec B603  # pytest, on our files
    code = ended.returncode
    return 0 if code == _NO_TEST_COLLECTED else code


if __name__ == "__main__":
    sys.exit(main())
