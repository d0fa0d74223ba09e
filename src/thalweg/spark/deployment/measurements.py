"""What a run's batches and links did, as events for the adaptation controller."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from thalweg.adapt.events import BatchDone, LinksMeasured, Output
from thalweg.spark.deployment.plan import Cuts
from thalweg.spark.log.names import EDGES, SOURCES
from thalweg.spark.monitor.figures import Figures
from thalweg.spark.monitor.record import GATEWAY

_BITS = 8.0
_CATCH_UP = 1.25
"""How many times as fast as rows arrive a site reads them at least while it catches up."""
# Of an epoch's first batches, the first with rows among them, the JVM compiles what they run.
_WARM_UP = 4
Record = Mapping[str, Any]


def batches_of(
    records: Iterable[Record], cuts: Cuts, speed_ips: Mapping[str, float]
) -> Iterator[BatchDone]:
    """The batches of these records; `speed_ips` are instructions/s of a core of each site.

    CPU is not counted of a site whose speed is not known, nor of the first batches of an epoch.
    """
    for record in records:
        site = str(record["site"])
        cpu_s, speed = record.get("cpu_s"), speed_ips.get(site)
        if record["batch"] < _WARM_UP:
            cpu_s = None
        outputs = _arrived(record) if record["role"] == GATEWAY else _put_out(record, cuts)
        counted = record["role"] != GATEWAY
        yield BatchDone(
            time_s=float(record["at_s"]),
            site=site,
            events_in=dict(record.get("rows_in") or {}) if counted else {},
            events_out=dict(record.get("rows") or {}) if counted else {},
            outputs=outputs,
            instructions=None if cpu_s is None or speed is None else cpu_s * speed,
        )


def _arrived(record: Record) -> dict[str, Output]:
    """What a gateway took in, with the size of its data; on a link it has another encoding."""
    return {
        name: Output(events=rows, data_bytes=record["bytes"].get(f"{SOURCES}/{name}", 0))
        for name, rows in record["rows"].items()
        if rows > 0
    }


def _put_out(record: Record, cuts: Cuts) -> dict[str, Output]:
    """What the operators of a batch put out: measured where it was published, else computed."""
    rows: Mapping[str, int] = record.get("rows") or {}
    output_bytes: Mapping[str, int] = record.get("output_bytes") or {}
    found = {
        name: Output(events=rows[name], data_bytes=data)
        for name, data in output_bytes.items()
        if rows.get(name, 0) > 0
    }
    link_bytes: Mapping[str, int] = record.get("link_bytes") or {}
    for stream, count in (record.get("stream_rows") or {}).items():
        sender, reader = edge_of(stream)
        # What a hand-over sends has more columns.
        if sender and count > 0 and not _is_hand_over(str(record["site"]), reader, cuts):
            found[sender] = Output(
                events=count,
                data_bytes=record["bytes"].get(stream, 0),
                link_bytes=link_bytes.get(stream),
            )
    return found


def measure_links(figures: Figures, cuts: Cuts, now_s: float) -> LinksMeasured | None:
    """What each site sends up by the cuts that run; None as long as no site has said anything.

    Kept apart is what ends by itself: rows of windows that are handed over, and the share by which
    a site reads faster than rows arrive, as it does after it was away.
    """
    bps: dict[str, float] = {}
    passing_bps = 0.0
    for (stream, site), rate in figures.link_streams.items():
        if site not in cuts or not stream.startswith(f"{EDGES}/"):
            continue
        sent_bps = _BITS * rate
        share = (
            0.0 if _is_hand_over(site, edge_of(stream)[1], cuts) else _share_in_step(figures, site)
        )
        bps[site] = bps.get(site, 0.0) + share * sent_bps
        passing_bps += (1.0 - share) * sent_bps
    if not bps:
        return None
    return LinksMeasured(time_s=now_s, bps=bps, passing_bps=passing_bps)


def _share_in_step(figures: Figures, site: str) -> float:
    """Which share of what a site reads is not the catch-up of a backlog.

    By chance a site reads some more than arrives, and some less later.
    """
    arriving = sum(rate for (_, place), rate in figures.sources.items() if place == site)
    reading = sum(rate for (_, place), rate in figures.reading.items() if place == site)
    return arriving / reading if reading > _CATCH_UP * arriving else 1.0


def edge_of(stream: str) -> tuple[str, str]:
    """Sender and reader of a stream of the log; empty names for one that is no edge.

    >>> edge_of("edges/parse+clean"), edge_of("sinks/board")
    (('parse', 'clean'), ('', ''))
    """
    kind, _, name = stream.partition("/")
    sender, between, reader = name.partition("+")
    return (sender, reader) if kind == EDGES and between else ("", "")


def _is_hand_over(site: str, reader: str, cuts: Cuts) -> bool:
    """Whether rows into this operator are those of windows that another place computes."""
    return reader in cuts.get(site, ())
