"""Two applications on New York taxi rides, to be cut between fog and cloud.

Sizes, ranges and limits are those of section 6 of Ntumba et al. 2024, Adaptive Scheduling of
Continuous Operators for IoT Edge Analytics. The paper shows the two graphs in a figure only; these
have the same number of operators and, as asked there, branches that part and join again.
"""

from __future__ import annotations

from dataclasses import dataclass

from thalweg.errors import Defects
from thalweg.model import Application, Limits, Operator, Pin, Stream, TimeWindow
from thalweg.scenarios.device_rates import DEVICE_BYTES_PER_S, EVENT_BYTES
from thalweg.scenarios.graph_shape import edges_of
from thalweg.scenarios.parameters import (
    Range,
    require_amounts,
    require_count,
    require_ranges,
    require_seed,
)
from thalweg.scenarios.randomness import random_stream

LIMITS = Limits(response_time_s=1.0, uplink_bps=125e6 * 8, uplink_least_bps=50e6 * 8)
"""1,000 ms; at most 125 MB/s, and for those who heed it at least 50 MB/s, up to the cloud."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaxiFigures:
    """The figures of a taxi application.

    - `selectivity`, `cost`: bounds of a uniform draw for each transform. An operator of cost c
      needs c bytes of memory and c · `mi_per_mb` instructions for each byte in its window.
    - `devices` send `device_bytes_per_s` each, in events of `event_bytes`; `share` of them feed
      this application.
    - Every transform has a time window of `window_length_s`, sliding by `window_slide_s`.
    """

    selectivity: Range
    cost: Range
    share: float
    devices: int = 5_000
    device_bytes_per_s: float = DEVICE_BYTES_PER_S
    event_bytes: float = EVENT_BYTES
    window_length_s: float = 1.0
    window_slide_s: float = 0.5
    mi_per_mb: float = 1.0

    def __post_init__(self) -> None:
        defects = Defects()
        require_ranges(defects, most=1e6, selectivity=self.selectivity, cost=self.cost)
        require_count(defects, "devices", self.devices, 0, 10**12)
        require_amounts(defects, most=1.0, share=self.share)
        require_amounts(
            defects,
            most=1e9,
            device_bytes_per_s=self.device_bytes_per_s,
            event_bytes=self.event_bytes,
            window_length_s=self.window_length_s,
            window_slide_s=self.window_slide_s,
            mi_per_mb=self.mi_per_mb,
        )
        defects.raise_if_any()

    @property
    def rate(self) -> float:
        """Events/s that reach the application from all areas."""
        return self.devices * self.share * self.device_bytes_per_s / self.event_bytes


FARES_FIGURES = TaxiFigures(selectivity=(0.4, 1.0), cost=(1.0, 1.8), share=0.55)
DEMAND_FIGURES = TaxiFigures(selectivity=(0.8, 1.2), cost=(1.0, 1.9), share=0.45)


def taxi_fares(
    seed: int = 0, *, figures: TaxiFigures = FARES_FIGURES, limits: Limits = LIMITS
) -> Application:
    """App-1: in which zones traffic is slow and fares are good. 9 operators, two branches.

    >>> app = taxi_fares(seed=1)
    >>> sum(operator.kind == "transform" for operator in app.operators), app.path_count
    (9, 2)
    """
    edges = edges_of(
        "rides → parse → clean → enrich-zone → speed-by-zone → congestion → join",
        "enrich-zone → fares-by-zone → tip-ratio → join",
        "join → rank-zones → fare-board",
    )
    return _taxi_application("taxi-fares", edges, seed, figures, limits)


def taxi_demand(
    seed: int = 0, *, figures: TaxiFigures = DEMAND_FIGURES, limits: Limits = LIMITS
) -> Application:
    """App-2: in which zones taxis are wanted and in which they are free. 11 operators.

    >>> app = taxi_demand(seed=1)
    >>> sum(operator.kind == "transform" for operator in app.operators), app.path_count
    (11, 2)
    """
    edges = edges_of(
        "rides → parse → clean → pickup-zone → pickups-by-zone → demand-trend → join",
        "clean → drop-off-zone → drop-offs-by-zone → free-taxis → join",
        "join → imbalance → rank-zones → dispatch-board",
    )
    return _taxi_application("taxi-demand", edges, seed, figures, limits)


def _taxi_application(
    name: str,
    edges: tuple[tuple[str, str], ...],
    seed: int,
    figures: TaxiFigures,
    limits: Limits,
) -> Application:
    """Rides born in every fog area; everything up to the sink in the cloud can be replicated."""
    defects = Defects()
    require_seed(defects, seed)
    defects.raise_if_any()
    first, *transforms, last = dict.fromkeys(end for edge in edges for end in edge)
    window = TimeWindow(figures.window_length_s, figures.window_slide_s)
    count = len(transforms)
    drawn_selectivity = random_stream(seed, name, "selectivity").uniform(
        *figures.selectivity, count
    )
    drawn_cost = random_stream(seed, name, "cost").uniform(*figures.cost, count)
    source = Operator(
        name=first,
        kind="source",
        rate=figures.rate,
        event_size=figures.event_bytes,
        pin=Pin(tier="fog"),
    )
    between = [
        Operator(
            name=operator,
            selectivity=selectivity,
            cpu_per_byte=cost * figures.mi_per_mb,
            memory_factor=cost,
            window=window,
            replicable=True,
        )
        for operator, selectivity, cost in zip(
            transforms, drawn_selectivity.tolist(), drawn_cost.tolist(), strict=True
        )
    ]
    sink = Operator(name=last, kind="sink", pin=Pin(tier="cloud"))
    streams = [Stream(source=a, target=b) for a, b in edges]
    return Application(
        name=name, operators=[source, *between, sink], streams=streams, limits=limits
    )
