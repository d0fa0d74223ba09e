"""Does the load campaign see what grows, leaks and stays behind? Planted cases, without Spark."""

import json
import os
import subprocess
import sys
import tempfile
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from campaign.load import __main__ as command
from campaign.load import census
from campaign.load.analysis import (
    Belongings,
    Slope,
    Step,
    compare_thirds,
    find_growth,
    find_left_over,
    find_maximum,
    fit_slope,
    judge_growth,
    next_rate,
    warm_up_of,
)
from campaign.load.census import (
    FolderFigures,
    ProcessCensus,
    ProcessFigures,
    kind_of,
    least_live_heaps,
    live_heap_bytes,
    read_histogram,
    take_belongings,
    take_folder,
)
from campaign.load.lag import Lag, LagGauge
from campaign.load.phases import (
    QUICK,
    Maximum,
    Overload,
    Schedule,
    find_run_maximum,
    overload,
    soak,
    take_step,
)
from campaign.load.report import Findings, detail_findings, tell_findings
from campaign.load.rig import Dial, Sample
from thalweg.errors import ThalwegError
from thalweg.history import Verdict
from thalweg.spark.deployment.one_place import Compared
from thalweg.spark.java import find_java
from thalweg.spark.log.writer import LogWriter

ROOT = Path(__file__).resolve().parents[2]
EVERY_5_S = [5.0 * k for k in range(240)]
MIB = 2.0**20


def noise(seed, count=240, *, alike=0.0, scale=1.0):
    """A series around 0; with `alike`, neighbours resemble each other."""
    rng = np.random.default_rng(seed)
    values, before = [], 0.0
    for each in rng.normal(0.0, scale, count):
        before = alike * before + each
        values.append(before)
    return np.array(values)


# The slope


def test_slope_of_a_line_is_its_own():
    slope = fit_slope([0, 1, 2, 3, 4, 5], [1, 3, 5, 7, 9, 11])
    assert slope.per_s == pytest.approx(2.0)
    assert slope.low_per_s == pytest.approx(2.0)
    assert slope.high_per_s == pytest.approx(2.0)
    assert not slope.may_be_level


def test_slope_agrees_with_scipy():
    from scipy import stats

    values = noise(1) + 0.01 * np.array(EVERY_5_S)
    wanted = stats.linregress(EVERY_5_S, values)
    slope = fit_slope(EVERY_5_S, values)
    assert slope.per_s == pytest.approx(wanted.slope)
    # Independent noise: the interval is about the textbook's, at most a little wider.
    reach = stats.t.ppf(0.975, 238) * wanted.stderr
    assert 0.99 * reach <= slope.high_per_s - slope.per_s <= 1.3 * reach


@pytest.mark.parametrize("alike", [0.0, 0.8])
def test_level_noise_is_rarely_taken_for_a_rise(alike):
    found = [fit_slope(EVERY_5_S, noise(seed, alike=alike)) for seed in range(200)]
    # One in forty is promised; the estimate of the likeness costs a little.
    assert sum(not slope.may_be_level for slope in found) <= 12


@pytest.mark.parametrize("alike", [0.0, 0.8])
def test_lag_that_grows_is_found(alike):
    rising = [noise(seed, alike=alike) + 0.01 * np.array(EVERY_5_S) for seed in range(50)]
    assert all(not fit_slope(EVERY_5_S, series).may_be_level for series in rising)


def test_lag_that_grows_faster_and_faster_is_found():
    assert not fit_slope(EVERY_5_S, [t * t for t in EVERY_5_S]).may_be_level


def test_falling_lag_may_be_level():
    assert fit_slope(EVERY_5_S, [-t for t in EVERY_5_S]).may_be_level


@pytest.mark.parametrize("count", [0, 1, 5])
def test_slope_of_too_few_points_is_refused(count):
    with pytest.raises(ValueError, match=f"6 points at different times, not {count}"):
        fit_slope(list(range(count)), [0.0] * count)


def test_slope_of_one_moment_is_refused():
    with pytest.raises(ValueError, match="different times"):
        fit_slope([1.0] * 9, list(range(9)))


# Growth and leaks


def test_growth_compares_the_last_third_with_the_first():
    growth = find_growth(range(9), [10, 12, 11, 0, 99, 0, 20, 22, 21])
    assert (growth.first, growth.last, growth.most_at_first) == (11, 21, 12)
    assert growth.share == pytest.approx(10 / 11)
    assert growth.leaked == 9


def test_what_swings_does_not_leak():
    growth = find_growth(EVERY_5_S, [100 + k % 20 for k in range(240)])
    assert growth.leaked == 0
    assert abs(growth.share) < 0.01


def test_one_leaked_thread_is_found():
    growth = find_growth(EVERY_5_S, [40.0] * 120 + [41.0] * 120)
    assert growth.leaked == 1


def test_slow_leak_under_a_swing_is_found():
    files = [100 + k % 20 + k // 6 for k in range(240)]
    assert find_growth(EVERY_5_S, files).leaked > 0


def test_growth_from_nothing_is_a_leak():
    found = judge_growth([0, 1, 2, 3], [{"a": 1}, {"a": 1}, {"a": 1}, {"a": 1, "new": 2}])
    assert found["new"].leaked == 2
    assert found["a"].leaked == 0


def test_growth_of_too_little_is_refused():
    with pytest.raises(ValueError, match="first and the last third, not 1"):
        find_growth([3.0], [1.0])


def swinging_lag(seed, *, alike, mean_s=15.0, deviation_s=5.0):
    """Some twenty minutes of a lag that swings about its mean, and never is below 1 s."""
    swing = noise(seed, alike=alike, scale=deviation_s * (1.0 - alike**2) ** 0.5)
    return np.maximum(mean_s + swing, 1.0)


@pytest.mark.parametrize("alike", [0.0, 0.8, 0.9])
def test_swings_of_a_level_lag_are_rarely_taken_for_growth(alike):
    found = [
        compare_thirds(EVERY_5_S, swinging_lag(seed, alike=alike)).shares for seed in range(200)
    ]
    assert sum(least > 0.1 for _, least, _ in found) <= 5
    if alike == 0.9:
        # Why there is an interval: the share alone would call many of them grown.
        assert sum(share > 0.1 for share, _, _ in found) > 20


@pytest.mark.parametrize("alike", [0.0, 0.8])
def test_lag_that_steps_up_is_found(alike):
    step_s = np.where(np.array(EVERY_5_S) < 600, 0.0, 15.0)
    series = [swinging_lag(seed, alike=alike) + step_s for seed in range(50)]
    assert all(compare_thirds(EVERY_5_S, each).shares[1] > 0.1 for each in series)


def test_interval_of_a_change_agrees_with_scipy():
    from scipy import stats

    values = 10.0 + noise(3) * np.where(np.array(EVERY_5_S) < 600, 1.0, 3.0)
    low, high = stats.ttest_ind(values[-80:], values[:80], equal_var=False).confidence_interval()
    change = compare_thirds(EVERY_5_S, values)
    assert change.last - change.first == pytest.approx((low + high) / 2)
    # Independent noise: the interval is about the textbook's, at most a little wider.
    assert 0.99 * (high - low) / 2 <= change.reach <= 1.3 * (high - low) / 2


def test_change_of_what_is_constant_is_certain():
    assert compare_thirds(EVERY_5_S, [4.0] * 120 + [5.0] * 120).shares == (0.25, 0.25, 0.25)
    assert compare_thirds(EVERY_5_S, [0.0] * 240).shares == (0.0, 0.0, 0.0)


def test_change_of_too_little_is_refused():
    with pytest.raises(ValueError, match="first and the last third, not 1"):
        compare_thirds([3.0], [1.0])


def test_warm_up_is_a_third_and_at_most_ten_minutes():
    assert warm_up_of(1800.0) == 600.0
    assert warm_up_of(36_000.0) == 600.0
    assert warm_up_of(60.0) == 20.0


# The maximum


def step(rate, *, up=True, born=None):
    rise = 0.0 if up else 0.5
    return Step(
        asked_per_s=rate,
        born_per_s=rate if born is None else born,
        lag_rows=Slope(per_s=rise * rate, low_per_s=0.0, high_per_s=rate),
        lag_s=Slope(per_s=rise, low_per_s=0.0, high_per_s=1.0),
    )


def test_rate_is_kept_up_only_if_it_was_sent_and_lag_stays():
    assert step(1000).keeps_up
    assert not step(1000, up=False).keeps_up
    assert not step(1000, born=800).keeps_up
    assert not replace(step(1000), lag_s=None).keeps_up


def test_search_ends_close_below_the_true_maximum():
    steps = []
    while rate := next_rate(steps, 2000.0, 1.6, 1.12):
        steps.append(step(rate, up=rate <= 17_000))
        assert len(steps) < 20
    assert 17_000 / 1.12 <= find_maximum(steps) <= 17_000


def test_search_goes_down_where_the_first_rate_is_too_much():
    steps = []
    while rate := next_rate(steps, 2000.0, 2.0, 1.5):
        steps.append(step(rate, up=rate <= 300))
    assert 200 <= find_maximum(steps) <= 300


def test_rate_above_one_that_failed_does_not_count():
    assert find_maximum([step(1000), step(2000, up=False), step(3000)]) == 1000
    assert find_maximum([step(1000, up=False)]) == 0


# The phases, on a run that is only a queue


class Queue:
    """Works on all that waits, batch after batch: half a second, and more for each row."""

    def __init__(self, most_per_s):
        self.dial, self.now_s = Dial(0.0), 0.0
        self._most_per_s = most_per_s
        self._born, self._done, self._taken = 0.0, 0.0, 0.0
        self._arrivals = [(0.0, 0.0)]
        self._batch_ends_s = 0.0
        self._upto_s = 0.0

    def wait(self, seconds):
        end_s = self.now_s + seconds
        while self.now_s < end_s - 1e-9:
            self.now_s = min(end_s, self.now_s + 0.05)
            self._born += 0.05 * self.dial.per_s
            self._arrivals.append((self.now_s, self._born))
            if self.now_s >= self._batch_ends_s:
                self._finish_batch()

    def _finish_batch(self):
        self._done, taken = self._taken, self._born
        while len(self._arrivals) > 1 and self._arrivals[1][1] <= self._done:
            self._upto_s = self._arrivals.pop(0)[0]
        self._batch_ends_s = self.now_s + 0.5 + (taken - self._taken) / self._most_per_s
        self._taken = taken

    def read_lag(self):
        return Lag(
            born_rows=round(self._born),
            fog_rows=round(self._born - self._done),
            cloud_rows=0,
            seconds=self.now_s - self._upto_s,
            results_upto_us=round(self._upto_s * 1e6),
        )

    def sample(self, phase):
        return replace(sample(self.now_s, phase), lag=self.read_lag())


@pytest.mark.parametrize("most_per_s", [700.0, 9000.0, 60_000.0])
def test_maximum_of_a_queue_is_found_soaked_and_flooded(most_per_s):
    queue, told = Queue(most_per_s), []
    schedule = Schedule(soak_s=300.0)
    maximum = find_run_maximum(queue, schedule, told.append)
    assert len(told) == len(maximum.steps)
    assert 0.8 * most_per_s <= maximum.per_s <= 1.03 * most_per_s
    samples = []
    assert soak(queue, schedule, 0.8 * maximum.per_s, samples.append) == samples
    assert len(samples) == 60
    late = samples[len(samples) // 3 :]
    slope = fit_slope([s.at_s for s in late], [float(s.lag.rows) for s in late])
    assert slope.may_be_level
    calm_s = max(s.lag.seconds for s in late)
    flood = overload(queue, schedule, maximum.per_s, calm_s, told.append)
    assert flood.asked_per_s == 2 * maximum.per_s
    assert flood.samples[-1].lag.rows > 10 * samples[-1].lag.rows
    assert 0 < flood.recovered_after_s < schedule.patience_s
    assert flood.relief[-1].lag.seconds <= calm_s


class Elastic(Queue):
    """A queue that works on large batches at less for each row, until they are very large."""

    def _finish_batch(self):
        waiting = self._born - self._taken
        saved = 0.12 * min(waiting / (60.0 * self._most_per_s), 1.0)
        super()._finish_batch()
        self._batch_ends_s -= saved * waiting / self._most_per_s


def test_rate_that_is_a_little_too_much_is_found_out_when_it_is_held():
    queue, told = Elastic(9000.0), []
    maximum = find_run_maximum(queue, Schedule(soak_s=300.0), told.append)
    held = [text for text in told if text.startswith("held: ")]
    assert "kept up" in held[-1]
    assert maximum.steps[-1].asked_per_s == maximum.per_s
    assert maximum.steps[-1].lag_s.per_s <= 0.02
    # Short steps alone would have said more.
    searched = [step for step in maximum.steps if step.tolerance == 0.1]
    assert find_maximum(searched) >= maximum.per_s


def test_rate_that_is_plainly_too_much_is_not_held_to_the_end():
    class Timed(Queue):
        """A queue that notes when steps end."""

        def __init__(self, most_per_s):
            super().__init__(most_per_s)
            self.ends_s = []

        def sample(self, phase):
            self.ends_s.append(self.now_s)
            return super().sample(phase)

    def hold(most_per_s):
        queue = Timed(most_per_s)
        begin_s = queue.now_s
        step = take_step(queue, Schedule(soak_s=60.0), 9000.0, 1.0, 300.0, 0.02)
        return step, queue.ends_s[-1] - begin_s

    step, seconds = hold(6000.0)
    assert not step.keeps_up
    assert 60.0 <= seconds < 150.0
    step, seconds = hold(10_000.0)
    assert step.keeps_up
    assert seconds >= 300.0


def test_run_that_holds_no_rate_is_told():
    class Tiring(Queue):
        def _finish_batch(self):
            super()._finish_batch()
            self._most_per_s *= 0.997

    with pytest.raises(ThalwegError, match="no rate could be held for 300 s"):
        find_run_maximum(Tiring(9000.0), Schedule(soak_s=60.0), lambda _text: None)


class Hiccups(Queue):
    """A queue that stands still for some seconds now and then."""

    def __init__(self, most_per_s, seed):
        super().__init__(most_per_s)
        self._rng = np.random.default_rng(seed)

    def _finish_batch(self):
        super()._finish_batch()
        if self._rng.random() < 0.03:
            self._batch_ends_s += 4.0


@pytest.mark.parametrize("seed", range(8))
def test_hiccups_do_not_hide_the_maximum(seed):
    queue = Hiccups(9000.0, seed)
    maximum = find_run_maximum(queue, Schedule(soak_s=300.0), lambda _text: None)
    assert maximum.per_s >= 0.6 * 9000.0


def test_flood_that_does_not_go_is_told():
    queue = Queue(1000.0)
    schedule = Schedule(soak_s=60.0, relief_share=3.0, patience_s=50.0)
    flood = overload(queue, schedule, 1000.0, 1.0, lambda _text: None)
    assert flood.recovered_after_s is None


def test_run_that_keeps_up_with_nothing_is_told():
    with pytest.raises(ThalwegError, match=r"a lag of .* rows does not go in 900 s"):
        find_run_maximum(Queue(0.001), Schedule(soak_s=60.0), lambda _text: None)


# What stays


def test_left_over_is_told_by_name():
    before = Belongings(
        processes=frozenset(),
        threads=("MainThread",),
        open_files=("pipe", "pipe", "run.log"),
        temp_files=frozenset({"a"}),
    )
    after = Belongings(
        processes=frozenset({"fog-0 jvm (7)"}),
        threads=("MainThread", "rides"),
        open_files=("pipe", "pipe", "pipe"),
        temp_files=frozenset({"a", "b"}),
    )
    assert find_left_over(before, before) == {
        "processes": [],
        "threads": [],
        "open files": [],
        "temp files": [],
    }
    assert find_left_over(before, after) == {
        "processes": ["fog-0 jvm (7)"],
        "threads": ["rides"],
        "open files": ["pipe"],
        "temp files": ["b"],
    }


def test_census_finds_a_process_a_thread_a_file_and_a_temp_file_that_stay(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    census, release = ProcessCensus(), threading.Event()
    before = take_belongings(census)
    left = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    thread = threading.Thread(target=release.wait, name="planted")
    thread.start()
    try:
        with (tmp_path / "planted.txt").open("w"):
            figures = census.take({"fog-0": left.pid})
            found = find_left_over(before, take_belongings(census))
    finally:
        release.set()
        thread.join()
        left.communicate(b"\n")
    own = next(each for each in figures if each.pid == os.getpid())
    assert own.role == "coordinator"
    assert own.threads >= 2
    assert own.resident_bytes > MIB
    assert any(each.pid == left.pid and each.role == "fog-0 python" for each in figures)
    assert f"fog-0 python ({left.pid})" in found["processes"]
    assert found["threads"] == ["planted"]
    assert "planted.txt" in found["open files"]
    assert found["temp files"] == ["planted.txt"]
    assert f"fog-0 python ({left.pid})" not in take_belongings(census).processes


def test_folder_is_counted_by_kind_without_the_log(tmp_path):
    for name in (
        "log/sources/rides/fog-0/0/0/1/rows",
        "checkpoints/fog-0@0/commits/3",
        "checkpoints/fog-0@0/metadata",
        "checkpoints/fog-0@0.taken/3",
        "checkpoints/fog-0@0.intake/sources:rides/lots/1.json",
        "sites/fog-0/site.log",
        "timeline.jsonl",
        "decisions.jsonl",
        "status.json",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1234")
    one = FolderFigures(files=1, size_bytes=4)
    assert take_folder(tmp_path) == dict.fromkeys(
        (
            "checkpoints",
            "checkpoints: commits",
            "decisions",
            "lots",
            "other files",
            "sites",
            "taken",
            "timeline",
        ),
        one,
    )
    assert kind_of(("timeline.1.jsonl",)) == "timeline"


def test_histogram_without_a_total_tells_nothing():
    assert read_histogram("12345: no such process") is None
    assert read_histogram(" 1: 5 80 [B\nTotal  5  80\n") == 80


@pytest.mark.jvm
def test_live_heap_of_a_jvm_is_what_is_reachable(tmp_path):
    program = tmp_path / "Held.java"
    program.write_text(
        "class Held { static byte[] held = new byte[50_000_000];"
        " public static void main(String[] a) throws Exception {"
        ' new byte[40_000_000].clone(); System.out.println("up"); System.in.read(); } }'
    )
    java = find_java().path
    with subprocess.Popen(
        [java / "bin" / "java", "-Xmx256m", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as jvm:
        assert jvm.stdout.readline() == b"up\n"
        heap_bytes = live_heap_bytes(jvm.pid, java)
        jvm.communicate(b"\n")
    assert 50_000_000 < heap_bytes < 90_000_000
    assert live_heap_bytes(jvm.pid, java) is None


# Lag


def test_lag_counts_what_is_published_and_not_finished(tmp_path):
    run = FakeRun(tmp_path)
    assert run.gauge.read() == Lag(
        born_rows=0, fog_rows=0, cloud_rows=0, seconds=None, results_upto_us=None
    )
    run.publish("sources/rides", "fog-0", 0, rows=10, upto_s=5)
    run.publish("sources/rides", "fog-0", 1, rows=7, upto_s=9)
    assert run.gauge.read().rows == 17
    run.finish("fog-0@0", "sources/rides", batch=0, end={"fog-0": {"0": 0}})
    run.publish("edges/parse+clean", "fog-0", 0, rows=9, upto_s=5)
    lag = run.gauge.read()
    assert (lag.fog_rows, lag.cloud_rows) == (7, 9)
    run.finish("cloud@0", "edges/parse+clean", batch=0, end={"fog-0": {"0": 0}})
    run.publish("sinks/clock", "cloud", 0, rows=1, upto_s=3)
    lag = run.gauge.read()
    assert (lag.born_rows, lag.fog_rows, lag.cloud_rows) == (17, 7, 0)
    assert lag.seconds == pytest.approx(6.0)
    assert run.gauge.segments == 4


class FakeRun:
    """A log and checkpoints as a run writes them."""

    def __init__(self, folder):
        self._log, self._checkpoints = folder / "log", folder / "checkpoints"
        (self._checkpoints / "cloud@0.intake" / "edges:parse+clean").mkdir(parents=True)
        self._log.mkdir()
        self.gauge = LagGauge(self._log, self._checkpoints, "rides", "cloud")

    def publish(self, stream, site, batch, *, rows, upto_s):
        times = pa.array([upto_s * 1_000_000] * rows, pa.timestamp("us", "UTC"))
        writer = LogWriter(self._log, stream, site, 0, time="time", durable=False)
        writer.publish(batch, pa.table({"time": times}))

    def finish(self, checkpoint, stream, *, batch, end):
        label, folder = stream.replace("/", ":"), self._checkpoints / checkpoint
        (folder / "commits").mkdir(parents=True, exist_ok=True)
        (folder / "commits" / str(batch)).touch()
        taken = folder.with_name(f"{checkpoint}.taken")
        taken.mkdir(exist_ok=True)
        (taken / str(batch)).write_text(json.dumps({"lots": {label: 0, "clock": 3}, "rows": {}}))
        lots = folder.with_name(f"{checkpoint}.intake") / label / "lots"
        lots.mkdir(parents=True, exist_ok=True)
        (lots / "0.json").write_text(json.dumps({"number": 0, "start": {}, "end": end}))


def test_least_of_some_looks_at_a_heap_counts(monkeypatch):
    looks = {1: [150, 110, 174, 105, 120], 2: [90, None, 80, 95, 85], 3: [None] * 5}
    left = {pid: iter(heaps) for pid, heaps in looks.items()}
    monkeypatch.setattr(census, "live_heap_bytes", lambda pid, _java: next(left[pid]))
    waited = []
    found = least_live_heaps({"cloud jvm": 1, "fog jvm": 2, "dead jvm": 3}, Path(), waited.append)
    assert found == {"cloud jvm": 105, "fog jvm": 80}
    assert waited[0] == 0.0
    assert all(waited[1:])


# The report


def sample(at_s, phase="soak", *, lag_rows=100, memory=100 * MIB, threads=10, files=50, per_s=800):
    return Sample(
        at_s=at_s,
        phase=phase,
        asked_per_s=800.0,
        lag=Lag(
            born_rows=int(per_s * at_s),
            fog_rows=int(lag_rows),
            cloud_rows=0,
            seconds=3.0 + lag_rows / 800,
            results_upto_us=0,
        ),
        processes=(
            ProcessFigures(
                role="fog-0 jvm",
                pid=7,
                resident_bytes=int(memory),
                threads=int(threads),
                open_files=20,
            ),
        ),
        folder={"lots": FolderFigures(files=int(files), size_bytes=1000)},
        segments=1,
        log_bytes=1,
        temp_files=0,
    )


def compared(*, missing=0, extra=0):
    verdict = Verdict(expected=90, found=90 - missing + extra, lost=missing, duplicated=extra)
    return Compared(born=1000, verdicts={"board": verdict})


def findings(*, missing=0, extra=0, left_over=(), recovered_s=40.0, flood_per_s=2000, **series):
    soaked = [sample(t, **{name: of(t) for name, of in series.items()}) for t in EVERY_5_S]
    return Findings(
        schedule=QUICK,
        maximum=Maximum(per_s=1000.0, steps=(step(1000), step(1200, up=False))),
        soak=soaked,
        heaps=({"fog-0 jvm": 1000}, {"fog-0 jvm": 1010}),
        overload=Overload(
            asked_per_s=2000.0,
            samples=tuple(
                sample(2000.0 + t, "overload", lag_rows=900 * t, per_s=flood_per_s)
                for t in range(1, 9)
            ),
            relief=(sample(2100.0, "relief"),),
            calm_lag_s=4.0,
            recovered_after_s=recovered_s,
        ),
        compared=compared(missing=missing, extra=extra),
        left_over={"threads": list(left_over)},
    )


def missed(found):
    return [row.measure for row in tell_findings(found) if row.met is False]


def test_run_without_faults_meets_every_target():
    found = findings()
    assert missed(found) == []
    assert json.loads(json.dumps(detail_findings(found), allow_nan=False))


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ({"lag_rows": lambda t: 100 + t}, "soak: lag slope, lower end of its interval"),
        ({"memory": lambda t: (100 + 0.02 * t) * MIB}, "soak: memory growth, fog-0 jvm"),
        ({"threads": lambda t: 10 + t // 400}, "soak: leaked threads"),
        ({"files": lambda t: 50 + t // 10}, "soak: leaked files: lots"),
        ({"missing": 1}, "result: rows lost"),
        ({"extra": 1}, "result: rows duplicated"),
        ({"left_over": ["rides"]}, "end: threads left over"),
        ({"recovered_s": None}, "overload: time until the lag is back"),
        ({"flood_per_s": 1100}, "overload: rate that came in"),
        (
            {"lag_rows": lambda t: 100 + 400 * (t > 800)},
            "soak: lag growth, lower end of its interval",
        ),
    ],
)
def test_planted_fault_misses_its_target(fault, told):
    assert told in missed(findings(**fault))


def test_memory_that_steps_up_in_the_warm_up_alone_is_no_growth():
    assert missed(findings(memory=lambda t: (60 if t < 300 else 100) * MIB)) == []


class FakeRig(Queue):
    """A queue in place of a run, with all that a campaign asks of one."""

    def __init__(self, folder, samples):
        super().__init__(9000.0)
        folder.mkdir()
        self.run, self.census = None, ProcessCensus()
        self.ended = False

    def __enter__(self):
        # The folder for temporary files is one's own.
        (Path(tempfile.gettempdir()) / "planted").touch()
        return self

    def __exit__(self, *_):
        pass

    def live_heaps(self):
        return {"fog-0 jvm": 1000}

    def finish(self):
        self.dial.per_s = 0.0


@pytest.mark.parametrize("form", ["json", "table"])
def test_campaign_writes_its_report_and_tells_what_was_missed(form, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(command, "Rig", FakeRig)
    monkeypatch.setattr(command, "await_last_row", lambda _run, patience_s: None)
    monkeypatch.setattr(command, "compare_with_one_place", lambda _run: compared())
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    out = tmp_path / "results" / "load.json"
    # The file that the run left behind is its one fault.
    assert command.main(["--seconds", "300", "--format", form, "--out", str(out)]) == 1
    document = json.loads(out.read_text())
    assert [r["measure"] for r in document["rows"] if r["met"] is False] == [
        "end: temp files left over"
    ]
    assert document["machine"]["cores"] >= 1
    printed = capsys.readouterr().out
    assert printed == out.read_text() if form == "json" else "result: rows lost" in printed
    # Everything else that it made is gone.
    assert sorted(path.name for path in tmp_path.iterdir()) == ["results"]


def test_run_that_fails_is_told_in_a_line(tmp_path, monkeypatch, capsys):
    def fail(_folder, _samples):
        raise ThalwegError("no Java")

    monkeypatch.setattr(command, "Rig", fail)
    assert command.main(["--quick", "--out", str(tmp_path / "load.json")]) == 1
    assert capsys.readouterr().err == "campaign.load: no Java\n"


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (["--seconds", "3"], "--seconds: got 3, need 30 to 86400 s"),
        (["--seconds", "nan"], "--seconds: got nan, need 30 to 86400 s"),
        (["--first-rate", "0"], "--first-rate: got 0, need 1 to 1,000,000 rides/s"),
    ],
)
def test_soak_of_no_time_or_no_rides_is_refused(asked, told, capsys):
    with pytest.raises(SystemExit) as ended:
        command.main(asked)
    assert ended.value.code == 2
    assert told in capsys.readouterr().err


def test_search_begins_with_the_rate_that_is_asked_for(tmp_path, monkeypatch):
    schedules = []

    def stop(_folder, schedule, _samples):
        schedules.append(schedule)
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "_run", stop)
    out = ["--out", str(tmp_path / "load.json")]
    assert command.main([*out, "--first-rate", "500", "--seconds", "60"]) == 130
    assert command.main([*out, "--quick"]) == 130
    assert [(s.first_per_s, s.soak_s) for s in schedules] == [(500, 60), (QUICK.first_per_s, 40)]


@pytest.mark.jvm
@pytest.mark.slow
def test_quick_campaign_loses_nothing_and_leaves_nothing(tmp_path):
    out = tmp_path / "load.json"
    asked = [sys.executable, "-m", "campaign.load", "--quick", "--out", str(out)]
    ran = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, timeout=900)
    assert ran.returncode in (0, 1), ran.stderr
    rows = {row["measure"]: row for row in json.loads(out.read_text())["rows"]}
    for name in ("result: rows lost", "result: rows duplicated"):
        assert rows[name]["value"] == 0, ran.stdout
    # A clock says nothing here: how fast this machine is, and how busy, is not the question.
    for name, row in rows.items():
        if name.startswith(("end:", "result:", "overload:")):
            assert row["met"] is not False, f"{name}: {row}\n{ran.stderr}"
    samples = (tmp_path / "load-samples.jsonl").read_text().splitlines()
    phases = {json.loads(line)["phase"] for line in samples}
    assert phases == {"maximum", "soak", "overload", "relief"}
