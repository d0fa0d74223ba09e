"""A journal that outlives its coordinators, in memory, line by line as the real one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from thalweg.spark.deployment.hand_over import DeploymentState, Step, learn
from thalweg.spark.deployment.journal import from_line, to_line
from thalweg.spark.pipeline.windows import Opening


class WrittenSteps:
    """The steps of a deployment; writing one may be the last thing that a coordinator does."""

    def __init__(self, may_die: Callable[[str], None]) -> None:
        self.lines: list[str] = []
        self._may_die = may_die
        self._replayed: tuple[int, DeploymentState | None] = (0, None)

    def __enter__(self) -> WrittenSteps:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def write(self, step: Step, **reached: Any) -> None:
        """Write a step down."""
        self._may_die(f"done, not written down: {step}")
        self.lines.append(to_line(step, reached))
        self._may_die(f"written down: {step}")

    def state(
        self, sites: tuple[str, ...], openings: Mapping[str, Opening] | None = None
    ) -> DeploymentState:
        """What is true after all of it, read from the first line on."""
        state = DeploymentState.of(sites, openings)
        for line in self.lines:
            step, reached = from_line(line)
            state = learn(state, step, **reached)
        self._replayed = (len(self.lines), state)
        return state

    def follow(self) -> DeploymentState | None:
        """What is true after all of it, read on from where reading ended last."""
        count, state = self._replayed
        for line in self.lines[count:]:
            step, reached = from_line(line)
            state = None if state is None else learn(state, step, **reached)
        self._replayed = (len(self.lines), state)
        return state
