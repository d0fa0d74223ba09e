"""How long does a new user wait for the first answers?

A fresh installation is a copy of the package without byte code and without compiled loops. Measured
are the first plan of the example of `thalweg init`, the same again, a plan on a large network, and
a study: several networks, seeds and all strategies in one process.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from benchmarks.measure import ROOT, Run, call_fresh, run_command
from benchmarks.runner import REGISTER, Benchmark, Result, Row, Settings

IMPORTS = "import numpy, scipy, pydantic, typer, rich, yaml"
TIMEOUT_S = 900.0
_IN_COPY = """
import os, sys
sys.dont_write_bytecode = False
sys.pycache_prefix = None
os.environ["NUMBA_CACHE_DIR"] = {cache!r}
sys.path.insert(0, {source!r})
sys.argv = {arguments!r}
"""
_STUDY = """
import thalweg as tw
from thalweg.scenarios import cloud_edge, fog_cloud, random_application
from thalweg.scenarios import small_city, small_taxi, taxi_fares

def draw_fogs(seed):
    return taxi_fares(), fog_cloud(3, seed=seed)

def draw_edge(seed):
    network = cloud_edge(2, 3, 4, seed=seed)
    return random_application("stats", network, seed=seed), network

problems = {{"city": (small_taxi(), small_city()), "fogs": draw_fogs, "edge": draw_edge}}
found = tw.study(problems=problems, strategies=list(tw.strategies()), seeds={seeds})
print(found)
print(sum(row["feasible"] is not None for row in found.rows))
"""


class Installation:
    """A copy of the package in a folder of its own, as nobody has used it yet."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "src" / "thalweg", folder / "source" / "thalweg", ignore=ignore)

    def thalweg(self, *arguments: str) -> Run:
        """Run a command of this copy."""
        body = "from thalweg.cli import main; main()"
        return self.python(body, arguments=["thalweg", *arguments])

    def python(self, body: str, arguments: Sequence[str] = ("python",)) -> Run:
        """Run Python code that finds this copy."""
        code = _IN_COPY.format(
            cache=str(self._folder / "loops"),
            source=str(self._folder / "source"),
            arguments=list(arguments),
        )
        run = run_command([sys.executable, "-c", code + body], timeout_s=TIMEOUT_S)
        if run.exit_code != 0:
            raise RuntimeError(f"{' '.join(arguments)} failed: {run.stderr.strip()[-2000:]}")
        return run


def save_large_network(folder: str, clouds: int, sites: int, devices: int) -> int:
    """Save a network and an application on it; how many nodes it has."""
    import thalweg as tw

    network = tw.scenarios.cloud_edge(clouds, sites, devices, seed=0)
    tw.save(network, Path(folder) / "network")
    application = tw.scenarios.random_application("large-1", network, seed=3)
    tw.save(application, Path(folder) / "app.yaml")
    return int(network.node_site.size)


def run(settings: Settings) -> Result:
    """The first plan, the next ones, a large one, and a study."""
    with tempfile.TemporaryDirectory(prefix="thalweg-first-") as temporary:
        folder = Path(temporary)
        rows = [*_small_plans(settings, folder), *_large_plan(settings, folder)]
        rows += _study(settings, folder)
    notes = ["a fresh installation is a copy without byte code, in a folder of its own"]
    return Result(rows=rows, notes=notes)


def _small_plans(settings: Settings, folder: Path) -> list[Row]:
    settings.tell("the first plan")
    copy = Installation(folder / "small")
    copy.thalweg("init", str(folder / "demo"))
    plan = ("plan", str(folder / "demo" / "app.yaml"), str(folder / "demo" / "network.yaml"))
    # `init` has left byte code, and a plan must not find it.
    first = Installation(folder / "first").thalweg(*plan)
    turns = settings.pick(full=15, quick=5, smoke=1)
    planned, imported = [], []
    for turn in range(turns + 1):
        settings.tell(f"the same plan, {turn} of {turns}")
        planned.append(copy.thalweg(*plan).cpu_s)
        imported.append(run_command([sys.executable, "-c", IMPORTS]).cpu_s)
    cpu_s, base_s = median(planned[1:]), median(imported[1:])
    return [
        Row(measure="first plan", value=first.seconds, unit="s", target=2.0),
        Row(measure="a plan, CPU", value=cpu_s, unit="s", target=0.35),
        Row(measure="imports beside it, CPU", value=base_s, unit="s", note=IMPORTS),
        Row(measure="a plan against the imports", value=cpu_s / base_s, target=2.0),
    ]


def _large_plan(settings: Settings, folder: Path) -> list[Row]:
    settings.tell("a large network")
    shape = settings.pick(full=(500, 500, 500), quick=(500, 500, 500), smoke=(3, 20, 20))
    names = ("clouds", "sites", "devices")
    values = dict(zip(names, shape, strict=True))
    nodes = call_fresh(save_large_network, folder=str(folder), **values)
    copy = Installation(folder / "large")
    plan = ("plan", str(folder / "app.yaml"), str(folder / "network"), "-s", "aels-rp-la-free")
    first = copy.thalweg(*plan)
    again = [copy.thalweg(*plan) for _ in range(settings.pick(full=5, quick=3, smoke=1))]
    at = {"nodes": nodes}
    return [
        Row(measure="first plan on many nodes", value=first.seconds, unit="s", at=at),
        Row(
            measure="a plan on many nodes, CPU",
            value=median(run.cpu_s for run in again),
            unit="s",
            target=1.2,
            at=at,
        ),
        Row(
            measure="a plan on many nodes, memory",
            value=median(run.peak_bytes for run in again),
            unit="B",
            target=250e6,
            at=at,
        ),
    ]


def _study(settings: Settings, folder: Path) -> list[Row]:
    settings.tell("a study")
    seeds = settings.pick(full=10, quick=3, smoke=1)
    found = Installation(folder / "study").python(_STUDY.format(seeds=seeds))
    at = {"networks": 3, "seeds": seeds}
    return [
        Row(measure="study, fresh installation", value=found.seconds, unit="s", target=30.0, at=at),
        Row(measure="plans of the study", value=int(found.stdout.split()[-1]), at=at),
    ]


REGISTER.add(
    Benchmark(
        name="first_minutes",
        question="How long does a new user wait for the first answers?",
        run=run,
    )
)
