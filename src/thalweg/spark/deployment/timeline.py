"""What a run was like over time: a line for every look, every change and everything that died.

The lines are JSON objects of three kinds, told by `kind`:

    frame   how the run was doing at a moment: figures, rates, sites, links, what is under way
    cuts    which operators run at each fog from then on, why, and the plan behind that
    mark    something that people want to see on the axis of time; of an event that takes time,
            two lines with the name of the event, one in the phase `begin`, one in the phase `end`

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
from thalweg.spark.deployment.site_states import ENDED, RunStates
from thalweg.spark.deployment.status import nest_rates
from thalweg.spark.deployment.tally import Rates
from thalweg.spark.monitor.figures import Figures
from thalweg.spark.monitor.process import ProcessUsage, read_usages
from thalweg.spark.query.clock import DAWN_MS, END_OF_TIME_MS
from thalweg.spark.site.site import SiteStatus

NEW, OLD = "timeline.jsonl", "timeline.1.jsonl"
_MOST_BYTES = 8 * 2**20
_SPAN_S = 5.0
# CPU is counted in hundredths of a second: over less, its share would be noise.
_MIN_CPU_SPAN_S = 0.5
Line = dict[str, Any]
_SEEN = ("figures", "estimated", "measured")


class Timeline:
    """Writes the lines of a run into its folder; one that goes on adds to what is there."""

    def __init__(self, folder: Path, *, most_bytes: int = _MOST_BYTES) -> None:
        self._folder, self._most_bytes = folder, most_bytes
        self._lock = threading.Lock()
        self._cuts: Line | None = None
        self._rows_out: deque[tuple[float, int]] = deque()
        self._usage: dict[str, tuple[float, ProcessUsage, float | None]] = {}

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

    def write_mark(
        self,
        at_s: float,
        mark: str,
        title: str,
        text: str = "",
        *,
        event: str | None = None,
        phase: str | None = None,
    ) -> None:
        """Something happened: `mark` is its kind, such as `failure` or `restart`.

        `event` names what it is a part of, and `phase` says whether that begins or ends with it.
        """
        line = {"kind": "mark", "at_s": round(at_s, 3), "mark": mark, "title": title, "text": text}
        if event is not None:
            line["event"] = event
        if phase is not None:
            line["phase"] = phase
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
        states: RunStates | None = None,
        idle_s: Mapping[str, float] | None = None,
    ) -> None:
        """How the run is doing: what decisions rest on (`seen`), what was measured, the states.

        `idle_s` is when each site said last that it has nothing to do.
        """
        states = states or RunStates()
        renewed_s: Mapping[str, float] = {}
        if measured is not None:
            measured = measured.without(_find_lost(measured, states))
            renewed_s = _find_renewed(measured, states, idle_s or {})
        under_way = states.under_way
        frame: Line = {
            "kind": "frame",
            "at_s": round(at_s, 3),
            **{name: {} for name in _SEEN},
            "deviations": [],
            **seen,
            "rates": _nested(rates),
            "events_in_per_s": None if rates is None else round(sum(rates.values()), 3),
            "events_out_per_s": self._out_per_s(at_s, rows_out),
            "sites": {
                name: self._describe_site(
                    name, at_s, sites.get(name), states, measured, cores.get(name), renewed_s
                )
                for name in sorted({*sites, *states.sites})
            },
            "links": _describe_links(measured, renewed_s),
            "operators": _describe_operators(measured),
            "under_way": None if under_way is None else under_way.to_dict(),
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

    def _describe_site(
        self,
        name: str,
        at_s: float,
        site: SiteStatus | None,
        states: RunStates,
        measured: Figures | None,
        cores: int | None,
        renewed_s: Mapping[str, float],
    ) -> Line:
        life = states.life_of(name)
        told: Line = {"state": life.state, "since_s": round(life.since_s, 3)}
        if life.state == ENDED:
            self._usage.pop(name, None)
            return told
        pid = site.pid if site is not None and site.alive else None
        usage = None if pid is None else read_usages([pid]).get(pid)
        if usage is not None:
            told["memory_bytes"] = usage.memory_bytes
            told["cpu"] = self._cpu_share(name, at_s, usage, cores)
        if measured is not None:
            told["load"] = _rounded(measured.load.get(name))
            told["lag_s"] = _rounded(_known_lag_s(measured, name))
            told["renewed_at_s"] = _rounded(renewed_s.get(name))
        return told

    def _cpu_share(
        self, name: str, at_s: float, usage: ProcessUsage, cores: int | None
    ) -> float | None:
        """The share of its cores that a site used since it was last asked, if that was not now."""
        before = self._usage.get(name)
        if before is None or at_s < before[0]:
            self._usage[name] = (at_s, usage, None)
            return None
        then_s, earlier, share = before
        if at_s - then_s < _MIN_CPU_SPAN_S:
            return share
        used_s = usage.cpu_s - earlier.cpu_s
        # A site that was started again begins anew; one of its processes may have ended.
        share = None if used_s < 0 or not cores else round(used_s / (at_s - then_s) / cores, 4)
        self._usage[name] = (at_s, usage, share)
        return share

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


def _find_lost(measured: Figures, states: RunStates) -> set[str]:
    """The sites that have ended no batch since they were down or restarted last.

    What their queries measured before is not true of what runs there now.
    """
    lost_s = {name: life.lost_s for name, life in states.sites.items() if life.lost_s is not None}
    return {site for site, s in lost_s.items() if measured.batch_end_s.get(site, s) <= s}


def _find_renewed(
    measured: Figures, states: RunStates, idle_s: Mapping[str, float]
) -> dict[str, float]:
    """When the figures of each site were true last.

    They are those of its last batch. A site without rows to work on has no batches, and its figures
    stay true as long as it says so; while a batch or rows wait, that it answers proves nothing.
    """
    renewed_s = dict(measured.batch_end_s)
    for site, at_s in idle_s.items():
        lost_s = states.life_of(site).lost_s
        if lost_s is None or at_s > lost_s:
            renewed_s[site] = max(at_s, renewed_s.get(site, at_s))
    return renewed_s


def _describe_links(measured: Figures | None, renewed_s: Mapping[str, float]) -> Line:
    """Bits per second from each site to the cloud, and how far the cloud is behind the site."""
    if measured is None:
        return {}
    names: Sequence[str] = sorted(measured.links)
    # A site that says that nothing will ever come again has no lag, nor has one without a row yet.
    first_s, last_s = DAWN_MS / 1e3, END_OF_TIME_MS / 1e3
    reached = {site: s for site, s in measured.watermark_s.items() if first_s < s < last_s}
    clouds = [s for site, s in reached.items() if site not in names]
    found: Line = {}
    for name in names:
        told: Line = {"bps": round(8.0 * measured.links[name], 1)}
        if name in reached and clouds:
            told["lag_s"] = round(max(0.0, reached[name] - min(clouds)), 3)
        told["renewed_at_s"] = _rounded(renewed_s.get(name))
        found[name] = told
    return found


def _known_lag_s(measured: Figures, site: str) -> float | None:
    """How far a site is behind; unknown as long as it has seen no event."""
    is_known = measured.watermark_s.get(site, 0.0) > DAWN_MS / 1e3
    return measured.lag_s.get(site) if is_known else None


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
