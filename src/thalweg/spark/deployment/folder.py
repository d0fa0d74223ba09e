"""The folder of a run: what it is, who holds it, and what it tells to those who look in.

    run.json          what runs here: another pipeline or network, or other code, is refused
    run.lock          held as long as a process runs it
    status.json       how it is doing, written anew at every interval
    application.json, network.json    what was planned, for those who look in
    timeline.jsonl    how it was doing over time; see `thalweg.spark.deployment.timeline`
    decisions.jsonl   the last decisions with their reasons, oldest first; when it is full it
                      becomes decisions.1.jsonl, and a new one begins with the last change
    history.json      the cuts that ran, oldest first: where a rollback goes back to
    plans/            the plans behind them
    control/          what it is asked to do
    report.json       what came out of it
    rebuild.json      there while a rebuild is under way, or was cut off
    set-aside/        what was damaged or made anew, moved out of the way
    log/, checkpoints/, journal.jsonl, sites/    its data

Files are written beside their place and moved there, so a reader sees a whole one.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from thalweg.errors import Defect, InvalidInput
from thalweg.files.model_folder import load_model, save_model
from thalweg.files.own_file import open_own, read_own_bytes
from thalweg.files.plain_json import parse_plain_json
from thalweg.model import Application, Network
from thalweg.spark.deployment.decision_lines import read_decisions, write_decision
from thalweg.spark.deployment.manifest import RunManifest
from thalweg.spark.deployment.told_status import find_status_fault
from thalweg.spark.deployment.whole_file import write_whole
from thalweg.spark.query.checkpoint import require_writable

_VERSION = 2
# Of the first format, which says nothing of the code.
_KNOWN_VERSIONS = (1, _VERSION)
_MOST_BYTES = 16 * 2**20
_MOST_ADDRESS_BYTES = 4096
_KEPT_HISTORY = 100
Cuts = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEntry:
    """Cuts that ran: since when, why, and the plan behind them, if there was one."""

    cuts: Cuts
    reason: str
    at_s: float
    plan: str | None = None
    """The name of the plan's file in `plans/`."""
    rolled_back_by: str | None = None
    """The number of the request that went back to them last, if one did."""


class OtherFormat(InvalidInput):
    """A folder is of a format that another version of Thalweg writes; nothing of it is damaged."""


class RunFolder:
    """The folder of a run, for the one who runs it and for those who look in."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path).absolute()

    @property
    def exists(self) -> bool:
        """Whether there is a run in it."""
        return (self.path / "run.json").is_file()

    @property
    def plans(self) -> Path:
        """Where plans are kept."""
        return self.path / "plans"

    @property
    def control(self) -> Path:
        """Where requests are left."""
        return self.path / "control"

    @property
    def decisions_file(self) -> Path:
        """Where decisions are written down."""
        return self.path / "decisions.jsonl"

    @property
    def rebuild_file(self) -> Path:
        """What says that a rebuild is under way."""
        return self.path / "rebuild.json"

    @classmethod
    def of_run(cls, path: Path | str) -> Self:
        """The folder of a run; raises `InvalidInput` where there is none in it."""
        folder, hint = cls(path), "the folder that was given to `thalweg run`"
        try:
            found = folder.exists
        except OSError as error:
            found, hint = False, error.strerror or str(error)
        if not found:
            rule = "the folder of a run"
            raise InvalidInput([Defect(path="FOLDER", value=str(path), rule=rule, hint=hint)])
        return folder

    # Who holds it

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Keep the folder to oneself for the length of the block; an ended process holds none.

        Raises:
            InvalidInput: where another run has it, or it cannot be written.
        """
        lock = self._open_lock()
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise InvalidInput([self._held_defect()]) from None
            yield
        finally:
            os.close(lock)

    def is_held(self) -> bool:
        """Whether somebody runs it now."""
        try:
            # To look needs no right to write; and nobody waits for the other end of a pipe.
            lock = os.open(self.path / "run.lock", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(lock)
        return False

    def _open_lock(self) -> int:
        file = self.path / "run.lock"
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            return open_own(file)
        except ValueError as error:
            rule, hint = "a file of its own", "remove it, or begin in a new folder"
            defect = Defect(file=str(file), path="", value=str(error), rule=rule, hint=hint)
        except OSError as error:
            defect = self._unwritable_defect(error)
        raise InvalidInput([defect])

    def _held_defect(self) -> Defect:
        rule = "a folder that no other run holds"
        hint = f"`thalweg stop {self.path}` ends the run that holds it"
        return Defect(path="folder", value=str(self.path), rule=rule, hint=hint)

    def _unwritable_defect(self, error: OSError) -> Defect:
        rule, hint = "a folder that can be written", error.strerror or str(error)
        return Defect(path="folder", value=str(self.path), rule=rule, hint=hint)

    def require_free(self) -> None:
        """Raise `InvalidInput` unless one can write here and nobody else runs it.

        A folder that is missing is not made yet.
        """
        try:
            if self.path.exists():
                require_writable(self.path)
            else:
                _require_makeable(self.path)
        except OSError as error:
            raise InvalidInput([self._unwritable_defect(error)]) from None
        if self.is_held():
            raise InvalidInput([self._held_defect()])

    # What it is and how it is doing

    def write_manifest(self, manifest: RunManifest) -> None:
        """Say what runs here."""
        self._write("run.json", {"thalweg_run": _VERSION, **manifest.to_dict()})

    def claim(self, manifest: RunManifest, now_s: float) -> RunManifest:
        """Say what runs here from now on, as the one who holds the folder; gives what was written.

        Raises:
            InvalidInput: where something else ran here before, with every difference.
        """
        if self.exists:
            found = self.read_manifest()
            manifest.require_same(found)
            manifest = manifest.following(found, now_s)
        self.write_manifest(manifest)
        return manifest

    def write_model(self, application: Application, network: Network) -> None:
        """Keep what is planned for: whoever looks in need not know the pipeline."""
        save_model(self.path, application, network)

    def read_model(self) -> tuple[Application, Network]:
        """What is planned for; raises `InvalidInput` where that cannot be read."""
        application, network, _ = load_model(self.path)
        return application, network

    def read_manifest(self) -> RunManifest:
        """What runs here; raises `InvalidInput` where that cannot be read.

        `OtherFormat` is one where another version of Thalweg has written it.
        """
        data = self._read("run.json")
        version = data.pop("thalweg_run", None)
        if isinstance(version, int) and version not in _KNOWN_VERSIONS:
            raise OtherFormat([self._other_format(version)])
        try:
            if version not in _KNOWN_VERSIONS:
                raise ValueError
            return RunManifest.from_dict(data)
        except (KeyError, TypeError, ValueError):
            raise InvalidInput([self._unreadable("run.json", "other data")]) from None

    def write_status(self, status: Mapping[str, Any]) -> None:
        """Say how the run is doing."""
        self._write("status.json", status)

    def read_status(self) -> dict[str, Any]:
        """How the run said that it was doing; nothing where it has not said anything yet."""
        if not (self.path / "status.json").exists():
            return {}
        told = self._read("status.json")
        fault = find_status_fault(told)
        if fault:
            raise InvalidInput([self._unreadable("status.json", fault)])
        return told

    def write_report(self, report: Mapping[str, Any]) -> None:
        """Keep what came out of the run."""
        self._write("report.json", report)

    def write_decision(self, decision: Mapping[str, Any]) -> None:
        """Add a decision to those before."""
        write_decision(self.decisions_file, decision)

    def read_decisions(self) -> list[dict[str, Any]]:
        """The decisions that are kept, oldest first; the last changes are always among them."""
        return read_decisions(self.decisions_file)

    def write_page(self, address: str | None) -> None:
        """Say where the run's page is, to its owner alone; None: nowhere any more."""
        # Whoever knows the token can command the run, as whoever can write in this folder.
        self.control.mkdir(mode=0o700, exist_ok=True)
        file = self.control / "page"
        if address is None:
            file.unlink(missing_ok=True)
        else:
            file.touch(mode=0o600)
            file.write_text(address, encoding="ascii")

    def read_page(self) -> str | None:
        """Where the run's page is; None where there is none, or it is not for this reader."""
        with suppress(OSError, ValueError):
            file = self.control / "page"
            return read_own_bytes(self.path, file, _MOST_ADDRESS_BYTES).decode("ascii")
        return None

    # Plans and cuts

    def keep_plan(self, text: str) -> str:
        """Keep a plan under the next number; returns the name of its file."""
        self.plans.mkdir(exist_ok=True)
        numbers = [int(f.stem) for f in self.plans.glob("*.json") if f.stem.isdecimal()]
        name = f"{max(numbers, default=0) + 1:04d}.json"
        write_whole(self.plans / name, text)
        return name

    def write_history(self, entries: Sequence[HistoryEntry]) -> None:
        """Keep the cuts that ran, the present ones last."""
        kept = [asdict(entry) for entry in entries[-_KEPT_HISTORY:]]
        self._write("history.json", {"entries": kept})

    def read_history(self) -> list[HistoryEntry]:
        """The cuts that ran, the present ones last."""
        if not (self.path / "history.json").exists():
            return []
        try:
            return [
                HistoryEntry(**{**entry, "cuts": as_cuts(entry["cuts"])})
                for entry in self._read("history.json")["entries"]
            ]
        except (KeyError, TypeError, AttributeError):
            raise InvalidInput([self._unreadable("history.json", "other data")]) from None

    def _write(self, name: str, data: Mapping[str, Any]) -> None:
        write_whole(self.path / name, json.dumps(data, indent=1, allow_nan=False) + "\n")

    def _read(self, name: str) -> dict[str, Any]:
        file = self.path / name
        try:
            data = parse_plain_json(read_own_bytes(self.path, file, _MOST_BYTES))
        except (OSError, ValueError) as error:
            raise InvalidInput([self._unreadable(name, str(error))]) from None
        if not isinstance(data, dict):
            raise InvalidInput([self._unreadable(name, type(data).__name__)])
        return data

    def _other_format(self, version: int) -> Defect:
        return Defect(
            file=str(self.path / "run.json"),
            path="thalweg_run",
            value=version,
            rule=f"{_VERSION}, the format this Thalweg knows",
            hint="use the Thalweg that wrote it",
        )

    def _unreadable(self, name: str, value: str) -> Defect:
        rule, hint = "a file as a run writes it", ""
        if name in ("history.json", "status.json"):
            hint = f"once it is stopped, `thalweg doctor {self.path} --repair` sets it aside"
        if name == "history.json":
            hint += "; there is nothing to go back to then"
        return Defect(file=str(self.path / name), path="", value=value, rule=rule, hint=hint)


def _require_makeable(folder: Path) -> None:
    """Raise `OSError` where the folder, which is missing, cannot be made."""
    above = next(parent for parent in folder.parents if parent.exists())
    if not above.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, f"{above} is no folder")
    if not os.access(above, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, f"{above} cannot be written")


def as_cuts(data: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """Cuts from plain data."""
    return {str(site): tuple(map(str, cut)) for site, cut in data.items()}
