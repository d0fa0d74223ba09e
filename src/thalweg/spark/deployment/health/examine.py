"""Looks at a run or a machine, and says what was found: readers first, then pure judges."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from thalweg.errors import InvalidInput
from thalweg.spark.deployment.folder import OtherFormat, RunFolder
from thalweg.spark.deployment.hand_over import SiteState
from thalweg.spark.deployment.health.backlog import Backlog, judge_backlog, read_backlog
from thalweg.spark.deployment.health.damage import Damage
from thalweg.spark.deployment.health.disk import judge_disk, read_disk
from thalweg.spark.deployment.health.finding import GOOD, NOTE, PROBLEM, WARNING, Finding, Health
from thalweg.spark.deployment.health.log_facts import judge_log, read_log
from thalweg.spark.deployment.health.machine import judge_machine, read_machine
from thalweg.spark.deployment.health.refusal import examine_calmly
from thalweg.spark.deployment.health.run_facts import (
    RunFacts,
    judge_run,
    read_journal,
    read_run,
)
from thalweg.spark.deployment.health.stakes import RunPlaces, Stake, list_stakes
from thalweg.spark.log.founding import is_log

_SECOND_LOOK_S = 0.5
_MOST_SHOWN = 300


def examine_machine(folder: Path | str = ".") -> Health:
    """Whether this machine is ready to run a pipeline in a folder."""
    return Health.of(judge_machine(read_machine(Path(folder))))


def examine(folder: Path | str, *, deep: bool = False, now_s: float | None = None) -> Health:
    """What state the run of a folder is in, what is wrong, and what to do.

    Nothing is changed. With `deep`, all rows of the log are read and compared with what was
    published.

    Raises:
        InvalidInput: where there is no run in the folder.
    """
    found = RunFolder.of_run(folder)
    facts, places, told = _begin(found, time.time() if now_s is None else now_s)
    if facts is None or places is None:
        return Health.of(told)
    run, where = facts, places
    findings = [*told, *judge_run(run)]
    stakes: list[Stake] = []
    if not run.journal.fault:
        findings += _guarded(found.path, "checkpoints", partial(_find_stakes, where, run, stakes))
    for stake in stakes:
        findings += _guarded(found.path, stake.name, partial(_judge_stake, stake, run))
    backlogs: list[Backlog] = []
    findings += _guarded(found.path, "lag", partial(_judge_lag, where, stakes, run, backlogs))
    read = backlogs[0].read_edges if backlogs else {}
    for root in where.logs.values():
        look = partial(_judge_log, root, run, where, read, deep=deep)
        findings += _guarded(found.path, "log", look)
    findings += _guarded(found.path, "disk", lambda: judge_disk(read_disk(found.path)))
    return Health.of(findings)


def glance(folder: RunFolder, now_s: float) -> Finding | None:
    """The worst that can be found without reading the log; None where all is well."""
    facts, _, told = _begin(folder, now_s)
    findings = [*told, *(judge_run(facts) if facts is not None else ())]
    worst = Health.of(findings).worst
    return worst if worst is not None and worst.level in (WARNING, PROBLEM) else None


def _begin(
    folder: RunFolder, now_s: float
) -> tuple[RunFacts | None, RunPlaces | None, list[Finding]]:
    """What the folder says of the run; where it is not even known which, only that."""
    try:
        places = RunPlaces.of(folder.path, folder.read_manifest())
    except InvalidInput as error:
        remedy = "restore it from a copy, or begin in a new folder"
        if isinstance(error, OtherFormat):
            remedy = "use the Thalweg that wrote it, or begin in a new folder"
        what = f"{error}"[:_MOST_SHOWN]
        return None, None, [Finding(level=PROBLEM, where="run.json", what=what, remedy=remedy)]
    facts: list[RunFacts] = []

    def read() -> Iterable[Finding]:
        facts.append(read_run(folder, places.fogs, now_s))
        return ()

    told = _guarded(folder.path, "run", read)
    return (facts[0] if facts else None), places, told


def _find_stakes(places: RunPlaces, run: RunFacts, stakes: list[Stake]) -> Iterable[Finding]:
    stakes += list_stakes(places, run.journal.sites)
    return ()


def _judge_stake(stake: Stake, run: RunFacts) -> Iterator[Finding]:
    damages = examine_calmly(stake)
    yield from judge_damages(stake.name, damages, run.folder, run.journal.sites)


def judge_damages(
    name: str, damages: Sequence[Damage], folder: Path, sites: Mapping[str, SiteState]
) -> Iterator[Finding]:
    """What is to be said of a checkpoint."""
    for damage in damages:
        inside = damage.where.is_relative_to(folder)
        where = str(damage.where.relative_to(folder) if inside else damage.where)
        if damage.is_fatal:
            remedy = (
                "restore the whole folder from a copy; without one, "
                f"`thalweg doctor {folder} --rebuild --yes` works on all rows again"
            )
            yield Finding(level=PROBLEM, where=where, what=damage.what, remedy=remedy)
        elif damage.is_mendable:
            what = f"{damage.what}; can be mended: {damage.then}"
            remedy = f"`thalweg doctor {folder} --repair`, or the next `thalweg run` by itself"
            yield Finding(level=WARNING, where=where, what=what, remedy=remedy)
        else:
            yield Finding(level=NOTE, where=where, what=damage.what)
    if all(damage.harmless for damage in damages):
        site = sites.get(name.rpartition("@")[0])
        ready = site is not None and name == f"{site.site}@{site.epoch + 1}"
        what = "the epoch that was got ready is whole" if ready else "its checkpoint is whole"
        yield Finding(level=GOOD, where=name, what=what)


def _judge_lag(
    places: RunPlaces, stakes: Sequence[Stake], run: RunFacts, backlogs: list[Backlog]
) -> Iterator[Finding]:
    """What waits; the backlog is kept for who else needs to know how far was read."""
    backlogs.append(read_backlog(places, stakes, run.status.get("link"), held=run.held))
    yield from judge_backlog(backlogs[0], run.folder, held=run.held)


def _judge_log(
    root: Path, run: RunFacts, places: RunPlaces, read: Mapping[str, object], *, deep: bool
) -> Iterator[Finding]:
    if is_log(root):
        facts = read_log(root, deep=deep)
        # A live run writes down that an epoch is drained before it fences it: the journal of now
        # knows of every fence that was just seen, and the one that was read first may not.
        by_now = read_journal(places.journal, places.fogs)
        yield from judge_log(facts, by_now.sites, run.folder, read)
    elif any(site.epoch >= 0 for site in run.journal.sites.values()):
        what = "there is no log: its disk is away, or it was removed"
        remedy = "bring the disk back; the same `thalweg run` goes on"
        where = str(root.relative_to(run.folder))
        yield Finding(level=PROBLEM, where=where, what=what, remedy=remedy)


def _guarded(folder: Path, where: str, look: Callable[[], Iterable[Finding]]) -> list[Finding]:
    """What a look finds; whatever is in the files, it is told and not raised."""
    try:
        return list(look())
    except Exception as error:
        # Files may hold anything, and people need the other findings all the more.
        what = f"cannot be looked at: {type(error).__name__}: {error}"[:_MOST_SHOWN]
        remedy = (
            f"see that you may read all of {folder}, and that its disk is there; else restore it "
            f"from a copy, or `thalweg doctor {folder} --rebuild --yes` works on all rows again"
        )
        return [Finding(level=PROBLEM, where=where, what=what, remedy=remedy)]
