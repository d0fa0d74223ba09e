"""Operations that take as long as a test wants, without any thread."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any


class HeldOperations:
    """Operations that do nothing until they are told to finish."""

    def __init__(self) -> None:
        self.held: dict[str, tuple[Future[Any], Callable[[], Any]]] = {}

    def begin(self, name: str, work: Callable[[], Any]) -> Future[Any]:
        assert name not in self.held, f"{name} is under way already"
        task = Future[Any]()
        self.held[name] = (task, work)
        return task

    def finish(self, *names: str) -> list[str]:
        """Do what these operations are to do, or all; gives their names."""
        chosen = list(names) or list(self.held)
        for name in chosen:
            task, work = self.held.pop(name)
            try:
                task.set_result(work())
            except Exception as error:
                task.set_exception(error)
        return chosen

    def fail(self, name: str, error: Exception) -> None:
        """Have an operation end with this error, whatever it was to do."""
        task, _ = self.held.pop(name)
        task.set_exception(error)
