"""Queries for the tests of sites: numbered rows into files, one file for each batch."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from thalweg.spark.query.publisher import BatchGate
from thalweg.spark.query.spec import QuerySpec
from thalweg.spark.site.site import SiteSpec
from thalweg.spark.site.sites import Sites

ROWS = 10


def count_up(session: Any, spec: QuerySpec) -> Any:
    """0, 1, 2, … without end, ROWS of them in each batch; `fail_at` ends the query with a batch."""
    rows = (
        session.readStream.format("rate-micro-batch")
        .options(rowsPerBatch=ROWS, numPartitions=1)
        .load()
    )
    gate, into, fail_at = BatchGate(spec.checkpoint), spec.log, spec.options.get("fail_at")

    def publish(batch: Any, number: int) -> None:
        gate.pass_through()
        if number == fail_at:
            raise ValueError(f"batch {number} is not wanted")
        values = batch.toArrow().column("value").to_pylist()
        into.mkdir(exist_ok=True)
        draft = into / f".{number}"
        draft.write_text(json.dumps(values))
        draft.rename(into / str(number))

    return (
        rows.writeStream.foreachBatch(publish)
        .option("checkpointLocation", str(spec.checkpoint))
        .trigger(processingTime=f"{spec.trigger_s * 1000:.0f} milliseconds")
        .start()
    )


def refuse(session: Any, spec: QuerySpec) -> Any:
    raise RuntimeError("this query never starts")


def read_batches(folder: Path) -> dict[int, list[int]]:
    files = [file for file in folder.glob("*") if not file.name.startswith(".")]
    return {int(file.name): json.loads(file.read_text()) for file in files}


def spec_of(name: str, folder: Path, **fields: Any) -> QuerySpec:
    given = {"epoch": 0, "role": "own", "pipeline": "spark.site_queries:count_up"}
    paths = {"log": folder / "out", "checkpoint": folder / "checkpoint", "trigger": "100 ms"}
    return QuerySpec(**{"site": name, **given, **paths, **fields})


def main(folder: Path) -> None:
    """Be a parent to be killed: start a site with a query, say so, and wait for the end."""
    with Sites() as sites:
        (site,) = sites.start([SiteSpec(name="orphan", folder=folder / "site")])
        site.start(spec_of("orphan", folder))
        while not read_batches(folder / "out"):
            time.sleep(0.1)
        print(site.pid, flush=True)
        time.sleep(600)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
