"""What came out of the demo: bytes on the links, moments of the surge and of the kill, pauses.

Everything is read off the run: its log, its decisions, and the times at which they were written.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa

from thalweg.files.application_writer import application_data
from thalweg.files.network_writer import network_data
from thalweg.model import Application, Network
from thalweg.spark.log import Log
from thalweg.spark.log.disk import Disk
from thalweg.spark.log.names import EDGES, sink_stream, source_stream
from thalweg.spark.log.segment import Segment, read_batches, write_part
from thalweg.spark.query.clock import SITE_CLOCK


@dataclass(frozen=True, slots=True, kw_only=True)
class Surge:
    """Seconds from the first ride at the higher rate; None: that did not happen."""

    at_s: float
    """When it began [Unix time]."""
    detected_s: float | None = None
    """Until a monitoring cycle saw a limit broken, or a forecast that breaks one."""
    decided_s: float | None = None
    in_force_s: float | None = None
    change_s: float | None = None
    """How long the change itself took."""
    changes: int = 0
    """Changes of cuts from the surge on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """What was killed, and how many seconds later it was seen down and was back."""

    site: str
    at_s: float
    seen_down_s: float | None = None
    back_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Durations:
    """Where the demo's time went, in seconds."""

    setup: float
    """Until everything was deployed."""
    show: float
    """From the first ride to the last."""
    waiting: float
    """From the last ride to the last result."""
    comparison: float
    """Of the results with those of a single-site run, until the sites have ended, too."""

    @property
    def without_setup(self) -> float:
        """All but the set-up."""
        return self.show + self.waiting + self.comparison


@dataclass(frozen=True, kw_only=True)
class DemoSummary:
    """What came out of the demo; `lost` and `duplicated` are rows of the result."""

    settings: str
    """A hash over the rates, the surge, the network, the application and its limits."""
    strategy: str
    options: Mapping[str, Any]
    rides: int
    rows: int
    lost: int
    duplicated: int
    sent_bytes: int
    all_cloud_bytes: int
    sent_since_bytes: int | None
    """Since the cuts of the first adaptation after the surge were in force."""
    all_cloud_since_bytes: int | None
    longest_pause_s: float
    """Between two results, from the first to the last."""
    surge: Surge | None
    kill: Kill | None
    durations: Durations
    adaptations: tuple[Mapping[str, Any], ...]
    restarts: int
    report: Mapping[str, Any] = field(repr=False)

    @property
    def saved(self) -> float:
        """The share of the uplink's bytes that was saved against sending everything up."""
        return _saved(self.sent_bytes, self.all_cloud_bytes) or 0.0

    @property
    def saved_since(self) -> float | None:
        """The same since the adaptation; None without one."""
        return _saved(self.sent_since_bytes, self.all_cloud_since_bytes)

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        names = (
            "settings",
            "strategy",
            "rides",
            "rows",
            "lost",
            "duplicated",
            "sent_bytes",
            "all_cloud_bytes",
            "saved",
            "sent_since_bytes",
            "all_cloud_since_bytes",
            "saved_since",
            "longest_pause_s",
            "restarts",
        )
        return {
            **{name: getattr(self, name) for name in names},
            "options": dict(self.options),
            "surge": None if self.surge is None else asdict(self.surge),
            "kill": None if self.kill is None else asdict(self.kill),
            "seconds": {**asdict(self.durations), "without_setup": self.durations.without_setup},
            "adaptations": [dict(change) for change in self.adaptations],
            "report": dict(self.report),
        }


def _saved(sent: int | None, all_cloud: int | None) -> float | None:
    if sent is None or not all_cloud:
        return None
    return 1.0 - sent / all_cloud


def hash_settings(application: Application, network: Network, **numbers: float) -> str:
    """A short hash by which two demos are known to have shown the same."""
    described = {
        "application": application_data(application),
        "network": network_data(network),
        **numbers,
    }
    text = json.dumps(described, sort_keys=True)
    return sha256(text.encode()).hexdigest()[:12]


# Bytes


def sent_bytes(log: Log, since_s: float = 0.0) -> int:
    """What went up on the links since this moment: compressed, as it was sent."""
    return sum(_edge_bytes(log, stream, since_s) for stream in log.streams(EDGES))


def _edge_bytes(log: Log, stream: str, since_s: float) -> int:
    return sum(s.file_bytes for s in log.segments(stream) if _published_s(s) >= since_s)


def all_cloud_bytes(log: Log, source: str, batch_s: float, since_s: float = 0.0) -> int:
    """What the rides since this moment would take on the links, raw: in the same encoding.

    A site would send together what came in within `batch_s`, and say how far its time has come as
    often as it does.
    """
    by_site: dict[str, list[Segment]] = {}
    for segment in log.segments(source_stream(source)):
        if _published_s(segment) >= since_s:
            by_site.setdefault(segment.site, []).append(segment)
    with TemporaryDirectory(prefix="thalweg-demo-") as folder:
        parts = [part for segments in by_site.values() for part in _batches(segments, batch_s)]
        rides = sum(_encoded_bytes(part, Path(folder)) for part in parts)
    return rides + _edge_bytes(log, SITE_CLOCK, since_s)


def _batches(segments: Sequence[Segment], batch_s: float) -> Iterable[list[Segment]]:
    """Segments that came within so many seconds of the first."""
    batch: list[Segment] = []
    for segment in segments:
        if batch and _published_s(segment) - _published_s(batch[0]) >= batch_s:
            yield batch
            batch = []
        batch.append(segment)
    if batch:
        yield batch


def _encoded_bytes(segments: Sequence[Segment], folder: Path) -> int:
    batches = [b for s in segments for file in s.files for b in read_batches(file)]
    if not batches:
        return 0
    whole = pa.Table.from_batches(batches).combine_chunks()
    part = write_part(
        Disk(durable=False), folder, "rows.arrow", whole.to_batches(), compression="lz4"
    )
    (folder / "rows.arrow").unlink(missing_ok=True)
    return 0 if part is None else part.file_bytes


def count_rides(log: Log, source: str) -> int:
    """The rides that came in."""
    return sum(segment.rows for segment in log.segments(source_stream(source)))


def _published_s(segment: Segment) -> float:
    return segment.folder.stat().st_mtime


# Moments


def longest_pause_s(log: Log, sink: str) -> float:
    """The longest time in which no result came out, between the first and the last."""
    times = sorted(_published_s(s) for s in log.segments(sink_stream(sink)) if s.rows)
    return max((after - before for before, after in pairwise(times)), default=0.0)


def judge_surge(at_s: float, decisions: Sequence[Mapping[str, Any]]) -> Surge:
    """How a run answered a surge, by its decisions."""
    later = [d for d in decisions if float(d["at_s"]) >= at_s]
    changes = [d for d in later if d["cause"] == "adapt" and d["changed"]]
    seen = [d for d in later if (d.get("figures") or {}).get("broken") or d in changes]
    # A limit may be seen broken, and nothing better be found.
    detected_s = round(float(seen[0]["at_s"]) - at_s, 3) if seen else None
    if not changes:
        return Surge(at_s=at_s, detected_s=detected_s)
    first = changes[0]
    return Surge(
        at_s=at_s,
        detected_s=detected_s,
        decided_s=round(float(first["at_s"]) - at_s, 3),
        in_force_s=round(float(first["end_s"]) - at_s, 3),
        change_s=float(first["seconds"]),
        changes=len(changes),
    )
