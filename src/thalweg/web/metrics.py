"""Metrics of runs for Prometheus, from what their folders say at the moment of a scrape."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from thalweg.errors import InvalidInput
from thalweg.files.own_file import require_own
from thalweg.model import Limits
from thalweg.spark.deployment.folder import RunFolder
from thalweg.spark.deployment.timeline import NEW, OLD, read_lines
from thalweg.web.monitoring.families import FAMILIES, Family
from thalweg.web.monitoring.samples import RunReading, find_samples

# Most frames are short; those of networks with very many sites are not.
_TAILS_BYTES = (2**16, 2**20, 2**24)
_MAX_ACCEPT = 1_000
Metric = CounterMetricFamily | GaugeMetricFamily


class RunCollector(Collector):
    """Collects the metrics of several runs; nothing is kept from one scrape to the next."""

    def __init__(self, folders: Sequence[Path]) -> None:
        names = name_runs(folders)
        self._runs = {name: _Run(folder) for name, folder in zip(names, folders, strict=True)}

    def collect(self) -> Iterator[Metric]:
        """Yield every family that has samples, in a fixed order."""
        found: dict[str, dict[tuple[str, ...], float]] = {}
        for name, run in self._runs.items():
            for sample in find_samples(run.read()):
                # A sample that stands there twice would spoil the whole scrape.
                found.setdefault(sample.name, {}).setdefault((name, *sample.labels), sample.value)
        for family in FAMILIES:
            if family.name in found:
                yield _metric_of(family, found[family.name])


def _metric_of(family: Family, samples: dict[tuple[str, ...], float]) -> Metric:
    kind = CounterMetricFamily if family.is_counter else GaugeMetricFamily
    labels = ("run", *family.labels)
    metric: Metric = kind(family.name, family.meaning, labels=labels, unit=family.unit)
    for values, value in sorted(samples.items()):
        metric.add_metric(values, value)
    return metric


def name_runs(folders: Sequence[Path]) -> list[str]:
    """Name runs by their folders: by the last part of the path, or the path where two share it.

    >>> name_runs([Path("/a/town"), Path("/a/port"), Path("/b/port")])
    ['town', '/a/port', '/b/port']
    """
    shared = Counter(folder.name for folder in folders)
    return [f.name if f.name and shared[f.name] == 1 else str(f) for f in folders]


class _Run:
    """A run's folder, read anew at every scrape; its model only where that has changed."""

    def __init__(self, folder: Path) -> None:
        self._folder = RunFolder(folder)
        self._limits: tuple[Any, Limits] = (None, Limits())

    def read(self) -> RunReading:
        """Read what the folder says now; what cannot be read is not known."""
        is_live = self._folder.is_held()
        status: dict[str, Any] = {}
        with suppress(InvalidInput):
            status = self._folder.read_status()
        frame = read_last_frame(self._folder.path) or {}
        began_s, at_s = status.get("began_s"), frame.get("at_s")
        if not isinstance(began_s, (int, float)) or at_s is None or at_s < began_s:
            # The frame is of the run before the last start.
            frame = {}
        return RunReading(is_live=is_live, status=status, frame=frame, limits=self._read_limits())

    def _read_limits(self) -> Limits:
        with suppress(InvalidInput, OSError):
            about = (self._folder.path / "application.json").stat()
            version = (about.st_ino, about.st_mtime_ns, about.st_size)
            if version != self._limits[0]:
                application, _ = self._folder.read_model()
                self._limits = (version, application.limits or Limits())
        return self._limits[1]


def read_last_frame(folder: Path) -> dict[str, Any] | None:
    """Return the newest frame of a run's timeline, read from the end; None where there is none."""
    for name in (NEW, OLD):
        with suppress(OSError, ValueError):
            require_own(folder, folder / name)
            found = _find_last_frame(folder / name)
            if found is not None:
                return found
    return None


def _find_last_frame(file: Path) -> dict[str, Any] | None:
    with file.open("rb") as opened:
        size = opened.seek(0, 2)
        for tail in _TAILS_BYTES:
            begin = opened.seek(max(0, size - tail))
            # The first line of a tail may be half of one: it is none then.
            for line in reversed(opened.read(size - begin).splitlines()):
                for found in read_lines(line):
                    if found["kind"] == "frame":
                        return found
            if begin == 0:
                break
    return None


class Exposition:
    """Runs in the format that a scrape asks for: OpenMetrics, or the text format of Prometheus."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(RunCollector(folders))

    def render(self, accept: str) -> tuple[bytes, str]:
        """Return the metrics of now and their media type, by the header `Accept`."""
        try:
            encode, media_type = choose_encoder(accept[:_MAX_ACCEPT])
        except (TypeError, ValueError):
            # A version that is no number.
            encode, media_type = choose_encoder("")
        return encode(self._registry), media_type
