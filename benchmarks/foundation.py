"""Is the ground fast and small enough?

`import thalweg`, a network of 250,500 nodes generated, held and loaded, and the aggregate latency
of an application with millions of paths.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.foundation_import import measure_import
from benchmarks.foundation_network import measure_network
