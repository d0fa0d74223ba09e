"""The examples do what they say, as a user would run them."""

import json
import os
import shutil
import subprocess
import sys
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


def test_plan_taxi_prints_a_plan_and_what_a_surge_breaks() -> None:
    done = run(str(EXAMPLES / "plan_taxi.py"))
    assert done.returncode == 0, done.stderr
    assert "checker: no violation" in done.stdout
    assert "uplink: taxi: needs" in done.stdout


def install(tmp_path: Path, entry_point: str | None = None) -> str:
    """The first-fit package as pip installs it, from what is here alone; a PYTHONPATH with it."""
    source, target = tmp_path / "first_fit", tmp_path / "installed"
    shutil.copytree(EXAMPLES / "first_fit", source, ignore=shutil.ignore_patterns("__pycache__"))
    if entry_point is not None:
        about = source / "pyproject.toml"
        text = about.read_text(encoding="utf-8")
        about.write_text(text.replace("first_fit:first_fit", entry_point), encoding="utf-8")
    done = run(
        "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-build-isolation",
        "--target", str(target), str(source),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return str(target)


def test_an_installed_strategy_is_found_and_keeps_its_promises(tmp_path: Path) -> None:
    path = install(tmp_path)
    listed = run("-m", "thalweg", "strategies", "--format", "json", PYTHONPATH=path)
    assert {"first-fit", "cloud-only"} <= set(json.loads(listed.stdout)["strategies"])
    check = "from thalweg.testing import check_strategy; print(check_strategy('first-fit'))"
    done = run("-c", check, PYTHONPATH=path)
    assert done.returncode == 0, done.stderr
    assert "refused=0" in done.stdout


def test_an_installed_strategy_plans_on_the_command_line(tmp_path: Path) -> None:
    path = install(tmp_path)
    assert run("-m", "thalweg", "init", str(tmp_path / "demo")).returncode == 0
    files = [str(tmp_path / "demo" / name) for name in ("app.yaml", "network.yaml")]
    planned = run("-m", "thalweg", "plan", *files, "-s", "first-fit", PYTHONPATH=path)
    assert planned.stdout.startswith("taxi on city by first-fit:"), planned.stderr


def test_a_strategy_that_cannot_be_loaded_is_named_and_harms_no_other(tmp_path: Path) -> None:
    path = install(tmp_path, "first_fit:no_such_function")
    listed = run("-m", "thalweg", "strategies", PYTHONPATH=path)
    assert listed.returncode == 0
    assert "cloud-only" in listed.stdout
    assert "first-fit cannot be loaded" in listed.stderr
