"""Runs a deployment in a process of its own, to be killed: `python -m campaign.host FOLDER`.

It is what `thalweg run` is, with a hook at every step of a hand-over.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from campaign.hosting import run_host
from campaign.numbered import PIPELINE
from campaign.strike import Orders, Striker, Target, find_jvm, find_worker
from thalweg.model import Network
from thalweg.scenarios.fog_cloud import fog_cloud
from thalweg.spark.deployment import Deployment
from thalweg.spark.deployment.coordinator import Coordinator
from thalweg.spark.deployment.handle import OpenRuntime
from thalweg.spark.deployment.plan import Cuts
from thalweg.spark.deployment.runtime import SparkRuntime
from thalweg.spark.deployment.spec import DeploymentSpec
from thalweg.spark.log import Log
from thalweg.spark.site.site import SiteSpec
from thalweg.spark.site.sites import Sites


def network_of(fogs: int) -> Network:
    """So many fog sites, named fog-0, fog-1, …, and a cloud."""
    return fog_cloud(fogs, seed=1, name="campaign")


def strike_at_steps(folder: Path) -> OpenRuntime:
    """Opens a runtime whose coordinator tells a striker every step."""

    @contextmanager
    def open_runtime(spec: DeploymentSpec, sites: Sequence[SiteSpec]) -> Iterator[SparkRuntime]:
        with Sites() as started:
            started.start(sites)

            def find(target: Target, site: str) -> int | None:
                pid = started[spec.cloud if target == "cloud" else site].pid
                if pid is None or target in ("driver", "cloud"):
                    return pid
                if target == "jvm":
                    return find_jvm(pid)
                # Where a cut has none of the Python functions, the cloud runs them.
                return find_worker(pid) or find_worker(started[spec.cloud].pid or 0)

            striker = Striker(Orders(folder), find)
            with Coordinator(
                spec, started, Log(spec.log), on_step=striker.before, on_done=striker.done
            ) as coordinator:
                striker.rest()
                yield StruckRuntime(started, coordinator, striker)

    return open_runtime


class StruckRuntime(SparkRuntime):
    """The runtime on Spark, with a striker that is told when a hand-over is over."""

    def __init__(self, sites: Sites, coordinator: Coordinator, striker: Striker) -> None:
        super().__init__(sites, coordinator)
        self._striker = striker

    def go_to(self, cuts: Cuts) -> tuple[object, ...]:  # type: ignore[override]
        """Take every step to these cuts; returns them."""
        taken = super().go_to(cuts)
        self._striker.rest()
        return taken


def serve(arguments: Sequence[str] | None = None) -> None:
    """Run until told to stop; raises what ends the run."""
    parser = argparse.ArgumentParser(prog="python -m campaign.host")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--orders", type=Path, required=True)
    parser.add_argument("--fogs", type=int, default=1)
    parser.add_argument("--link", default=None)
    asked = parser.parse_args(arguments)
    run = Deployment(
        PIPELINE,
        network_of(asked.fogs),
        folder=asked.folder,
        open_sites=strike_at_steps(asked.orders),
        adapt=None,
        trigger="100 ms",
        interval="1 s",
        link=asked.link,
        heap_mb=512,
    ).start()
    run.await_termination()


if __name__ == "__main__":
    sys.exit(run_host(serve))
