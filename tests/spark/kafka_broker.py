"""A real Kafka broker on this machine, from Maven's jars: one process, gone with the tests."""

from __future__ import annotations

import base64
import ctypes
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from pathlib import Path

import pytest

from thalweg.spark.java import JavaMissing, find_java

VERSION = "4.1.2"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "thalweg"
JARS = CACHE / f"kafka-{VERSION}"
START_TIMEOUT_S = 90.0

_POM = f"""\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>thalweg</groupId>
  <artifactId>kafka-broker</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId>
      <artifactId>kafka_2.13</artifactId>
      <version>{VERSION}</version>
    </dependency>
  </dependencies>
</project>
"""
_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
_SETTINGS = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={store}
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
num.network.threads=1
num.io.threads=2
log.cleaner.enable=false
"""


class BrokerMissing(Exception):
    """There is no Kafka broker to be had on this machine."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"needs a Kafka broker: {reason}")


def has_jars() -> bool:
    """Whether the broker's jars are on this machine."""
    return JARS.is_dir()


def fetch_jars() -> Path:
    """The folder of the broker's jars, fetched by Maven where it is not there yet."""
    if has_jars():
        return JARS
    if shutil.which("mvn") is None:
        raise BrokerMissing("there is no mvn to fetch it. Hint: as root, apt-get install maven")
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        jars = Path(folder) / "jars"
        (Path(folder) / "pom.xml").write_text(_POM)
        command = ["mvn", "-q", "-B", _COPY, "-DincludeScope=runtime", f"-DoutputDirectory={jars}"]
        try:
            done = subprocess.run(
                command, cwd=folder, capture_output=True, text=True, timeout=300, check=False
            )
        except subprocess.TimeoutExpired:
            raise BrokerMissing("Maven Central did not answer within 300 s") from None
        if done.returncode or not jars.is_dir():
            said = (done.stdout + done.stderr).strip().splitlines() or ["it does not say why"]
            raise BrokerMissing(f"Maven did not get it: {said[0]}")
        try:
            jars.rename(JARS)
        except OSError:
            if not JARS.is_dir():
                raise
    return JARS


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


class Broker:
    """One broker that is its own controller; it can be stopped and started again."""

    def __init__(self, folder: Path) -> None:
        try:
            java = find_java().path / "bin" / "java"
        except JavaMissing as error:
            raise BrokerMissing(str(error)) from None
        self._folder = folder
        self._java = [str(java), "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        self._java += ["-cp", f"{fetch_jars()}/*"]
        self._process: subprocess.Popen[bytes] | None = None
        self.port, controller = _free_ports(2)
        self._settings = folder / "server.properties"
        self._settings.write_text(
            _SETTINGS.format(port=self.port, controller=controller, store=folder / "store")
        )
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        self._run("kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(self._settings))

    def address(self, topic: str) -> str:
        return f"kafka://127.0.0.1:{self.port}/{topic}"

    def start(self) -> None:
        with (self._folder / "broker.log").open("ab") as log:
            self._process = subprocess.Popen(
                [*self._java, "kafka.Kafka", str(self._settings)],
                stdout=log,
                stderr=log,
                preexec_fn=_end_with_parent,
            )
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError((self._folder / "broker.log").read_text()[-2000:])
            time.sleep(0.1)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _answers(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def _run(self, *arguments: str) -> None:
        subprocess.run([*self._java, *arguments], check=True, capture_output=True, timeout=120)


def broker_or_skip(folder: Path) -> Broker:
    """A broker that is not started yet; skips the test where there is none to be had."""
    try:
        return Broker(folder)
    except BrokerMissing as error:
        pytest.skip(str(error))
