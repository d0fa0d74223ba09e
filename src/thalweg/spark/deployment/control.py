"""Requests to a run, left in its folder by whoever may write there, and its answers.

A request is a file with a random name. It is there whole or not at all, and it stays until the run
has taken it: one that is left for a run that is not there is taken when it is started again.

A rollback stays until it is answered: from when it is taken, its file is called `….begun.json`. One
that is cut off by a crash would else leave the run halfway between the cuts that somebody fled and
those that they wanted. A move that is cut off is forgotten: to go there may be what killed the run.
"""

from __future__ import annotations

import errno
import json
import math
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
_REQUEST = re.compile(r"(\d{1,20})-([0-9a-f]{32})\.(request|begun)\.json")
_WAITING, _BEGUN = "request", "begun"
_MOST_BYTES = 2**20
_POLL_S = 0.05


class Refused(ThalwegError):
    """What was asked cannot be done; the run goes on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a run is asked: to stop, to go back to the cuts before, or to go to these cuts."""

    kind: str
    cuts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    leaves_s: float | None = None
    """Of a rollback: `at_s` of the cuts in the history that it leaves; None: whatever is last."""
    number: str = field(default_factory=lambda: uuid4().hex)

    def __post_init__(self) -> None:
        defects = Defects()
        hint = nearest(str(self.kind), KINDS)
        defects.require(self.kind in KINDS, "kind", self.kind, f"one of {', '.join(KINDS)}", hint)
        good = bool(self.cuts) == (self.kind == MOVE)
        defects.require(good, "cuts", self.cuts, "the cuts to move to, and none for other requests")
        names = all(is_name(site) and all(map(is_name, cut)) for site, cut in self.cuts.items())
        defects.require(names, "cuts", self.cuts, "names of sites with names of operators")
        number = isinstance(self.leaves_s, (int, float)) and math.isfinite(self.leaves_s)
        good = self.leaves_s is None or (number and self.kind == ROLLBACK)
        rule = "a time, and none for other requests than a rollback"
        defects.require(good, "leaves_s", self.leaves_s, rule)
        defects.raise_if_any()


def leave(folder: RunFolder, request: Request) -> Request:
    """Leave a request for the run of this folder, and give it.

    Raises:
        InvalidInput: where nothing can be left there.
    """
    cuts = {site: list(cut) for site, cut in request.cuts.items()}
    data: dict[str, Any] = {"kind": request.kind, "cuts": cuts}
    if request.leaves_s is not None:
        data["leaves_s"] = request.leaves_s
    name = f"{time.time_ns()}-{request.number}.{_WAITING}.json"
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


def leave_rollback(folder: RunFolder) -> Request:
    """Leave a request to go back from the newest cuts, and give it.

    Raises:
        Refused: where there is nothing to go back to, or a rollback is asked for already.
        InvalidInput: where the history cannot be read, or nothing can be left.
    """
    try:
        asked = [file for file in _requests_in(folder.control) if _is_of(ROLLBACK, file)]
    except OSError as error:
        raise InvalidInput([_cannot_leave(folder.control, error)]) from None
    if asked:
        # Two would go back two plans, whereas people ask twice when they hear nothing.
        if folder.is_held():
            raise Refused("a rollback is under way. Hint: `thalweg status` says how it is doing.")
        raise Refused(
            "a rollback is asked for already: the next start begins with it. "
            f"Hint: remove {asked[0]} to take it back."
        )
    history = folder.read_history()
    if len(history) < 2:
        raise Refused("there are no earlier cuts to go back to")
    return leave(folder, Request(kind=ROLLBACK, leaves_s=history[-1].at_s))


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
    for file in _requests_in(folder.control, _WAITING):
        if _age(file)[1] == request.number:
            with suppress(OSError):
                file.unlink()
                return True
    return False


def give_up(folder: RunFolder, request: Request) -> str:
    """Take back a request that is not answered in time; how things are then, in words."""
    if withdraw(folder, request):
        return "the run has not answered, and the request was taken back"
    later = "; after a crash, its next start does" if request.kind == ROLLBACK else ""
    return f"the run has not answered, and may still do what was asked{later}"


def take_one(folder: RunFolder) -> Request | None:
    """The oldest request that was left; None where there is none.

    A rollback is given until it is answered, and first; others are given once.
    """
    for file in sorted(_requests_in(folder.control), key=_turn):
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
        # One that is withdrawn meanwhile is gone, and not taken.
        with suppress(FileNotFoundError):
            if request.kind != ROLLBACK:
                file.unlink()
            elif _state(file) == _WAITING:
                file.rename(file.with_name(file.name.replace(f".{_WAITING}.", f".{_BEGUN}.")))
            return request
    return None


def forget_stops(folder: RunFolder) -> None:
    """Remove the requests to stop: whoever asked the run before has got what they wanted."""
    for file in _requests_in(folder.control, _WAITING):
        if _is_of(STOP, file):
            file.unlink(missing_ok=True)


def list_requests(folder: RunFolder, *, begun: bool = False) -> list[tuple[str, float]]:
    """What was asked and not taken yet, oldest first: its kind, and when [Unix time].

    With `begun`, also a rollback that was taken and is not answered.
    """
    found = []
    states = (_WAITING, _BEGUN) if begun else (_WAITING,)
    for file in sorted(_requests_in(folder.control, *states), key=_age):
        with suppress(OSError):
            request = _read(file)
            if request is not None:
                found.append((request.kind, _age(file)[0] / 1e9))
    return found


def answer(folder: RunFolder, request: Request, text: str, *, done: bool) -> None:
    """Say what became of a request; a rollback is forgotten with that."""
    with suppress(FileNotFoundError):
        draft = folder.control / f".{request.number}"
        draft.write_text(json.dumps({"done": done, "text": text}), encoding="utf-8")
        draft.replace(folder.control / f"{request.number}.answer.json")
    for file in _requests_in(folder.control, _BEGUN):
        if _age(file)[1] == request.number:
            file.unlink(missing_ok=True)


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


def _requests_in(folder: Path, *states: str) -> list[Path]:
    """The files of requests in these states; in any, where none is named."""
    if not folder.is_dir():
        return []
    named = [file for file in folder.iterdir() if _REQUEST.fullmatch(file.name)]
    return [file for file in named if not states or _state(file) in states]


def _age(file: Path) -> tuple[int, str]:
    found = _REQUEST.fullmatch(file.name)
    return (int(found[1]), found[2]) if found else (0, "")


def _state(file: Path) -> str:
    found = _REQUEST.fullmatch(file.name)
    return found[3] if found else ""


def _turn(file: Path) -> tuple[bool, tuple[int, str]]:
    """What is begun is ended first, whatever was done to the clock."""
    return _state(file) != _BEGUN, _age(file)


def _is_of(kind: str, file: Path) -> bool:
    with suppress(OSError):
        request = _read(file)
        return request is not None and request.kind == kind
    return False


def _read(file: Path) -> Request | None:
    """The request in a file; None where it is none, since nobody is there to be told.

    Raises:
        OSError: where it cannot be read, or is gone.
    """
    _, number = _age(file)
    try:
        data: Any = parse_plain_json(read_own_bytes(file.parent, file, _MOST_BYTES))
        return Request(
            kind=data["kind"],
            cuts=as_cuts(data["cuts"]),
            leaves_s=data.get("leaves_s"),
            number=number,
        )
    except OSError:
        raise
    except Exception:
        return None
