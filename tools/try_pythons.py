"""Try every Python that this machine has: `python tools/try_pythons.py [VERSION…] [--record]`.

Each gets an environment of its own in `.cache/pythons`, from `uv.lock`. Every module of the package
is imported there, and those of the tests run that are named below; none of them starts a JVM.
Nothing is downloaded but packages: a Python that is not here is listed as untried. `--record` keeps
which ones passed in `tools/tried_pythons.json`, and only those have a classifier.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
RECORD = ROOT / "tools" / "tried_pythons.json"
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
TESTS = (
    "tests/cli/test_plan.py",
    "tests/cli/test_schedule.py",
    "tests/cli/test_simulate.py",
    "tests/files/test_changes.py",
    "tests/model/test_application.py",
    "tests/model/test_network.py",
    "tests/model/test_networkx_graph.py",
    "tests/model/test_plan.py",
    "tests/test_compiling.py",
    "tests/test_errors.py",
    "tests/test_planning.py",
    "tests/test_strategy.py",
    "tests/test_testing.py",
    "tests/test_units.py",
)
_IMPORT_ALL = """
import importlib, pkgutil, thalweg
for found in pkgutil.walk_packages(thalweg.__path__, "thalweg."):
    if not found.name.endswith("__main__"):
        importlib.import_module(found.name)
"""
_SELF = "import sys; print('.'.join(map(str, sys.version_info[:3])))"


def main(arguments: list[str] | None = None) -> int:
    """Exit code 1 if one of them fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("versions", nargs="*", help=f"which ones: {', '.join(VERSIONS)}")
    parser.add_argument("--record", action="store_true", help="keep which ones passed")
    options = parser.parse_args(arguments)
    uv = find_uv()
    passed: dict[str, str] = {}
    failed, untried = [], []
    for version in options.versions or VERSIONS:
        python = find_python(version)
        if python is None:
            untried.append(version)
        elif try_python(uv, version, python):
            passed[version] = full_version(python) or version
        else:
            failed.append(version)
    for verdict, versions in (("passed", passed), ("FAILED", failed), ("untried", untried)):
        if versions:
            print(f"{verdict}: {', '.join(versions)}")
    if options.record:
        record(passed, failed)
    return 1 if failed else 0


def record(passed: Mapping[str, str], failed: Sequence[str]) -> None:
    """Keep what passed beside what passed before, and no longer what failed."""
    before = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.is_file() else {}
    known = {**before, **passed}
    kept = {version: known[version] for version in VERSIONS if version in known}
    for version in failed:
        kept.pop(version, None)
    RECORD.write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")


def find_uv() -> str:
    """The uv that `make setup` uses."""
    own = ROOT / ".cache" / "uv-home" / "bin" / "uv"
    found = str(own) if own.is_file() else shutil.which("uv")
    if found is None:
        raise SystemExit("no uv. Hint: make setup")
    return found


def find_python(version: str) -> Path | None:
    """A Python of that version that runs: on the path, of pyenv, or of uv."""
    return next((path for path in _candidates(version) if _is(path, version)), None)


def _candidates(version: str) -> Iterator[Path]:
    on_path = shutil.which(f"python{version}")
    if on_path is not None:
        yield Path(on_path)
    home = Path.home()
    pyenv = Path(os.environ.get("PYENV_ROOT", home / ".pyenv"))
    yield from sorted(pyenv.glob(f"versions/{version}.*/bin/python{version}"))
    yield from sorted(home.glob(f".local/share/uv/python/cpython-{version}.*/bin/python{version}"))


def _is(python: Path, version: str) -> bool:
    found = full_version(python)
    return found is not None and found.startswith(f"{version}.")


def full_version(python: Path) -> str | None:
    """Its version with all three numbers; None where it is a shim for nothing."""
    done = subprocess.run(  # nosec B603  # a Python of this machine, with words of ours
        [python, "-c", _SELF], capture_output=True, text=True, check=False, timeout=60
    )
    return done.stdout.strip() if done.returncode == 0 else None


def try_python(uv: str, version: str, python: Path) -> bool:
    """Whether the tests pass in an environment of that Python."""
    print(f"trying {full_version(python)}: {python}", flush=True)
    folder = ROOT / ".cache" / "pythons" / version
    sync = [uv, "sync", "--quiet", "--frozen", "--all-extras", "--group", "dev"]
    environment = {
        **os.environ,
        "UV_PROJECT_ENVIRONMENT": str(folder),
        "UV_PYTHON_DOWNLOADS": "never",
    }
    environment.pop("VIRTUAL_ENV", None)
    own = str(folder / "bin" / "python")
    commands = (
        [*sync, "--python", str(python)],
        [own, "-c", _IMPORT_ALL],
        [own, "-m", "pytest", "-q", "-m", "not jvm and not slow", "-p", "no:cacheprovider", *TESTS],
    )
    for command in commands:
        ran = subprocess.run(command, cwd=ROOT, env=environment, check=False)  # nosec B603  # ours
        if ran.returncode != 0:
            return False
    return True


if __name__ == "__main__":
    sys.exit(main())
