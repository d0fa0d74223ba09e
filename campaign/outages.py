"""What else can happen: disks that are away or full, clocks, brokers, damaged checkpoints."""

from __future__ import annotations

import json
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

from campaign.hosting import ROOT, TrialStuck, wait_until
from campaign.outcome import Diary, Ending, Outcome
from campaign.trial import Trial
from thalweg.errors import ThalwegError
from thalweg.spark.query.checkpoint import last_finished

OUTAGE_S = 8.0
CLOCK, LOG_AWAY, LINK_AWAY = "clock set forward and back", "log's disk away", "link's disk away"
DISK_FULL, BROKER = "disk full", "Kafka broker killed"
TORN_COMMIT, TORN_OFFSETS = "last commit of a checkpoint torn", "offsets of a checkpoint torn"
# Ten days: Spark forgets after seven, and takes nothing that is so much older than the newest.
_JUMPS_S = (3600.0, 0.0, -3600.0, 864_000.0, 0.0)
_DISK_MB = 512
_SETTLE_S = 5.0
_CLOCK_SLACK_S = 30.0
MOST_OF_IT = 0.8
"""Of an outage, for which output must have stopped: the first of it may go to a batch under way."""
_FULL_BLOCKS = 4


class CannotInject(ThalwegError):
    """This machine lacks what a fault needs."""


def recover(trial: Trial, diary: Diary, what: str, since_s: float, least_s: float = 0.0) -> None:
    """See that a deployment goes on; one that refused is started by the same command.

    Raises:
        TrialStuck: where it ended without a reason, or output never stopped for as long as it must
            have: then there was no fault.
    """
    ending: Ending = "healed"
    reason = ""
    deadline = time.monotonic() + _SETTLE_S
    while trial.host.is_there and time.monotonic() < deadline:
        time.sleep(0.1)
    if not trial.host.is_there:
        if trial.host.refusal is None:
            raise TrialStuck(f"{what}: ended without a reason\n{trial.tell()}")
        ending, reason = "refused", trial.host.refusal
        trial.resume()
    trial.await_rows()
    pause_s = trial.longest_pause_s(since_s)
    if pause_s < least_s:
        raise TrialStuck(f"{what}: output stopped for {pause_s:.1f} s only: it was no fault")
    diary.write(what, ending, pause_s, reason)


# The clock


def jump_clock(folder: Path, jumps_s: tuple[float, ...] = _JUMPS_S) -> Outcome:
    """Set the clock of all processes of a deployment forward and back, while it runs."""
    began_s, diary = time.monotonic(), Diary()
    folder.mkdir(parents=True)
    clock = ShiftedClock(folder)
    with Trial(folder / "trial", environment=clock.environment) as trial:
        trial.begin()
        for shift_s in jumps_s:
            since_s = time.time()
            clock.set(shift_s)
            _await_shift(trial, shift_s)
            recover(trial, diary, f"clock at {shift_s:+g} s", since_s)
        return diary.close(CLOCK, trial.finish(), trial.feed.count, began_s)


def _await_shift(trial: Trial, shift_s: float) -> None:
    """Wait until the deployment itself goes by that clock, and Spark's batches at every site do."""

    def goes() -> bool:
        told_s = [float(trial.folder.read_status().get("heartbeat_s", 0.0))]
        told_s += [_batch_time_s(checkpoint) for checkpoint in _running_checkpoints(trial)]
        return all(abs(at_s - time.time() - shift_s) < _CLOCK_SLACK_S for at_s in told_s)

    wait_until(goes, f"the clock of the deployment is at {shift_s:+g} s", tell=trial.tell)


def _batch_time_s(checkpoint: Path) -> float:
    """What time it was for Spark when the last batch of a query began."""
    newest = max(
        int(file.name) for file in (checkpoint / "offsets").iterdir() if file.name.isdecimal()
    )
    _, told, *_ = (checkpoint / "offsets" / str(newest)).read_text(encoding="utf-8").splitlines()
    return float(json.loads(told)["batchTimestampMs"]) / 1000.0


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


@contextmanager
def disk_away(log: Path, *, leaving_a_folder: bool) -> Iterator[None]:
    """Take a log away for as long as the block takes, as a disk goes that was mounted there."""
    away = log.with_name(f"{log.name}-away")
    log.rename(away)
    if leaving_a_folder:
        log.mkdir()
    try:
        yield
    finally:
        # Whatever was written there meanwhile is hidden by the disk that is back.
        shutil.rmtree(log, ignore_errors=True)
        away.rename(log)


def take_log_away(folder: Path, *, ships: bool, outage_s: float = OUTAGE_S) -> Outcome:
    """Take the disk of the cloud's log away, leaving an empty folder; then bring it back."""
    began_s, diary = time.monotonic(), Diary()
    log = folder / "run" / "log"
    with Trial(folder, link=f"directory://{log}" if ships else None) as trial:
        trial.begin()
        for left in ("nothing", "an empty folder"):
            since_s = time.time()
            with disk_away(log, leaving_a_folder=left != "nothing"):
                time.sleep(outage_s)
            what = f"away for {outage_s:g} s, leaving {left}"
            recover(trial, diary, what, since_s, MOST_OF_IT * outage_s)
        kind = LINK_AWAY if ships else LOG_AWAY
        return diary.close(kind, trial.finish(), trial.feed.count, began_s)


def fill_disk(folder: Path, outage_s: float = OUTAGE_S) -> Outcome:
    """Fill the disk of a deployment, and free it again."""
    began_s, diary = time.monotonic(), Diary()
    with small_disk(folder, _DISK_MB) as disk, Trial(disk / "trial") as trial:
        trial.begin()
        for round_ in range(2):
            since_s = time.time()
            ballast = disk / "ballast"
            deadline = time.monotonic() + outage_s
            while time.monotonic() < deadline:
                # What is freed meanwhile is filled, too.
                _fill(ballast)
                time.sleep(0.05)
            if os.statvfs(disk).f_bavail > _FULL_BLOCKS:
                raise TrialStuck("the disk could not be filled")
            ballast.unlink()
            what = f"full for {outage_s:g} s, time {round_ + 1}"
            recover(trial, diary, what, since_s, MOST_OF_IT * outage_s)
        return diary.close(DISK_FULL, trial.finish(), trial.feed.count, began_s)


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
        trial.begin()
        for round_ in range(2):
            since_s = time.time()
            broker.kill()
            time.sleep(outage_s)
            broker.start()
            what = f"away for {outage_s:g} s, time {round_ + 1}"
            recover(trial, diary, what, since_s, MOST_OF_IT * outage_s)
        return diary.close(BROKER, trial.finish(), trial.feed.count, began_s)


@contextmanager
def running_broker(folder: Path) -> Iterator[Any]:
    """A Kafka broker on this machine.

    Raises:
        CannotInject: where there is none to be had.
    """
    # The broker of the tests.
    tests = str(ROOT / "tests")
    if tests not in sys.path:
        sys.path.append(tests)
    try:
        import confluent_kafka  # noqa: F401

        from spark.kafka_broker import Broker, BrokerMissing
    except ImportError as error:
        raise CannotInject(f"no Kafka client: {error}") from error
    try:
        broker = Broker(folder)
    except BrokerMissing as missing:
        raise CannotInject(str(missing)) from None
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
        trial.begin()
        since_s = time.time()
        trial.kill()
        for checkpoint in _running_checkpoints(trial):
            (checkpoint / "commits" / str(last_finished(checkpoint))).write_bytes(b"")
        trial.resume()
        causes = [decision.get("cause") for decision in trial.folder.read_decisions()]
        if "repair" not in causes:
            raise TrialStuck(f"nothing was mended: {causes}")
        trial.await_rows()
        what = "the last commit of every checkpoint is empty"
        diary.write(what, "resumed", trial.longest_pause_s(since_s))
        return diary.close(TORN_COMMIT, trial.finish(), trial.feed.count, began_s)


def tear_offsets(folder: Path) -> Outcome:
    """Damage a checkpoint beyond repair: refused with a reason, and mended as it says."""
    began_s, diary = time.monotonic(), Diary()
    with Trial(folder) as trial:
        trial.begin()
        since_s = time.time()
        trial.kill()
        for checkpoint in _running_checkpoints(trial):
            if checkpoint.name.startswith("cloud"):
                (checkpoint / "offsets" / str(last_finished(checkpoint))).write_bytes(b"")
        trial.host.start()
        trial.host.await_end()
        reason = trial.host.refusal
        if reason is None or "thalweg doctor" not in reason:
            raise TrialStuck(f"a damaged checkpoint was not refused with a remedy: {trial.tell()}")
        command = [sys.executable, "-m", "thalweg", "doctor", str(trial.folder.path)]
        subprocess.run(  # nosec B603  # this Python, a module of ours
            [*command, "--rebuild", "--yes"], check=True, capture_output=True
        )
        trial.resume()
        trial.await_rows()
        what = "offsets of the cloud are empty"
        diary.write(what, "refused", trial.longest_pause_s(since_s), reason)
        return diary.close(TORN_OFFSETS, trial.finish(), trial.feed.count, began_s)


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
