"""The page served on this machine's own address, in a thread beside whatever else runs."""

from __future__ import annotations

import os
import secrets
import socket
import sys
import tempfile
import threading
import time
import webbrowser
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Self

from thalweg.errors import Defect, Defects, InvalidInput, MissingExtra, ThalwegError

if TYPE_CHECKING:
    from thalweg.web.subject import Subject

HOST = "127.0.0.1"
_START_TIMEOUT_S = 20.0
_END_TIMEOUT_S = 5.0
_LAST_WORDS_S = 0.6
_LEAST_TOKEN = 16
_MISSING = "The page needs FastAPI, Uvicorn and prometheus-client. Hint: pip install 'thalweg[web]'"


class PageServer:
    """Serves subjects under an address that holds a token; `with` starts and stops it.

    Port 0 is any free one. The token is in the part of the address that browsers keep to
    themselves, so it is in no request line and no log. With `only_metrics` there is no page, and
    `/metrics` alone is answered.
    """

    def __init__(
        self,
        subjects: Sequence[Subject],
        *,
        port: int = 0,
        token: str | None = None,
        only_metrics: bool = False,
    ) -> None:
        defects = Defects()
        defects.require(0 <= port < 65536, "port", port, "a port from 0 to 65535; 0 is any free")
        if token is not None:
            defects.attempt("", partial(require_token, token))
        defects.require(len(subjects) > 0, "subjects", "none", "something to look at")
        defects.raise_if_any()
        self.token = token or secrets.token_urlsafe(24)
        self._subjects, self._only_metrics = tuple(subjects), only_metrics
        self._socket = _listen(port)
        self.port: int = self._socket.getsockname()[1]
        self._thread: threading.Thread | None = None
        self._signpost: Path | None = None

    @property
    def address(self) -> str:
        """Where the page is, with the token."""
        return f"http://{HOST}:{self.port}/#token={self.token}"

    @property
    def metrics_address(self) -> str:
        """Where the metrics are; whoever asks for them sends the token in a header."""
        return f"http://{HOST}:{self.port}/metrics"

    def start(self) -> Self:
        """Serve from now on; returns when requests are answered."""
        if self._thread is not None:
            return self
        try:
            import uvicorn

            from thalweg.web.app import Room, make_app
        except ImportError as error:
            self._socket.close()
            raise MissingExtra(_MISSING) from error
        self._room = Room(self._subjects)
        config = uvicorn.Config(
            make_app(self._room, self.token, only_metrics=self._only_metrics),
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=1,
            lifespan="off",
            ws="none",
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._socket]}, name="page", daemon=True
        )
        self._thread.start()
        deadline = time.monotonic() + _START_TIMEOUT_S
        while not self._server.started:
            if not self._thread.is_alive() or time.monotonic() > deadline:
                raise ThalwegError("the page does not start")
            time.sleep(0.02)
        return self

    def stop(self) -> None:
        """Serve no more; streams that are open end."""
        if self._thread is None:
            self._socket.close()
            return
        # Streams say what is left to say before the server goes.
        self._room.closing.set()
        time.sleep(_LAST_WORDS_S)
        self._server.should_exit = True
        self._thread.join(_END_TIMEOUT_S)
        self._socket.close()
        if self._signpost is not None:
            self._signpost.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def open_browser(self) -> bool:
        """Show the page in the user's browser, where there is a screen; whether that was tried."""
        screen = sys.platform == "darwin" or any(
            os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")
        )
        if not screen or not sys.stderr.isatty():
            return False
        # A browser that does not start must not end anything.
        with suppress(Exception):
            return webbrowser.open(self._write_signpost().as_uri())
        return False

    def _write_signpost(self) -> Path:
        """A file for this user alone that leads to the page: who lists processes sees no token."""
        number, name = tempfile.mkstemp(prefix="thalweg-page-", suffix=".html")
        self._signpost = Path(name)
        with os.fdopen(number, "w", encoding="ascii") as file:
            file.write(f'<meta http-equiv="refresh" content="0;url={self.address}">')
        return self._signpost


def require_token(token: str) -> None:
    """Raise `InvalidInput` for a token that is too easy to guess, or that no header can hold."""
    good = (
        len(token) >= _LEAST_TOKEN and token.isascii() and token.isprintable() and " " not in token
    )
    if not good:
        rule = f"at least {_LEAST_TOKEN} printable ASCII characters without spaces"
        raise InvalidInput([Defect(path="token", value="another text", rule=rule)])


def require_free(port: int, *, option: str = "--port") -> None:
    """Raise `InvalidInput` unless a page can be served at this port, which the option names."""
    _listen(port, option).close()


def require_installed() -> None:
    """Raise `MissingExtra` unless everything is there that serves."""
    if any(find_spec(name) is None for name in ("fastapi", "prometheus_client", "uvicorn")):
        raise MissingExtra(_MISSING)


def _listen(port: int, option: str = "--port") -> socket.socket:
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((HOST, port))
    except OSError as error:
        found.close()
        rule, hint = "a port that is free", f"{error.strerror}; 0 takes any free one"
        defect = Defect(path=option, value=port, rule=rule, hint=hint)
        raise InvalidInput([defect]) from None
    found.listen(128)
    return found
