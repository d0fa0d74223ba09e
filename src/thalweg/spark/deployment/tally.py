"""What went through a run's log so far: rows in, rows out, bytes on each link, and rates."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence

from thalweg.errors import Defects
from thalweg.spark.log import Log
from thalweg.spark.log.names import EDGES, SINKS, SOURCES
from thalweg.spark.log.segment import Segment
from thalweg.spark.pipeline.kinds import CLOCK, DEAD_LETTERS
from thalweg.spark.query.left_out import LEFT_OUT

Rates = dict[tuple[str, str], float]


class Tally:
    """Counts what is in a run's log, reading each segment's manifest once.

    `own_logs` are those of sites that have one; rows that were born there are in no other.

    Rates are those at which rows arrive, whether anybody works on them yet or not: those that the
    run decides by, where it has estimated some, else a mean over the last `span_s` seconds.
    """

    def __init__(
        self,
        log: Log,
        sources: Sequence[str],
        sinks: Sequence[str] = (),
        *,
        own_logs: Sequence[Log] = (),
        span_s: float = 5.0,
    ) -> None:
        defects = Defects()
        defects.require(span_s > 0, "span_s", span_s, "a number of seconds > 0")
        defects.raise_if_any()
        self._log = log
        self._birthplaces = (log, *own_logs)
        self._sources = tuple(sources)
        self._span_s = span_s
        self._offsets: dict[str, dict[str, dict[str, int]]] = {}
        self._past: deque[tuple[float, Counter[tuple[str, str]]]] = deque()
        self._estimated: Rates | None = None
        self.rows_in: Counter[tuple[str, str]] = Counter()
        """Rows by source and site."""
        self.rows_out: Counter[str] = Counter(dict.fromkeys(sinks, 0))
        """Rows by sink."""
        self.dead_rows = 0
        """Rows that broke a condition."""
        self.sent_bytes: Counter[str] = Counter()
        """What went over the link of each site."""
        self.sent_rows: Counter[tuple[str, str]] = Counter()
        """Rows by site and edge."""

    def count_arrivals(self) -> list[Segment]:
        """Count the rows of sources that have arrived since the last time; gives their segments."""
        arrived = []
        for source in self._sources:
            stream = f"{SOURCES}/{source}"
            for segment in (s for log in self._birthplaces for s in self._new(stream, log)):
                arrived.append(segment)
                self.rows_in[source, segment.site] += segment.rows
        return arrived

    def update(self, now_s: float) -> list[Segment]:
        """Count all that has come since the last time; gives the segments of sources."""
        arrived = self.count_arrivals()
        for stream in self._log.streams(EDGES):
            name = stream.partition("/")[2]
            for segment in self._new(stream):
                self.sent_bytes[segment.site] += segment.file_bytes
                if name not in (CLOCK, LEFT_OUT):
                    self.sent_rows[segment.site, name] += segment.rows
        for stream in self._log.streams(SINKS):
            name = stream.partition("/")[2]
            if name == CLOCK:
                continue
            rows = sum(segment.rows for segment in self._new(stream))
            if name == DEAD_LETTERS:
                self.dead_rows += rows
            else:
                self.rows_out[name] += rows
        self._remember(now_s)
        return arrived

    def rates(self) -> Rates | None:
        """Rows per second by source and site; None as long as it cannot be known."""
        if self._estimated is not None:
            return dict(self._estimated)
        if len(self._past) < 2 or not self.rows_in:
            return None
        (then_s, before), (now_s, now) = self._past[0], self._past[-1]
        if now_s <= then_s:
            return None
        return {key: (now[key] - before[key]) / (now_s - then_s) for key in sorted(now)}

    def take_rates(self, estimated: Rates | None) -> None:
        """Take the rates that the run decides by, so that no others are shown."""
        self._estimated = estimated

    def _remember(self, now_s: float) -> None:
        self._past.append((now_s, Counter(self.rows_in)))
        # The newest look that is at least a span ago is where the span begins.
        while len(self._past) > 2 and now_s - self._past[1][0] >= self._span_s:
            self._past.popleft()

    def _new(self, stream: str, log: Log | None = None) -> list[Segment]:
        """The segments that were not counted yet."""
        offset = self._offsets.setdefault(stream, {})
        found = []
        for segment in (log or self._log).segments(stream, after=offset):
            found.append(segment)
            epochs = offset.setdefault(segment.site, {})
            epochs[str(segment.epoch)] = segment.batch
        return found

    def to_dict(self) -> dict[str, object]:
        """All of it as plain data."""
        sites = sorted({site for _, site in self.rows_in} | set(self.sent_bytes))
        return {
            "rows_in": sum(self.rows_in.values()),
            "rows_in_by_source": _sum_by(self.rows_in, 0),
            "rows_in_by_site": {site: _sum_by(self.rows_in, 1).get(site, 0) for site in sites},
            "rows_out": dict(sorted(self.rows_out.items())),
            "dead_rows": self.dead_rows,
            "sent_bytes": {site: self.sent_bytes[site] for site in sites},
            "sent_rows": {
                site: {e: n for (s, e), n in sorted(self.sent_rows.items()) if s == site}
                for site in sites
            },
        }


def _sum_by(counts: Mapping[tuple[str, str], int], place: int) -> dict[str, int]:
    total: Counter[str] = Counter()
    for key, count in counts.items():
        total[key[place]] += count
    return dict(sorted(total.items()))
