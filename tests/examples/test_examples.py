"""The examples do what they say, as a user would run them."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )


def test_plan_taxi_prints_a_plan_and_what_a_surge_breaks():
    done = run(str(EXAMPLES / "plan_taxi.py"))
    assert done.returncode == 0, done.stderr
    assert "checker: no violation" in done.stdout
    assert "uplink: taxi: needs" in done.stdout


def installed(tmp_path: Path, entry_point: str) -> str:
    """A PYTHONPATH on which the first-fit package counts as installed with that entry point."""
    about = tomllib.loads((EXAMPLES / "first_fit" / "pyproject.toml").read_text())["project"]
    metadata = tmp_path / f"{about['name'].replace('-', '_')}-{about['version']}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {about['name']}\nVersion: {about['version']}\n"
    )
    (group,) = about["entry-points"]
    (metadata / "entry_points.txt").write_text(f"[{group}]\nfirst-fit = {entry_point}\n")
    return f"{tmp_path}{os.pathsep}{EXAMPLES / 'first_fit' / 'src'}"


def test_an_installed_strategy_is_found_and_keeps_its_promises(tmp_path):
    about = tomllib.loads((EXAMPLES / "first_fit" / "pyproject.toml").read_text())["project"]
    entry_point = about["entry-points"]["thalweg.strategies"]["first-fit"]
    path = installed(tmp_path, entry_point)
    listed = run("-m", "thalweg", "strategies", "--format", "json", PYTHONPATH=path)
    assert {"first-fit", "cloud-only"} <= set(json.loads(listed.stdout)), listed.stderr
    check = "from thalweg.testing import check_strategy; print(check_strategy('first-fit'))"
    done = run("-c", check, PYTHONPATH=path)
    assert done.returncode == 0, done.stderr
    assert "refused=0" in done.stdout


def test_a_strategy_that_cannot_be_loaded_is_named_and_harms_no_other(tmp_path):
    path = installed(tmp_path, "first_fit:no_such_function")
    listed = run("-m", "thalweg", "strategies", PYTHONPATH=path)
    assert listed.returncode == 0
    assert "cloud-only" in listed.stdout
    assert "first-fit cannot be loaded" in listed.stderr
