"""One Spark session for the files that can do with the same, one after another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from parts import ONE_SESSION
from spark.site_session import site_session


class Lender:
    """Keeps a session as long as the next test is one of a file that shares it."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._session: Any = None

    @contextmanager
    def lend(self, folder: Path, config: Mapping[str, str]) -> Iterator[Any]:
        """The session with these settings of SQL; afterwards it has its own again."""
        if self._session is None:
            self._session = self._stack.enter_context(site_session(folder))
        session = self._session
        before = {name: session.conf.get(name, None) for name in config}
        for name, value in config.items():
            session.conf.set(name, value)
        try:
            yield session
        finally:
            for query in session.streams.active:
                query.stop()
            session.catalog.clearCache()
            for name, value in before.items():
                if value is None:
                    session.conf.unset(name)
                else:
                    session.conf.set(name, value)

    def close(self) -> None:
        """End the session: others could not start one of their own beside it."""
        self._session = None
        self._stack.close()


LENDER = Lender()


@pytest.fixture(scope="module")
def shared_session(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Callable[..., Any]]:
    """Lends the session, set up as that of a site, with settings of SQL by name."""
    pytest.importorskip("pyspark")
    with ExitStack() as stack:

        def lend(config: Mapping[str, str] | None = None) -> Any:
            folder = tmp_path_factory.mktemp("session")
            return stack.enter_context(LENDER.lend(folder, config or {}))

        yield lend


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Close the session behind the last test of the files that share it."""
    if nextitem is None or nextitem.nodeid.partition("::")[0] not in ONE_SESSION:
        LENDER.close()
