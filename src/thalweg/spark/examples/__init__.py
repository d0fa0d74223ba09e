"""Ready pipelines: two on New York taxi rides, three shaped like RIoTBench's dataflows."""

EXAMPLES = {
    "taxi-fares": "thalweg.spark.examples.taxi:taxi_fares",
    "taxi-demand": "thalweg.spark.examples.taxi:taxi_demand",
    "etl": "thalweg.spark.examples.riotbench:etl",
    "stats": "thalweg.spark.examples.riotbench:stats",
    "pred": "thalweg.spark.examples.riotbench:pred",
}
"""The reference of each example, for `thalweg.spark.pipeline.load_pipeline`."""
