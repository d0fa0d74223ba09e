from __future__ import annotations

import re
import socket
from http.client import HTTPConnection
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.errors import InvalidInput, ThalwegError
from thalweg.model import Application, Operator, Pin, Stream
from thalweg.spark.monitor import Monitor
from thalweg.spark.monitor.export import CONTENT_TYPE, MetricsServer, _escape, render

Sample = tuple[str, frozenset[tuple[str, str]]]

APP = Application(
    name="small",
    operators=[
        Operator(name="rides", kind="source", rate=300.0, event_size=100.0, pin=Pin(tier="fog")),
        Operator(name="clean", kind="transform", selectivity=0.5),
        Operator(name="board", kind="sink", pin=Pin(tier="cloud")),
    ],
    streams=[Stream(source="rides", target="clean"), Stream(source="clean", target="board")],
)


def parse(text: str) -> tuple[dict[str, str], dict[Sample, float]]:
    """Kinds and samples of a text in Prometheus' format; fails where it is not one."""
    kinds: dict[str, str] = {}
    samples: dict[Sample, float] = {}
    assert not text or text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name not in kinds, "a family is told once"
            kinds[name] = kind
        elif not line.startswith("# HELP "):
            found = re.fullmatch(r"([a-z_]+)\{(.*)\} (\S+)", line)
            assert found, line
            assert found[1] == list(kinds)[-1], "samples stand under their family"
            labels = re.findall(r'([a-z]+)="((?:[^"\\]|\\.)*)"', found[2])
            assert ",".join(f'{name}="{value}"' for name, value in labels) == found[2]
            key = (found[1], frozenset(labels))
            assert key not in samples
            samples[key] = float(found[3])
    return kinds, samples


def sample(name: str, **labels: str) -> Sample:
    return (f"thalweg_{name}", frozenset(labels.items()))


@pytest.fixture
def monitor() -> Monitor:
    monitor = Monitor(APP)
    for second in range(10):
        at: dict[str, Any] = {"epoch": 0, "batch": second, "at_s": 100.0 + second}
        monitor.take(
            {
                "site": "fog-1",
                "role": "fog",
                **at,
                "batch_s": 0.25,
                "rows": {"rides": 100, "clean": 40},
                "rows_in": {"clean": 100},
                "bytes": {"edges/clean+board": 4000},
                "lag_s": 1.5,
                "watermark_s": 98.0 + second,
            }
        )
        monitor.take(
            {
                "site": "cloud",
                "role": "cloud",
                **at,
                "batch_s": 0.5,
                "rows": {"board": 40},
                "rows_in": {"board": 40},
                "bytes": {"sinks/board": 2000},
                "stream_rows": {"sinks/board": 40},
                "event_spans": {"sinks/board": (98.0 + second, 98.0 + second)},
            }
        )
        monitor.take({"site": "fog-1", "role": "gateway", **at, "rows": {"rides": 120}})
    return monitor


def test_everything_that_the_monitor_knows_can_be_read_from_the_text(monitor: Monitor) -> None:
    kinds, samples = parse(render(monitor))
    assert samples == {
        sample("batches_total", site="fog-1"): 10,
        sample("batches_total", site="cloud"): 10,
        sample("batch_seconds_total", site="fog-1"): 2.5,
        sample("batch_seconds_total", site="cloud"): 5.0,
        sample("operator_rows_total", site="fog-1", operator="rides"): 1000,
        sample("operator_rows_total", site="fog-1", operator="clean"): 400,
        sample("operator_rows_total", site="cloud", operator="board"): 400,
        sample("operator_input_rows_total", site="fog-1", operator="clean"): 1000,
        sample("operator_input_rows_total", site="cloud", operator="board"): 400,
        sample("stream_bytes_total", site="fog-1", stream="edges/clean+board"): 40_000,
        sample("stream_bytes_total", site="cloud", stream="sinks/board"): 20_000,
        sample("source_arrived_rows_total", site="fog-1", source="rides"): 1200,
        sample("source_rows_per_second", site="fog-1", source="rides"): pytest.approx(120),
        sample("operator_rows_per_second", site="fog-1", operator="clean"): pytest.approx(40),
        sample("operator_rows_per_second", site="cloud", operator="board"): pytest.approx(40),
        sample("operator_selectivity", site="fog-1", operator="clean"): pytest.approx(0.4),
        sample("operator_selectivity", site="cloud", operator="board"): pytest.approx(1.0),
        sample("link_bytes_per_second", site="fog-1"): pytest.approx(4000),
        sample("lag_seconds", site="fog-1"): 1.5,
        sample("watermark_timestamp_seconds", site="fog-1"): 107.0,
        sample("site_load", site="fog-1"): pytest.approx(0.25),
        sample("site_load", site="cloud"): pytest.approx(0.5),
        sample("sink_latency_seconds", sink="board", quantile="0.5"): pytest.approx(2.0),
        sample("sink_latency_seconds", sink="board", quantile="0.95"): pytest.approx(2.0),
    }
    for name, kind in kinds.items():
        assert kind == ("counter" if name.endswith("_total") else "gauge")


def test_a_monitor_that_knows_nothing_says_nothing() -> None:
    assert render(Monitor(APP)) == ""


@given(st.text())
def test_escaped_labels_are_on_one_line_and_can_be_read_back(text: str) -> None:
    shown = _escape(text)
    assert "\n" not in shown
    marks = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}
    assert re.sub(r'\\[\\"n]', lambda found: marks[found[0]], shown) == text
    assert re.fullmatch(r'(?:[^"\\\n]|\\[\\"n])*', shown)


def ask(server: MetricsServer, path: str, host: str | None, method: str = "GET") -> tuple[Any, str]:
    connection = HTTPConnection("127.0.0.1", server.port, timeout=10)
    try:
        connection.putrequest(method, path, skip_host=True)
        if host is not None:
            connection.putheader("Host", host)
        connection.endheaders()
        answer = connection.getresponse()
        return answer, answer.read().decode()
    finally:
        connection.close()


def test_the_server_answers_requests_for_metrics_on_this_machine_only(monitor: Monitor) -> None:
    with MetricsServer(lambda: render(monitor)) as server:
        assert server.url == f"http://127.0.0.1:{server.port}/metrics"
        for host in ("127.0.0.1", f"127.0.0.1:{server.port}", "localhost", "LOCALHOST:1"):
            answer, text = ask(server, "/metrics", host)
            assert (answer.status, text) == (200, render(monitor))
            assert answer.headers["Content-Type"] == CONTENT_TYPE
        for host in ("evil.example", "127.0.0.1.evil.example", "localhost:x", "", None):
            answer, text = ask(server, "/metrics", host)
            assert answer.status == 403
            assert "thalweg_" not in text
        for path in ("/", "/metrics/more", "/../metrics"):
            assert ask(server, path, "localhost")[0].status == 404
        assert ask(server, "/metrics", "localhost", "POST")[0].status == 501


def test_the_server_listens_on_no_other_address() -> None:
    with MetricsServer(str) as server:
        assert server._server.server_address[0] == "127.0.0.1"


def test_the_port_is_free_again_after_the_end() -> None:
    with MetricsServer(str) as server, pytest.raises(ThalwegError, match=f"port {server.port}"):
        MetricsServer(str, server.port)
    with socket.socket() as other, pytest.raises(ConnectionRefusedError):
        other.connect(("127.0.0.1", server.port))
    server.stop()


@pytest.mark.parametrize("port", [-1, 65536, "80", True])
def test_a_port_that_is_none_is_refused(port: Any) -> None:
    with pytest.raises(InvalidInput, match="port"):
        MetricsServer(str, port)
