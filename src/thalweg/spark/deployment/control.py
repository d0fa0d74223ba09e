"""Requests to a run, left in its folder by whoever may write there, and its answers.

A request is a file with a random name. It is there whole or not at all, and it stays until the run
has taken it: one that is left for a run that is not there is taken when it is started again.
"""

from __future__ import annotations

import errno
import json
import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from thalweg.errors import Defect, Defects, InvalidInput, ThalwegError, nearest
from thalweg.files.own_file import read_own_bytes
from thalweg.files.plain_json import parse_plain_json
from thalweg.model.names import is_name
from thalweg.spark.deployment.folder import RunFolder, as_cuts

STOP, ROLLBACK, MOVE = KINDS = ("stop", "rollback", "move")
_REQUEST = re.compile(r"(\d{1,20})-([0-9a-f]{32})\.request\.json")
_MOST_BYTES = 2**20
_POLL_S = 0.05


class Refused(ThalwegError):
    """What was asked cannot be done; the run goes on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a run is asked: to stop, to go back to the cuts before, or to go to these cuts."""

    kind: str
    cuts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    number: str = field(default_factory=lambda: uuid4().hex)

    def __post_init__(self) -> None:
        defects = Defects()
        hint = nearest(str(self.kind), KINDS)
        defects.require(self.kind in KINDS, "kind", self.kind, f"one of {', '.join(KINDS)}", hint)
        good = bool(self.cuts) == (self.kind == MOVE)
        defects.require(good, "cuts", self.cuts, "the cuts to move to, and none for other requests")
        names = all(is_name(site) and all(map(is_name, cut)) for site, cut in self.cuts.items())
        defects.require(names, "cuts", self.cuts, "names of sites with names of operators")
        defects.raise_if_any()


def leave(folder: RunFolder, request: Request) -> Request:
    """Leave a request for the run of this folder, and give it.

    Raises:
        InvalidInput: where nothing can be left there.
    """
    data = {"kind": request.kind, "cuts": {s: list(cut) for s, cut in request.cuts.items()}}
    name = f"{time.time_ns()}-{request.number}.request.json"
    draft = folder.control / f".{name}"
    try:
        # Whoever can write here can command the run: that is its owner, and nobody else.
        folder.control.mkdir(mode=0o700, exist_ok=True)
        draft.write_text(json.dumps(data), encoding="utf-8")
        draft.replace(folder.control / name)
    except OSError as error:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise InvalidInput([_cannot_leave(folder.control, error)]) from None
    return request


def _cannot_leave(folder: Path, error: OSError) -> Defect:
    hints = {
        "free some space": (errno.ENOSPC, errno.EDQUOT),
        "only the user who started the run can ask it": (errno.EACCES, errno.EPERM, errno.EROFS),
        "move away what is there instead of a folder": (errno.EEXIST, errno.ENOTDIR),
    }
    known = [hint for hint, numbers in hints.items() if error.errno in numbers]
    hint = known[0] if known else "see that its disk is there"
    value, rule = error.strerror or str(error), "a folder in which a request can be left"
    return Defect(file=str(folder), path="", value=value, rule=rule, hint=hint)


def withdraw(folder: RunFolder, request: Request) -> bool:
    """Take a request back that nobody has taken yet; whether that was so."""
    for file in _requests_in(folder.control):
        if _age(file)[1] == request.number:
            with suppress(FileNotFoundError):
                file.unlink()
                return True
    return False


def take(folder: RunFolder) -> list[Request]:
    """The requests that were left, oldest first, each given once; other files are none."""
    return list(iter(lambda: take_one(folder), None))


def take_one(folder: RunFolder) -> Request | None:
    """The oldest request that was left, given once; None where there is none."""
    for file in sorted(_requests_in(folder.control), key=_age):
        try:
            request = _read(file)
        except OSError:
            # It is gone, or can be read another time.
            continue
        if request is None:
            # What is no request, a folder for instance, must not end the run.
            with suppress(OSError):
                file.unlink()
            continue
        with suppress(FileNotFoundError):
            file.unlink()
            return request
    return None


def list_requests(folder: RunFolder) -> list[tuple[str, float]]:
    """What was asked and not taken yet, oldest first: its kind, and when [Unix time]."""
    found = []
    for file in sorted(_requests_in(folder.control), key=_age):
        with suppress(OSError):
            request = _read(file)
            if request is not None:
                found.append((request.kind, _age(file)[0] / 1e9))
    return found


def answer(folder: RunFolder, request: Request, text: str, *, done: bool) -> None:
    """Say what became of a request."""
    with suppress(FileNotFoundError):
        draft = folder.control / f".{request.number}"
        draft.write_text(json.dumps({"done": done, "text": text}), encoding="utf-8")
        draft.replace(folder.control / f"{request.number}.answer.json")


def forget_answers(folder: RunFolder) -> None:
    """Remove the answers that nobody waited for."""
    for file in folder.control.glob("*.answer.json"):
        file.unlink(missing_ok=True)


def await_answer(
    folder: RunFolder, request: Request, timeout_s: float, *, goes_on: Callable[[], bool]
) -> tuple[bool, str] | None:
    """Whether a request was granted, and what was said; None in vain or when nobody `goes_on`."""
    file = folder.control / f"{request.number}.answer.json"
    deadline = time.monotonic() + timeout_s
    while True:
        last = not goes_on() or time.monotonic() > deadline
        if file.exists():
            data: dict[str, Any] = json.loads(file.read_bytes())
            file.unlink()
            return bool(data["done"]), str(data["text"])
        if last:
            return None
        time.sleep(_POLL_S)


def _requests_in(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return [file for file in folder.iterdir() if _REQUEST.fullmatch(file.name)]


def _age(file: Path) -> tuple[int, str]:
    found = _REQUEST.fullmatch(file.name)
    return (int(found[1]), found[2]) if found else (0, "")


def _read(file: Path) -> Request | None:
    """The request in a file; None where it is none, since nobody is there to be told.

    Raises:
        OSError: where it cannot be read, or is gone.
    """
    _, number = _age(file)
    try:
        data: Any = parse_plain_json(read_own_bytes(file.parent, file, _MOST_BYTES))
        return Request(kind=data["kind"], cuts=as_cuts(data["cuts"]), number=number)
    except OSError:
        raise
    except Exception:
        return None
