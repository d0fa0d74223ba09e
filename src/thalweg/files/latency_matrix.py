"""Measured round-trip matrices from files: `.npz`, `.npy` and `.csv`.

A `.npz` file holds the matrix under a name that tells its unit, such as `rtt_ms`. The other two
formats have no place for a unit, so the caller has to name it. A `.csv` file has one row per line
and no heading; an empty cell, like NaN or 0 everywhere, means "not measured".
"""

from __future__ import annotations

import os
import stat
import tokenize
import warnings
import zipfile
import zlib
from itertools import islice
from pathlib import Path
from typing import IO, NoReturn

import numpy as np
from numpy.typing import NDArray

from thalweg.errors import Defect, InvalidInput, nearest
from thalweg.units import DURATION

FloatArray = NDArray[np.float64]

# Keeps a hostile file harmless: a few hundred bytes of zip can promise terabytes of zeros.
MOST_NODES = 5_000
# Text is read cell by cell; beyond this it takes longer than anyone waits for an error.
MOST_CSV_NODES = 1_000
LARGEST_CSV_BYTES = 16 * 1024 * 1024

_UNITS = ("s", "ms", "us")
_UNIT_OF_ARRAY = {f"rtt_{unit}": unit for unit in _UNITS}
_ARRAY = "rtt_ms"
_SUFFIXES = (".npz", ".npy", ".csv")
_MOST_CELLS_SHOWN = 20
# What the readers of zip, of NumPy's format and of its header (Python syntax) raise for bad bytes.
_BROKEN = (
    ValueError,
    EOFError,
    OSError,
    RuntimeError,
    SyntaxError,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)


def load_rtt_matrix(path: str | os.PathLike[str], *, unit: str | None = None) -> FloatArray:
    """The (n, n) matrix of round trips in a file, in seconds.

    `unit` ("s", "ms" or "us") is needed for `.npy` and `.csv`, and refused for a `.npz` file whose
    array name says otherwise. Which numbers make sense is for `fit_coordinates` to judge.

    Raises:
        InvalidInput: with the file, the rule that it breaks and a hint, whatever the file is.
    """
    file = os.fspath(path)
    suffix = Path(file).suffix.lower()
    if suffix not in _SUFFIXES:
        _refuse(file, suffix or None, "a file name that ends in " + ", ".join(_SUFFIXES))
    if unit is not None and unit not in _UNITS:
        _refuse(file, unit, "a unit of time: " + ", ".join(_UNITS), path="unit")
    if unit is None and suffix != ".npz":
        hint = f'name the unit, e.g. "ms", or save a .npz file with an array named "{_ARRAY}"'
        _refuse(file, None, f"the unit of the numbers in a {suffix} file", hint, path="unit")
    _require_regular_file(file)
    try:
        with warnings.catch_warnings():
            # NumPy warns of headers that look as if Python 2 had written them.
            warnings.simplefilter("ignore")
            matrix, unit = _READERS[suffix](file, unit or "")
    except MemoryError:
        _refuse(file, "more numbers than fit into memory", "a smaller matrix")
    except _BROKEN as error:
        _refuse(file, _first_line(error), f"a whole {suffix} file that can be read")
    return np.asarray(matrix * DURATION.units[unit], dtype=np.float64)


def _require_regular_file(file: str) -> None:
    """Refuse what is not there and what could block, before it is opened."""
    try:
        mode = Path(file).stat().st_mode
    except FileNotFoundError:
        _refuse(file, None, "an existing file", _neighbour_hint(file))
    except (OSError, ValueError) as error:
        _refuse(file, _first_line(error), "a file that can be read")
    if stat.S_ISDIR(mode):
        _refuse(file, "a folder", "a file")
    if not stat.S_ISREG(mode):
        _refuse(file, "a pipe, socket or device", "a regular file")


def _neighbour_hint(file: str) -> str:
    try:
        beside = islice(Path(file).parent.iterdir(), 2000)
        names = sorted(p.name for p in beside if p.suffix.lower() in _SUFFIXES)
    except (OSError, ValueError):
        return "its folder does not exist either"
    return nearest(Path(file).name, [name for name in names if name.isprintable()])


def _read_npz(file: str, unit: str) -> tuple[FloatArray, str]:
    if not zipfile.is_zipfile(file):
        hint = "numpy.savez writes one"
        _refuse(file, "other contents", "a NumPy archive of arrays (.npz)", hint)
    with zipfile.ZipFile(file) as archive:
        names = [entry.removesuffix(".npy") for entry in archive.namelist()]
        known = [name for name in names if name in _UNIT_OF_ARRAY]
        rule = "one array named " + " or ".join(f'"{name}"' for name in _UNIT_OF_ARRAY)
        if len(known) != 1:
            hint = "the name tells the unit"
            if not known and names and names[0].isprintable():
                hint = f'rename "{names[0][:40]}": the name tells the unit'
            shown = ", ".join(name[:40] for name in known or names[:8])
            _refuse(file, f"arrays named {shown}" if shown else "no array", rule, hint)
        name = known[0]
        if unit not in ("", _UNIT_OF_ARRAY[name]):
            hint = f'the array is named "{name}", so leave the unit out'
            _refuse(file, unit, f'the unit "{_UNIT_OF_ARRAY[name]}"', hint, path="unit")
        with archive.open(f"{name}.npy") as stream:
            return _read_array(stream, file, name), _UNIT_OF_ARRAY[name]


def _read_npy(file: str, unit: str) -> tuple[FloatArray, str]:
    with Path(file).open("rb") as stream:
        return _read_array(stream, file, ""), unit


def _read_array(stream: IO[bytes], file: str, name: str) -> FloatArray:
    """The array in a `.npy` stream; its header is judged before any of its data is read."""
    version = np.lib.format.read_magic(stream)
    if version != (1, 0):
        # Later versions allow headers of gigabytes, which a matrix of numbers never needs.
        _refuse(file, f"version {version[0]}.{version[1]}", "a .npy array of version 1.0")
    shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
    if dtype.kind not in "fiu":
        hint = "objects, text and truth values are not read"
        _refuse(file, f"an array of {dtype}", "an array of real numbers", hint, path=name)
    if len(shape) != 2 or shape[0] != shape[1]:
        _refuse(file, f"shape {shape}", "a square matrix, one row per node", path=name)
    _require_size(shape[0], file, name)
    stream.seek(0)
    with np.errstate(all="ignore"):
        matrix = np.lib.format.read_array(stream, allow_pickle=False)
        return np.asarray(matrix, dtype=np.float64)


def _read_csv(file: str, unit: str) -> tuple[FloatArray, str]:
    size = Path(file).stat().st_size
    if size > LARGEST_CSV_BYTES:
        rule = f"a .csv file of at most {LARGEST_CSV_BYTES} bytes"
        _refuse(file, f"{size} bytes", rule, f'save it as .npz with an array named "{_ARRAY}"')
    with Path(file).open(encoding="utf-8-sig") as stream:
        filled = ((at, line) for at, line in enumerate(stream, start=1) if line.strip())
        lines = list(islice(filled, MOST_CSV_NODES + 1))
    nodes = len(lines)
    if not 2 <= nodes <= MOST_CSV_NODES:
        shown = f"more than {MOST_CSV_NODES} rows" if nodes > MOST_CSV_NODES else f"{nodes} rows"
        rule = f"2 to {MOST_CSV_NODES} rows in a .csv file"
        _refuse(file, shown, rule, f'save it as .npz with an array named "{_ARRAY}"')
    defects: list[Defect] = []
    shown = _printable(file)
    matrix = np.full((nodes, nodes), np.nan)
    for row, (at, line) in enumerate(lines):
        if len(defects) >= _MOST_CELLS_SHOWN:
            break
        width = line.count(",") + 1
        if width != nodes:
            rule = f"{nodes} cells, as there are {nodes} rows"
            defects.append(Defect(file=shown, line=at, path="", value=f"{width} cells", rule=rule))
            continue
        for column, cell in enumerate(line.split(",")):
            try:
                matrix[row, column] = float(cell) if cell.strip() else np.nan
            except ValueError:
                place = f"column {column + 1}"
                rule = "a number, or nothing where not measured"
                found = Defect(file=shown, line=at, path=place, value=cell.strip(), rule=rule)
                defects.append(found)
    if defects:
        raise InvalidInput(defects[:_MOST_CELLS_SHOWN])
    return matrix, unit


_READERS = {".npz": _read_npz, ".npy": _read_npy, ".csv": _read_csv}


def _require_size(nodes: int, file: str, name: str) -> None:
    if not 2 <= nodes <= MOST_NODES:
        _refuse(file, f"{nodes} nodes", f"a matrix of 2 to {MOST_NODES} nodes", path=name)


def _first_line(error: Exception) -> str:
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return str(reason).splitlines()[0].lower()


def _refuse(file: str, value: object, rule: str, hint: str = "", path: str = "") -> NoReturn:
    found = Defect(file=_printable(file), path=path, value=value, rule=rule, hint=hint)
    raise InvalidInput([found]) from None


def _printable(file: str) -> str:
    return file if file.isprintable() else ascii(file)
