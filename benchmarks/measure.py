"""Stop-watches and scales: repeated calls, fresh processes, peak memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

ROOT = Path(__file__).resolve().parents[1]
BYTE_CODE = ROOT / ".cache" / "benchmarks" / "byte-code"
_LAUNCHER = Path(__file__).with_name("launch.py")


Answer = TypeVar("Answer")


def timed(call: Callable[[], Answer]) -> tuple[Answer, float]:
    """What a call returns, and how long it took."""
    start = time.perf_counter()
    answer = call()
    return answer, time.perf_counter() - start


def median_seconds(
    call: Callable[[], object],
    *,
    repeats: int,
    warm_up: int = 1,
) -> float:
    """The median of so many calls, after some that do not count."""
    seconds = []
    for turn in range(warm_up + repeats):
        _, elapsed = timed(call)
        if turn >= warm_up:
            seconds.append(elapsed)
    return median(seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A command that has ended; `exit_code` is negative where a signal ended it.

    `cpu_s` is what the CPU worked on it, which a busy machine lengthens less than `seconds`.
    """

    exit_code: int
    seconds: float
    cpu_s: float
    peak_bytes: int
    timed_out: bool
    stdout: str
    stderr: str


def run_command(command: Sequence[str], *, timeout_s: float = 60.0, byte_code: bool = True) -> Run:
    """Run a command in a fresh process; how it ended, wall-clock time and peak memory.

    Python programs find and leave their byte code in a folder of the benchmarks', whatever the
    environment says: some environments forbid byte code, and then every start compiles all it
    imports. With `byte_code=False` that is what is measured.
    """
    environment = dict(os.environ)
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    environment["PYTHONPYCACHEPREFIX"] = str(BYTE_CODE)
    with tempfile.TemporaryDirectory(prefix="thalweg-bench-") as folder:
        if not byte_code:
            environment["PYTHONDONTWRITEBYTECODE"] = "1"
            environment["PYTHONPYCACHEPREFIX"] = folder
        report = Path(folder) / "report"
        launcher = [sys.executable, "-I", "-S", str(_LAUNCHER), str(report), str(timeout_s)]
        # Files, not pipes: a flood of output must not make the command wait for a reader.
        with (Path(folder) / "out").open("w+b") as out, (Path(folder) / "err").open("w+b") as err:
            started = subprocess.run(  # nosec B603  # what the benchmark itself names
                [*launcher, *command],
                cwd=ROOT,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
            )
            texts = []
            for stream in (out, err):
                stream.seek(0)
                texts.append(stream.read().decode("utf-8", errors="replace"))
        if started.returncode != 0:
            raise RuntimeError(f"cannot start {command[0]}: {texts[1].strip()[-500:]}")
        exit_code, seconds, cpu_s, peak_bytes, timed_out = report.read_text().split()
    return Run(
        exit_code=int(exit_code),
        seconds=float(seconds),
        cpu_s=float(cpu_s),
        peak_bytes=int(peak_bytes),
        timed_out=timed_out == "1",
        stdout=texts[0],
        stderr=texts[1],
    )


def run_python(code: str, *, byte_code: bool = True) -> Run:
    """Run Python code in a fresh process; raises where it does not end well."""
    run = run_command([sys.executable, "-c", code], byte_code=byte_code)
    if run.exit_code != 0:
        raise RuntimeError(f"a measuring process failed: {run.stderr.strip()[-2000:]}")
    return run


def call_fresh(function: Callable[..., Any], /, *, timeout_s: float = 600.0, **values: Any) -> Any:
    """What a function of a module returns in a fresh process; arguments and answer are JSON."""
    name = f"{function.__module__}:{function.__qualname__}"
    command = [sys.executable, "-m", "benchmarks.measure", name, json.dumps(values)]
    run = run_command(command, timeout_s=timeout_s)
    if run.exit_code != 0:
        raise RuntimeError(f"{name} failed in a fresh process: {run.stderr.strip()[-2000:]}")
    return json.loads(run.stdout.splitlines()[-1])


def resident_bytes() -> int:
    """The memory that this process holds now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _answer_call(name: str, values: str) -> None:
    module, _, function = name.partition(":")
    print(json.dumps(getattr(import_module(module), function)(**json.loads(values))))


if __name__ == "__main__":
    _answer_call(*sys.argv[1:])
