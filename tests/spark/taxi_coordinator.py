"""Runs a deployment whose cuts move all the time, to be killed: `python … FOLDER SEED FOG …`."""

from __future__ import annotations

import json
import random
import sys
import time
from pathlib import Path

from spark.taxi_run import coordinate, deployment, legal_cuts, running_sites
from thalweg.spark.deployment.coordinator import Coordinator
from thalweg.spark.site.channel import SiteError
from thalweg.spark.site.sites import Sites

TAXI = "thalweg.spark.examples.taxi:taxi_demand"


def tell(sites: Sites, moves: int) -> None:
    pids = {name: site.pid for name, site in sites.items()}
    print(json.dumps({"pids": pids, "moves": moves}), flush=True)


def keep_moving(coordinator: Coordinator, sites: Sites, rng: random.Random) -> None:
    cuts, moves = legal_cuts(TAXI), 0
    fogs = coordinator.spec.fogs
    tell(sites, moves)
    while True:
        event = sites.next_event(0.2)
        try:
            if event is not None and event.kind in ("died", "query-failed"):
                sites.restart(event.site)
            elif event is None:
                running = coordinator.state.cuts
                wanted = {fog: rng.choice(cuts) for fog in fogs}
                if len(running) == len(fogs):
                    fog = rng.choice(fogs)
                    wanted = {fog: wanted[fog]}
                moves += bool(coordinator.go_to(wanted))
                time.sleep(rng.choice([0.0, 0.5, 1.0]))
        except SiteError as error:
            if not sites[error.site].alive:
                # Its death is the next event.
                continue
            sites.restart(error.site)
        tell(sites, moves)


def main(folder: Path, seed: int, fogs: tuple[str, ...]) -> None:
    spec = deployment(folder, TAXI, fogs)
    with running_sites(folder, (*fogs, "cloud")) as sites, coordinate(spec, sites) as coordinator:
        keep_moving(coordinator, sites, random.Random(seed))  # noqa: S311


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), tuple(sys.argv[3:]))
