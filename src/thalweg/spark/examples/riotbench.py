"""Three dataflows shaped like those of RIoTBench, as PySpark functions.

`etl` (8 operators, a chain), `stats` (7, three branches) and `pred` (7, three branches of which two
join). They read SenML messages of `thalweg.scenarios.readings`. What depends on the order of a
sensor's readings puts them in order within a time window, so that the result does not depend on
the order in which they come.
"""

from thalweg.spark.examples.riotbench_etl import etl
from thalweg.spark.examples.riotbench_pred import pred
from thalweg.spark.examples.riotbench_stats import stats

__all__ = ["etl", "pred", "stats"]
