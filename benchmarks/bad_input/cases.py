"""The bad inputs: those that are kept as files, and those that are better made anew."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from thalweg.files.text import LARGEST_FILE_BYTES


@dataclass(frozen=True, slots=True)
class Case:
    """A bad input, and what the command line is asked to do with it."""

    name: str
    arguments: tuple[str, ...]


def find_kept_cases(folder: Path) -> list[Case]:
    """Every case of `expected.yaml`: a file, or a folder of files that are wrong only together.

    `thalweg validate` is asked, unless a case names another command.
    """
    expected = yaml.safe_load((folder / "expected.yaml").read_text(encoding="utf-8"))
    return [Case(name, _arguments(folder / name, about)) for name, about in expected.items()]


def _arguments(path: Path, about: Mapping[str, Any]) -> tuple[str, ...]:
    if path.is_file():
        return ("validate", str(path))
    files = sorted(file.name for file in path.iterdir())
    verb, *words = about.get("command", ["validate", *files])
    return (verb, *(str(path / word) for word in words))


def make_hostile_cases(folder: Path) -> list[Case]:
    """Write every hostile file into the folder."""
    cases = []
    for name, make in _HOSTILE.items():
        path = folder / name
        make(path)
        verb = "coordinates" if path.suffix in (".npz", ".npy", ".csv") else "validate"
        unit = ("--unit", "ms") if path.suffix in (".npy", ".csv") else ()
        cases.append(Case(name, (verb, str(path), *unit)))
    return cases


def _text(make: Callable[[], str]) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.write_text(make(), encoding="utf-8")

    return write


def _application(operators: list[dict[str, object]], streams: list[dict[str, object]]) -> str:
    document = {"thalweg": 1, "name": "hostile", "operators": operators, "streams": streams}
    return json.dumps(document)


def _many_operators(size_bytes: int) -> str:
    """A YAML application of about that size, right in every line."""
    head = "thalweg: 1\nname: hostile\noperators:\n"
    line = "- {name: operator-%07d, selectivity: 0.5}\n"
    count = (size_bytes - len(head)) // len(line % 0)
    return head + "".join(line % k for k in range(count))


def _many_zeros(size_bytes: int) -> str:
    return '{"thalweg": 1, "operators": [' + "0," * ((size_bytes - 100) // 2) + "0]}"


def _many_typing_errors() -> str:
    """Each operator has fields whose names are nearly right: many hints to look for."""
    wrong = {"selectivty": 0.5, "compresion": 0.5, "cpu_per_evnt": "1 instr", "memry": "1 MB"}
    return _application([{"name": f"operator-{k}", **wrong} for k in range(4_300)], [])


def _many_wrong_units() -> str:
    operator = {"kind": "source", "rate": "100 MB", "event_size": "5 ms", "memory": "-1 events/s"}
    return _application([{"name": f"operator-{k}", **operator} for k in range(4_300)], [])


def _long_cycle() -> str:
    count = 6_000
    operators: list[dict[str, object]] = [{"name": f"operator-{k}"} for k in range(count)]
    streams: list[dict[str, object]] = [
        {"source": f"operator-{k}", "target": f"operator-{(k + 1) % count}"} for k in range(count)
    ]
    return _application(operators, streams)


def _dangling_streams() -> str:
    """Every stream names operators that are nearly there: the nearest name is sought for each."""
    operators: list[dict[str, object]] = [{"name": f"operator-{k}"} for k in range(6_000)]
    streams: list[dict[str, object]] = [
        {"source": f"operatr-{k}", "target": f"oprator-{k}"} for k in range(6_000)
    ]
    return _application(operators, streams)


def _same_names() -> str:
    return _application([{"name": "twin"} for _ in range(16_000)], [])


def _laughs() -> str:
    """Ten lists, each of nine references to the one before: 9¹⁰ words in 400 bytes."""
    first = "thalweg: 1\na0: &a0 [ha, ha, ha, ha, ha, ha, ha, ha, ha]\n"
    others = (f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 9)}]\n" for k in range(1, 10))
    return first + "".join(others) + "operators: *a9\n"


def _deep_blocks() -> str:
    return "".join(" " * depth + "a:\n" for depth in range(3_000))


def _sparse(path: Path) -> None:
    """Four gigabytes that take no room on the disk."""
    with path.open("wb") as file:
        file.truncate(4 * 1024**3)


def _endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _silent(path: Path) -> None:
    """A pipe that nobody writes to."""
    os.mkfifo(path)


def _random_bytes(path: Path) -> None:
    path.write_bytes(np.random.default_rng(0).bytes(LARGEST_FILE_BYTES - 1))


def _array_header(nodes: int) -> bytes:
    header = BytesIO()
    about = {"descr": "<f8", "fortran_order": False, "shape": (nodes, nodes)}
    np.lib.format.write_array_header_1_0(header, about)
    return header.getvalue()


def _array_bomb(path: Path) -> None:
    """An archive of some 100 kB with 100 MB of zeros, the start of a matrix of a terabyte."""
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("rtt_ms.npy", "w", force_zip64=True) as entry,
    ):
        entry.write(_array_header(360_000))
        for _ in range(100):
            entry.write(bytes(1_000_000))


def _empty_promise(path: Path) -> None:
    """A header that announces the largest matrix that is allowed, and nothing after it."""
    path.write_bytes(_array_header(5_000))


_NEARLY_FULL = LARGEST_FILE_BYTES - 1_000

_HOSTILE: dict[str, Callable[[Path], None]] = {
    "larger-than-allowed.yaml": _text(lambda: _many_operators(LARGEST_FILE_BYTES + 1_000_000)),
    "larger-than-allowed.json": _text(lambda: _many_zeros(LARGEST_FILE_BYTES + 1_000_000)),
    "four-gigabytes-of-nothing.json": _sparse,
    "endless.yaml": _endless,
    "pipe.yaml": _silent,
    "random-bytes.yaml": _random_bytes,
    "random-bytes.json": _random_bytes,
    "as-large-as-allowed.yaml": _text(lambda: _many_operators(_NEARLY_FULL)),
    "as-large-as-allowed.json": _text(lambda: _many_zeros(_NEARLY_FULL)),
    "one-long-text.yaml": _text(lambda: "name: " + "x" * (_NEARLY_FULL - 100) + "\n"),
    "one-long-text.json": _text(lambda: '{"name": "' + "x" * (_NEARLY_FULL - 100) + '"}'),
    "one-long-number.yaml": _text(lambda: "thalweg: " + "9" * (_NEARLY_FULL - 100) + "\n"),
    "one-long-number.json": _text(lambda: '{"thalweg": ' + "9" * (_NEARLY_FULL - 100) + "}"),
    "deep-lists.json": _text(lambda: "[" * (_NEARLY_FULL // 2) + "]" * (_NEARLY_FULL // 2)),
    "deep-mappings.json": _text(lambda: '{"a":' * 1_000_000 + "1" + "}" * 1_000_000),
    "deep-lists.yaml": _text(lambda: "[" * (_NEARLY_FULL // 2) + "]" * (_NEARLY_FULL // 2)),
    "deep-mappings.yaml": _text(lambda: "{a: " * 1_000_000 + "1" + "}" * 1_000_000),
    "deep-blocks.yaml": _text(_deep_blocks),
    "a-billion-laughs.yaml": _text(_laughs),
    "only-anchors.yaml": _text(lambda: "".join(f"- &a{k} x\n" for k in range(500_000))),
    "only-question-marks.yaml": _text(lambda: "? " * (_NEARLY_FULL // 2)),
    "only-comments.yaml": _text(lambda: "# nothing\n" * (_NEARLY_FULL // 10)),
    "only-documents.yaml": _text(lambda: "---\n" * (_NEARLY_FULL // 4)),
    "only-spaces.json": _text(lambda: " " * _NEARLY_FULL),
    "many-typing-errors.json": _text(_many_typing_errors),
    "many-wrong-units.json": _text(_many_wrong_units),
    "many-dangling-streams.json": _text(_dangling_streams),
    "many-twins.json": _text(_same_names),
    "a-cycle-of-6000.json": _text(_long_cycle),
    "a-cycle-of-6000.yaml": _text(_long_cycle),
    "matrix-bomb.npz": _array_bomb,
    "matrix-without-numbers.npy": _empty_promise,
    "matrix-of-words.csv": _text(lambda: ("no," * 1_999 + "no\n") * 2_000),
    "matrix-of-commas.csv": _text(lambda: ("," * 4_999 + "\n") * 5_000),
}
