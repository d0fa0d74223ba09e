"""Folders of runs as Spark and Thalweg leave them, made by hand, and ways to damage them."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from thalweg.spark.deployment.folder import RunFolder
from thalweg.spark.deployment.hand_over import StartEpoch
from thalweg.spark.deployment.journal import Journal
from thalweg.spark.deployment.manifest import RunManifest
from thalweg.spark.log.writer import LogWriter

FOG = "fog-0"
CUT = ("parse", "clean")
NOW_S = 1_800_000_000.0
MANIFEST = RunManifest(pipeline="a:b", graph="1", network="city", fogs=(FOG,), cloud="cloud")


def write_summed(file: Path, text: str | bytes) -> Path:
    """Write a file with the checksum that Spark's file system keeps beside it."""
    content = text if isinstance(text, bytes) else text.encode()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    pieces = [content[k : k + 512] for k in range(0, len(content), 512)]
    sums = b"".join(struct.pack(">I", zlib.crc32(piece)) for piece in pieces)
    file.with_name(f".{file.name}.crc").write_bytes(b"crc\0" + struct.pack(">I", 512) + sums)
    return file


def make_checkpoint(
    path: Path,
    *,
    stream: str = "sources:rides",
    begun: int = 4,
    finished: int = 4,
    end: Mapping[str, Any] | None = None,
) -> Path:
    """A checkpoint of a query with one stream and one state store, a lot in each batch."""
    write_summed(path / "metadata", json.dumps({"id": "one"}))
    intake = path.with_name(path.name + ".intake")
    for batch in range(begun + 1):
        offset = json.dumps({"logOffset": batch})
        write_summed(path / "offsets" / str(batch), f"v1\n{{}}\n{offset}\n-")
        entry = {"path": f"file://{intake}/{stream}/rows/{batch}.parquet", "batchId": batch}
        write_summed(path / "sources" / "0" / str(batch), f"v1\n{json.dumps(entry)}")
        lots = {"lots": {stream: batch}, "rows": {}, "state": [0]}
        record = path.with_name(path.name + ".taken") / str(batch)
        record.parent.mkdir(exist_ok=True)
        record.write_text(json.dumps(lots))
        lot = intake / stream / "lots" / f"{batch}.json"
        rows = intake / stream / "rows" / f"{batch}.parquet"
        for file in (lot, rows):
            file.parent.mkdir(parents=True, exist_ok=True)
        lot.write_text(json.dumps({"number": batch, "start": {}, "end": end or {}}))
        pq.write_table(pa.table({"n": [batch]}), rows)
    for batch in range(finished + 1):
        write_summed(path / "commits" / str(batch), 'v1\n{"nextBatchWatermarkMs":1}')
        write_summed(path / "state" / "0" / "0" / f"{batch + 1}.changelog", f"state {batch}")
    describe_state(path / "state" / "0")
    path.with_name(path.name + ".shape").write_text("{}")
    return path


def describe_state(
    operator: Path,
    stores: Sequence[str] = ("default",),
    partitions: int = 1,
    *,
    kind: str = "stateStoreSave",
    key: Sequence[str] = ("zone",),
) -> None:
    """What Spark writes of the stores of an operator beside them."""
    info = [
        {"storeName": name, "numColsPrefixKey": 0, "numPartitions": partitions} for name in stores
    ]
    about = {"operatorId": int(operator.name), "operatorName": kind}
    told = {"operatorInfo": about, "stateStoreInfo": info}
    write_summed(operator / "_metadata" / "metadata", f"v1\n{json.dumps(told)}")
    fields = [{"name": name, "type": "integer"} for name in key]
    schema = json.dumps({"type": "struct", "fields": fields}, separators=(",", ":"))
    write_summed(operator / "0" / "_metadata" / "schema", f"\0\2v2\0{schema}\0")


def publish(root: Path, stream: str, site: str, batches: Sequence[int], epoch: int = 0) -> None:
    """Three rows in every one of these batches."""
    writer = LogWriter(root, stream, site, epoch, durable=False)
    for batch in batches:
        writer.publish(batch, pa.table({"n": pa.array([1, 2, batch], pa.int64())}))


def make_run(path: Path, **status: Any) -> Path:
    """A run of one fog and a cloud that was stopped after five batches."""
    folder = RunFolder(path)
    path.mkdir(parents=True, exist_ok=True)
    folder.write_manifest(MANIFEST)
    told = {
        "state": "ended",
        "pid": 1,
        "interval_s": 2.0,
        "heartbeat_s": NOW_S - 60.0,
        "error": None,
    }
    folder.write_status({**told, **status})
    with Journal(path / "journal.jsonl") as journal:
        journal.write(StartEpoch(site=FOG, epoch=0, cut=CUT, start=None))
    publish(path / "log", "sources/rides", FOG, range(5))
    publish(path / "log", "edges/clean+total", FOG, range(5))
    publish(path / "log", "sinks/total", "cloud", range(5))
    end = {FOG: {"0": 4}}
    make_checkpoint(path / "checkpoints" / f"{FOG}@0", end=end)
    make_checkpoint(path / "checkpoints" / "cloud@0", stream="edges:clean+total", end=end)
    return path
