"""Is a file as it was written? By the checksum that Spark's file system keeps beside it.

`.NAME.crc` is beside a file NAME: a head, then a CRC-32 for every so many bytes of the file. Spark
refuses a file that does not fit it. A file without one is taken as it is.
"""

from __future__ import annotations

import os
import struct
import zlib
from pathlib import Path
from typing import BinaryIO

from thalweg.spark.deployment.health.guarded_files import open_regular, read_whole

_HEAD = struct.Struct(">4sI")
_SUM = struct.Struct(">I")
_MOST_BYTES = 1 << 30
_MOST_PIECE_BYTES = 1 << 20


def checksum_of(file: Path) -> Path:
    """Where the checksum of a file is, if it has one."""
    return file.with_name(f".{file.name}.crc")


def fault_of(file: Path) -> str:
    """What is wrong with the bytes of a file, in a few words; nothing where all is well.

    The checksums of a file of gigabytes are not compared.
    """
    try:
        with open_regular(file) as opened:
            size = os.fstat(opened.fileno()).st_size
            if not size:
                return "is empty"
            sums = _sums_of(file) if size <= _MOST_BYTES else None
            good = sums is None or fits(opened, sums)
            return "" if good else "is torn: its checksum does not fit"
    except (ValueError, FileNotFoundError):
        return "is no file"
    except OSError as error:
        return f"cannot be read: {error.strerror or error}"


def _sums_of(file: Path) -> bytes | None:
    """The checksums of a file; None where it has none, nothing where they cannot be some."""
    known = checksum_of(file)
    if not known.is_file() or known.is_symlink():
        return None
    try:
        return read_whole(known)
    except ValueError:
        return b""


def fits(file: BinaryIO, sums: bytes) -> bool:
    """Whether the bytes of an open file are those that the checksums were made of.

    >>> import io, zlib
    >>> sums = _HEAD.pack(b"crc\\0", 512) + _SUM.pack(zlib.crc32(b"v1"))
    >>> fits(io.BytesIO(b"v1"), sums), fits(io.BytesIO(b"v"), sums)
    (True, False)
    """
    if len(sums) < _HEAD.size:
        return False
    magic, size = _HEAD.unpack_from(sums)
    if magic != b"crc\0" or not 0 < size <= _MOST_PIECE_BYTES:
        return False
    at = _HEAD.size
    while piece := file.read(size):
        if sums[at : at + _SUM.size] != _SUM.pack(zlib.crc32(piece)):
            return False
        at += _SUM.size
    return at == len(sums)
