"""Who may ask: every route and method, without a token, for another host, from another origin."""

from __future__ import annotations

import pytest

pytest.importorskip("fastapi")

import httpx
from fastapi.routing import APIRoute
from hypothesis import given
from hypothesis import strategies as st

import thalweg as tw
from thalweg.web.app import Room, make_app, read_assets
from thalweg.web.guard import find_fault
from thalweg.web.subjects.plan import PlanSubject

TOKEN = "a-token-of-the-tests-0123456789"  # noqa: S105
HOST = "127.0.0.1:8000"
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


@pytest.fixture(scope="module")
def guarded():
    app, net = tw.scenarios.small_taxi(), tw.scenarios.small_city()
    return make_app(Room([PlanSubject(app, net, tw.plan(app, net))]), TOKEN)


@pytest.fixture
def routes(guarded) -> list[str]:
    found = [r.path for r in guarded._app.routes if isinstance(r, APIRoute)]
    api = [path for path in found if path.startswith("/api/")]
    assert len(api) >= 12
    filled = [p.replace("{number}", "0").replace("{name}", "plot.png") for p in api]
    return [*filled, "/api/openapi.json", "/api/none", "/none"]


def ask(guarded, method: str, path: str, headers: dict[str, str]) -> httpx.Response:
    import anyio

    async def call() -> httpx.Response:
        transport = httpx.ASGITransport(app=guarded, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url=f"http://{HOST}") as client:
            return await client.request(method, path, headers=headers, content=b"")

    return anyio.run(call)


def test_without_the_token_nothing_is_told_and_nothing_done(guarded, routes):
    for path in routes:
        for method in METHODS:
            for given_token in (None, "", "wrong", TOKEN[:-1], TOKEN + "x"):
                headers = {} if given_token is None else {"authorization": f"Bearer {given_token}"}
                found = ask(guarded, method, path, headers)
                assert found.status_code == 401, (method, path, given_token)
                assert "access-control-allow-origin" not in found.headers


@pytest.mark.parametrize(
    "fault",
    [
        {"host": "evil.example"},
        {"host": "evil.example:8000"},
        {"host": "127.0.0.1.evil.example"},
        {"host": "192.168.0.7:8000"},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://["},
        {"origin": ""},
        {"origin": f"https://{HOST}"},
        {"origin": "http://127.0.0.1:9999"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_other_hosts_and_origins_are_refused_even_with_the_token(guarded, routes, fault):
    headers = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json", **fault}
    for path in [*routes, "/", "/static/main.js"]:
        for method in METHODS:
            assert ask(guarded, method, path, headers).status_code == 403, (method, path)


def test_the_page_itself_tells_nothing_and_can_only_be_read(guarded):
    shown = ask(guarded, "GET", "/", {})
    assert shown.status_code == 200
    assert "default-src 'none'" in shown.headers["content-security-policy"]
    assert shown.headers["x-content-type-options"] == "nosniff"
    assert TOKEN not in shown.text
    assert "taxi" not in shown.text
    assert ask(guarded, "POST", "/", {}).status_code == 405
    for name in ("../app.py", "..%2fapp.py", "%2e%2e/app.py", "app.py", "index.html/.."):
        assert ask(guarded, "GET", f"/static/{name}", {}).status_code in (401, 404)


def test_bodies_have_to_be_json_and_short(guarded):
    headers = {"authorization": f"Bearer {TOKEN}"}
    path = "/api/subjects/0/what-if"
    assert ask(guarded, "POST", path, headers).status_code == 415
    plain = {**headers, "content-type": "text/plain"}
    assert ask(guarded, "POST", path, plain).status_code == 415
    kind = {**headers, "content-type": "application/json"}
    assert ask(guarded, "POST", path, {**kind, "content-length": "9999999"}).status_code == 413
    assert find_fault(
        "POST", path, {"host": [HOST], "transfer-encoding": ["chunked"]} | _lists(kind), TOKEN
    ) == (411, "what is sent has to say how long it is")


def _lists(headers: dict[str, str]) -> dict[str, list[str]]:
    return {name: [value] for name, value in headers.items()}


@given(st.text(max_size=60), st.text(max_size=60), st.sampled_from(METHODS))
def test_no_text_is_a_token_but_the_token(given_token, host, method):
    headers = {"host": [host], "authorization": [f"Bearer {given_token}"]}
    found = find_fault(method, "/api/subjects", headers, TOKEN)
    assert found is not None
    assert found[0] in (401, 403)


def test_all_assets_are_in_the_package_and_small():
    import gzip

    assets = read_assets()
    assert {"index.html", "main.js", "page.css", "city.js", "city.css"} <= set(assets)
    packed = sum(len(gzip.compress(content)) for content, _ in assets.values())
    assert packed <= 400_000
    for name, (content, _) in assets.items():
        text = content.decode()
        assert "https://" not in text.replace("https://www.w3.org", ""), name
        assert "//cdn" not in text, name


def test_an_error_of_our_own_is_answered_in_words(capfd):
    app, net = tw.scenarios.small_taxi(), tw.scenarios.small_city()
    subject = PlanSubject(app, net, tw.plan(app, net))

    def fail():
        raise RuntimeError("a slip")

    subject.scene = fail
    guarded = make_app(Room([subject]), TOKEN)
    found = ask(guarded, "GET", "/api/subjects/0/scene", {"authorization": f"Bearer {TOKEN}"})
    assert found.status_code == 500
    assert found.json() == {"problems": ["an error inside Thalweg: RuntimeError: a slip"]}
    assert "Traceback" not in capfd.readouterr().err
