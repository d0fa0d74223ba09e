"""The logs of a deployment: begun with it, and there whenever it goes on."""

from __future__ import annotations

from thalweg.spark.deployment.spec import DeploymentSpec
from thalweg.spark.log.founding import found_log, require_log


def open_logs(spec: DeploymentSpec) -> None:
    """Begin the logs of a new deployment; those of one that ran before have to be there.

    Raises:
        LogError: where one that was there is not: its disk may be away.
    """
    has_run = spec.journal.exists() and spec.journal.stat().st_size > 0
    for root in dict.fromkeys((spec.log, *map(spec.log_of, spec.fogs))):
        if has_run:
            require_log(root)
        else:
            found_log(root)
