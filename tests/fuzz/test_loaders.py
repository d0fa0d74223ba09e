"""Every loader, given files that are damaged: it loads them, or says in words why not."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

from fuzz.damage import NAMES, damage_file, files_below
from fuzz.good_files import write_documents, write_matrices, write_networks, write_tables
from thalweg.errors import InvalidInput
from thalweg.files.latency_matrix import load_rtt_matrix
from thalweg.files.load import (
    load_any,
    load_application,
    load_changes,
    load_network,
    load_plan,
    load_workload,
)
from thalweg.files.routes_reader import load_routes
from thalweg.files.sample_table import load_births, load_service_times
from thalweg.files.tracks_reader import load_tracks
from thalweg.files.transitions_table import load_transitions
from thalweg.files.workload_curve import read_demand_curve
from thalweg.scenarios.rides import read_rides

# Not a measure of speed: what takes this long hangs.
HANGS_AFTER_S = 30
LONGEST_LINE = 700
CASES, MANY_CASES = 40, 800


def load_filled(path: Path) -> Any:
    """Tracks with their gaps filled."""
    return load_tracks(path, gaps="fill")


def load_named_matrix(path: Path) -> Any:
    """A matrix whose file has no place for the unit."""
    return load_rtt_matrix(path, unit="ms")


# The file or folder, who reads it, and which files beside it belong to it.
LOADERS: list[tuple[str, Callable[[Path], Any], tuple[str, ...]]] = [
    ("app.yaml", load_application, ()),
    ("app.json", load_application, ()),
    *((f"network-{k}.{end}", load_network, ()) for k in range(4) for end in ("yaml", "json")),
    *((name, load_network, ()) for name in ("city", "mesh-folder", "coordinates-folder")),
    ("links-folder", load_network, ()),
    ("plan.json", load_plan, ()),
    ("plan.json", load_any, ()),
    *((f"days.{end}", load_workload, ()) for end in ("yaml", "csv", "parquet")),
    ("days.csv", load_any, ()),
    ("changes.yaml", load_changes, ("plan.json",)),
    ("changes.json", load_changes, ("plan.json",)),
    ("tracks.csv", load_filled, ()),
    ("traced/tracks.parquet", load_filled, ()),
    ("traced/tracks.parquet", load_tracks, ()),
    ("traced/routes.parquet", load_routes, ("traced/edges.parquet",)),
    ("transitions.parquet", load_transitions, ()),
    *((f"births.{end}", load_births, ()) for end in ("csv", "parquet")),
    *((f"times.{end}", load_service_times, ()) for end in ("csv", "parquet")),
    ("curve.csv", read_demand_curve, ()),
    ("trips.parquet", read_rides, ()),
    ("rtt.npz", load_rtt_matrix, ()),
    ("packed.npz", load_rtt_matrix, ()),
    ("rtt.npy", load_named_matrix, ()),
    ("rtt.csv", load_named_matrix, ()),
]
NAMED = [f"{name}-{load.__name__}" for name, load, _ in LOADERS]


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a file of every kind."""
    folder = tmp_path_factory.mktemp("good")
    for write in (write_documents, write_tables, write_matrices, write_networks):
        write(folder)
    return folder


@contextmanager
def not_for_ever() -> Iterator[None]:
    """Raises `TimeoutError` where a case hangs, so that one is told by its number."""

    fired: list[int] = []

    def end(number: int, _frame: FrameType | None) -> None:
        fired.append(number)
        raise TimeoutError(f"no answer within {HANGS_AFTER_S} s")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(HANGS_AFTER_S)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    if fired:
        # Whoever hung may have taken it for an error of a disk.
        raise TimeoutError(f"no answer within {HANGS_AFTER_S} s")


def require_words(error: InvalidInput, folder: Path) -> None:
    """The error is for people: short printable lines, one for each defect, and not many."""
    assert 0 < len(error.defects) <= 1_000
    lines = str(error).split("\n")
    assert len(lines) == len(error.defects)
    for line in lines:
        assert line.isprintable(), ascii(line)
        short = line.replace(str(folder), "")
        assert len(short) <= LONGEST_LINE, short
    assert all(defect.rule for defect in error.defects)


def load_or_refuse(load: Callable[[Path], Any], path: Path, folder: Path) -> bool:
    """Whether a file is loaded; where it is not, that is told as it should be."""
    with not_for_ever():
        try:
            load(path)
        except InvalidInput as error:
            require_words(error, folder)
            return False
    return True


def check_cases(
    good: Path, name: str, load: Callable[[Path], Any], beside: tuple[str, ...], numbers: range
) -> None:
    for number in numbers:
        folder = good.with_name(f"{good.name}-spoilt")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for each in (name, *beside):
            (folder / each).parent.mkdir(exist_ok=True)
            copy = shutil.copytree if (good / each).is_dir() else shutil.copyfile
            copy(good / each, folder / each)
        rng = np.random.default_rng([number, *name.encode()])
        among = [file for each in (name, *beside) for file in files_below(folder / each)]
        damage_file(rng, among[int(rng.integers(len(among)))])
        try:
            load_or_refuse(load, folder / name, folder)
        except Exception as error:
            error.add_note(f"case {number} of {name}")
            raise


@pytest.mark.parametrize(("name", "load", "beside"), LOADERS, ids=NAMED)
def test_what_is_whole_is_loaded(good: Path, name: str, load, beside):
    assert load_or_refuse(load, good / name, good)


@pytest.mark.parametrize(("name", "load", "beside"), LOADERS, ids=NAMED)
def test_what_is_damaged_is_loaded_or_refused_in_words(good: Path, name: str, load, beside):
    check_cases(good, name, load, beside, range(CASES))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "load", "beside"), LOADERS, ids=NAMED)
def test_much_that_is_damaged_is_loaded_or_refused_in_words(good: Path, name: str, load, beside):
    check_cases(good, name, load, beside, range(CASES, CASES + MANY_CASES))


@pytest.mark.parametrize("load", sorted({load for _, load, _ in LOADERS}, key=str))
def test_no_path_is_too_strange_to_be_refused(tmp_path: Path, load):
    for name in NAMES:
        for ending in ("", ".yaml", ".json", ".csv", ".parquet", ".npz"):
            try:
                load(f"{tmp_path}/{name}{ending}")
            except InvalidInput as error:
                # A name from the command line is told in full, however long it is.
                if len(name) < 1_000:
                    require_words(error, tmp_path)


def test_every_loader_of_the_package_is_here():
    """A new public loader of files has to join the ones above."""
    source = Path(__file__).parents[2] / "src" / "thalweg" / "files"
    public = {
        line.removeprefix("def ").partition("(")[0]
        for file in source.glob("*.py")
        for line in file.read_text().splitlines()
        if line.startswith("def load_")
    }
    # Each of these is the inner half of one that is here.
    public -= {"load_network_folder", "load_workload_table", "load_model"}
    used = {load.__name__ for _, load, _ in LOADERS} | {"load_rtt_matrix", "load_tracks"}
    assert public <= used
