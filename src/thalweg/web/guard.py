"""Who may ask: this machine's own browser, with the token for everything that tells or changes.

Pages of other origins can make a browser send requests to this machine. Such a request names
another origin, or reaches us under another host name; both are refused before anything is read.
"""

from __future__ import annotations

import hmac
import json
import os
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

MOST_BODY_BYTES = 2**20
HOSTS = frozenset({"127.0.0.1", "localhost", "[::1]"})
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
]
_OPEN = ("/", "/static/")


class Guard:
    """Lets requests through to an application, or answers 401, 403, 405, 411, 413 or 415 itself."""

    def __init__(self, app: App, *, token: str) -> None:
        self._app, self._token = app, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            # Nothing here speaks anything else.
            return
        fault = find_fault(scope["method"], scope["path"], _headers(scope), self._token)
        if fault is not None:
            await _refuse(send, *fault)
            return

        async def send_guarded(message: Any) -> None:
            if message["type"] == "http.response.start":
                given = {name for name, _ in message["headers"]}
                extra = [pair for pair in _HEADERS if pair[0] not in given]
                if scope["path"].startswith("/api/"):
                    extra.append((b"cache-control", b"no-store"))
                message = {**message, "headers": [*message["headers"], *extra]}
            await send(message)

        try:
            await self._app(scope, receive, send_guarded)
        except Exception:
            # It was answered with 500 in words; a traceback is for those who ask for one.
            if os.environ.get("THALWEG_DEBUG"):
                raise


def find_fault(
    method: str, path: str, headers: dict[str, list[str]], token: str
) -> tuple[int, str] | None:
    """Why a request is refused, as a status and a sentence; None: it may pass.

    >>> find_fault("GET", "/", {"host": ["127.0.0.1:80"]}, "t") is None
    True
    >>> find_fault("GET", "/api/subjects", {"host": ["127.0.0.1:80"]}, "t")[0]
    401
    >>> find_fault("GET", "/", {"host": ["evil.example"]}, "t")[0]
    403
    """
    hosts = headers.get("host", [])
    if len(hosts) != 1 or _host_name(hosts[0]) not in HOSTS:
        return 403, "this page is for this machine: ask for 127.0.0.1 or localhost"
    if any(origin != f"http://{hosts[0]}" for origin in headers.get("origin", [])):
        return 403, "a page of another origin may not ask here"
    if headers.get("sec-fetch-site", ["none"])[0] not in ("same-origin", "none"):
        return 403, "a page of another origin may not ask here"
    if path == _OPEN[0] or path.startswith(_OPEN[1]):
        return None if method in ("GET", "HEAD") else (405, "this can only be read")
    if not _has_token(headers, token):
        return 401, "the token that the command printed is missing, or another one"
    return _find_body_fault(method, headers)


def _find_body_fault(method: str, headers: dict[str, list[str]]) -> tuple[int, str] | None:
    if method in ("GET", "HEAD"):
        return None
    kind = headers.get("content-type", [""])[0].partition(";")[0].strip().lower()
    if method == "POST" and kind != "application/json":
        return 415, "what is sent has to be JSON"
    length = headers.get("content-length", ["0"])[0]
    if "transfer-encoding" in headers:
        return 411, "what is sent has to say how long it is"
    # Of thousands of digits Python makes no number.
    if not length.isdecimal() or len(length) > 20 or int(length) > MOST_BODY_BYTES:
        return 413, f"at most {MOST_BODY_BYTES:,} bytes may be sent"
    return None


def _has_token(headers: dict[str, list[str]], token: str) -> bool:
    given = headers.get("authorization", [])
    if len(given) != 1:
        return False
    scheme, _, value = given[0].partition(" ")
    # In constant time: how long it takes must not tell how much of a guess is right.
    same = hmac.compare_digest(value.strip().encode(), token.encode())
    return scheme.lower() == "bearer" and same


def _host_name(host: str) -> str:
    name, _, port = host.rpartition(":")
    return name if name and port.isdecimal() else host


def _headers(scope: Scope) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in scope["headers"]:
        found.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    return found


async def _refuse(send: Send, status: int, text: str) -> None:
    body = json.dumps({"problems": [text]}).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
        *_HEADERS,
    ]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
