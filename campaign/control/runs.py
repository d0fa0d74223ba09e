"""Runs worlds by seed, and tells what came of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from campaign.control.adaptation import AdaptationWorld
from campaign.control.coordination import CoordinationWorld
from campaign.control.hand_over import HandOverWorld
from campaign.control.keyed import KeyedWorld
from campaign.control.scheduler import Scheduler, Violation


class World(Protocol):
    """One run of something, from one seed."""

    scheduler: Scheduler

    def run(self) -> None:
        """Run to the end; raises `Violation`."""
        ...


MakeWorld = Callable[[int], World]
WORLDS: Mapping[str, MakeWorld] = {
    world.name: world for world in (CoordinationWorld, HandOverWorld, KeyedWorld, AdaptationWorld)
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one seed led to."""

    world: str
    seed: int
    steps: int
    virtual_s: float
    faults: Mapping[str, int]
    fingerprint: str
    """Of the trace."""
    invariant: str = ""
    """The one that does not hold, if any."""
    found: str = ""

    @property
    def command(self) -> str:
        """What replays this seed exactly."""
        return f"python -m campaign.control --seed {self.seed} --world {self.world} --trace"


def run_seed(world: str, seed: int, make: MakeWorld | None = None) -> tuple[Outcome, list[str]]:
    """Run one seed; gives what came of it, and its trace."""
    running = (make or WORLDS[world])(seed)
    scheduler, invariant, found = running.scheduler, "", ""
    try:
        running.run()
    except Violation as violation:
        invariant, found = violation.invariant, violation.found
        scheduler.note(f"VIOLATION of {violation}")
    outcome = Outcome(
        world=world,
        seed=seed,
        steps=scheduler.steps,
        virtual_s=scheduler.now_s,
        faults=dict(scheduler.faults),
        fingerprint=scheduler.fingerprint,
        invariant=invariant,
        found=found,
    )
    return outcome, scheduler.trace


@dataclass(slots=True)
class Tally:
    """What the seeds of one world led to, all together."""

    world: str
    seeds: int = 0
    steps: int = 0
    virtual_s: float = 0.0
    faults: Counter[str] = field(default_factory=Counter)
    violations: list[Outcome] = field(default_factory=list)

    def add(self, outcome: Outcome) -> None:
        """Count one more."""
        self.seeds += 1
        self.steps += outcome.steps
        self.virtual_s += outcome.virtual_s
        self.faults.update(outcome.faults)
        if outcome.invariant:
            self.violations.append(outcome)


def run_seeds(worlds: Iterable[str], seeds: Iterable[int]) -> list[Tally]:
    """Run these seeds of each of these worlds."""
    chosen = list(seeds)
    tallies = []
    for world in worlds:
        tally = Tally(world)
        for seed in chosen:
            tally.add(run_seed(world, seed)[0])
        tallies.append(tally)
    return tallies


def to_table(tallies: Iterable[Tally]) -> str:
    """One line for each world, one column for each kind of fault."""
    told = list(tallies)
    kinds = sorted({kind for tally in told for kind in tally.faults})
    rows = [["world", "seeds", "steps", "virtual time", *kinds, "violations"]]
    rows += [
        [
            tally.world,
            f"{tally.seeds:,}",
            f"{tally.steps:,}",
            f"{tally.virtual_s / 3600:.1f} h",
            *(f"{tally.faults[kind]:,}" for kind in kinds),
            f"{len(tally.violations):,}",
        ]
        for tally in told
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if place == 0 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )
