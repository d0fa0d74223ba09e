"""Round-trip matrices from files: what is read, and how everything else is refused."""

from __future__ import annotations

import io
import os
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from thalweg.errors import InvalidInput
from thalweg.files import latency_matrix
from thalweg.files.latency_matrix import MOST_CSV_NODES, MOST_NODES, load_rtt_matrix

MATRIX_MS = np.array([[0.0, 20.0, np.nan], [22.0, 0.0, 5.0], [7.5, 5.0, 0.0]])


def npy_bytes(array: np.ndarray, *, allow_pickle: bool = False) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=allow_pickle)
    return stream.getvalue()


def header_only(descr: str, shape: tuple[int, ...]) -> bytes:
    """A .npy file that promises an array and holds no data."""
    stream = io.BytesIO()
    header = {"descr": descr, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, header)
    return stream.getvalue()


def refused(path: Path, unit: str | None = None) -> str:
    with pytest.raises(InvalidInput) as caught:
        load_rtt_matrix(path, unit=unit)
    assert all(defect.rule for defect in caught.value.defects)
    return str(caught.value)


@pytest.mark.parametrize(("name", "factor"), [("rtt_s", 1.0), ("rtt_ms", 1e-3), ("rtt_us", 1e-6)])
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz_is_read_in_the_unit_that_its_array_name_tells(tmp_path, save, name, factor) -> None:
    save(tmp_path / "m.npz", **{name: MATRIX_MS, "hosts": np.array(["a", "b", "c"])})
    got = load_rtt_matrix(tmp_path / "m.npz")
    assert got.dtype == np.float64
    np.testing.assert_allclose(got, MATRIX_MS * factor, rtol=1e-15)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.uint8, ">f8"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_npy_of_any_real_type_and_order_is_read_in_the_unit_given(tmp_path, dtype, order) -> None:
    matrix = np.array([[0, 20, 3], [22, 0, 5], [7, 6, 0]]).astype(dtype, order=order)
    np.save(tmp_path / "m.npy", matrix)
    got = load_rtt_matrix(tmp_path / "m.npy", unit="ms")
    np.testing.assert_allclose(got, matrix.astype(float) * 1e-3, rtol=1e-15)


def test_csv_is_read_with_empty_cells_as_not_measured(tmp_path) -> None:
    (tmp_path / "m.CSV").write_text("\ufeff0, 20,\r\n22,0,5.0\r\n\r\n7.5,5,nan\r\n", "utf-8")
    got = load_rtt_matrix(tmp_path / "m.CSV", unit="ms")
    wanted = [[0, 0.02, np.nan], [0.022, 0, 0.005], [0.0075, 0.005, np.nan]]
    np.testing.assert_allclose(got, wanted, rtol=1e-15)


def test_the_unit_may_be_repeated_for_an_npz_but_not_contradicted(tmp_path) -> None:
    np.savez(tmp_path / "m.npz", rtt_ms=MATRIX_MS)
    assert load_rtt_matrix(tmp_path / "m.npz", unit="ms").shape == (3, 3)
    assert 'unit: got "s", need the unit "ms"' in refused(tmp_path / "m.npz", unit="s")


@pytest.mark.parametrize("name", ["m.npy", "m.csv"])
def test_a_format_without_units_needs_one(tmp_path, name) -> None:
    (tmp_path / name).write_bytes(b"")
    message = refused(tmp_path / name)
    assert "unit: got nothing" in message
    assert "Hint: name the unit" in message


def test_an_unknown_unit_is_refused(tmp_path) -> None:
    assert 'unit: got "parsec", need a unit of time: s, ms, us' in refused(
        tmp_path / "m.npy", unit="parsec"
    )


def test_a_missing_file_is_refused_with_its_nearest_neighbour(tmp_path) -> None:
    np.savez(tmp_path / "planetlab.npz", rtt_ms=MATRIX_MS)
    message = refused(tmp_path / "planetlob.npz")
    assert message.startswith(str(tmp_path / "planetlob.npz"))
    assert 'did you mean "planetlab.npz"?' in message


def test_a_missing_folder_a_folder_and_a_pipe_are_refused(tmp_path) -> None:
    assert "its folder does not exist" in refused(tmp_path / "nowhere" / "m.npz")
    (tmp_path / "folder.npz").mkdir()
    assert 'got "a folder", need a file' in refused(tmp_path / "folder.npz")
    os.mkfifo(tmp_path / "pipe.npz")
    assert "need a regular file" in refused(tmp_path / "pipe.npz")


def test_other_endings_and_impossible_names_are_refused(tmp_path) -> None:
    assert 'got ".xlsx", need a file name that ends in .npz, .npy, .csv' in refused(
        tmp_path / "m.xlsx"
    )
    assert "need a file name" in refused(tmp_path / "matrix")
    assert "\x1b" not in refused(tmp_path / "red\x1b[31m.npz")
    with pytest.raises(InvalidInput):
        load_rtt_matrix("nul\0.npz")


@pytest.mark.parametrize(
    ("arrays", "wanted"),
    [
        ({"latency": MATRIX_MS}, 'rename "latency": the name tells the unit'),
        ({"rtt_ms": MATRIX_MS, "rtt_s": MATRIX_MS}, 'got "arrays named rtt_ms, rtt_s", need one'),
        ({}, 'got "no array", need one array named'),
    ],
)
def test_an_archive_without_exactly_one_matrix_is_refused(tmp_path, arrays, wanted) -> None:
    np.savez(tmp_path / "m.npz", **arrays)
    assert wanted in refused(tmp_path / "m.npz")


@pytest.mark.parametrize(
    ("array", "wanted"),
    [
        (np.zeros((3, 4)), 'got "shape (3, 4)", need a square matrix'),
        (np.zeros(9), "need a square matrix"),
        (np.zeros((2, 2, 2)), "need a square matrix"),
        (np.float64(3.0), "need a square matrix"),
        (np.zeros((1, 1)), f'got "1 nodes", need a matrix of 2 to {MOST_NODES} nodes'),
        (np.zeros((0, 0)), 'got "0 nodes"'),
        (np.zeros((2, 2), dtype=complex), 'got "an array of complex128", need an array of real'),
        (np.zeros((2, 2), dtype=bool), "need an array of real numbers"),
        (np.array([["a", "b"], ["c", "d"]]), "need an array of real numbers"),
        (np.zeros((2, 2), dtype=[("rtt", float)]), "need an array of real numbers"),
        (np.zeros((2, 2), dtype="m8[ms]"), "need an array of real numbers"),
    ],
)
def test_arrays_that_are_no_matrix_of_numbers_are_refused(tmp_path, array, wanted) -> None:
    (tmp_path / "m.npy").write_bytes(npy_bytes(array))
    np.savez(tmp_path / "m.npz", rtt_ms=array)
    assert wanted in refused(tmp_path / "m.npy", unit="ms")
    assert "m.npz: rtt_ms: " in refused(tmp_path / "m.npz")


class Explosive:
    """Leaves a trace when it is unpickled."""

    def __reduce__(self):
        return os.mkdir, ("unpickled",)


def test_object_arrays_are_refused_without_unpickling_them(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    array = np.full((2, 2), Explosive(), dtype=object)
    (tmp_path / "m.npy").write_bytes(npy_bytes(array, allow_pickle=True))
    (tmp_path / "raw.npy").write_bytes(pickle.dumps(Explosive()))
    assert "objects, text and truth values are not read" in refused(tmp_path / "m.npy", unit="s")
    assert "need a whole .npy file" in refused(tmp_path / "raw.npy", unit="s")
    assert not (tmp_path / "unpickled").exists()


def test_a_promise_of_too_many_numbers_is_refused_before_they_are_read(tmp_path) -> None:
    lie = header_only("<f8", (10**9, 10**9))
    (tmp_path / "m.npy").write_bytes(lie)
    assert "1000000000 nodes" in refused(tmp_path / "m.npy", unit="s")
    with zipfile.ZipFile(tmp_path / "m.npz", "w") as archive:
        archive.writestr("rtt_s.npy", lie)
    assert "1000000000 nodes" in refused(tmp_path / "m.npz")


def test_files_cut_short_or_of_another_kind_are_refused(tmp_path) -> None:
    whole = npy_bytes(MATRIX_MS)
    (tmp_path / "m.npy").write_bytes(whole[:-8])
    assert "need a whole .npy file that can be read" in refused(tmp_path / "m.npy", unit="s")
    np.savez(tmp_path / "m.npz", rtt_s=MATRIX_MS)
    archive = (tmp_path / "m.npz").read_bytes()
    for contents in (b"", b"rtt", whole, archive[:-30]):
        (tmp_path / "m.npz").write_bytes(contents)
        assert "need a NumPy archive of arrays (.npz)" in refused(tmp_path / "m.npz")


def test_all_defects_of_a_csv_are_named_with_line_and_column(tmp_path) -> None:
    (tmp_path / "m.csv").write_text("0,1,2\n1,zero,2\n\n1,2\n")
    assert refused(tmp_path / "m.csv", unit="ms").splitlines() == [
        f'{tmp_path}/m.csv:2: column 2: got "zero", need a number, or nothing where not measured',
        f'{tmp_path}/m.csv:4: got "2 cells", need 3 cells, as there are 3 rows',
    ]


def test_a_csv_that_is_not_text_too_large_or_too_wide_is_refused(tmp_path, monkeypatch) -> None:
    path = tmp_path / "m.csv"
    path.write_bytes(b"1,\xff\n2,3\n")
    assert "need a whole .csv file" in refused(path, unit="s")
    path.write_text("," * 100_000 + "\n" + "1,2\n")
    assert '"100001 cells", need 2 cells' in refused(path, unit="s")
    path.write_text("1\n" * (2 * MOST_NODES))
    assert f"need 2 to {MOST_CSV_NODES} rows in a .csv file" in refused(path, unit="s")
    path.write_text(("x," * 39 + "x\n") * 40)
    assert len(refused(path, unit="s").splitlines()) == 20
    monkeypatch.setattr(latency_matrix, "LARGEST_CSV_BYTES", 100)
    assert 'got "3200 bytes", need a .csv file of at most 100 bytes' in refused(path, unit="s")


def seeds() -> list[tuple[str, bytes]]:
    archive = io.BytesIO()
    np.savez_compressed(archive, rtt_ms=MATRIX_MS)
    return [
        ("m.npz", archive.getvalue()),
        ("m.npy", npy_bytes(MATRIX_MS)),
        ("m.csv", b"0,1,2\n3,0,4\n5,6,0\n"),
    ]


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    seed=st.sampled_from(seeds()),
    changes=st.lists(st.tuples(st.integers(0, 2000), st.binary(max_size=3)), max_size=4),
)
def test_a_damaged_file_is_read_or_refused_and_nothing_else(tmp_path, seed, changes) -> None:
    name, contents = seed
    damaged = bytearray(contents)
    for at, new in changes:
        at %= len(damaged) + 1
        damaged[at : at + len(new)] = new
    path = tmp_path / name
    path.write_bytes(bytes(damaged))
    try:
        got = load_rtt_matrix(path, unit=None if name == "m.npz" else "ms")
    except InvalidInput as error:
        assert str(path) in str(error)
    else:
        assert got.dtype == np.float64
        assert got.shape[0] == got.shape[1] >= 2
