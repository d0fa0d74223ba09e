"""Files that promise little and unpack to much, that name paths, or that point elsewhere."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import zipfile
from contextlib import suppress
from io import BytesIO
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fuzz.damage import NAMES, files_below
from fuzz.good_files import STORED, write_documents, write_run
from fuzz.test_loaders import not_for_ever
from thalweg.cli.entry import run
from thalweg.errors import InvalidInput, ThalwegError
from thalweg.files.latency_matrix import load_rtt_matrix
from thalweg.files.parquet_footer import count_values
from thalweg.model.names import LONGEST_NAME
from thalweg.web.opening import open_subjects

MOST_BYTES = 2**30
_LONG = "x" * 1_000_000


def write_npz(file: Path, members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, contents in members.items():
            archive.writestr(name, contents)
    return file


def npy(array: np.ndarray) -> bytes:
    stream = BytesIO()
    np.save(stream, array)
    return stream.getvalue()


@pytest.mark.parametrize("name", ["../rtt_ms.npy", "/tmp/rtt_ms.npy", "..\\rtt_ms.npy"])  # noqa: S108
def test_members_of_archives_that_name_paths_are_not_unpacked(tmp_path: Path, name: str):
    inner = tmp_path / "inner"
    inner.mkdir()
    file = write_npz(inner / "slip.npz", {name: npy(np.ones((2, 2)))})
    with pytest.raises(InvalidInput, match="one array named"):
        load_rtt_matrix(file)
    both = write_npz(inner / "both.npz", {name: b"x", "rtt_ms.npy": npy(np.ones((2, 2)))})
    assert load_rtt_matrix(both).shape == (2, 2)
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["both.npz", "inner", "slip.npz"]


def write_bombs(folder: Path) -> list[str]:
    """Small files that unpack to gigabytes, and which loader is to open each."""
    header = npy(np.ones((2, 2)))[:128].replace(b"(2, 2)", b"(4999, 4999)")[:128]
    huge = header + bytes(2**20) * 64
    write_npz(folder / "bomb.npz", {"rtt_ms.npy": huge, "other.npy": bytes(2**26)})
    rows = 3_000_000
    long = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), [_LONG])
    texts = {"source": long, "site": long, "time_s": np.zeros(rows)}
    pq.write_table(pa.table(texts), folder / "births.parquet", compression="zstd")
    texts = {"t": np.zeros(rows), "vehicle": long, "x": np.zeros(rows), "y": np.zeros(rows)}
    pq.write_table(pa.table(texts), folder / "tracks.parquet", compression="zstd")
    results = folder / "results"
    results.mkdir()
    pq.write_table(
        pa.table({f"c{k}": long.slice(0, 1_000) for k in range(60)}), results / "a.parquet"
    )
    lists = pa.ListArray.from_arrays([0, 40_000_000], np.zeros(40_000_000, np.int8))
    pq.write_table(pa.table({"list": lists}), results / "b.parquet", compression="zstd")
    return ["bomb.npz", "births.parquet", "tracks.parquet", "results"]


_OPEN = r"""
import re, sys
from pathlib import Path
from thalweg.errors import InvalidInput, ThalwegError
from thalweg.files.latency_matrix import load_rtt_matrix
from thalweg.files.sample_table import load_births
from thalweg.files.tracks_reader import load_tracks
from thalweg.web.opening import open_subjects

folder = Path(sys.argv[1])

def show(place):
    (subject,) = open_subjects([place])
    for table in subject.results()["tables"]:
        print(table["name"], table["columns"][:1], sum(map(len, map(str, table["rows"]))) < 10**7)

for name, load in (
    ("bomb.npz", load_rtt_matrix),
    ("births.parquet", load_births),
    ("tracks.parquet", load_tracks),
    ("results", show),
):
    try:
        load(folder / name)
        print(name, "loaded")
    except InvalidInput as error:
        print(name, "refused", max(map(len, str(error).splitlines())) < 1000)
print(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1])
"""


def test_small_files_do_not_unpack_to_gigabytes(tmp_path: Path):
    names = write_bombs(tmp_path)
    for name in names:
        files = [tmp_path / name] if name != "results" else list((tmp_path / name).iterdir())
        assert all(file.stat().st_size < 4 * 2**20 for file in files)

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (120, 120))

    found = subprocess.run(
        [sys.executable, "-c", _OPEN, str(tmp_path)],
        capture_output=True,
        text=True,
        preexec_fn=limit,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    *lines, peak = found.stdout.split("\n")[:-1]
    assert "bomb.npz refused True" in lines
    assert "tracks.parquet refused True" in lines
    assert any(line.startswith("births.parquet") for line in lines)
    assert "a ['problem'] True" in lines
    assert "b ['problem'] True" in lines
    assert int(peak) * 1024 < MOST_BYTES, found.stdout


def test_a_footer_that_ends_arrow_is_refused_before(tmp_path: Path):
    """Arrow checks what a footer tells of a column where it cannot say so, and ends the process."""
    file = tmp_path / "rows.parquet"
    rows = {"name": ["a", "b"], "list": [[1, 2], [3]]}
    pq.write_table(pa.table(rows), file)
    contents = file.read_bytes()
    with file.open("rb") as opened:
        assert count_values(opened) == 5
    length = int.from_bytes(contents[-8:-4], "little")
    start = len(contents) - 8 - length
    for at in range(start, len(contents)):
        for flip in (1, 16, 128):
            spoilt = bytearray(contents)
            spoilt[at] ^= flip
            try:
                assert count_values(BytesIO(bytes(spoilt))) >= 0
            except ValueError as error:
                assert "footer" in str(error)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stored")
    for name, write in STORED.items():
        write(folder / name)
    return folder


LINKED = [
    *(("run", name) for name in ("application.json", "network.json", "timeline.jsonl")),
    ("run", "status.json"),
    *(("simulation", name) for name in ("application.json", "plan.json", "segments.parquet")),
    *(("simulation", name) for name in ("queues.parquet", "manifest.json", "nodes.parquet")),
    *(("city", name) for name in ("city.json", "static/costs.parquet")),
    *(("results", name) for name in ("rows.parquet", "inner/plot.png", "manifest.json")),
]


@pytest.mark.parametrize(("kind", "name"), LINKED)
def test_links_that_lead_out_of_a_folder_are_not_served(
    stored: Path, tmp_path: Path, kind: str, name: str
):
    folder, outside = tmp_path / kind, tmp_path / "outside"
    shutil.copytree(stored / kind, folder)
    outside.mkdir()
    secret = outside / Path(name).name
    shutil.move(folder / name, secret)
    (folder / name).symlink_to(secret)
    told = told_of(folder)
    whole = told_of(stored / kind)
    assert told != whole
    (folder / name).unlink()
    # As if it were not there; or refused, with the reason.
    assert told == told_of(folder) or "leads out of its folder" in told


def told_of(folder: Path) -> str:
    """All that a page tells of a folder, or why it is refused."""
    try:
        (subject,) = open_subjects([folder])
    except InvalidInput as error:
        return str(error)
    told = []
    asked = {"operator": "", "site": "cloud", "link": "", "placement": ""}
    for question in (subject.scene, subject.history, subject.city, subject.results):
        try:
            told.append(question())
        except Exception as error:
            told.append(type(error).__name__)
    told.append(
        [u and u.data["text"] for u in subject.updates(0) if "text" in u.data][-1:]
        if folder.name == "run"
        else subject.kind
    )
    told.append(subject.why(**asked)["title"] if folder.name == "run" else "")
    images = []
    for image in ("inner/plot.png", "../outside/plot.png", "/etc/passwd"):
        try:
            images.append(subject.image(image).name)
        except Exception as error:
            images.append(type(error).__name__)
    return json.dumps([told, images])


RUN_FILES = [
    *("run.json", "run.lock", "status.json", "history.json", "report.json", "decisions.jsonl"),
    *("application.json", "network.json", "timeline.jsonl", "plans/0001.json", "log/.log"),
    # These are there at times.
    *("journal.jsonl", "rebuild.json", "control/page", f"control/1-{'0' * 32}.request.json"),
]


def test_every_file_of_a_run_is_tried_as_a_pipe(stored: Path):
    """Those of its checkpoints and its log are tried in `tests/spark/test_foreign_folders.py`."""
    files = {str(file.relative_to(stored / "run")) for file in files_below(stored / "run")}
    assert files <= set(RUN_FILES)


@pytest.mark.parametrize("name", RUN_FILES)
def test_a_pipe_in_a_run_folder_makes_nobody_wait(stored: Path, tmp_path: Path, name: str, capfd):
    folder = tmp_path / "run"
    shutil.copytree(stored / "run", folder)
    (folder / name).unlink(missing_ok=True)
    (folder / name).parent.mkdir(exist_ok=True)
    os.mkfifo(folder / name)
    with not_for_ever():
        with suppress(ThalwegError):
            (subject,) = open_subjects([folder])
            subject.history()
        for verb in ("status", "rollback", "explain"):
            assert run([verb, str(folder)]) in (0, 2)
        for options in ([], ["--deep"], ["--repair"], ["--rebuild", "--yes"]):
            assert run(["doctor", str(folder), *options]) in (0, 1, 2)
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize("name", [name for name in NAMES if len(name) < 1_000])
def test_no_name_in_a_file_is_a_path(tmp_path: Path, name: str, capfd):
    """Names of applications, networks, sites, operators and plans are names, or refused."""
    folder = tmp_path / "above" / "here"
    folder.mkdir(parents=True)
    write_documents(folder)
    for file, place in (
        ("app.json", ("application",)),
        ("app.json", ("operators", 0, "name")),
        ("network-0.json", ("network",)),
        ("network-0.json", ("sites", 0, "name")),
        ("network-0.json", ("sites", 0, "nodes", 0, "name")),
        ("changes.json", ("changes", 1, "plan")),
    ):
        data = json.loads((folder / file).read_text())
        holder = data
        for step in place[:-1]:
            holder = holder[step]
        holder[place[-1]] = name
        (folder / "spoilt.json").write_text(json.dumps(data))
        files = [str(folder / f) for f in ("app.json", "network-0.json", "plan.json")]
        words = ["simulate", *files, "--changes", str(folder / "spoilt.json")]
        if file != "changes.json":
            words = ["validate", str(folder / "spoilt.json")]
        # Where a name is one, what refers to the old one may still be refused.
        is_word = name.isascii() and name.replace(".", "").isalnum() and name[:1] != "."
        is_word = is_word and len(name) <= LONGEST_NAME and file != "changes.json"
        assert run(words) in ((0, 2) if is_word else (2,)), (file, place)
    told = capfd.readouterr()
    assert all(row.isprintable() for row in (told.out + told.err).splitlines())
    assert [p.name for p in tmp_path.iterdir()] == ["above"]
    assert [p.name for p in (tmp_path / "above").iterdir()] == ["here"]


def test_the_plan_of_a_change_is_a_file_of_the_run(tmp_path: Path):
    folder = write_run(tmp_path / "run")
    timeline = (folder / "timeline.jsonl").read_text()
    shutil.copy(folder / "plans" / "0001.json", tmp_path / "secret.json")
    assert plan_of_first(folder) is not None
    for name in ("../../secret.json", str(tmp_path / "secret.json"), "..", "", "0001.json/.."):
        spoilt = timeline.replace('"0001.json"', json.dumps(name))
        assert spoilt != timeline
        (folder / "timeline.jsonl").write_text(spoilt)
        assert plan_of_first(folder) is None
    (folder / "timeline.jsonl").write_text(timeline)
    (folder / "plans" / "0001.json").unlink()
    (folder / "plans" / "0001.json").symlink_to(tmp_path / "secret.json")
    assert plan_of_first(folder) is None


def plan_of_first(folder: Path) -> object:
    """The plan behind the first cuts of a run, as its page knows it."""
    (subject,) = open_subjects([folder])
    first = next(iter(subject.history()["placements"]))
    return subject.find_placed(first).plan
