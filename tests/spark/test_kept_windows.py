"""Open windows between two epochs: whatever becomes of their files, none is left out unnoticed."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark.damaged_runs import FOG, NOW_S, make_run
from thalweg.errors import InvalidInput
from thalweg.model import TimeWindow
from thalweg.spark.deployment.coordinator import Coordinator
from thalweg.spark.deployment.hand_over import Drain, ExportState, Fence, StartEpoch, Step
from thalweg.spark.deployment.health import examine, repair
from thalweg.spark.deployment.health.refusal import look_over
from thalweg.spark.deployment.journal import Journal, JournalBroken
from thalweg.spark.deployment.restarts import DeploymentFailed
from thalweg.spark.deployment.spec import DeploymentSpec
from thalweg.spark.log import Log
from thalweg.spark.log.disk import Disk
from thalweg.spark.pipeline.windows import Opening
from thalweg.spark.query.carry import (
    CarryOrder,
    carry_file,
    carry_folder,
    keep_rows,
    require_carried,
)
from thalweg.spark.query.checkpoint import Stand
from thalweg.spark.query.kept import KeptRows, describe_file, find_fault
from thalweg.spark.query.spec import QuerySpec

WINDOW = TimeWindow("10 s", "5 s")
OPENINGS = {name: Opening(senders=("x",), window=WINDOW) for name in ("o", "u")}
BEFORE, AFTER = ("x", "o", "u"), ("x", "o")
"""The windows of o stay at the fog, those of u go to the cloud."""
EDGE = "x+o"
ROWS = 5


def empty(file: Path) -> None:
    file.write_bytes(b"")


def tear(file: Path) -> None:
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2])


def spoil(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def lose_folder(file: Path) -> None:
    shutil.rmtree(file.parents[2])


DAMAGES = [empty, tear, spoil, Path.unlink, lose_folder]
any_damage = pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)


# A coordinator that dies between the export and the next epoch


class Died(Exception):
    """The coordinator died here."""


class KeepingSite:
    """A fog that hands over numbered rows; as Spark does, it takes the files that it finds."""

    def __init__(self) -> None:
        self.rows = ROWS
        self.orders: list[CarryOrder] = []
        self.taken: dict[str, list[int]] = {}

    def start(self, query: QuerySpec) -> None:
        for edge, folder in query.carried.items():
            files = sorted(Path(folder).glob("*.parquet"))
            self.taken[edge] = [n for file in files for n in pq.read_table(file)["n"].to_pylist()]

    def prepare(self, query: QuerySpec) -> None:
        for folder in query.carried.values():
            Path(folder).mkdir(parents=True, exist_ok=True)

    def newest_ms(self, query: str) -> int:
        return 20_000

    def drain(self, query: str) -> Stand:
        return Stand(batch=3, offsets={"rides": 9}, watermark_ms=10_000, newest_ms=20_000)

    def carry(self, query: QuerySpec, order: CarryOrder) -> dict[str, int]:
        self.orders.append(order)
        table = pa.table({"n": list(range(self.rows))})
        for name in order.keep:
            keep_rows(table, carry_file(order.folder, f"x+{name}"), Disk(durable=query.durable))
        return {f"x+{name}": self.rows for name in (*order.keep, *order.send)}

    def ship(self, query: QuerySpec, batch: int) -> None: ...

    def await_arrival(self, query: QuerySpec, site: str, epoch: int, batch: int) -> None: ...


class World:
    """A fog and a cloud, and coordinators that follow each other."""

    def __init__(self, folder: Path) -> None:
        self.spec = DeploymentSpec(pipeline="a:b", folder=folder, fogs=(FOG,))
        self.fog = KeepingSite()
        self.fences: dict[tuple[str, int], int | None] = {}

    @property
    def file(self) -> Path:
        return carry_file(self.spec.carried(FOG, 0), EDGE)

    def fence(self, site: str, epoch: int, last_batch: int | None = None) -> None:
        assert self.fences.setdefault((site, epoch), last_batch) == last_batch

    def coordinate(self, on_step: Callable[[Step], None] | None = None) -> Coordinator:
        sites = {FOG: self.fog, "cloud": KeepingSite()}
        return Coordinator(self.spec, sites, self, openings=OPENINGS, on_step=on_step)

    def die_before(self, kind: type[Step]) -> None:
        """Move the cut, and die after the windows were handed over, before a step."""

        epoch = 1 if kind is StartEpoch else 0

        def die(step: Step) -> None:
            if isinstance(step, kind) and step.epoch == epoch:
                raise Died

        with pytest.raises(Died), self.coordinate(die) as coordinator:
            coordinator.go_to({FOG: BEFORE})
            coordinator.go_to({FOG: AFTER})

    def steps(self) -> list[str]:
        return [type(step).__name__ for step, _ in Journal(self.spec.journal).read()]


@any_damage
@pytest.mark.parametrize("kind", [Fence, StartEpoch], ids=["exported", "fenced"])
def test_files_that_are_lost_before_the_next_epoch_starts_are_made_again(
    tmp_path: Path, kind: type[Step], damage: Callable[[Path], None]
) -> None:
    world = World(tmp_path)
    world.die_before(kind)
    damage(world.file)
    with world.coordinate() as coordinator:
        assert coordinator.state.cuts == {FOG: AFTER}
    assert world.fog.taken == {EDGE: list(range(ROWS))}
    first, again = world.fog.orders
    assert (set(first.keep), set(first.send)) == ({"o"}, {"u"})
    # What went to the cloud is in the log, behind a fence.
    assert (again.keep, again.send) == (first.keep, {})
    assert (again.offsets, again.batch) == (first.offsets, first.batch)
    assert world.fences == {(FOG, 0): first.batch}
    assert world.steps()[-4:] == ["ExportState", "Fence", "ExportState", "StartEpoch"]
    # The next coordinator starts what runs, and asks no more of what was handed over.
    with world.coordinate() as coordinator:
        assert coordinator.state.sites[FOG].epoch == 1
    assert len(world.fog.orders) == 2


@pytest.mark.parametrize("kind", [Fence, StartEpoch], ids=["exported", "fenced"])
def test_files_that_are_whole_are_not_made_again(tmp_path: Path, kind: type[Step]) -> None:
    world = World(tmp_path)
    world.die_before(kind)
    with world.coordinate() as coordinator:
        assert coordinator.state.cuts == {FOG: AFTER}
    assert world.fog.taken == {EDGE: list(range(ROWS))}
    assert len(world.fog.orders) == 1


def test_files_that_are_lost_while_the_coordinator_lives_are_made_again(tmp_path: Path) -> None:
    world = World(tmp_path)

    def lose(step: Step) -> None:
        if isinstance(step, Fence):
            world.file.unlink()

    with world.coordinate(lose) as coordinator:
        coordinator.go_to({FOG: BEFORE})
        taken = coordinator.go_to({FOG: AFTER})
    kinds = [type(step) for step in taken]
    assert kinds[2:] == [ExportState, Fence, ExportState, StartEpoch]
    assert world.fog.taken == {EDGE: list(range(ROWS))}


@any_damage
def test_rows_that_cannot_be_made_again_are_not_left_out(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    world = World(tmp_path)
    world.die_before(StartEpoch)
    damage(world.file)
    world.fog.rows = 3
    for _ in range(2):
        with (
            pytest.raises(DeploymentFailed, match="have 3 rows, not 5") as told,
            world.coordinate(),
        ):
            pass
        assert f"thalweg doctor {tmp_path} --rebuild" in str(told.value)
    assert world.fog.taken == {}
    world.fog.rows = ROWS
    with world.coordinate():
        assert world.fog.taken == {EDGE: list(range(ROWS))}


@pytest.mark.parametrize("lost", [True, False])
@pytest.mark.parametrize("kind", [Fence, StartEpoch], ids=["exported", "fenced"])
def test_a_journal_that_says_nothing_of_the_files_is_read_and_they_are_made_again(
    tmp_path: Path, kind: type[Step], lost: bool
) -> None:
    world = World(tmp_path)
    world.die_before(kind)
    lines = [json.loads(line) for line in world.spec.journal.read_text().splitlines()]
    (told,) = [line for line in lines if line["step"] == "ExportState"]
    assert told["reached"].pop("kept")
    world.spec.journal.write_text("".join(json.dumps(line) + "\n" for line in lines))
    if lost:
        world.file.unlink()
    with world.coordinate() as coordinator:
        assert coordinator.state.cuts == {FOG: AFTER}
    assert world.fog.taken == {EDGE: list(range(ROWS))}
    assert len(world.fog.orders) == 2


@pytest.mark.parametrize(
    "kept", [7, {EDGE: 7}, {EDGE: {"rows": 1}}, {EDGE: {"rows": -1, "file_bytes": 1, "sha256": ""}}]
)
def test_notes_of_files_that_say_nothing_are_refused_with_their_line(
    tmp_path: Path, kept: Any
) -> None:
    world = World(tmp_path)
    world.die_before(Fence)
    lines = world.spec.journal.read_text().splitlines()
    last = json.loads(lines[-1])
    last["reached"]["kept"] = kept
    world.spec.journal.write_text("\n".join([*lines[:-1], json.dumps(last)]) + "\n")
    with pytest.raises(JournalBroken, match=rf"journal\.jsonl:{len(lines)}"):
        Journal(world.spec.journal).state((FOG,))


# On the disk


def test_rows_are_on_the_disk_before_they_have_their_name_and_so_are_all_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    file = carry_file(run / "carried" / "fog-0@0", EDGE)
    synced: list[tuple[int, bool]] = []
    monkeypatch.setattr(
        os, "fsync", lambda number: synced.append((os.fstat(number).st_ino, file.exists()))
    )
    # The epoch that gets ready has made the folders, without waiting for the disk.
    file.parent.mkdir(parents=True)
    table = pa.table({"n": [1, 2, 3]})
    keep_rows(table, file, Disk())
    assert synced[0] == (file.stat().st_ino, False)
    folders = [file.parent, *list(file.parents)[1:5]]
    assert folders[-1] == run
    assert [number for number, named in synced[1:] if named] == [f.stat().st_ino for f in folders]
    assert pq.read_table(file).equals(table)
    assert [f.name for f in file.parent.iterdir()] == ["0.parquet"]
    synced.clear()
    keep_rows(table, file, Disk(durable=False))
    assert synced == []


@any_damage
def test_a_file_is_what_was_written_down_of_it_or_its_fault_is_told(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    file = carry_file(tmp_path / "fog-0@0", EDGE)
    keep_rows(pa.table({"n": [1, 2, 3]}), file, Disk())
    kept = describe_file(file, 3)
    assert (kept.rows, kept.file_bytes) == (3, file.stat().st_size)
    assert find_fault(file, kept) == find_fault(file) == ""
    damage(file)
    assert find_fault(file, kept).startswith("is ")
    # Without a note, only whether it is a Parquet file.
    assert bool(find_fault(file)) == (damage is not spoil)


# Where nobody looked before


def query_of(folder: Path) -> QuerySpec:
    return QuerySpec(
        site=FOG,
        epoch=1,
        role="fog",
        pipeline="a:b",
        log=folder / "log",
        checkpoint=folder / "checkpoints" / f"{FOG}@1",
        carried={EDGE: str(carry_folder(folder / "carried" / f"{FOG}@0", EDGE))},
    )


@any_damage
def test_a_query_does_not_start_without_what_was_handed_over_to_it(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    query = query_of(tmp_path)
    file = carry_file(tmp_path / "carried" / f"{FOG}@0", EDGE)
    keep_rows(pa.table({"n": [1, 2, 3]}), file, Disk())
    require_carried(query)
    damage(file)
    if damage is spoil:
        # Only the journal knows its bytes.
        require_carried(query)
        return
    with pytest.raises(InvalidInput, match="open windows that were handed over") as told:
        require_carried(query)
    assert "thalweg doctor" in str(told.value)
    # Once a batch that is finished has taken them, nobody needs them.
    records = query.checkpoint.with_name(query.checkpoint.name + ".taken")
    records.mkdir(parents=True)
    for folder in ("offsets", "commits"):
        (query.checkpoint / folder).mkdir(parents=True)
        (query.checkpoint / folder / "2").touch()
    (records / "2").write_text(json.dumps({"lots": {"sources:rides": 1}, "rows": {}}))
    with pytest.raises(InvalidInput, match="open windows"):
        require_carried(query)
    (records / "2").write_text(json.dumps({"lots": {EDGE: 0}, "rows": {}}))
    require_carried(query)


def exported_run(folder: Path, *, fenced: bool) -> tuple[Path, Path]:
    """A run that ended between the export and the next epoch; gives the file of open windows."""
    make_run(folder)
    file = carry_file(folder / "carried" / f"{FOG}@0", EDGE)
    keep_rows(pa.table({"n": [1, 2, 3]}), file, Disk(durable=False))
    note = describe_file(file, 3)
    assert isinstance(note, KeptRows)
    kept = {EDGE: {"rows": 3, "file_bytes": note.file_bytes, "sha256": note.sha256}}
    with Journal(folder / "journal.jsonl") as journal:
        journal.write(Drain(site=FOG, epoch=0, cut=AFTER), offsets={}, last_batch=4)
        export = ExportState(site=FOG, epoch=0, batch=5, keep={"o": 1}, send={})
        journal.write(export, kept=kept)
        if fenced:
            journal.write(Fence(site=FOG, epoch=0, last_batch=5))
            Log(folder / "log").fence(FOG, 0, 5)
    return folder, file


@any_damage
@pytest.mark.parametrize("fenced", [False, True], ids=["exported", "fenced"])
def test_the_doctor_sees_files_that_a_hand_over_under_way_has_lost(
    tmp_path: Path, fenced: bool, damage: Callable[[Path], None]
) -> None:
    folder, file = exported_run(tmp_path / "run", fenced=fenced)
    where = str(file.relative_to(folder))
    assert examine(folder, now_s=NOW_S).is_well
    assert where not in {finding.where for finding in examine(folder, now_s=NOW_S).findings}
    damage(file)
    (told,) = [f for f in examine(folder, now_s=NOW_S).findings if f.where == where]
    assert "made again from the log" in told.what
    spec = DeploymentSpec(pipeline="a:b", folder=folder, fogs=(FOG,))
    if damage in (Path.unlink, lose_folder):
        assert (told.level, repair(folder)) == ("note", ())
        assert look_over(spec) == ()
        return
    # It is out of the way when the hand-over goes on.
    assert told.level == "warning"
    (mended,) = look_over(spec)
    assert where in mended
    assert not file.exists() and (folder / "set-aside" / "1" / where).exists()
