"""Every kind of fault by its name, and how to inject it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from campaign import moves, outages, replan
from campaign.outcome import Outcome, Skipped
from campaign.strike import number_orders

Inject = Callable[[Path], Outcome]

SHORT = {
    "replan": "kill -9 during a re-plan",
    "moves": "kill -9 during a state move",
}


def all_faults() -> dict[str, Inject]:
    """The whole matrix: a name for the command line, and what injects it into a folder."""
    found: dict[str, Inject] = {}
    for target, kind in replan.KINDS.items():
        orders = replan.list_orders(target)
        found[f"replan-{target}"] = partial(replan.crash_replan, kind, orders)
    for target, kind in moves.KINDS.items():
        found[f"moves-{target}"] = partial(moves.crash_moves, kind, moves.list_orders(target))
    return found | _outages()


def few_faults() -> dict[str, Inject]:
    """A representative part of it, of some minutes."""
    strikes = number_orders(replan.REPRESENTATIVE)
    moved = number_orders(moves.REPRESENTATIVE)
    short: dict[str, Inject] = {
        "replan": partial(replan.crash_replan, SHORT["replan"], strikes),
        "moves": partial(moves.crash_moves, SHORT["moves"], moved),
    }
    few = ("clock", "log-away", "torn-commit")
    return short | {name: inject for name, inject in _outages().items() if name in few}


def _outages() -> dict[str, Inject]:
    return {
        "log-away": partial(outages.take_log_away, ships=False),
        "link-away": partial(outages.take_log_away, ships=True),
        "broker": outages.kill_broker,
        "disk-full": outages.fill_disk,
        "torn-commit": outages.tear_commit,
        "torn-offsets": outages.tear_offsets,
        "clock": outages.jump_clock,
    }


def inject(name: str, faults: Mapping[str, Inject], folder: Path) -> Outcome:
    """What came of a fault; one that cannot be injected on this machine says why."""
    try:
        return faults[name](folder / name)
    except outages.CannotInject as error:
        return Skipped(kind=name, why=str(error)).to_outcome()
