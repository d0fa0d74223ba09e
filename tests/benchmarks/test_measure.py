from __future__ import annotations

import sys
from pathlib import Path

import pytest

from benchmarks.measure import call_fresh, median_seconds, resident_bytes, run_command, run_python
from benchmarks.runner import show_figure


def test_a_command_is_reported_with_its_exit_code_and_output() -> None:
    code = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"
    run = run_command([sys.executable, "-c", code])
    assert (run.exit_code, run.stdout, run.stderr, run.timed_out) == (3, "out\n", "err\n", False)
    assert run.seconds > 0
    assert run.cpu_s > 0


def test_peak_memory_is_the_commands_own_and_not_that_of_who_starts_it() -> None:
    ballast = bytearray(b"x" * 150_000_000)
    small = run_python("pass")
    large = run_python("x = bytearray(b'x' * 100_000_000)")
    assert len(ballast) == 150_000_000
    assert small.peak_bytes < 60_000_000
    assert 100_000_000 < large.peak_bytes < 260_000_000


def test_a_command_that_does_not_end_is_ended() -> None:
    run = run_command([sys.executable, "-c", "import time; time.sleep(600)"], timeout_s=0.5)
    assert run.timed_out
    assert run.exit_code == -9


def test_a_command_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="no-such-command"):
        run_command(["no-such-command"])


def test_code_that_fails_in_a_fresh_process_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="broken on purpose"):
        run_python("raise SystemExit('broken on purpose')")


def test_byte_code_is_kept_apart_and_can_be_forbidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.measure.BYTE_CODE", tmp_path / "byte-code")
    module = tmp_path / "lonely.py"
    module.write_text("")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    run_python("import lonely", byte_code=False)
    assert list(tmp_path.rglob("lonely*.pyc")) == []
    run_python("import lonely")
    assert [p.name for p in (tmp_path / "byte-code").rglob("lonely*.pyc")] != []
    assert not (tmp_path / "__pycache__").exists()


def test_a_function_can_be_called_in_a_fresh_process() -> None:
    assert call_fresh(show_figure, value=0.5, unit="s") == "500 ms"
    assert call_fresh(resident_bytes) > 1_000_000


def test_the_median_leaves_the_warm_up_out(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter([0.0, 100.0, 200.0, 201.0, 300.0, 302.0, 400.0, 409.0])
    monkeypatch.setattr("benchmarks.measure.time.perf_counter", lambda: next(ticks))
    assert median_seconds(lambda: None, repeats=3) == 2.0
