"""Before anything goes on: what is to go on is looked at, mended if that is safe, or refused.

Without this, a site with a torn checkpoint would be started again and again, and one without a
checkpoint would begin again from nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from thalweg.spark.deployment.folder import RunFolder
from thalweg.spark.deployment.health.aside import mend
from thalweg.spark.deployment.health.checkpoint_facts import is_held, read_checkpoint
from thalweg.spark.deployment.health.damage import Damage, find_damage
from thalweg.spark.deployment.health.stakes import (
    RunPlaces,
    Stake,
    find_lost_windows,
    has_fog_checkpoints,
    journaled,
    list_stakes,
)
from thalweg.spark.deployment.journal import Journal
from thalweg.spark.deployment.restarts import DeploymentFailed
from thalweg.spark.deployment.spec import DeploymentSpec
from thalweg.spark.log.founding import is_log, require_log
from thalweg.spark.query.spec import QuerySpec

_PATIENCE_S = 20.0
_LOOK_S = 0.2
_SECOND_LOOK_S = 0.5


def look_over(spec: DeploymentSpec) -> tuple[str, ...]:
    """Look at all that a run goes on with; returns what was mended, in words.

    For the one who holds the run's folder, before its sites are started.

    Raises:
        DeploymentFailed: where something cannot be mended, with all of it and what to do.
        JournalBroken: where the journal cannot be read.
        LogError: where a log of a run that ran before is away.
    """
    folder = spec.folder
    if RunFolder(folder).rebuild_file.exists():
        raise DeploymentFailed(
            f"a rebuild of {folder} was begun and not ended. "
            f"Hint: `thalweg doctor {folder} --rebuild --yes` ends it."
        )
    places = RunPlaces(folder=folder, fogs=spec.fogs, cloud=spec.cloud, ships=spec.ships)
    state = Journal(spec.journal).state(spec.fogs)
    if any(site.epoch >= 0 for site in state.sites.values()):
        for root in places.logs.values():
            require_log(root)
    elif not journaled(spec.journal) and has_fog_checkpoints(folder, spec.fogs):
        raise DeploymentFailed(
            f"{spec.journal} is gone or empty, though sites of this run have worked: what ran "
            f"cannot be known. Hint: restore it from a copy; `thalweg doctor {folder}` says more."
        )
    stakes = list_stakes(places, state.sites)
    _await_release(stakes)
    return _mend_or_refuse(folder, stakes)


def look_over_queries(folder: Path, queries: Iterable[QuerySpec]) -> tuple[str, ...]:
    """The same for the queries of a site that has died, or for one that has failed."""
    stakes = [
        Stake(
            site=q.site,
            epoch=q.epoch,
            checkpoint=q.checkpoint,
            log=q.log,
            carried=tuple(Path(folder) / "0.parquet" for folder in q.carried.values()),
        )
        for q in queries
        if q.role != "own" and q.checkpoint.is_relative_to(folder)
    ]
    return _mend_or_refuse(folder, stakes)


def examine_stake(stake: Stake) -> tuple[Damage, ...]:
    """All damage of an epoch that is to go on; none where its log is away, and nothing is known."""
    if not is_log(stake.log):
        return ()
    facts = read_checkpoint(stake.checkpoint, stake.published, stake.carried)
    return (*find_damage(facts), *find_lost_windows(stake))


def examine_calmly(stake: Stake) -> tuple[Damage, ...]:
    """The same of an epoch that may run: what is looked at changes, so what is so twice counts."""
    damages = examine_stake(stake)
    if damages and is_held(stake.checkpoint):
        time.sleep(_SECOND_LOOK_S)
        again = examine_stake(stake)
        damages = tuple(damage for damage in again if damage in damages)
    return damages


def _mend_or_refuse(folder: Path, stakes: Sequence[Stake]) -> tuple[str, ...]:
    found = [(stake, examine_calmly(stake)) for stake in stakes]
    damages = [damage for _, of_stake in found for damage in of_stake]
    fatal = [damage for damage in damages if damage.is_fatal]
    if fatal:
        shown = "; ".join(str(damage) for damage in fatal[:3])
        more = f"; and {len(fatal) - 3} more" if len(fatal) > 3 else ""
        raise DeploymentFailed(
            f"a checkpoint is damaged, and to go on from it would lose rows or count them twice: "
            f"{shown}{more}. Hint: `thalweg doctor {folder}` says what can be done."
        )
    # What a query has that still runs is its own.
    free = [d for stake, found_of in found for d in found_of if not is_held(stake.checkpoint)]
    return mend(folder, free)


def _await_release(stakes: Sequence[Stake]) -> None:
    """Wait until the sites of a run that was killed have ended; that takes them seconds."""
    deadline = time.monotonic() + _PATIENCE_S
    while any(is_held(stake.checkpoint) for stake in stakes):
        if time.monotonic() > deadline:
            # Whoever starts the query is told who has it.
            return
        time.sleep(_LOOK_S)
