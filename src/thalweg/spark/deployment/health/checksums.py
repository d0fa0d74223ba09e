"""Is a file as it was written? By the checksum that Spark's file system keeps beside it.

`.NAME.crc` is beside a file NAME: a head, then a CRC-32 for every so many bytes of the file. Spark
refuses a file that does not fit it. A file without one is taken as it is.
"""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

_HEAD = struct.Struct(">4sI")
_SUM = struct.Struct(">I")
_MOST_BYTES = 1 << 30


def checksum_of(file: Path) -> Path:
    """Where the checksum of a file is, if it has one."""
    return file.with_name(f".{file.name}.crc")


def fault_of(file: Path) -> str:
    """What is wrong with the bytes of a file, in a few words; nothing where all is well."""
    try:
        if file.is_symlink() or not file.is_file():
            return "is no file"
        if file.stat().st_size > _MOST_BYTES:
            return ""
        content = file.read_bytes()
        known = checksum_of(file)
        sums = known.read_bytes() if known.is_file() and not known.is_symlink() else None
    except OSError as error:
        return f"cannot be read: {error.strerror or error}"
    if not content:
        return "is empty"
    return "" if sums is None or fits(content, sums) else "is torn: its checksum does not fit"


def fits(content: bytes, sums: bytes) -> bool:
    """Whether these bytes are those that the checksums were made of.

    >>> import zlib
    >>> sums = _HEAD.pack(b"crc\\0", 512) + _SUM.pack(zlib.crc32(b"v1"))
    >>> fits(b"v1", sums), fits(b"v", sums)
    (True, False)
    """
    if len(sums) < _HEAD.size:
        return False
    magic, size = _HEAD.unpack_from(sums)
    if magic != b"crc\0" or size <= 0:
        return False
    pieces = (content[start : start + size] for start in range(0, len(content), size))
    return sums[_HEAD.size :] == b"".join(_SUM.pack(zlib.crc32(piece)) for piece in pieces)
