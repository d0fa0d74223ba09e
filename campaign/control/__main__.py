"""`python -m campaign.control`: run seeds, print what came of them, or replay one."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from campaign.control.runs import WORLDS, run_seed, run_seeds, to_table


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the arguments ask for; 0: every invariant held, 1: one did not."""
    asked = _parser().parse_args(arguments)
    worlds = [asked.world] if asked.world else list(WORLDS)
    if asked.seed is not None:
        return _replay(worlds, asked.seed, with_trace=asked.trace)
    tallies = run_seeds(worlds, range(asked.first, asked.first + asked.seeds))
    print(to_table(tallies))
    violations = [outcome for tally in tallies for outcome in tally.violations]
    for outcome in violations:
        print(f"\n{outcome.world}, seed {outcome.seed}: {outcome.invariant}: {outcome.found}")
        print(f"  replay it: {outcome.command}")
    return 1 if violations else 0


def _replay(worlds: Sequence[str], seed: int, *, with_trace: bool) -> int:
    """Run one seed again; the same seed gives the same trace."""
    violated = False
    for world in worlds:
        outcome, trace = run_seed(world, seed)
        if with_trace:
            print(*trace, sep="\n")
        came = f"VIOLATION of {outcome.invariant}: {outcome.found}" if outcome.invariant else "held"
        print(
            f"{world}, seed {seed}: {outcome.steps} steps, trace {outcome.fingerprint[:16]}: {came}"
        )
        violated |= bool(outcome.invariant)
    return 1 if violated else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m campaign.control", description=__doc__)
    parser.add_argument("--seeds", type=_count, default=100, help="how many, of each world")
    parser.add_argument("--first", type=_count, default=0, help="the first of them")
    parser.add_argument("--world", choices=sorted(WORLDS), help="this world alone")
    parser.add_argument("--seed", type=_count, help="this seed alone")
    parser.add_argument("--trace", action="store_true", help="with --seed: print what happened")
    return parser


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"got {text!r}, need a whole number >= 0")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
