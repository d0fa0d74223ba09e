"""Measures how fast this machine is, so that CPU time becomes instructions.

The planner counts work in instructions and speed in instructions per second. What it needs is that
both mean the same everywhere; so an instruction is one of the steps of a reference program, and a
machine's speed is how many of them one core does in a second of CPU time. The program mixes what
generated code does most: shifts, exclusive ors, a multiplication, a look-up in a small table and
additions, each depending on the one before. It is compiled by Numba, without threads or vectors,
and its result is a number that shows that all of it was done.

CPU time, not time on the clock, is what counts, so other programs on the machine hardly matter.
A network file's `cpu` of a node is this speed × its cores.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from thalweg.errors import Defects
from thalweg.spark.profile.fit import Measured, measured_from
from thalweg.units import CPU_SPEED, show_quantity

INSTRUCTIONS_PER_ROUND = 13
"""What one round of the reference program takes on x86-64: 3 copies, 3 shifts, 4 exclusive ors (one
of them with the table), a multiplication, a mask and an addition. The loop around it is unrolled
and takes next to nothing."""
_ROUNDS = 20_000_000
_TABLE_SIZE = 1024
_SEED = 0x9E3779B97F4A7C15
_FACTOR = 0x2545F4914F6CDD1D

Words = npt.NDArray[np.uint64]
Program = Callable[[np.uint64, Words, int], np.uint64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """How many instructions one core of this machine does in a second of CPU time."""

    speed_ips: Measured
    rounds: int
    repeat: int

    def __str__(self) -> str:
        speed = self.speed_ips
        low, high = (show_quantity(value, CPU_SPEED) for value in (speed.low, speed.high))
        return f"{show_quantity(speed.value, CPU_SPEED)} per core ({low} to {high})"


def calibrate(
    *,
    rounds: int = _ROUNDS,
    repeat: int = 7,
    clock: Callable[[], float] = time.thread_time,
) -> Calibration:
    """The speed of one core, from several runs of the reference program.

    Raises:
        InvalidInput: unless there is at least one round, and one run.
    """
    defects = Defects()
    defects.require(rounds >= 1, "rounds", rounds, "a whole number >= 1")
    defects.require(repeat >= 1, "repeat", repeat, "a whole number >= 1")
    defects.raise_if_any()
    program, table = _compiled_program(), reference_table()
    program(np.uint64(_SEED), table, 1)
    speeds = []
    for _ in range(repeat):
        begin = clock()
        program(np.uint64(_SEED), table, rounds)
        seconds = max(clock() - begin, 1e-9)
        speeds.append(rounds * INSTRUCTIONS_PER_ROUND / seconds)
    return Calibration(speed_ips=measured_from(speeds), rounds=rounds, repeat=repeat)


def reference_table() -> Words:
    """The table that the reference program looks numbers up in."""
    return np.arange(1, _TABLE_SIZE + 1, dtype=np.uint64) * np.uint64(0x9E3779B9)


def run_reference(rounds: int) -> int:
    """The number that the reference program ends with.

    >>> run_reference(3)
    18380400491845488899
    """
    return int(_compiled_program()(np.uint64(_SEED), reference_table(), rounds))


@cache
def _compiled_program() -> Program:
    # Loading Numba takes longer than most commands do.
    from numba import njit, uint64

    factor, mask = np.uint64(_FACTOR), np.uint64(_TABLE_SIZE - 1)
    a, b, c = np.uint64(12), np.uint64(25), np.uint64(27)

    def program(state: np.uint64, table: Words, rounds: int) -> np.uint64:
        total = uint64(0)
        for _ in range(rounds):
            state ^= state >> a
            state ^= state << b
            state ^= state >> c
            # What is looked up goes into what comes next, so nothing can be done ahead of it.
            state ^= table[(state * factor) & mask]
            total += state
        return total

    compiled: Any = njit(program)
    return cast("Program", compiled)
