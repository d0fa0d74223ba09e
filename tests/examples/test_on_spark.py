"""The examples that start Spark: what comes out is what comes out in one place."""

from __future__ import annotations

import re
import socket
import subprocess
from pathlib import Path

import pytest

from examples.gallery import run_example

NO_BROKER = 3


def require_same(done: subprocess.CompletedProcess[str]) -> None:
    said = f"{done.stdout}\n{done.stderr}"
    assert done.returncode == 0, said
    told = re.search(r"([\d,]+) rows in, ([\d,]+) rows out: the same as in one place", done.stdout)
    assert told is not None, said
    assert all(int(count.replace(",", "")) > 0 for count in told.groups())
    assert "Traceback" not in said


@pytest.mark.slow
@pytest.mark.jvm
def test_taxi_on_three_fogs(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    done = run_example("taxi_on_three_fogs.py", "--seconds", "6", folder=tmp_path)
    require_same(done)
    sizes = re.findall(r"fog-\d: ([\d,]+) kB came in, ([\d,]+) kB went up", done.stdout)
    assert len(sizes) == 3
    assert all(int(up.replace(",", "")) < int(born.replace(",", "")) for born, up in sizes)


@pytest.mark.slow
@pytest.mark.jvm
def test_a_custom_link_that_is_down_for_a_while(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    done = run_example("custom_link.py", "--fogs", "1", "--seconds", "6", folder=tmp_path)
    require_same(done)
    before = re.search(r"after (\d+) envelopes the database was locked", done.stdout)
    after = re.search(r"fog-0: (\d+) envelopes", done.stdout)
    assert before is not None and after is not None, done.stdout
    assert int(before[1]) < int(after[1])


@pytest.mark.slow
@pytest.mark.jvm
def test_a_custom_link_of_two_fogs(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    done = run_example("custom_link.py", folder=tmp_path)
    require_same(done)
    assert len(re.findall(r"fog-\d: \d+ envelopes", done.stdout)) == 2


@pytest.mark.slow
@pytest.mark.jvm
def test_kafka_links(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    pytest.importorskip("confluent_kafka")
    done = run_example("kafka_links.py", "--start-broker", folder=tmp_path)
    if done.returncode == NO_BROKER:
        pytest.skip(done.stdout.strip().splitlines()[-1])
    require_same(done)
    told = re.search(r"(\d+) messages went over the topic", done.stdout)
    assert told is not None and int(told[1]) > 0


def test_kafka_links_say_where_nobody_answers(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    pytest.importorskip("confluent_kafka")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = run_example("kafka_links.py", "--broker", address, folder=tmp_path)
    assert done.returncode == NO_BROKER, done.stderr
    assert f"cannot reach Kafka at {address}" in done.stdout
    assert "Traceback" not in done.stderr


def test_kafka_links_ask_for_a_broker(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    pytest.importorskip("confluent_kafka")
    done = run_example("kafka_links.py", folder=tmp_path)
    assert done.returncode == 2
    assert "--start-broker" in done.stderr
