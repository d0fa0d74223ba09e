"""What commands print for people fits 100 columns."""

from __future__ import annotations

import re
import sys
import time

import pytest

import thalweg as tw
from thalweg.cli.output import print_table
from thalweg.model.workload import Workload
from thalweg.spark.deployment.folder import RunFolder, RunManifest

DEMO = ("demo/app.yaml", "demo/network.yaml")
SHORT = ("--for", "5")
COMMANDS = {
    "plan": ("plan", *DEMO, "-s", "aels-rp-la"),
    "plan, every row": ("plan", *DEMO, "--all"),
    "plan, not feasible": ("plan", "demo/app.yaml", "narrow.yaml"),
    "plan, two applications": ("plan", "fares.yaml", "fog.yaml", "--also", "demand.yaml"),
    "explain": ("explain", "cloud.json"),
    "diff": ("diff", "cloud.json", "edge.json"),
    "schedule": ("schedule", "fares.yaml", "fog.yaml", "-w", "load.csv"),
    "schedule, every step": ("schedule", "fares.yaml", "fog.yaml", "-w", "load.csv", "--all"),
    "simulate": ("simulate", *DEMO, "cloud.json", *SHORT, "--replications", "2"),
    "simulate, adapting": (
        "simulate",
        "fares.yaml",
        "fog.yaml",
        "all-cloud.json",
        *SHORT,
        "--strategy",
        "atsoo",
    ),
    "strategies": ("strategies",),
    "validate": ("validate", *DEMO, "cloud.json", "load.csv", "narrow.yaml"),
    "doctor": ("doctor",),
    "status": ("status", "run"),
    "mobility trace": ("mobility", "trace", "--vehicles", "20", "--output", "trace"),
    "mobility run": ("mobility", "run", "--vehicles", "20", "--for", "60", "--together"),
    "mobility predict": ("mobility", "predict", "--vehicles", "20", "--for", "60"),
    "mobility learn": ("mobility", "learn", "trace/tracks.parquet", "--output", "counts.parquet"),
}


@pytest.fixture
def inputs(thalweg, example, tmp_path):
    """The files that the commands read."""
    for app in (tw.scenarios.taxi_fares(), tw.scenarios.taxi_demand()):
        tw.save(app, tmp_path / f"{app.name.removeprefix('taxi-')}.yaml")
    tw.save(tw.scenarios.fog_cloud(3), tmp_path / "fog.yaml")
    births = [("rides", f"fog-{k}") for k in range(3)]
    rates = enumerate([2e3, 3e4, 5e4, 1e4])
    load = Workload.of({3600.0 * k: dict.fromkeys(births, rate) for k, rate in rates})
    tw.save(load, tmp_path / "load.csv")
    text = (example / "network.yaml").read_text()
    (tmp_path / "narrow.yaml").write_text(text.replace("GIPS", "MIPS").replace(" Mbps", " kbps"))
    app, net = tw.scenarios.small_taxi(), tw.scenarios.small_city()
    tw.save(tw.plan(app, net, "cloud-only"), tmp_path / "cloud.json")
    tw.save(tw.plan(app, net, "aels-rp"), tmp_path / "edge.json")
    fares, fog = tw.scenarios.taxi_fares(), tw.scenarios.fog_cloud(3)
    tw.save(tw.plan(fares, fog, "cloud-only"), tmp_path / "all-cloud.json")


@pytest.fixture
def run(tmp_path):
    """A run with a site that has failed, in many words."""
    found = RunFolder(tmp_path / "run")
    found.path.mkdir()
    manifest = {"pipeline": "taxi-fares", "graph": "1", "network": "city", "cloud": "cloud"}
    found.write_manifest(RunManifest(**manifest, fogs=("fog-0",)))
    query = {"batch": 7, "processed_rows_per_s": 90.0, "error": "no space left on device; " * 9}
    now_s = time.time()
    site = {"state": "down", "alive": False, "since_s": now_s, "queries": [query]}
    operators = [operator.name for operator in tw.scenarios.taxi_fares().operators]
    status = {"pipeline": "taxi-fares", "network": "city", "state": "running"}
    cuts = {"fog-0": operators}
    found.write_status({**status, "heartbeat_s": now_s, "cuts": cuts, "sites": {"fog-0": site}})


WITH_SPARK = ("mobility learn",)


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(words, id=name, marks=[pytest.mark.slow] if name in WITH_SPARK else [])
        for name, words in COMMANDS.items()
    ],
)
@pytest.mark.usefixtures("inputs", "run")
def test_what_a_command_prints_fits_100_columns(thalweg, words):
    if words[:2] == ("mobility", "learn"):
        assert thalweg(*COMMANDS["mobility trace"]).code == 0
    shown = thalweg(*words)
    assert shown.code in (0, 3), shown.err
    assert shown.out
    wide = [line for line in shown.out.splitlines() if len(line) > 100 and " " in line.strip()]
    assert wide == []


def test_a_table_fits_the_terminal_that_it_is_printed_on(monkeypatch, capsys):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("COLUMNS", "60")
    why = "the least usage of all cuts that keep every limit of the application"
    print_table(["operator", "latency", "why"], [["parse", "12.3 ms", why]], title="a plan")
    shown = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)
    assert max(map(len, shown.splitlines())) <= 60
    assert {"12.3", "ms", *why.split()} <= set(shown.replace("│", " ").split())
    assert "12.3 ms" in shown
