"""What a monitor has found out about a running deployment, at a moment."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from thalweg.spark.log.names import EDGES

Span = tuple[float, float, float]
"""How many rows, and between which two values they are spread evenly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """Rows through an operator at a site."""

    rows_in_per_s: float = 0.0
    rows_out_per_s: float = 0.0

    @property
    def selectivity(self) -> float | None:
        """Rows out for each row in; None while nothing comes in."""
        return self.rows_out_per_s / self.rows_in_per_s if self.rows_in_per_s > 0 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """From event time to publication, for the rows of a sink."""

    p50_s: float
    p95_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Rates over the last `window_s` seconds before `at_s`, and where things stand then.

    A site that is being started, and has not finished a batch, is not in it; one that has fallen
    silent is, with rates of 0.
    """

    at_s: float
    window_s: float
    sources: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """(source, site) → events/s: those that arrive, where gateways tell, else those read."""
    operators: Mapping[tuple[str, str], Flow] = field(default_factory=dict)
    """(operator, site) → its flow."""
    reading: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """(source, site) → events/s that the site's query reads, late or not."""
    streams: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """(stream of the log, site) → bytes/s of data that the site's queries publish."""
    link_streams: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """The same as it is on a link: compressed and packed, where that is known."""
    lag_s: Mapping[str, float] = field(default_factory=dict)
    """Site → how far it is behind the newest event."""
    watermark_s: Mapping[str, float] = field(default_factory=dict)
    """Site → the event time up to which it has seen everything."""
    latencies: Mapping[str, Latency] = field(default_factory=dict)
    """Sink → the latency of its rows."""
    load: Mapping[str, float] = field(default_factory=dict)
    """Site → the part of the time in which it works on a batch."""
    batch_end_s: Mapping[str, float] = field(default_factory=dict)
    """Site → when its last batch ended [Unix time]: so old are its lag, load and streams."""

    def without(self, sites: Collection[str]) -> Figures:
        """The same without what the queries of these sites measured; rows still arrive there."""
        if not sites:
            return self
        return replace(
            self,
            operators={key: v for key, v in self.operators.items() if key[1] not in sites},
            reading={key: v for key, v in self.reading.items() if key[1] not in sites},
            streams={key: v for key, v in self.streams.items() if key[1] not in sites},
            link_streams={key: v for key, v in self.link_streams.items() if key[1] not in sites},
            lag_s={site: v for site, v in self.lag_s.items() if site not in sites},
            watermark_s={site: v for site, v in self.watermark_s.items() if site not in sites},
            load={site: v for site, v in self.load.items() if site not in sites},
            batch_end_s={site: v for site, v in self.batch_end_s.items() if site not in sites},
        )

    @property
    def links(self) -> dict[str, float]:
        """Site → bytes/s that it sends to the cloud."""
        sent: dict[str, float] = {}
        for (stream, site), rate in {**self.streams, **self.link_streams}.items():
            if stream.startswith(f"{EDGES}/"):
                sent[site] = sent.get(site, 0.0) + rate
        return sent


def find_quantile(spans: Iterable[Span], share: float) -> float | None:
    """The value that this share of all rows is at or below; None where there are no rows.

    Within a span, rows are spread evenly.

    >>> find_quantile([(100, 0.0, 1.0), (100, 3.0, 3.0)], 0.25)
    0.5
    >>> find_quantile([(100, 0.0, 1.0), (100, 3.0, 3.0)], 0.95)
    3.0
    """
    given = [(weight, low, max(low, high)) for weight, low, high in spans if weight > 0]
    if not given:
        return None
    wanted = share * sum(weight for weight, _, _ in given)
    points = sorted({end for _, low, high in given for end in (low, high)})
    before, reached = points[0], 0.0
    for point in points:
        # Spans of no length are a step at their point, all others rise up to it.
        rising = sum(w * _part(point, low, high) for w, low, high in given if low < point)
        if rising >= wanted:
            slope = rising - reached
            return point if slope <= 0 else before + (point - before) * (wanted - reached) / slope
        stepped = rising + sum(w for w, low, high in given if low == high == point)
        if stepped >= wanted:
            return point
        before, reached = point, stepped
    return points[-1]


def _part(point: float, low: float, high: float) -> float:
    return 1.0 if point >= high else (point - low) / (high - low)
