"""What the campaign found, as rows with targets: figures that are worse are told as they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from benchmarks.runner import Row
from campaign.load.analysis import (
    Growth,
    compare_thirds,
    fit_slope,
    judge_growth,
    warm_up_of,
)
from campaign.load.phases import Maximum, Overload, Schedule
from campaign.load.rig import Sample
from thalweg.spark.deployment.one_place import Compared

MEMORY_TARGET = 5.0
# A slope is of a line; this finds a lag that steps up, too.
_LAG_TARGET = 10.0
_RATE_SHARE = 0.95
_EXCESS_SHARE = 0.1
# Files that take turns: until they are as many as may be there are more of them every hour.
_GROWS_BY_DESIGN = ("files: monitor", "files: timeline", "files: decisions")
NOTES = (
    "The maximum is the highest rate at which, after a moment to settle, neither rows nor seconds "
    "of lag rise by more than a tenth of what comes in. Lag is looked at each time that results "
    "have come out. Rates rise by a factor until one is too much, then gaps are halved; what seems "
    "too much by little is tried twice. What is found is held for minutes, and lowered until the "
    "lag rises by no more than a fiftieth.",
    "Lag in rows: published for a query and not in a finished batch. In seconds: from the newest "
    "ride back to the moment up to which the cloud says that all results are out.",
    "The intervals (95 %) of slopes and of the lag's growth allow for samples that resemble their "
    "neighbours.",
    "Growth: the median (of lag, the mean) of the last third of the time after the warm-up against "
    "that of the first. "
    "The warm-up is a third of the soak, at most 10 min, for Python and JVM alike.",
    "Leaked: by how much the median of the last third is above all that the first third had.",
    "The feed and the sampling are part of the coordinator's process, and of its figures.",
)


@dataclass(frozen=True, kw_only=True)
class Findings:
    """All that was measured."""

    schedule: Schedule
    maximum: Maximum
    soak: Sequence[Sample]
    heaps: tuple[Mapping[str, int], Mapping[str, int]]
    """What was reachable in the heaps at the begin of the soak, and at its end."""
    overload: Overload
    compared: Compared
    left_over: Mapping[str, Sequence[str]]


def tell_findings(found: Findings) -> list[Row]:
    """Every figure, and whether its target was met."""
    return [
        *_tell_maximum(found),
        *_tell_soak(found),
        *_tell_overload(found),
        *_tell_result(found),
    ]


def detail_findings(found: Findings) -> list[dict[str, Any]]:
    """What is behind the figures: every step, and the growth of everything."""
    judged = judged_samples(found.soak)
    at_s = [sample.at_s for sample in judged]
    kinds = {
        "memory [B]": judge_growth(at_s, [sample.memory_bytes for sample in judged]),
        "count": judge_growth(at_s, [sample.counts for sample in judged]),
        "size [B]": judge_growth(at_s, _sizes(judged)),
    }
    steps = [{"step": asdict(s) | {"keeps_up": s.keeps_up}} for s in found.maximum.steps]
    growth = [
        {"growth": kind, "of": name, **asdict(each)}
        for kind, names in kinds.items()
        for name, each in names.items()
    ]
    heaps = {"live_heap_bytes": {"at_first": found.heaps[0], "at_last": found.heaps[1]}}
    schedule = {"schedule": asdict(found.schedule)}
    return [schedule, *steps, *growth, heaps, {"left_over": dict(found.left_over)}]


def judged_samples(samples: Sequence[Sample]) -> list[Sample]:
    """The samples of a soak after its warm-up."""
    begin_s, end_s = samples[0].at_s, samples[-1].at_s
    return [s for s in samples if s.at_s >= begin_s + warm_up_of(end_s - begin_s)]


def _tell_maximum(found: Findings) -> Iterator[Row]:
    steps = found.maximum.steps
    yield Row(
        measure="maximum: rate kept up with",
        value=found.maximum.per_s,
        unit="rides/s",
        note=f"{len(steps)} steps of {found.schedule.step_s:g} s, all four sites and the feed here",
    )
    over = min(s.asked_per_s for s in steps if not s.keeps_up)
    yield Row(measure="maximum: lowest rate that was too much", value=over, unit="rides/s")


def _tell_soak(found: Findings) -> Iterator[Row]:
    samples = judged_samples(found.soak)
    at_s = [sample.at_s for sample in samples]
    first, last = found.soak[0], found.soak[-1]
    born = (last.lag.born_rows - first.lag.born_rows) / (last.at_s - first.at_s)
    yield Row(
        measure="soak: rate that came in",
        value=born,
        unit="rides/s",
        target=_RATE_SHARE * first.asked_per_s,
        at_least=True,
        note=f"asked {first.asked_per_s:,.0f}, for {last.at_s - first.at_s:,.0f} s",
    )
    yield from _tell_slope("soak: lag slope", "rows/s", at_s, [float(s.lag.rows) for s in samples])
    lags = [sample.lag.seconds or 0.0 for sample in samples]
    yield from _tell_slope("soak: lag slope in event time", "s/s", at_s, lags)
    # Lag rises and falls with each batch. Looked at in step with that, its median may be either.
    change = compare_thirds(at_s, lags)
    share, least, most = (100.0 * each for each in change.shares)
    means = f"mean {change.first:.1f} → {change.last:.1f} s of event time"
    yield Row(measure="soak: lag growth", value=share, unit="%", note=means)
    yield Row(
        measure="soak: lag growth, lower end of its interval",
        value=least,
        unit="%",
        target=_LAG_TARGET,
        note=f"{share:+.1f}, from {least:+.1f} to {most:+.1f}",
    )
    yield Row(measure="soak: lag, median", value=median(lags), unit="s")
    yield Row(measure="soak: lag, most", value=max(lags), unit="s")
    for name, growth in judge_growth(at_s, [sample.memory_bytes for sample in samples]).items():
        yield _memory_row(f"soak: memory growth, {name}", growth)
    yield from _tell_heaps(*found.heaps)
    for name, growth in judge_growth(at_s, [sample.counts for sample in samples]).items():
        yield Row(
            measure=f"soak: leaked {name}",
            value=growth.leaked,
            target=None if name in _GROWS_BY_DESIGN else 0.0,
            note=f"{growth.first:,.0f} → {growth.last:,.0f}",
        )
    yield from _tell_sizes(samples)


def _tell_sizes(samples: Sequence[Sample]) -> Iterator[Row]:
    """What became larger in the folder of the run; the log keeps every row by design."""
    first, last = samples[0], samples[-1]
    log_bytes = last.log_bytes - first.log_bytes
    yield Row(measure="soak: growth of the log", value=log_bytes, unit="B", note="by design")
    for kind, growth in judge_growth([s.at_s for s in samples], _sizes(samples)).items():
        if growth.leaked:
            yield Row(
                measure=f"soak: growth of {kind}",
                value=growth.last - growth.first,
                unit="B",
                note=f"{growth.first / 2**10:,.0f} → {growth.last / 2**10:,.0f} KiB",
            )


def _sizes(samples: Sequence[Sample]) -> list[dict[str, float]]:
    return [{k: float(f.size_bytes) for k, f in s.folder.items()} for s in samples]


def _tell_slope(
    measure: str, unit: str, at_s: Sequence[float], values: Sequence[float]
) -> Iterator[Row]:
    slope = fit_slope(at_s, values)
    yield Row(measure=measure, value=slope.per_s, unit=unit)
    yield Row(
        measure=f"{measure}, lower end of its interval",
        value=slope.low_per_s,
        unit=unit,
        target=0.0,
        note=f"{slope.per_s:+.4g}, from {slope.low_per_s:+.4g} to {slope.high_per_s:+.4g}",
    )


def _memory_row(measure: str, growth: Growth) -> Row:
    return Row(
        measure=measure,
        value=100.0 * growth.share,
        unit="%",
        target=MEMORY_TARGET,
        note=f"{growth.first / 2**20:,.0f} → {growth.last / 2**20:,.0f} MiB resident",
    )


def _tell_heaps(before: Mapping[str, int], after: Mapping[str, int]) -> Iterator[Row]:
    for role in sorted(set(before) & set(after)):
        yield Row(
            measure=f"soak: live heap growth, {role}",
            value=100.0 * (after[role] - before[role]) / before[role],
            unit="%",
            note=f"{before[role] / 2**20:,.1f} → {after[role] / 2**20:,.1f} MiB reachable after a "
            "full collection, the least of some looks, at the soak's begin and end, with warm-up",
        )


def _tell_overload(found: Findings) -> Iterator[Row]:
    flood = found.overload
    first, last = flood.samples[0], flood.samples[-1]
    born = (last.lag.born_rows - first.lag.born_rows) / (last.at_s - first.at_s)
    yield Row(
        measure="overload: rate that came in",
        value=born,
        unit="rides/s",
        target=_RATE_SHARE * flood.asked_per_s,
        at_least=True,
        note=f"asked {flood.asked_per_s:,.0f}, for {found.schedule.overload_s:g} s",
    )
    grown = last.lag.rows - found.soak[-1].lag.rows
    # A maximum that was found too low is not overloaded by twice as much.
    excess = (flood.asked_per_s - found.maximum.per_s) * found.schedule.overload_s
    yield Row(
        measure="overload: lag grew by",
        value=grown,
        unit="rows",
        target=_EXCESS_SHARE * excess,
        at_least=True,
        note=f"{excess:,.0f} rows more came than the maximum",
    )
    most = max((s.lag.seconds or 0.0) for s in (*flood.samples, *flood.relief))
    yield Row(measure="overload: lag, most", value=most, unit="s")
    memory = max(s.memory_bytes["all processes"] for s in flood.samples)
    yield Row(measure="overload: memory, most", value=memory, unit="B")
    yield Row(
        measure="overload: time until the lag is back",
        value=flood.recovered_after_s,
        unit="s",
        target=found.schedule.patience_s,
        note=f"back: at most {flood.calm_lag_s:.1f} s, at half the maximum rate",
    )


def _tell_result(found: Findings) -> Iterator[Row]:
    compared = found.compared
    note = f"{compared.born:,} rides in, {compared.rows:,} rows out, against one place"
    yield Row(measure="result: rows lost", value=compared.missing, target=0, note=note)
    yield Row(measure="result: rows duplicated", value=compared.extra, target=0)
    yield Row(measure="result: rows too late", value=compared.late, target=0)
    yield Row(measure="result: rows out", value=compared.rows, target=1, at_least=True)
    for sort, names in found.left_over.items():
        note = ", ".join(names[:5])
        yield Row(measure=f"end: {sort} left over", value=len(names), target=0, note=note)
