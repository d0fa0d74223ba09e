"""Every kind of fault by its name, and how to inject it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

from campaign import moves, outages, replan
from campaign.keyed_outages import KEYED_LOG_AWAY, take_keyed_log_away
from campaign.outcome import Outcome, skip
from campaign.strike import number_orders


class Fault(NamedTuple):
    """A kind of fault, and what injects it into a deployment in a folder."""

    kind: str
    inject: Callable[[Path], Outcome]


SHORT = {
    "replan": "kill -9 during a re-plan",
    "moves": "kill -9 during a state move",
}


def all_faults() -> dict[str, Fault]:
    """The whole matrix, by the names that the command line knows."""
    found: dict[str, Fault] = {}
    for target, kind in replan.KINDS.items():
        # With another fog beside the one that is struck, where that costs least.
        fogs = 2 if target == "driver" else 1
        orders = replan.list_orders(target)
        found[f"replan-{target}"] = Fault(
            kind, partial(replan.crash_replan, kind, orders, fogs=fogs)
        )
    linked = partial(replan.crash_replan, replan.LINKED, replan.list_linked_orders(), ships=True)
    found["replan-linked"] = Fault(replan.LINKED, linked)
    found["first-start"] = Fault(replan.FIRST, replan.crash_first_start)
    for target, kind in moves.KINDS.items():
        inject = partial(moves.crash_moves, kind, moves.list_orders(target))
        found[f"moves-{target}"] = Fault(kind, inject)
    return found | _outages()


def few_faults() -> dict[str, Fault]:
    """A representative part of it, of some minutes."""
    strikes = number_orders(replan.REPRESENTATIVE)
    moved = number_orders(moves.REPRESENTATIVE)
    short = {
        "replan": Fault(SHORT["replan"], partial(replan.crash_replan, SHORT["replan"], strikes)),
        "moves": Fault(SHORT["moves"], partial(moves.crash_moves, SHORT["moves"], moved)),
    }
    back = partial(outages.jump_clock, jumps_s=(3600.0, 0.0))
    return {**short, "clock": Fault(outages.CLOCK, back), "log-away": _outages()["log-away"]}


def shortest_faults() -> dict[str, Fault]:
    """Two moments of each kind of change, of about a minute: what every change is tried with."""
    strikes = number_orders(replan.SHORTEST)
    moved = number_orders(moves.SHORTEST)
    return {
        "replan": Fault(SHORT["replan"], partial(replan.crash_replan, SHORT["replan"], strikes)),
        "moves": Fault(SHORT["moves"], partial(moves.crash_moves, SHORT["moves"], moved)),
    }


def _outages() -> dict[str, Fault]:
    return {
        "log-away": Fault(outages.LOG_AWAY, partial(outages.take_log_away, ships=False)),
        "moves-log-away": Fault(KEYED_LOG_AWAY, take_keyed_log_away),
        "link-away": Fault(outages.LINK_AWAY, partial(outages.take_log_away, ships=True)),
        "broker": Fault(outages.BROKER, outages.kill_broker),
        "disk-full": Fault(outages.DISK_FULL, outages.fill_disk),
        "torn-commit": Fault(outages.TORN_COMMIT, outages.tear_commit),
        "torn-offsets": Fault(outages.TORN_OFFSETS, outages.tear_offsets),
        "clock": Fault(outages.CLOCK, outages.jump_clock),
    }


def inject(name: str, faults: Mapping[str, Fault], folder: Path) -> Outcome:
    """What came of a fault; one that cannot be injected on this machine says why."""
    try:
        return faults[name].inject(folder / name)
    except outages.CannotInject as error:
        return skip(faults[name].kind, str(error))
