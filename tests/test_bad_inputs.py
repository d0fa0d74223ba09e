"""Every bad input is answered in words, with all that is wrong with it, and never with a traceback.

`bad_inputs/` holds small files whose names say what is wrong with them; `bad_inputs/expected.yaml`
holds what must be said about each. Large ones are made here.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

import benchmarks.launch
from thalweg.cli.entry import run
from thalweg.files.save import save
from thalweg.scenarios import small_city

FOLDER = Path(__file__).with_name("bad_inputs")
KINDS = ("application", "network", "plan", "workload", "text", "pair")
EXPECTED: dict[str, dict[str, Any]] = yaml.safe_load((FOLDER / "expected.yaml").read_text())
MOST_BYTES = 200_000_000
BAD_INPUT = 2

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="memory is told in other units")


def arguments(name: str) -> list[str]:
    """The command line that meets the bad input, from within the folder of all of them."""
    path = FOLDER / name
    if path.is_file():
        return ["validate", name]
    files = sorted(file.name for file in path.iterdir())
    verb, *words = EXPECTED[name].get("command", ["validate", *files])
    return [verb, *(f"{name}/{word}" for word in words)]


def check_answer(name: str, code: int, out: str, err: str) -> None:
    expected = EXPECTED[name]
    *messages, last = err.splitlines()
    count = expected["problems"]
    assert code == BAD_INPUT, err
    assert out == ""
    assert "Traceback" not in err
    assert last == f"{count} problem{'s' if count != 1 else ''}"
    assert len(messages) == count
    front = name if (FOLDER / name).is_file() else f"{name}/"
    assert [message for message in messages if not message.startswith(front)] == []
    bare = [message.removeprefix(front) for message in messages]
    assert [words for words in expected["says"] if words not in bare] == []


@pytest.mark.parametrize("name", EXPECTED)
def test_a_bad_input_is_told_all_that_is_wrong_with_it(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(FOLDER)
    code = run(arguments(name))
    check_answer(name, code, *capsys.readouterr())


def test_every_bad_input_is_expected_and_every_expected_one_is_there() -> None:
    present = {f"{kind}/{path.name}" for kind in KINDS for path in (FOLDER / kind).iterdir()}
    assert present == set(EXPECTED)
    assert sorted(path.name for path in FOLDER.iterdir()) == sorted([*KINDS, "expected.yaml"])
    assert len(EXPECTED) >= 120


def test_bad_inputs_are_small_and_say_in_full_what_is_expected() -> None:
    for path in FOLDER.rglob("*"):
        assert path.is_dir() or path.name == "expected.yaml" or path.stat().st_size < 4096, path
    for name, expected in EXPECTED.items():
        # The bombs are about memory; the first of their many messages will do.
        assert len(expected["says"]) == expected["problems"] or "bomb" in name
        for words in expected["says"]:
            assert re.search(r": got .+, need .+", words), words


@pytest.mark.parametrize("name", list(EXPECTED)[:: len(EXPECTED) // 10])
def test_a_process_answers_the_same(name: str) -> None:
    command = [sys.executable, "-m", "thalweg", *arguments(name)]
    done = subprocess.run(command, cwd=FOLDER, capture_output=True, encoding="utf-8", timeout=600)
    check_answer(name, done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize(
    "name",
    [
        "application/five-mistakes.yaml",
        "application/name-with-a-hidden-direction-change.yaml",
        "text/half-a-surrogate.json",
        "text/escaped-escape.json",
        "pair/plan-calls-itself-feasible",
    ],
)
def test_programs_get_the_same_problems_as_json(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(FOLDER)
    assert run([*arguments(name), "--format", "json"]) == BAD_INPUT
    out, err = capsys.readouterr()
    assert out.replace("\n", "").isprintable()
    problems = json.loads(out)["problems"]
    assert [problem["message"] for problem in problems] == err.splitlines()[:-1]
    assert all(problem["file"] and problem["rule"] for problem in problems)


# --- what is too large to be kept as a file


def _operators(count: int, operator: str) -> Iterator[str]:
    yield "thalweg: 1\napplication: big\noperators:\n"
    for number in range(count):
        yield f"  - {operator.replace('#', str(number))}\n"
    yield "streams: []\n"


def _long_cycle(size: int) -> str:
    names = [f"o{number}" for number in range(size)]
    ends = zip(names, [*names[1:], names[0]], strict=True)
    operators = [
        {"name": "in", "kind": "source", "rate": "1 /s", "event_size": "1 B", "pin": {"site": "a"}},
        {"name": "out", "kind": "sink"},
        *({"name": name} for name in names),
    ]
    streams = [{"source": a, "target": b} for a, b in [("in", "o0"), ("o0", "out"), *ends]]
    data = {"thalweg": 1, "application": "ring", "operators": operators, "streams": streams}
    return json.dumps(data)


def _laughs(fields: int) -> str:
    levels = "".join(f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * fields)}]\n" for k in range(1, 300))
    return f"a0: &a0 [{'lol, ' * fields}lol]\n{levels}"


@dataclass(frozen=True)
class Large:
    """A large bad file: its name, its contents, and what must be said about it."""

    name: str
    make: Callable[[], str | bytes]
    says: str


LARGE = [
    Large("spaces.yaml", lambda: b" " * 17 * 2**20, 'got "17825792 bytes", need a file of at most'),
    Large("zeros.json", lambda: b"\0" * 17 * 2**20, "need a file of at most 8388608 bytes"),
    Large("brackets.json", lambda: "[" * 100_000, "nested at most 32 levels deep"),
    Large("brackets.yaml", lambda: "[" * 100_000, "nested at most 32 levels deep"),
    Large("braces.json", lambda: '{"a":' * 100_000, "nested at most 32 levels deep"),
    Large("dashes.yaml", lambda: "- " * 100_000, "nested at most 32 levels deep"),
    Large(
        "indents.yaml",
        lambda: "".join(" " * k + "a:\n" for k in range(2000)),
        "nested at most 32 levels deep",
    ),
    Large("values.json", lambda: f"[{'0,' * 3_500_000}0]", "at most 50000 keys and values"),
    Large("values.yaml", lambda: f"[{'0,' * 3_500_000}0]", "at most 50000 keys and values"),
    Large(
        "keys.json",
        lambda: "{" + ",".join(f'"k{k}":0' for k in range(600_000)) + "}",
        "at most 50000 keys and values",
    ),
    Large("duplicates.yaml", lambda: "a: 1\n" * 1_000_000, 'a: got "a", need each key only once'),
    Large("long-line.yaml", lambda: f"thalweg: {'x' * 8_000_000}", "a text of at most 65536"),
    Large("long-line.json", lambda: f'["{"x" * 8_000_000}"]', "a text of at most 65536"),
    Large("long-number.json", lambda: "1" * 8_000_000, "a text of at most 65536"),
    Large("long-number.yaml", lambda: "1" * 8_000_000, "a text of at most 65536"),
    Large("long-key.yaml", lambda: f"{'k' * 1000}: 1\n" * 8000, "a key of 1 to 256 printable"),
    Large("laughs.yaml", lambda: _laughs(2000), "need no anchors"),
    Large("anchors.yaml", lambda: "".join(f"- &a{k} x\n" for k in range(90_000)), "no anchors"),
    Large("documents.yaml", lambda: "--- a\n" * 1_000_000, "one document per file"),
    Large("directives.yaml", lambda: "%TAG !a! b\n" * 500_000, "lines that start with %"),
    Large("comments.yaml", lambda: "# nothing\n" * 800_000, "the file is empty"),
    Large("escapes.yaml", lambda: '"' + r"\x1b" * 2_000_000 + '"', "need a text"),
    Large("quotes.json", lambda: '"' + r"\"" * 4_000_000, "unterminated string"),
    Large(
        "operators.yaml",
        lambda: "".join(_operators(6_500, "{name: o#, memroy: 1 B}")),
        'memroy: got "1 B", need a known field of an operator. Hint: did you mean "memory"?',
    ),
    Large(
        "same-names.yaml",
        lambda: "".join(_operators(15_000, "{name: same}")),
        'name: got "same", need a name of its own. Hint: operators[0] has it already',
    ),
    Large("ring.json", lambda: _long_cycle(6_000), "need a graph without cycles"),
]


def run_alone(folder: Path, words: list[str]) -> tuple[int, str, str, int]:
    """The exit code, both outputs and the peak memory in bytes of a process of its own."""
    # `wait4` would count this process's memory to the child's peak; the launcher has next to none.
    launcher = [sys.executable, "-I", "-S", benchmarks.launch.__file__, "report", "300"]
    command = [*launcher, sys.executable, "-m", "thalweg", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    code, _, _, peak_bytes, timed_out = (folder / "report").read_text().split()
    assert timed_out == "0"
    return int(code), done.stdout, done.stderr, int(peak_bytes)


def check_large(large: Large, err: str) -> None:
    messages = [line for line in err.splitlines() if line.startswith(f"{large.name}:")]
    assert [line for line in messages if large.says in line]
    # A hundred of them, why reading stopped, and that there are more.
    assert len(messages) <= 102


def write_large(folder: Path, large: Large) -> str:
    contents = large.make()
    is_text = isinstance(contents, str)
    (folder / large.name).write_bytes(contents.encode() if is_text else contents)
    return large.name


@on_linux
def test_large_bad_files_are_answered_in_little_memory(tmp_path: Path) -> None:
    names = [write_large(tmp_path, large) for large in LARGE]
    code, out, err, peak = run_alone(tmp_path, ["validate", *names])
    assert (code, out) == (BAD_INPUT, "")
    assert "Traceback" not in err
    assert [line for line in err.splitlines()[:-1] if not line.startswith(tuple(names))] == []
    for large in LARGE:
        check_large(large, err)
    assert peak <= MOST_BYTES


@on_linux
@pytest.mark.slow
@pytest.mark.parametrize("large", LARGE, ids=lambda large: large.name)
def test_each_large_bad_file_is_answered_in_little_memory(large: Large, tmp_path: Path) -> None:
    code, out, err, peak = run_alone(tmp_path, ["validate", write_large(tmp_path, large)])
    assert (code, out) == (BAD_INPUT, "")
    check_large(large, err)
    assert peak <= MOST_BYTES


# --- networks as folders


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def _overwrite(contents: bytes) -> Callable[[Path], None]:
    return lambda path: path.write_bytes(contents) and None


def _column(name: str, change: Callable[[list[Any]], list[Any] | None]) -> Callable[[Path], None]:
    """Change a column; None takes it out."""

    def edit(path: Path) -> None:
        table = pq.read_table(path)
        at = table.schema.get_field_index(name)
        values = change(table.column(name).to_pylist())
        if values is None:
            table = table.remove_column(at)
        else:
            table = table.set_column(at, name, pa.array(values, table.schema.field(at).type))
        pq.write_table(table, path, compression="none")

    return edit


def _rename(old: str, new: str) -> Callable[[Path], None]:
    def edit(path: Path) -> None:
        table = pq.read_table(path)
        names = [new if name == old else name for name in table.column_names]
        pq.write_table(table.rename_columns(names), path, compression="none")

    return edit


def _field(name: str, value: Any) -> Callable[[Path], None]:
    def edit(path: Path) -> None:
        data = json.loads(path.read_text())
        path.write_text(json.dumps({**data, name: value}))

    return edit


FOLDERS: dict[str, tuple[str, Callable[[Path], None], str]] = {
    "a folder without a network": ("network.json", Path.unlink, "need an existing file"),
    "a network that lost its nodes": ("nodes.parquet", Path.unlink, "need an existing file"),
    "a network cut off": ("nodes.parquet", _truncate, "need a Parquet file that is whole"),
    "a text called Parquet": ("sites.parquet", _overwrite(b"site,tier"), "a Parquet file that is"),
    "an empty table": ("nodes.parquet", _overwrite(b""), "need a Parquet file that is whole"),
    "a column missing": (
        "nodes.parquet",
        _column("cpu_ips", lambda _: None),
        'cpu_ips: got "no such column", need a column of type double',
    ),
    "a column misspelt": ("nodes.parquet", _rename("cpu_ips", "cpu_isp"), "cpu_isp"),
    "a figure that is not a number": (
        "nodes.parquet",
        _column("cpu_ips", lambda v: [float("nan"), *v[1:]]),
        "cpu_ips[0]: got nan, need a CPU speed from 0 to 1e+18 IPS, or infinite",
    ),
    "a negative figure": (
        "nodes.parquet",
        _column("memory_bytes", lambda v: [*v[:2], -1.0, *v[3:]]),
        "memory_bytes[2]: got -1.0, need a size from 0 to",
    ),
    "a value missing": (
        "nodes.parquet",
        _column("cpu_ips", lambda v: [None, *v[1:]]),
        "cpu_ips",
    ),
    "a node in no site": (
        "nodes.parquet",
        _column("site", lambda v: [*v[:-1], 99]),
        "need a whole number from 0 to 5",
    ),
    "a name with a path": (
        "sites.parquet",
        _column("name", lambda v: ["../x", *v[1:]]),
        'name[0]: got "../x", need a name of letters',
    ),
    "an unknown tier": (
        "sites.parquet",
        _column("tier", lambda v: ["moon", *v[1:]]),
        'tier[0]: got "moon"',
    ),
    "parents in a circle": ("sites.parquet", _column("parent", lambda v: [0, *v[1:]]), "parent"),
    "more nodes promised": ("network.json", _field("node_count", 9), "need 9 rows"),
    "absurdly many nodes promised": ("network.json", _field("node_count", 10**12), "node_count"),
    "an unknown shape": ("network.json", _field("shape", "star"), 'shape: got "star"'),
    "another version": ("network.json", _field("thalweg", 2), "thalweg: got 2"),
    "an unknown field": ("network.json", _field("sitecount", 2), 'did you mean "site_count"?'),
}


@pytest.mark.parametrize("case", FOLDERS)
def test_a_bad_network_folder_is_told_what_is_wrong(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file, spoil, words = FOLDERS[case]
    monkeypatch.chdir(tmp_path)
    save(small_city(), tmp_path / "city")
    assert run(["validate", "city"]) == 0
    capsys.readouterr()
    spoil(tmp_path / "city" / file)
    assert run(["validate", "city"]) == BAD_INPUT
    out, err = capsys.readouterr()
    *messages, _ = err.splitlines()
    assert out == ""
    assert words in err
    assert [message for message in messages if not message.startswith("city")] == []
