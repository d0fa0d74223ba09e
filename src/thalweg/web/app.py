"""The routes of the page; `Guard` stands in front of all of them."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Annotated, Any, TypeVar

from fastapi import FastAPI, HTTPException, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, Response, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException as StarletteHTTPException

from thalweg import __version__
from thalweg.errors import InvalidInput, ThalwegError
from thalweg.web.guard import Guard
from thalweg.web.metrics import Exposition
from thalweg.web.question import Question
from thalweg.web.subject import NotOffered, Subject, UnknownName, Update

_KINDS = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}
_POLL_S = 0.25
_BEAT_S = 5.0
_Name = Annotated[str, Query(max_length=400)]
_Number = Annotated[int, Query(ge=0, lt=2**53)]
_Found = TypeVar("_Found")
_END = Update(kind="end")


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Problems(BaseModel):
    """Why something was refused, each reason in a sentence."""

    problems: list[str]


# Whoever refuses: the guard, a route or a subject.
_REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": Problems, "description": description}
    for status, description in (
        (401, "The token is missing, or another one."),
        (403, "For another host, or from a page of another origin."),
        (404, "There is no such thing."),
        (405, "Not with this method."),
        (409, "Not now."),
        (411, "The length of what is sent is missing."),
        (413, "Too much is sent."),
        (415, "What is sent is no JSON."),
        (422, "What is asked means nothing here."),
        (500, "An error inside Thalweg."),
    )
}


class RateBody(_Body):
    """Another rate for a source at a site."""

    source: str = Field(max_length=200)
    site: str = Field(max_length=200)
    rate: float = Field(ge=0, lt=1e15)


class WhatIfBody(_Body):
    """Other rates, sites that are gone, and the strategy to ask."""

    rates: list[RateBody] = Field(default=[], max_length=10_000)
    down: list[Annotated[str, Field(max_length=200)]] = Field(default=[], max_length=1_000)
    strategy: str = Field(default="", max_length=200)


class ConfirmBody(_Body):
    """Somebody has been asked, and has said yes."""

    confirm: bool


class ApplyBody(ConfirmBody):
    """Which answer to apply."""

    what_if: str = Field(max_length=40)


class CompareBody(_Body):
    """The strategies to compare."""

    strategies: list[Annotated[str, Field(max_length=200)]] = Field(min_length=1, max_length=20)


class Room:
    """The subjects of a page, and what happens one at a time: planning, and changing a run."""

    def __init__(self, subjects: Sequence[Subject]) -> None:
        self.subjects = tuple(subjects)
        self.closing = threading.Event()
        self._busy = threading.Lock()

    def subject(self, number: int) -> Subject:
        """The subject of that number; raises 404 where there is none."""
        if not 0 <= number < len(self.subjects):
            raise HTTPException(404, "there is no such subject")
        return self.subjects[number]

    async def alone(self, work: Callable[[], _Found]) -> _Found:
        """Do something that no other may do at the same time; raises 409 where one does."""
        if not self._busy.acquire(blocking=False):
            busy = "another question is being answered; ask again in a moment"
            raise HTTPException(409, busy, headers={"Retry-After": "1"})
        try:
            return await run_in_threadpool(work)
        finally:
            self._busy.release()


def make_app(room: Room, token: str, *, only_metrics: bool = False) -> Guard:
    """The page and its metrics as one guarded ASGI application, or the metrics alone."""
    app = FastAPI(
        title="Thalweg",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        openapi_url=None if only_metrics else "/api/openapi.json",
        responses=_REFUSALS,
    )
    _add_errors(app)
    _add_metrics(app, room)
    if not only_metrics:
        _add_pages(app)
        _add_reading(app, room)
        _add_details(app, room)
        _add_asking(app, room)
    return Guard(app, token=token)


def _add_errors(app: FastAPI) -> None:
    def told(status: int, *problems: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
        return JSONResponse({"problems": list(problems)}, status, headers)

    @app.exception_handler(InvalidInput)
    async def _invalid(_: Request, error: InvalidInput) -> JSONResponse:
        return told(422, *(str(defect) for defect in error.defects))

    @app.exception_handler(ThalwegError)
    async def _refused(_: Request, error: ThalwegError) -> JSONResponse:
        missing = isinstance(error, (NotOffered, UnknownName))
        return told(404 if missing else 409, str(error))

    @app.exception_handler(RequestValidationError)
    async def _unreadable(_: Request, error: RequestValidationError) -> JSONResponse:
        lines = [
            f"{'.'.join(str(part) for part in fault['loc'])}: {fault['msg']}"
            for fault in error.errors()[:50]
        ]
        return told(422, *lines)

    @app.exception_handler(Exception)
    async def _own(_: Request, error: Exception) -> JSONResponse:
        return told(500, f"an error inside Thalweg: {type(error).__name__}: {str(error)[:300]}")

    @app.exception_handler(StarletteHTTPException)
    async def _http(_: Request, error: StarletteHTTPException) -> JSONResponse:
        return told(error.status_code, str(error.detail), headers=error.headers)


def _add_metrics(app: FastAPI, room: Room) -> None:
    folders = [subject.run_folder for subject in room.subjects if subject.run_folder is not None]
    exposition = Exposition(folders)

    @app.get("/metrics", include_in_schema=False)
    def metrics(request: Request) -> Response:
        if not folders:
            raise HTTPException(404, "there is no run here, and metrics are of runs")
        content, media_type = exposition.render(request.headers.get("accept", ""))
        headers = {"content-type": media_type, "cache-control": "no-store"}
        return Response(content, headers=headers)


def _add_pages(app: FastAPI) -> None:
    assets = read_assets()

    @app.api_route("/", methods=["GET", "HEAD"], include_in_schema=False)
    async def index() -> Response:
        return _asset(assets, "index.html")

    @app.api_route("/static/{name}", methods=["GET", "HEAD"], include_in_schema=False)
    async def static(name: str) -> Response:
        return _asset(assets, name)


def _add_reading(app: FastAPI, room: Room) -> None:
    @app.get("/api/subjects")
    def subjects() -> dict[str, Any]:
        """What there is to look at."""
        return {
            "version": __version__,
            "subjects": [
                {
                    "id": number,
                    "kind": subject.kind,
                    "title": subject.title,
                    "live": subject.is_live,
                    "views": list(subject.views),
                }
                for number, subject in enumerate(room.subjects)
            ],
        }

    @app.get("/api/subjects/{number}/scene")
    def scene(number: int) -> dict[str, Any]:
        """What stands still: operators, sites, links, limits."""
        subject = room.subject(number)
        about = {"title": subject.title, "kind": subject.kind, "live": subject.is_live}
        return {**about, **subject.scene()}

    @app.get("/api/subjects/{number}/history")
    def history(number: int) -> dict[str, Any]:
        """All frames, placements and marks so far."""
        return room.subject(number).history()

    @app.get(
        "/api/subjects/{number}/events",
        response_class=StreamingResponse,
        responses={200: {"content": {"text/event-stream": {}}}},
    )
    async def events(number: int, request: Request, after: _Number = 0) -> StreamingResponse:
        """What happens after the position that a history names, as server-sent events."""
        updates = room.subject(number).updates(after)
        stream = _stream(updates, request, room.closing)
        return StreamingResponse(stream, media_type="text/event-stream")


def _add_details(app: FastAPI, room: Room) -> None:
    @app.get("/api/subjects/{number}/why")
    def why(
        number: int,
        operator: _Name = "",
        site: _Name = "",
        link: _Name = "",
        placement: _Name = "",
    ) -> dict[str, Any]:
        """Why an operator is where it is, or what a site or link has to do."""
        subject = room.subject(number)
        return subject.why(operator=operator, site=site, link=link, placement=placement)

    @app.get("/api/subjects/{number}/city")
    def city(number: int) -> dict[str, Any]:
        """A moving city."""
        return room.subject(number).city()

    @app.get("/api/subjects/{number}/results")
    def results(number: int) -> dict[str, Any]:
        """Stored tables, and the names of stored pictures."""
        return room.subject(number).results()

    @app.get(
        "/api/subjects/{number}/images/{name:path}",
        response_class=FileResponse,
        responses={200: {"content": {"image/png": {}, "image/jpeg": {}}}},
    )
    def image(number: int, name: str) -> FileResponse:
        """A stored picture."""
        return FileResponse(room.subject(number).image(name))


def _add_asking(app: FastAPI, room: Room) -> None:
    @app.post("/api/subjects/{number}/what-if")
    async def what_if(number: int, body: WhatIfBody) -> dict[str, Any]:
        """What would be planned at other rates, or without some sites; changes nothing."""
        rates = {(item.source, item.site): item.rate for item in body.rates}
        question = Question(rates=rates, down=tuple(body.down), strategy=body.strategy)
        subject = room.subject(number)
        return await room.alone(lambda: subject.ask(question))

    @app.post("/api/subjects/{number}/compare")
    async def compare(number: int, body: CompareBody) -> dict[str, Any]:
        """What several strategies make of the same problem."""
        subject = room.subject(number)
        return await room.alone(lambda: subject.compare(tuple(body.strategies)))

    @app.post("/api/subjects/{number}/apply")
    async def apply(number: int, body: ApplyBody) -> dict[str, Any]:
        """Move a live run to what a what-if has found."""
        _require_yes(body)
        subject = room.subject(number)
        text = await room.alone(lambda: subject.apply(body.what_if))
        return {"done": True, "text": text}

    @app.post("/api/subjects/{number}/rollback")
    async def rollback(number: int, body: ConfirmBody) -> dict[str, Any]:
        """Move a live run back to the cuts before its last change."""
        _require_yes(body)
        subject = room.subject(number)
        return {"done": True, "text": await room.alone(subject.rollback)}


def _require_yes(body: ConfirmBody) -> None:
    if not body.confirm:
        raise HTTPException(422, "this changes a run: it has to be confirmed")


async def _stream(
    updates: Iterator[Update | None], request: Request, closing: threading.Event
) -> AsyncIterator[bytes]:
    """Updates as server-sent events, with a beat while there are none; what is left at the end."""
    quiet_s = 0.0
    yield b": beat\n\n"
    while not await request.is_disconnected():
        last = closing.is_set()
        update = await run_in_threadpool(next, updates, _END)
        if update is _END or (update is None and last):
            return
        if update is not None:
            text = json.dumps(update.data, separators=(",", ":"), allow_nan=False)
            yield f"event: {update.kind}\ndata: {text}\n\n".encode()
            continue
        await asyncio.sleep(_POLL_S)
        quiet_s += _POLL_S
        if quiet_s >= _BEAT_S:
            quiet_s = 0.0
            yield b": beat\n\n"


def read_assets() -> dict[str, tuple[bytes, str]]:
    """Every file of the page with its media type, by name: no name leads out of the package."""
    found = {}
    # The city is drawn by the same script in the page and in a file of its own.
    for package, kept in (("thalweg.web", None), ("thalweg.migration.view", "city.")):
        folder = files(package) / "static" if kept is None else files(package)
        for file in folder.iterdir():
            ending = f".{file.name.rpartition('.')[2]}"
            if ending in _KINDS and (kept is None or file.name.startswith(kept)):
                found[file.name] = (file.read_bytes(), _KINDS[ending])
    return found


def _asset(assets: dict[str, tuple[bytes, str]], name: str) -> Response:
    if name not in assets:
        raise HTTPException(404, "there is no such file")
    content, kind = assets[name]
    return Response(content, media_type=kind, headers={"cache-control": "no-cache"})
