"""Which machine, which versions and which commit a figure belongs to."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_PACKAGES = (
    "thalweg",
    "numpy",
    "scipy",
    "pyarrow",
    "pydantic",
    "pyyaml",
    "typer",
    "rich",
    "pandas",
    "numba",
    "pyspark",
    "matplotlib",
)


def describe_machine() -> dict[str, object]:
    """CPU, cores, memory and operating system; and how busy the machine was."""
    return {
        "cpu": find_cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "os": platform.platform(),
        "architecture": platform.machine(),
        # Other work on the machine makes every figure worse; a reader should see it.
        "load_last_minute": round(os.getloadavg()[0], 2),
    }


def find_cpu_model(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """The CPU's name as the kernel gives it, else the architecture."""
    try:
        lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    for line in lines:
        label, _, value = line.partition(":")
        if label.strip() == "model name" and value.strip():
            return value.strip()
    return platform.processor() or platform.machine()


def find_versions() -> dict[str, str | None]:
    """Versions of Python and of every package that a figure may depend on; None: not installed."""
    versions: dict[str, str | None] = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = None
    return versions


def find_commit(folder: Path) -> str | None:
    """The git commit of a folder, with "+changes" where files differ; None outside git."""
    if shutil.which("git") is None:
        return None
    commit = _git(folder, "rev-parse", "HEAD")
    if commit is None:
        return None
    # Somebody else may be at work in the same checkout: look without taking git's lock.
    changes = _git(folder, "--no-optional-locks", "status", "--porcelain")
    return f"{commit}+changes" if changes else commit


def _git(folder: Path, *arguments: str) -> str | None:
    # The arguments are those of the callers above; git is whichever the user has.
    run = subprocess.run(  # nosec B603 B607
        ["git", *arguments], cwd=folder, capture_output=True, text=True
    )
    return run.stdout.strip() if run.returncode == 0 else None
