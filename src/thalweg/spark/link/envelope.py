"""What goes over a link: the files of one segment, whose they are, and what is known of them."""

from __future__ import annotations

import json
import re
import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from thalweg.errors import Defects, InvalidInput
from thalweg.model.names import require_name
from thalweg.spark.link.link import LinkError
from thalweg.spark.log.disk import explained
from thalweg.spark.log.names import require_count, require_stream
from thalweg.spark.log.segment import Part, Segment

MARKS = "links/marks"
_MAGIC = b"TLW1"
_FRAME = struct.Struct(">4sII")
_FILE = re.compile(r"(?!manifest\.json$)[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")

# What comes of reading bytes as an envelope that are something else.
_NOT_AN_ENVELOPE = (
    struct.error,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    InvalidInput,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """One segment on its way; `body` has its files, one behind the other.

    `after` is the batch that its site has published in the same stream and epoch before it, -1
    where there is none; `ends` of a mark, and of a clock's segment, are the last batches of its
    epoch that were sent before it, by stream. Who has not got those has lost something.

    Raises:
        InvalidInput: with all that is wrong with it. It may come from anywhere, and its names
            become paths.
    """

    stream: str
    site: str
    epoch: int
    batch: int
    after: int = -1
    ends: Mapping[str, int] = field(default_factory=dict)
    hash_kind: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)
    parts: tuple[Part, ...] = ()
    body: bytes | memoryview = field(default=b"", repr=False)

    def __post_init__(self) -> None:
        defects = Defects()
        require_stream(defects, "stream", self.stream)
        require_name(defects, "site", self.site)
        require_count(defects, "epoch", self.epoch)
        require_count(defects, "batch", self.batch)
        require_count(defects, "after", self.after, -1)
        for stream, batch in self.ends.items():
            require_stream(defects, "ends", stream)
            require_count(defects, f"ends.{stream}", batch)
        for number, part in enumerate(self.parts):
            named = isinstance(part.file, str) and _FILE.fullmatch(part.file) is not None
            defects.require(named, f"parts[{number}].file", part.file, "the name of a file")
            require_count(defects, f"parts[{number}].rows", part.rows, 1)
            require_count(defects, f"parts[{number}].file_bytes", part.file_bytes)
        files = {part.file for part in self.parts}
        defects.require(len(files) == len(self.parts), "parts", sorted(files), "different files")
        defects.raise_if_any()
        expected = sum(part.file_bytes for part in self.parts)
        found = len(self.body)
        defects.require(found == expected, "body", found, f"{expected} bytes, as the parts say")
        defects.raise_if_any()

    @property
    def is_mark(self) -> bool:
        """Whether it has no rows, but says that all before it have been sent."""
        return self.stream == MARKS

    @property
    def rows(self) -> int:
        """How many rows."""
        return sum(part.rows for part in self.parts)

    def files(self) -> Iterator[tuple[str, memoryview]]:
        """The name and the content of each file."""
        start, whole = 0, memoryview(self.body)
        for part in self.parts:
            yield part.file, whole[start : start + part.file_bytes]
            start += part.file_bytes

    def to_bytes(self) -> bytes:
        """All of it as one piece of bytes, for links that know of nothing else.

        >>> envelope = make_mark("fog-1", 0, 7, {"edges/clean+rank": 6})
        >>> Envelope.from_bytes(envelope.to_bytes()) == envelope
        True
        """
        head = {
            "stream": self.stream,
            "site": self.site,
            "epoch": self.epoch,
            "batch": self.batch,
            "after": self.after,
            "ends": dict(self.ends),
            "hash_kind": self.hash_kind,
            "columns": dict(self.columns),
            "parts": [asdict(part) for part in self.parts],
        }
        text = json.dumps(head).encode()
        check = zlib.crc32(self.body, zlib.crc32(text))
        return b"".join((_FRAME.pack(_MAGIC, len(text), check), text, self.body))

    @classmethod
    def from_bytes(cls, data: bytes) -> Envelope:
        """The envelope that these bytes are.

        Raises:
            LinkError: where they are none, or were changed on the way.
        """
        whole = memoryview(data)
        try:
            magic, length, check = _FRAME.unpack_from(whole)
            if magic != _MAGIC:
                raise LinkError(f"what came over the link is no envelope: it begins with {magic!r}")
            if zlib.crc32(whole[_FRAME.size :]) != check:
                raise LinkError("an envelope was changed on its way over the link")
            start = _FRAME.size + length
            head: dict[str, Any] = json.loads(bytes(whole[_FRAME.size : start]))
            head["parts"] = tuple(Part(**part) for part in head["parts"])
            return cls(**head, body=whole[start:])
        except _NOT_AN_ENVELOPE as error:
            raise LinkError(f"what came over the link is no envelope: {error}") from error

    def __str__(self) -> str:
        return f"batch {self.batch} of {self.stream} from {self.site}, epoch {self.epoch}"


def make_envelope(segment: Segment, after: int, ends: Mapping[str, int] | None = None) -> Envelope:
    """A segment with its files, read from the log.

    Raises:
        LogError: where they cannot be read.
    """
    with explained("read the log", segment.folder):
        body = b"".join(file.read_bytes() for file in segment.files)
    return Envelope(
        stream=segment.stream,
        site=segment.site,
        epoch=segment.epoch,
        batch=segment.batch,
        after=after,
        ends=ends or {},
        hash_kind=segment.hash_kind,
        columns=segment.columns,
        parts=segment.parts,
        body=body,
    )


def make_mark(site: str, epoch: int, batch: int, ends: Mapping[str, int]) -> Envelope:
    """What is sent after the last segment of a batch and of all before it."""
    return Envelope(stream=MARKS, site=site, epoch=epoch, batch=batch, ends=ends)
