"""A Spark standalone cluster on this machine: a master and workers, from the files of pyspark."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from thalweg.spark.java import find_java

HOST = "127.0.0.1"
PATIENCE_S = 120.0
_DEPLOY = "org.apache.spark.deploy"
_JAVA = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Xmx256m")
# Of everyone who has to do with the cluster. Those without the secret are turned away.
_SETTINGS = {
    "spark.authenticate": "true",
    "spark.network.crypto.enabled": "true",
    "spark.driver.host": HOST,
    "spark.driver.bindAddress": HOST,
    "spark.executor.extraJavaOptions": " ".join(_JAVA[:3]),
}


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """A standalone cluster that runs: its address, and what its master says of it."""

    address: str
    page: str
    conf: Path
    """The folder with `spark-defaults.conf`, for whoever may use the cluster."""
    workers: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)
    """By port."""

    def state(self) -> dict[str, Any]:
        with urlopen(self.page, timeout=10) as answer:  # noqa: S310
            found: dict[str, Any] = json.load(answer)
        return found

    def applications(self) -> list[dict[str, Any]]:
        """All that was ever submitted, what has ended first."""
        state = self.state()
        found: list[dict[str, Any]] = [*state["completedapps"], *state["activeapps"]]
        return found

    def kill_busy_worker(self) -> None:
        """End a worker that has an executor, as a power cut would."""
        port = next(w["port"] for w in self.state()["workers"] if w["coresused"])
        self.workers[port].kill()


def free_port() -> int:
    with closing(socket.create_server((HOST, 0))) as free:
        port: int = free.getsockname()[1]
    return port


@contextmanager
def daemon(folder: Path, name: str, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """One of Spark's own processes; what it prints is in the folder."""
    pyspark = pytest.importorskip("pyspark")
    home, java = Path(pyspark.__file__).parent, find_java()
    command = [java.path / "bin" / "java", *_JAVA, "-cp", home / "jars" / "*", *words]
    # Workers start executors with what they have in their own environment.
    environment = os.environ | {
        "JAVA_HOME": str(java.path),
        "SPARK_HOME": str(home),
        "SPARK_CONF_DIR": str(folder / "conf"),
        # Spark's own scripts say so; without, workers look for a folder of its sources.
        "SPARK_SCALA_VERSION": "2.13",
        "SPARK_LOCAL_IP": HOST,
        "SPARK_LOCAL_DIRS": str(folder / f"{name}-local"),
        "PYSPARK_PYTHON": sys.executable,
    }
    with (folder / f"{name}.log").open("wb") as output:
        process = subprocess.Popen(
            command, env=environment, stdout=output, stderr=output, cwd=folder
        )
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


@contextmanager
def spark_cluster(folder: Path, workers: int = 2) -> Iterator[Cluster]:
    """A master and workers with a core and a gigabyte each, all registered; they end with it."""
    port, page_port = free_port(), free_port()
    cluster = Cluster(
        address=f"spark://{HOST}:{port}",
        page=f"http://{HOST}:{page_port}/json/",
        conf=folder / "conf",
    )
    cluster.conf.mkdir(parents=True)
    settings = _SETTINGS | {"spark.authenticate.secret": token_hex()}
    lines = (f"{key} {value}\n" for key, value in settings.items())
    (cluster.conf / "spark-defaults.conf").write_text("".join(lines))
    with ExitStack() as stack:

        def start(name: str, kind: str, port: int, *words: str) -> subprocess.Popen[bytes]:
            command = (f"{_DEPLOY}.{kind}", "--host", HOST, "--port", str(port), *words)
            return stack.enter_context(daemon(folder, name, *command))

        master = start("master", "master.Master", port, "--webui-port", str(page_port))
        for number in range(workers):
            size = ("--cores", "1", "--memory", "1g", "--webui-port", "0")
            work = ("--work-dir", str(folder / f"work-{number}"))
            place, name = free_port(), f"worker-{number}"
            process = start(name, "worker.Worker", place, *size, *work, cluster.address)
            cluster.workers[place] = process
        _await_workers(cluster, [master, *cluster.workers.values()], folder)
        yield cluster


def _await_workers(cluster: Cluster, running: list[subprocess.Popen[bytes]], folder: Path) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        if any(process.poll() is not None for process in running):
            pytest.fail("\n".join(file.read_text() for file in folder.glob("*.log")))
        assert time.monotonic() < deadline, "waited in vain for the workers"
        # Nobody answers yet, or with an empty page: the server is up before what it serves.
        with suppress(URLError, ConnectionError, TimeoutError, json.JSONDecodeError):
            if cluster.state()["aliveworkers"] == len(cluster.workers):
                return
        time.sleep(0.1)
