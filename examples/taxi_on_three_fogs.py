"""Taxi rides on three fog sites and a cloud, each a Spark of its own on this machine.

    python examples/taxi_on_three_fogs.py

Four operators are cut between the fogs and the cloud as the plan says. Generated rides come in at
the fogs, results go up, and the cloud ranks zones. In the end all rides are worked on once more in
one place, and what came out is compared row by row.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from taxi_pipeline import city

from thalweg.spark.deployment import Deployment
from thalweg.spark.deployment.one_place import await_last_row, compare_with_one_place
from thalweg.spark.deployment.status import describe_cuts
from thalweg.spark.feed.rides import feed_rides
from thalweg.spark.log import Log

RIDES_PER_S = 600.0


def main() -> int:
    """Run it and print what came out; 0 where that is the same as in one place."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=12.0, help="how long rides come in")
    parser.add_argument("--folder", type=Path, help="where to keep the run; else it is removed")
    wanted = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="three-fogs-") as temporary:
        same = run_taxis(wanted.folder or Path(temporary) / "run", wanted.seconds)
    print(f"took {time.monotonic() - began:.0f} s")
    return 0 if same else 1


def run_taxis(folder: Path, seconds: float) -> bool:
    """Three fogs with thin uplinks, and rides for some seconds."""
    network = city(fogs=3)
    fogs = [name for name in network.site_names if name != "cloud"]
    run = Deployment(
        "taxi_pipeline:taxi",
        network,
        folder=folder,
        rates={("rides", fog): RIDES_PER_S / len(fogs) for fog in fogs},
        trigger="1 s",  # A batch every second is enough here.
        adapt=None,  # The rate stays as it is, and so do the cuts.
        feed=lambda gateways: feed_rides(gateways, RIDES_PER_S, seconds, close=True),
    )
    print(f"plan: {describe_cuts(run.prepared.cuts)}")
    print(f"starting {len(fogs) + 1} Sparks …")
    with run:
        print(f"running; rides come in for {seconds:g} s")
        await_last_row(run)
    born, sent = bytes_by_site(run, "sources"), bytes_by_site(run, "edges")
    for fog in fogs:
        print(f"{fog}: {born[fog] / 1e3:,.0f} kB came in, {sent[fog] / 1e3:,.0f} kB went up")
    compared = compare_with_one_place(run)
    print(compared)
    return compared.same


def bytes_by_site(run: Deployment, kind: str) -> Counter[str]:
    """What is in the streams of a kind: `sources` has what was born, `edges` what went up."""
    log, found = Log(run.prepared.spec.log), Counter[str]()
    for stream in log.streams(kind):
        for segment in log.segments(stream):
            found[segment.site] += segment.data_bytes
    return found


if __name__ == "__main__":
    sys.exit(main())
