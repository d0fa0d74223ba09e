"""What else can happen: disks that are away or full, clocks, brokers, damaged checkpoints."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from campaign.outcome import Diary, Ending, Outcome
from campaign.trial import ROOT, Trial, TrialStuck, wait_until
from thalweg.errors import ThalwegError
from thalweg.spark.query.checkpoint import last_finished

OUTAGE_S = 8.0
CLOCK, LOG_AWAY, LINK_AWAY = "clock set forward and back", "log's disk away", "link's disk away"
DISK_FULL, BROKER = "disk full", "Kafka broker killed"
TORN_COMMIT, TORN_OFFSETS = "last commit of a checkpoint torn", "offsets of a checkpoint torn"
_JUMPS_S = (3600.0, 0.0, -3600.0, 0.0)
_DISK_MB = 512


class CannotInject(ThalwegError):
    """This machine lacks what a fault needs."""


def judge(kind: str, trial: Trial, diary: Diary, began_s: float) -> Outcome:
    """Finish a trial, and say what came of it."""
    verdicts = trial.finish()
    return Outcome(
        kind=kind,
        injections=tuple(diary.injections),
        verdicts=verdicts,
        events=trial.feed.count,
        seconds=time.monotonic() - began_s,
    )


def recover(trial: Trial, diary: Diary, what: str, since_s: float) -> None:
    """See that a deployment goes on; one that refused is started by the same command."""
    ending: Ending = "healed"
    reason = ""
    deadline = time.monotonic() + 5.0
    while trial.is_there and time.monotonic() < deadline:
        time.sleep(0.1)
    if not trial.is_there:
        if trial.refusal is None:
            raise TrialStuck(f"{what}: ended without a reason\n{trial.tell()}")
        ending, reason = "refused", trial.refusal
        trial.start()
        trial.await_running()
    trial.await_rows()
    pauses = [pause for at, pause in trial.pauses() if at >= since_s]
    diary.write(what, ending, max(pauses, default=0.0), reason)


# The clock


def jump_clock(folder: Path, jumps_s: tuple[float, ...] = _JUMPS_S) -> Outcome:
    """Set the clock of all processes of a deployment forward and back, while it runs."""
    began_s, diary = time.monotonic(), Diary()
    folder.mkdir(parents=True)
    clock = ShiftedClock(folder)
    with Trial(folder / "trial", environment=clock.environment) as trial:
        for shift_s in jumps_s:
            since_s = time.time()
            clock.set(shift_s)
            time.sleep(2.0)
            recover(trial, diary, f"clock at {shift_s:+g} s", since_s)
        return judge(CLOCK, trial, diary, began_s)


class ShiftedClock:
    """A clock on the wall that can be set, for processes that are started with its environment."""

    def __init__(self, folder: Path) -> None:
        compiler = shutil.which("cc") or shutil.which("gcc")
        if compiler is None:
            raise CannotInject("there is no C compiler to shift the clock with")
        self._file = folder / "clock"
        library = folder / "clock_shim.so"
        source = Path(__file__).with_name("clock_shim.c")
        command = [compiler, "-O2", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"]
        subprocess.run(command, check=True, capture_output=True)  # nosec B603  # our own source
        self._file.write_bytes(struct.pack("q", 0))
        self.environment = {"LD_PRELOAD": str(library), "CLOCK_SHIFT": str(self._file)}

    def set(self, shift_s: float) -> None:
        """Say how far the clock is ahead from now on."""
        with self._file.open("r+b") as file:
            file.write(struct.pack("q", round(shift_s * 1e9)))


# Disks


def take_log_away(folder: Path, *, ships: bool, outage_s: float = OUTAGE_S) -> Outcome:
    """Take the disk of the cloud's log away, leaving an empty folder; then bring it back."""
    began_s, diary = time.monotonic(), Diary()
    log = folder / "run" / "log"
    with Trial(folder, link=f"directory://{log}" if ships else None) as trial:
        for left in ("nothing", "an empty folder"):
            since_s = time.time()
            away = folder / "away"
            log.rename(away)
            if left != "nothing":
                log.mkdir()
            time.sleep(outage_s)
            # Whatever was written there meanwhile is hidden by the disk that is back.
            shutil.rmtree(log, ignore_errors=True)
            away.rename(log)
            recover(trial, diary, f"away for {outage_s:g} s, leaving {left}", since_s)
        return judge(LINK_AWAY if ships else LOG_AWAY, trial, diary, began_s)


def fill_disk(folder: Path, outage_s: float = OUTAGE_S) -> Outcome:
    """Fill the disk of a deployment, and free it again."""
    began_s, diary = time.monotonic(), Diary()
    with small_disk(folder, _DISK_MB) as disk, Trial(disk / "trial") as trial:
        for round_ in range(2):
            since_s = time.time()
            ballast = disk / "ballast"
            deadline = time.monotonic() + outage_s
            while time.monotonic() < deadline:
                # What is freed meanwhile is filled, too.
                _fill(ballast)
                time.sleep(0.05)
            ballast.unlink()
            recover(trial, diary, f"full for {outage_s:g} s, time {round_ + 1}", since_s)
        return judge(DISK_FULL, trial, diary, began_s)


def _fill(ballast: Path) -> None:
    with suppress(OSError), ballast.open("ab", buffering=0) as file:
        for size in (2**20, 2**12, 1):
            with suppress(OSError):
                while True:
                    file.write(b"\0" * size)


@contextmanager
def small_disk(folder: Path, size_mb: int) -> Iterator[Path]:
    """A disk of its own for a while, in memory.

    Raises:
        CannotInject: where this process may not mount one.
    """
    folder.mkdir(parents=True)
    mount, unmount = shutil.which("mount"), shutil.which("umount")
    if mount is None or unmount is None or os.geteuid() != 0:
        raise CannotInject("only root can mount a small disk")
    command = [mount, "-t", "tmpfs", "-o", f"size={size_mb}m", "tmpfs", str(folder)]
    done = subprocess.run(  # nosec B603  # a folder of ours, as a word of its own
        command, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise CannotInject(f"a small disk cannot be mounted: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(  # nosec B603  # a folder of ours, as a word of its own
            [unmount, "-l", str(folder)], check=False, capture_output=True
        )


# The broker


def kill_broker(folder: Path, outage_s: float = OUTAGE_S) -> Outcome:
    """Kill the Kafka broker that the link of a deployment goes over, and start it again."""
    began_s, diary = time.monotonic(), Diary()
    folder.mkdir(parents=True)
    with (
        running_broker(folder) as broker,
        Trial(folder / "trial", link=broker.address("campaign")) as trial,
    ):
        for round_ in range(2):
            since_s = time.time()
            broker.kill()
            time.sleep(outage_s)
            broker.start()
            recover(trial, diary, f"away for {outage_s:g} s, time {round_ + 1}", since_s)
        return judge(BROKER, trial, diary, began_s)


@contextmanager
def running_broker(folder: Path) -> Iterator[Any]:
    """A Kafka broker on this machine.

    Raises:
        CannotInject: where there is none to be had.
    """
    # The broker of the tests; it skips them where it cannot be had.
    tests = str(ROOT / "tests")
    if tests not in sys.path:
        sys.path.append(tests)
    try:
        import confluent_kafka  # noqa: F401
        import pytest

        from spark.kafka_broker import Broker
    except ImportError as error:
        raise CannotInject(f"no Kafka client: {error}") from error
    try:
        broker = Broker(folder)
    except pytest.skip.Exception as skipped:
        raise CannotInject(str(skipped)) from None
    broker.start()
    try:
        yield broker
    finally:
        broker.kill()


# Checkpoints


def tear_commit(folder: Path) -> Outcome:
    """Cut off the last commit of every checkpoint while nothing runs, as a power cut may."""
    began_s, diary = time.monotonic(), Diary()
    with Trial(folder) as trial:
        since_s = time.time()
        trial.kill()
        for checkpoint in _running_checkpoints(trial):
            (checkpoint / "commits" / str(last_finished(checkpoint))).write_bytes(b"")
        trial.start()
        trial.await_running()
        recover(trial, diary, "the last commit of every checkpoint is empty", since_s)
        return judge(TORN_COMMIT, trial, diary, began_s)


def tear_offsets(folder: Path) -> Outcome:
    """Damage a checkpoint beyond repair: refused with a reason, and mended as it says."""
    began_s, diary = time.monotonic(), Diary()
    with Trial(folder) as trial:
        since_s = time.time()
        trial.kill()
        for checkpoint in _running_checkpoints(trial):
            if checkpoint.name.startswith("cloud"):
                (checkpoint / "offsets" / str(last_finished(checkpoint))).write_bytes(b"")
        trial.start()
        wait_until(lambda: not trial.is_there, "the deployment refuses", tell=trial.tell)
        reason = trial.refusal
        if reason is None or "thalweg doctor" not in reason:
            raise TrialStuck(f"a damaged checkpoint was not refused with a remedy: {trial.tell()}")
        command = [sys.executable, "-m", "thalweg", "doctor", str(trial.folder.path)]
        subprocess.run(  # nosec B603  # this Python, a module of ours
            [*command, "--rebuild", "--yes"], check=True, capture_output=True
        )
        trial.start()
        trial.await_running()
        trial.await_rows()
        pauses = [pause for at, pause in trial.pauses() if at >= since_s]
        diary.write("offsets of the cloud are empty", "refused", max(pauses, default=0.0), reason)
        return judge(TORN_OFFSETS, trial, diary, began_s)


def _running_checkpoints(trial: Trial) -> list[Path]:
    """The checkpoint of the newest epoch at every site."""
    found: dict[str, Path] = {}
    for checkpoint in (trial.folder.path / "checkpoints").iterdir():
        site, _, epoch = checkpoint.name.partition("@")
        if epoch.isdecimal():
            newest = found.setdefault(site, checkpoint)
            if int(epoch) > int(newest.name.partition("@")[2]):
                found[site] = checkpoint
    return sorted(found.values())
