"""The application as one would write it without this package's runtime: one streaming query."""

from __future__ import annotations

from typing import TYPE_CHECKING

from thalweg.spark.log.names import sink_stream
from thalweg.spark.log.writer import LogWriter
from thalweg.spark.pipeline.reference import load_pipeline

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from thalweg.spark.query.spec import QuerySpec


def start_plain_query(session: SparkSession, spec: QuerySpec) -> StreamingQuery:
    """Parquet files in, rows of the sink into the log; the option `application` says of what."""
    pipeline = load_pipeline(str(spec.options["application"]))
    (source,) = (step for step in pipeline.steps if step.role == "source")
    (sink,) = (step for step in pipeline.steps if step.role == "sink")
    files = session.readStream.schema(source.schema).option("maxFilesPerTrigger", 1)
    rows = files.parquet(str(spec.options["input"]))
    rows = rows.withWatermark(str(source.time), f"{source.delay_s:g} seconds")
    writer = LogWriter(spec.log, sink_stream(sink.name), spec.site, 0, durable=False)

    def publish(frame: DataFrame, batch: int) -> None:
        table = frame.toArrow()
        if table.num_rows:
            writer.publish(batch, table)

    stream = pipeline.run({source.name: rows})[sink.name].writeStream.foreachBatch(publish)
    stream = stream.option("checkpointLocation", str(spec.checkpoint))
    return stream.trigger(processingTime=f"{round(spec.trigger_s * 1000)} milliseconds").start()
