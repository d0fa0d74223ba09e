"""How often a site may be started again before somebody has to look."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from thalweg.errors import Defects, ThalwegError


class DeploymentFailed(ThalwegError):
    """A run cannot go on."""


@dataclass(slots=True, kw_only=True)
class RestartBudget:
    """At most `most` restarts of a site within any span of `within_s` seconds."""

    most: int = 5
    within_s: float = 60.0
    total: int = 0
    """All restarts so far, of all sites."""
    _times: dict[str, deque[float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        defects = Defects()
        whole = isinstance(self.most, int) and not isinstance(self.most, bool)
        defects.require(whole and self.most >= 0, "most", self.most, "a whole number >= 0")
        defects.require(self.within_s > 0, "within_s", self.within_s, "a number > 0")
        defects.raise_if_any()

    def spend(self, site: str, now_s: float, cause: str) -> None:
        """Count a restart; raises `DeploymentFailed` with the cause where it is one too many.

        `now_s` is of a clock that only goes forward: one that is set back would keep the budget
        spent for as long, and one that is set forward would forget it.
        """
        times = self._times.setdefault(site, deque())
        while times and now_s - times[0] >= self.within_s:
            times.popleft()
        if len(times) >= self.most:
            raise DeploymentFailed(
                f"{site} was started again {len(times)} times within {self.within_s:g} s and does "
                f"not stay: {cause}. Hint: the log of the site and `thalweg doctor` say more; "
                "what it has done is kept, and the same `thalweg run` goes on from there."
            )
        times.append(now_s)
        self.total += 1
