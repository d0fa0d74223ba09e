"""The same application on clusters that really run: only addresses change, and no row does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from spark.connect_server import connect_server
from spark.spark_cluster import Cluster, spark_cluster
from spark.sweep_and_hang import QUICK_START
from spark.taxi_run import Meters, results, run_in_one_place, wait_for
from thalweg.spark.deployment import Deployment
from thalweg.spark.examples import EXAMPLES
from thalweg.spark.log import Log
from thalweg.spark.pipeline import load_pipeline
from thalweg.spark.query.clock import SITE_CLOCK
from thalweg.spark.session import SparkUnavailable, open_session
from thalweg.spark.site.config import site_config

pytest.importorskip("pyspark")
pytestmark = pytest.mark.jvm

APPLICATION = "taxi-demand"
SECONDS = (20, 15)
"""Of event time, before the cut moves and after."""
AFTER = ("parse", "clean", "drop-offs-by-zone-partial")
ONE_PLACE = QUICK_START | {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.session.timeZone": "UTC",
    # Few rows: compiling the plan would take longer than running it.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
LOCAL, MASTER, CONNECT = "local", "master", "connect"
Expected = Mapping[str, Counter[str]]


def write_city(file: Path, addresses: Mapping[str, str]) -> Path:
    """The network file; the addresses of its sites are all that ever differs."""
    lines = ["thalweg: 1", "network: city", "sites:"]
    for site, address in addresses.items():
        tier, cpu = ("cloud", 40000) if site == "cloud" else ("fog", 4000)
        nodes = f"[{{name: vm, cpu: {cpu} MIPS, memory: 8 GB}}]"
        lines.append(f"  - {{name: {site}, tier: {tier}, spark: '{address}', nodes: {nodes}}}")
    fogs = [site for site in addresses if site != "cloud"]
    link = "  - {{a: {}, b: cloud, latency: 40 ms, bandwidth: 100 Mbps}}"
    file.write_text("\n".join([*lines, "links:", *map(link.format, fogs)]) + "\n")
    return file


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Expected:
    """What the run in one place gives."""
    meters = Meters(tmp_path_factory.mktemp("one-place"), ("fog-1",))
    meters.send(sum(SECONDS))
    with open_session("local[1]", "expected", config=ONE_PLACE) as one:
        found = run_in_one_place(one, load_pipeline(EXAMPLES[APPLICATION]), meters.table)
    assert all(rows.total() >= 10 for rows in found.values())
    return found


@pytest.fixture(scope="module")
def standalone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with spark_cluster(tmp_path_factory.mktemp("standalone") / "cluster") as cluster:
        yield cluster


@pytest.fixture
def cluster(standalone: Cluster, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """A cluster that lets in those who have its secret."""
    monkeypatch.setenv("SPARK_CONF_DIR", str(standalone.conf))
    return standalone


def run_city(
    folder: Path,
    addresses: Mapping[str, str],
    expected: Expected,
    meanwhile: Callable[[Deployment], object],
) -> None:
    """Deploy, do something to it while rows come, and compare what comes out."""
    network = write_city(folder / "city.yaml", addresses)
    fogs = tuple(site for site in addresses if site != "cloud")
    run = Deployment(APPLICATION, network, folder=folder / "run", adapt=None, heap_mb=512)
    log = folder / "run" / "log"
    meters = Meters(log, fogs)
    with run:
        meters.send(SECONDS[0])
        # Some batch has gone to the cloud.
        wait_for(lambda: Log(log).read(SITE_CLOCK).num_rows or run.exception)
        meanwhile(run)
        meters.send(SECONDS[1])
        meters.end()
        wait_for(lambda: results(log, expected) == expected or run.exception)
    assert run.exception is None
    assert results(log, expected) == expected
    assert run.report["state"] == "ended"


def move_cuts(run: Deployment) -> None:
    """Take windows that are open from fogs to the cloud."""
    assert any("pickups-by-zone" in cut for cut in run.cuts.values())
    cuts = dict.fromkeys(run.cuts, AFTER)
    run.move(cuts)
    wait_for(lambda: run.cuts == cuts or run.exception)


@pytest.mark.slow
def test_an_application_on_a_standalone_cluster_gives_the_rows_of_the_run_in_one_place(
    cluster: Cluster, expected: Expected, tmp_path: Path
) -> None:
    """A fog and the cloud on one master with two workers, with a cut that moves."""
    before = len(cluster.applications())
    run_city(tmp_path, dict.fromkeys(("fog-1", "cloud"), cluster.address), expected, move_cuts)
    ran = cluster.applications()[before:]
    assert Counter((app["name"], app["cores"], app["state"]) for app in ran) == {
        ("fog-1", 1, "FINISHED"): 1,
        ("cloud", 1, "FINISHED"): 1,
    }
    assert cluster.state()["coresused"] == 0


PLACES = [
    {"fog-1": CONNECT, "fog-2": MASTER, "cloud": MASTER},
    {"fog-1": CONNECT, "cloud": LOCAL},
    {"fog-1": MASTER, "cloud": LOCAL},
    {"fog-1": LOCAL, "cloud": MASTER},
    {"fog-1": LOCAL, "cloud": LOCAL},
]


@pytest.mark.slow
@pytest.mark.parametrize("places", PLACES, ids=lambda places: "-".join(places.values()))
def test_only_addresses_differ_and_no_row_does(
    places: Mapping[str, str], cluster: Cluster, expected: Expected, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        addresses = {LOCAL: "local", MASTER: cluster.address}
        if CONNECT in places.values():
            server = connect_server(tmp_path / "server.log")
            addresses[CONNECT] = stack.enter_context(server)
        chosen = {site: addresses[place] for site, place in places.items()}
        run_city(tmp_path, chosen, expected, move_cuts)


@pytest.mark.slow
def test_a_worker_that_dies_is_replaced_by_another(
    expected: Expected, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cloud has state on the worker that is killed, and goes on at the other one."""
    with spark_cluster(tmp_path / "cluster") as cluster:
        monkeypatch.setenv("SPARK_CONF_DIR", str(cluster.conf))
        addresses = {"fog-1": "local", "cloud": cluster.address}
        run_city(tmp_path, addresses, expected, lambda _: cluster.kill_busy_worker())
        assert cluster.state()["aliveworkers"] == 1


@pytest.mark.slow
def test_who_does_not_have_the_secret_of_a_cluster_is_turned_away(standalone: Cluster) -> None:
    with pytest.raises(SparkUnavailable), open_session(standalone.address):
        pass


def test_sites_leave_room_for_one_another_on_a_cluster(tmp_path: Path) -> None:
    """A standalone master would give all of its cores to the first one."""
    standalone = site_config("spark://spark.example:7077", tmp_path, 512, ())
    assert standalone["spark.cores.max"] == "1"
    assert standalone["spark.executor.memory"] == "512m"
    assert site_config("yarn", tmp_path, 512, ())["spark.executor.instances"] == "1"
    alone = {*site_config("local[2]", tmp_path, 512, ()), *site_config("sc://a", tmp_path, 512, ())}
    assert not {name for name in alone if "executor" in name or "cores" in name}


def test_why_spark_refuses_to_start_is_told() -> None:
    config = {"spark.executor.memory": "1m"}
    with pytest.raises(SparkUnavailable, match="Executor memory"), open_session(config=config):
        pass
