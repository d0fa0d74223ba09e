"""A taxi application and a city small enough to read in full: for a first look, and the demo.

Every figure is declared, round and plausible; none is measured and none is drawn.
"""

from __future__ import annotations

from thalweg.model import (
    Application,
    Limits,
    Link,
    Network,
    Operator,
    Pin,
    Site,
    Stream,
    TimeWindow,
    build_network,
)
from thalweg.scenarios.devices import CLOUD_VM, MINI_PC, SINGLE_BOARD
from thalweg.scenarios.graph_shape import edges_of


def small_taxi() -> Application:
    """Which zones are busy now: for a dashboard in the cloud, and for drivers at the station.

    12,000 taxis report once a second to the fog site of their area. Reports are parsed, cleaned
    and given their zone; speeds and fares are summed up by zone over the last ten seconds, every
    second, and ranked.

    >>> app = small_taxi()
    >>> [operator.name for operator in app.operators if operator.kind != "transform"]
    ['rides', 'dashboard', 'driver-display']
    """
    window = TimeWindow("10 s", "1 s")
    operators = [
        Operator(name="rides", kind="source", rate=12_000.0, event_size=250.0, pin=Pin(tier="fog")),
        Operator(
            name="parse",
            compression=0.6,
            cpu_per_event=20_000.0,
            memory=20e6,
            replicable=True,
        ),
        Operator(
            name="clean", selectivity=0.95, cpu_per_event=4_000.0, memory=5e6, replicable=True
        ),
        Operator(
            name="enrich-zone",
            cpu_per_event=15_000.0,
            memory=50e6,
            state=5e6,
            replicable=True,
        ),
        Operator(
            name="speed-by-zone",
            selectivity=0.02,
            cpu_per_event=2_000.0,
            memory=10e6,
            window=window,
            replicable=True,
        ),
        Operator(
            name="fares-by-zone",
            selectivity=0.02,
            cpu_per_event=3_000.0,
            memory=10e6,
            window=window,
            replicable=True,
        ),
        Operator(name="busy-zones", selectivity=0.25, cpu_per_event=8_000.0, memory=10e6),
        Operator(name="dashboard", kind="sink", pin=Pin(tier="cloud")),
        Operator(name="driver-display", kind="sink", pin=Pin(node="station-rank/display")),
    ]
    edges = edges_of(
        "rides → parse → clean → enrich-zone → speed-by-zone → busy-zones → dashboard",
        "enrich-zone → fares-by-zone → busy-zones → driver-display",
    )
    return Application(
        name="taxi",
        operators=operators,
        streams=[Stream(source=a, target=b) for a, b in edges],
        limits=Limits(response_time_s=0.5, uplink_bps=30e6),
    )


def small_city() -> Network:
    """Three fog sites, two taxi ranks behind them with two small machines each, and a cloud.

    >>> small_city()
    <Network city: 8 nodes in 2 edge, 3 fog, 1 cloud sites>
    """
    board = {"lan_latency_s": 1e-3, "lan_bandwidth_bps": 100e6}
    boards = tuple(SINGLE_BOARD.node(name, **board) for name in ("display", "gate"))
    server = (MINI_PC.node("server"),)
    sites = [
        Site(name="station-rank", tier="edge", nodes=boards, parent="hub-centre"),
        Site(name="airport-rank", tier="edge", nodes=boards, parent="hub-east"),
        Site(name="hub-west", tier="fog", nodes=server, parent="cloud", edge_delay_s=20e-3),
        Site(name="hub-centre", tier="fog", nodes=server, parent="cloud", edge_delay_s=10e-3),
        Site(name="hub-east", tier="fog", nodes=server, parent="cloud", edge_delay_s=30e-3),
        Site(name="cloud", tier="cloud", nodes=(CLOUD_VM.node("vm"),)),
    ]
    links = [
        Link(a="station-rank", b="hub-centre", latency_s=5e-3, bandwidth_bps=20e6),
        Link(a="airport-rank", b="hub-east", latency_s=8e-3, bandwidth_bps=20e6),
        Link(a="hub-west", b="cloud", latency_s=40e-3, bandwidth_bps=100e6),
        Link(a="hub-centre", b="cloud", latency_s=30e-3, bandwidth_bps=100e6),
        Link(a="hub-east", b="cloud", latency_s=50e-3, bandwidth_bps=50e6),
    ]
    return build_network("city", sites, links)
