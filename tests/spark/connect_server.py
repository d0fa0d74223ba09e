"""A Spark Connect server of one worker, from the files of pyspark itself."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from thalweg.spark.class_archive import archive_options
from thalweg.spark.java import find_java


@contextmanager
def connect_server(log: Path) -> Iterator[str]:
    """The server's address; it ends with the block."""
    pyspark = pytest.importorskip("pyspark")
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    java = find_java()
    options = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", *archive_options(java)]
    command = [
        Path(pyspark.__file__).with_name("bin") / "spark-submit",
        "--class=org.apache.spark.sql.connect.service.SparkConnectServer",
        f"--driver-java-options={' '.join(options)}",
        "--master=local[1]",
        "--conf=spark.ui.enabled=false",
        "--conf=spark.driver.bindAddress=127.0.0.1",
        "--conf=spark.driver.host=127.0.0.1",
        "--conf=spark.connect.grpc.binding.address=127.0.0.1",
        f"--conf=spark.connect.grpc.binding.port={port}",
        "spark-internal",
    ]
    environment = os.environ | {
        "JAVA_HOME": str(java.path),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(Path(__file__).parents[1]),
        "SPARK_CONNECT_MODE": "0",
    }
    with log.open("wb") as output:
        server = subprocess.Popen(command, env=environment, stdout=output, stderr=output)
    try:
        while True:
            assert server.poll() is None, log.read_text()
            with closing(socket.socket()) as door:
                if door.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        yield f"sc://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait()
