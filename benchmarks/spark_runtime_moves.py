"""How long a site's output pauses when its cut moves, and in which steps."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median

from benchmarks.runner import Row
from benchmarks.spark_runtime_sites import (
    FOGS,
    PATIENCE_S,
    PIPELINE,
    SOURCE,
    TIME,
    deployed,
    describe_deployment,
    published_at,
    wait_for,
)
from thalweg.spark.deployment.hand_over import Drain, ExportState, Fence, Prepare, StartEpoch, Step
from thalweg.spark.deployment.runtime import largest_cut
from thalweg.spark.feed.gateway import Gateway
from thalweg.spark.feed.rides import feed_rides
from thalweg.spark.log import Log
from thalweg.spark.log.names import EDGES
from thalweg.spark.query.clock import SITE_CLOCK
from thalweg.spark.site.sites import Sites

TARGET_S = 1.0
RIDES_PER_S = 1_000
FOG = FOGS[0]
RAW: tuple[str, ...] = ()
ROW_WISE = ("parse", "clean", "enrich-zone")
ONE_WINDOW = (*ROW_WISE, "speed-by-zone", "congestion")
ALL_WINDOWS = (*ONE_WINDOW, "fares-by-zone", "tip-ratio")
ROUND = (ROW_WISE, ONE_WINDOW, ALL_WINDOWS, RAW, ALL_WINDOWS, ONE_WINDOW, ROW_WISE, RAW)
"""Cuts, one after the other: windows come, stay and leave, and in some moves there are none."""
SHORT_ROUND = (ONE_WINDOW, ALL_WINDOWS, ROW_WISE, RAW)
"""The fewest moves that have every kind and every step."""
WINDOWS = frozenset({"speed-by-zone", "fares-by-zone"})
STEPS = {
    Prepare: "prepare the next epoch, while the old one runs",
    Drain: "drain the old epoch",
    ExportState: "hand over open windows",
    Fence: "fence the old epoch",
    StartEpoch: "start the next epoch",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """A batch of an epoch that the cloud has heard of."""

    epoch: int
    batch: int
    at_s: float
    """When the last of it was published."""
    rows: bool
    """Whether it had rows, and not only the time."""
    time_us: int
    """How far it said that event time has come."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """What a move cost."""

    kind: str
    seconds: float
    steady_s: float
    """Between two outputs, before the move or after it, whichever is longer."""

    @property
    def beyond_s(self) -> float:
        """What is longer than without a move."""
        return self.seconds - self.steady_s


class Steps:
    """When each step of a move began."""

    def __init__(self) -> None:
        self.taken: list[tuple[float, Step]] = []

    def __call__(self, step: Step) -> None:
        """Take a step down that begins now."""
        self.taken.append((time.time(), step))

    def times_s(self, ends: Sequence[float]) -> Iterator[tuple[type[Step], float]]:
        """How long each step took, where the moves ended at these times."""
        for (begin, step), (after, _) in pairwise([*self.taken, (float("inf"), None)]):
            yield type(step), min(after, *(end for end in ends if end >= begin)) - begin


def measure_moves(
    sites: Sites, folder: Path, route: Sequence[tuple[str, ...]], rest_s: float
) -> list[Row]:
    """Move the cut of one fog along a route at a steady load, with a rest before each move."""
    spec = describe_deployment(folder, fogs=(FOG,))
    gateway = Gateway(spec.log, SOURCE, FOG, time=TIME, durable=False, founds=True)
    steps, ends = Steps(), list[float]()
    with deployed(spec, sites, {FOG: RAW}, on_step=steps) as coordinator:
        ends.append(time.time())
        feed = feed_rides({FOG: gateway}, RIDES_PER_S)
        try:
            # As in every run, once rows come.
            rehearsal = spec.rehearsal(FOG, largest_cut(PIPELINE))
            sites[FOG].rehearse(rehearsal, spec.log_of(FOG), PATIENCE_S)
            for cut in route:
                _rest(sites, Log(spec.log), coordinator.state.sites[FOG].epoch, rest_s)
                coordinator.go_to({FOG: cut})
                ends.append(time.time())
            _rest(sites, Log(spec.log), coordinator.state.sites[FOG].epoch, rest_s)
        finally:
            feed.stop()
    if feed.error is not None:
        raise feed.error
    exported = {(s.epoch, s.batch) for _, s in steps.taken if isinstance(s, ExportState)}
    outputs = [o for o in find_outputs(Log(spec.log), FOG) if (o.epoch, o.batch) not in exported]
    cuts = [RAW, *route]
    pauses = find_pauses(outputs, [kind_of(*move) for move in pairwise(cuts)])
    return [*_tell_pauses(pauses), *_tell_steps(steps, ends)]


def _rest(sites: Sites, log: Log, epoch: int, rest_s: float) -> None:
    """Wait until an epoch has put something out, and then for so long."""
    wait_for(
        sites,
        lambda: [s for s in log.segments(SITE_CLOCK, FOG) if s.epoch == epoch and _tells(s)][2:],
        f"nothing comes out of epoch {epoch}",
    )
    time.sleep(rest_s)


def _tells(segment: object) -> bool:
    """Whether a mark of the clock says more than that time has begun."""
    return (getattr(segment, "latest_us", None) or 0) > 1_000_000


def find_outputs(log: Log, site: str) -> list[Output]:
    """Everything that a site has sent to the cloud, by epoch and batch."""
    found: dict[tuple[int, int], Output] = {}
    for stream in log.streams(EDGES):
        is_clock = stream == SITE_CLOCK
        for segment in log.segments(stream, site):
            key = (segment.epoch, segment.batch)
            at_s = published_at(segment.folder)
            time_us = (segment.latest_us or 0) if is_clock else 0
            before = found.get(key)
            found[key] = Output(
                epoch=segment.epoch,
                batch=segment.batch,
                at_s=max(at_s, before.at_s) if before else at_s,
                rows=not is_clock or bool(before and before.rows),
                time_us=max(time_us, before.time_us) if before else time_us,
            )
    return [found[key] for key in sorted(found)]


def find_pauses(outputs: Sequence[Output], kinds: Sequence[str]) -> list[Pause]:
    """The pause of each move: from the last output of an epoch to the first news of the next.

    News are rows, or a time that is later than what the epoch before has said.
    """
    pauses = []
    for epoch, kind in enumerate(kinds):
        old = [o for o in outputs if o.epoch == epoch]
        reached_us = max(o.time_us for o in old)
        new = [o for o in outputs if o.epoch == epoch + 1]
        news = min(o.at_s for o in new if o.rows or o.time_us > reached_us)
        last = max(o.at_s for o in old)
        steady_s = max(_steady_s(old), _steady_s(new))
        pauses.append(Pause(kind=kind, seconds=news - last, steady_s=steady_s))
    return pauses


def _steady_s(outputs: Sequence[Output]) -> float:
    """The usual time between two outputs of an epoch: its micro-batch."""
    # What is told before the first rows, and the first outputs of an epoch, are no measure.
    told = [output for output in outputs if output.time_us > 1_000_000]
    return median([b.at_s - a.at_s for a, b in pairwise(told)][1:])


def kind_of(old: tuple[str, ...], new: tuple[str, ...]) -> str:
    """What becomes of windows in a move.

    >>> kind_of(ROW_WISE, ONE_WINDOW), kind_of(ALL_WINDOWS, ONE_WINDOW), kind_of(RAW, ROW_WISE)
    ('windows come', 'windows leave', 'no windows')
    """
    before, after = WINDOWS & set(old), WINDOWS & set(new)
    if not before and not after:
        return "no windows"
    return "windows come" if before < after else "windows leave"


def _tell_pauses(pauses: Sequence[Pause]) -> Iterator[Row]:
    longest = max(pauses, key=lambda pause: pause.beyond_s)
    yield Row(
        measure="pause at a cut move beyond one micro-batch, longest",
        value=longest.beyond_s,
        unit="s",
        target=TARGET_S,
        note=f"of {len(pauses)} moves; {longest.kind}",
    )
    for kind in sorted({pause.kind for pause in pauses}):
        beyond = [pause.beyond_s for pause in pauses if pause.kind == kind]
        yield Row(
            measure="pause at a cut move beyond one micro-batch",
            value=median(beyond),
            unit="s",
            at={"move": kind},
            note=f"median of {len(beyond)}; {min(beyond):.2f} s to {max(beyond):.2f} s",
        )
    steady_s = median(pause.steady_s for pause in pauses)
    yield Row(measure="between two outputs, nothing moves", value=steady_s, unit="s")


def _tell_steps(steps: Steps, ends: Sequence[float]) -> Iterator[Row]:
    # The first step is no move.
    times = list(steps.times_s(ends))[1:]
    for kind, name in STEPS.items():
        found = [seconds for step, seconds in times if step is kind]
        if found:
            yield Row(
                measure=f"step of a move: {name}",
                value=median(found),
                unit="s",
                note=f"median of {len(found)}; longest {max(found):.2f} s",
            )
