"""Watches a running deployment: rates, selectivities, traffic, lag, latency and load.

A monitor has no clock and asks nobody: it is fed the records of batches (see
`thalweg.spark.monitor.record`) from all sites, in the order in which they come, and answers from
them. The same records give the same answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

from thalweg.errors import Defects, ThalwegError
from thalweg.model import Application
from thalweg.spark.log.names import SINKS
from thalweg.spark.monitor.figures import Figures, Flow, Latency, Span, find_quantile
from thalweg.spark.monitor.record import GATEWAY, Record, complete_record
from thalweg.spark.monitor.store import MonitorStore, read_monitor, to_records
from thalweg.spark.monitor.window import BatchChain, Weighted

__all__ = ["Monitor", "Totals", "read_monitor"]

_MOST_UNSAVED = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """What was counted since the monitor began."""

    batches: Counter[str] = field(default_factory=Counter)
    """By site."""
    batch_s: Counter[str] = field(default_factory=Counter)
    """By site: the time spent in batches."""
    rows: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By (operator, site): rows that it put out."""
    rows_in: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By (operator, site): rows that it read."""
    stream_bytes: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By (stream of the log, site): bytes that the site's queries published."""
    arrived: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By (source, site): rows that gateways have put into the log."""

    def add(self, record: Record) -> None:
        """Count a batch, or what a gateway did."""
        site = record["site"]
        if record["role"] == GATEWAY:
            self.arrived.update({(name, site): rows for name, rows in record["rows"].items()})
            return
        self.batches[site] += 1
        # Counters are typed for whole numbers, and work with all others.
        self.batch_s[site] += record["batch_s"]
        self.rows.update({(name, site): rows for name, rows in record["rows"].items()})
        self.rows_in.update({(name, site): rows for name, rows in record["rows_in"].items()})
        self.stream_bytes.update({(name, site): size for name, size in record["bytes"].items()})

    def copy(self) -> Totals:
        """The same numbers, which stay as they are now."""
        return Totals(
            batches=self.batches.copy(),
            batch_s=self.batch_s.copy(),
            rows=self.rows.copy(),
            rows_in=self.rows_in.copy(),
            stream_bytes=self.stream_bytes.copy(),
            arrived=self.arrived.copy(),
        )


class Monitor:
    """Takes the records of a deployment's batches, keeps them, and says how it is doing.

    With a folder, records are kept there as Parquet, and what a monitor before this one kept is
    counted in. Records from `keep_s` seconds ago and before are forgotten in memory. It may be fed
    and asked from several threads.
    """

    def __init__(
        self,
        application: Application,
        folder: Path | str | None = None,
        *,
        window_s: float = 5.0,
        keep_s: float = 600.0,
        save_every_s: float = 10.0,
    ) -> None:
        defects = Defects()
        defects.require(window_s > 0, "window_s", window_s, "a number of seconds > 0")
        defects.require(keep_s >= window_s, "keep_s", keep_s, f"at least the window, {window_s} s")
        defects.require(save_every_s >= 0, "save_every_s", save_every_s, "a number of seconds >= 0")
        defects.raise_if_any()
        self.application = application
        self.window_s = window_s
        self._keep_s = keep_s
        self._save_every_s = save_every_s
        self._lock = Lock()
        self._now_s: float | None = None
        self._saved_s: float | None = None
        self._chains: dict[tuple[str, ...], BatchChain] = {}
        self._seen: dict[tuple[Any, ...], int] = {}
        self._totals = Totals()
        self._unsaved: list[Record] = []
        self._store: MonitorStore | None = None
        self.error: str | None = None
        if folder is not None:
            for record in to_records(read_monitor(Path(folder))):
                self.take(record)
            self._unsaved.clear()
            self._store = MonitorStore(Path(folder))

    def take(self, record: Mapping[str, Any]) -> bool:
        """Take a record in; False where this batch, or a later one of its epoch, is known.

        A batch that is done again after a crash is counted once.

        Raises:
            InvalidInput: where something is wrong with the record.
        """
        whole = complete_record(record)
        chain = _chain_of(whole)
        with self._lock:
            epoch = (*chain, whole["epoch"])
            if whole["batch"] <= self._seen.get(epoch, -1):
                return False
            self._seen[epoch] = whole["batch"]
            batches = self._chains.setdefault(chain, BatchChain())
            batches.add(whole)
            self._totals.add(whole)
            self._unsaved.append(whole)
            at_s = whole["at_s"]
            self._now_s = at_s if self._now_s is None else max(self._now_s, at_s)
            batches.forget(self._now_s - self._keep_s)
            self._saved_s = at_s if self._saved_s is None else self._saved_s
            if self._now_s - self._saved_s >= self._save_every_s:
                self._try_to_save()
        return True

    def _try_to_save(self) -> None:
        """Save; where that fails, say why in `error` and try again later.

        A full disk is no reason to lose sight of what runs.
        """
        try:
            self._save()
            self.error = None
        except ThalwegError as error:
            self.error = str(error)
            self._saved_s = self._now_s
            del self._unsaved[:-_MOST_UNSAVED]

    def save(self) -> None:
        """Keep everything that was taken in and is not kept yet.

        Raises:
            ThalwegError: where the folder cannot be written.
        """
        with self._lock:
            self._save()

    def _save(self) -> None:
        if self._store is not None:
            self._store.append(self._unsaved)
        self._unsaved.clear()
        self._saved_s = self._now_s

    @property
    def totals(self) -> Totals:
        """What was counted so far."""
        with self._lock:
            return self._totals.copy()

    def figures(self, at_s: float | None = None, *, window_s: float | None = None) -> Figures:
        """How the deployment is doing, at this time or when the last batch ended.

        `window_s` may be longer than the monitor's own, up to the time that it keeps.
        """
        with self._lock:
            now_s = (self._now_s or 0.0) if at_s is None else at_s
            return _Look(self, now_s, window_s or self.window_s, self._chains).figures()


def _chain_of(record: Record) -> tuple[str, ...]:
    """What a record is one of: the batches of a site, whatever their epoch, or of a gateway."""
    own = sorted(record["rows"]) if record["role"] == GATEWAY else ()
    return (record["site"], record["role"], *own)


class _Look:
    """One look at all chains."""

    def __init__(
        self,
        monitor: Monitor,
        now_s: float,
        window_s: float,
        chains: Mapping[tuple[str, ...], BatchChain],
    ) -> None:
        self._sources = {o.name for o in monitor.application.operators if o.kind == "source"}
        self._now_s = now_s
        self._window_s = window_s
        self._chains = chains

    def figures(self) -> Figures:
        sources: dict[tuple[str, str], float] = {}
        arriving: dict[tuple[str, str], float] = {}
        on_links: dict[tuple[str, str], float] = {}
        operators: dict[tuple[str, str], Flow] = {}
        streams: dict[tuple[str, str], float] = {}
        load: dict[str, float] = {}
        for site, role, chain, weighted in self._weighted():
            rows = self._rates(chain, "rows", weighted)
            if role == GATEWAY:
                arriving |= {(name, site): rate for name, rate in rows.items()}
                continue
            rows_in = self._rates(chain, "rows_in", weighted)
            for name in rows | rows_in:
                flow = Flow(rows_in_per_s=rows_in.get(name, 0), rows_out_per_s=rows.get(name, 0))
                if name not in self._sources:
                    operators[name, site] = flow
                elif flow.rows_out_per_s or role != "cloud":
                    # The cloud has edges from sources that are born elsewhere.
                    sources[name, site] = flow.rows_out_per_s
            sizes = self._rates(chain, "bytes", weighted)
            streams |= {(name, site): rate for name, rate in sizes.items()}
            packed = sizes | self._rates(chain, "link_bytes", weighted)
            on_links |= {(name, site): rate for name, rate in packed.items()}
            load[site] = sum(weight * record["batch_s"] for weight, record in weighted)
        return Figures(
            at_s=self._now_s,
            window_s=self._window_s,
            sources=sources | arriving,
            operators=operators,
            reading=sources,
            streams=streams,
            link_streams=on_links,
            lag_s=self._newest("lag_s"),
            watermark_s=self._newest("watermark_s"),
            latencies=self._latencies(),
            load=load,
            batch_end_s=self._newest("at_s"),
        )

    def _weighted(self) -> Iterator[tuple[str, str, BatchChain, list[Weighted]]]:
        """Every chain by which a rate can be told; of silent ones nothing counts."""
        for (site, role, *_), chain in self._chains.items():
            weighted = chain.weigh(self._window_s)
            if weighted:
                silent = chain.is_silent(self._now_s, self._window_s)
                yield site, role, chain, [] if silent else weighted

    def _rates(self, chain: BatchChain, key: str, weighted: list[Weighted]) -> dict[str, float]:
        """The rates of a chain; 0 of every name that it knows and that does not count any more."""
        zeros = {str(name): 0.0 for record in chain for name in record[key]}
        if not weighted:
            return zeros
        return zeros | chain.rates(key, weighted, self._window_s, self._sources)

    def _newest(self, key: str) -> dict[str, float]:
        """The value of the last batch of each site, where it has one: as old as that batch."""
        last: dict[str, Mapping[str, Any]] = {}
        for (site, role, *_), chain in self._chains.items():
            if role != GATEWAY and (site not in last or last[site]["at_s"] < chain.last["at_s"]):
                last[site] = chain.last
        return {site: float(of[key]) for site, of in last.items() if of[key] is not None}

    def _latencies(self) -> dict[str, Latency]:
        spans: dict[str, list[Span]] = {}
        for chain in self._chains.values():
            for record in chain:
                at_s = record["at_s"]
                if not self._now_s - self._window_s < at_s <= self._now_s:
                    continue
                for stream, (earliest_s, latest_s) in record["event_spans"].items():
                    kind, _, name = stream.partition("/")
                    if kind == SINKS:
                        rows = record["stream_rows"].get(stream, 0)
                        spans.setdefault(name, []).append(
                            (rows, at_s - latest_s, at_s - earliest_s)
                        )
        found = {}
        for name, given in spans.items():
            median_s, high_s = find_quantile(given, 0.5), find_quantile(given, 0.95)
            if median_s is not None and high_s is not None:
                found[name] = Latency(p50_s=median_s, p95_s=high_s)
        return found
