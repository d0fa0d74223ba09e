"""The API against its own description: whatever is asked, no error of ours and no other answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("schemathesis")

import schemathesis
from hypothesis import given
from hypothesis import strategies as st
from schemathesis.specs.openapi.checks import positive_data_acceptance

import thalweg as tw
from fuzz.good_files import STORED
from property.spoiling import fuzzed
from thalweg.web.app import Room, make_app
from thalweg.web.opening import open_subjects
from thalweg.web.subjects.plan import PlanSubject

TOKEN = "a-token-of-the-tests-0123456789"  # noqa: S105
HEADERS = {"Authorization": f"Bearer {TOKEN}", "Host": "127.0.0.1:8000"}
KINDS = ["plan", *STORED]
# No description of ours can tell which names a subject has: others are refused with 422.
_NOT_ASKED = [positive_data_acceptance]
ROUTES = [
    (path, method)
    for path, methods in make_app(Room([]), TOKEN)._app.openapi()["paths"].items()  # type: ignore[attr-defined]
    for method in methods
]


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the app says of itself, with a plan and a stored subject of every other kind."""
    folder: Path = tmp_path_factory.mktemp("subjects")
    app, net = tw.scenarios.small_taxi(), tw.scenarios.small_city()
    subjects: list[Any] = [PlanSubject(app, net, tw.plan(app, net, "cloud-only"))]
    for kind, write in STORED.items():
        places = write(folder / kind)
        subjects += open_subjects(places if isinstance(places, list) else [places])
    assert [subject.kind for subject in subjects] == KINDS
    guarded = make_app(Room(subjects), TOKEN)
    return schemathesis.openapi.from_asgi("/api/openapi.json", guarded, headers=HEADERS)


def check(api: Any, path: str, method: str, data: st.DataObject) -> None:
    """Ask of any subject and of one that is there, and hold the answer against the description."""
    case = data.draw(api[path][method].as_strategy())
    case.call_and_validate(headers=HEADERS, excluded_checks=_NOT_ASKED)
    if "{number}" in path:
        case.path_parameters["number"] = data.draw(st.integers(0, len(KINDS) - 1))
        case.call_and_validate(headers=HEADERS, excluded_checks=_NOT_ASKED)


def test_there_are_routes_to_ask():
    assert ("/api/subjects/{number}/what-if", "post") in ROUTES
    assert len(ROUTES) >= 12


@pytest.mark.parametrize(("path", "method"), ROUTES)
@fuzzed(25)
@given(data=st.data())
def test_every_answer_is_as_described(api, path: str, method: str, data: st.DataObject):
    check(api, path, method, data)


@pytest.mark.slow
@pytest.mark.parametrize(("path", "method"), ROUTES)
@fuzzed(500)
@given(data=st.data())
def test_very_many_answers_are_as_described(api, path: str, method: str, data: st.DataObject):
    check(api, path, method, data)
