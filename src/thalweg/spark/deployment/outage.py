"""A run waits while its disks cannot be written, and says so: what was committed is not lost."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from thalweg.spark.deployment.chronicle import Chronicle
from thalweg.spark.deployment.control import STOP, list_requests
from thalweg.spark.deployment.parts import RunParts
from thalweg.spark.deployment.restarts import DeploymentFailed
from thalweg.spark.deployment.storage import Blips
from thalweg.spark.log.disk import LogError

_LOOK_S = 0.5

Say = Callable[[str, bool], None]
"""Takes how it stands in words, and whether the run still waits."""


class DiskOutage:
    """The outages of the disks of one run."""

    def __init__(
        self, parts: RunParts, chronicle: Chronicle, tell_time: Callable[[], float], say: Say
    ) -> None:
        self._parts = parts
        self._tell_time = tell_time
        self._chronicle = chronicle
        self._say = say
        self._blips = Blips()

    def outlast(self, act: Callable[[], None]) -> None:
        """Do something; where a disk keeps that from being done, wait for the disk instead."""
        try:
            act()
        except (LogError, OSError) as error:
            if not self.wait_out(error):
                raise

    def wait_out(self, error: Exception | None = None) -> bool:
        """Wait until the disks can be written; whether there was anything to wait for.

        An error of a disk that is well again by now counts as something, for a few times.

        Raises:
            DeploymentFailed: where the run is to end meanwhile.
        """
        outage = self._parts.find_outage()
        if outage is None:
            if not self._blips.let_pass(error, self._parts.clock()):
                return False
            self._parts.sleep(_LOOK_S)
            return True
        begin_s = self._parts.clock()
        self._tell("the run waits for its disk", outage)
        while outage is not None:
            self.require_wanted(outage)
            passed_s = self._parts.clock() - begin_s
            self._say(f"waits for {passed_s:.0f} s: {outage}", True)
            self._parts.sleep(_LOOK_S)
            outage = self._parts.find_outage()
        waited = f"waited {self._parts.clock() - begin_s:.0f} s for its disk"
        self._say(waited, False)
        self._tell("the disk is back", waited)
        return True

    def require_wanted(self, waits_for: str) -> None:
        """Look whether the run is to go on with its waiting.

        Raises:
            DeploymentFailed: where it is to end.
        """
        asked: list[str] = []
        with suppress(OSError):
            asked = [kind for kind, _ in list_requests(self._parts.folder)]
        if self._parts.is_stopping() or STOP in asked:
            raise DeploymentFailed(f"it was ended while it waited: {waits_for}")

    def _tell(self, title: str, text: str) -> None:
        # There may be no room for it.
        with suppress(OSError):
            self._chronicle.tell_mark(self._tell_time(), "outage", title, text)
