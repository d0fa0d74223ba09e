"""How long does the output pause when an operator with keyed state moves to another site?

An operator with a state of so many megabytes runs on one of two local sites, at load; it moves to
the other site and back, again and again. The pause is the time from the last output before a move
to the first one after it. Beyond one micro-batch: less the median time between two outputs when
nothing moves. A megabyte is a million bytes of state in memory.
"""

from __future__ import annotations

import itertools
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa

from benchmarks.runner import REGISTER, Benchmark, Count, Result, Row, Settings
from thalweg.spark.keyed.log import KeyedLog, Ledger
from thalweg.spark.keyed.mover import KeyedMover
from thalweg.spark.keyed.operator import keyed
from thalweg.spark.keyed.spec import KeyedSpec
from thalweg.spark.log.reader import Log, LogWriter
from thalweg.spark.site.site import SiteSpec
from thalweg.spark.site.sites import Sites

TARGET_S = 3.0
NOTE_BYTES = 180
ROW_BYTES = NOTE_BYTES + 20
ROWS_PER_S = 2_000
SEGMENTS_PER_S = 20
ROWS_PER_LOAD = 25_000
STEADY_S = 4.0
PATIENCE_S = 300.0
HEX = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much is measured."""

    megabytes: tuple[int, ...]
    moves: int
    steady_s: float = STEADY_S


FULL = Size(megabytes=(1, 10, 100), moves=6)
QUICK = Size(megabytes=(1, 10), moves=2)
SMOKE = Size(megabytes=(1,), moves=1, steady_s=1.0)


@keyed(
    by="device",
    rows="row long, device long, note string",
    state="seen long, note string",
    output="row long, device long, seen long",
)
def remember(rows: pa.Table, state: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The last note of each device, and how many it sent; with each row out, how many so far."""
    devices, notes = rows.column("device").to_pylist(), rows.column("note").to_pylist()
    before = (state.column("device").to_pylist(), state.column("seen").to_pylist())
    seen = dict(zip(*before, strict=True))
    last: dict[int, str] = {}
    counts = []
    for device, note in zip(devices, notes, strict=True):
        seen[device] = seen.get(device, 0) + 1
        last[device] = note
        counts.append(seen[device])
    output = pa.table({"row": rows.column("row"), "device": devices, "seen": counts})
    kept = {"device": list(last), "seen": [seen[d] for d in last], "note": list(last.values())}
    return output, pa.table(kept)


def run(settings: Settings) -> Result:
    """Move states of several sizes to and fro."""
    size = settings.pick(full=FULL, quick=QUICK, smoke=SMOKE)
    rows: list[Row] = []
    counts: list[Count] = []
    with _work_folder() as folder, Sites() as sites:
        settings.tell("starting two sites")
        sites.start([SiteSpec(name=name, folder=folder / name) for name in ("fog-1", "fog-2")])
        for megabytes in size.megabytes:
            settings.tell(f"{megabytes} MB of state")
            course = Course(
                sites=sites,
                folder=folder / f"{megabytes}",
                megabytes=megabytes,
                steady_s=size.steady_s,
            )
            rows += course.run(size.moves)
            counts += course.counts
    notes = [
        f"{ROWS_PER_S:,} rows/s to random keys in {SEGMENTS_PER_S} segments/s, all the while; "
        f"{ROW_BYTES} bytes of state for each key; both sites, what feeds them and what measures "
        "them share one machine",
        "every row that went in came out once, and the state read from the log at the end had the "
        "fingerprint that the last commit says: a run with anything else fails",
    ]
    return Result(rows=rows, notes=notes, counts=counts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """Moves of a state of one size."""

    sites: Sites
    folder: Path
    megabytes: int
    steady_s: float = STEADY_S
    counts: list[Count] = field(default_factory=list)

    @property
    def spec(self) -> KeyedSpec:
        """The operator that moves."""
        return KeyedSpec(
            operator="benchmarks.spark_state:remember",
            folder=self.folder / "run",
            log=self.folder / "log",
            input="sources/notes",
            output="sinks/seen",
            rows_per_batch=ROWS_PER_LOAD,
        )

    def run(self, moves: int) -> Iterator[Row]:
        """The pauses of some moves, and what they are to be compared with."""
        keys = round(self.megabytes * 1e6 / ROW_BYTES)
        load = Load(self.spec, keys)
        with KeyedMover(self.spec, self.sites) as mover:
            mover.go_to("fog-1")
            load.fill()
            self._wait_for(keys)
            spans: list[tuple[float, float]] = []
            with load.running():
                time.sleep(self.steady_s)
                for _ in range(moves):
                    begin = time.time()
                    mover.go_to("fog-2" if mover.state.site == "fog-1" else "fog-1")
                    spans.append((begin, time.time()))
                    time.sleep(self.steady_s)
            self._wait_for(load.rows)
            state_bytes = self._check(load.rows)
            for run in (mover.state.running,):
                self.sites[str(mover.state.site)].stop(self.spec.query(run).name)
        yield from self._tell(spans, keys, state_bytes)

    def _wait_for(self, rows: int) -> None:
        log = Log(self.spec.log)
        deadline = time.monotonic() + PATIENCE_S
        while sum(segment.rows for segment in log.segments(self.spec.output)) < rows:
            if time.monotonic() > deadline:
                raise RuntimeError("the output does not come")
            time.sleep(0.1)

    def _check(self, rows: int) -> int:
        """The bytes of the state at the end; also counts the rows that came out of it."""
        table = Log(self.spec.log).read(self.spec.output)
        numbers = table.column("row").to_pylist()
        ledger = Ledger(KeyedLog(Log(self.spec.log), remember))
        ledger.follow(1_000_000)
        whole = ledger.state.to_table()
        at = f"with {self.megabytes} MB of state"
        found = {
            "different rows out": len(set(numbers)),
            "rows out": len(numbers),
            "rows that the state has seen": sum(whole.column("seen").to_pylist()),
        }
        self.counts.extend(
            Count(name=f"{name}, {at}", expected=rows, counted=counted)
            for name, counted in found.items()
        )
        return int(whole.nbytes)

    def _tell(
        self, spans: Sequence[tuple[float, float]], keys: int, state_bytes: int
    ) -> Iterator[Row]:
        segments = sorted(
            (segment.folder.stat().st_ctime, segment.epoch)
            for segment in Log(self.spec.log).segments(self.spec.output)
        )
        gaps = [
            (at, after - at, epoch != next_epoch)
            for (at, epoch), (after, next_epoch) in itertools.pairwise(segments)
            if at > spans[0][0] - self.steady_s / 2
        ]
        steady = median(gap for at, gap, moved in gaps if not _within(at, spans))
        pauses = [gap for _, gap, moved in gaps if moved]
        beside = [gap for at, gap, moved in gaps if not moved and _within(at, spans)]
        at = {"state_MB": self.megabytes}
        note = f"{len(pauses)} moves; {state_bytes / 1e6:.1f} MB with {keys:,} keys"
        yield Row(
            measure="pause beyond one micro-batch, longest",
            value=max(pauses) - steady,
            unit="s",
            target=TARGET_S,
            at=at,
            note=note,
        )
        yield Row(
            measure="pause beyond one micro-batch", value=median(pauses) - steady, unit="s", at=at
        )
        yield Row(measure="between two outputs, steady", value=steady, unit="s", at=at)
        yield Row(
            measure="between two outputs while the target prepares, longest",
            value=max(beside, default=None),
            unit="s",
            at=at,
        )
        yield Row(
            measure="whole move", value=median(end - begin for begin, end in spans), unit="s", at=at
        )


def _within(at: float, spans: Sequence[tuple[float, float]]) -> bool:
    return any(begin <= at <= end + 0.5 for begin, end in spans)


class Load:
    """Numbered rows with notes of devices: first one of each, then of random ones."""

    def __init__(self, spec: KeyedSpec, keys: int) -> None:
        self.rows = 0
        self._writer = LogWriter(spec.log, spec.input, "gateway", 0, durable=False)
        self._keys = keys
        self._batch = 0
        self._rng = np.random.default_rng(1)

    def fill(self) -> None:
        """A note of each device."""
        for first in range(0, self._keys, ROWS_PER_LOAD):
            self._publish(np.arange(first, min(first + ROWS_PER_LOAD, self._keys)))

    @contextmanager
    def running(self) -> Iterator[None]:
        """Rows at a steady rate, for the length of the block."""
        ending = threading.Event()

        def send() -> None:
            count = ROWS_PER_S // SEGMENTS_PER_S
            due = time.monotonic()
            while not ending.is_set():
                self._publish(self._rng.integers(0, self._keys, count))
                due += 1 / SEGMENTS_PER_S
                time.sleep(max(0.0, due - time.monotonic()))

        thread = threading.Thread(target=send)
        thread.start()
        try:
            yield
        finally:
            ending.set()
            thread.join()

    def _publish(self, devices: np.ndarray[tuple[int], np.dtype[np.int64]]) -> None:
        letters = HEX[self._rng.integers(0, 16, (len(devices), NOTE_BYTES))]
        notes = [line.tobytes().decode() for line in letters]
        numbers = np.arange(self.rows, self.rows + len(devices))
        table = pa.table({"row": numbers, "device": devices, "note": notes})
        self._writer.publish(self._batch, table)
        self._batch += 1
        self.rows += len(devices)


@contextmanager
def _work_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="thalweg-state-") as folder:
        yield Path(folder)


REGISTER.add(
    Benchmark(
        name="spark_state",
        question=(
            "How long does the output pause when an operator with keyed state moves to another "
            "site?"
        ),
        run=run,
    )
)
