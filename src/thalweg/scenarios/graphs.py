"""Thirteen application graphs by name.

Five medium ones (up to 9 operators): the four dataflows of RIoTBench (Shukla et al. 2017,
RIoTBench: an IoT benchmark for distributed stream processing systems) and a random one; seven large
ones (25) and an extra-large one (50), all random. Sources and sinks are not counted. The sizes are
those of section 5 of da Silva Veith et al., Latency-Aware Strategies for Deploying Data Stream
Processing Applications on Large Cloud-Edge Infrastructure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from thalweg.scenarios.graph_shape import GraphShape, GraphSize, edges_of
from thalweg.scenarios.random_graph import grow_shape
from thalweg.scenarios.randomness import random_stream

ETL = GraphShape(
    name="etl",
    size="medium",
    sources=("observations",),
    transforms=(
        "parse",
        "range-filter",
        "bloom-filter",
        "interpolate",
        "join",
        "annotate",
        "convert",
        "publish",
    ),
    sinks=("archive",),
    edges=edges_of(
        "observations → parse → range-filter → bloom-filter → interpolate → join → annotate"
        " → convert → publish → archive"
    ),
)
"""Extract, transform, load: a chain that cleans observations and adds to them."""

STATS = GraphShape(
    name="stats",
    size="medium",
    sources=("observations",),
    transforms=(
        "parse",
        "bloom-filter",
        "kalman-filter",
        "linear-regression",
        "second-order-moment",
        "distinct-count",
        "publish",
    ),
    sinks=("dashboard",),
    edges=edges_of(
        "observations → parse → bloom-filter → kalman-filter → linear-regression → publish",
        "bloom-filter → second-order-moment → publish",
        "bloom-filter → distinct-count → publish",
        "publish → dashboard",
    ),
)
"""Statistical summaries: three branches that end in one plot."""

PRED = GraphShape(
    name="pred",
    size="medium",
    sources=("observations", "model-updates"),
    transforms=(
        "parse",
        "read-model",
        "decision-tree",
        "regression",
        "block-average",
        "error-estimate",
        "publish",
    ),
    sinks=("alerts",),
    edges=edges_of(
        "observations → parse → decision-tree → publish",
        "parse → regression → error-estimate → publish",
        "parse → block-average → error-estimate",
        "model-updates → read-model → decision-tree",
        "read-model → regression",
        "publish → alerts",
    ),
)
"""Predictions by two models, which a second source renews, and how wrong one of them is."""

TRAIN = GraphShape(
    name="train",
    size="medium",
    sources=("timer",),
    transforms=(
        "table-range",
        "train-regression",
        "annotate",
        "train-tree",
        "upload",
        "publish",
    ),
    sinks=("subscribers",),
    edges=edges_of(
        "timer → table-range → train-regression → upload",
        "table-range → annotate → train-tree → upload",
        "upload → publish → subscribers",
    ),
)
"""Training of those two models on stored rows, and the notice that they are ready."""

# Name → (size, transforms, sources, sinks).
_RANDOM: Mapping[str, tuple[GraphSize, int, int, int]] = {
    "medium-9": ("medium", 9, 1, 2),
    "large-1": ("large", 25, 2, 2),
    "large-2": ("large", 25, 2, 3),
    "large-3": ("large", 25, 3, 2),
    "large-4": ("large", 25, 3, 3),
    "large-5": ("large", 25, 4, 2),
    "large-6": ("large", 25, 2, 4),
    "large-7": ("large", 25, 4, 4),
    "extra-large": ("extra-large", 50, 5, 5),
}


class _Graphs(Mapping[str, GraphShape]):
    """The shapes by name; a random one is grown when it is first asked for.

    Growing all of them at import would load NumPy's random numbers for everyone.
    """

    def __init__(self) -> None:
        self._shapes = {shape.name: shape for shape in (ETL, STATS, PRED, TRAIN)}

    def __getitem__(self, name: str) -> GraphShape:
        if name not in self._shapes:
            size, transforms, sources, sinks = _RANDOM[name]
            rng = random_stream(0, "graph", name)
            self._shapes[name] = grow_shape(
                name, size, rng, transforms=transforms, sources=sources, sinks=sinks
            )
        return self._shapes[name]

    def __iter__(self) -> Iterator[str]:
        yield from ("etl", "stats", "pred", "train")
        yield from _RANDOM

    def __len__(self) -> int:
        return 4 + len(_RANDOM)


GRAPHS: Mapping[str, GraphShape] = _Graphs()
"""All thirteen; a name always gives the same graph."""
