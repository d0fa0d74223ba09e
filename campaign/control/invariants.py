"""What has to hold at every step: pure functions that tell what is wrong, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from math import fsum
from typing import ParamSpec

from campaign.control.commits import Commit
from campaign.control.scheduler import Violation
from thalweg.migration.coordination import BrokerLedger, OperatorMachine, Phase

_Given = ParamSpec("_Given")
Epoch = tuple[str, int]
"""A site and the number of an epoch there."""
Window = tuple[str, int]
"""A site and the end of a window of its rows."""


def require(holds: Callable[_Given, str], *given: _Given.args, **named: _Given.kwargs) -> None:
    """Raise `Violation` with the invariant's name where it does not hold."""
    wrong = holds(*given, **named)
    if wrong:
        raise Violation(holds.__name__, wrong)


# Who may do what


def one_owner(started: Collection[Epoch], fenced: Collection[Epoch]) -> str:
    """At most one epoch of a site has begun and can still publish."""
    open_epochs: dict[str, int] = {}
    for site, epoch in started:
        if (site, epoch) not in fenced:
            if site in open_epochs:
                return f"{site} has the epochs {open_epochs[site]} and {epoch}, neither is fenced"
            open_epochs[site] = epoch
    return ""


def one_committer(able: Sequence[int]) -> str:
    """At most one epoch of a keyed operator can commit."""
    return f"epochs {', '.join(map(str, able))} can commit" if len(able) > 1 else ""


def one_owner_per_key(owners: Mapping[object, Collection[object]]) -> str:
    """Of every key, one owner at most has what nobody has taken from it."""
    for key, those in owners.items():
        if len(those) > 1:
            return f"{key} is owned by {' and '.join(sorted(map(str, those)))}"
    return ""


def taken_once(taken: Mapping[object, int]) -> str:
    """No message reaches a machine twice."""
    twice = [str(letter) for letter, count in taken.items() if count > 1]
    return f"taken twice: {twice[0]}" if twice else ""


def replay_gives_the_same(written: object, replayed: object) -> str:
    """What was written down leads to the state that was there."""
    return "" if written == replayed else f"there was {written}, replayed {replayed}"


# Room


def within_capacity(ledgers: Iterable[BrokerLedger]) -> str:
    """No broker has promised more than it has."""
    for ledger in ledgers:
        for at, demands in ledger.held.items():
            if fsum(demands.values()) > ledger.capacity:
                return (
                    f"broker {ledger.broker} holds {fsum(demands.values()):g} at step {at}, "
                    f"and has {ledger.capacity:g}"
                )
    return ""


def plans_are_reserved(
    machines: Iterable[OperatorMachine], ledgers: Mapping[int, BrokerLedger]
) -> str:
    """Every operator has room for the plan that it counts on."""
    for machine in machines:
        for broker, at in machine.stable.vertices if machine.stable else ():
            if ledgers[broker].held.get(at, {}).get(machine.name) != machine.demand:
                return f"{machine.name} counts on broker {broker} at step {at}, and holds nothing"
    return ""


def nothing_else_is_reserved(
    machines: Mapping[str, OperatorMachine], ledgers: Iterable[BrokerLedger]
) -> str:
    """Once all is quiet, room is held for stable plans alone."""
    for ledger in ledgers:
        for at, demands in ledger.held.items():
            for name in demands:
                stable = machines[name].stable
                if stable is None or (ledger.broker, at) not in stable.vertices:
                    return f"broker {ledger.broker} still holds step {at} for {name}"
    return ""


def neighbours_take_turns(machines: Mapping[str, OperatorMachine]) -> str:
    """Of two neighbours, one at most is past its proposal."""
    busy = [m for m in machines.values() if m.phase in (Phase.CHECKING, Phase.RESERVING)]
    for machine in busy:
        for other in busy:
            if other.name in machine.ranks:
                return f"{machine.name} and {other.name} change at once"
    return ""


# Rows


def rows_count_once(counted: Mapping[object, int]) -> str:
    """Nothing that a reader sees counts twice."""
    for row, count in counted.items():
        if count > 1:
            return f"{row} counts {count} times"
    return ""


def nothing_is_lost(expected: Collection[object], counted: Collection[object]) -> str:
    """In the end a reader has seen everything."""
    missing = sorted(set(expected) - set(counted), key=repr)
    return f"{len(missing)} are missing, the first is {missing[0]}" if missing else ""


def epochs_meet(ends: Mapping[Epoch, int], starts: Mapping[Epoch, int]) -> str:
    """An epoch goes on exactly where the one before it ended."""
    for (site, epoch), start in starts.items():
        end = ends.get((site, epoch - 1), start)
        if end != start:
            return f"epoch {epoch} of {site} begins at row {start}, the one before ended at {end}"
    return ""


def windows_are_whole(
    put_out: Mapping[Window, Sequence[int]], expected: Mapping[Window, Sequence[int]]
) -> str:
    """A window that was put out has all its rows, and no others."""
    for window, rows in put_out.items():
        if list(rows) != list(expected.get(window, ())):
            return f"{window} was made of {list(rows)}, not of {list(expected.get(window, ()))}"
    return ""


def readers_stay_within_fences(read: Mapping[Epoch, int], fences: Mapping[Epoch, int]) -> str:
    """Nobody has read a batch that turned out to lie beyond a fence."""
    for epoch, last in fences.items():
        if read.get(epoch, -1) > last:
            return f"batch {read[epoch]} of {epoch} was read, and is fenced after {last}"
    return ""


def commits_continue(commits: Sequence[tuple[int, int, int]]) -> str:
    """Every commit (epoch, first row, row after the last) goes on where the one before ended."""
    for (epoch, _, end), (later, start, _) in pairwise(commits):
        if start != end or later < epoch:
            return f"epoch {later} commits from row {start}, epoch {epoch} had committed to {end}"
    return ""


def keys_are_handed_on(changes: Mapping[str, Sequence[tuple[int, int, int]]]) -> str:
    """Every change of a key (epoch, before, after) goes on from the one before, never backwards."""
    for key, those in changes.items():
        for (epoch, _, after), (later, before, _) in pairwise(those):
            if before != after or later < epoch:
                return (
                    f"epoch {later} changes {key} from {before}, epoch {epoch} left it at {after}"
                )
    return ""


def state_is_exact(state: Mapping[str, int], rows: Sequence[str], upto: int) -> str:
    """The counts by key are those of all rows up to the last commit."""
    expected: dict[str, int] = {}
    for key in rows[:upto]:
        expected[key] = expected.get(key, 0) + 1
    return "" if dict(state) == expected else f"state {dict(state)}, rows say {expected}"


def outputs_are_out(
    commits: Iterable[Commit], published: Mapping[object, int], ended: Collection[Epoch]
) -> str:
    """Where the output of an epoch has ended, all that it committed is out."""
    for commit in commits:
        place = (commit.writer, commit.epoch)
        if place in ended and (*place, commit.batch) not in published:
            return f"batch {commit.batch} of epoch {commit.epoch} is committed, never to be out"
    return ""


# Adapting


def optional_ones_rest(times_s: Sequence[float], rest_s: float) -> str:
    """Optional adaptations are at least a rest apart, so at most 1 + D / rest_s in D seconds."""
    for before_s, after_s in pairwise(times_s):
        if after_s - before_s < rest_s:
            return f"optional at {before_s:g} s and at {after_s:g} s, with a rest of {rest_s:g} s"
    return ""


def answers_are_patient(bad_looks: Sequence[int], patience: int) -> str:
    """Nothing is answered before it was bad so many looks in a row, that of the answer included."""
    hasty = [count for count in bad_looks if count < patience]
    return f"answered at bad look {hasty[0]}, with a patience of {patience}" if hasty else ""


def crossed_ones_are_clear(levels: Sequence[tuple[bool, float]], margin: float) -> str:
    """What has crossed its limit before causes nothing optional within the margin beyond it.

    Of each optional answer: whether its figure had crossed, and the figure by its limit.
    """
    for crossed, level in levels:
        if crossed and level <= 1.0 + margin:
            return f"optional at {level:g} of a limit that was crossed, with a margin of {margin:g}"
    return ""


def in_vain_once(stayed: Mapping[object, int]) -> str:
    """A question that was answered with staying is not asked again at the same inputs."""
    for question, count in stayed.items():
        if count > 1:
            return f"asked {count} times in vain: {question}"
    return ""


def violations_are_answered(
    broken: Sequence[str],
    cuts: Mapping[str, Collection[str]],
    better: Mapping[str, Collection[str]],
) -> str:
    """Cuts that violate something are kept only where the strategy knows no others."""
    others = {s: set(c) for s, c in cuts.items()} != {s: set(c) for s, c in better.items()}
    return (
        f"{broken[0]} at {dict(cuts)}, and {dict(better)} was to be had"
        if broken and others
        else ""
    )


# Getting there


def all_is_settled(left: Sequence[str]) -> str:
    """A bounded time after the faults, nobody waits and everything is as wanted."""
    return "; ".join(left)
