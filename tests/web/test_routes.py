"""Every route and every method of the page, as the app itself lists them: who may not, does not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("fastapi")

import anyio
import httpx
from starlette.routing import BaseRoute

import thalweg as tw
from thalweg.web.app import Room, make_app
from thalweg.web.guard import MOST_BODY_BYTES, Guard
from thalweg.web.subjects.plan import PlanSubject

TOKEN = "a-token-of-the-tests-0123456789"  # noqa: S105
HOST = "127.0.0.1:8000"
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "NONE")
JSON = {"content-type": "application/json"}
ALLOWED = {"authorization": f"Bearer {TOKEN}"}
FAULTS: dict[str, dict[str, str]] = {
    "another host": {"host": "evil.example"},
    "a host with ours in it": {"host": "127.0.0.1.evil.example:8000"},
    "another origin": {"origin": "http://evil.example"},
    "no origin": {"origin": "null"},
    "a page of another site": {"sec-fetch-site": "cross-site"},
    "a page of the same site": {"sec-fetch-site": "same-site"},
}
TOKENS: dict[str, dict[str, str]] = {
    "no token": {},
    "a wrong token": {"authorization": "Bearer wrong"},
    "half of the token": {"authorization": f"Bearer {TOKEN[:-1]}"},
    "the token in another way": {"authorization": f"Basic {TOKEN}"},
    "the token as a cookie": {"cookie": f"token={TOKEN}"},
}


@pytest.fixture(scope="module")
def guarded() -> Guard:
    app, net = tw.scenarios.small_taxi(), tw.scenarios.small_city()
    return make_app(Room([PlanSubject(app, net, tw.plan(app, net, "cloud-only"))]), TOKEN)


def paths_of(routes: list[BaseRoute]) -> Iterator[str]:
    """A path for every route, with something that is there in place of its parameters."""
    there = {"number": "0", "name": "main.js"}
    for route in routes:
        path = getattr(route, "path", None)
        assert path is not None, f"a route of another kind: {route}"
        inner = getattr(route, "routes", None)
        assert not inner, f"routes below a route: {route}"
        yield re.sub(r"\{(\w+)(:\w+)?\}", lambda found: there[found[1]], path)


@pytest.fixture(scope="module")
def paths(guarded: Guard) -> list[str]:
    found = list(paths_of(guarded._app.routes))  # type: ignore[attr-defined]
    assert {"/", "/static/main.js", "/api/openapi.json", "/api/subjects/0/events"} <= set(found)
    return [*found, "/api/none", "/none", "/api", "//api/subjects"]


def is_open(path: str) -> bool:
    """Whether the page itself is there: it tells nothing."""
    return path == "/" or path.startswith("/static/")


def ask_all(guarded: Guard, asked: list[tuple[str, str, dict[str, str], bytes]]) -> list[Any]:
    async def call() -> list[httpx.Response]:
        transport = httpx.ASGITransport(app=guarded, raise_app_exceptions=True)
        async with httpx.AsyncClient(transport=transport, base_url=f"http://{HOST}") as client:
            return [
                await client.request(method, path, headers=headers, content=body)
                for method, path, headers, body in asked
            ]

    return anyio.run(call)


def statuses(
    guarded: Guard, paths: list[str], headers: dict[str, str]
) -> dict[tuple[str, str], int]:
    pairs = [(method, path) for path in paths for method in METHODS]
    found = ask_all(guarded, [(method, path, headers, b"") for method, path in pairs])
    assert not any("access-control-allow-origin" in answer.headers for answer in found)
    return {pair: answer.status_code for pair, answer in zip(pairs, found, strict=True)}


@pytest.mark.parametrize("headers", TOKENS.values(), ids=TOKENS)
def test_without_the_token_only_the_page_itself_is_told(guarded, paths, headers):
    for (method, path), status in statuses(guarded, paths, {**JSON, **headers}).items():
        if is_open(path):
            assert status in ((200, 404) if method in ("GET", "HEAD") else (405,)), (method, path)
        else:
            assert status == 401, (method, path)


@pytest.mark.parametrize("headers", FAULTS.values(), ids=FAULTS)
@pytest.mark.parametrize("token", [ALLOWED, {}], ids=["with the token", "without it"])
def test_other_hosts_and_origins_get_nothing_at_all(guarded, paths, headers, token):
    found = statuses(guarded, paths, {**JSON, **token, **headers})
    assert set(found.values()) == {403}, found


def test_methods_that_a_route_does_not_have_are_refused(guarded):
    for route in guarded._app.routes:
        (path,) = paths_of([route])
        for method in set(METHODS) - set(route.methods):
            (answer,) = ask_all(guarded, [(method, path, {**JSON, **ALLOWED}, b"")])
            assert answer.status_code == 405, (method, path)


def test_what_is_sent_is_json_and_short_on_every_route(guarded, paths):
    for path in [path for path in paths if not is_open(path)]:
        for method in ("POST", "PUT", "PATCH", "DELETE"):
            large = b" " * (MOST_BODY_BYTES + 1)
            (answer,) = ask_all(guarded, [(method, path, {**JSON, **ALLOWED}, large)])
            assert answer.status_code == 413, (method, path)
        for kind in ("", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
            headers = {**ALLOWED, "content-type": kind}
            (answer,) = ask_all(guarded, [("POST", path, headers, b"{}")])
            assert answer.status_code == 415, (path, kind)


@pytest.mark.parametrize(
    "length", ["9" * 30, "9" * 5_000, "-1", "1e3", "", "٣", "0x10", "1, 2", "²"]
)
def test_a_length_that_is_none_is_refused(guarded, length):
    # Straight to the guard: a client would not send it, and a server not pass it on.
    sent: list[dict[str, Any]] = []

    async def call() -> None:
        headers = {"host": HOST, **JSON, **ALLOWED, "content-length": length}
        scope = {
            "type": "http",
            "method": "POST",
            "path": "/api/subjects/0/what-if",
            "headers": [(k.encode(), v.encode("utf-8")) for k, v in headers.items()],
        }

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        await guarded(scope, lambda: anyio.sleep_forever(), send)

    anyio.run(call)
    assert sent[0]["status"] == 413


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"{", b"nonsense", b"[]", b"null", b"\xff\xfe", b"[" * 100_000),
        *(b'{"confirm": 1e400}', b'{"confirm": "\\ud800"}', b'{"confirm": NaN}'),
        *(b'{"rates": [' + b"9" * 9_000, b'{"rates": ' + b"9" * 9_000 + b"}"),
    ],
    ids=lambda body: ascii(body[:16]),
)
def test_bodies_that_mean_nothing_are_refused_in_words(guarded, body):
    for route in guarded._app.routes:
        if "POST" in route.methods:
            (path,) = paths_of([route])
            (answer,) = ask_all(guarded, [("POST", path, {**JSON, **ALLOWED}, body)])
            assert 400 <= answer.status_code < 500, (path, body[:30])
            assert answer.json()["problems"]
