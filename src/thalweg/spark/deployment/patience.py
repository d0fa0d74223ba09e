"""What to do about a step that a site has not taken: wait on, start the site again, or give up."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from thalweg.spark.deployment.restarts import DeploymentFailed
from thalweg.spark.site.channel import SiteError, SiteLate

_LATE_AT_FIRST = 4


@dataclass(slots=True, kw_only=True)
class StepPatience:
    """The patience of one change of cuts.

    A site that is well and only late is waited for: a batch, or what is handed over, may be large,
    and to start the site again would begin it anew. It may hang as well, so that it is started
    again after a while. That while is twice as long after every time: what takes long gets done.

    A step that a site refuses or fails at is asked for at most `most` times more: to start the site
    again takes so long that its budget of restarts within a minute would never be spent.
    """

    most: int
    _late: Counter[str] = field(default_factory=Counter)
    _borne: dict[str, int] = field(default_factory=dict)
    _failed: Counter[tuple[str, str]] = field(default_factory=Counter)

    def is_to_restart(self, error: SiteError, alive: bool) -> bool:
        """Whether to start the site again before the step is asked for again.

        Raises:
            DeploymentFailed: where it was asked for often enough.
        """
        if not alive:
            return True
        if isinstance(error, SiteLate):
            # Asked again, an epoch would be got ready for another time, beside the one under way.
            return error.command == "prepare" or self._is_late_too_long(error.site)
        step = (error.site, error.command)
        self._failed[step] += 1
        if self._failed[step] > self.most:
            raise DeploymentFailed(
                f"{error.site} failed at the same step {self._failed[step]} times: {error}. Hint: "
                "the log of the site and `thalweg doctor` say more; what was done is kept, and the "
                "same `thalweg run` goes on from there."
            )
        return True

    def _is_late_too_long(self, site: str) -> bool:
        borne = self._borne.setdefault(site, _LATE_AT_FIRST)
        self._late[site] += 1
        if self._late[site] <= borne:
            return False
        self._borne[site], self._late[site] = 2 * borne, 0
        return True
