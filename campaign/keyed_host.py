"""Runs a keyed operator on three sites in a process of its own: `python -m campaign.keyed_host`.

It goes where `wanted.txt` in its folder says, and writes `status.json` there. A hook at every step
of a move carries out what is ordered.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from campaign.hosting import run_host
from campaign.strike import Orders, Striker, Target
from campaign.tally import OPERATOR
from thalweg.spark.keyed.keeper import KeyedKeeper
from thalweg.spark.keyed.mover import read_journal
from thalweg.spark.keyed.spec import KeyedSpec
from thalweg.spark.site.site import SiteSpec
from thalweg.spark.site.sites import Sites

SITES = ("broker-a", "broker-b", "broker-c")
_TURN_S = 0.2


def spec_in(folder: Path) -> KeyedSpec:
    """The operator that is moved, with everything of it in one folder."""
    return KeyedSpec(
        operator=OPERATOR,
        folder=folder / "run",
        log=folder / "log",
        input="sources/events",
        output="edges/tally+list",
        durable=False,
    )


def keep(folder: Path, orders: Orders, sites: Sites) -> None:
    """Go where it is wanted, and mend what dies, without end."""
    spec = spec_in(folder)

    def find(target: Target, site: str) -> int | None:
        state = read_journal(spec.journal)
        run = state.successor if target == "successor" else state.running
        return sites[site if run is None else run.site].pid

    # An operator moves step by step, from one site to the other.
    striker = Striker(orders, find, is_sequential=True)
    with KeyedKeeper(spec, sites, on_step=striker.before, on_done=striker.done) as keeper:
        while True:
            wanted = (folder / "wanted.txt").read_text(encoding="utf-8").strip()
            keeper.go_to(wanted)
            striker.rest()
            _tell(folder, keeper)
            keeper.tend(_TURN_S)
            for name in sites:
                # A keeper looks after what its operator needs; the others are whoever's they are.
                if not sites[name].alive:
                    sites.restart(name)


def _tell(folder: Path, keeper: KeyedKeeper) -> None:
    told = {"site": keeper.site, "pid": os.getpid(), "restarts": keeper.restarts}
    draft = folder / ".status"
    draft.write_text(json.dumps(told), encoding="utf-8")
    draft.replace(folder / "status.json")


def serve(arguments: Sequence[str] | None = None) -> None:
    """Run until killed; raises what ends it."""
    parser = argparse.ArgumentParser(prog="python -m campaign.keyed_host")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--orders", type=Path, required=True)
    asked = parser.parse_args(arguments)
    with Sites() as sites:
        specs = [SiteSpec(name=n, folder=asked.folder / "sites" / n, heap_mb=512) for n in SITES]
        sites.start(specs)
        with suppress(KeyboardInterrupt):
            keep(asked.folder, Orders(asked.orders), sites)


if __name__ == "__main__":
    sys.exit(run_host(serve))
