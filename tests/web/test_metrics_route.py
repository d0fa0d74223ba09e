"""`/metrics` of the page's server: who gets it, and what there is where nothing else is served."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("prometheus_client")
pytest.importorskip("pyspark")

import anyio
import httpx
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST
from prometheus_client.parser import text_string_to_metric_families

import thalweg as tw
from thalweg.web.app import Room, make_app
from thalweg.web.guard import Guard
from thalweg.web.subjects.plan import PlanSubject
from thalweg.web.subjects.run import RunSubject
from web.measured_run import held_run

TOKEN = "a-token-of-the-tests-0123456789"  # noqa: S105
HOST = "127.0.0.1:9464"
ALLOWED = {"authorization": f"Bearer {TOKEN}"}


@pytest.fixture
def subject(tmp_path: Path) -> Iterator[RunSubject]:
    with held_run(tmp_path / "town") as folder:
        yield RunSubject(folder)


def ask(guarded: Guard, path: str, headers: dict[str, str], method: str = "GET") -> httpx.Response:
    async def call() -> httpx.Response:
        transport = httpx.ASGITransport(app=guarded)
        async with httpx.AsyncClient(transport=transport, base_url=f"http://{HOST}") as client:
            return await client.request(method, path, headers=headers)

    return anyio.run(call)


@pytest.mark.parametrize("only_metrics", [False, True])
def test_whoever_has_the_token_gets_the_metrics(subject: RunSubject, only_metrics: bool) -> None:
    guarded = make_app(Room([subject]), TOKEN, only_metrics=only_metrics)
    answer = ask(guarded, "/metrics", ALLOWED)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert answer.headers["cache-control"] == "no-store"
    families = {family.name: family for family in text_string_to_metric_families(answer.text)}
    assert families["thalweg_run_up"].samples[0].labels == {"run": "town"}
    assert families["thalweg_run_up"].samples[0].value == 1


def test_open_metrics_are_there_for_whoever_asks_for_them(subject: RunSubject) -> None:
    guarded = make_app(Room([subject]), TOKEN)
    accept = {"accept": "application/openmetrics-text"}
    answer = ask(guarded, "/metrics", {**ALLOWED, **accept})
    assert answer.headers["content-type"] == CONTENT_TYPE_LATEST
    assert answer.text.endswith("# EOF\n")


@pytest.mark.parametrize("only_metrics", [False, True])
@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/metrics", {}),
        ("/metrics", {"authorization": "Bearer wrong"}),
        ("/metrics", {"authorization": f"Basic {TOKEN}"}),
        ("/metrics", {"cookie": f"token={TOKEN}"}),
        (f"/metrics?token={TOKEN}", {}),
        (f"/metrics?access_token={TOKEN}", {}),
        ("/metrics/", {}),
    ],
)
def test_without_the_token_in_its_header_nobody_gets_them(
    subject: RunSubject, only_metrics: bool, path: str, headers: dict[str, str]
) -> None:
    guarded = make_app(Room([subject]), TOKEN, only_metrics=only_metrics)
    answer = ask(guarded, path, headers)
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert "thalweg_" not in answer.text


@pytest.mark.parametrize(
    "headers",
    [{"host": "evil.example"}, {"origin": "http://evil.example"}, {"sec-fetch-site": "same-site"}],
)
def test_other_hosts_and_origins_do_not_get_them(
    subject: RunSubject, headers: dict[str, str]
) -> None:
    answer = ask(make_app(Room([subject]), TOKEN), "/metrics", {**ALLOWED, **headers})
    assert answer.status_code == 403
    assert "thalweg_" not in answer.text


def test_without_a_page_there_are_metrics_and_nothing_else(subject: RunSubject) -> None:
    guarded = make_app(Room([subject]), TOKEN, only_metrics=True)
    page = make_app(Room([subject]), TOKEN)
    paths = {route.path for route in page._app.routes}  # type: ignore[attr-defined]
    assert "/metrics" in paths
    assert "/api/subjects" in paths
    for path in paths - {"/metrics"} | {"/api/openapi.json", "/static/main.js"}:
        for method in ("GET", "POST"):
            headers = {**ALLOWED, "content-type": "application/json"}
            answer = ask(guarded, path.replace("{number}", "0"), headers, method)
            assert answer.status_code in (404, 405), path


def test_a_page_without_a_run_has_no_metrics() -> None:
    app, net = tw.scenarios.small_taxi(), tw.scenarios.small_city()
    subject = PlanSubject(app, net, tw.plan(app, net, "cloud-only"))
    answer = ask(make_app(Room([subject]), TOKEN), "/metrics", ALLOWED)
    assert answer.status_code == 404
    assert answer.json() == {"problems": ["there is no run here, and metrics are of runs"]}
