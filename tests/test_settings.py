"""What `conftest.py` promises: what may be skipped, how many cases, what one worker does."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tools import provide
from tools.chromium import find_chromium

from parts import ONE_SESSION, SPLIT, part_of

HERE = Path(__file__).parent
SAMPLE = """
import pytest
from hypothesis import given, settings, strategies as st

drawn = {"few": 0, "slow": 0}

@settings(max_examples=60)
@given(st.integers())
def test_property(n):
    drawn["few"] += 1

@pytest.mark.slow
@settings(max_examples=60)
@given(st.integers())
def test_slow_property(n):
    drawn["slow"] += 1

def test_counts():
    print(f"drawn {drawn['few']} {drawn['slow']}")

@pytest.mark.data
def test_data():
    pytest.skip("needs the taxis")

def test_browser():
    pytest.skip("needs a browser")

@pytest.fixture
def browser():
    pytest.skip("needs a browser")

def test_another(browser):
    pass

@pytest.mark.xfail(reason="known")
def test_known():
    raise ValueError
"""
INI = """[pytest]
pythonpath = tests
markers =
    data
    rights
    slow
    jvm
"""


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    folder = tmp_path / "tests"
    folder.mkdir()
    for name in ("conftest.py", "parts.py"):
        shutil.copy(HERE / name, folder / name)
    (folder / "test_sample.py").write_text(SAMPLE)
    (folder / "test_absent.py").write_text("import pytest\npytest.importorskip('no_such_module')\n")
    (tmp_path / "pytest.ini").write_text(INI)
    return tmp_path


def ask(sample: Path, *words: str, **environment: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-s", "tests", *words]
    given = {name: value for name, value in os.environ.items() if name not in ("CI", "COLUMNS")}
    given = {name: value for name, value in given.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        command, cwd=sample, env=given | environment, capture_output=True, text=True
    )
    return done.returncode, done.stdout


def test_what_is_skipped_is_told_by_its_reason_and_properties_draw_few_cases(sample: Path) -> None:
    code, told = ask(sample)
    assert code == 0, told
    assert "2 × needs a browser" in told
    assert "1 × needs the taxis" in told
    assert "1 × tests/test_absent.py: could not import 'no_such_module'" in told
    assert "drawn 15 60" in told
    seconds = json.loads((sample / ".cache" / "test-seconds.json").read_text())
    assert set(seconds) == {"tests/test_sample.py"}


def test_in_ci_a_skip_is_a_failure_unless_the_data_are_not_to_be_had(sample: Path) -> None:
    words = ("--hypothesis-profile", "full", "--continue-on-collection-errors")
    code, told = ask(sample, *words, CI="true")
    assert code == 1, told
    assert "CI=true, so this may not be skipped: needs a browser" in told
    assert "may not be skipped: could not import 'no_such_module'" in told
    assert "1 × needs the taxis" in told
    # What a fixture skips and what a file skips are errors.
    assert "1 failed, 3 passed, 1 skipped, 1 xfailed, 2 errors" in told
    assert "drawn 60 60" in told


def test_workers_take_whole_parts_the_longest_first(sample: Path) -> None:
    (sample / ".cache").mkdir()
    kept = {"tests/test_b.py": 1.0, "tests/test_c.py": 9.0, "tests/test_sample.py": 5.0}
    (sample / ".cache" / "test-seconds.json").write_text(json.dumps(kept))
    for name in "bc":
        (sample / "tests" / f"test_{name}.py").write_text("def test_it():\n    pass\n")
    words = ("-n", "1", "--dist", "loadfile", "--no-loadscope-reorder", "-v")
    code, told = ask(sample, *words)
    assert code == 0, told
    places = [told.index(f"tests/test_{name}.py::") for name in ("c", "sample", "b")]
    assert places == sorted(places)


def test_parts_are_files_tests_of_long_files_and_the_files_of_one_session() -> None:
    for file in (*SPLIT, *ONE_SESSION):
        assert (HERE.parent / file).exists(), file
    assert part_of("tests/a/test_b.py::c") == part_of("tests/a/test_b.py::d") == "tests/a/test_b.py"
    one, other = (f"{SPLIT[0]}::{name}" for name in "ab")
    assert (part_of(one), part_of(other)) == (one, other)
    assert len({part_of(f"{file}::a") for file in ONE_SESSION}) == 1
    sharing = [
        f"tests/spark/{file.name}"
        for file in sorted((HERE / "spark").glob("test_*.py"))
        if "shared_session" in file.read_text(encoding="utf-8")
    ]
    assert sharing == sorted(ONE_SESSION)


def test_what_is_missing_is_named_with_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path / "browsers"))
    monkeypatch.delenv("THALWEG_CHROMIUM", raising=False)
    find_chromium.cache_clear()
    try:
        assert provide.main(["--list"]) == 0
        told = capsys.readouterr().out
        assert "needs Chromium. Hint: as root, apt-get install chromium" in told
        assert "needs promtool. Hint: as root, apt-get install prometheus" in told
        assert provide.install(provide.NEEDS) == "there is no apt-get on this machine"
        # One that Playwright has fetched will do.
        program = tmp_path / "browsers" / "chromium-1200" / "chrome-linux" / "chrome"
        program.parent.mkdir(parents=True)
        program.touch()
        find_chromium.cache_clear()
        assert find_chromium() == (str(program), "found at Playwright's")
    finally:
        find_chromium.cache_clear()


def test_what_is_missing_is_asked_of_debian(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By an apt-get of the test: nothing is installed on this machine."""
    env = shutil.which("env")
    assert env is not None
    (tmp_path / "env").symlink_to(env)
    told, program = tmp_path / "told", tmp_path / "promtool"
    script = f'#!/bin/sh\necho "$DEBIAN_FRONTEND $*" >>{told}\n[ "$1" = update ] || : >{program}\n'
    (tmp_path / "apt-get").write_text(f"{script}[ $1 = update ] || /bin/chmod +x {program}\n")
    (tmp_path / "apt-get").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(provide, "NEEDS", (provide.PROMTOOL,))
    monkeypatch.setattr("spark.kafka_broker.JARS", tmp_path)
    monkeypatch.setattr(provide.os, "geteuid", lambda: 0)
    assert provide.main([]) == 0
    assert provide.PROMTOOL.is_there()
    assert told.read_text().splitlines() == [
        "noninteractive update",
        "noninteractive install -y --no-install-recommends prometheus",
    ]
    assert "needs" not in capsys.readouterr().out
    # Once it is there, nobody is asked.
    assert provide.main([]) == 0
    assert len(told.read_text().splitlines()) == 2
    (tmp_path / "apt-get").write_text("#!/bin/sh\necho 'no such package' >&2\nexit 100\n")
    assert provide.install([provide.NODE]) == "apt-get update failed: no such package"
