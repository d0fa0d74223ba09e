"""What is wrong with a checkpoint, and what of it can be mended without a doubt: pure functions.

What makes a repair safe is that whatever an epoch does is known by its key. A batch that is done
again publishes the same rows under the same number, and is recognised; an epoch of which nothing
is published has done nothing, and may begin again. All else is left alone: to go on from a guess,
or from nothing, would lose rows or count them twice.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

from thalweg.spark.deployment.health.checkpoint_facts import CheckpointFacts, IntakeFacts
from thalweg.spark.deployment.health.checksums import checksum_of

# Numbers come from names of files, which may be anything.
_MOST_TOLD = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """Something that is not as it should be: where, what, and what mends it.

    To mend it is to set `aside` what is there, and to write the `renewed` files. What is `harmless`
    keeps nothing from going on.
    """

    where: Path
    what: str
    aside: tuple[Path, ...] = ()
    renewed: tuple[tuple[Path, str], ...] = ()
    harmless: bool = False
    then: str = ""
    """What becomes of it when it is mended, for people."""

    @property
    def is_mendable(self) -> bool:
        """Whether it can be mended without a doubt."""
        return bool(self.aside or self.renewed)

    @property
    def is_fatal(self) -> bool:
        """Whether nothing can go on from here."""
        return not (self.harmless or self.is_mendable)

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


def find_damage(facts: CheckpointFacts) -> tuple[Damage, ...]:
    """All damage of a checkpoint; of an epoch that has published nothing, all can be mended."""
    found = tuple(_all_damage(facts))
    fatal = [damage for damage in found if damage.is_fatal]
    inside = all(any(d.where.is_relative_to(part) for part in facts.parts) for d in fatal)
    # What was handed over to the epoch, it would need again.
    handed_over = not any(carried.fault for carried in facts.carried)
    if facts.published < 0 and fatal and inside and handed_over:
        first = fatal[0]
        then = "nothing of this epoch is published: it begins again where it was to begin"
        return (Damage(where=first.where, what=first.what, aside=facts.parts, then=then),)
    return found


def _all_damage(facts: CheckpointFacts) -> Iterator[Damage]:
    for carried in facts.carried:
        if carried.fault and not (carried.was_taken and facts.begun == facts.finished):
            what = f"{carried.fault}: rows of open windows that were handed over are lost"
            yield Damage(where=carried.file, what=what)
    laid = any(intake.last > 0 for intake in facts.intakes if intake.label != "clock")
    if facts.finished < 0 and facts.begun < 0:
        if facts.published >= 0 or laid:
            done = f"batch {facts.published} of it is published" if facts.published >= 0 else ""
            what = f"has no batches, though {done or 'rows were given to it'}"
            yield Damage(where=facts.path, what=f"{what}: it would begin again from nothing")
        return
    yield from _metadata_damage(facts)
    if facts.published > facts.begun:
        what = (
            f"is older than the log: it has begun batch {facts.begun}, and batch "
            f"{facts.published} of this epoch is published"
        )
        yield Damage(where=facts.path, what=what)
    yield from _commit_damage(facts)
    yield from _offset_damage(facts)
    yield from _record_damage(facts)
    for file in _lost_rows(facts, next_batch(facts) - 1):
        yield Damage(where=file, what="is missing or torn, and no batch is known to have taken it")
    for intake in facts.intakes:
        yield from _intake_damage(intake, facts)
    yield from _source_damage(facts)
    yield from _state_damage(facts)


def next_batch(facts: CheckpointFacts) -> int:
    """The batch that the query does next, once its logs are mended."""
    return facts.begun + 1 if facts.commits.get(facts.begun) == "" else max(facts.begun, 0)


def _metadata_damage(facts: CheckpointFacts) -> Iterator[Damage]:
    if facts.shape:
        shape = facts.path.with_name(facts.path.name + ".shape")
        then = "it is written again from the journal"
        yield Damage(where=shape, what=facts.shape, aside=(shape,), then=then)
    if facts.metadata == "":
        return
    file = facts.path / "metadata"
    # The number is a name for the query; nothing hangs on it.
    number = uuid5(NAMESPACE_URL, str(facts.path))
    yield Damage(
        where=file,
        what=facts.metadata or "is missing",
        aside=_with_checksum(file),
        renewed=((file, json.dumps({"id": str(number)})),),
        then="the query gets a new number",
    )


def _commit_damage(facts: CheckpointFacts) -> Iterator[Damage]:
    folder = facts.path / "commits"
    for number, fault in sorted(facts.commits.items()):
        if not fault:
            continue
        if number < facts.finished:
            yield Damage(where=folder / str(number), what=_unread(fault), harmless=True)
            continue
        redone = number == facts.begun
        missing = _missing_for(facts, number) if redone else ""
        if missing:
            what = f"{fault}, and batch {number} cannot be done again: {missing}"
            yield Damage(where=folder / str(number), what=what)
            continue
        then = (
            f"batch {number} is done again, and recognised" if redone else "the next one was begun"
        )
        yield Damage(
            where=folder / str(number),
            what=fault,
            aside=_with_checksum(folder / str(number)),
            then=then,
        )
    yield from _gaps(folder, sorted(facts.commits))


def _missing_for(facts: CheckpointFacts, batch: int) -> str:
    """What a batch needs to be done again that is not there; nothing where all is."""
    if facts.offsets.get(batch) != "":
        return f"its offsets are not there: {facts.path / 'offsets' / str(batch)}"
    for number in {batch, max(batch - 1, 0)}:
        if facts.taken.get(number) != "":
            record = facts.path.with_name(facts.path.name + ".taken") / str(number)
            return f"what it took is not known: {record}"
    lost = next(_lost_rows(facts, batch - 1), None)
    return "" if lost is None else f"its rows are not there: {lost}"


def _lost_rows(facts: CheckpointFacts, done: int) -> Iterator[Path]:
    """Files of rows after those of a finished batch that are gone, though a later lot is there.

    The last lot is laid down again by itself, and what is finished is not needed any more. Of each
    stream the first few are told.
    """
    if done >= 0 and done not in facts.lots_of:
        return
    taken = facts.lots_of.get(done, {})
    for intake in facts.intakes:
        lots = range(max(taken.get(intake.label, -1) + 1, 0), intake.last)
        lost = (lot for lot in lots if intake.rows.get(lot) != "")
        yield from (intake.rows_file(lot) for lot in islice(lost, _MOST_TOLD))


def _offset_damage(facts: CheckpointFacts) -> Iterator[Damage]:
    folder, begun = facts.path / "offsets", facts.begun
    needed = {begun, begun - 1, facts.finished} - {-1}
    for number in sorted(needed - set(facts.offsets)):
        if number >= 0:
            yield Damage(where=folder / str(number), what="is missing")
    for number, fault in sorted(facts.offsets.items()):
        if not fault:
            continue
        if number not in needed:
            yield Damage(where=folder / str(number), what=_unread(fault), harmless=True)
        elif number == begun and number > facts.finished and facts.published < number:
            record = facts.path.with_name(facts.path.name + ".taken") / str(number)
            aside = (*_with_checksum(folder / str(number)), record)
            then = f"nothing of batch {number} is published: it is made anew"
            yield Damage(where=folder / str(number), what=fault, aside=aside, then=then)
        else:
            what = f"{fault}, and rows of batch {number} may be published"
            yield Damage(where=folder / str(number), what=what)
    yield from _gaps(folder, sorted(set(facts.offsets) | {n for n in needed if n >= 0}))


def _gaps(folder: Path, numbers: list[int]) -> Iterator[Damage]:
    """Old numbers that are missing between others; Spark does not ask for them."""
    for before, after in pairwise(numbers):
        if after > before + 1:
            what = f"numbers {before + 1} to {after - 1} are missing; nobody reads them"
            yield Damage(where=folder, what=what, harmless=True)


def _record_damage(facts: CheckpointFacts) -> Iterator[Damage]:
    """Records of what batches took: the last finished batch needs its own, or lots are lost."""
    folder = facts.path.with_name(facts.path.name + ".taken")
    last = facts.finished
    if last >= 0 and facts.commits[last] == "" and facts.taken.get(last) != "":
        what = facts.taken.get(last) or "is missing"
        yield Damage(where=folder / str(last), what=f"{what}: what batch {last} took is not known")
    for number, fault in sorted(facts.taken.items()):
        if fault and number > last:
            yield Damage(
                where=folder / str(number),
                what=fault,
                aside=(folder / str(number),),
                then="the batch writes it again before anything else",
            )
        elif fault and number < last - 1:
            yield Damage(where=folder / str(number), what=_unread(fault), harmless=True)


def _intake_damage(intake: IntakeFacts, facts: CheckpointFacts) -> Iterator[Damage]:
    last = intake.last
    if last < 0:
        if intake.listed >= 0 or (facts.begun >= 0 and intake.rows):
            yield Damage(where=intake.lot_file(max(intake.listed, 0)), what="is missing")
        return
    if last < intake.listed:
        yield Damage(where=intake.lot_file(intake.listed), what="is missing, and was taken")
    file, fault = intake.lot_file(last), intake.lots[last]
    if fault and last > intake.listed:
        aside = tuple(f for f in (file, intake.rows_file(last)) if _is_there(intake, f))
        yield Damage(where=file, what=fault, aside=aside, then="it was not taken: it is laid again")
    elif fault:
        yield Damage(where=file, what=f"{fault}, and was taken")
    elif intake.rows.get(last):
        rows = intake.rows_file(last)
        then = "its rows are read from the log again"
        yield Damage(where=rows, what=intake.rows[last], aside=(rows,), then=then)


def _is_there(intake: IntakeFacts, file: Path) -> bool:
    return file == intake.lot_file(intake.last) or intake.last in intake.rows


def _source_damage(facts: CheckpointFacts) -> Iterator[Damage]:
    """Lists of files that were taken: Spark reads the last compacted one, and all after it."""
    for source in facts.sources:
        numbers = {name: int(name.partition(".")[0]) for name in source.files}
        compact = [n for name, n in numbers.items() if name.endswith(".compact")]
        first, last = max(compact, default=0), max(numbers.values(), default=-1)
        there = set(numbers.values())
        missing = (number for number in range(first, last) if number not in there)
        for number in islice(missing, _MOST_TOLD):
            what = "is missing: which files were taken is not known"
            yield Damage(where=source.folder / str(number), what=what)
        for name, fault in source.files.items():
            file, number = source.folder / name, numbers[name]
            if not fault:
                continue
            if number < first:
                yield Damage(where=file, what=_unread(fault), harmless=True)
            elif number > facts.listed_upto and number == last:
                then = "no batch was begun with it: the files are found again"
                yield Damage(where=file, what=fault, aside=_with_checksum(file), then=then)
            else:
                yield Damage(where=file, what=f"{fault}: which files were taken is not known")


def _state_damage(facts: CheckpointFacts) -> Iterator[Damage]:
    """The state before the next batch: a whole version, and all steps from there."""
    version = next_batch(facts)
    for store in facts.stores if version > 0 else ():
        if store.is_missing:
            what = f"is missing or empty: the state before batch {version} is lost"
            yield Damage(where=store.folder, what=what)
            continue
        whole = max((n for n, f in store.full.items() if not f and n <= version), default=0)
        for number in range(whole + 1, version + 1):
            fault = store.steps.get(number, "is missing")
            if fault:
                file = store.folder / f"{number}{store.ending}"
                yield Damage(where=file, what=f"{fault}: the state before batch {version} is lost")
                break


def _unread(fault: str) -> str:
    return f"{fault}; nobody reads it"


def _with_checksum(file: Path) -> tuple[Path, ...]:
    """A file and its checksum, which would not fit the next file of that name."""
    return (file, checksum_of(file))
