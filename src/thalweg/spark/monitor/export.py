"""Figures of a monitor in the text format of Prometheus, and a small server for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import TracebackType
from typing import Any, Self

from thalweg.errors import Defect, InvalidInput, ThalwegError
from thalweg.spark.monitor.figures import Figures
from thalweg.spark.monitor.monitor import Monitor, Totals

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_ADDRESS = "127.0.0.1"
_HOSTS = (_ADDRESS, "localhost")
_TIMEOUT_S = 5.0

Labels = Mapping[str, str]
Sample = tuple[Labels, float]


@dataclass(frozen=True, slots=True)
class _Family:
    """Samples with one name."""

    name: str
    kind: str
    meaning: str
    samples: Sequence[Sample]

    def __str__(self) -> str:
        lines = [f"# HELP {self.name} {self.meaning}", f"# TYPE {self.name} {self.kind}"]
        for labels, value in self.samples:
            shown = ",".join(f'{label}="{_escape(text)}"' for label, text in labels.items())
            lines.append(f"{self.name}{{{shown}}} {float(value)!r}")
        return "".join(f"{line}\n" for line in lines) if self.samples else ""


def render(monitor: Monitor) -> str:
    """Everything that the monitor knows; names and labels in a fixed order."""
    return "".join(map(str, (*_counters(monitor.totals), *_gauges(monitor.figures()))))


def _counters(totals: Totals) -> list[_Family]:
    return [
        _Family(f"thalweg_{name}_total", "counter", meaning, samples)
        for name, meaning, samples in (
            ("batches", "Batches finished.", _by("site", totals.batches)),
            ("batch_seconds", "Time spent in batches.", _by("site", totals.batch_s)),
            (
                "operator_rows",
                "Rows that an operator has put out.",
                _by_two("operator", totals.rows),
            ),
            (
                "operator_input_rows",
                "Rows that an operator has read.",
                _by_two("operator", totals.rows_in),
            ),
            (
                "stream_bytes",
                "Bytes of data published in a stream of the log.",
                _by_two("stream", totals.stream_bytes),
            ),
            (
                "source_arrived_rows",
                "Rows that gateways have put into the log.",
                _by_two("source", totals.arrived),
            ),
        )
    ]


def _gauges(figures: Figures) -> list[_Family]:
    operators = figures.operators.items()
    rates = {key: flow.rows_out_per_s for key, flow in operators}
    selectivity = {key: s for key, flow in operators if (s := flow.selectivity) is not None}
    lag, watermark = _by("site", figures.lag_s), _by("site", figures.watermark_s)
    latencies: list[Sample] = [
        ({"sink": sink, "quantile": quantile}, value)
        for sink, latency in sorted(figures.latencies.items())
        for quantile, value in (("0.5", latency.p50_s), ("0.95", latency.p95_s))
    ]
    return [
        _Family(f"thalweg_{name}", "gauge", meaning, samples)
        for name, meaning, samples in (
            ("source_rows_per_second", "Rate of a source.", _by_two("source", figures.sources)),
            (
                "operator_rows_per_second",
                "Rate at which an operator puts out rows.",
                _by_two("operator", rates),
            ),
            (
                "operator_selectivity",
                "Rows out for each row in.",
                _by_two("operator", selectivity),
            ),
            (
                "link_bytes_per_second",
                "Bytes of data that a site sends to the cloud.",
                _by("site", figures.links),
            ),
            ("lag_seconds", "How far a site is behind the newest event.", lag),
            (
                "watermark_timestamp_seconds",
                "The event time up to which a site has seen everything.",
                watermark,
            ),
            (
                "site_load",
                "Part of the time in which a site works on a batch.",
                _by("site", figures.load),
            ),
            ("sink_latency_seconds", "From event time to publication.", latencies),
        )
    ]


def _by(label: str, values: Mapping[str, float]) -> list[Sample]:
    return [({label: name}, value) for name, value in sorted(values.items())]


def _by_two(label: str, values: Mapping[tuple[str, str], float]) -> list[Sample]:
    """Samples of what is known by (name, site)."""
    return [({"site": site, label: name}, value) for (name, site), value in sorted(values.items())]


def _escape(text: str) -> str:
    r"""A label's value as the format wants it.

    >>> print(_escape('a "b" \\ c'))
    a \"b\" \\ c
    """
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


class MetricsServer:
    """Answers `GET /metrics` on this machine's own address, while the `with` block lasts.

    Port 0 takes any that is free; `port` says which. Only requests that name this machine as their
    host are answered, so that no page from elsewhere can read along in a browser.
    """

    def __init__(self, answer: Callable[[], str], port: int = 0) -> None:
        if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port <= 65535:
            rule = "a port from 0 to 65535"
            raise InvalidInput([Defect(path="port", value=port, rule=rule)])
        handler = type("_Handler", (_MetricsHandler,), {"answer": staticmethod(answer)})
        try:
            self._server = ThreadingHTTPServer((_ADDRESS, port), handler)
        except OSError as error:
            raise ThalwegError(f"cannot serve metrics on port {port}: {error}") from error
        self._server.daemon_threads = True
        self.port: int = self._server.server_address[1]
        # Asked often for whether to end, so that ending takes no noticeable time.
        self._thread = Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self) -> str:
        """Where the metrics are."""
        return f"http://{_ADDRESS}:{self.port}/metrics"

    def start(self) -> Self:
        """Begin to answer."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """End; to do it again changes nothing."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


class _MetricsHandler(BaseHTTPRequestHandler):
    timeout = _TIMEOUT_S
    server_version = "thalweg"
    sys_version = ""

    @staticmethod
    def answer() -> str:
        """The text to send; every server puts its own here."""
        raise NotImplementedError

    def do_GET(self) -> None:
        """Answer with the metrics, or say why not."""
        if not _is_own_host(self.headers.get_all("Host") or []):
            self._send(HTTPStatus.FORBIDDEN, "only for this machine\n")
        elif self.path.partition("?")[0] != "/metrics":
            self._send(HTTPStatus.NOT_FOUND, "only /metrics\n")
        else:
            self._send(HTTPStatus.OK, self.answer())

    def _send(self, status: HTTPStatus, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", CONTENT_TYPE)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Say nothing: the terminal belongs to the run."""


def _is_own_host(given: list[str]) -> bool:
    """Whether the one host that a request names is this machine.

    >>> [_is_own_host([name]) for name in ("localhost:9090", "127.0.0.1", "example.org:9090")]
    [True, True, False]
    """
    if len(given) != 1:
        return False
    host, _, port = given[0].strip().lower().partition(":")
    return host in _HOSTS and (not port or port.isdigit())
