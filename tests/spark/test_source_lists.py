"""Lists of files that a query has read: what is gone goes, what is there or was just read stays."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thalweg.spark.query import source_lists
from thalweg.spark.query.source_lists import SourceLists

KEPT = 100


def entry(file: Path, batch: int) -> str:
    return json.dumps({"path": file.as_uri(), "timestamp": 1, "batchId": batch})


def make_list(checkpoint: Path, number: int, lines: list[str], version: str = "v1") -> Path:
    file = checkpoint / "sources" / "0" / f"{number}.compact"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join([version, *lines]))
    file.with_name(f".{file.name}.crc").write_bytes(b"sum")
    return file


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 219), st.booleans()), max_size=40))
def test_exactly_what_is_old_and_gone_is_left_out(
    tmp_path_factory: pytest.TempPathFactory, taken: list[tuple[int, bool]]
) -> None:
    folder = tmp_path_factory.mktemp("run")
    (folder / "rows of 100 %").mkdir()
    lines, wanted = [], []
    for place, (batch, is_there) in enumerate(sorted(taken)):
        file = folder / "rows of 100 %" / f"{place}.parquet"
        lines.append(entry(file, batch))
        if is_there:
            file.touch()
        if is_there or batch > 219 - KEPT:
            wanted.append(lines[-1])
    file = make_list(folder, 219, lines)
    SourceLists(folder).shorten(220)
    assert file.read_text().split("\n") == ["v1", *wanted]
    # A checksum that does not fit would make the list unreadable.
    assert file.with_name(f".{file.name}.crc").exists() == (wanted == lines)
    assert {f.name for f in file.parent.iterdir()} <= {file.name, f".{file.name}.crc"}


def test_only_the_newest_whole_list_is_touched_and_once(tmp_path: Path) -> None:
    gone = [entry(tmp_path / "gone", 0), entry(tmp_path / "last", 209)]
    old, new = make_list(tmp_path, 199, gone), make_list(tmp_path, 209, gone)
    (old.parent / "210").write_text("v1")
    lists = SourceLists(tmp_path)
    lists.shorten(1)
    assert len(new.read_text().split("\n")) == 3
    lists.shorten(10)
    assert len(old.read_text().split("\n")) == 3
    assert new.read_text().split("\n") == ["v1", gone[1]]
    again = make_list(tmp_path, 209, gone)
    lists.shorten(20)
    assert len(again.read_text().split("\n")) == 3


@pytest.mark.parametrize(
    ("version", "lines"),
    [("v2", [entry(Path("/gone"), 0)]), ("v1", ["{"]), ("v1", ["[]"]), ("v1", ['{"batchId": 0}'])],
)
def test_what_is_not_understood_is_left_alone(
    tmp_path: Path, version: str, lines: list[str]
) -> None:
    file = make_list(tmp_path, 209, lines, version)
    before = file.read_text()
    SourceLists(tmp_path).shorten(0)
    assert file.read_text() == before


def test_files_elsewhere_than_on_this_machine_stay(tmp_path: Path) -> None:
    far = json.dumps({"path": "hdfs://there/rows/0.parquet", "timestamp": 1, "batchId": 0})
    file = make_list(tmp_path, 209, [far])
    SourceLists(tmp_path).shorten(0)
    assert far in file.read_text()


def test_a_disk_that_fails_leaves_the_list_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "no space")

    file = make_list(tmp_path, 209, [entry(tmp_path / "gone", 0)])
    before = file.read_text()
    monkeypatch.setattr(source_lists.Disk, "sync_file", refuse)
    SourceLists(tmp_path).shorten(0)
    assert file.read_text() == before
    assert len(list(file.parent.iterdir())) == 2


def test_a_query_without_lists_has_none_to_shorten(tmp_path: Path) -> None:
    SourceLists(tmp_path / "none").shorten(0)
    assert not (tmp_path / "none").exists()
