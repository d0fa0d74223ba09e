"""What a run was like over time: a line for every look, every change and everything that died.

The lines are JSON objects of three kinds, told by `kind`:

    frame   how the run was doing at a look: figures, rates, sites and links
    cuts    which operators run at each fog from then on, why, and the plan behind that
    mark    something that people want to see on the axis of time

They are kept in two files that take turns: when the newer one is full, the older one goes. Each
file begins with the cuts that run, so it can be read alone.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from thalweg.files.plain_json import parse_plain_json
from thalweg.spark.deployment.lines import append_line
from thalweg.spark.deployment.plan import Cuts
from thalweg.spark.deployment.status import nest_rates
from thalweg.spark.deployment.tally import Rates
from thalweg.spark.monitor.figures import Figures
from thalweg.spark.monitor.process import ProcessUsage, read_usages
from thalweg.spark.query.clock import END_OF_TIME_MS
from thalweg.spark.site.site import SiteStatus

NEW, OLD = "timeline.jsonl", "timeline.1.jsonl"
_MOST_BYTES = 8 * 2**20
_SPAN_S = 5.0
Line = dict[str, Any]


class Timeline:
    """Writes the lines of a run into its folder; one that goes on adds to what is there."""

    def __init__(self, folder: Path, *, most_bytes: int = _MOST_BYTES) -> None:
        self._folder, self._most_bytes = folder, most_bytes
        self._lock = threading.Lock()
        self._cuts: Line | None = None
        self._rows_out: deque[tuple[float, int]] = deque()
        self._usage: dict[str, tuple[float, ProcessUsage]] = {}

    def write_cuts(
        self,
        at_s: float,
        cause: str,
        reason: str,
        cuts: Cuts,
        *,
        plan: str | None = None,
        rates: Rates | None = None,
    ) -> None:
        """From now on these cuts run; they were chosen at these rates."""
        told = {site: list(cut) for site, cut in cuts.items()}
        self._cuts = {"kind": "cuts", "at_s": round(at_s, 3), "cuts": told, "plan": plan}
        self._cuts |= {"cause": cause, "reason": reason, "rates": _nested(rates)}
        self._write(self._cuts)

    def write_mark(self, at_s: float, mark: str, title: str, text: str = "") -> None:
        """Something happened: `mark` is its sort, such as `failure` or `restart`."""
        line = {"kind": "mark", "at_s": round(at_s, 3), "mark": mark, "title": title, "text": text}
        self._write(line)

    def write_frame(
        self,
        at_s: float,
        *,
        seen: Mapping[str, object],
        rates: Rates | None,
        rows_out: int,
        sites: Mapping[str, SiteStatus],
        measured: Figures | None,
        cores: Mapping[str, int],
    ) -> None:
        """How the run is doing: what the model says of it (`seen`) and what was measured."""
        frame: Line = {
            "kind": "frame",
            "at_s": round(at_s, 3),
            "figures": {k: v for k, v in seen.items() if isinstance(v, (int, float))},
            "rates": _nested(rates),
            "events_in_per_s": None if rates is None else round(sum(rates.values()), 3),
            "events_out_per_s": self._out_per_s(at_s, rows_out),
            "sites": self._describe_sites(at_s, sites, measured, cores),
            "links": _describe_links(measured),
            "operators": _describe_operators(measured),
        }
        self._write(frame)

    def _out_per_s(self, at_s: float, rows_out: int) -> float | None:
        """Rows out per second, over at least the last few seconds."""
        if self._rows_out and at_s < self._rows_out[-1][0]:
            # The time of day was set back.
            self._rows_out.clear()
        self._rows_out.append((at_s, rows_out))
        while len(self._rows_out) > 2 and at_s - self._rows_out[1][0] >= _SPAN_S:
            self._rows_out.popleft()
        (then_s, before) = self._rows_out[0]
        return round((rows_out - before) / (at_s - then_s), 3) if at_s > then_s else None

    def _describe_sites(
        self,
        at_s: float,
        sites: Mapping[str, SiteStatus],
        measured: Figures | None,
        cores: Mapping[str, int],
    ) -> Line:
        pids = {name: site.pid for name, site in sites.items() if site.alive and site.pid}
        usages = read_usages(pids.values())
        found: Line = {}
        for name, site in sites.items():
            told: Line = {"state": "up" if site.alive else "down"}
            usage = usages.get(pids.get(name, -1))
            if usage is not None:
                told["memory_bytes"] = usage.memory_bytes
                told["cpu"] = self._cpu_share(name, at_s, usage, cores.get(name))
            if measured is not None:
                told["load"] = _rounded(measured.load.get(name))
                told["lag_s"] = _rounded(measured.lag_s.get(name))
            found[name] = told
        return found

    def _cpu_share(
        self, name: str, at_s: float, usage: ProcessUsage, cores: int | None
    ) -> float | None:
        """The share of its cores that a site used since the last look."""
        before = self._usage.get(name)
        self._usage[name] = (at_s, usage)
        if before is None or not cores or at_s <= before[0]:
            return None
        used_s = usage.cpu_s - before[1].cpu_s
        # A site that was started again begins anew; one of its processes may have ended.
        return None if used_s < 0 else round(used_s / (at_s - before[0]) / cores, 4)

    def _write(self, line: Line) -> None:
        """Add a line; what cannot be written must not end a run."""
        text = _encode(line)
        file = self._folder / NEW
        # A look from another thread writes, too, while cuts change.
        with self._lock, suppress(OSError):
            with suppress(FileNotFoundError):
                if file.stat().st_size + len(text) > self._most_bytes:
                    file.replace(self._folder / OLD)
            if self._cuts is not None and line["kind"] != "cuts" and not file.exists():
                append_line(file, _encode({**self._cuts, "again": True}))
            append_line(file, text)


def _encode(line: Line) -> bytes:
    return json.dumps(line, allow_nan=False, separators=(",", ":")).encode()


def read_timeline(folder: Path) -> Iterator[Line]:
    """Every line that is there, oldest first; those that a crash has cut off are left out."""
    for name in (OLD, NEW):
        with suppress(FileNotFoundError), (folder / name).open("rb") as opened:
            yield from read_lines(opened.read())


def read_lines(text: bytes) -> Iterator[Line]:
    """The lines in a piece of a timeline."""
    for line in text.splitlines():
        with suppress(ValueError):
            found = parse_plain_json(line)
            at_s = found.get("at_s") if isinstance(found, dict) else None
            if isinstance(at_s, (int, float)) and found.get("kind") in ("frame", "cuts", "mark"):
                yield found


def count_cores(masters: Mapping[str, str], here: int) -> dict[str, int]:
    """How many cores the sites on this machine have, by their master; `here` stands for all.

    >>> count_cores({"fog": "local[1]", "cloud": "local[*]", "far": "sc://host:15002"}, 4)
    {'fog': 1, 'cloud': 4}
    """
    found = {}
    for site, master in masters.items():
        if master == "local":
            found[site] = 1
        elif master.startswith("local["):
            number = master[len("local[") :].rstrip("]").split(",")[0]
            found[site] = int(number) if number.isdecimal() else here
    return found


def _describe_links(measured: Figures | None) -> Line:
    """Bits per second from each site to the cloud, and how far the cloud is behind the site."""
    if measured is None:
        return {}
    names: Sequence[str] = sorted(measured.links)
    # A site that says that nothing will ever come again has no lag.
    reached = {site: s for site, s in measured.watermark_s.items() if s < END_OF_TIME_MS / 1e3}
    clouds = [s for site, s in reached.items() if site not in names]
    found: Line = {}
    for name in names:
        told: Line = {"bps": round(8.0 * measured.links[name], 1)}
        if name in reached and clouds:
            told["lag_s"] = round(max(0.0, reached[name] - min(clouds)), 3)
        found[name] = told
    return found


def _describe_operators(measured: Figures | None) -> Line:
    """Rows in and out per second of every operator, by site."""
    found: Line = {}
    for (name, site), flow in (measured.operators if measured else {}).items():
        pair = [round(flow.rows_in_per_s, 2), round(flow.rows_out_per_s, 2)]
        found.setdefault(site, {})[name] = pair
    return found


def _nested(rates: Rates | None) -> Line | None:
    return None if rates is None else dict(nest_rates(rates))


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
