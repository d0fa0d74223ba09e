"""The door for untrusted text: which files it reads, and how it refuses everything else."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thalweg.errors import InvalidInput
from thalweg.files import outline, text
from thalweg.files.text import Document, parse_document, read_document

FORMATS = ("yaml", "json")


def parse(source: str | bytes, kind: str) -> object:
    return parse_document(source, file=f"app.{kind}", format=kind).data


def refused(source: str | bytes, kind: str) -> InvalidInput:
    with pytest.raises(InvalidInput) as caught:
        parse(source, kind)
    return caught.value


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (
            b'["\xff"]',
            'got "byte 0xff at offset 2", need UTF-8 text. Hint: save the file as UTF-8.',
        ),
        (b"[1,\n\xc3(]", ':2: got "byte 0xc3 at offset 4"'),
        (b"\xed\xa0\x80", "byte 0xed at offset 0"),
        ("[1]".encode("utf-16"), 'offset 0", need UTF-8 text. Hint: it looks like UTF-16; save'),
        ("[1]".encode("utf-16-be"), 'got "U+0000 in column 1", need text without control char'),
        ("[1]".encode("utf-32"), "offset 0"),
        (b"[1,\n 2\x00]", ':2: got "U+0000 in column 3", need text without control characters'),
        (b'["\x1b[31m"]', 'got "U+001B in column 3", need text without control characters'),
        ("# \x85\n[1]", 'got "U+0085 in column 3"'),
        ("[\x7f]", 'got "U+007F in column 2"'),
        ("[\uffff]", 'got "U+FFFF in column 2"'),
        ("[\ud800]", 'got "U+D800 at character 1"'),
    ],
)
def test_text_that_is_no_clean_utf_8_is_refused(
    source: str | bytes, expected: str, kind: str
) -> None:
    assert expected in str(refused(source, kind))


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("source", [b"\xef\xbb\xbf[1]", "\ufeff[1]", "[1]\r\n", "\r\n[\r\n1\r\n]"])
def test_a_byte_order_mark_and_windows_line_ends_are_accepted(
    source: str | bytes, kind: str
) -> None:
    assert parse(source, kind) == [1]


@pytest.mark.parametrize("kind", FORMATS)
def test_text_over_the_size_limit_is_refused(kind: str) -> None:
    message = str(refused(b" " * (text.LARGEST_FILE_BYTES + 1), kind))
    assert 'got "8388609 bytes", need a file of at most 8388608 bytes' in message


MEASURE_PEAK = """
import sys
from thalweg.errors import InvalidInput
from thalweg.files.text import read_document
try:
    document = read_document(sys.argv[1])
except InvalidInput as error:
    print(error.defects[0], file=sys.stderr)
print(open("/proc/self/status").read().split("VmHWM:")[1].split()[0])
"""
COUNT, SIZE = outline.MOST_KEYS_AND_VALUES, text.LARGEST_FILE_BYTES
HEAVY_FILES = {
    "empties.yaml": lambda: "[" + "{}," * (COUNT - 1) + "]",
    "keys.yaml": lambda: "".join(f"{'k' * 50}{i}: {i}.5 abcdefgh\n" for i in range(COUNT // 2 - 1)),
    "wide.yaml": lambda: "# \U0001f600\n[" + ('"' + "a" * 70 + '\u4e2d",') * (COUNT - 1) + "]",
    "repeats.yaml": lambda: "a: 1\n" * (COUNT // 2 - 1),
    "one_text.yaml": lambda: 'a: "' + "x" * (SIZE - 10) + '"',
    "keys.json": lambda: json.dumps({f"{'k' * 50}{i}": i + 0.5 for i in range(COUNT // 2 - 1)}),
    "wide.json": lambda: json.dumps(["a" * 70 + "\U0001f600"] * (COUNT - 1), ensure_ascii=False),
    "escapes.json": lambda: '"' + '\\"' * (SIZE // 2 - 10),
    "one_number.json": lambda: "[" + "1" * (SIZE - 10) + "]",
    "bottomless.json": lambda: "[" * SIZE,
}


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
@pytest.mark.parametrize("name", HEAVY_FILES)
def test_the_heaviest_files_fit_into_200_megabytes(name: str, tmp_path: Path) -> None:
    file = tmp_path / name
    file.write_text(HEAVY_FILES[name](), encoding="utf-8")
    assert file.stat().st_size <= SIZE
    done = subprocess.run(
        [sys.executable, "-c", MEASURE_PEAK, str(file)], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) * 1024 <= 200e6, done.stderr


def refused_file(path: Path | str) -> str:
    with pytest.raises(InvalidInput) as caught:
        read_document(path)
    (defect,) = caught.value.defects
    return str(defect)


@pytest.mark.parametrize("name", ["a.yaml", "a.yml", "a.json", "A.JSON", "a.b.Yaml"])
def test_a_file_is_read_by_its_ending(name: str, tmp_path: Path) -> None:
    file = tmp_path / name
    file.write_text('{"a":\n [1]}')
    document = read_document(file)
    assert document.data == {"a": [1]}
    assert document.file == str(file)
    assert document.line_of("a[0]") == 2
    assert read_document(str(file)) == document


def test_json_rules_hold_for_json_files_only(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("a: 1")
    assert "need valid JSON" in refused_file(tmp_path / "a.json")


@pytest.mark.parametrize("name", ["a.txt", "a", ".yaml", "a.yaml.gz"])
def test_another_ending_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("a: 1")
    assert "need a file name that ends in .yaml, .yml or .json" in refused_file(tmp_path / name)


def test_a_missing_file_is_answered_with_the_nearest_name(tmp_path: Path) -> None:
    for name in ("network.yaml", "taxi.yaml", "network.txt"):
        (tmp_path / name).touch()
    message = refused_file(tmp_path / "netwrok.yaml")
    assert "netwrok.yaml: got nothing, need an existing file" in message
    assert message.endswith('Hint: did you mean "network.yaml"?')


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    message = refused_file(tmp_path / "nowhere" / "a.yaml")
    assert f'Hint: there is no folder "{tmp_path / "nowhere"}".' in message


def test_names_that_a_terminal_might_obey_are_not_printed(tmp_path: Path) -> None:
    (tmp_path / "a\x1b[31m.yaml").touch()
    assert "\x1b" not in refused_file(tmp_path / "b\x1b[31m.yaml")
    assert "b\\u001b[31m.yaml" in refused_file(tmp_path / "b\x1b[31m.yaml")


def test_what_is_no_regular_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "folder.yaml").mkdir()
    assert 'got "a folder", need a file' in refused_file(tmp_path / "folder.yaml")
    (tmp_path / "device.yaml").symlink_to("/dev/zero")
    assert "need a regular file" in refused_file(tmp_path / "device.yaml")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket.yaml"))
        assert "need a regular file" in refused_file(tmp_path / "socket.yaml")
    (tmp_path / "loop.yaml").symlink_to(tmp_path / "loop.yaml")
    assert "need a file that can be read" in refused_file(tmp_path / "loop.yaml")
    (tmp_path / "dangling.yaml").symlink_to(tmp_path / "gone")
    assert "need an existing file" in refused_file(tmp_path / "dangling.yaml")


def test_a_pipe_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    # In a process of its own, so that a reader that blocks fails instead of hanging the tests.
    command = [sys.executable, "-c", MEASURE_PEAK, str(tmp_path / "pipe.yaml")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert "need a regular file" in done.stderr


def test_a_pipe_that_replaces_the_file_between_two_looks_does_not_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, pipe = tmp_path / "a.yaml", tmp_path / "pipe"
    file.write_text("a: 1")
    os.mkfifo(pipe)
    really_open = os.open

    def open_the_pipe(name: str, flags: int) -> int:
        # Without this flag the call below would wait for a writer for ever.
        assert flags & os.O_NONBLOCK
        return really_open(pipe, flags)

    monkeypatch.setattr(os, "open", open_the_pipe)
    assert "need a regular file" in refused_file(file)


def test_an_impossible_name_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name in ("a\0b.yaml", "x" * 5000 + ".yaml", str(tmp_path / "file" / "a.yaml")):
        assert "need a" in refused_file(name)


def test_an_unreadable_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.yaml").write_text("a: 1")

    def denied(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    # The owner of the tests may be root, whom a file mode does not stop.
    monkeypatch.setattr(os, "open", denied)
    assert 'got "permission denied", need a file that can be read' in refused_file(
        tmp_path / "a.yaml"
    )


def test_an_over_large_file_is_refused_unread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (tmp_path / "a.yaml").open("wb") as stream:
        stream.truncate(text.LARGEST_FILE_BYTES + 1)
    monkeypatch.delattr(os, "read")
    assert "need a file of at most 8388608 bytes" in refused_file(tmp_path / "a.yaml")


def test_a_file_that_grows_while_it_is_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.yaml").write_text("a: 1")
    monkeypatch.setattr(os, "read", lambda _, size: b" " * size)
    assert "need a file of at most 8388608 bytes" in refused_file(tmp_path / "a.yaml")


@pytest.mark.parametrize("error", [RecursionError, MemoryError])
@pytest.mark.parametrize("kind", FORMATS)
def test_running_out_of_room_is_reported_like_any_problem(
    error: type[Exception], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(text, f"read_{kind}", fail)
    assert "need a file that fits into memory" in str(refused("a", kind))


PIECES = [
    *"[]{},:-?#&*!|>%@`\"' \n\t\\a1.eE+",
    *["a: ", "- ", "\n  ", "\n- ", "b: 1\n", "--- ", "\n...\n", "? ", "<<: ", "&x ", "*x ", "!t "],
    *["true", "null", "NaN", '"a"', '"b":', "[1]", "\\u00", "\\ud800", "%TAG "],
]
ANYTHING = (
    st.binary(max_size=200)
    | st.text(max_size=200)
    | st.lists(st.sampled_from(PIECES), max_size=60).map("".join)
    | st.text(st.characters(codec="utf-8"), max_size=50).map(lambda s: f"a: [{s}]")
    | st.text(st.characters(codec="utf-8"), max_size=50).map(lambda s: f'{{"a": "{s}"}}')
)


def is_a_document_or_a_readable_refusal(source: str | bytes, kind: str) -> bool:
    try:
        document = parse_document(source, file="app", format=kind)
    except InvalidInput as error:
        lines = str(error).split("\n")
        return len(lines) == len(error.defects) > 0 and all(line.isprintable() for line in lines)
    return isinstance(document, Document) and isinstance(document.line_of(""), int)


@settings(deadline=None, max_examples=300)
@given(source=ANYTHING, kind=st.sampled_from(FORMATS))
def test_anything_is_read_or_refused(source: str | bytes, kind: str) -> None:
    assert is_a_document_or_a_readable_refusal(source, kind)


@pytest.mark.slow
@settings(deadline=None, max_examples=10_000)
@given(source=ANYTHING, kind=st.sampled_from(FORMATS))
def test_anything_at_all_is_read_or_refused(source: str | bytes, kind: str) -> None:
    assert is_a_document_or_a_readable_refusal(source, kind)
