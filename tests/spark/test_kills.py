"""kill -9 of sites and of their coordinator, at any time, while cuts move under load."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from spark.taxi_coordinator import TAXI
from spark.taxi_run import Meters, deployment, results, run_in_one_place, wait_for

pytestmark = pytest.mark.jvm
FOGS = ("fog-1",)
TARGETS = (*FOGS, "cloud", "coordinator")
KILLS = pytest.mark.parametrize("kills", [pytest.param(20, marks=pytest.mark.slow)])
TESTS = Path(__file__).parents[1]


class Run:
    """A coordinator in a process of its own, started again whenever it was killed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._starts = 0
        self.said: list[dict[str, Any]] = []
        self.start()

    def start(self) -> None:
        self._starts += 1
        command = [sys.executable, "-m", "spark.taxi_coordinator", str(self._folder)]
        with (self._folder / f"errors-{self._starts}.txt").open("w") as errors:
            self.process = subprocess.Popen(
                [*command, str(self._starts), *FOGS],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env={**os.environ, "PYTHONPATH": str(TESTS)},
            )
        self.said = []
        threading.Thread(target=self._listen, args=(self.process, self.said), daemon=True).start()

    @staticmethod
    def _listen(process: subprocess.Popen[str], said: list[dict[str, Any]]) -> None:
        assert process.stdout is not None
        with process.stdout:
            for line in process.stdout:
                said.append(json.loads(line))  # noqa: PERF401

    def kill(self, target: str) -> bool:
        """Kill a site, or the coordinator; false where it is not there just now."""
        pid = self.process.pid if target == "coordinator" else self.said[-1]["pids"][target]
        if pid is None:
            return False
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return False
        if target == "coordinator":
            self.process.wait()
            self.start()
        return True

    def errors(self) -> str:
        return (self._folder / f"errors-{self._starts}.txt").read_text()[-3000:]


@KILLS
def test_nothing_is_lost_or_doubled_whoever_is_killed(tmp_path: Path, kills: int) -> None:
    pytest.importorskip("pyspark")
    from thalweg.spark.pipeline import load_pipeline
    from thalweg.spark.session import open_session

    rng = random.Random(7)  # noqa: S311
    spec = deployment(tmp_path, TAXI, FOGS)
    meters = Meters(spec.log, FOGS)
    meters.send(2)
    run, killed = Run(tmp_path), Counter[str]()
    try:
        while killed.total() < kills or not all(killed[target] for target in TARGETS):
            wait_for(lambda: run.said or run.process.poll() is not None)
            assert run.process.poll() is None, run.errors()
            time.sleep(rng.uniform(0.0, 3.0))
            meters.send(rng.randrange(1, 3))
            target = rng.choice([FOGS[0], *TARGETS])
            killed[target] += run.kill(target)
        meters.send(2)
        meters.end()
        with open_session("local[1]", "expected") as session:
            expected = run_in_one_place(session, load_pipeline(TAXI), meters.table)
        wait_for(lambda: results(spec.log, expected) == expected or run.process.poll() is not None)
        assert run.process.poll() is None, run.errors()
        assert results(spec.log, expected) == expected
        assert all(killed[target] for target in TARGETS)
    finally:
        run.process.kill()
        run.process.wait()
